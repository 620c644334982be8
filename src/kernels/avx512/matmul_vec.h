// SPDX-License-Identifier: Apache-2.0
/* matmul_vec.h: registers of 64 bytes for the matrix products (simd/matmul_quant.h, where the words are explained),
 * without VNNI. */
#ifndef WEFT_KERNELS_AVX512_MATMUL_VEC_H
#define WEFT_KERNELS_AVX512_MATMUL_VEC_H

#include <string.h>

#include "kernels/avx512/vec.h"
#include "kernels/simd/matmul_layout.h"
#include "kernels/simd/unroll.h"

#ifndef MM_TIER /* of a tier above, which has its own */
#define MM_TIER WEFT__TIER_AVX512
#endif
enum { MM_R = 16, MM_VEC = 4 * MM_R };
typedef __m512i vi;
typedef unsigned short vi_u16 __attribute__((vector_size(64)));

MM_INLINE vi vi_load(const void *p)
{
    return _mm512_loadu_si512(p);
}
MM_INLINE vi vi_load_once(const void *p)
{
    return vi_load(p);
}
MM_INLINE void vi_store(void *p, vi a)
{
    _mm512_storeu_si512(p, a);
}
MM_INLINE vi vi_word(const void *p)
{
    int w;
    __builtin_memcpy(&w, p, sizeof w);
    return _mm512_set1_epi32(w);
}
MM_INLINE vi vi_bytes(int b)
{
    return _mm512_set1_epi8((char)b);
}
MM_INLINE vi vi_and(vi a, vi b)
{
    return _mm512_and_si512(a, b);
}
/* b & ~a */
MM_INLINE vi vi_and_not(vi a, vi b)
{
    return _mm512_andnot_si512(a, b);
}
MM_INLINE vi vi_xor(vi a, vi b)
{
    return _mm512_xor_si512(a, b);
}
/* a | (b & c) */
MM_INLINE vi vi_or_and(vi a, vi b, vi c)
{
    return _mm512_ternarylogic_epi32(a, b, c, 0xF8);
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
    return _mm512_add_epi32(a, b);
}
MM_INLINE vi vi_table(const void *p)
{
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)p));
}
MM_INLINE vi vi_lookup(vi table, vi index)
{
    return _mm512_shuffle_epi8(table, index);
}

/* a, in a register at this point: keeps the compiler from turning a chain of additions into a tree of many live
 * registers. */
MM_INLINE vi vi_keep(vi a)
{
    __asm__("" : SIMD_REGISTER(a));
    return a;
}

MM_INLINE vi mm_add16(vi a, vi b)
{
    return _mm512_add_epi16(a, b);
}
MM_INLINE vi mm_mul_pairs(vi w, vi a)
{
    return _mm512_maddubs_epi16(w, a);
}
MM_INLINE vi mm_sum_pairs(vi a)
{
    return _mm512_madd_epi16(a, _mm512_set1_epi16(1));
}
MM_INLINE vi mm_mul_pairs_signed(vi w, vi a)
{
    vi signed_a = _mm512_mask_sub_epi8(a, _mm512_movepi8_mask(w), _mm512_setzero_si512(), a);
    return _mm512_maddubs_epi16(_mm512_abs_epi8(w), signed_a);
}

MM_INLINE vf vf_from_int(vi a)
{
    return _mm512_cvtepi32_ps(a);
}
MM_INLINE vf vf_word(const void *p)
{
    float x;
    __builtin_memcpy(&x, p, sizeof x);
    return _mm512_set1_ps(x);
}
MM_INLINE vf vf_load_u8(const uint8_t *p)
{
    return vf_from_int(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p)));
}
MM_INLINE vf vf_load_s8(const uint8_t *p)
{
    return vf_from_int(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)));
}
MM_INLINE vf vf_load_u4_low(const uint8_t *p)
{
    return vf_from_int(
        _mm512_and_si512(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p)), _mm512_set1_epi32(15)));
}
MM_INLINE vf vf_load_u4_high(const uint8_t *p)
{
    return vf_from_int(_mm512_srli_epi32(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p)), 4));
}
/* The scales of a panel of an adapter's B (expand_layout.h), from output r = 0 on. */
MM_INLINE vf vf_load_eighths(const uint8_t *panel, int r)
{
    const __m512 eighths = _mm512_setr_ps(0.125f, 0.25f, 0.375f, 0.5f, 0.625f, 0.75f, 0.875f, 1, -0.125f, -0.25f,
                                          -0.375f, -0.5f, -0.625f, -0.75f, -0.875f, -1);
    __m128i bytes = _mm_loadl_epi64((const __m128i *)(panel + 2));
    __m512i nibbles =
        _mm512_cvtepu8_epi32(_mm_unpacklo_epi64(bytes, _mm_srli_epi16(bytes, 4))); /* only four bits count */
    uint16_t most;
    memcpy(&most, panel, sizeof most);
    (void)r;
    return _mm512_mul_ps(_mm512_permutexvar_ps(nibbles, eighths),
                         _mm512_castsi512_ps(_mm512_set1_epi32((int32_t)((uint32_t)most << 16))));
}

#endif
