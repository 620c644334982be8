// SPDX-License-Identifier: Apache-2.0
/* q_k.c: super-blocks of 256 with quantized scales: Q2_K to Q6_K. */
#include "quant/families.h"

void weft__decode_q2_k(const void *src, float *dst, int64_t n)
{
    const weft__block_q2_k *b = src;
    for (int64_t i = 0; i < n / WEFT__QUANT_QK_K; i++, b++, dst += WEFT__QUANT_QK_K) {
        float d = weft__f16_to_f32(b->d), dmin = weft__f16_to_f32(b->dmin);
        for (int e = 0; e < WEFT__QUANT_QK_K; e++) {
            int half = e / 128, plane = e % 128 / 32, scale = b->scales[e / 16];
            int q = b->qs[32 * half + e % 32] >> 2 * plane & 3;
            dst[e] = d * (float)(scale & 15) * (float)q - dmin * (float)(scale >> 4);
        }
    }
}

void weft__decode_q3_k(const void *src, float *dst, int64_t n)
{
    const weft__block_q3_k *b = src;
    for (int64_t i = 0; i < n / WEFT__QUANT_QK_K; i++, b++, dst += WEFT__QUANT_QK_K) {
        float d = weft__f16_to_f32(b->d);
        for (int e = 0; e < WEFT__QUANT_QK_K; e++) {
            int half = e / 128, plane = e % 128 / 32;
            int q = (b->qs[32 * half + e % 32] >> 2 * plane & 3) | (b->hmask[e % 32] >> e / 32 & 1) << 2;
            dst[e] = d * (float)weft__block_q3_k_scale(b->scales, e / 16) * (float)(q - 4);
        }
    }
}

/* Four bits of element e: 64 elements share 32 bytes, the first 32 of them in the low nibbles. */
static int nibble(const uint8_t *qs, int e)
{
    return qs[32 * (e / 64) + e % 32] >> 4 * (e / 32 % 2) & 15;
}

void weft__decode_q4_k(const void *src, float *dst, int64_t n)
{
    const weft__block_q4_k *b = src;
    for (int64_t i = 0; i < n / WEFT__QUANT_QK_K; i++, b++, dst += WEFT__QUANT_QK_K) {
        float d = weft__f16_to_f32(b->d), dmin = weft__f16_to_f32(b->dmin);
        for (int j = 0; j < 8; j++) {
            uint8_t scale, min;
            weft__block_k4_scale_min(b->scales, j, &scale, &min);
            for (int e = 32 * j; e < 32 * (j + 1); e++)
                dst[e] = d * (float)scale * (float)nibble(b->qs, e) - dmin * (float)min;
        }
    }
}

void weft__decode_q5_k(const void *src, float *dst, int64_t n)
{
    const weft__block_q5_k *b = src;
    for (int64_t i = 0; i < n / WEFT__QUANT_QK_K; i++, b++, dst += WEFT__QUANT_QK_K) {
        float d = weft__f16_to_f32(b->d), dmin = weft__f16_to_f32(b->dmin);
        for (int j = 0; j < 8; j++) {
            uint8_t scale, min;
            weft__block_k4_scale_min(b->scales, j, &scale, &min);
            for (int e = 32 * j; e < 32 * (j + 1); e++) {
                int q = nibble(b->qs, e) | (b->qh[e % 32] >> j & 1) << 4;
                dst[e] = d * (float)scale * (float)q - dmin * (float)min;
            }
        }
    }
}

void weft__decode_q6_k(const void *src, float *dst, int64_t n)
{
    const weft__block_q6_k *b = src;
    for (int64_t i = 0; i < n / WEFT__QUANT_QK_K; i++, b++, dst += WEFT__QUANT_QK_K) {
        float d = weft__f16_to_f32(b->d);
        for (int e = 0; e < WEFT__QUANT_QK_K; e++) {
            int half = e / 128, part = e % 128 / 32;
            int low = b->ql[64 * half + e % 64] >> 4 * (part / 2) & 15;
            int high = b->qh[32 * half + e % 32] >> 2 * part & 3;
            dst[e] = d * (float)b->scales[e / 16] * (float)((low | high << 4) - 32);
        }
    }
}
