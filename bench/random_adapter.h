// SPDX-License-Identifier: Apache-2.0
/* random_adapter.h: adapters that nobody trained, for the benchmarks of adapters. One thread. */
#ifndef WEFT_BENCH_RANDOM_ADAPTER_H
#define WEFT_BENCH_RANDOM_ADAPTER_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapt/adapt.h"
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

static inline int random_adapter_by_name(const void *x, const void *y)
{
    return strcmp(((const weft__adapt_pair *)x)->name, ((const weft__adapt_pair *)y)->name);
}

/* A GGUF file of that rank and type on all linears of the base but the head. All have the same values, as many of them
 * as they need. */
static inline weft_status random_adapter_write(const weft__adapt_base *base, int32_t rank, uint32_t dtype,
                                               uint64_t seed, const char *path, weft_error *err)
{
    weft__adapt a = {.label = (char *)path, .pairs = weft__alloc_zero((size_t)base->n, sizeof *a.pairs)};
    int64_t most = 1;
    for (int32_t i = 0; a.pairs && i < base->n; i++) {
        const weft__adapt_target *t = &base->targets[i];
        if (strncmp(t->name, "blk.", 4)) continue;
        weft__adapt_pair *p = &a.pairs[a.n_pairs++];
        *p = (weft__adapt_pair){.k = t->k,
                                .n = t->n_total,
                                .n_experts = t->n_experts,
                                .rank = rank,
                                .scale = 1,
                                .a_dtype = dtype,
                                .b_dtype = dtype};
        snprintf(p->name, sizeof p->name, "%s", t->name);
        most = t->k > most ? t->k : most;
        most = t->n_total > most ? t->n_total : most;
    }
    float *values = a.pairs ? random_adapter(most, most, rank, seed) : NULL;
    for (int32_t i = 0; values && i < a.n_pairs; i++) {
        a.pairs[i].a = values;
        a.pairs[i].b = values + most * rank;
    }
    if (values) qsort(a.pairs, (size_t)a.n_pairs, sizeof *a.pairs, random_adapter_by_name);
    weft_status st = values ? weft__adapt_write_gguf(&a, base->arch, path, err)
                            : weft_fail(err, WEFT_NO_MEMORY, "no memory for an adapter");
    weft__free(values);
    weft__free(a.pairs);
    return st;
}

#endif
