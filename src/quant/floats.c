// SPDX-License-Identifier: Apache-2.0
/* floats.c: the formats that are floats. */
#include "quant/families.h"

void weft__decode_f32(const void *src, float *dst, int64_t n)
{
    memcpy(dst, src, (size_t)n * sizeof *dst);
}

void weft__decode_f16(const void *src, float *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint16_t h;
        memcpy(&h, (const uint8_t *)src + 2 * i, sizeof h);
        dst[i] = weft__f16_to_f32(h);
    }
}

void weft__decode_bf16(const void *src, float *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint16_t h;
        memcpy(&h, (const uint8_t *)src + 2 * i, sizeof h);
        dst[i] = weft__bf16_to_f32(h);
    }
}
