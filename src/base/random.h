// SPDX-License-Identifier: Apache-2.0
/* random.h: reproducible random numbers (xoshiro256**, seeded through SplitMix64; Blackman and Vigna 2018).
 * The same seed gives the same numbers on every machine. A generator belongs to one thread. */
#ifndef WEFT_BASE_RANDOM_H
#define WEFT_BASE_RANDOM_H

#include <stdint.h>

typedef struct weft__rng {
    uint64_t s[4];
} weft__rng;

void weft__rng_seed(weft__rng *rng, uint64_t seed);
uint64_t weft__rng_u64(weft__rng *rng);
/* Uniform in [0, 1), 53 bits. */
double weft__rng_double(weft__rng *rng);
/* Uniform in [0, n), without bias; n >= 1. */
uint64_t weft__rng_below(weft__rng *rng, uint64_t n);
/* Standard normal (Box-Muller; draws two uniforms). The C library's log and cos may differ in the last bit. */
double weft__rng_normal(weft__rng *rng);
/* A seed from the system's entropy. */
uint64_t weft__rng_entropy(void);

#endif
