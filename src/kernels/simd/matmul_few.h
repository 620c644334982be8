// SPDX-License-Identifier: Apache-2.0
/* matmul_few.h: a tile of rows times a pair of panels, for tiers with VPDPBUSD (words: matmul_quant.h, which includes
 * this).
 *
 * Panel by panel each product loads its word of activations, and a row has one sum. Two panels at once load it half as
 * often, and half of the rows at a time leave registers for two sums of each (PAIR_DEEP); a second tile follows while
 * the pair is near. What pairs of panels cost is that they are read side by side: where memory is the limit they are
 * slower, and so is asking for both at a time. So the lines of the next pair are asked for one after the other as they
 * lie, half of them in each half. Invariant: as in matmul_pair.h, the bits are those of mm_tile. */
#ifndef WEFT_KERNELS_SIMD_MATMUL_FEW_H
#define WEFT_KERNELS_SIMD_MATMUL_FEW_H

#include "kernels/simd/matmul_pair.h"

/* Formats that need no table of scales, and are not at the limit of memory as Q8_0 is. */
MM_INLINE int few_has(int f)
{
    return f == WEFT_Q4_0 || f == WEFT_IQ4_NL || f == WEFT_Q5_0;
}

/* n rows from t0 on, at most PAIR_ROWS, of a tile of `tile` rows. Each step asks for `lines` lines from `next` on. */
MM_INLINE void few_pass(int f, int tile, int t0, int n, const weft__product *p, const uint8_t *next, int lines)
{
    const int steps = mm_steps(f), step_bytes = mm_step_regs(f) * MM_REG, span_bytes = mm_span_bytes(f);
    const uint8_t *w = p->panels, *a = p->act;
    const size_t stride = p->stride;
    const int64_t n_spans = mm_spans(f, p->k), ldo = p->ldo;
    float *const out = p->out + t0 * ldo;
    vf acc[2][PAIR_ROWS];
    UNROLL for (int t = 0; t < n; t++) acc[0][t] = acc[1][t] = vf_zero();
    for (int64_t i = 0; i < n_spans; i++, w += span_bytes) {
        const uint8_t *c[2] = {w + mm_head_row(f) * MM_PANEL, w + stride + mm_head_row(f) * MM_PANEL};
        for (int64_t s = 0; s < steps; s++, c[0] += step_bytes, c[1] += step_bytes, a += tile * MM_ROW_STEP) {
            for (int l = 0; l < lines; l++, next += 64) _mm_prefetch((const char *)next, _MM_HINT_T1);
            UNROLL for (int h = 0; h < 2; h++)
            {
                pair_scales sc;
                const pair_step step = {{c[0], c[1]}, &sc, NULL, a};
                pair_load_scales(f, w, stride, s, h, &sc);
                pair_half(f, PAIR_DEEP, h, tile, t0, n, &step, acc[0], acc[1]);
            }
        }
    }
    UNROLL for (int t = 0; t < n; t++)
    {
        UNROLL for (int i = 0; i < 2; i++) vf_store(out + t * ldo + i * MM_R, acc[i][t]);
    }
}

/* All rows of a tile, n_rows, times a pair of panels, p; then: the pair that comes next, if this one comes from
 * memory. */
MM_INLINE void few_tile(int f, int n_rows, const weft__product *p, const uint8_t *then)
{
    const int n = n_rows <= PAIR_ROWS ? n_rows : (n_rows + 1) / 2,
              lines = !then ? 0 : (mm_span_bytes(f) / mm_steps(f) + 63) / 64;
    few_pass(f, n_rows, 0, n, p, then, n < n_rows ? lines : 2 * lines);
    if (n < n_rows) few_pass(f, n_rows, n, n_rows - n, p, then ? then + p->stride : NULL, lines);
}

#endif
