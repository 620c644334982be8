// SPDX-License-Identifier: Apache-2.0
/* gemm.c: products of f32 matrices in AVX2, 12 accumulators (simd/gemm.h). Reentrant. */
#include "kernels/avx2/vec.h"

#define GEMM_MR 6
#include "kernels/simd/gemm.h"

/* The first n lanes. */
MM_INLINE void put(float *p, int n, vf a)
{
    if (n == VF_N) vf_store(p, a);
    else vf_store_part(p, a, n);
}

/* dst[p * width + j] = src[j * ld + p] for n <= 8 rows and 8 columns: three rounds of interleaving pairs. */
MM_INLINE void transpose_block(const float *src, int64_t ld, int n, float *dst, int64_t width)
{
    __m256 r[8], s[8];
    UNROLL for (int i = 0; i < 8; i++) r[i] = i < n ? _mm256_loadu_ps(src + i * ld) : _mm256_setzero_ps();
    UNROLL for (int i = 0; i < 8; i += 2)
    {
        s[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        s[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    UNROLL for (int i = 0; i < 8; i += 4)
    {
        UNROLL for (int h = 0; h < 2; h++)
        {
            r[i + 2 * h] =
                _mm256_castpd_ps(_mm256_unpacklo_pd(_mm256_castps_pd(s[i + h]), _mm256_castps_pd(s[i + 2 + h])));
            r[i + 2 * h + 1] =
                _mm256_castpd_ps(_mm256_unpackhi_pd(_mm256_castps_pd(s[i + h]), _mm256_castps_pd(s[i + 2 + h])));
        }
    }
    UNROLL for (int i = 0; i < 4; i++)
    {
        put(dst + i * width, n, _mm256_permute2f128_ps(r[i], r[4 + i], 0x20));
        put(dst + (4 + i) * width, n, _mm256_permute2f128_ps(r[i], r[4 + i], 0x31));
    }
}

#include "kernels/simd/gemm_turn.h"

const weft__gemm weft__gemm_f32_avx2 = {.name = "gemm_f32_avx2",
                                        .dtype = WEFT_F32,
                                        .tier = WEFT__TIER_AVX2,
                                        .mr = GEMM_MR,
                                        .nr = GEMM_NR,
                                        .tile = gemm_tile,
                                        .half = gemm_half,
                                        .turn = gemm_turn};
