// SPDX-License-Identifier: Apache-2.0
/* gemm.c: products of f32 matrices, readable (kernels.h). Reentrant; no state. */
#include <string.h>

#include "kernels/list.h"
#include "quant/half.h"

enum { MR = 4, NR = 8 };

/* Columns [0, n) of a tile. */
static void gemm_columns(int n, int64_t k, const float *a, const float *b, float *c, int64_t ldc, int add)
{
    float acc[MR][NR] = {{0}};
    for (int64_t p = 0; p < k; p++, a += MR, b += NR) {
        for (int i = 0; i < MR; i++) {
            for (int j = 0; j < n; j++) acc[i][j] += a[i] * b[j];
        }
    }
    for (int i = 0; i < MR; i++) {
        for (int j = 0; j < n; j++) c[i * ldc + j] = (add ? c[i * ldc + j] : 0) + acc[i][j];
    }
}

static void gemm_tile(int64_t k, const float *a, const float *b, float *c, int64_t ldc, int add)
{
    gemm_columns(NR, k, a, b, c, ldc, add);
}

static void gemm_half(int64_t k, const float *a, const float *b, float *c, int64_t ldc, int add)
{
    gemm_columns(NR / 2, k, a, b, c, ldc, add);
}

static void gemm_turn(const float *src, int64_t ld, int n_rows, int64_t k, float *dst, int64_t width)
{
    for (int j = 0; j < n_rows; j++) {
        for (int64_t p = 0; p < k; p++) dst[p * width + j] = src[j * ld + p];
    }
}

/* ---- two inputs in an element ---- */

static float gemm_element(float even, float odd)
{
    return weft__f32_from_bits((uint32_t)weft__bf16_from_f32(odd) << 16 | weft__bf16_from_f32(even));
}

static float half_of(const float *x, int odd)
{
    uint32_t bits;
    memcpy(&bits, x, sizeof bits);
    return weft__bf16_to_f32((uint16_t)(bits >> 16 * odd));
}

static void pairs_columns(int n, int64_t k, const float *a, const float *b, float *c, int64_t ldc, int add)
{
    float acc[MR][NR] = {{0}};
    for (int64_t p = 0; p < 2 * k; p++) {
        const float *x = a + p / 2 * MR, *y = b + p / 2 * NR;
        for (int i = 0; i < MR; i++) {
            for (int j = 0; j < n; j++) acc[i][j] += half_of(x + i, p & 1) * half_of(y + j, p & 1);
        }
    }
    for (int i = 0; i < MR; i++) {
        for (int j = 0; j < n; j++) c[i * ldc + j] = (add ? c[i * ldc + j] : 0) + acc[i][j];
    }
}

static void pairs_tile(int64_t k, const float *a, const float *b, float *c, int64_t ldc, int add)
{
    pairs_columns(NR, k, a, b, c, ldc, add);
}

static void pairs_half(int64_t k, const float *a, const float *b, float *c, int64_t ldc, int add)
{
    pairs_columns(NR / 2, k, a, b, c, ldc, add);
}

static void gemm_round(const float *x, int64_t n, float *to)
{
    for (int64_t i = 0; i < n; i += 2) to[i / 2] = gemm_element(x[i], i + 1 < n ? x[i + 1] : 0);
}

static void gemm_pair(const float *x, const float *y, int64_t n, float *to)
{
    for (int64_t i = 0; i < n; i++) to[i] = gemm_element(x[i], y ? y[i] : 0);
}

const weft__gemm weft__gemm_f32_ref = {.name = "gemm_f32_ref",
                                       .dtype = WEFT_F32,
                                       .tier = WEFT__TIER_REF,
                                       .mr = MR,
                                       .nr = NR,
                                       .tile = gemm_tile,
                                       .half = gemm_half,
                                       .turn = gemm_turn};
const weft__gemm weft__gemm_bf16_ref = {.name = "gemm_bf16_ref",
                                        .dtype = WEFT_BF16,
                                        .tier = WEFT__TIER_REF,
                                        .mr = MR,
                                        .nr = NR,
                                        .tile = pairs_tile,
                                        .half = pairs_half,
                                        .turn = gemm_turn,
                                        .round = gemm_round,
                                        .pair = gemm_pair};
