// SPDX-License-Identifier: Apache-2.0
/* half.h: 16-bit floats, E4M3 and float32, exactly: round to nearest even, subnormals, infinities; a NaN stays a
 * (quiet) NaN. */
#ifndef WEFT_QUANT_HALF_H
#define WEFT_QUANT_HALF_H

#include <stdint.h>
#include <string.h>

static inline float weft__f32_from_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline uint32_t weft__f32_bits(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static inline float weft__f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 0x3ff;
    if (exponent == 31) return weft__f32_from_bits(sign | 0x7f800000 | fraction << 13 | (fraction ? 0x400000 : 0));
    if (exponent == 0) { /* fraction * 2^-24, exact in float32 */
        float f = (float)fraction * 0x1p-24f;
        return sign ? -f : f;
    }
    return weft__f32_from_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

static inline uint16_t weft__f16_from_f32(float f)
{
    uint32_t bits = weft__f32_bits(f), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
    if (rest > 0x7f800000) return (uint16_t)(sign | 0x7e00 | (rest >> 13 & 0x1ff));
    if (rest >= 0x477ff000) return (uint16_t)(sign | 0x7c00); /* 65520 and more round to infinity */
    if (rest < 0x38800000) {                                  /* below 2^-14: count in units of 2^-24 */
        if (rest < 0x33000000) return (uint16_t)sign;         /* below 2^-25 */
        uint32_t shift = 126 - (rest >> 23), mantissa = (rest & 0x7fffff) | 0x800000;
        uint32_t value = mantissa >> shift, left = mantissa & ((1u << shift) - 1), half = 1u << (shift - 1);
        return (uint16_t)(sign | (value + (left > half || (left == half && (value & 1)))));
    }
    uint32_t value = rest - 0x38000000;
    return (uint16_t)(sign | (value + 0xfff + (value >> 13 & 1)) >> 13);
}

static inline float weft__bf16_to_f32(uint16_t h)
{
    return weft__f32_from_bits((uint32_t)h << 16);
}

static inline uint16_t weft__bf16_from_f32(float f)
{
    uint32_t bits = weft__f32_bits(f);
    if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)(bits >> 16 | 64);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* E4M3 (Micikevicius et al. 2022): no infinities; what is beyond 448 becomes 448. Without branches, so that loops
 * over it become vectors. */
static inline uint8_t weft__f8_from_f32(float f)
{
    const uint32_t bits = weft__f32_bits(f), sign = bits >> 24 & 0x80, rest = bits & 0x7fffffff;
    /* Below 2^-6: how many 2^-9 it is, rounded by the addition, in the lowest bits. */
    const uint32_t small = weft__f32_bits(weft__f32_from_bits(rest) * 512 + 0x1p23f) & 0xff;
    const uint32_t value = (rest + 0x7ffff + (rest >> 20 & 1)) >> 20, code = rest < 0x3c800000 ? small : value - 960;
    return (uint8_t)(sign | (rest > 0x7f800000 ? 0x7f : rest > 0x43e00000 ? 0x7e : code));
}

static inline float weft__f8_to_f32(uint8_t code)
{
    const uint32_t sign = (uint32_t)(code & 0x80) << 24, exponent = code >> 3 & 15, fraction = code & 7;
    if ((code & 0x7f) == 0x7f) return weft__f32_from_bits(sign | 0x7fc00000);
    if (exponent == 0) return sign ? -(float)fraction * 0x1p-9f : (float)fraction * 0x1p-9f;
    return weft__f32_from_bits(sign | (exponent + 120) << 23 | fraction << 20);
}

#endif
