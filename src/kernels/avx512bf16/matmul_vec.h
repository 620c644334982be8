// SPDX-License-Identifier: Apache-2.0
/* matmul_vec.h: AVX-512 with BF16 for the products of floats (simd/matmul_float.h). */
#ifndef WEFT_KERNELS_AVX512BF16_MATMUL_VEC_H
#define WEFT_KERNELS_AVX512BF16_MATMUL_VEC_H

#define MM_BF16_DOT 1
#define MM_TIER WEFT__TIER_AVX512BF16
#include "kernels/avx512/matmul_vec.h"

MM_INLINE vf mm_dot_bf16(vf acc, vf w, vf a)
{
    return _mm512_dpbf16_ps(acc, (__m512bh)w, (__m512bh)a);
}

MM_INLINE void mm_store_bf16(void *to, vf x)
{
    _mm256_storeu_si256((__m256i *)to, (__m256i)_mm512_cvtneps_pbh(x));
}

#endif
