// SPDX-License-Identifier: Apache-2.0
/* gemm.c: products of f32 matrices in AVX-512, 24 accumulators (simd/gemm.h). Reentrant. */
#include "kernels/avx512/vec.h"

#define GEMM_MR 12
#include "kernels/simd/gemm.h"

#include "kernels/avx512/transpose.h"

#include "kernels/simd/gemm_turn.h"

const weft__gemm weft__gemm_f32_avx512 = {.name = "gemm_f32_avx512",
                                          .dtype = WEFT_F32,
                                          .tier = WEFT__TIER_AVX512,
                                          .mr = GEMM_MR,
                                          .nr = GEMM_NR,
                                          .tile = gemm_tile,
                                          .half = gemm_half,
                                          .turn = gemm_turn};
