// SPDX-License-Identifier: Apache-2.0
/* expand.h: adding B h to outputs by fused multiply-add in f32, for any vector tier (layout: simd/expand_layout.h).
 *
 * The including file has included its tier's matmul_vec.h. An output is one chain over the ranks in order, so the
 * number of rows does not change its bits. */
#ifndef WEFT_KERNELS_SIMD_EXPAND_H
#define WEFT_KERNELS_SIMD_EXPAND_H

#include "kernels/simd/expand_layout.h"
#include "kernels/simd/next.h"
#include "kernels/simd/unroll.h"

enum { EX_TOGETHER = 4 /* rows that share what was decoded */, EX_AHEAD = 2048 /* bytes that are asked for early */ };

/* MM_R outputs of one rank. */
MM_INLINE vf ex_load(uint32_t f, const uint8_t *codes, int64_t i)
{
    switch (f) {
    case WEFT_F32: return vf_load((const float *)codes + i * WEFT__EXPAND_ROWS);
    case WEFT_BF16: return vf_load_bf16((const uint16_t *)codes + i * WEFT__EXPAND_ROWS);
    case WEFT_Q8_0: return vf_load_s8(codes + i * WEFT__EXPAND_ROWS);
    default:
        return i % 2 ? vf_load_u4_high(codes + i / 2 * WEFT__EXPAND_ROWS)
                     : vf_load_u4_low(codes + i / 2 * WEFT__EXPAND_ROWS);
    }
}

/* Where in a panel the codes of output r begin: scales stand before those of integers. */
MM_INLINE int ex_offset(uint32_t f, int r)
{
    return f == WEFT_F32 ? 4 * r : f == WEFT_BF16 ? 2 * r : EX_SCALES + r;
}

/* Outputs [at, at + n) of n_rows rows, n <= MM_R: outputs r, r + 1, ... of a panel. */
MM_INLINE void ex_part(uint32_t f, int n_rows, const uint8_t *panel, int r, int64_t rank, const void *const *h,
                       float *const *y, int64_t at, int n)
{
    const uint8_t *codes = panel + ex_offset(f, r);
    vf acc[EX_TOGETHER];
    UNROLL for (int t = 0; t < n_rows; t++) acc[t] = vf_word(h[t]);
    for (int64_t i = 0; i < rank; i += 2) { /* nibbles come in pairs */
        UNROLL for (int j = 0; j < 2; j++)
        {
            if (i + j == rank) break;
            vf w = ex_load(f, codes, i + j);
            UNROLL for (int t = 0; t < n_rows; t++) acc[t] =
                vf_fma(w, vf_word((const float *)h[t] + 1 + i + j), acc[t]);
        }
    }
    vf scale = f == WEFT_F32 || f == WEFT_BF16 ? vf_set(1) : vf_load_eighths(panel, r);
    UNROLL for (int t = 0; t < n_rows; t++)
    {
        if (n == MM_R) {
            vf_store(y[t] + at, vf_fma(acc[t], scale, vf_load(y[t] + at)));
        } else {
            vf_store_part(y[t] + at, vf_fma(acc[t], scale, vf_load_part(y[t] + at, n)), n);
        }
    }
}

MM_INLINE void ex_rows(uint32_t f, int n_rows, const uint8_t *panel, int64_t n_out, int64_t rank, const void *const *h,
                       float *const *y, const void *next)
{
    const size_t bytes = ex_panel_bytes(f, rank);
    const simd_next ahead =
        simd_next_of(panel, (size_t)ex_groups(n_out, WEFT__EXPAND_ROWS) * bytes, bytes, EX_AHEAD, next);
    for (int64_t at = 0; at < n_out; at += WEFT__EXPAND_ROWS, panel += bytes) {
        const uintptr_t ask = simd_ask(&ahead, (uintptr_t)panel);
        for (size_t l = 0; l < bytes; l += 64) _mm_prefetch((const char *)(ask + l), _MM_HINT_T0);
        for (int r = 0; r < WEFT__EXPAND_ROWS && at + r < n_out; r += MM_R) {
            int64_t left = n_out - at - r;
            ex_part(f, n_rows, panel, r, rank, h, y, at + r, left < MM_R ? (int)left : MM_R);
        }
    }
}

/* weft__expand.run */
MM_INLINE void ex_run(uint32_t f, const void *panels, int64_t n_out, int64_t rank, const void *const *h, int m,
                      float *const *y, const void *next)
{
    for (; m > 0; m -= EX_TOGETHER, h += EX_TOGETHER, y += EX_TOGETHER) {
        const void *then = m <= EX_TOGETHER ? next : panels; /* else they are read once more */
        switch (m) {
        case 1: ex_rows(f, 1, panels, n_out, rank, h, y, then); break;
        case 2: ex_rows(f, 2, panels, n_out, rank, h, y, then); break;
        case 3: ex_rows(f, 3, panels, n_out, rank, h, y, then); break;
        default: ex_rows(f, 4, panels, n_out, rank, h, y, then); break;
        }
    }
}

#endif
