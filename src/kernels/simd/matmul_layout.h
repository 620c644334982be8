// SPDX-License-Identifier: Apache-2.0
/* matmul_layout.h: how quantized weights and 8-bit activations lie in memory for the vector tiers.
 *
 * Letters: R = 16 rows of a panel, k inputs. A "register" is 4 * R bytes, one of AVX-512's and two of AVX2's, which
 * belong to a strip of eight rows each: a word of activations that was loaded serves both. Byte 4 * r + j belongs to
 * row r.
 *
 * Weights. A panel is R rows x all of k, in the order in which the inner loop reads it. It is a run of spans: 64 inputs
 * for formats of 32-element blocks, 256 for the others; a span is a head (scales) and one or four steps of 64 inputs
 * (codes):
 *   head, 32-element formats: d f16 [2][R], then for Q4_1 and Q5_1 m f16 [2][R]
 *   head, 256-element formats: d f16 [R]; dmin f16 [R] (Q2_K, Q4_K, Q5_K); scales [8 or 16][R] bytes; mins [8][R] bytes
 *   (Q4_K, Q5_K)
 * A step has two halves of 32 inputs (h = 0, 1), a half has eight groups (g) of four: input 32 * h + 4 * g + j is byte
 * j of a row. Registers of a step, in this order (low bits first: read in turn, they keep the processor's own
 * prefetching going):
 *   fives:   codes of 5 bits: one register per half, bit g is the lowest bit of the code in group g
 *   threes:  codes of 3 bits: one register per half, bit g is the highest bit of the code in group g
 *   pairs:   two registers per half: bits 2 * (g % 4) of register g / 4 are the lowest two bits of a code of 6, 3 or 2
 *            bits
 *   nibbles: eight: register g, low nibble half 0, high nibble half 1, the upper four bits of a code of 4, 5 or 6 bits
 *   bytes:   sixteen: register 8 * h + g, codes of 8 bits with the sign bit flipped
 *
 * Activations (8-bit form). Every 32 inputs of a row get a scale, the largest magnitude / 127 (for VPDPBUSD up to a
 * fifth more), and codes in [-127, 127]. Rows lie in tiles of T = 8 (the last tile of m rows has the rest; AMX:
 * mm_whole), a tile is a run of steps of 64 inputs, padded with zeros:
 *   [T][64] s8 codes, then tables of 4-byte words, h = 0, 1, quarter s = 0..3 (16 inputs each):
 *   scale [T][2] f32, bias32 [T][2], sum32 [T][2] f32 (scale * sum of codes), bias8 [T][2], bias16 [T][4], sum16 [T][4]
 *   f32, and for VPDPBUSD powers [T][2][2] (mm_powers)
 * A bias is what an accumulator of unsigned weight codes starts from, so that their offset costs nothing
 * (matmul_sums.h). */
#ifndef WEFT_KERNELS_SIMD_MATMUL_LAYOUT_H
#define WEFT_KERNELS_SIMD_MATMUL_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "weft/buffer.h"

#define MM_INLINE static inline __attribute__((always_inline))

#ifndef MM_TILE_ROWS
#define MM_TILE_ROWS 8
#endif

#ifndef MM_DOT32
#define MM_DOT32 0
#endif

enum {
    MM_PANEL = 16,         /* rows of a panel */
    MM_REG = 4 * MM_PANEL, /* bytes of a register */
    MM_STEP = 64,
    MM_TILE_SMALL = 8,
    MM_TILE = MM_TILE_ROWS,
    MM_ROW_STEP = MM_DOT32 ? 144 : 128 /* bytes of one row in one step of activations */
};

/* X(dtype, name) for every quantized format, by the size of its blocks. */
#define MM_QUANT_32(X)                                                                                                 \
    X(Q4_0, q4_0)                                                                                                      \
    X(Q4_1, q4_1)                                                                                                      \
    X(Q5_0, q5_0)                                                                                                      \
    X(Q5_1, q5_1)                                                                                                      \
    X(Q8_0, q8_0)                                                                                                      \
    X(IQ4_NL, iq4_nl)
#define MM_QUANT_256(X)                                                                                                \
    X(Q2_K, q2_k)                                                                                                      \
    X(Q3_K, q3_k)                                                                                                      \
    X(Q4_K, q4_k)                                                                                                      \
    X(Q5_K, q5_k)                                                                                                      \
    X(Q6_K, q6_k)                                                                                                      \
    X(IQ4_XS, iq4_xs)

MM_INLINE int mm_is_256(int f)
{
    return f == WEFT_Q2_K || f == WEFT_Q3_K || f == WEFT_Q4_K || f == WEFT_Q5_K || f == WEFT_Q6_K || f == WEFT_IQ4_XS;
}

/* A scale for every 16 inputs. */
MM_INLINE int mm_by_16(int f)
{
    return f == WEFT_Q2_K || f == WEFT_Q3_K || f == WEFT_Q6_K;
}

/* value = scale * code - or + minimum. */
MM_INLINE int mm_has_min(int f)
{
    return f == WEFT_Q4_1 || f == WEFT_Q5_1 || f == WEFT_Q2_K || f == WEFT_Q4_K || f == WEFT_Q5_K;
}

/* Bytes that a span's head needs for one row. */
MM_INLINE int mm_head_row(int f)
{
    switch (f) {
    case WEFT_Q4_1:
    case WEFT_Q5_1: return 8;
    case WEFT_Q2_K: return 2 + 2 + 16;
    case WEFT_Q3_K:
    case WEFT_Q6_K: return 2 + 16;
    case WEFT_Q4_K:
    case WEFT_Q5_K: return 2 + 2 + 8 + 8;
    case WEFT_IQ4_XS: return 2 + 8;
    default: return 4;
    }
}

/* Registers of a step before its pairs or nibbles. */
MM_INLINE int mm_plane_regs(int f)
{
    return f == WEFT_Q5_0 || f == WEFT_Q5_1 || f == WEFT_Q5_K || f == WEFT_Q3_K ? 2 : f == WEFT_Q6_K ? 4 : 0;
}

/* Registers of codes in a step. */
MM_INLINE int mm_step_regs(int f)
{
    switch (f) {
    case WEFT_Q8_0: return 16;
    case WEFT_Q5_0:
    case WEFT_Q5_1:
    case WEFT_Q5_K: return 8 + 2;
    case WEFT_Q6_K: return 8 + 4;
    case WEFT_Q2_K: return 4;
    case WEFT_Q3_K: return 4 + 2;
    default: return 8;
    }
}

MM_INLINE int mm_steps(int f)
{
    return mm_is_256(f) ? 4 : 1;
}

MM_INLINE int mm_span_bytes(int f)
{
    return mm_head_row(f) * MM_PANEL + mm_steps(f) * mm_step_regs(f) * MM_REG;
}

MM_INLINE int64_t mm_spans(int f, int64_t k)
{
    int64_t span = mm_steps(f) * MM_STEP;
    return (k + span - 1) / span;
}

MM_INLINE size_t mm_panel_bytes(int f, int64_t k)
{
    return ((size_t)mm_spans(f, k) * (size_t)mm_span_bytes(f) + 63) & ~(size_t)63;
}

/* Where a table of a step of activations begins, bytes; t rows in the tile. */
MM_INLINE int mm_scale_at(int t)
{
    return 64 * t;
}
MM_INLINE int mm_bias32_at(int t)
{
    return 72 * t;
}
MM_INLINE int mm_sum32_at(int t)
{
    return 80 * t;
}
MM_INLINE int mm_bias8_at(int t)
{
    return 88 * t;
}
MM_INLINE int mm_bias16_at(int t)
{
    return 96 * t;
}
MM_INLINE int mm_sum16_at(int t)
{
    return 112 * t;
}
MM_INLINE int mm_powers_at(int t)
{
    return 128 * t;
}

MM_INLINE int64_t mm_act_steps(int64_t k)
{
    return (k + MM_STEP - 1) / MM_STEP;
}

/* How many of m rows lie in tiles of 16, where MM_TILE is that. What is left are tiles of 8, and of the rest. */
MM_INLINE int64_t mm_whole(int64_t m)
{
    return m / MM_TILE * MM_TILE;
}

/* The tile that holds row i of m begins at this row. */
MM_INLINE int64_t mm_tile_first(int64_t i, int64_t m)
{
    return MM_TILE > MM_TILE_SMALL && i < mm_whole(m) ? i / MM_TILE * MM_TILE : i / MM_TILE_SMALL * MM_TILE_SMALL;
}

/* Rows in the tile that begins at row i of m. */
MM_INLINE int mm_tile_rows(int64_t i, int64_t m)
{
    return MM_TILE > MM_TILE_SMALL && i < mm_whole(m) ? MM_TILE : m - i < MM_TILE_SMALL ? (int)(m - i) : MM_TILE_SMALL;
}

#endif
