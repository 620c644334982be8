// SPDX-License-Identifier: Apache-2.0
/* gemm.c: products of f32 matrices, readable (kernels.h). Reentrant; no state. */
#include "kernels/list.h"

enum { MR = 4, NR = 8 };

static void gemm_tile(int64_t k, const float *a, const float *b, float *c, int64_t ldc, int add)
{
    float acc[MR][NR] = {{0}};
    for (int64_t p = 0; p < k; p++, a += MR, b += NR) {
        for (int i = 0; i < MR; i++) {
            for (int j = 0; j < NR; j++) acc[i][j] += a[i] * b[j];
        }
    }
    for (int i = 0; i < MR; i++) {
        for (int j = 0; j < NR; j++) c[i * ldc + j] = (add ? c[i * ldc + j] : 0) + acc[i][j];
    }
}

static void gemm_turn(const float *src, int64_t ld, int n_rows, int64_t k, float *dst, int64_t width)
{
    for (int j = 0; j < n_rows; j++) {
        for (int64_t p = 0; p < k; p++) dst[p * width + j] = src[j * ld + p];
    }
}

const weft__gemm weft__gemm_ref = {"gemm_ref", WEFT__TIER_REF, MR, NR, gemm_tile, gemm_turn};
