// SPDX-License-Identifier: Apache-2.0
/* expand.c: adding B h to outputs in AVX2; the loops are in simd/expand.h and simd/expand_dot.h. Reentrant. */
#include "kernels/avx2/matmul_vec.h"

#include "kernels/list.h"
#include "kernels/simd/expand.h"
#include "kernels/simd/expand_dot.h"

static int32_t dot_codes(const float *h, int64_t rank, double inverse, uint8_t *codes)
{
    const __m256d by = _mm256_set1_pd(inverse);
    __m128i sum = _mm_setzero_si128();
    for (int64_t i = 0; i < rank; i += 8) {
        const __m256 x = rank - i < 8 ? vf_load_part(h + i, (int)(rank - i)) : vf_load(h + i);
        const __m128i low = _mm256_cvtpd_epi32(_mm256_mul_pd(_mm256_cvtps_pd(_mm256_castps256_ps128(x)), by));
        const __m128i high = _mm256_cvtpd_epi32(_mm256_mul_pd(_mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)), by));
        const __m128i words = _mm_packs_epi32(low, high);
        _mm_storel_epi64((__m128i *)(codes + i), _mm_packs_epi16(words, words));
        sum = _mm_add_epi32(sum, _mm_add_epi32(low, high));
    }
    sum = _mm_hadd_epi32(sum, sum);
    return _mm_cvtsi128_si32(_mm_hadd_epi32(sum, sum));
}

EX_KERNEL(ex, F32, f32, avx2, AVX2)
EX_KERNEL(ex, BF16, bf16, avx2, AVX2)
EX_KERNEL(dot, Q8_0, q8_0, avx2, AVX2)
EX_KERNEL(dot, Q4_0, q4_0, avx2, AVX2)
