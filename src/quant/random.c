// SPDX-License-Identifier: Apache-2.0
/* random.c: rows of random blocks: random bytes for the codes, then scales that give a sane spread. */
#include "quant/families.h"

static const float SPREAD = 0.02f; /* standard deviation that trained models have, more or less */

static void fill_bytes(weft__rng *rng, uint8_t *p, uint64_t n)
{
    while (n >= 8) {
        uint64_t v = weft__rng_u64(rng);
        memcpy(p, &v, 8);
        p += 8;
        n -= 8;
    }
    if (n > 0) {
        uint64_t v = weft__rng_u64(rng);
        memcpy(p, &v, n);
    }
}

static void put_half(uint8_t *p, float value)
{
    uint16_t h = weft__f16_from_f32(value);
    memcpy(p, &h, sizeof h);
}

/* Sets the scales of the block at b. Factors: SPREAD over the standard deviation of uniform codes (and of uniform
 * sub-scales). */
static void set_scales(uint32_t dtype, uint8_t *b)
{
    switch (dtype) {
    case WEFT_Q4_0: put_half(b, SPREAD / 4.6f); break;
    case WEFT_Q5_0: put_half(b, SPREAD / 9.2f); break;
    case WEFT_Q8_0: put_half(b, SPREAD / 74.f); break;
    case WEFT_IQ4_NL: put_half(b, SPREAD / 68.f); break;
    case WEFT_Q4_1: put_half(b, SPREAD / 4.6f), put_half(b + 2, -7.5f * SPREAD / 4.6f); break;
    case WEFT_Q5_1: put_half(b, SPREAD / 9.2f), put_half(b + 2, -15.5f * SPREAD / 9.2f); break;
    case WEFT_Q2_K: put_half(b + 80, SPREAD / 13.f), put_half(b + 82, SPREAD / 9.f); break;
    case WEFT_Q3_K: put_half(b + 108, SPREAD / 42.f); break;
    case WEFT_Q4_K: put_half(b, SPREAD / 210.f), put_half(b + 2, SPREAD / 28.f); break;
    case WEFT_Q5_K: put_half(b, SPREAD / 430.f), put_half(b + 2, SPREAD / 28.f); break;
    case WEFT_Q6_K: put_half(b + 208, SPREAD / 1360.f); break;
    case WEFT_IQ4_XS: put_half(b, SPREAD / 1250.f); break;
    default: break;
    }
}

/* Uniform values of the wanted spread. */
static void random_floats(uint32_t dtype, weft__rng *rng, uint8_t *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        float x = (float)(weft__rng_double(rng) - 0.5) * 3.4641f * SPREAD;
        uint16_t h = dtype == WEFT_F16 ? weft__f16_from_f32(x) : weft__bf16_from_f32(x);
        if (dtype == WEFT_F32) memcpy(dst + 4 * i, &x, 4);
        else memcpy(dst + 2 * i, &h, 2);
    }
}

void weft__quant_random_row(uint32_t dtype, weft__rng *rng, void *dst, int64_t n)
{
    weft_dtype_info info = weft_dtype_describe(dtype);
    uint64_t bytes = weft__quant_row_bytes(dtype, n);
    if (dtype == WEFT_F32 || dtype == WEFT_F16 || dtype == WEFT_BF16) {
        random_floats(dtype, rng, dst, n);
        return;
    }
    fill_bytes(rng, dst, bytes);
    for (uint64_t at = 0; at < bytes; at += info.block_bytes) set_scales(dtype, (uint8_t *)dst + at);
}
