// SPDX-License-Identifier: Apache-2.0
/* matmul_wide_dot.h: what a pair of panels that was taken apart comes to, by VPDPBUSD (matmul_wide.h, which includes
 * this). */
#ifndef WEFT_KERNELS_SIMD_MATMUL_WIDE_DOT_H
#define WEFT_KERNELS_SIMD_MATMUL_WIDE_DOT_H

#include "kernels/simd/matmul_pair.h"

MM_INLINE int wide_is_unrolled(int f)
{
    (void)f;
    return 0;
}

/* The integers of 16 scales, twice in the word of each row. */
MM_INLINE vi wide_scale(int f, const uint8_t *by_16)
{
    return f == WEFT_Q2_K ? vi_twice_u4_low(by_16) : vi_twice_s8(by_16);
}

/* Codes of eight bits of group g of half h, the integers of whose scales are given (mm_small_scales). */
MM_INLINE vi wide_code(int f, const uint8_t *c, int h, int g, vi scale)
{
    const vi w = mm_code(f, c, h, g);
    if (!mm_small_scales(f)) return w;
    if (f == WEFT_Q2_K) return vi_mul_bytes(w, scale);
    const vi code = vi_and(vi_right(w, mm_shift(f, h)), vi_bytes(7));
    return vi_xor(vi_mul_bytes(vi_sub8(vi_bytes(4), code), scale), vi_bytes(0x80));
}

/* How many sums the 32 products of a half are wanted in. */
MM_INLINE int wide_parts(int f)
{
    return mm_small_scales(f) ? 1 : mm_parts(f);
}

/* Where the sum of a row's products starts. */
MM_INLINE const uint8_t *wide_bias(int f, const uint8_t *a, int h, int t, int q)
{
    if (!mm_small_scales(f)) return mm_bias_of(f, a, h, MM_TILE, t, q);
    return f == WEFT_Q3_K ? a + mm_bias32_at(MM_TILE) + 4 * (2 * t + h) : NULL;
}

/* The sums of the products of both quarters: rows t0.. of a full tile, half h of a step. Where they have one scale, the
 * bias is in the first, and they are wanted together: apart, twice as many products are on their way. */
MM_INLINE void wide_sums(int f, int h, int t0, const uint8_t *w, const uint8_t *a, vi sum[2][2][PAIR_ROWS])
{
    UNROLL for (int q = 0; q < 2; q++)
    {
        UNROLL for (int t = 0; t < PAIR_ROWS; t++)
        {
            const uint8_t *bias = q && wide_parts(f) == 1 ? NULL : wide_bias(f, a, h, t0 + t, q);
            sum[q][0][t] = sum[q][1][t] = bias ? vi_word(bias) : (vi){0};
        }
    }
    UNROLL for (int i = 0; i < 8; i++)
    {
        const int q = i % 2, g = 4 * q + i / 2;
        const vi w0 = vi_load(w + 2 * g * MM_VEC), w1 = vi_load(w + (2 * g + 1) * MM_VEC);
        UNROLL for (int t = 0; t < PAIR_ROWS; t++)
        {
            const vi word = vi_keep(vi_word(a + 64 * (t0 + t) + 32 * h + 4 * g));
            sum[q][0][t] = mm_dot_reg(sum[q][0][t], w0, word);
            sum[q][1][t] = mm_dot_reg(sum[q][1][t], w1, word);
        }
    }
}

/* Half h of a step: adds 32 products to acc (mm_small_scales: the span's part). */
MM_INLINE void wide_half(int f, int h, int t0, const uint8_t *w, const uint8_t *a, vf acc[2][PAIR_ROWS])
{
    const float *scales = (const float *)(w + WIDE_CODES);
    vi sum[2][2][PAIR_ROWS]; /* of a quarter, a panel, a row */
    wide_sums(f, h, t0, w, a, sum);
    UNROLL for (int t = 0; t < PAIR_ROWS; t++)
    {
        const vf scale = vf_word(a + mm_scale_at(MM_TILE) + 4 * (2 * (t0 + t) + h));
        UNROLL for (int i = 0; i < 2; i++)
        {
            if (wide_parts(f) == 2) {
                vf x = vf_mul(vf_from_int(sum[0][i][t]), vf_load(scales + i * MM_R));
                x = vf_fma(vf_from_int(sum[1][i][t]), vf_load(scales + (2 + i) * MM_R), x);
                acc[i][t] = vf_fma(x, scale, acc[i][t]);
                continue;
            }
            const vi all = vi_add32(sum[0][i][t], sum[1][i][t]);
            if (mm_small_scales(f)) {
                const vf x = vf_from_int(all);
                acc[i][t] = f == WEFT_Q3_K ? vf_fnma(x, scale, acc[i][t]) : vf_fma(x, scale, acc[i][t]);
            } else {
                const vf by = pair_scale(0, VF_ALL, MM_TILE, h, t0 + t, vf_load(scales + i * MM_R), a);
                acc[i][t] = pair_add(f, MM_TILE, h, t0 + t, all, by, scales + (2 + i) * MM_R, a, acc[i][t]);
            }
        }
    }
}

#endif
