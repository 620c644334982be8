// SPDX-License-Identifier: Apache-2.0
/* blocks.h: the bytes of each block format, as GGUF files store them, and the scalar helpers to read them.
 * Blocks are read through these structs only after a copy, or at any alignment: every member is a byte or packed.
 * Letters: d scale, m or dmin minimum, q codes. */
#ifndef WEFT_QUANT_BLOCKS_H
#define WEFT_QUANT_BLOCKS_H

#include <stdint.h>

#include "weft/error.h"

#define WEFT__QUANT_QK 32    /* elements of a small block */
#define WEFT__QUANT_QK_K 256 /* elements of a super-block */

#pragma pack(push, 1)
/* x = d * (q - 8); byte j holds q of element j below, of j + 16 above. */
typedef struct weft__block_q4_0 {
    uint16_t d;
    uint8_t qs[16];
} weft__block_q4_0;
/* x = d * q + m */
typedef struct weft__block_q4_1 {
    uint16_t d, m;
    uint8_t qs[16];
} weft__block_q4_1;
/* x = d * (q - 16); the fifth bit of element j is bit j of qh. */
typedef struct weft__block_q5_0 {
    uint16_t d;
    uint8_t qh[4], qs[16];
} weft__block_q5_0;
typedef struct weft__block_q5_1 {
    uint16_t d, m;
    uint8_t qh[4], qs[16];
} weft__block_q5_1;
/* x = d * q */
typedef struct weft__block_q8_0 {
    uint16_t d;
    int8_t qs[32];
} weft__block_q8_0;
/* 16 sub-blocks of 16: x = d * (scales & 15) * q - dmin * (scales >> 4). */
typedef struct weft__block_q2_k {
    uint8_t scales[16], qs[64];
    uint16_t d, dmin;
} weft__block_q2_k;
/* 16 sub-blocks of 16: x = d * (scale - 32) * (q - 4), q of three bits, the third in hmask. */
typedef struct weft__block_q3_k {
    uint8_t hmask[32], qs[64], scales[12];
    uint16_t d;
} weft__block_q3_k;
/* 8 sub-blocks of 32: x = d * scale * q - dmin * min, six bits each. */
typedef struct weft__block_q4_k {
    uint16_t d, dmin;
    uint8_t scales[12], qs[128];
} weft__block_q4_k;
typedef struct weft__block_q5_k {
    uint16_t d, dmin;
    uint8_t scales[12], qh[32], qs[128];
} weft__block_q5_k;
/* 16 sub-blocks of 16: x = d * scale * (q - 32). */
typedef struct weft__block_q6_k {
    uint8_t ql[128], qh[64];
    int8_t scales[16];
    uint16_t d;
} weft__block_q6_k;
/* x = d * weft__block_iq4_values[q] */
typedef struct weft__block_iq4_nl {
    uint16_t d;
    uint8_t qs[16];
} weft__block_iq4_nl;
/* 8 sub-blocks of 32: x = d * (scale - 32) * weft__block_iq4_values[q]. */
typedef struct weft__block_iq4_xs {
    uint16_t d, scales_h;
    uint8_t scales_l[4], qs[128];
} weft__block_iq4_xs;
#pragma pack(pop)

WEFT_STATIC_ASSERT(sizeof(weft__block_q4_0) == 18, "Q4_0");
WEFT_STATIC_ASSERT(sizeof(weft__block_q4_1) == 20, "Q4_1");
WEFT_STATIC_ASSERT(sizeof(weft__block_q5_0) == 22, "Q5_0");
WEFT_STATIC_ASSERT(sizeof(weft__block_q5_1) == 24, "Q5_1");
WEFT_STATIC_ASSERT(sizeof(weft__block_q8_0) == 34, "Q8_0");
WEFT_STATIC_ASSERT(sizeof(weft__block_q2_k) == 84, "Q2_K");
WEFT_STATIC_ASSERT(sizeof(weft__block_q3_k) == 110, "Q3_K");
WEFT_STATIC_ASSERT(sizeof(weft__block_q4_k) == 144, "Q4_K");
WEFT_STATIC_ASSERT(sizeof(weft__block_q5_k) == 176, "Q5_K");
WEFT_STATIC_ASSERT(sizeof(weft__block_q6_k) == 210, "Q6_K");
WEFT_STATIC_ASSERT(sizeof(weft__block_iq4_nl) == 18, "IQ4_NL");
WEFT_STATIC_ASSERT(sizeof(weft__block_iq4_xs) == 136, "IQ4_XS");

/* The sixteen values of the IQ4 formats. */
static const int8_t weft__block_iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                  1,    13,   25,  38,  53,  69,  89,  113};

/* Scale and minimum j < 8 of Q4_K and Q5_K: six bits each, packed into 12 bytes; those of j >= 4 have their upper two
 * bits above the first eight bytes' values. */
static inline void weft__block_k4_scale_min(const uint8_t *s, int j, uint8_t *scale, uint8_t *min)
{
    if (j < 4) {
        *scale = s[j] & 63;
        *min = s[j + 4] & 63;
    } else {
        *scale = (uint8_t)((s[j + 4] & 15) | (s[j - 4] >> 6) << 4);
        *min = (uint8_t)((s[j + 4] >> 4) | (s[j] >> 6) << 4);
    }
}

/* Scale j < 16 of Q3_K, -32..31: four low bits in the first eight bytes, two high bits in the last four. */
static inline int weft__block_q3_k_scale(const uint8_t *s, int j)
{
    int low = j < 8 ? s[j] & 15 : s[j - 8] >> 4;
    int high = s[8 + j % 4] >> 2 * (j / 4) & 3;
    return (low | high << 4) - 32;
}

/* Scale j < 8 of IQ4_XS, -32..31. */
static inline int weft__block_iq4_xs_scale(const weft__block_iq4_xs *b, int j)
{
    int low = b->scales_l[j / 2] >> 4 * (j % 2) & 15, high = b->scales_h >> 2 * j & 3;
    return (low | high << 4) - 32;
}

#endif
