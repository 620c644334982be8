// SPDX-License-Identifier: Apache-2.0
/* attn_coded.c: attention over coded pages in AVX2; the loops are in simd/attn_coded.h. */
#include "kernels/avx2/vec.h"
#include "quant/blocks.h"

#define TIER(name) name##_avx2
/* 16 registers: 4 x 2 sums, a key's two, a query's word. */
#define TILE_QUERIES 4
#define TILE_VECTORS 2
#define SOFTMAX_QUERIES 2
#define WIDE_VALUES 0

typedef __m256i vi;

/* Bytes as words of 16 bits: those at even places, those at odd ones. */
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

static inline coded_key coded_words(vi bytes)
{
    const vi low = _mm256_set1_epi32(0x00FF00FF);
    return (coded_key){_mm256_and_si256(bytes, low), _mm256_and_si256(_mm256_srli_epi32(bytes, 8), low)};
}

static inline coded_key coded_load(const uint8_t *p)
{
    return coded_words(_mm256_loadu_si256((const __m256i *)p));
}

/* What codes of 4 bits stand for, + 128. */
static inline void coded_load_halves(const uint8_t *p, coded_key *low, coded_key *high)
{
    const vi four = _mm256_set1_epi32(0x0F0F0F0F), all = _mm256_loadu_si256((const __m256i *)p);
    const vi values = _mm256_xor_si256(
        _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)weft__block_iq4_values)), _mm256_set1_epi8(-128));
    *low = coded_words(_mm256_shuffle_epi8(values, _mm256_and_si256(all, four)));
    *high = coded_words(_mm256_shuffle_epi8(values, _mm256_and_si256(_mm256_srli_epi32(all, 4), four)));
}

static inline vi coded_dot(vi sum, const coded_key *k, const int32_t *q)
{
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(k->even, _mm256_set1_epi32(q[0])));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(k->odd, _mm256_set1_epi32(q[1])));
}

static inline void narrow_load(const uint8_t *p, vf values[2])
{
    const __m128i four = _mm_set1_epi32(0x0F0F0F0F), all = _mm_loadl_epi64((const __m128i *)p);
    const __m128i codes = _mm_unpacklo_epi64(_mm_and_si128(all, four), _mm_and_si128(_mm_srli_epi32(all, 4), four));
    const __m128i whole = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)weft__block_iq4_values), codes);
    values[0] = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(whole));
    values[1] = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(whole, 8)));
}

static inline void wide_load(const uint8_t *p, vf *values)
{
    (void)p, (void)values;
}

static inline void wide_order(vf *x)
{
    (void)x;
}

#include "kernels/simd/attn_coded.h"
