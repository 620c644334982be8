// SPDX-License-Identifier: Apache-2.0
/* transpose.h: blocks of 16 columns turned in AVX-512 (simd/gemm_turn.h). */
#ifndef WEFT_KERNELS_AVX512_TRANSPOSE_H
#define WEFT_KERNELS_AVX512_TRANSPOSE_H

#include "kernels/avx512/vec.h"
#include "kernels/simd/matmul_layout.h"
#include "kernels/simd/unroll.h"

MM_INLINE void transpose_put(float *p, int n, vf a)
{
    if (n == VF_N) vf_store(p, a);
    else vf_store_part(p, a, n);
}

/* dst[p * width + j] = src[j * ld + p] for n <= 16 rows and 16 columns: four rounds of interleaving pairs. */
MM_INLINE void transpose_block(const float *src, int64_t ld, int n, float *dst, int64_t width)
{
    __m512 r[16], s[16];
    UNROLL for (int i = 0; i < 16; i++) r[i] = i < n ? _mm512_loadu_ps(src + i * ld) : _mm512_setzero_ps();
    UNROLL for (int i = 0; i < 16; i += 2)
    {
        s[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        s[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
    UNROLL for (int i = 0; i < 16; i += 4)
    {
        UNROLL for (int h = 0; h < 2; h++)
        {
            r[i + 2 * h] =
                _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(s[i + h]), _mm512_castps_pd(s[i + 2 + h])));
            r[i + 2 * h + 1] =
                _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(s[i + h]), _mm512_castps_pd(s[i + 2 + h])));
        }
    }
    UNROLL for (int i = 0; i < 4; i++)
    {
        UNROLL for (int h = 0; h < 2; h++)
        {
            s[8 * h + i] = _mm512_shuffle_f32x4(r[8 * h + i], r[8 * h + 4 + i], 0x88);
            s[8 * h + 4 + i] = _mm512_shuffle_f32x4(r[8 * h + i], r[8 * h + 4 + i], 0xdd);
        }
    }
    UNROLL for (int i = 0; i < 4; i++)
    {
        transpose_put(dst + i * width, n, _mm512_shuffle_f32x4(s[i], s[8 + i], 0x88));
        transpose_put(dst + (4 + i) * width, n, _mm512_shuffle_f32x4(s[4 + i], s[12 + i], 0x88));
        transpose_put(dst + (8 + i) * width, n, _mm512_shuffle_f32x4(s[i], s[8 + i], 0xdd));
        transpose_put(dst + (12 + i) * width, n, _mm512_shuffle_f32x4(s[4 + i], s[12 + i], 0xdd));
    }
}

#endif
