// SPDX-License-Identifier: Apache-2.0
/* expand_layout.h: how the B of an adapter lies in memory, and how its codes are made. Plain C: ref uses it, too.
 *
 * A panel is 16 outputs x all ranks. 8 and 4 bits begin with scales: the largest, bf16, and a nibble per output, [8]
 * bytes, low ones first: bits 0..2 say how many eighths of it, less one, bit 3 is the sign. (A scale of 16 bits per
 * output would be a tenth of all bytes at rank 16.) Then, rank by rank:
 *   F32 and BF16: [rank][16]    8 bits: signed codes [rank][16]
 *   4 bits: [ranks / 2][16] bytes, the even rank's code in the low nibble, both 8 too large
 * or, for dot products of bytes (expand_dot.h), in registers of 64 bytes, whose byte 4 * r + j is that of output r:
 *   8 bits: [ranks / 4], rank 4 * g + j, for VPDPBUSD codes 128 too large
 *   4 bits: [ranks / 8], rank 8 * g + j low, 8 * g + 4 + j high, codes 8 too large
 * Missing ranks are codes of zero. */
#ifndef WEFT_KERNELS_SIMD_EXPAND_LAYOUT_H
#define WEFT_KERNELS_SIMD_EXPAND_LAYOUT_H

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "kernels/kernels.h"
#include "quant/half.h"

enum { EX_SCALES = 2 + WEFT__EXPAND_ROWS / 2 /* bytes */ };

static inline int64_t ex_groups(int64_t rank, int64_t group)
{
    return (rank + group - 1) / group;
}

static inline size_t ex_panel_bytes(uint32_t f, int64_t rank)
{
    switch (f) {
    case WEFT_F32: return (size_t)rank * 4 * WEFT__EXPAND_ROWS;
    case WEFT_BF16: return (size_t)rank * 2 * WEFT__EXPAND_ROWS;
    case WEFT_Q8_0: return EX_SCALES + (size_t)rank * WEFT__EXPAND_ROWS;
    default: return EX_SCALES + (size_t)ex_groups(rank, 2) * WEFT__EXPAND_ROWS;
    }
}

/* The scale of output r of a panel with 8 or 4 bits. */
static inline float ex_scale(const uint8_t *panel, int r)
{
    uint16_t half;
    memcpy(&half, panel, sizeof half);
    int nibble = panel[2 + r % 8] >> (r < 8 ? 0 : 4) & 15;
    float d = weft__bf16_to_f32(half) * ((float)(nibble % 8 + 1) / 8);
    return nibble < 8 ? d : -d;
}

/* The scale at which output b [rank] times factor has codes of 8 bits, -127..127, or of 4, -8..7, the largest magnitude
 * being -8. */
static inline float ex_best_scale(uint32_t f, const float *b, float factor, int64_t rank)
{
    float most = 0;
    for (int64_t i = 0; i < rank; i++) most = fabsf(b[i] * factor) > fabsf(most) ? b[i] * factor : most;
    return most / (f == WEFT_Q8_0 ? -127.0f : -8.0f);
}

/* The head of a panel with 8 or 4 bits; products are at most FLT_MAX / 2. */
static inline void ex_put_scales(uint32_t f, const float *b, int64_t ldb, float factor, int n_rows, int64_t rank,
                                 uint8_t *panel)
{
    float best[WEFT__EXPAND_ROWS] = {0}, most = 0;
    for (int r = 0; r < n_rows; r++) {
        best[r] = ex_best_scale(f, b + r * ldb, factor, rank);
        most = fabsf(best[r]) > most ? fabsf(best[r]) : most;
    }
    uint16_t half = weft__bf16_from_f32(most);
    float d = weft__bf16_to_f32(half);
    memset(panel, 0, EX_SCALES);
    memcpy(panel, &half, sizeof half);
    for (int r = 0; r < n_rows; r++) {
        float eighths = d != 0 ? ceilf(8 * (fabsf(best[r]) / d)) : 1;
        int nibble = (eighths < 1 ? 0 : eighths > 8 ? 7 : (int)eighths - 1) + (best[r] < 0 ? 8 : 0);
        panel[2 + r % 8] = (uint8_t)(panel[2 + r % 8] | nibble << (r < 8 ? 0 : 4));
    }
}

/* Codes of one output at scale d. */
static inline void ex_codes(uint32_t f, const float *b, float factor, int64_t rank, float d, int8_t *codes)
{
    int low = f == WEFT_Q8_0 ? -127 : -8, high = f == WEFT_Q8_0 ? 127 : 7;
    for (int64_t i = 0; i < rank; i++) {
        float c = d != 0 ? rintf(b[i] * factor / d) : 0;
        codes[i] = (int8_t)(c < (float)low ? low : c > (float)high ? high : c);
    }
}

/* weft__expand.pack, rank by rank. */
static inline void ex_pack(uint32_t f, const float *b, int64_t ldb, float factor, int n_rows, int64_t rank,
                           uint8_t *panel)
{
    int8_t codes[WEFT__EXPAND_RANK_MAX];
    memset(panel, f == WEFT_Q4_0 ? 0x88 : 0, ex_panel_bytes(f, rank));
    if (f == WEFT_Q8_0 || f == WEFT_Q4_0) ex_put_scales(f, b, ldb, factor, n_rows, rank, panel);
    for (int r = 0; r < n_rows; r++, b += ldb) {
        if (f == WEFT_F32 || f == WEFT_BF16) {
            for (int64_t i = 0; i < rank; i++) {
                float x = b[i] * factor;
                uint16_t half = weft__bf16_from_f32(x);
                int64_t at = i * WEFT__EXPAND_ROWS + r;
                if (f == WEFT_F32) memcpy(panel + 4 * at, &x, sizeof x);
                else memcpy(panel + 2 * at, &half, sizeof half);
            }
            continue;
        }
        ex_codes(f, b, factor, rank, ex_scale(panel, r), codes);
        for (int64_t i = 0; i < rank; i++) {
            if (f == WEFT_Q8_0) {
                panel[EX_SCALES + i * WEFT__EXPAND_ROWS + r] = (uint8_t)codes[i];
            } else {
                uint8_t *to = &panel[EX_SCALES + i / 2 * WEFT__EXPAND_ROWS + r];
                *to = (uint8_t)(i % 2 ? (*to & 0x0F) | (codes[i] + 8) << 4 : (*to & 0xF0) | (codes[i] + 8));
            }
        }
    }
}

/* weft__expand.put of h as it is: what a sum starts from (4 bits: minus eight times the sum of h), then [ranks, whole
 * pairs]. */
static inline size_t ex_h_bytes(int64_t rank)
{
    return (size_t)(1 + 2 * ex_groups(rank, 2)) * sizeof(float);
}

static inline void ex_h_put(uint32_t f, const float *h, int64_t rank, float *to)
{
    float sum = 0;
    for (int64_t i = 0; i < rank; i++) sum += h[i];
    to[0] = f == WEFT_Q4_0 ? -8 * sum : 0;
    memcpy(to + 1, h, (size_t)rank * sizeof *h);
    if (rank % 2) to[1 + rank] = 0;
}

/* Defines weft__expand_ID_TIER out of WAY_panel_bytes, WAY_pack, WAY_h_bytes, WAY_h_put and WAY_run. */
#define EX_KERNEL(way, format, id, tier_name, TIER)                                                                    \
    static size_t id##_bytes(int64_t rank)                                                                             \
    {                                                                                                                  \
        return way##_panel_bytes(WEFT_##format, rank);                                                                 \
    }                                                                                                                  \
    static void id##_pack(const float *b, int64_t ldb, float factor, int n_rows, int64_t rank, void *panel)            \
    {                                                                                                                  \
        way##_pack(WEFT_##format, b, ldb, factor, n_rows, rank, panel);                                                \
    }                                                                                                                  \
    static void id##_put(const float *h, int64_t rank, void *to)                                                       \
    {                                                                                                                  \
        way##_h_put(WEFT_##format, h, rank, to);                                                                       \
    }                                                                                                                  \
    static void id##_run(const void *panels, int64_t n_out, int64_t rank, const void *const *h, int m,                 \
                         float *const *y, const void *next)                                                            \
    {                                                                                                                  \
        way##_run(WEFT_##format, panels, n_out, rank, h, m, y, next);                                                  \
    }                                                                                                                  \
    const weft__expand weft__expand_##id##_##tier_name = {"expand_" #id "_" #tier_name,                                \
                                                          WEFT_##format,                                               \
                                                          WEFT__TIER_##TIER,                                           \
                                                          id##_bytes,                                                  \
                                                          id##_pack,                                                   \
                                                          way##_h_bytes,                                               \
                                                          id##_put,                                                    \
                                                          id##_run};

#endif
