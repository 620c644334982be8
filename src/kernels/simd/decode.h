// SPDX-License-Identifier: Apache-2.0
/* decode.h: rows of weights to floats (kernels.h, decode_row), for the instructions of the file that includes it: plain
 * loops without branches, which the compiler turns into its tier's vectors, for the formats that are decoded most. Same
 * expressions as in src/quant, so same bits. TIER(name) makes the function's name. */
#include <string.h>

#include "kernels/list.h"
#include "kernels/simd/vecmath.h"
#include "quant/blocks.h"
#include "quant/half.h"
#include "quant/quant.h"

static void decode_f16(const uint8_t *src, int64_t n, float *dst)
{
    uint16_t part[VF_N];
    int64_t i = 0;
    for (; i + VF_N <= n; i += VF_N) {
        memcpy(part, src + 2 * i, sizeof part);
        vf_store(dst + i, vf_load_f16(part));
    }
    if (i < n) weft__quant_decode_row(WEFT_F16, src + 2 * i, dst + i, n - i);
}

static void decode_q4_0(const weft__block_q4_0 *b, int64_t n, float *dst)
{
    for (int64_t i = 0; i < n / 32; i++, b++, dst += 32) {
        const float d = weft__f16_to_f32(b->d);
        for (int j = 0; j < 16; j++) dst[j] = d * (float)((b->qs[j] & 15) - 8);
        for (int j = 0; j < 16; j++) dst[j + 16] = d * (float)((b->qs[j] >> 4) - 8);
    }
}

static void decode_q8_0(const weft__block_q8_0 *b, int64_t n, float *dst)
{
    for (int64_t i = 0; i < n / 32; i++, b++, dst += 32) {
        const float d = weft__f16_to_f32(b->d);
        for (int j = 0; j < 32; j++) dst[j] = d * (float)b->qs[j];
    }
}

static void decode_q4_k(const weft__block_q4_k *b, int64_t n, float *dst)
{
    for (int64_t i = 0; i < n / 256; i++, b++) {
        const float d = weft__f16_to_f32(b->d), dmin = weft__f16_to_f32(b->dmin);
        for (int j = 0; j < 8; j++, dst += 32) {
            uint8_t scale, min;
            weft__block_k4_scale_min(b->scales, j, &scale, &min);
            const uint8_t *q = b->qs + 32 * (j / 2);
            const float by = d * (float)scale, less = dmin * (float)min;
            const int shift = 4 * (j % 2);
            for (int e = 0; e < 32; e++) dst[e] = by * (float)(q[e] >> shift & 15) - less;
        }
    }
}

void TIER(weft__decode_row)(uint32_t dtype, const void *row, int64_t n, float *dst)
{
    switch (dtype) {
    case WEFT_F16: decode_f16(row, n, dst); break;
    case WEFT_Q4_0: decode_q4_0(row, n, dst); break;
    case WEFT_Q8_0: decode_q8_0(row, n, dst); break;
    case WEFT_Q4_K: decode_q4_k(row, n, dst); break;
    default: weft__quant_decode_row(dtype, row, dst, n);
    }
}
