// SPDX-License-Identifier: Apache-2.0
/* gemm.c: products of f32 matrices, rounded to BF16 in pairs, by VDPBF16PS, 24 accumulators (simd/gemm.h). Subnormal
 * numbers count as zero. Reentrant. */
#include "kernels/avx512bf16/matmul_vec.h"

#define GEMM_MR 12
#define GEMM_STEP(x, y, acc) mm_dot_bf16(acc, y, x)
#include "kernels/simd/gemm.h"

#include "kernels/avx512/transpose.h"

#include "kernels/simd/gemm_turn.h"

static void gemm_round(const float *x, int64_t n, float *to)
{
    uint8_t *at = (uint8_t *)to;
    for (; n >= VF_N; n -= VF_N, x += VF_N, at += 2 * VF_N) mm_store_bf16(at, vf_load(x));
    if (n == 0) return;
    uint8_t last[2 * VF_N];
    mm_store_bf16(last, vf_load_part(x, (int)n));
    memcpy(at, last, (size_t)(n + 1) / 2 * sizeof *to);
}

MM_INLINE __m512i halves(vf x)
{
    return _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(x));
}

static void gemm_pair(const float *x, const float *y, int64_t n, float *to)
{
    for (int64_t i = 0; i < n; i += VF_N) {
        const int part = n - i < VF_N ? (int)(n - i) : VF_N;
        const __m512i even = halves(vf_load_part(x + i, part)),
                      odd = y ? halves(vf_load_part(y + i, part)) : _mm512_setzero_si512();
        vf_store_part(to + i, _mm512_castsi512_ps(_mm512_or_si512(even, _mm512_slli_epi32(odd, 16))), part);
    }
}

const weft__gemm weft__gemm_bf16_avx512bf16 = {.name = "gemm_bf16_avx512bf16",
                                               .dtype = WEFT_BF16,
                                               .tier = WEFT__TIER_AVX512BF16,
                                               .mr = GEMM_MR,
                                               .nr = GEMM_NR,
                                               .tile = gemm_tile,
                                               .half = gemm_half,
                                               .turn = gemm_turn,
                                               .round = gemm_round,
                                               .pair = gemm_pair};
