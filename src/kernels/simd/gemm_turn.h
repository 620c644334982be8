// SPDX-License-Identifier: Apache-2.0
/* gemm_turn.h: rows to columns (kernels.h, weft__gemm.turn), out of blocks of VF_N columns by VF_N or GEMM_MR rows,
 * which the including file turns with transpose_block; what is left over at the edges goes one by one. */
#include "kernels/simd/matmul_layout.h"

MM_INLINE void turn_rows(const float *src, int64_t ld, int n, int64_t k, float *dst, int64_t width)
{
    int64_t p = 0;
    for (; p + VF_N <= k; p += VF_N) transpose_block(src + p, ld, n, dst + p * width, width);
    for (; p < k; p++) {
        for (int i = 0; i < n; i++) dst[p * width + i] = src[i * ld + p];
    }
}

static void gemm_turn(const float *src, int64_t ld, int n_rows, int64_t k, float *dst, int64_t width)
{
    int j = 0;
    for (; j + VF_N <= n_rows; j += VF_N) turn_rows(src + j * ld, ld, VF_N, k, dst + j, width);
    if (n_rows - j == GEMM_MR) {
        turn_rows(src + j * ld, ld, GEMM_MR, k, dst + j, width);
        return;
    }
    for (; j < n_rows; j++) {
        for (int64_t p = 0; p < k; p++) dst[p * width + j] = src[j * ld + p];
    }
}
