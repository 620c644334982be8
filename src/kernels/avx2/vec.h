// SPDX-License-Identifier: Apache-2.0
/* vec.h: vectors of 8 floats in AVX2 with FMA and F16C, for the templates in simd/ (words: simd/vecmath.h). */
#ifndef WEFT_KERNELS_AVX2_VEC_H
#define WEFT_KERNELS_AVX2_VEC_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define VF_N 8
typedef __m256 vf;
typedef __m256 vm; /* all bits of a lane set, or none */

static inline __m256i vm_first_int(int n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

static inline vf vf_load(const float *p)
{
    return _mm256_loadu_ps(p);
}

static inline void vf_store(float *p, vf a)
{
    _mm256_storeu_ps(p, a);
}

static inline vf vf_load_part(const float *p, int n)
{
    return _mm256_maskload_ps(p, vm_first_int(n));
}

static inline void vf_store_part(float *p, vf a, int n)
{
    _mm256_maskstore_ps(p, vm_first_int(n), a);
}

static inline vf vf_load_f16(const uint16_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}

static inline vf vf_load_f16_part(const uint16_t *p, int n)
{
    uint16_t part[VF_N] = {0};
    memcpy(part, p, (size_t)n * sizeof *p);
    return vf_load_f16(part);
}

static inline void vf_store_f16_part(uint16_t *p, vf a, int n)
{
    uint16_t part[VF_N];
    _mm_storeu_si128((__m128i *)part, _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    memcpy(p, part, (size_t)n * sizeof *p);
}

static inline vf vf_load_bf16(const uint16_t *p)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)), 16));
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
    const __m128i words = _mm_cvtepi8_epi16(_mm_loadl_epi64((const __m128i *)p));
    return _mm256_cvtph_ps(_mm_and_si128(_mm_slli_epi16(words, 7), _mm_set1_epi16((int16_t)0xBF80)));
}

static inline vf vf_load_f8_part(const uint8_t *p, int n)
{
    uint8_t part[VF_N] = {0};
    memcpy(part, p, (size_t)n);
    return vf_load_f8(part);
}

static inline vf vf_load_i8(const int8_t *p)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)));
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
    const __m256i whole = _mm256_cvtps_epi32(a);
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
    _mm_storel_epi64((__m128i *)p, _mm_packs_epi16(words, words));
}

/* The same, within [-32768, 32767]. */
static inline void vf_store_i16(int16_t *p, vf a)
{
    const __m256i whole = _mm256_cvtps_epi32(a);
    _mm_storeu_si128((__m128i *)p, _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1)));
}

static inline vf vf_set(float x)
{
    return _mm256_set1_ps(x);
}

static inline vf vf_zero(void)
{
    return _mm256_setzero_ps();
}

static inline vf vf_add(vf a, vf b)
{
    return _mm256_add_ps(a, b);
}

static inline vf vf_sub(vf a, vf b)
{
    return _mm256_sub_ps(a, b);
}

static inline vf vf_mul(vf a, vf b)
{
    return _mm256_mul_ps(a, b);
}

static inline vf vf_div(vf a, vf b)
{
    return _mm256_div_ps(a, b);
}

static inline vf vf_fma(vf a, vf b, vf c)
{
    return _mm256_fmadd_ps(a, b, c);
}

static inline vf vf_fnma(vf a, vf b, vf c)
{
    return _mm256_fnmadd_ps(a, b, c);
}

static inline vf vf_max(vf a, vf b)
{
    return _mm256_max_ps(a, b);
}

static inline vf vf_min(vf a, vf b)
{
    return _mm256_min_ps(a, b);
}

static inline vf vf_abs(vf a)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a);
}

static inline vf vf_copysign(vf a, vf sign)
{
    return _mm256_or_ps(vf_abs(a), _mm256_and_ps(sign, _mm256_set1_ps(-0.0f)));
}

static inline vf vf_round(vf a)
{
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
/* In two steps, because 2^n itself may be out of range where a * 2^n is not; -252 <= n <= 254. */
static inline vf vf_ldexp(vf a, vf n)
{
    __m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1), rest = _mm256_sub_epi32(whole, half);
    __m256i bias = _mm256_set1_epi32(127);
    vf x = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23));
    vf y = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23));
    return _mm256_mul_ps(_mm256_mul_ps(a, x), y);
}

static inline vm vf_less(vf a, vf b)
{
    return _mm256_cmp_ps(a, b, _CMP_LT_OQ);
}

static inline vm vf_equal(vf a, vf b)
{
    return _mm256_cmp_ps(a, b, _CMP_EQ_OQ);
}

static inline vf vf_select(vm m, vf a, vf b)
{
    return _mm256_blendv_ps(b, a, m);
}

static inline uint32_t vm_bits(vm m)
{
    return (uint32_t)_mm256_movemask_ps(m);
}
/* Lanes from..to-1; 0 <= from <= to <= VF_N. */
static inline vm vm_range(int from, int to)
{
    return _mm256_castsi256_ps(_mm256_andnot_si256(vm_first_int(from), vm_first_int(to)));
}

static inline float vf_sum(vf a)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

static inline float vf_most(vf a)
{
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}

static inline vf vf_even_twice(vf a)
{
    return _mm256_moveldup_ps(a);
}

static inline vf vf_odd_twice(vf a)
{
    return _mm256_movehdup_ps(a);
}

static inline vf vf_swap_pairs(vf a)
{
    return _mm256_permute_ps(a, 0xB1);
}

/* Lanes and those 2, 4 away. */
static inline vf vf_swap_fours(vf a)
{
    return _mm256_permute_ps(a, 0x4E);
}

static inline vf vf_swap_eights(vf a)
{
    return _mm256_permute2f128_ps(a, a, 0x01);
}

static inline vf vf_fmaddsub(vf a, vf b, vf c)
{
    return _mm256_fmaddsub_ps(a, b, c);
}

static inline void vf_split_pairs(vf a, vf b, vf *even, vf *odd)
{
    vf low = _mm256_permute2f128_ps(a, b, 0x20), high = _mm256_permute2f128_ps(a, b, 0x31); /* a0-3 b0-3; a4-7 b4-7 */
    *even = _mm256_shuffle_ps(low, high, 0x88); /* a0 a2 a4 a6 b0 b2 b4 b6 */
    *odd = _mm256_shuffle_ps(low, high, 0xDD);
}

/* A sum of squares in double: 4 lanes, two accumulators. */
typedef struct vd2 {
    __m256d low, high;
} vd2;

static inline vd2 vd2_zero(void)
{
    return (vd2){_mm256_setzero_pd(), _mm256_setzero_pd()};
}

static inline vd2 vd2_add_squares(vd2 s, vf x)
{
    __m256d low = _mm256_cvtps_pd(_mm256_castps256_ps128(x)), high = _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
    return (vd2){_mm256_fmadd_pd(low, low, s.low), _mm256_fmadd_pd(high, high, s.high)};
}

static inline double vd2_sum(vd2 s)
{
    __m256d t = _mm256_add_pd(s.low, s.high);
    __m128d u = _mm_add_pd(_mm256_castpd256_pd128(t), _mm256_extractf128_pd(t, 1));
    return _mm_cvtsd_f64(_mm_add_sd(u, _mm_unpackhi_pd(u, u)));
}
/* x * factor * w with the products in double, rounded once. */
static inline vf vf_mul_double(vf x, double factor, vf w)
{
    __m256d f = _mm256_set1_pd(factor);
    __m256d low = _mm256_mul_pd(_mm256_cvtps_pd(_mm256_castps256_ps128(x)), f);
    __m256d high = _mm256_mul_pd(_mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)), f);
    low = _mm256_mul_pd(low, _mm256_cvtps_pd(_mm256_castps256_ps128(w)));
    high = _mm256_mul_pd(high, _mm256_cvtps_pd(_mm256_extractf128_ps(w, 1)));
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(low)), _mm256_cvtpd_ps(high), 1);
}

#endif
