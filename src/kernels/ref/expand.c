// SPDX-License-Identifier: Apache-2.0
/* expand.c: adding B h to outputs, readable (kernels.h; layout: simd/expand_layout.h). Invariant: an output is one sum
 * in rising rank. Reentrant; no state. */
#include "kernels/list.h"

#include "kernels/simd/expand_layout.h"

/* Element (r, i) of a panel, without its output's scale; 4 bits: the code as it is stored. */
static float element(uint32_t f, const uint8_t *panel, int r, int64_t i)
{
    int64_t at = i * WEFT__EXPAND_ROWS + r;
    float x;
    uint16_t half;
    uint8_t pair;
    switch (f) {
    case WEFT_F32: memcpy(&x, panel + 4 * at, sizeof x); return x;
    case WEFT_BF16: memcpy(&half, panel + 2 * at, sizeof half); return weft__bf16_to_f32(half);
    case WEFT_Q8_0: return (float)(int8_t)panel[EX_SCALES + at];
    default: pair = panel[EX_SCALES + i / 2 * WEFT__EXPAND_ROWS + r]; return (float)(i % 2 ? pair >> 4 : pair & 15);
    }
}

static float scale_of(uint32_t f, const uint8_t *panel, int r)
{
    return f == WEFT_F32 || f == WEFT_BF16 ? 1 : ex_scale(panel, r);
}

static void ex_run(uint32_t f, const void *panels, int64_t n_out, int64_t rank, const void *const *h, int m,
                   float *const *y, const void *next)
{
    (void)next;
    for (int64_t j = 0; j < n_out; j++) {
        const uint8_t *p = (const uint8_t *)panels + (size_t)(j / WEFT__EXPAND_ROWS) * ex_panel_bytes(f, rank);
        int r = (int)(j % WEFT__EXPAND_ROWS);
        for (int t = 0; t < m; t++) {
            const float *x = h[t];
            double sum = x[0];
            for (int64_t i = 0; i < rank; i++) sum += (double)element(f, p, r, i) * x[1 + i];
            y[t][j] += (float)(sum * scale_of(f, p, r));
        }
    }
}

EX_KERNEL(ex, F32, f32, ref, REF)
EX_KERNEL(ex, BF16, bf16, ref, REF)
EX_KERNEL(ex, Q8_0, q8_0, ref, REF)
EX_KERNEL(ex, Q4_0, q4_0, ref, REF)
