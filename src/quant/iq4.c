// SPDX-License-Identifier: Apache-2.0
/* iq4.c: four bits that index sixteen uneven values: IQ4_NL, IQ4_XS. */
#include "quant/families.h"

void weft__decode_iq4_nl(const void *src, float *dst, int64_t n)
{
    const weft__block_iq4_nl *b = src;
    for (int64_t i = 0; i < n / WEFT__QUANT_QK; i++, b++, dst += WEFT__QUANT_QK) {
        float d = weft__f16_to_f32(b->d);
        for (int j = 0; j < 16; j++) {
            dst[j] = d * (float)weft__block_iq4_values[b->qs[j] & 15];
            dst[j + 16] = d * (float)weft__block_iq4_values[b->qs[j] >> 4];
        }
    }
}

void weft__decode_iq4_xs(const void *src, float *dst, int64_t n)
{
    const weft__block_iq4_xs *b = src;
    for (int64_t i = 0; i < n / WEFT__QUANT_QK_K; i++, b++, dst += WEFT__QUANT_QK_K) {
        float d = weft__f16_to_f32(b->d);
        for (int j = 0; j < 8; j++) {
            float scale = d * (float)weft__block_iq4_xs_scale(b, j);
            for (int k = 0; k < 16; k++) {
                dst[32 * j + k] = scale * (float)weft__block_iq4_values[b->qs[16 * j + k] & 15];
                dst[32 * j + 16 + k] = scale * (float)weft__block_iq4_values[b->qs[16 * j + k] >> 4];
            }
        }
    }
}
