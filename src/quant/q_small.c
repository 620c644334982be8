// SPDX-License-Identifier: Apache-2.0
/* q_small.c: blocks of 32 with one scale: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0. */
#include "quant/families.h"

void weft__decode_q4_0(const void *src, float *dst, int64_t n)
{
    const weft__block_q4_0 *b = src;
    for (int64_t i = 0; i < n / WEFT__QUANT_QK; i++, b++, dst += WEFT__QUANT_QK) {
        float d = weft__f16_to_f32(b->d);
        for (int j = 0; j < 16; j++) {
            dst[j] = d * (float)((b->qs[j] & 15) - 8);
            dst[j + 16] = d * (float)((b->qs[j] >> 4) - 8);
        }
    }
}

void weft__decode_q4_1(const void *src, float *dst, int64_t n)
{
    const weft__block_q4_1 *b = src;
    for (int64_t i = 0; i < n / WEFT__QUANT_QK; i++, b++, dst += WEFT__QUANT_QK) {
        float d = weft__f16_to_f32(b->d), m = weft__f16_to_f32(b->m);
        for (int j = 0; j < 16; j++) {
            dst[j] = d * (float)(b->qs[j] & 15) + m;
            dst[j + 16] = d * (float)(b->qs[j] >> 4) + m;
        }
    }
}

/* Element j of the five-bit formats, 0..31. */
static int q5_code(const uint8_t *qh, const uint8_t *qs, int j)
{
    int low = j < 16 ? qs[j] & 15 : qs[j - 16] >> 4;
    return low | (qh[j / 8] >> j % 8 & 1) << 4;
}

void weft__decode_q5_0(const void *src, float *dst, int64_t n)
{
    const weft__block_q5_0 *b = src;
    for (int64_t i = 0; i < n / WEFT__QUANT_QK; i++, b++, dst += WEFT__QUANT_QK) {
        float d = weft__f16_to_f32(b->d);
        for (int j = 0; j < WEFT__QUANT_QK; j++) dst[j] = d * (float)(q5_code(b->qh, b->qs, j) - 16);
    }
}

void weft__decode_q5_1(const void *src, float *dst, int64_t n)
{
    const weft__block_q5_1 *b = src;
    for (int64_t i = 0; i < n / WEFT__QUANT_QK; i++, b++, dst += WEFT__QUANT_QK) {
        float d = weft__f16_to_f32(b->d), m = weft__f16_to_f32(b->m);
        for (int j = 0; j < WEFT__QUANT_QK; j++) dst[j] = d * (float)q5_code(b->qh, b->qs, j) + m;
    }
}

void weft__decode_q8_0(const void *src, float *dst, int64_t n)
{
    const weft__block_q8_0 *b = src;
    for (int64_t i = 0; i < n / WEFT__QUANT_QK; i++, b++, dst += WEFT__QUANT_QK) {
        float d = weft__f16_to_f32(b->d);
        for (int j = 0; j < WEFT__QUANT_QK; j++) dst[j] = d * (float)b->qs[j];
    }
}
