// SPDX-License-Identifier: Apache-2.0
/* codes.c: distances of codes, and a choice by counting them (codes.h). */
#include "search/codes.h"

#include "base/alloc.h"
#include "base/cpu.h"

#define DIFFERING(w) (unsigned)__builtin_popcountll(of[w] ^ code[w])

/* Differing bits of n codes; four words at a time, as a loop of one is most of the work. */
#define DISTANCES                                                                                                      \
    for (size_t i = 0; i < n; i++) {                                                                                   \
        const uint64_t *of = codes + i * n_words;                                                                      \
        unsigned sum = 0;                                                                                              \
        size_t w = 0;                                                                                                  \
        for (; w + 4 <= n_words; w += 4) sum += DIFFERING(w) + DIFFERING(w + 1) + DIFFERING(w + 2) + DIFFERING(w + 3); \
        for (; w < n_words; w++) sum += DIFFERING(w);                                                                  \
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

/* How many there are of each distance; four counts each, as neighbours are often as far away as each other. */
static void count_distances(const uint16_t *distance, const unsigned char *is_there, size_t n, uint32_t (*count)[4])
{
    for (size_t i = 0; i < n; i++) count[distance[i]][i % 4] += is_there[i] != 0;
}

static size_t count_of(uint32_t (*count)[4], size_t distance)
{
    const uint32_t *c = count[distance];
    return (size_t)c[0] + c[1] + c[2] + c[3];
}

/* Whether one of PART entries is as near as `bound`: without a branch for each. */
enum { PART = 64 };
static int has_near(const uint16_t *distance, uint16_t bound)
{
    uint16_t any = 0;
    for (size_t i = 0; i < PART; i++) any |= (uint16_t)(distance[i] <= bound);
    return any;
}

int weft__search_codes_nearest(const uint64_t *codes, size_t n_words, size_t n, const uint64_t *code,
                               const unsigned char *is_there, size_t most, uint32_t *out, size_t *n_out)
{
    const size_t n_distances = n_words * 64 + 1;
    uint16_t *distance = weft__alloc_array(n + 1, sizeof *distance);
    uint32_t(*count)[4] = weft__alloc_zero(n_distances, sizeof *count);
    size_t bound = 0, below = 0, kept = 0;
    const int ok = distance && count;
    if (ok) {
        measure_codes(codes, n_words, n, code, distance);
        count_distances(distance, is_there, n, count);
        while (bound + 1 < n_distances && below + count_of(count, bound) < most) below += count_of(count, bound++);
        size_t at_bound = most - below; /* those of this distance that are taken */
        for (size_t i = 0; i < n && kept < most; i++) {
            while (i % PART == 0 && i + PART <= n && !has_near(distance + i, (uint16_t)bound)) i += PART;
            if (i == n || !is_there[i] || distance[i] > bound || (distance[i] == bound && !at_bound)) continue;
            at_bound -= distance[i] == bound;
            out[kept++] = (uint32_t)i;
        }
    }
    weft__free(count);
    weft__free(distance);
    *n_out = kept;
    return ok;
}

int weft__search_codes_rank(const uint64_t *codes, size_t n_words, size_t n, const uint64_t *code,
                            const unsigned char *is_there, const uint32_t *places, size_t n_places, size_t *ranks)
{
    uint16_t *distance = weft__alloc_array(n + 1, sizeof *distance);
    uint32_t(*count)[4] = weft__alloc_zero(n_words * 64 + 1, sizeof *count);
    const int ok = distance && count;
    if (ok) {
        measure_codes(codes, n_words, n, code, distance);
        count_distances(distance, is_there, n, count);
    }
    for (size_t p = 0; ok && p < n_places; p++) {
        const uint16_t own = distance[places[p]];
        ranks[p] = 0;
        for (size_t d = 0; d < own; d++) ranks[p] += count_of(count, d);
        for (size_t i = 0; i < places[p]; i++) ranks[p] += distance[i] == own && is_there[i];
    }
    weft__free(count);
    weft__free(distance);
    return ok;
}
