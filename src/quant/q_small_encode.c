// SPDX-License-Identifier: Apache-2.0
/* q_small_encode.c: encoders of the blocks of 32 with one scale: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0. */
#include "quant/encode.h"
#include "quant/encoders.h"
#include "quant/half.h"
#include "quant/small.h"

static const weft__fit_levels Q4_0 = {.lo = -8, .hi = 7, .t_first = 5.f, .t_last = 9.f, .n_t = 14};
static const weft__fit_levels Q5_0 = {.lo = -16, .hi = 15, .t_first = 13.f, .t_last = 17.f, .n_t = 14};
static const weft__fit_levels Q8_0 = {.lo = -127, .hi = 127, .t_first = 119.f, .t_last = 127.5f, .n_t = 20};
static const weft__fit_levels Q4_1 = {.lo = 0, .hi = 15, .t_first = 11.f, .t_last = 16.f, .n_t = 12};
static const weft__fit_levels Q5_1 = {.lo = 0, .hi = 31, .t_first = 26.f, .t_last = 32.f, .n_t = 12};

/* Element j in the low nibbles, j + 16 in the high ones; `add` makes the codes count from 0. */
static void pack_nibbles(const int8_t *q, int add, uint8_t *qs)
{
    for (int j = 0; j < 16; j++) qs[j] = (uint8_t)(((q[j] + add) & 15) | ((q[j + 16] + add) & 15) << 4);
}

static void pack_fifth_bits(const int8_t *q, int add, uint8_t *qh)
{
    for (int j = 0; j < 4; j++) qh[j] = 0;
    for (int j = 0; j < WEFT__QUANT_QK; j++) qh[j / 8] |= (uint8_t)(((q[j] + add) >> 4 & 1) << j % 8);
}

void weft__encode_q4_0(const float *x, const float *w, void *dst, int64_t n)
{
    weft__block_q4_0 *b = dst;
    weft__quant_small_fit f;
    for (int64_t i = 0; i < n; i += WEFT__QUANT_QK, b++) {
        weft__quant_small_encode(&Q4_0, 0, x + i, w + i, &f);
        b->d = f.d;
        pack_nibbles(f.q, 8, b->qs);
    }
}

void weft__encode_q4_1(const float *x, const float *w, void *dst, int64_t n)
{
    weft__block_q4_1 *b = dst;
    weft__quant_small_fit f;
    for (int64_t i = 0; i < n; i += WEFT__QUANT_QK, b++) {
        weft__quant_small_encode(&Q4_1, 1, x + i, w + i, &f);
        b->d = f.d;
        b->m = f.m;
        pack_nibbles(f.q, 0, b->qs);
    }
}

void weft__encode_q5_0(const float *x, const float *w, void *dst, int64_t n)
{
    weft__block_q5_0 *b = dst;
    weft__quant_small_fit f;
    for (int64_t i = 0; i < n; i += WEFT__QUANT_QK, b++) {
        weft__quant_small_encode(&Q5_0, 0, x + i, w + i, &f);
        b->d = f.d;
        pack_nibbles(f.q, 16, b->qs);
        pack_fifth_bits(f.q, 16, b->qh);
    }
}

void weft__encode_q5_1(const float *x, const float *w, void *dst, int64_t n)
{
    weft__block_q5_1 *b = dst;
    weft__quant_small_fit f;
    for (int64_t i = 0; i < n; i += WEFT__QUANT_QK, b++) {
        weft__quant_small_encode(&Q5_1, 1, x + i, w + i, &f);
        b->d = f.d;
        b->m = f.m;
        pack_nibbles(f.q, 0, b->qs);
        pack_fifth_bits(f.q, 0, b->qh);
    }
}

void weft__encode_q8_0(const float *x, const float *w, void *dst, int64_t n)
{
    weft__block_q8_0 *b = dst;
    weft__quant_small_fit f;
    for (int64_t i = 0; i < n; i += WEFT__QUANT_QK, b++) {
        weft__quant_small_encode(&Q8_0, 0, x + i, w + i, &f);
        b->d = f.d;
        for (int j = 0; j < WEFT__QUANT_QK; j++) b->qs[j] = f.q[j];
    }
}

/* The smallest f16 that is not below x >= 0, or the largest there is. */
static uint16_t f16_not_below(float x)
{
    uint16_t h = weft__f16_from_f32(x);
    if (weft__f16_to_f32(h) < x) h++;
    return h < 0x7c00 ? h : 0x7bff;
}

/* Plain loops over a block, of operations that compilers have vectors for: hence magnitudes compared as integers, and
 * rounding by the number from which on floats are whole. */
void weft__quant_nearest_q8_0(const float *src, void *dst, int64_t n)
{
    const float whole = 0x1.8p23f;
    weft__block_q8_0 *b = dst;
    for (int64_t i = 0; i < n; i += WEFT__QUANT_QK, src += WEFT__QUANT_QK, b++) {
        int32_t most = 0;
        for (int j = 0; j < WEFT__QUANT_QK; j++) {
            int32_t bits = (int32_t)(weft__f32_bits(src[j]) & 0x7fffffff);
            most = bits > most ? bits : most;
        }
        b->d = f16_not_below(weft__f32_from_bits((uint32_t)most) / 127);
        float d = weft__f16_to_f32(b->d), inverse = d > 0 ? 1 / d : 0;
        for (int j = 0; j < WEFT__QUANT_QK; j++) {
            float q = src[j] * inverse;
            q = q < -127 ? -127 : q;
            q = q > 127 ? 127 : q;
            b->qs[j] = (int8_t)(uint8_t)weft__f32_bits(q + whole);
        }
    }
}
