// SPDX-License-Identifier: Apache-2.0
/* matmul_vec.h: AVX-512 with VPDPBUSD for the matrix products (simd/matmul_quant.h). */
#ifndef WEFT_KERNELS_AVX512VNNI_MATMUL_VEC_H
#define WEFT_KERNELS_AVX512VNNI_MATMUL_VEC_H

#ifdef WEFT_KERNELS_SIMD_MATMUL_LAYOUT_H
#error "the layout depends on MM_DOT32"
#endif
#define MM_DOT32 1
#define MM_TIER WEFT__TIER_AVX512VNNI
#include "kernels/avx512/matmul_vec.h"

typedef int mm_word32 __attribute__((may_alias));

/* acc + four products of unsigned w and signed a; a is one word of memory, used by the instruction itself: the compiler
 * would spend an instruction and a register on it. (tests/emulated compiles this without the instruction.) */
MM_INLINE vi mm_dot_word(vi acc, vi w, const void *a)
{
#ifdef __AVX512VNNI__
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(acc) : "v"(w), "m"(*(const mm_word32 *)a));
    return acc;
#else
    return _mm512_dpbusd_epi32(acc, w, vi_word(a));
#endif
}

/* The same of four codes in a register. */
MM_INLINE vi mm_dot_reg(vi acc, vi w, vi a)
{
    return _mm512_dpbusd_epi32(acc, w, a);
}

/* Of every row's byte two words of 16 bits. */
MM_INLINE vi vi_twice_s8(const uint8_t *p)
{
    const vi x = _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p));
    return _mm512_mask_blend_epi16(0xAAAAAAAA, x, _mm512_slli_epi32(x, 16));
}
MM_INLINE vi vi_twice_u4_low(const uint8_t *p)
{
    const vi x = _mm512_and_si512(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p)), _mm512_set1_epi32(15));
    return _mm512_or_si512(x, _mm512_slli_epi32(x, 16));
}

/* The lowest eight bits of every byte of a times b, a factor for two bytes each. */
MM_INLINE vi vi_mul_bytes(vi a, vi b)
{
    const vi low = _mm512_set1_epi16(0xFF);
    const vi even = _mm512_mullo_epi16(_mm512_and_si512(a, low), b),
             odd = _mm512_mullo_epi16(_mm512_andnot_si512(low, a), b);
    return _mm512_ternarylogic_epi32(low, even, odd, 0xCA); /* low ? even : odd */
}
MM_INLINE vi vi_sub8(vi a, vi b)
{
    return _mm512_sub_epi8(a, b);
}

/* Lanes. */
typedef __mmask16 vf_mask;
#define VF_ALL 0xFFFF

/* Those whose bits are not zero. */
MM_INLINE vf_mask vf_some(vf x)
{
    return _mm512_test_epi32_mask(_mm512_castps_si512(x), _mm512_castps_si512(x));
}

/* x times plus or minus a power of two, in lanes where both and the result are normal numbers; zero but in `some`;
 * word: mm_powers. */
MM_INLINE vf vf_times_power(vf x, vf_mask some, const void *word)
{
    return _mm512_castsi512_ps(_mm512_maskz_add_epi32(some, _mm512_castps_si512(x), vi_word(word)));
}

/* Which lanes are not zero and have a magnitude below `least` or above `most`, or are no numbers. */
MM_INLINE unsigned vf_beyond(vf x, float least, float most)
{
    const vf size = _mm512_abs_ps(x);
    return (_mm512_cmp_ps_mask(size, vf_set(least), _CMP_NGE_UQ) |
            _mm512_cmp_ps_mask(size, vf_set(most), _CMP_NLE_UQ)) &
           _mm512_cmp_ps_mask(x, vf_set(0), _CMP_NEQ_UQ);
}

/* Which lanes are neither zero (of plus sign) nor normal numbers. */
MM_INLINE unsigned vf_odd(vf x)
{
    const vi size = _mm512_castps_si512(_mm512_abs_ps(x)), least = _mm512_set1_epi32(0x00800000);
    return _mm512_mask_cmpge_epu32_mask(vf_some(x), _mm512_sub_epi32(size, least),
                                        _mm512_set1_epi32(0x7F800000 - 0x00800000));
}

/* Which of 32 f16 are zero, infinite or no numbers. */
MM_INLINE unsigned vi_odd_f16(vi x)
{
    const vi size = _mm512_and_si512(x, _mm512_set1_epi16(0x7FFF)), one = _mm512_set1_epi16(1);
    return _mm512_cmpge_epu16_mask(_mm512_sub_epi16(size, one), _mm512_set1_epi16(0x7C00 - 1));
}

#endif
