// SPDX-License-Identifier: Apache-2.0
/* gemm.h: one tile of a product of f32 matrices, for the vectors of the file that includes it (contract: kernels.h,
 * weft__gemm). The including file defines GEMM_MR; a tile is GEMM_MR rows by two vectors, all of it in registers.
 * GEMM_STEP(x, y, acc): acc + x * y of elements, where they are no floats. */
#include "kernels/list.h"
#include "kernels/simd/matmul_layout.h"
#include "kernels/simd/unroll.h"

#ifndef GEMM_STEP
#define GEMM_STEP(x, y, acc) vf_fma(x, y, acc)
#endif

enum { GEMM_NV = 2, GEMM_NR = GEMM_NV * VF_N };

/* n_v: vectors of columns, a constant. */
MM_INLINE void gemm_columns(int n_v, int64_t k, const float *a, const float *b, float *c, int64_t ldc, int add)
{
    vf acc[GEMM_MR][GEMM_NV];
    UNROLL for (int i = 0; i < GEMM_MR; i++)
    {
        UNROLL for (int v = 0; v < n_v; v++) acc[i][v] = vf_zero();
    }
    for (int64_t p = 0; p < k; p++, a += GEMM_MR, b += GEMM_NR) {
        vf x[GEMM_NV];
        UNROLL for (int v = 0; v < n_v; v++) x[v] = vf_load(b + v * VF_N);
        UNROLL for (int i = 0; i < GEMM_MR; i++)
        {
            vf y = vf_set(a[i]);
            UNROLL for (int v = 0; v < n_v; v++) acc[i][v] = GEMM_STEP(y, x[v], acc[i][v]);
        }
    }
    UNROLL for (int i = 0; i < GEMM_MR; i++)
    {
        UNROLL for (int v = 0; v < n_v; v++)
        {
            float *at = c + i * ldc + v * VF_N;
            vf_store(at, add ? vf_add(vf_load(at), acc[i][v]) : acc[i][v]);
        }
    }
}

static void gemm_tile(int64_t k, const float *a, const float *b, float *c, int64_t ldc, int add)
{
    gemm_columns(GEMM_NV, k, a, b, c, ldc, add);
}

static void gemm_half(int64_t k, const float *a, const float *b, float *c, int64_t ldc, int add)
{
    gemm_columns(GEMM_NV / 2, k, a, b, c, ldc, add);
}
