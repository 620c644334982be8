// SPDX-License-Identifier: Apache-2.0
/* matmul_vec.h: registers of 32 bytes for the matrix products (simd/matmul_quant.h, where the words are explained). */
#ifndef WEFT_KERNELS_AVX2_MATMUL_VEC_H
#define WEFT_KERNELS_AVX2_MATMUL_VEC_H

#include <string.h>

#include "kernels/avx2/vec.h"
#include "kernels/simd/matmul_layout.h"

#define MM_TIER WEFT__TIER_AVX2
enum { MM_R = 8, MM_VEC = 4 * MM_R };
typedef __m256i vi;
typedef unsigned short vi_u16 __attribute__((vector_size(32)));

MM_INLINE vi vi_load(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}
/* What is used twice is not loaded twice: the compiler would. (The address sanitizer sees no loads of ours.) */
MM_INLINE vi vi_load_once(const void *p)
{
#ifdef __SANITIZE_ADDRESS__
    return vi_load(p);
#else
    vi a;
    __asm__("vmovdqu %1, %0" : "=x"(a) : "m"(*(const __m256i_u *)p));
    return a;
#endif
}
MM_INLINE void vi_store(void *p, vi a)
{
    _mm256_storeu_si256((__m256i *)p, a);
}
MM_INLINE vi vi_word(const void *p)
{
    int w;
    __builtin_memcpy(&w, p, sizeof w);
    return _mm256_set1_epi32(w);
}
MM_INLINE vi vi_bytes(int b)
{
    return _mm256_set1_epi8((char)b);
}
MM_INLINE vi vi_and(vi a, vi b)
{
    return _mm256_and_si256(a, b);
}
/* b & ~a */
MM_INLINE vi vi_and_not(vi a, vi b)
{
    return _mm256_andnot_si256(a, b);
}
MM_INLINE vi vi_xor(vi a, vi b)
{
    return _mm256_xor_si256(a, b);
}
/* a | (b & c) */
MM_INLINE vi vi_or_and(vi a, vi b, vi c)
{
    return _mm256_or_si256(a, _mm256_and_si256(b, c));
}
MM_INLINE vi vi_left(vi a, int n)
{
    return (vi)((vi_u16)a << n);
}
MM_INLINE vi vi_right(vi a, int n)
{
    return (vi)((vi_u16)a >> n);
}
MM_INLINE vi vi_add32(vi a, vi b)
{
    return _mm256_add_epi32(a, b);
}
MM_INLINE vi vi_table(const void *p)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)p));
}
MM_INLINE vi vi_lookup(vi table, vi index)
{
    return _mm256_shuffle_epi8(table, index);
}

/* a, in a register at this point: keeps the compiler from turning a chain of additions into a tree of many live
 * registers. */
MM_INLINE vi vi_keep(vi a)
{
    __asm__("" : "+x"(a));
    return a;
}

MM_INLINE vi mm_add16(vi a, vi b)
{
    return _mm256_add_epi16(a, b);
}
MM_INLINE vi mm_mul_pairs(vi w, vi a)
{
    return _mm256_maddubs_epi16(w, a);
}
MM_INLINE vi mm_sum_pairs(vi a)
{
    return _mm256_madd_epi16(a, _mm256_set1_epi16(1));
}
MM_INLINE vi mm_mul_pairs_signed(vi w, vi a)
{
    return _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(a, w));
}

MM_INLINE vf vf_from_int(vi a)
{
    return _mm256_cvtepi32_ps(a);
}
MM_INLINE vf vf_word(const void *p)
{
    float x;
    __builtin_memcpy(&x, p, sizeof x);
    return _mm256_set1_ps(x);
}
MM_INLINE vf vf_load_u8(const uint8_t *p)
{
    return vf_from_int(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)));
}
MM_INLINE vf vf_load_s8(const uint8_t *p)
{
    return vf_from_int(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)));
}
MM_INLINE vf vf_load_u4_low(const uint8_t *p)
{
    return vf_from_int(
        _mm256_and_si256(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)), _mm256_set1_epi32(15)));
}
MM_INLINE vf vf_load_u4_high(const uint8_t *p)
{
    return vf_from_int(_mm256_srli_epi32(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)), 4));
}
/* Eight scales of a panel of an adapter's B (expand_layout.h), from output r, 0 or 8, on. */
MM_INLINE vf vf_load_eighths(const uint8_t *panel, int r)
{
    const __m256 eighths = _mm256_setr_ps(0.125f, 0.25f, 0.375f, 0.5f, 0.625f, 0.75f, 0.875f, 1);
    __m256i nibbles = _mm256_srli_epi32(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(panel + 2))), r ? 4 : 0);
    __m256i sign = _mm256_slli_epi32(_mm256_and_si256(nibbles, _mm256_set1_epi32(8)), 28);
    uint16_t most;
    memcpy(&most, panel, sizeof most);
    return _mm256_mul_ps(_mm256_xor_ps(_mm256_permutevar8x32_ps(eighths, nibbles), _mm256_castsi256_ps(sign)),
                         _mm256_castsi256_ps(_mm256_set1_epi32((int32_t)((uint32_t)most << 16))));
}

#endif
