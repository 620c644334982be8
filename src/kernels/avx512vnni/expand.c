// SPDX-License-Identifier: Apache-2.0
/* expand.c: adding B h to outputs by VPDPBUSD; the loops are in simd/expand_dot.h. Reentrant. */
#include "kernels/avx512vnni/matmul_vec.h"

#include "kernels/list.h"
#include "kernels/simd/expand_dot.h"

static int32_t dot_codes(const float *h, int64_t rank, double inverse, uint8_t *codes)
{
    __m256i sum = _mm256_setzero_si256();
    for (int64_t i = 0; i < rank; i += 8) {
        __m256 x = _mm256_maskz_loadu_ps((__mmask8)(rank - i < 8 ? (1 << (rank - i)) - 1 : 255), h + i);
        __m256i c = _mm512_cvtpd_epi32(_mm512_mul_pd(_mm512_cvtps_pd(x), _mm512_set1_pd(inverse)));
        _mm_storel_epi64((__m128i *)(codes + i), _mm256_cvtepi32_epi8(c));
        sum = _mm256_add_epi32(sum, c);
    }
    __m128i half = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
    half = _mm_hadd_epi32(half, half);
    return _mm_cvtsi128_si32(_mm_hadd_epi32(half, half));
}

EX_KERNEL(dot, Q8_0, q8_0, avx512vnni, AVX512VNNI)
EX_KERNEL(dot, Q4_0, q4_0, avx512vnni, AVX512VNNI)
