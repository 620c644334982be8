// SPDX-License-Identifier: Apache-2.0
/* python_random.h: the numbers of Python's random.Random(seed): lm-evaluation-harness draws its few-shot examples by
 * them, and who is to give the same scores has to draw the same. (MT19937: Matsumoto and Nishimura 1998.) One thread
 * per object. */
#ifndef WEFT_EVAL_PYTHON_RANDOM_H
#define WEFT_EVAL_PYTHON_RANDOM_H

#include <stddef.h>
#include <stdint.h>

#include "weft/error.h"

typedef struct weft__eval_random {
    uint32_t state[624];
    int at;
} weft__eval_random;

/* random.seed(seed), of a whole number. */
void weft__eval_random_seed(weft__eval_random *r, uint64_t seed);
/* random.getrandbits(32) */
uint32_t weft__eval_random_u32(weft__eval_random *r);
/* random.sample(range(n), k): k different numbers below n into out, 0 <= k <= n. WEFT_NO_MEMORY. */
weft_status weft__eval_random_sample(weft__eval_random *r, size_t n, size_t k, size_t *out, weft_error *err);

#endif
