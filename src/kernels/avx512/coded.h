// SPDX-License-Identifier: Apache-2.0
/* coded.h: the words of simd/attn_coded.h in AVX-512, but for the products. */
#ifndef WEFT_KERNELS_AVX512_CODED_H
#define WEFT_KERNELS_AVX512_CODED_H

#include "kernels/avx512/vec.h"
#include "quant/blocks.h"

/* 32 registers: 8 x 2 sums, a key's two, queries' words. */
#define TILE_QUERIES 8
#define TILE_VECTORS 2
#define SOFTMAX_QUERIES 4
#define WIDE_VALUES 1

typedef __m512i vi;

/* Bytes as words of 16 bits: those at even places, those at odd ones. */
typedef struct coded_key {
    vi even, odd;
} coded_key;

static inline vi vi_set(int32_t x)
{
    return _mm512_set1_epi32(x);
}

static inline vf vi_to_float(vi a)
{
    return _mm512_cvtepi32_ps(a);
}

static inline coded_key coded_words(vi bytes)
{
    const vi low = _mm512_set1_epi32(0x00FF00FF);
    return (coded_key){_mm512_and_si512(bytes, low), _mm512_and_si512(_mm512_srli_epi32(bytes, 8), low)};
}

static inline coded_key coded_load(const uint8_t *p)
{
    return coded_words(_mm512_loadu_si512(p));
}

/* What codes of 4 bits stand for, + 128. */
static inline void coded_load_halves(const uint8_t *p, coded_key *low, coded_key *high)
{
    const vi four = _mm512_set1_epi32(0x0F0F0F0F), all = _mm512_loadu_si512(p);
    const vi values = _mm512_xor_si512(_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)weft__block_iq4_values)),
                                       _mm512_set1_epi8(-128));
    *low = coded_words(_mm512_shuffle_epi8(values, _mm512_and_si512(all, four)));
    *high = coded_words(_mm512_shuffle_epi8(values, _mm512_and_si512(_mm512_srli_epi32(all, 4), four)));
}

/* As floats; a lane's upper bits do not matter. */
static inline vf values_of_codes(vi codes)
{
    const __m128i values = _mm_loadu_si128((const __m128i *)weft__block_iq4_values);
    return _mm512_permutexvar_ps(codes, _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(values)));
}

static inline void narrow_load(const uint8_t *p, vf values[1])
{
    const __m128i all = _mm_loadl_epi64((const __m128i *)p);
    values[0] = values_of_codes(_mm512_cvtepu8_epi32(_mm_unpacklo_epi64(all, _mm_srli_epi32(all, 4))));
}

/* The lower halves of 16 bytes, then the upper ones: elements 0-7 and 16-23, then the others. */
static inline void wide_load(const uint8_t *p, vf values[2])
{
    const vi all = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));
    values[0] = values_of_codes(all);
    values[1] = values_of_codes(_mm512_srli_epi32(all, 4));
}

static inline void wide_order(vf x[2])
{
    const vf first = _mm512_shuffle_f32x4(x[0], x[1], 0x44);
    x[1] = _mm512_shuffle_f32x4(x[0], x[1], 0xEE);
    x[0] = first;
}

#endif
