// SPDX-License-Identifier: Apache-2.0
/* expand_dot.h: adding B h to outputs by dot products of bytes: h is rounded to 8 bits with one scale (layout:
 * simd/expand_layout.h). Sums are exact, then there is one fused multiply-add; so the number of rows does not change a
 * bit.
 *
 * The including file has included its tier's matmul_vec.h, and defines dot_codes. By VPDPBUSD, codes are unsigned, and
 * sums int32 throughout (1024 ranks of 255 * 127). By VPMADDUBSW, codes of 8 bits are signed and their products widened
 * each time (matmul_sums.h); those of 4 bits are summed as int16 for 32 ranks, 16 products of at most 15 * 127 in
 * each. */
#ifndef WEFT_KERNELS_SIMD_EXPAND_DOT_H
#define WEFT_KERNELS_SIMD_EXPAND_DOT_H

#include "kernels/simd/expand_layout.h"
#include "kernels/simd/next.h"
#include "kernels/simd/unroll.h"

enum {
    DOT_TOGETHER = 4,                /* rows that share a register of codes */
    DOT_AHEAD = 8192,                /* bytes that are prefetched */
    DOT_HEAD = 8,                    /* of a prepared h: f32 scale, int32 that sums start from */
    DOT_REG = 4 * WEFT__EXPAND_ROWS, /* bytes of codes of all outputs of a panel */
    DOT_OFFSET = MM_DOT32 ? 128 : 0  /* of codes of 8 bits */
};

typedef int dot_int32 __attribute__((vector_size(MM_VEC)));

/* codes[i] = h[i] * inverse, to the nearest, for i < rank; returns their sum. Bytes behind them, up to a multiple of 8,
 * become 0. */
static int32_t dot_codes(const float *h, int64_t rank, double inverse, uint8_t *codes);

/* Ranks of a register of codes. */
MM_INLINE int dot_ranks(uint32_t f)
{
    return f == WEFT_Q8_0 ? 4 : 8;
}

MM_INLINE size_t dot_panel_bytes(uint32_t f, int64_t rank)
{
    return EX_SCALES + (size_t)ex_groups(rank, dot_ranks(f)) * DOT_REG;
}

static void dot_pack(uint32_t f, const float *b, int64_t ldb, float factor, int n_rows, int64_t rank, uint8_t *panel)
{
    int8_t codes[WEFT__EXPAND_RANK_MAX];
    ex_put_scales(f, b, ldb, factor, n_rows, rank, panel);
    memset(panel + EX_SCALES, f == WEFT_Q8_0 ? DOT_OFFSET : 0x88, dot_panel_bytes(f, rank) - EX_SCALES);
    for (int r = 0; r < n_rows; r++, b += ldb) {
        ex_codes(f, b, factor, rank, ex_scale(panel, r), codes);
        for (int64_t i = 0; i < rank; i++) {
            uint8_t *to = panel + EX_SCALES + i / dot_ranks(f) * DOT_REG + 4 * r + i % 4;
            if (f == WEFT_Q8_0) *to = (uint8_t)(codes[i] + DOT_OFFSET);
            else *to = (uint8_t)(i % 8 < 4 ? (*to & 0xF0) | (codes[i] + 8) : (*to & 0x0F) | (codes[i] + 8) << 4);
        }
    }
}

static size_t dot_h_bytes(int64_t rank)
{
    return DOT_HEAD + (size_t)ex_groups(rank, 8) * 8;
}

/* Magnitudes are compared as integers, so that a NaN or an infinity wins; the scale shows it in the result. */
static void dot_h_put(uint32_t f, const float *h, int64_t rank, uint8_t *to)
{
    uint32_t most = 0;
    int32_t sum = 0;
    for (int64_t i = 0; i < rank; i++) {
        uint32_t bits = weft__f32_bits(h[i]) & 0x7FFFFFFF;
        most = bits > most ? bits : most;
    }
    float amax = weft__f32_from_bits(most), scale = most < 0x7F800000 ? amax / 127 : NAN;
    if (amax > 0 && most < 0x7F800000) sum = dot_codes(h, rank, 127.0 / amax, to + DOT_HEAD);
    else memset(to + DOT_HEAD, 0, dot_h_bytes(rank) - DOT_HEAD);
    int32_t bias = (f == WEFT_Q8_0 ? -DOT_OFFSET : -8) * sum;
    memcpy(to, &scale, sizeof scale);
    memcpy(to + 4, &bias, sizeof bias);
}

/* Sums of MM_R outputs of a panel, whose first register of codes is at c. */
MM_INLINE void dot_sums(uint32_t f, int n_rows, const uint8_t *c, int64_t n_regs, const void *const *h, vi *sum)
{
    vi other[DOT_TOGETHER]; /* VPDPBUSD: of the high nibbles, sixteen times; VPMADDUBSW: of 4 bits, int16 */
    UNROLL for (int t = 0; t < n_rows; t++)
    {
        sum[t] = vi_word((const uint8_t *)h[t] + 4);
        other[t] = (vi){0};
    }
    for (int64_t i = 0; i < n_regs; i++) {
        const vi w = vi_load(c + i * DOT_REG);
        UNROLL for (int t = 0; t < n_rows; t++)
        {
            const uint8_t *codes = (const uint8_t *)h[t] + DOT_HEAD + i * dot_ranks(f);
#if MM_DOT32
            if (f == WEFT_Q8_0) {
                sum[t] = mm_dot_word(sum[t], w, codes);
            } else {
                sum[t] = mm_dot_word(sum[t], vi_and(w, vi_bytes(0x0F)), codes);
                other[t] = mm_dot_word(other[t], vi_and(w, vi_bytes(0xF0)), codes + 4);
            }
#else
            if (f == WEFT_Q8_0) {
                sum[t] = vi_add32(sum[t], mm_sum_pairs(mm_mul_pairs_signed(w, vi_word(codes))));
                continue;
            }
            const vi low = mm_mul_pairs(vi_and(w, vi_bytes(15)), vi_word(codes));
            const vi high = mm_mul_pairs(vi_and(vi_right(w, 4), vi_bytes(15)), vi_word(codes + 4));
            other[t] = i % 4 ? mm_add16(other[t], mm_add16(low, high)) : mm_add16(low, high);
            if (i % 4 == 3 || i + 1 == n_regs) sum[t] = vi_add32(sum[t], mm_sum_pairs(other[t]));
#endif
        }
    }
#if MM_DOT32
    if (f == WEFT_Q8_0) return;
    UNROLL for (int t = 0; t < n_rows; t++) sum[t] = vi_add32(sum[t], (vi)((dot_int32)other[t] >> 4)); /* exact */
#endif
}

/* One panel times n_rows rows, all 16 outputs or n. */
MM_INLINE void dot_panel(uint32_t f, int n_rows, const uint8_t *panel, int64_t n_regs, const void *const *h,
                         float *const *y, int64_t at, int n)
{
    UNROLL for (int r = 0; r < WEFT__EXPAND_ROWS; r += MM_R)
    {
        vi sum[DOT_TOGETHER];
        if (r && n <= r) return;
        dot_sums(f, n_rows, panel + EX_SCALES + 4 * r, n_regs, h, sum);
        const vf scale = vf_load_eighths(panel, r);
        UNROLL for (int t = 0; t < n_rows; t++)
        {
            const vf s = vf_mul(scale, vf_word(h[t])), x = vf_from_int(sum[t]);
            float *const to = y[t] + at + r;
            if (n - r >= MM_R) {
                vf_store(to, vf_fma(x, s, vf_load(to)));
            } else {
                vf_store_part(to, vf_fma(x, s, vf_load_part(to, n - r)), n - r);
            }
        }
    }
}

MM_INLINE void dot_rows(uint32_t f, int n_rows, int64_t n_regs, const uint8_t *panel, int64_t n_out,
                        const void *const *h, float *const *y, const void *next)
{
    const size_t bytes = EX_SCALES + (size_t)n_regs * DOT_REG;
    const simd_next ahead =
        simd_next_of(panel, (size_t)ex_groups(n_out, WEFT__EXPAND_ROWS) * bytes, bytes, DOT_AHEAD, next);
    int64_t at = 0;
    for (; at + WEFT__EXPAND_ROWS <= n_out; at += WEFT__EXPAND_ROWS, panel += bytes) {
        const uintptr_t ask = simd_ask(&ahead, (uintptr_t)panel);
        for (size_t l = 0; l < bytes; l += 64) _mm_prefetch((const char *)(ask + l), _MM_HINT_T0);
        dot_panel(f, n_rows, panel, n_regs, h, y, at, WEFT__EXPAND_ROWS);
    }
    if (at < n_out) dot_panel(f, n_rows, panel, n_regs, h, y, at, (int)(n_out - at));
}

/* For usual ranks, 8, 16 and (4 bits) 32, the number of registers is a constant, and loops over it are unrolled. */
MM_INLINE void dot_some_rows(uint32_t f, int n_rows, int64_t rank, const uint8_t *panel, int64_t n_out,
                             const void *const *h, float *const *y, const void *next)
{
    const int64_t n_regs = ex_groups(rank, dot_ranks(f));
    switch (n_regs) {
    case 1: dot_rows(f, n_rows, 1, panel, n_out, h, y, next); break; /* 4 bits */
    case 2: dot_rows(f, n_rows, 2, panel, n_out, h, y, next); break;
    case 4: dot_rows(f, n_rows, 4, panel, n_out, h, y, next); break;
    default: dot_rows(f, n_rows, n_regs, panel, n_out, h, y, next); break;
    }
}

/* weft__expand.run */
MM_INLINE void dot_run(uint32_t f, const void *panels, int64_t n_out, int64_t rank, const void *const *h, int m,
                       float *const *y, const void *next)
{
    for (; m > 0; m -= DOT_TOGETHER, h += DOT_TOGETHER, y += DOT_TOGETHER) {
        const void *then = m <= DOT_TOGETHER ? next : panels; /* else they are read once more */
        switch (m) {
        case 1: dot_some_rows(f, 1, rank, panels, n_out, h, y, then); break;
        case 2: dot_some_rows(f, 2, rank, panels, n_out, h, y, then); break;
        case 3: dot_some_rows(f, 3, rank, panels, n_out, h, y, then); break;
        default: dot_some_rows(f, 4, rank, panels, n_out, h, y, then); break;
        }
    }
}

#endif
