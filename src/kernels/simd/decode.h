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

/* Sixteen codes in a register: where a loop stores bytes one by one, reading them as a vector waits for each. */
typedef uint8_t decode_u8 __attribute__((vector_size(16)));

static inline decode_u8 decode_bytes(const uint8_t *p)
{
    decode_u8 v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* dst[16] = d times codes, which are signed. */
static inline void decode_16(decode_u8 codes, float d, float *dst)
{
    int8_t c[16];
    memcpy(c, &codes, sizeof c);
    for (int j = 0; j < 16; j += VF_N) vf_store(dst + j, vf_mul(vf_set(d), vf_load_i8(c + j)));
}

/* ... less a number. */
static inline void decode_16_less(decode_u8 codes, float d, float less, float *dst)
{
    int8_t c[16];
    memcpy(c, &codes, sizeof c);
    for (int j = 0; j < 16; j += VF_N) vf_store(dst + j, vf_sub(vf_mul(vf_set(d), vf_load_i8(c + j)), vf_set(less)));
}

static void decode_q4_0(const weft__block_q4_0 *b, int64_t n, float *dst)
{
    for (int64_t i = 0; i < n / 32; i++, b++, dst += 32) {
        const float d = weft__f16_to_f32(b->d);
        const decode_u8 q = decode_bytes(b->qs);
        decode_16((q & 15) - 8, d, dst);
        decode_16((q >> 4) - 8, d, dst + 16);
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

static void decode_q5_k(const weft__block_q5_k *b, int64_t n, float *dst)
{
    for (int64_t i = 0; i < n / 256; i++, b++) {
        const float d = weft__f16_to_f32(b->d), dmin = weft__f16_to_f32(b->dmin);
        for (int j = 0; j < 8; j++) {
            uint8_t scale, min;
            weft__block_k4_scale_min(b->scales, j, &scale, &min);
            for (int e = 0; e < 32; e += 16, dst += 16) {
                const decode_u8 low = decode_bytes(b->qs + 32 * (j / 2) + e) >> 4 * (j % 2) & 15,
                                high = (decode_bytes(b->qh + e) >> j & 1) << 4;
                decode_16_less(low | high, d * (float)scale, dmin * (float)min, dst);
            }
        }
    }
}

static void decode_q6_k(const weft__block_q6_k *b, int64_t n, float *dst)
{
    for (int64_t i = 0; i < n / 256; i++, b++) {
        const float d = weft__f16_to_f32(b->d);
        for (int s = 0; s < 16; s++, dst += 16) { /* 16 elements of a scale */
            const int half = s / 8, part = s % 8 / 2, at = 16 * (s % 2);
            const decode_u8 low = decode_bytes(b->ql + 64 * half + 32 * (part % 2) + at) >> 4 * (part / 2) & 15,
                            high = (decode_bytes(b->qh + 32 * half + at) >> 2 * part & 3) << 4;
            decode_16((low | high) - 32, d * (float)b->scales[s], dst);
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
    case WEFT_Q5_K: decode_q5_k(row, n, dst); break;
    case WEFT_Q6_K: decode_q6_k(row, n, dst); break;
    default: weft__quant_decode_row(dtype, row, dst, n);
    }
}
