// SPDX-License-Identifier: Apache-2.0
/* matmul_sums.h: what 32 inputs of a panel and some rows of activations come to (words: matmul_quant.h, which includes
 * this).
 *
 * Integer part. The sum of 32 products (16 where scales are by 16) is exact, in one of three ways:
 *  - MM_DOT32: VPDPBUSD of unsigned codes, int32 throughout. Codes are taken times 2^mm_shift so that the offset of
 *    most formats becomes 128 and one bias serves all; the factor 2^-shift goes into the scale, exactly.
 *  - else, codes of up to six bits: VPMADDUBSW, whose int16 sums of two products are added as int16, then widened once.
 *    It saturates only beyond 32767 and the largest is 63 * 127 * 2 = 16002. The additions wrap, so only the end
 *    matters:
 *      with a bias the end is the sum of (code - offset) * activation:
 *        4 bits, 16 products <= 8 * 127 * 16 = 16256
 *        5 bits, 16 products <= 16 * 127 * 16 = 32512
 *        6 bits, 8 products <= 32 * 127 * 8 = 32512 (and so for Q3_K, codes times 8)
 *      without (formats with a minimum):
 *        4 bits, 16 products <= 15 * 127 * 16 = 30480
 *        5 bits, 8 products <= 31 * 127 * 8 = 31496
 *        2 bits, 8 products <= 3 * 127 * 8 = 3048
 *  - else, codes of eight bits: the sign of the weight goes to the activation, VPMADDUBSW of |w| <= 128 gives at most
 *    128 * 127 * 2 = 32512, widened each time.
 *  These bounds hold for every code that a file can hold and activation codes in [-127, 127]. A row that holds NaN or
 *  infinity may have other codes and wrong sums: its scale is NaN or infinite, and so is the result.
 * Float part. Per 32 inputs, in order of k: acc = fma(sum, scale_w * scale_a, acc), or with scales by 16
 *  acc = fma(fma(sum1, scale1, sum0 * scale0), scale_a, acc); a minimum is one more fma with the sum of the
 *  activations: in formats of 32 elements behind the products, in those of 256 behind the span, so that a minimum is
 *  loaded once for all rows of a tile. Where scales by 16 are small integers times d (mm_small_scales), those integers
 *  belong to the exact part: 32 products come to x = scale0 * sum0 + scale1 * sum1, below 2^24, part = fma(x, scale_a,
 *  part), and behind the span acc = fma(part, d, acc). The sequence depends on nothing but the format, so every number
 *  of rows gives the same bits. */
#ifndef WEFT_KERNELS_SIMD_MATMUL_SUMS_H
#define WEFT_KERNELS_SIMD_MATMUL_SUMS_H

#include "kernels/simd/matmul_codes.h"
#include "kernels/simd/next.h"
#include "kernels/simd/unroll.h"

/* How many sums the 32 products are split into. */
MM_INLINE int mm_parts(int f)
{
    return mm_by_16(f) || (!MM_DOT32 && (f == WEFT_Q5_1 || f == WEFT_Q5_K)) ? 2 : 1;
}

/* Are minimums added with the products of their inputs, or behind the span? */
MM_INLINE int mm_min_with_products(int f)
{
    return mm_has_min(f) && !mm_is_256(f);
}

MM_INLINE int mm_min_with_span(int f)
{
    return mm_has_min(f) && mm_is_256(f);
}

/* The word at which a sum starts, or NULL where it starts at zero; part p of half h of row t of T. */
MM_INLINE const uint8_t *mm_bias_of(int f, const uint8_t *a, int h, int n_rows, int t, int p)
{
    switch (f) {
    case WEFT_Q4_0: return a + (MM_DOT32 && h ? mm_bias32_at(n_rows) : mm_bias8_at(n_rows)) + 4 * (2 * t + h);
    case WEFT_Q5_0: return a + mm_bias32_at(n_rows) + 4 * (2 * t + h);
    case WEFT_Q8_0:
    case WEFT_IQ4_NL:
    case WEFT_IQ4_XS: return MM_DOT32 ? a + mm_bias32_at(n_rows) + 4 * (2 * t + h) : NULL;
    case WEFT_Q3_K:
    case WEFT_Q6_K: return a + mm_bias16_at(n_rows) + 4 * (4 * t + 2 * h + p);
    default: return NULL;
    }
}

/* Minimums of half a step. */
MM_INLINE int mm_mins(int f)
{
    return mm_by_16(f) ? 2 : 1;
}

/* The word that minimum i of half h is taken times: row t of n_rows. */
MM_INLINE const uint8_t *mm_sum_of(int f, const uint8_t *a, int h, int n_rows, int t, int i)
{
    return mm_by_16(f) ? a + mm_sum16_at(n_rows) + 4 * (4 * t + 2 * h + i) : a + mm_sum32_at(n_rows) + 4 * (2 * t + h);
}

#if !MM_DOT32
/* acc + products of the four codes per row in w and in x. `fresh`: acc is zero. */
MM_INLINE vi mm_dot_reg(int f, vi acc, int fresh, vi w, vi x)
{
    if (mm_is_signed(f)) {
        const vi pairs = mm_sum_pairs(mm_mul_pairs_signed(w, x));
        return vi_keep(fresh ? pairs : vi_add32(acc, pairs));
    }
    const vi pairs = mm_mul_pairs(w, x);
    return vi_keep(fresh ? pairs : mm_add16(acc, pairs));
}
#endif

/* The same with the word at a. */
MM_INLINE vi mm_dot(int f, vi acc, int fresh, vi w, const uint8_t *a)
{
#if MM_DOT32
    (void)f, (void)fresh;
    return mm_dot_word(acc, w, a);
#else
    return mm_dot_reg(f, acc, fresh, w, vi_word(a));
#endif
}

/* int32 sums from what mm_dot left. */
MM_INLINE vi mm_dot_end(int f, vi acc)
{
    return MM_DOT32 || mm_is_signed(f) ? acc : mm_sum_pairs(acc);
}

/* Lines that are asked for, by a step or at once, from `at` on; NULL: none. */
typedef struct mm_asks {
    const char *at;
    int lines;
} mm_asks;

/* The i-th sixteenth of them. Asked for at once, they fill the places where a core keeps what it waits for, and what is
 * multiplied next waits behind them. */
MM_INLINE void mm_ask(mm_asks asks, int i)
{
    const int first = (i * asks.lines + 15) / 16;
    if (!asks.at) return;
    simd_fence();
    UNROLL for (int l = first; l < first + 2; l++) /* a step has at most 17 */
    {
        if (16 * l < (i + 1) * asks.lines) _mm_prefetch(asks.at + 64 * l, _MM_HINT_T1);
    }
}

/* Of each strip of a panel: what is summed of a row, codes, the scales of half a step. */
typedef vf mm_acc[MM_STRIPS];
typedef vi mm_codes[MM_STRIPS];
typedef mm_scales mm_half_scales[MM_STRIPS];

/* What rows of a tile meet in a step. */
typedef struct mm_step {
    const uint8_t *c;         /* its codes */
    const mm_codes *made;     /* codes of one half, made of them; NULL: they are made as they are wanted */
    const mm_half_scales *sc; /* of each half */
    const uint8_t *a;         /* activations of the whole tile */
    mm_asks asks;
} mm_step;

/* Are both halves of a step taken side by side? A register of nibbles is loaded once then, and there are twice as many
 * sums to hide latency; at most four rows have registers for that, or one where panels are two strips. Where halves lie
 * apart it is slower. */
MM_INLINE int mm_takes_both(int f, int n)
{
    return mm_parts(f) == 1 && mm_step_regs(f) < 16 && (MM_DOT32 ? n <= 4 : MM_STRIPS == 2 && n == 1);
}

/* The scales of half h of step s of the span at w, whose heads are hd. */
MM_INLINE void mm_load_half_scales(int f, const uint8_t *w, const mm_head *hd, int64_t s, int h, mm_half_scales sc)
{
    UNROLL for (int j = 0; j < MM_STRIPS; j++) mm_load_scales(f, w, j, &hd[j], s, h, &sc[j]);
}

/* acc and minimum i of half h of a step, m: of row t of n_rows. */
MM_INLINE vf mm_add_min(int f, int h, int i, int n_rows, int t, vf m, const uint8_t *a, vf acc)
{
    return vf_fma(m, vf_word(mm_sum_of(f, a, h, n_rows, t, i)), acc);
}

/* Rows t0..t0+n-1 of a tile of n_rows: adds 32 products of half h of a step to their acc (mm_small_scales: the span's
 * part), or those of its `halves` halves from h on, each with scales of its own. Four rows side by side hide the
 * latency of the multipliers. */
MM_INLINE void mm_half_rows(int f, int h, int halves, int n_rows, int t0, int n, const mm_step *step, mm_acc *acc)
{
    const int parts = mm_parts(f);
    const uint8_t *const c = step->c, *const a = step->a;
    const mm_codes *const w = step->made;
    const mm_half_scales *sc = step->sc + h;
    vi sum[4][2][MM_STRIPS]; /* of parts, or of halves */
    UNROLL for (int i = 0; i < halves; i++)
    {
        UNROLL for (int t = 0; t < n; t++)
        {
            UNROLL for (int p = 0; p < parts; p++)
            {
                const uint8_t *bias = mm_bias_of(f, a, h + i, n_rows, t0 + t, p);
                UNROLL for (int j = 0; j < MM_STRIPS; j++) sum[t][i + p][j] = bias ? vi_word(bias) : (vi){0};
            }
        }
    }
    UNROLL for (int g = 0; g < 8; g++)
    {
        UNROLL for (int i = 0; i < halves; i++)
        {
            const int p = parts == 2 ? g / 4 : 0, fresh = g == (p ? 4 : 0) && !mm_bias_of(f, a, h + i, n_rows, 0, 0);
            mm_ask(step->asks, halves * (8 * h + g) + i);
            UNROLL for (int j = 0; j < MM_STRIPS; j++)
            {
                const vi code = w ? w[g][j] : mm_code(f, c + j * MM_VEC, h + i, g);
                UNROLL for (int t = 0; t < n; t++)
                {
                    vi *to = &sum[t][i + p][j];
                    *to = mm_dot(f, *to, fresh, code, a + 64 * (t0 + t) + 32 * (h + i) + 4 * g);
                }
            }
        }
    }
    UNROLL for (int i = 0; i < halves; i++, sc++)
    {
        UNROLL for (int t = 0; t < n; t++)
        {
            const int r = t0 + t;
            const vf scale = vf_word(a + mm_scale_at(n_rows) + 4 * (2 * r + h + i));
            UNROLL for (int j = 0; j < MM_STRIPS; j++)
            {
                const mm_scales *s = &(*sc)[j];
                vf *to = &acc[t][j];
                vi first = mm_dot_end(f, sum[t][i][j]);
                if (mm_by_16(f)) {
                    vf x = vf_mul(vf_from_int(first), s->d[0]);
                    x = vf_fma(vf_from_int(mm_dot_end(f, sum[t][1][j])), s->d[1], x);
                    *to = vf_fma(x, scale, *to);
                } else {
                    if (parts == 2) first = vi_add32(first, mm_dot_end(f, sum[t][1][j]));
                    *to = vf_fma(vf_from_int(first), vf_mul(s->d[0], scale), *to);
                }
                if (mm_min_with_products(f)) *to = mm_add_min(f, h + i, 0, n_rows, r, s->m[0], a, *to);
            }
        }
    }
}

/* Rows t0..t0+n-1 of a tile of n_rows: adds the minimums of the span at w, whose heads are hd, to acc; its first step
 * is at a. */
MM_INLINE void mm_span_mins(int f, int n_rows, int t0, int n, const uint8_t *w, const mm_head *hd, const uint8_t *a,
                            mm_acc *acc)
{
    for (int s = 0; s < mm_steps(f); s++, a += n_rows * MM_ROW_STEP) {
        UNROLL for (int h = 0; h < 2; h++)
        {
            mm_half_scales sc;
            mm_load_half_scales(f, w, hd, s, h, sc);
            UNROLL for (int i = 0; i < mm_mins(f); i++)
            {
                UNROLL for (int t = 0; t < n; t++)
                {
                    UNROLL for (int j = 0; j < MM_STRIPS; j++) acc[t][j] =
                        mm_add_min(f, h, i, n_rows, t0 + t, sc[j].m[i], a, acc[t][j]);
                }
            }
        }
    }
}

#endif
