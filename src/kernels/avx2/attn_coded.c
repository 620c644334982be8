// SPDX-License-Identifier: Apache-2.0
/* attn_coded.c: attention over coded pages in AVX2; the loops are in simd/attn_coded.h. */
#include "kernels/avx2/vec.h"

#define TIER(name) name##_avx2
/* 16 registers: 4 x 2 sums, a key's two, a query's word. */
#define TILE_QUERIES 4
#define TILE_VECTORS 2
#define SOFTMAX_QUERIES 2

typedef __m256i vi;

/* Bytes as words of 16 bits: those at even places, those at odd ones. */
#define CODED_WORDS 2
typedef struct coded_key {
    vi even, odd;
} coded_key;

static inline vi vi_set(int32_t x)
{
    return _mm256_set1_epi32(x);
}

static inline vf vi_to_float(vi a)
{
    return _mm256_cvtepi32_ps(a);
}

static inline coded_key coded_load(const uint8_t *p)
{
    const vi low = _mm256_set1_epi32(0x00FF00FF), all = _mm256_loadu_si256((const __m256i *)p);
    return (coded_key){_mm256_and_si256(all, low), _mm256_and_si256(_mm256_srli_epi32(all, 8), low)};
}

static inline vi coded_dot(vi sum, const coded_key *k, const int32_t *q)
{
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(k->even, _mm256_set1_epi32(q[0])));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(k->odd, _mm256_set1_epi32(q[1])));
}

#include "kernels/simd/coded_pairs.h"

#include "kernels/simd/attn_coded.h"
