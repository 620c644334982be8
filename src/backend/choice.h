// SPDX-License-Identifier: Apache-2.0
/* choice.h: whether products of quantized weights go to AMX, or to the tier below it, which gives the same bits: by
 * what both reach on this machine. That is measured once, on one thread in a few milliseconds, and kept in amx.txt of
 * the cache (base/place.h) until the system starts anew; where nothing can be kept, each process measures. A file of
 * another system, processor or version, or a damaged one, says nothing.
 *
 * Products of BF16 weights stay with AMX: their bits are its own. */
#ifndef WEFT_BACKEND_CHOICE_H
#define WEFT_BACKEND_CHOICE_H

#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"

/* 10^6 multiplications and additions per second. */
typedef struct weft__cpu_rates {
    int64_t amx, below;
    weft__tier tier_below;
} weft__cpu_rates;

/* `tiers` without WEFT__TIER_AMX where the rates say so: what is below is faster, by more than rounds differ by. */
uint32_t weft__cpu_without_slower(uint32_t tiers, const weft__cpu_rates *rates);
/* The same by this machine's rates, which are measured if they are not known. Where memory runs out AMX stays.
 * Thread-safe. */
uint32_t weft__cpu_choose(uint32_t tiers);
/* This machine's rates, where they are known without measuring. 0: they are not, or `tiers` leave no choice. */
int weft__cpu_known_rates(uint32_t tiers, weft__cpu_rates *out);

/* The file: one line, KEY: RATE RATE. `key` tells apart what rates hold for, and has no line ends; 1, or 0: nothing is
 * kept there for that key; it could not be written. tier_below is not kept. */
#define WEFT__CPU_RATES_KEY 320
int weft__cpu_rates_read(const char *path, const char *key, weft__cpu_rates *out);
int weft__cpu_rates_keep(const char *path, const char *key, const weft__cpu_rates *rates);

#endif
