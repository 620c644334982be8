// SPDX-License-Identifier: Apache-2.0
/* random_adapter.h: the values of an adapter that nobody trained, for bench/adapters.c and bench/adapter_load.c. One
 * thread. */
#ifndef WEFT_BENCH_RANDOM_ADAPTER_H
#define WEFT_BENCH_RANDOM_ADAPTER_H

#include <math.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/random.h"

/* A [rank, k], then B [n, rank]: normal, A with deviation 1 / sqrt(k), B with 0.02. The seed decides. weft__free; NULL
 * without memory. */
static inline float *random_adapter(int64_t k, int64_t n, int64_t rank, uint64_t seed)
{
    float *x = weft__alloc_array((size_t)((k + n) * rank), sizeof *x);
    weft__rng rng;
    weft__rng_seed(&rng, seed);
    for (int64_t j = 0; x && j < (k + n) * rank; j++)
        x[j] = (float)(weft__rng_normal(&rng) * (j < k * rank ? 1 / sqrt((double)k) : 0.02));
    return x;
}

#endif
