// SPDX-License-Identifier: Apache-2.0
/* q_k_encode.c: encoders of the super-blocks of 256 with quantized scales: Q2_K to Q6_K. */
#include <string.h>

#include "quant/encoders.h"
#include "quant/super.h"

static const weft__quant_super Q2_K = {
    {.lo = 0, .hi = 3, .t_first = 1.6f, .t_last = 4.f, .n_t = 10}, .sub = 16, .scale_hi = 15, .min_hi = 15};
static const weft__quant_super Q3_K = {
    {.lo = -4, .hi = 3, .t_first = 2.2f, .t_last = 5.2f, .n_t = 14}, .sub = 16, .scale_lo = -32, .scale_hi = 31};
static const weft__quant_super Q4_K = {
    {.lo = 0, .hi = 15, .t_first = 11.f, .t_last = 16.f, .n_t = 10}, .sub = 32, .scale_hi = 63, .min_hi = 63};
static const weft__quant_super Q5_K = {
    {.lo = 0, .hi = 31, .t_first = 26.f, .t_last = 32.f, .n_t = 10}, .sub = 32, .scale_hi = 63, .min_hi = 63};
static const weft__quant_super Q6_K = {
    {.lo = -32, .hi = 31, .t_first = 28.f, .t_last = 33.f, .n_t = 12}, .sub = 16, .scale_lo = -128, .scale_hi = 127};

void weft__encode_q2_k(const float *x, const float *w, void *dst, int64_t n)
{
    weft__block_q2_k *b = dst;
    weft__quant_super_fit f;
    for (int64_t i = 0; i < n; i += WEFT__QUANT_QK_K, b++) {
        weft__quant_super_encode(&Q2_K, x + i, w + i, &f);
        memset(b, 0, sizeof *b);
        b->d = f.d;
        b->dmin = f.dmin;
        for (int j = 0; j < 16; j++) b->scales[j] = (uint8_t)(f.scale[j] | f.min[j] << 4);
        for (int e = 0; e < WEFT__QUANT_QK_K; e++)
            b->qs[32 * (e / 128) + e % 32] |= (uint8_t)(f.q[e] << 2 * (e % 128 / 32));
    }
}

void weft__encode_q3_k(const float *x, const float *w, void *dst, int64_t n)
{
    weft__block_q3_k *b = dst;
    weft__quant_super_fit f;
    for (int64_t i = 0; i < n; i += WEFT__QUANT_QK_K, b++) {
        weft__quant_super_encode(&Q3_K, x + i, w + i, &f);
        memset(b, 0, sizeof *b);
        b->d = f.d;
        for (int j = 0; j < 16; j++) {
            int scale = f.scale[j] + 32;
            b->scales[j % 8] |= (uint8_t)((scale & 15) << 4 * (j / 8));
            b->scales[8 + j % 4] |= (uint8_t)(scale >> 4 << 2 * (j / 4));
        }
        for (int e = 0; e < WEFT__QUANT_QK_K; e++) {
            int q = f.q[e] + 4;
            b->qs[32 * (e / 128) + e % 32] |= (uint8_t)((q & 3) << 2 * (e % 128 / 32));
            b->hmask[e % 32] |= (uint8_t)(q >> 2 << e / 32);
        }
    }
}

/* The inverse of weft__block_k4_scale_min, for all eight. */
static void pack_scale_min(const weft__quant_super_fit *f, uint8_t *s)
{
    memset(s, 0, 12);
    for (int j = 0; j < 4; j++) {
        int scale = f->scale[j + 4], min = f->min[j + 4];
        s[j] = (uint8_t)(f->scale[j] | scale >> 4 << 6);
        s[j + 4] = (uint8_t)(f->min[j] | min >> 4 << 6);
        s[j + 8] = (uint8_t)((scale & 15) | (min & 15) << 4);
    }
}

/* The low four bits of each code: 64 elements share 32 bytes, the first 32 of them in the low nibbles. */
static void pack_nibbles(const int8_t *q, uint8_t *qs)
{
    for (int e = 0; e < WEFT__QUANT_QK_K; e++) qs[32 * (e / 64) + e % 32] |= (uint8_t)((q[e] & 15) << 4 * (e / 32 % 2));
}

void weft__encode_q4_k(const float *x, const float *w, void *dst, int64_t n)
{
    weft__block_q4_k *b = dst;
    weft__quant_super_fit f;
    for (int64_t i = 0; i < n; i += WEFT__QUANT_QK_K, b++) {
        weft__quant_super_encode(&Q4_K, x + i, w + i, &f);
        memset(b, 0, sizeof *b);
        b->d = f.d;
        b->dmin = f.dmin;
        pack_scale_min(&f, b->scales);
        pack_nibbles(f.q, b->qs);
    }
}

void weft__encode_q5_k(const float *x, const float *w, void *dst, int64_t n)
{
    weft__block_q5_k *b = dst;
    weft__quant_super_fit f;
    for (int64_t i = 0; i < n; i += WEFT__QUANT_QK_K, b++) {
        weft__quant_super_encode(&Q5_K, x + i, w + i, &f);
        memset(b, 0, sizeof *b);
        b->d = f.d;
        b->dmin = f.dmin;
        pack_scale_min(&f, b->scales);
        pack_nibbles(f.q, b->qs);
        for (int e = 0; e < WEFT__QUANT_QK_K; e++) b->qh[e % 32] |= (uint8_t)(f.q[e] >> 4 << e / 32);
    }
}

void weft__encode_q6_k(const float *x, const float *w, void *dst, int64_t n)
{
    weft__block_q6_k *b = dst;
    weft__quant_super_fit f;
    for (int64_t i = 0; i < n; i += WEFT__QUANT_QK_K, b++) {
        weft__quant_super_encode(&Q6_K, x + i, w + i, &f);
        memset(b, 0, sizeof *b);
        b->d = f.d;
        for (int j = 0; j < 16; j++) b->scales[j] = (int8_t)f.scale[j];
        for (int e = 0; e < WEFT__QUANT_QK_K; e++) {
            int q = f.q[e] + 32, part = e % 128 / 32;
            b->ql[64 * (e / 128) + e % 64] |= (uint8_t)((q & 15) << 4 * (part / 2));
            b->qh[32 * (e / 128) + e % 32] |= (uint8_t)(q >> 4 << 2 * part);
        }
    }
}
