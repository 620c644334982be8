// SPDX-License-Identifier: Apache-2.0
/* matmul_wide_bytes.h: what a pair of panels that was taken apart comes to, by VPMADDUBSW (matmul_wide.h, which
 * includes this).
 *
 * Of 16 registers 8 hold sums; what has been summed of the rows waits in memory for the end of each half. */
#ifndef WEFT_KERNELS_SIMD_MATMUL_WIDE_BYTES_H
#define WEFT_KERNELS_SIMD_MATMUL_WIDE_BYTES_H

#include "kernels/simd/matmul_two.h"

/* Is there a loop of its own for each PAIR_ROWS rows of a tile? Where their words are is a constant then. Scales by 16
 * want many of those. */
MM_INLINE int wide_is_unrolled(int f)
{
    return mm_by_16(f);
}

/* No codes are made of scales here. */
MM_INLINE vi wide_scale(int f, const uint8_t *by_16)
{
    (void)f, (void)by_16;
    return (vi){0};
}

MM_INLINE vi wide_code(int f, const uint8_t *c, int h, int g, vi scale)
{
    (void)scale;
    return mm_code(f, c, h, g);
}

/* What waits for the second part of 32 products: sums, or what they come to with scales of their own. */
typedef struct wide_first {
    vi sum[2][PAIR_ROWS]; /* of a panel, a row */
    vf x[2][PAIR_ROWS];
} wide_first;

/* The sums of part p of half h of a step: kept, or added to acc. */
MM_INLINE void wide_part_end(int f, int h, int p, int t0, const vi sum[2][PAIR_ROWS], const float *scales,
                             const uint8_t *a, wide_first *first, vf acc[2][PAIR_ROWS])
{
    const int is_first = p < mm_parts(f) - 1;
    UNROLL for (int t = 0; t < PAIR_ROWS; t++)
    {
        const vf scale = vf_word(a + mm_scale_at(MM_TILE) + 4 * (2 * (t0 + t) + h));
        UNROLL for (int i = 0; i < 2; i++)
        {
            const vf d = vf_load(scales + (mm_by_16(f) ? 2 * p + i : i) * MM_R);
            vi all = mm_dot_end(f, sum[i][t]);
            if (mm_by_16(f)) {
                if (is_first) first->x[i][t] = vf_mul(vf_from_int(all), d);
                else acc[i][t] = vf_fma(vf_fma(vf_from_int(all), d, first->x[i][t]), scale, acc[i][t]);
                continue;
            }
            if (is_first) {
                first->sum[i][t] = all;
                continue;
            }
            if (p > 0) all = vi_add32(first->sum[i][t], all);
            acc[i][t] = vf_fma(vf_from_int(all), vf_mul(d, scale), acc[i][t]);
            if (mm_min_with_products(f))
                acc[i][t] = vf_fma(vf_load(scales + (2 + i) * MM_R), vf_word(mm_sum_of(f, a, h, MM_TILE, t0 + t, 0)),
                                   acc[i][t]);
        }
    }
}

/* Half h of a step: adds 32 products to acc, part after part, as there are registers for the sums of one. */
MM_INLINE void wide_half(int f, int h, int t0, const uint8_t *w, const uint8_t *a, vf acc[2][PAIR_ROWS])
{
    const int groups = 8 / mm_parts(f); /* of a part */
    vi sum[2][PAIR_ROWS];
    wide_first first;
    UNROLL for (int g = 0; g < 8; g++)
    {
        const int p = g / groups;
        const vi w0 = vi_load(w + 2 * g * MM_VEC), w1 = vi_load(w + (2 * g + 1) * MM_VEC);
        UNROLL for (int t = 0; t < PAIR_ROWS; t++)
        {
            const uint8_t *bias = mm_bias_of(f, a, h, MM_TILE, t0 + t, p);
            const int fresh = g == p * groups && !bias;
            const vi x = vi_keep(vi_word(a + 64 * (t0 + t) + 32 * h + 4 * g));
            if (g == p * groups && bias) sum[0][t] = sum[1][t] = vi_word(bias);
            sum[0][t] = mm_dot_reg(f, sum[0][t], fresh, w0, x);
            sum[1][t] = mm_dot_reg(f, sum[1][t], fresh, w1, x);
        }
        simd_fence();
        if (g % groups == groups - 1) wide_part_end(f, h, p, t0, sum, (const float *)(w + WIDE_CODES), a, &first, acc);
    }
}

#endif
