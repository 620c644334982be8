/* matmul_pack.h: from the rows of a file to panels (matmul_layout.h). Plain C; R is a constant of the tier that includes it.
 *
 * One span of one row is first taken apart into numbers (mm_span), then put in place; what the numbers mean is in src/quant. */
#ifndef WEFT_KERNELS_SIMD_MATMUL_PACK_H
#define WEFT_KERNELS_SIMD_MATMUL_PACK_H

#include <string.h>

#include "kernels/simd/matmul_layout.h"

typedef struct mm_span {
    uint8_t q[256];   /* codes, in order of k */
    uint8_t head[24]; /* the row's part of the head: bytes for 256-element formats, after d and dmin */
    uint16_t d[2];    /* f16 bits: of the two blocks, or d and dmin */
    uint16_t m[2];
} mm_span;

MM_INLINE uint16_t mm_u16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

/* One block of 32 elements, into half h. */
MM_INLINE void mm_take_32(int f, const uint8_t *b, int h, mm_span *s)
{
    uint8_t *q = s->q + 32 * h;
    s->d[h] = mm_u16(b);
    b += 2;
    if (mm_has_min(f)) {
        s->m[h] = mm_u16(b);
        b += 2;
    }
    if (f == WEFT_Q8_0) {
        for (int i = 0; i < 32; i++) q[i] = b[i] ^ 0x80;
        return;
    }
    uint32_t fifth = 0;
    int five = f == WEFT_Q5_0 || f == WEFT_Q5_1;
    if (five) {
        memcpy(&fifth, b, 4);
        b += 4;
    }
    for (int i = 0; i < 16; i++) q[i] = b[i] & 15;
    for (int i = 0; i < 16; i++) q[16 + i] = b[i] >> 4;
    if (five) {
        for (int i = 0; i < 32; i++) q[i] = (uint8_t)(q[i] | (fifth >> i & 1) << 4);
    }
}

/* The eight 6-bit scales and eight 6-bit minimums of Q4_K and Q5_K. */
MM_INLINE void mm_take_scales_k4(const uint8_t *b, uint8_t *out)
{
    for (int j = 0; j < 4; j++) {
        out[j] = b[j] & 63;
        out[8 + j] = b[4 + j] & 63;
        out[4 + j] = (uint8_t)((b[8 + j] & 15) | (b[j] >> 6) << 4);
        out[12 + j] = (uint8_t)(b[8 + j] >> 4 | (b[4 + j] >> 6) << 4);
    }
}

MM_INLINE void mm_take_q2_k(const uint8_t *b, mm_span *s)
{
    memcpy(s->head, b, 16);
    for (int i = 0; i < 256; i++) s->q[i] = b[16 + (i >> 7) * 32 + (i & 31)] >> (i >> 5 & 3) * 2 & 3;
    s->d[0] = mm_u16(b + 80);
    s->d[1] = mm_u16(b + 82);
}

MM_INLINE void mm_take_q3_k(const uint8_t *b, mm_span *s)
{
    const uint8_t *high = b, *low = b + 32, *sc = b + 96;
    for (int i = 0; i < 256; i++) {
        int two = low[(i >> 7) * 32 + (i & 31)] >> (i >> 5 & 3) * 2 & 3;
        s->q[i] = (uint8_t)(two | (high[i & 31] >> (i >> 5) & 1) << 2);
    }
    for (int j = 0; j < 16; j++) {
        int four = j < 8 ? sc[j] & 15 : sc[j - 8] >> 4;
        s->head[j] = (uint8_t)((four | (sc[8 + j % 4] >> j / 4 * 2 & 3) << 4) - 32);
    }
    s->d[0] = mm_u16(b + 108);
}

MM_INLINE void mm_take_q45_k(int f, const uint8_t *b, mm_span *s)
{
    s->d[0] = mm_u16(b);
    s->d[1] = mm_u16(b + 2);
    mm_take_scales_k4(b + 4, s->head);
    const uint8_t *fifth = b + 16, *low = f == WEFT_Q5_K ? b + 48 : b + 16;
    for (int j = 0; j < 8; j++) {
        for (int i = 0; i < 32; i++) s->q[32 * j + i] = low[32 * (j / 2) + i] >> j % 2 * 4 & 15;
        if (f != WEFT_Q5_K) continue;
        for (int i = 0; i < 32; i++) s->q[32 * j + i] = (uint8_t)(s->q[32 * j + i] | (fifth[i] >> j & 1) << 4);
    }
}

MM_INLINE void mm_take_q6_k(const uint8_t *b, mm_span *s)
{
    for (int n = 0; n < 2; n++) {
        const uint8_t *low = b + 64 * n, *high = b + 128 + 32 * n;
        for (int j = 0; j < 4; j++) {
            uint8_t *q = s->q + 128 * n + 32 * j;
            for (int i = 0; i < 32; i++) {
                q[i] = (uint8_t)((low[32 * (j % 2) + i] >> j / 2 * 4 & 15) | (high[i] >> 2 * j & 3) << 4);
            }
        }
    }
    memcpy(s->head, b + 192, 16);
    s->d[0] = mm_u16(b + 208);
}

MM_INLINE void mm_take_iq4_xs(const uint8_t *b, mm_span *s)
{
    s->d[0] = mm_u16(b);
    unsigned high = mm_u16(b + 2);
    for (int j = 0; j < 8; j++) {
        unsigned low = b[4 + j / 2] >> j % 2 * 4 & 15;
        s->head[j] = (uint8_t)((low | (high >> 2 * j & 3) << 4) - 32);
        for (int i = 0; i < 16; i++) s->q[32 * j + i] = b[8 + 16 * j + i] & 15;
        for (int i = 0; i < 16; i++) s->q[32 * j + 16 + i] = b[8 + 16 * j + i] >> 4;
    }
}

MM_INLINE void mm_take_256(int f, const uint8_t *b, mm_span *s)
{
    switch (f) {
    case WEFT_Q2_K: mm_take_q2_k(b, s); break;
    case WEFT_Q3_K: mm_take_q3_k(b, s); break;
    case WEFT_Q6_K: mm_take_q6_k(b, s); break;
    case WEFT_IQ4_XS: mm_take_iq4_xs(b, s); break;
    default: mm_take_q45_k(f, b, s); break;
    }
}

/* Codes of one step of row r; four codes are one word, and a register is r words. */
MM_INLINE void mm_put_step(int f, int r_panel, int r, const uint8_t *q, uint8_t *dst)
{
    uint32_t x[16], w;
    memcpy(x, q, sizeof x);
    dst += 4 * r;
    const int reg = 4 * r_panel;
    if (f == WEFT_Q8_0) {
        for (int g = 0; g < 16; g++) memcpy(dst + g * reg, &x[g], 4);
        return;
    }
    int low_bits = f == WEFT_Q6_K ? 2 : f == WEFT_Q5_0 || f == WEFT_Q5_1 || f == WEFT_Q5_K ? 1 : 0;
    if (f != WEFT_Q2_K && f != WEFT_Q3_K) {
        for (int g = 0; g < 8; g++) {
            w = (x[g] >> low_bits & 0x0F0F0F0F) | (x[g + 8] >> low_bits & 0x0F0F0F0F) << 4;
            memcpy(dst + g * reg, &w, 4);
        }
        dst += 8 * reg;
    }
    if (low_bits == 2 || f == WEFT_Q2_K || f == WEFT_Q3_K) {
        for (int i = 0; i < 4; i++) {
            w = 0;
            for (int g = 0; g < 4; g++) w |= (x[4 * i + g] & 0x03030303) << 2 * g;
            memcpy(dst + i * reg, &w, 4);
        }
        dst += 4 * reg;
    }
    if (low_bits == 1 || f == WEFT_Q3_K) {
        int bit = f == WEFT_Q3_K ? 2 : 0;
        for (int h = 0; h < 2; h++) {
            w = 0;
            for (int g = 0; g < 8; g++) w |= (x[8 * h + g] >> bit & 0x01010101) << g;
            memcpy(dst + h * reg, &w, 4);
        }
    }
}

/* The head's part of row r. */
MM_INLINE void mm_put_head(int f, int r_panel, int r, const mm_span *s, uint8_t *dst)
{
    memcpy(dst + 2 * r, &s->d[0], 2);
    if (!mm_is_256(f)) {
        memcpy(dst + 2 * (r_panel + r), &s->d[1], 2);
        if (mm_has_min(f)) {
            memcpy(dst + 2 * (2 * r_panel + r), &s->m[0], 2);
            memcpy(dst + 2 * (3 * r_panel + r), &s->m[1], 2);
        }
        return;
    }
    int at = 2;
    if (mm_has_min(f)) {
        memcpy(dst + 2 * (r_panel + r), &s->d[1], 2);
        at = 4;
    }
    for (int i = 0; i < mm_head_row(f) - at; i++) dst[(at + i) * r_panel + r] = s->head[i];
}

/* weft__matmul.pack for format f and panels of r_panel rows. */
MM_INLINE void mm_pack(int f, int r_panel, const uint8_t *rows, size_t row_bytes, int n_rows, int64_t k, uint8_t *panel)
{
    const size_t block_bytes = f == WEFT_Q4_0 || f == WEFT_IQ4_NL ? 18
                               : f == WEFT_Q4_1                   ? 20
                               : f == WEFT_Q5_0                   ? 22
                               : f == WEFT_Q5_1                   ? 24
                               : f == WEFT_Q8_0                   ? 34
                               : f == WEFT_Q2_K                   ? 84
                               : f == WEFT_Q3_K                   ? 110
                               : f == WEFT_Q4_K                   ? 144
                               : f == WEFT_Q5_K                   ? 176
                               : f == WEFT_Q6_K                   ? 210
                                                                  : 136;
    memset(panel, 0, mm_panel_bytes(f, r_panel, k));
    const int64_t n_spans = mm_spans(f, k);
    const size_t span_bytes = (size_t)mm_span_bytes(f, r_panel);
    for (int r = 0; r < n_rows; r++) {
        const uint8_t *b = rows + (size_t)r * row_bytes;
        uint8_t *dst = panel;
        for (int64_t i = 0; i < n_spans; i++, dst += span_bytes) {
            mm_span s;
            if (mm_is_256(f)) {
                mm_take_256(f, b, &s);
                b += block_bytes;
            } else {
                mm_take_32(f, b, 0, &s);
                b += block_bytes;
                if (2 * i + 1 < k / 32) {
                    mm_take_32(f, b, 1, &s);
                    b += block_bytes;
                } else { /* half a span of padding */
                    memset(s.q + 32, 0, 32);
                    s.d[1] = s.m[1] = 0;
                }
            }
            mm_put_head(f, r_panel, r, &s, dst);
            for (int j = 0; j < mm_steps(f); j++) {
                mm_put_step(f, r_panel, r, s.q + 64 * j, dst + mm_head_row(f) * r_panel + j * mm_step_regs(f) * 4 * r_panel);
            }
        }
    }
}

#endif
