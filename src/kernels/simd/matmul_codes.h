// SPDX-License-Identifier: Apache-2.0
/* matmul_codes.h: what the bytes of a panel of quantized weights are (matmul_layout.h): codes, a register at a time,
 * and scales. The including file has included its tier's matmul_vec.h. */
#ifndef WEFT_KERNELS_SIMD_MATMUL_CODES_H
#define WEFT_KERNELS_SIMD_MATMUL_CODES_H

#include "kernels/simd/matmul_layout.h"
#include "quant/blocks.h"

/* Strips of a panel: MM_R rows each. What strip j has of a register of the layout begins MM_VEC * j into it. */
enum { MM_STRIPS = MM_PANEL / MM_R };

/* Are scales of 16 inputs integers so small that a code times its scale is one of eight bits? Q2_K: 3 * 15; Q3_K: -124
 * to 128. */
MM_INLINE int mm_small_scales(int f)
{
    return MM_DOT32 && (f == WEFT_Q2_K || f == WEFT_Q3_K);
}

/* ---- codes ---- */

/* Codes of eight bits that are signed here. */
MM_INLINE int mm_is_signed(int f)
{
    return !MM_DOT32 && (f == WEFT_Q8_0 || f == WEFT_IQ4_NL || f == WEFT_IQ4_XS);
}

/* Codes of half h come times 2^shift. */
MM_INLINE int mm_shift(int f, int h)
{
    switch (f) {
    case WEFT_Q4_0:
    case WEFT_Q4_1:
    case WEFT_Q4_K: return MM_DOT32 && h ? 4 : 0;
    case WEFT_Q5_0:
    case WEFT_Q5_1:
    case WEFT_Q5_K: return MM_DOT32 ? 3 : 0;
    case WEFT_Q6_K: return MM_DOT32 ? 2 : 0;
    case WEFT_Q3_K: return MM_DOT32 ? 5 : 3;
    default: return 0;
    }
}

/* x with bit `from` moved to bit `to`; bits of neighbouring bytes come in. */
MM_INLINE vi mm_move(vi x, int from, int to)
{
    return to > from ? vi_left(x, to - from) : to < from ? vi_right(x, from - to) : x;
}

MM_INLINE vi mm_field(vi x, int from, int bits, int to)
{
    return vi_and(mm_move(x, from, to), vi_bytes(((1 << bits) - 1) << to));
}

MM_INLINE vi mm_or_field(vi a, vi x, int from, int bits, int to)
{
    return vi_or_and(a, mm_move(x, from, to), vi_bytes(((1 << bits) - 1) << to));
}

/* Codes of group g of half h; c: the strip's first byte in the step. */
MM_INLINE vi mm_code(int f, const uint8_t *c, int h, int g)
{
    const int to = mm_shift(f, h);
    switch (f) {
    case WEFT_Q8_0: {
        vi w = vi_load(c + (8 * h + g) * MM_REG);
        return MM_DOT32 ? w : vi_xor(w, vi_bytes(0x80));
    }
    case WEFT_Q2_K: return mm_field(vi_load(c + (2 * h + g / 4) * MM_REG), 2 * (g % 4), 2, to);
    case WEFT_Q3_K: {
        vi w = mm_field(vi_load(c + (2 + 2 * h + g / 4) * MM_REG), 2 * (g % 4), 2, to);
        return mm_or_field(w, vi_load(c + h * MM_REG), g, 1, to + 2);
    }
    default: break;
    }
    const vi nibbles = vi_load_once(c + (mm_plane_regs(f) + g) * MM_REG);
    switch (f) {
    case WEFT_IQ4_NL:
    case WEFT_IQ4_XS: {
        vi table = vi_table(weft__block_iq4_values);
        if (MM_DOT32) table = vi_xor(table, vi_bytes(0x80));
        return vi_lookup(table, mm_field(nibbles, 4 * h, 4, 0));
    }
    case WEFT_Q5_0:
    case WEFT_Q5_1:
    case WEFT_Q5_K: return mm_or_field(mm_field(nibbles, 4 * h, 4, to + 1), vi_load(c + h * MM_REG), g, 1, to);
    case WEFT_Q6_K:
        return mm_or_field(mm_field(nibbles, 4 * h, 4, to + 2), vi_load(c + (2 * h + g / 4) * MM_REG), 2 * (g % 4), 2,
                           to);
    default:
        /* One mask for both halves, as registers are scarce where two panels are multiplied. */
        return to == 4 ? vi_and_not(vi_bytes(0x0F), nibbles) : mm_field(nibbles, 4 * h, 4, to);
    }
}

/* ---- scales ---- */

typedef struct mm_head {
    vf d[2]; /* 256-element formats: d * 2^-shift for each half; mm_small_scales: d */
    vf m;    /* -dmin */
} mm_head;

typedef struct mm_scales {
    vf d[2]; /* of 32 inputs, or of each 16; mm_small_scales: their integers * 2^-shift */
    vf m[2];
} mm_scales;

/* Exact. Not a multiplication, where the multipliers are the limit. */
MM_INLINE vf mm_unshift(int f, int h, vf d)
{
    const int shift = mm_shift(f, h);
    return shift ? vf_ldexp(d, vf_set((float)-shift)) : d;
}

/* Of the tables of f16 that a head begins with: table i, strip j. */
MM_INLINE vf mm_load_f16(const uint8_t *head, int i, int j)
{
    return vf_load_f16((const uint16_t *)head + i * MM_PANEL + j * MM_R);
}

MM_INLINE void mm_load_head(int f, const uint8_t *head, int j, mm_head *o)
{
    if (!mm_is_256(f)) return;
    vf d = mm_load_f16(head, 0, j);
    o->d[0] = mm_small_scales(f) ? d : mm_unshift(f, 0, d);
    o->d[1] = mm_small_scales(f) ? d : mm_unshift(f, 1, d);
    if (mm_has_min(f)) o->m = vf_mul(mm_load_f16(head, 1, j), vf_set(-1.0f));
}

/* The scales of quarter i of half h of step s, a byte for each row of strip j, in formats with scales by 16. */
MM_INLINE const uint8_t *mm_scales_by_16(int f, const uint8_t *head, int j, int64_t s, int h, int i)
{
    return head + ((mm_has_min(f) ? 4 : 2) + 2 * (2 * s + h) + i) * MM_PANEL + j * MM_R;
}

/* Scales and minimums of half h of step s, strip j. */
MM_INLINE void mm_load_scales(int f, const uint8_t *head, int j, const mm_head *hd, int64_t s, int h, mm_scales *o)
{
    if (!mm_is_256(f)) {
        o->d[0] = mm_unshift(f, h, mm_load_f16(head, h, j));
        if (mm_has_min(f)) o->m[0] = mm_load_f16(head, 2 + h, j);
        return;
    }
    const uint8_t *sc =
        head + ((mm_has_min(f) ? 4 : 2) + 2 * s + h) * MM_PANEL + j * MM_R; /* where there is one for each half */
    for (int i = 0; mm_by_16(f) && i < 2; i++) {
        const uint8_t *by_16 = mm_scales_by_16(f, head, j, s, h, i);
        const vf scale = f == WEFT_Q2_K ? vf_load_u4_low(by_16) : vf_load_s8(by_16);
        o->d[i] = mm_small_scales(f) ? mm_unshift(f, h, scale) : vf_mul(scale, hd->d[h]);
        if (f == WEFT_Q2_K) o->m[i] = vf_mul(vf_load_u4_high(by_16), hd->m);
    }
    if (f == WEFT_IQ4_XS) o->d[0] = vf_mul(vf_load_s8(sc), hd->d[h]);
    if (f == WEFT_Q4_K || f == WEFT_Q5_K) {
        o->d[0] = vf_mul(vf_load_u8(sc), hd->d[h]);
        o->m[0] = vf_mul(vf_load_u8(sc + 8 * MM_PANEL), hd->m);
    }
}

#endif
