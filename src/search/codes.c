// SPDX-License-Identifier: Apache-2.0
/* codes.c: distances of codes, and a choice by counting them (codes.h). */
#include "search/codes.h"

#include "base/alloc.h"
#include "base/cpu.h"

/* Differing bits of n codes. */
#define DISTANCES                                                                                                      \
    for (size_t i = 0; i < n; i++) {                                                                                   \
        unsigned sum = 0;                                                                                              \
        for (size_t w = 0; w < n_words; w++) sum += (unsigned)__builtin_popcountll(codes[i * n_words + w] ^ code[w]);  \
        out[i] = (uint16_t)sum;                                                                                        \
    }

static void distances(const uint64_t *codes, size_t n_words, size_t n, const uint64_t *code, uint16_t *out)
{
    DISTANCES
}

/* The same with the instruction that all processors with AVX2 have, and those of the baseline have not: a function of
 * its own, which nothing is inlined into and which calls nothing. */
#if defined(__x86_64__)
__attribute__((target("popcnt"), noinline)) static void distances_popcnt(const uint64_t *codes, size_t n_words,
                                                                         size_t n, const uint64_t *code, uint16_t *out)
{
    DISTANCES
}
#endif

static void measure_codes(const uint64_t *codes, size_t n_words, size_t n, const uint64_t *code, uint16_t *out)
{
#if defined(__x86_64__)
    if (weft__tier_mask() >> WEFT__TIER_AVX2 & 1) {
        distances_popcnt(codes, n_words, n, code, out);
        return;
    }
#endif
    distances(codes, n_words, n, code, out);
}

int weft__search_codes_nearest(const uint64_t *codes, size_t n_words, size_t n, const uint64_t *code,
                               const unsigned char *is_there, size_t most, uint32_t *out, size_t *n_out)
{
    const size_t n_distances = n_words * 64 + 1;
    uint16_t *distance = weft__alloc_array(n + 1, sizeof *distance);
    size_t *count = weft__alloc_zero(n_distances, sizeof *count), bound = 0, below = 0, kept = 0;
    const int ok = distance && count;
    if (ok) {
        measure_codes(codes, n_words, n, code, distance);
        for (size_t i = 0; i < n; i++) count[distance[i]] += is_there[i] != 0;
        while (bound + 1 < n_distances && below + count[bound] < most) below += count[bound++];
        size_t at_bound = most - below; /* those of this distance that are taken */
        for (size_t i = 0; i < n && kept < most; i++) {
            if (!is_there[i] || distance[i] > bound || (distance[i] == bound && !at_bound)) continue;
            at_bound -= distance[i] == bound;
            out[kept++] = (uint32_t)i;
        }
    }
    weft__free(count);
    weft__free(distance);
    *n_out = kept;
    return ok;
}
