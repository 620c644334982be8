// SPDX-License-Identifier: Apache-2.0
/* vec.h: vectors of 16 floats in AVX-512, for the templates in simd/ (words: simd/vecmath.h). */
#ifndef WEFT_KERNELS_AVX512_VEC_H
#define WEFT_KERNELS_AVX512_VEC_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define VF_N 16
typedef __m512 vf;
typedef __mmask16 vm;

static inline vf vf_load(const float *p)
{
    return _mm512_loadu_ps(p);
}

static inline void vf_store(float *p, vf a)
{
    _mm512_storeu_ps(p, a);
}

static inline vm vm_first(int n)
{
    return (vm)((1u << n) - 1);
}

static inline vf vf_load_part(const float *p, int n)
{
    return _mm512_maskz_loadu_ps(vm_first(n), p);
}

static inline void vf_store_part(float *p, vf a, int n)
{
    _mm512_mask_storeu_ps(p, vm_first(n), a);
}

static inline vf vf_load_f16(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}

static inline vf vf_load_f16_part(const uint16_t *p, int n)
{
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(vm_first(n), p));
}

static inline void vf_store_f16_part(uint16_t *p, vf a, int n)
{
    _mm256_mask_storeu_epi16(p, vm_first(n), _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

static inline vf vf_load_bf16(const uint16_t *p)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)), 16));
}

static inline vf vf_load_bf16_part(const uint16_t *p, int n)
{
    uint16_t part[VF_N] = {0};
    memcpy(part, p, (size_t)n * sizeof *p);
    return vf_load_bf16(part);
}

/* E4M3, 256 times too small: by way of F16, whose exponent has another zero. A NaN is a number here. */
static inline vf vf_load_f8(const uint8_t *p)
{
    const __m256i words = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)p));
    return _mm512_cvtph_ps(_mm256_and_si256(_mm256_slli_epi16(words, 7), _mm256_set1_epi16((int16_t)0xBF80)));
}

static inline vf vf_load_f8_part(const uint8_t *p, int n)
{
    uint8_t part[VF_N] = {0};
    memcpy(part, p, (size_t)n);
    return vf_load_f8(part);
}

static inline vf vf_load_i8(const int8_t *p)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)));
}

static inline vf vf_load_i8_part(const int8_t *p, int n)
{
    int8_t part[VF_N] = {0};
    memcpy(part, p, (size_t)n);
    return vf_load_i8(part);
}

/* To the nearest whole numbers, ties to even; within [-128, 127]. */
static inline void vf_store_i8(int8_t *p, vf a)
{
    const __m512 whole = _mm512_castsi512_ps(_mm512_cvtps_epi32(a));
    const __m256i words = _mm256_packs_epi32(_mm256_castps_si256(_mm512_castps512_ps256(whole)),
                                             _mm256_castps_si256(_mm512_extractf32x8_ps(whole, 1)));
    const __m256i order = _mm256_permute4x64_epi64(words, 0xD8); /* of halves that were packed each by itself */
    _mm_storeu_si128((__m128i *)p, _mm_packs_epi16(_mm256_castsi256_si128(order), _mm256_extracti128_si256(order, 1)));
}

/* The same, within [-32768, 32767]. */
static inline void vf_store_i16(int16_t *p, vf a)
{
    const __m512 whole = _mm512_castsi512_ps(_mm512_cvtps_epi32(a));
    const __m256i words = _mm256_packs_epi32(_mm256_castps_si256(_mm512_castps512_ps256(whole)),
                                             _mm256_castps_si256(_mm512_extractf32x8_ps(whole, 1)));
    _mm256_storeu_si256((__m256i *)p, _mm256_permute4x64_epi64(words, 0xD8)); /* halves were packed each by itself */
}

static inline vf vf_set(float x)
{
    return _mm512_set1_ps(x);
}

static inline vf vf_zero(void)
{
    return _mm512_setzero_ps();
}

static inline vf vf_add(vf a, vf b)
{
    return _mm512_add_ps(a, b);
}

static inline vf vf_sub(vf a, vf b)
{
    return _mm512_sub_ps(a, b);
}

static inline vf vf_mul(vf a, vf b)
{
    return _mm512_mul_ps(a, b);
}

static inline vf vf_div(vf a, vf b)
{
    return _mm512_div_ps(a, b);
}

static inline vf vf_fma(vf a, vf b, vf c)
{
    return _mm512_fmadd_ps(a, b, c);
}

static inline vf vf_fnma(vf a, vf b, vf c)
{
    return _mm512_fnmadd_ps(a, b, c);
}

static inline vf vf_max(vf a, vf b)
{
    return _mm512_max_ps(a, b);
}

static inline vf vf_min(vf a, vf b)
{
    return _mm512_min_ps(a, b);
}

static inline vf vf_abs(vf a)
{
    return _mm512_abs_ps(a);
}

static inline vf vf_copysign(vf a, vf sign)
{
    return _mm512_or_ps(_mm512_abs_ps(a), _mm512_and_ps(sign, _mm512_set1_ps(-0.0f)));
}

static inline vf vf_round(vf a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static inline vf vf_ldexp(vf a, vf n)
{
    return _mm512_scalef_ps(a, n);
}

static inline vm vf_less(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}

static inline vm vf_equal(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ);
}

static inline vf vf_select(vm m, vf a, vf b)
{
    return _mm512_mask_blend_ps(m, b, a);
}

static inline uint32_t vm_bits(vm m)
{
    return m;
}
/* Lanes from..to-1; 0 <= from <= to <= VF_N. */
static inline vm vm_range(int from, int to)
{
    return (vm)(((1u << to) - 1) & ~((1u << from) - 1));
}

static inline float vf_sum(vf a)
{
    return _mm512_reduce_add_ps(a);
}

static inline float vf_most(vf a)
{
    return _mm512_reduce_max_ps(a);
}

static inline vf vf_even_twice(vf a)
{
    return _mm512_moveldup_ps(a);
}

static inline vf vf_odd_twice(vf a)
{
    return _mm512_movehdup_ps(a);
}

static inline vf vf_swap_pairs(vf a)
{
    return _mm512_permute_ps(a, 0xB1);
}

/* Lanes and those 2, 4, 8 away. */
static inline vf vf_swap_fours(vf a)
{
    return _mm512_permute_ps(a, 0x4E);
}

static inline vf vf_swap_eights(vf a)
{
    return _mm512_shuffle_f32x4(a, a, 0xB1);
}

static inline vf vf_swap_halves(vf a)
{
    return _mm512_shuffle_f32x4(a, a, 0x4E);
}

static inline vf vf_fmaddsub(vf a, vf b, vf c)
{
    return _mm512_fmaddsub_ps(a, b, c);
}

static inline void vf_split_pairs(vf a, vf b, vf *even, vf *odd)
{
    const __m512i e = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    *even = _mm512_permutex2var_ps(a, e, b);
    *odd = _mm512_permutex2var_ps(a, _mm512_add_epi32(e, _mm512_set1_epi32(1)), b);
}

/* A sum of squares in double: 8 lanes, two accumulators. */
typedef struct vd2 {
    __m512d low, high;
} vd2;

static inline vd2 vd2_zero(void)
{
    return (vd2){_mm512_setzero_pd(), _mm512_setzero_pd()};
}

static inline vd2 vd2_add_squares(vd2 s, vf x)
{
    __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(x)), high = _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
    return (vd2){_mm512_fmadd_pd(low, low, s.low), _mm512_fmadd_pd(high, high, s.high)};
}

static inline double vd2_sum(vd2 s)
{
    return _mm512_reduce_add_pd(_mm512_add_pd(s.low, s.high));
}
/* x * factor * w with the products in double, rounded once. */
static inline vf vf_mul_double(vf x, double factor, vf w)
{
    __m512d f = _mm512_set1_pd(factor);
    __m512d low = _mm512_mul_pd(_mm512_cvtps_pd(_mm512_castps512_ps256(x)), f);
    __m512d high = _mm512_mul_pd(_mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1)), f);
    low = _mm512_mul_pd(low, _mm512_cvtps_pd(_mm512_castps512_ps256(w)));
    high = _mm512_mul_pd(high, _mm512_cvtps_pd(_mm512_extractf32x8_ps(w, 1)));
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(low)), _mm512_cvtpd_ps(high), 1);
}

#endif
