// SPDX-License-Identifier: Apache-2.0
/* registry.c: which kernel serves which tiers (kernels.h). Everything here is expanded from kernels.def.
 * State: the tables of all sets of tiers, written once and read-only afterwards. */
#include "kernels/list.h"

#include <pthread.h>

#include "kernels/tune.h"

#define N_SETS (1u << WEFT__TIER_COUNT)

static const weft__kernel_entry entries[] = {
#define KERNEL_MATMUL(format, tile, tier, symbol, tolerance)                                                           \
    {"matmul", #format, tile, WEFT__TIER_##tier, #symbol, tolerance, &symbol, NULL, NULL},
#define KERNEL_GEMM(format, tile, tier, symbol, tolerance)                                                             \
    {"gemm", #format, tile, WEFT__TIER_##tier, #symbol, tolerance, NULL, &symbol, NULL},
#define KERNEL_EXPAND(format, tile, tier, symbol, tolerance)                                                           \
    {"expand", #format, tile, WEFT__TIER_##tier, #symbol, tolerance, NULL, NULL, &symbol},
#define KERNEL_ROW(slot, format, tile, tier, function, tolerance)                                                      \
    {#slot, format, tile, WEFT__TIER_##tier, #function, tolerance, NULL, NULL, NULL},
#include "kernels/kernels.def"
};

const weft__kernel_entry *weft__kernel_list(int *n)
{
    (void)weft__kernel_tune_init(&(weft_error){0}); /* entries may be run */
    *n = (int)(sizeof entries / sizeof entries[0]);
    return entries;
}

/* The ref tier always may run. */
static int allowed(uint32_t tiers, weft__tier tier)
{
    return tier == WEFT__TIER_REF || (tiers >> tier & 1);
}

const weft__matmul *weft__matmul_find(uint32_t dtype, uint32_t tiers)
{
    const weft__matmul *best = NULL;
    (void)weft__kernel_tune_init(&(weft_error){0}); /* a provider refuses a wrong name before */
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        const weft__matmul *m = entries[i].matmul;
        if (!m || m->dtype != dtype || !allowed(tiers, m->tier)) continue;
        if (!best || m->tier > best->tier) best = m;
    }
    return best;
}

const weft__gemm *weft__gemm_find(uint32_t dtype, uint32_t tiers)
{
    const weft__gemm *best = NULL;
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        const weft__gemm *g = entries[i].gemm;
        if (!g || g->dtype != dtype || !allowed(tiers, g->tier)) continue;
        if (!best || g->tier > best->tier) best = g;
    }
    return best;
}

const weft__expand *weft__expand_find(uint32_t dtype, uint32_t tiers)
{
    const weft__expand *best = NULL;
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        const weft__expand *e = entries[i].expand;
        if (!e || e->dtype != dtype || !allowed(tiers, e->tier)) continue;
        if (!best || e->tier > best->tier) best = e;
    }
    return best;
}

size_t weft__attn_scratch(int n_q, int page_tokens, int head_dim_k, int head_dim_v)
{
    (void)n_q, (void)page_tokens, (void)head_dim_v;
    return WEFT__ATTN_GROUP * ((size_t)WEFT__ATTN_SCORES + ((size_t)head_dim_k + 15) / 16 * 16);
}

static void registry_fill(weft__kernels *k, uint32_t tiers)
{
#define KERNEL_ROW(slot, format, tile, t, function, tolerance)                                                         \
    if (allowed(tiers, WEFT__TIER_##t)) {                                                                              \
        k->slot = function;                                                                                            \
        if (WEFT__TIER_##t > k->tier) k->tier = WEFT__TIER_##t;                                                        \
    }
#include "kernels/kernels.def"
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static weft__kernels tables[N_SETS];

static void fill_all(void)
{
    for (uint32_t tiers = 0; tiers < N_SETS; tiers++) registry_fill(&tables[tiers], tiers);
}

const weft__kernels *weft__kernels_get(uint32_t tiers)
{
    pthread_once(&once, fill_all);
    return &tables[tiers & (N_SETS - 1)];
}

void weft__peak_kernels_get(uint32_t tiers, weft__peak_kernels *out)
{
    *out = (weft__peak_kernels){0};
#define KERNEL_PEAK(slot, tier, function)                                                                              \
    if (allowed(tiers, WEFT__TIER_##tier)) out->slot = function;
#include "kernels/kernels.def"
}
