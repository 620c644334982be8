// SPDX-License-Identifier: Apache-2.0
/* matmul_two.h: what the functions that multiply a pair at once, two neighbouring panels or both strips of one, have in
 * common (words: matmul_quant.h, which includes this): the pieces that products come in, scales as floats, minimums,
 * and the outputs that are soon written. */
#ifndef WEFT_KERNELS_SIMD_MATMUL_TWO_H
#define WEFT_KERNELS_SIMD_MATMUL_TWO_H

#include "kernels/simd/matmul_block.h"
#include "kernels/simd/matmul_sums.h"

enum {
    PAIR_OUTS = 2 * MM_R,  /* outputs of a pair of panels */
    PAIR_ROWS = 4,         /* rows side by side: with two panels, 8 sums hide the latency of one multiplier */
    PAIR_SCALES = 4 * MM_R /* floats of half a step: d of both panels; then m of both, or d of their second quarters */
};

/* ---- panels that are unpacked first (matmul_wide.h) ---- */

enum {
    WIDE_STEPS = 8,              /* a multiple of every mm_steps */
    WIDE_CODES = 8 * 2 * MM_VEC, /* bytes of the codes of half a step: registers [8 groups][2 panels] */
    WIDE_HALF = WIDE_CODES + PAIR_SCALES * sizeof(float) /* and behind them its scales */
};

/* A pair taken apart. Codes with small scales are products of both: of Q2_K as they are, of Q3_K in [0, 252], 128 minus
 * the product. */
typedef struct wide_pair {
    _Alignas(64) uint8_t halves[2 * WIDE_STEPS][WIDE_HALF];
    _Alignas(64) float d[WIDE_STEPS][2 * MM_R]; /* mm_small_scales: of each span */
} wide_pair;

/* ---- scales and minimums ---- */

/* The scales of half a step of panel p into the PAIR_SCALES floats at `to`. (mm_small_scales: the minimums alone.) */
MM_INLINE void pair_put_scales(int f, const mm_scales *sc, int p, float *to)
{
    if (mm_small_scales(f)) {
        if (mm_has_min(f)) UNROLL for (int i = 0; i < 2; i++) vf_store(to + (2 * i + p) * MM_R, sc->m[i]);
        return;
    }
    vf_store(to + p * MM_R, sc->d[0]);
    if (mm_by_16(f)) vf_store(to + (2 + p) * MM_R, sc->d[1]);
    else if (mm_has_min(f)) vf_store(to + (2 + p) * MM_R, sc->m[0]);
}

/* n rows of a full tile from t0 on: adds the minimums of a span, whose table and first step are at `table` and `a`;
 * those of halves are `apart` floats from each other. */
MM_INLINE void pair_mins(int f, int t0, int n, const float *table, int apart, const uint8_t *a, vf *acc0, vf *acc1)
{
    for (int s = 0; s < mm_steps(f); s++, a += MM_TILE * MM_ROW_STEP) {
        UNROLL for (int h = 0; h < 2; h++, table += apart)
        {
            UNROLL for (int i = 0; i < mm_mins(f); i++)
            {
                const float *m = table + (mm_by_16(f) ? 2 * i : 2) * MM_R;
                const vf m0 = vf_load(m), m1 = vf_load(m + MM_R);
                UNROLL for (int t = 0; t < n; t++)
                {
                    const vf sum = vf_word(mm_sum_of(f, a, h, MM_TILE, t0 + t, i));
                    acc0[t] = vf_fma(m0, sum, acc0[t]);
                    acc1[t] = vf_fma(m1, sum, acc1[t]);
                }
                simd_fence();
            }
        }
    }
}

/* The outputs of the tile behind the one of rows i.. and outputs n..: of the rows below, or of the next pair; of the
 * last, its own. Sums that go on from what is in them wait for memory where they were not asked for a tile before:
 * other blocks have driven them out. */
MM_INLINE const float *pair_then(int64_t n_out, int64_t n, int64_t n_rows, int64_t i, const float *out, int64_t ldo)
{
    if (i + MM_TILE < n_rows) return out + (i + MM_TILE) * ldo + n;
    return n + 2 * PAIR_OUTS <= n_out ? out + n + PAIR_OUTS : out + i * ldo + n;
}

#endif
