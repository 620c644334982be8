// SPDX-License-Identifier: Apache-2.0
/* matmul_pack.c: from the rows of a file to panels (simd/matmul_layout.h). Plain C. Reentrant.
 *
 * One span of one row is first taken apart into numbers (mm_span), then put in place; what the numbers mean is in
 * src/quant. */
#include "kernels/simd/matmul_pack.h"

#include <string.h>

#include "quant/blocks.h"

typedef struct mm_span {
    uint8_t q[256];   /* codes, in order of k */
    uint8_t head[16]; /* 256-element formats: scales, and minimums where they are bytes of their own */
    uint16_t d[2];    /* f16 bits: of the two blocks, or d and dmin */
    uint16_t m[2];
} mm_span;

/* 32 codes of four bits, low halves first, and the fifth bits from qh or NULL. */
MM_INLINE void mm_take_nibbles(const uint8_t *qs, const uint8_t *qh, uint8_t *q)
{
    for (int i = 0; i < 16; i += 8) {
        uint64_t x, low, high;
        memcpy(&x, qs + i, 8);
        low = x & 0x0F0F0F0F0F0F0F0F;
        high = x >> 4 & 0x0F0F0F0F0F0F0F0F;
        memcpy(q + i, &low, 8);
        memcpy(q + 16 + i, &high, 8);
    }
    for (int i = 0; qh && i < 32; i += 8) {
        uint64_t x,
            bits = (uint64_t)qh[i / 8] * 0x0101010101010101u & 0x8040201008040201; /* bit j in byte j, where it is */
        bits = (bits + 0x007F7F7F7F7F7F7F) >> 3 & 0x1010101010101010; /* anything but zero carries into bit 7 */
        memcpy(&x, q + i, 8);
        x |= bits;
        memcpy(q + i, &x, 8);
    }
}

/* One block of 32 elements, into half h. */
MM_INLINE void mm_take_32(int f, const void *block, int h, mm_span *s)
{
    uint8_t *q = s->q + 32 * h;
    switch (f) {
    case WEFT_Q4_1: {
        const weft__block_q4_1 *b = block;
        s->d[h] = b->d;
        s->m[h] = b->m;
        mm_take_nibbles(b->qs, NULL, q);
        return;
    }
    case WEFT_Q5_0: {
        const weft__block_q5_0 *b = block;
        s->d[h] = b->d;
        mm_take_nibbles(b->qs, b->qh, q);
        return;
    }
    case WEFT_Q5_1: {
        const weft__block_q5_1 *b = block;
        s->d[h] = b->d;
        s->m[h] = b->m;
        mm_take_nibbles(b->qs, b->qh, q);
        return;
    }
    case WEFT_Q8_0: {
        const weft__block_q8_0 *b = block;
        s->d[h] = b->d;
        for (int i = 0; i < 32; i++) q[i] = (uint8_t)b->qs[i] ^ 0x80;
        return;
    }
    default: {
        const weft__block_q4_0 *b = block; /* and IQ4_NL, which differs in what codes mean */
        s->d[h] = b->d;
        mm_take_nibbles(b->qs, NULL, q);
        return;
    }
    }
}

MM_INLINE void mm_take_q2_k(const weft__block_q2_k *b, mm_span *s)
{
    for (int j = 0; j < 8; j++) {
        for (int i = 0; i < 32; i++) s->q[32 * j + i] = b->qs[32 * (j / 4) + i] >> j % 4 * 2 & 3;
    }
    memcpy(s->head, b->scales, 16);
    s->d[0] = b->d;
    s->d[1] = b->dmin;
}

MM_INLINE void mm_take_q3_k(const weft__block_q3_k *b, mm_span *s)
{
    for (int j = 0; j < 8; j++) {
        const uint8_t *low = b->qs + 32 * (j / 4);
        for (int i = 0; i < 32; i++)
            s->q[32 * j + i] = (uint8_t)((low[i] >> j % 4 * 2 & 3) | (b->hmask[i] >> j & 1) << 2);
    }
    for (int j = 0; j < 16; j++) s->head[j] = (uint8_t)weft__block_q3_k_scale(b->scales, j);
    s->d[0] = b->d;
}

/* Q4_K (qh NULL) and Q5_K */
MM_INLINE void mm_take_q45_k(const uint8_t *scales, const uint8_t *qs, const uint8_t *qh, mm_span *s)
{
    for (int j = 0; j < 8; j++) {
        weft__block_k4_scale_min(scales, j, &s->head[j], &s->head[8 + j]);
        for (int i = 0; i < 32; i++) s->q[32 * j + i] = qs[32 * (j / 2) + i] >> j % 2 * 4 & 15;
        if (!qh) continue;
        for (int i = 0; i < 32; i++) s->q[32 * j + i] = (uint8_t)(s->q[32 * j + i] | (qh[i] >> j & 1) << 4);
    }
}

MM_INLINE void mm_take_q6_k(const weft__block_q6_k *b, mm_span *s)
{
    for (int n = 0; n < 2; n++) {
        for (int j = 0; j < 4; j++) {
            uint8_t *q = s->q + 128 * n + 32 * j;
            const uint8_t *low = b->ql + 64 * n + 32 * (j % 2), *high = b->qh + 32 * n;
            for (int i = 0; i < 32; i++) q[i] = (uint8_t)((low[i] >> j / 2 * 4 & 15) | (high[i] >> 2 * j & 3) << 4);
        }
    }
    memcpy(s->head, b->scales, 16);
    s->d[0] = b->d;
}

MM_INLINE void mm_take_iq4_xs(const weft__block_iq4_xs *b, mm_span *s)
{
    for (int j = 0; j < 8; j++) {
        mm_take_nibbles(b->qs + 16 * j, NULL, s->q + 32 * j);
        s->head[j] = (uint8_t)weft__block_iq4_xs_scale(b, j);
    }
    s->d[0] = b->d;
}

MM_INLINE void mm_take_256(int f, const void *block, mm_span *s)
{
    const weft__block_q4_k *q4 = block;
    const weft__block_q5_k *q5 = block;
    switch (f) {
    case WEFT_Q2_K: mm_take_q2_k(block, s); return;
    case WEFT_Q3_K: mm_take_q3_k(block, s); return;
    case WEFT_Q6_K: mm_take_q6_k(block, s); return;
    case WEFT_IQ4_XS: mm_take_iq4_xs(block, s); return;
    case WEFT_Q4_K: mm_take_q45_k(q4->scales, q4->qs, NULL, s); break;
    default: mm_take_q45_k(q5->scales, q5->qs, q5->qh, s); break;
    }
    s->d[0] = q4->d;
    s->d[1] = q4->dmin; /* Q5_K begins in the same way */
}

/* Codes of one step of row r; four codes are one word, and a register is r words. */
MM_INLINE void mm_put_step(int f, int r, const uint8_t *q, uint8_t *dst)
{
    uint32_t x[16], w;
    memcpy(x, q, sizeof x);
    dst += 4 * r;
    if (f == WEFT_Q8_0) {
        for (int g = 0; g < 16; g++) memcpy(dst + g * MM_REG, &x[g], 4);
        return;
    }
    const int low_bits = f == WEFT_Q6_K ? 2 : f == WEFT_Q5_0 || f == WEFT_Q5_1 || f == WEFT_Q5_K ? 1 : 0;
    if (low_bits == 1 || f == WEFT_Q3_K) {
        const int bit = f == WEFT_Q3_K ? 2 : 0;
        for (int h = 0; h < 2; h++, dst += MM_REG) {
            w = 0;
            for (int g = 0; g < 8; g++) w |= (x[8 * h + g] >> bit & 0x01010101) << g;
            memcpy(dst, &w, 4);
        }
    }
    if (low_bits == 2 || f == WEFT_Q2_K || f == WEFT_Q3_K) {
        for (int i = 0; i < 4; i++, dst += MM_REG) {
            w = 0;
            for (int g = 0; g < 4; g++) w |= (x[4 * i + g] & 0x03030303) << 2 * g;
            memcpy(dst, &w, 4);
        }
    }
    if (f == WEFT_Q2_K || f == WEFT_Q3_K) return;
    for (int g = 0; g < 8; g++, dst += MM_REG) {
        w = (x[g] >> low_bits & 0x0F0F0F0F) | (x[g + 8] >> low_bits & 0x0F0F0F0F) << 4;
        memcpy(dst, &w, 4);
    }
}

/* The head's part of row r. */
MM_INLINE void mm_put_head(int f, int r, const mm_span *s, uint8_t *dst)
{
    memcpy(dst + 2 * r, &s->d[0], 2);
    if (!mm_is_256(f)) {
        memcpy(dst + 2 * (MM_PANEL + r), &s->d[1], 2);
        if (mm_has_min(f)) {
            memcpy(dst + 2 * (2 * MM_PANEL + r), &s->m[0], 2);
            memcpy(dst + 2 * (3 * MM_PANEL + r), &s->m[1], 2);
        }
        return;
    }
    int at = 2;
    if (mm_has_min(f)) {
        memcpy(dst + 2 * (MM_PANEL + r), &s->d[1], 2);
        at = 4;
    }
    for (int i = 0; i < mm_head_row(f) - at; i++) dst[(at + i) * MM_PANEL + r] = s->head[i];
}

MM_INLINE size_t mm_block_bytes(int f)
{
    switch (f) {
#define MM_BLOCK_BYTES(name, value, block, bytes, text)                                                                \
    case value: return bytes;
        WEFT_DTYPE_LIST(MM_BLOCK_BYTES)
#undef MM_BLOCK_BYTES
    default: return 0;
    }
}

/* The span that begins at block b of a row of which n_left blocks are left. */
MM_INLINE void mm_take_span(int f, const uint8_t *b, int64_t n_left, mm_span *s)
{
    if (mm_is_256(f)) {
        mm_take_256(f, b, s);
        return;
    }
    mm_take_32(f, b, 0, s);
    if (n_left > 1) {
        mm_take_32(f, b + mm_block_bytes(f), 1, s);
        return;
    }
    memset(s->q + 32, 0, 32); /* half a span of padding */
    s->d[1] = 0x3C00;         /* 1: activations are zero there, and matmul_pair.h wants usual scales */
    s->m[1] = 0;
}

/* weft__matmul.pack for format f. A span of all rows is taken apart before any of it is put in place:
 * reading back at once what was just written in smaller pieces would stall. */
MM_INLINE void mm_pack(int f, const uint8_t *rows, size_t row_bytes, int n_rows, int64_t k, uint8_t *panel)
{
    const int per_span = mm_is_256(f) ? 1 : 2;
    const int64_t n_blocks = mm_is_256(f) ? k / WEFT__QUANT_QK_K : k / WEFT__QUANT_QK;
    mm_span s[MM_PANEL];
    if (n_rows < MM_PANEL) memset(panel, 0, mm_panel_bytes(f, k));
    for (int64_t i = 0; i < n_blocks; i += per_span, panel += mm_span_bytes(f)) {
        for (int r = 0; r < n_rows; r++)
            mm_take_span(f, rows + (size_t)r * row_bytes + (size_t)i * mm_block_bytes(f), n_blocks - i, &s[r]);
        for (int r = 0; r < n_rows; r++) {
            mm_put_head(f, r, &s[r], panel);
            uint8_t *codes = panel + mm_head_row(f) * MM_PANEL;
            for (int j = 0; j < mm_steps(f); j++)
                mm_put_step(f, r, s[r].q + 64 * j, codes + j * mm_step_regs(f) * MM_REG);
        }
    }
}

#define MM_PACK_DEFINE(dtype, name)                                                                                    \
    void weft__matmul_pack_##name(const uint8_t *rows, size_t row_bytes, int n_rows, int64_t k, void *panel)           \
    {                                                                                                                  \
        mm_pack(WEFT_##dtype, rows, row_bytes, n_rows, k, panel);                                                      \
    }
MM_QUANT_32(MM_PACK_DEFINE)
MM_QUANT_256(MM_PACK_DEFINE)
