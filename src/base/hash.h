// SPDX-License-Identifier: Apache-2.0
/* hash.h: 64-bit checksums of files (XXH3; xxhash.com). They find damage, not malice.
 * The same bytes give the same number on every machine, in one piece or in many. A hasher belongs to one thread. */
#ifndef WEFT_BASE_HASH_H
#define WEFT_BASE_HASH_H

#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>

uint64_t weft__hash(const void *bytes, size_t n);

/* begin, then add in any pieces, then end; needs no freeing. */
typedef struct weft__hash_state {
    alignas(64) unsigned char state[640];
} weft__hash_state;

void weft__hash_begin(weft__hash_state *h);
void weft__hash_add(weft__hash_state *h, const void *bytes, size_t n);
uint64_t weft__hash_end(const weft__hash_state *h);

#endif
