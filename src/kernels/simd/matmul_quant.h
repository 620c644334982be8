// SPDX-License-Identifier: Apache-2.0
/* matmul_quant.h: products of quantized weights and 8-bit activations, for any vector tier (layouts: matmul_layout.h).
 *
 * The including file has included its tier's matmul_vec.h, which gives registers (vi, of MM_R rows of four bytes; vf,
 * of MM_R floats) and says by MM_DOT32 how bytes are multiplied. Every function here is inlined with constant format,
 * half and number of rows, so what reads as a decision is none at run time; of one row alone, only its place in its
 * tile is known then. One tile is one panel of weights by 1 to 8 rows of activations.
 *
 * Codes and scales are in matmul_codes.h; what 32 inputs come to, exactly and then as floats, in matmul_sums.h; a tile
 * in matmul_tile.h. Here are whole products: which tiles and panels meet when, two panels at once where that is better,
 * and what a tier's file defines for each format. */
#ifndef WEFT_KERNELS_SIMD_MATMUL_QUANT_H
#define WEFT_KERNELS_SIMD_MATMUL_QUANT_H

#include "kernels/kernels.h"
#include "kernels/simd/matmul_block.h"
#include "kernels/simd/matmul_tile.h"

/* Are two panels, or both strips of one, multiplied at once? (AVX-512 without VPDPBUSD could take two panels: that
 * was not measured.) */
#ifndef MM_TWO
#define MM_TWO MM_DOT32
#endif

#ifndef MM_CHUNK_BYTES
#define MM_CHUNK_BYTES WEFT__ACT_CHUNK_BYTES
#endif

/* ---- two panels at once ---- */

#if MM_DOT32
#include "kernels/simd/matmul_pair.h"
#include "kernels/simd/matmul_few.h"
#include "kernels/simd/matmul_wide.h"

/* Are panels taken apart for so many rows? */
MM_INLINE int mm_is_wide(int f, int64_t n_rows)
{
    return MM_TUNED(f, unpacked) && n_rows >= MM_TUNED(f, unpacked);
}

/* How often a tile's steps are gone over, while as often more is asked for. */
MM_INLINE int mm_passes(int f, int64_t n_rows)
{
    return mm_is_wide(f, n_rows) ? MM_TILE / PAIR_ROWS : pair_has_two_chains(f, n_rows) ? 2 : 1;
}

/* Several full tiles times whole pairs of panels; no outputs where panel by panel is faster: what is prepared of a
 * format with minimums or scales by 16 must serve enough rows (16 rows of Q4_K and Q5_K lost a tenth). Each way is a
 * function of its own: where they share one, the compiler stores sums that it has registers for. */
#define MM_PAIRS_FN(f, name)                                                                                           \
    MM_PAIRS_BY(name##_narrow, pair_run(f, b, n_out, c, end, out, ldo))                                                \
    MM_PAIRS_BY(name##_wide, wide_run(f, b, n_out, c, end, out, ldo))                                                  \
    static int64_t name##_pairs(const mm_block *b, int64_t n_out, int64_t c, int64_t end, float *out, int64_t ldo)     \
    {                                                                                                                  \
        if (mm_is_wide(f, end - c)) return name##_wide(b, n_out, c, end, out, ldo);                                    \
        if (end - c < PAIR_TABLE_ENOUGH && (mm_has_min(f) || mm_by_16(f))) return 0;                                   \
        return name##_narrow(b, n_out, c, end, out, ldo);                                                              \
    }
#define MM_PAIRS_BY(name, call)                                                                                        \
    static __attribute__((noinline)) int64_t name(const mm_block *b, int64_t n_out, int64_t c, int64_t end,            \
                                                  float *out, int64_t ldo)                                             \
    {                                                                                                                  \
        return call;                                                                                                   \
    }
#define MM_PAIRS(f, name) name##_pairs
#define MM_FEW_FN(f, name, n_rows)                                                                                     \
    static void name##_few_##n_rows(const uint8_t *w, size_t stride, int64_t n_spans, const uint8_t *a,                \
                                    const uint8_t *then, float *out, int64_t ldo)                                      \
    {                                                                                                                  \
        if (few_has(f)) few_tile(f, n_rows, w, stride, n_spans, a, then, out, ldo);                                    \
    }
#define MM_FEWS_FN(f, name)                                                                                            \
    MM_FEW_FN(f, name, 1)                                                                                              \
    MM_FEW_FN(f, name, 2)                                                                                              \
    MM_FEW_FN(f, name, 3)                                                                                              \
    MM_FEW_FN(f, name, 4)                                                                                              \
    MM_FEW_FN(f, name, 5)                                                                                              \
    MM_FEW_FN(f, name, 6)                                                                                              \
    MM_FEW_FN(f, name, 7)                                                                                              \
    MM_FEW_FN(f, name, 8)                                                                                              \
    static const mm_few_fn name##_few[MM_TILE] = {name##_few_1, name##_few_2, name##_few_3, name##_few_4,              \
                                                  name##_few_5, name##_few_6, name##_few_7, name##_few_8};
#define MM_FEWS(f, name) (few_has(f) && MM_TUNED(f, two_panels) ? name##_few : NULL)
#else
#define MM_FEWS_FN(f, name)
#define MM_FEWS(f, name) NULL
MM_INLINE int mm_passes(int f, int64_t n_rows)
{
    (void)f, (void)n_rows;
    return 1;
}
#if MM_TWO
#include "kernels/simd/matmul_wide.h"

#define MM_PAIRS_FN(f, name)                                                                                           \
    static int64_t name##_pairs(const mm_block *b, int64_t n_out, int64_t c, int64_t end, float *out, int64_t ldo)     \
    {                                                                                                                  \
        return end - c < MM_TUNED(f, unpacked) ? 0 : wide_run(f, b, n_out, c, end, out, ldo);                          \
    }
#define MM_PAIRS(f, name) (MM_TUNED(f, unpacked) ? name##_pairs : NULL)
#else
#define MM_PAIRS_FN(f, name)
#define MM_PAIRS(f, name) NULL
#endif
#endif

typedef int64_t (*mm_pairs_fn)(const mm_block *b, int64_t n_out, int64_t c, int64_t end, float *out, int64_t ldo);
typedef void (*mm_few_fn)(const uint8_t *w, size_t stride, int64_t n_spans, const uint8_t *a, const uint8_t *then,
                          float *out, int64_t ldo);
typedef void (*mm_tile_fn)(const uint8_t *w, int64_t n_spans, const uint8_t *a, const simd_next *next, int n_out,
                           float *out, int64_t ldo);

/* Rows whose activations stay in the second-level cache while panels pass by. */
MM_INLINE int64_t mm_chunk_rows(int64_t bytes_per_row)
{
    int64_t rows = MM_CHUNK_BYTES / bytes_per_row / MM_TILE * MM_TILE;
    return rows < MM_TILE ? MM_TILE : rows > MM_CHUNK_ROWS ? MM_CHUNK_ROWS : rows;
}

/* All blocks of a matrix with rows [c, end), full tiles, by `some`, which takes n_panels of its panels, so many
 * together. Returns how many outputs were computed. */
static inline int64_t mm_run_blocks(int f, mm_pairs_fn some, int together, int64_t n_panels, const uint8_t *panels,
                                    size_t stride, int64_t n_out, int64_t n_spans, const uint8_t *act, int64_t c,
                                    int64_t end, float *out, int64_t ldo, weft__kernel_prefetch *ahead)
{
    const int64_t at_once = MM_BLOCK_STEPS / mm_steps(f), span_bytes = mm_span_bytes(f);
    const uint8_t *end_of_panels = panels + (size_t)n_panels * stride;
    int64_t done = 0;
    if (ahead)
        mm_spread(ahead, n_panels / together * ((end - c) / MM_TILE) * n_spans * mm_steps(f) * mm_passes(f, end - c));
    for (int64_t s = 0; s < n_spans; s += at_once) {
        const int last = s + at_once >= n_spans;
        const mm_block b = {.w = panels + s * span_bytes,
                            .after = last ? end_of_panels : panels + (s + at_once) * span_bytes,
                            .stride = stride,
                            .n_spans = last ? n_spans - s : at_once,
                            .act = act + s * mm_steps(f) * MM_TILE * MM_ROW_STEP,
                            .row_bytes = n_spans * mm_steps(f) * MM_ROW_STEP,
                            .more = s > 0,
                            .ahead = ahead};
        done = some(&b, n_out, c, end, out, ldo);
    }
    return done;
}

/* weft__matmul.run: chunk of rows, then block, then pair of panels, then tile; what pairs leave over, and everything
 * where there is no such function, chunk by panel by tile, or by two panels. tiles[n - 1] and few[n - 1], or NULL,
 * serve n rows; pairs, full tiles where a chunk has two, which share the fetching of a pair. */
static inline void mm_run(int f, const mm_tile_fn *tiles, const mm_few_fn *few, mm_pairs_fn pairs, const void *panels,
                          size_t stride, int64_t n_out, int64_t k, const void *act, int64_t m, float *out, int64_t ldo,
                          weft__kernel_prefetch *ahead)
{
    enum { ENOUGH = 2 * MM_TILE, PAIR = 2 / MM_STRIPS, BEGINNING = 3072 /* bytes of what comes next */ };
    const int64_t n_steps = mm_act_steps(k), row_bytes = n_steps * MM_ROW_STEP, n_spans = mm_spans(f, k);
    const int64_t chunk = mm_chunk_rows(pairs && n_steps > MM_BLOCK_STEPS ? MM_BLOCK_STEPS * MM_ROW_STEP : row_bytes);
    const size_t n_bytes = (size_t)((n_out + MM_PANEL - 1) / MM_PANEL) * stride;
    const uint8_t *asked = ahead && ahead->n && m < ENOUGH ? ahead->range->at : NULL;
    const simd_next next = mm_next_of(f, panels, n_bytes, m, asked);
    if (ahead) ahead->at = ahead->end = 0, ahead->lines = 0;
    for (int64_t c = 0; c < m; c += chunk) {
        const int64_t end = m - c < chunk ? m : c + chunk, full = c + (end - c) / MM_TILE * MM_TILE;
        int64_t paired = 0; /* outputs whose full tiles are done */
        if (pairs && end - c >= ENOUGH)
            paired = mm_run_blocks(f, pairs, PAIR, n_out / (PAIR * MM_PANEL) * PAIR, panels, stride, n_out, n_spans,
                                   act, c, full, out, ldo, ahead);
        const uint8_t *w = panels;
        for (int64_t n = 0, outs; n < n_out; n += outs, w += (outs + MM_PANEL - 1) / MM_PANEL * (int64_t)stride) {
            const int64_t first = n < paired ? full : c;
            const int two = few && n + 2 * MM_PANEL <= n_out &&
                            end - first >= (first > c ? MM_TUNED(f, two_panels_rest) : MM_TUNED(f, two_panels));
            outs = two ? 2 * MM_PANEL : n_out - n < MM_PANEL ? n_out - n : MM_PANEL;
            for (int l = 0; two && asked && n + outs == n_out && l < BEGINNING; l += 64)
                _mm_prefetch((const char *)asked + l, _MM_HINT_T1);
            for (int64_t i = first; i < end; i += MM_TILE) {
                const uint8_t *a = (const uint8_t *)act + i * row_bytes;
                const int rows = mm_tile_rows(i, m), comes = i == first;
                if (two) few[rows - 1](w, stride, n_spans, a, comes ? w + 2 * stride : NULL, out + i * ldo + n, ldo);
                else tiles[rows - 1](w, n_spans, a, comes ? &next : NULL, (int)outs, out + i * ldo + n, ldo);
            }
        }
    }
}

/* Row t of a tile of n_rows. */
typedef void (*mm_row_fn)(int n_rows, int t, const uint8_t *w, int64_t n_spans, const uint8_t *a, const simd_next *next,
                          int n_out, float *out);

/* weft__matmul.run_row */
static inline void mm_run_row(int f, mm_row_fn one, const void *panels, size_t stride, int64_t n_out, int64_t k,
                              const void *act, int64_t row, int64_t m, float *out, const uint8_t *then)
{
    const int64_t row_bytes = mm_act_steps(k) * MM_ROW_STEP, n_spans = mm_spans(f, k), first = mm_tile_first(row, m);
    const simd_next next = mm_next_of(f, panels, (size_t)((n_out + MM_PANEL - 1) / MM_PANEL) * stride, 1, then);
    const uint8_t *w = panels;
    for (int64_t n = 0; n < n_out; n += MM_PANEL, w += stride)
        one(mm_tile_rows(first, m), (int)(row - first), w, n_spans, (const uint8_t *)act + first * row_bytes, &next,
            n_out - n < MM_PANEL ? (int)(n_out - n) : MM_PANEL, out + n);
}

/* ---- kernels: what a tier's file expands for each format ---- */

#define MM_TILE_FN(f, name, n_rows)                                                                                    \
    static void name##_##n_rows(const uint8_t *w, int64_t n_spans, const uint8_t *a, const simd_next *next, int n_out, \
                                float *out, int64_t ldo)                                                               \
    {                                                                                                                  \
        mm_tile(f, n_rows, 0, n_rows, w, n_spans, a, next, n_out, out, ldo);                                           \
    }

/* Defines weft__matmul_ID_TIER. pack_fn(rows, row_bytes, n_rows, k, panel) makes panels of MM_PANEL rows. */
#define MM_KERNEL(format, id, tier_name, TIER, pack_fn, act_form)                                                      \
    MM_TILE_FN(WEFT_##format, id, 1)                                                                                   \
    MM_TILE_FN(WEFT_##format, id, 2)                                                                                   \
    MM_TILE_FN(WEFT_##format, id, 3)                                                                                   \
    MM_TILE_FN(WEFT_##format, id, 4)                                                                                   \
    MM_TILE_FN(WEFT_##format, id, 5)                                                                                   \
    MM_TILE_FN(WEFT_##format, id, 6)                                                                                   \
    MM_TILE_FN(WEFT_##format, id, 7)                                                                                   \
    MM_TILE_FN(WEFT_##format, id, 8)                                                                                   \
    MM_PAIRS_FN(WEFT_##format, id)                                                                                     \
    MM_FEWS_FN(WEFT_##format, id)                                                                                      \
    static void id##_one(int n_rows, int t, const uint8_t *w, int64_t n_spans, const uint8_t *a,                       \
                         const simd_next *next, int n_out, float *out)                                                 \
    {                                                                                                                  \
        mm_tile(WEFT_##format, n_rows, t, 1, w, n_spans, a, next, n_out, out, 0);                                      \
    }                                                                                                                  \
    static void id##_run_row(const void *panels, size_t stride, int64_t n_out, int64_t k, const void *act,             \
                             int64_t row, int64_t m, float *out, const uint8_t *next)                                  \
    {                                                                                                                  \
        mm_run_row(WEFT_##format, id##_one, panels, stride, n_out, k, act, row, m, out, next);                         \
    }                                                                                                                  \
    static void id##_run_ahead(const void *panels, size_t stride, int64_t n_out, int64_t k, const void *act,           \
                               int64_t m, float *out, int64_t ldo, weft__kernel_prefetch *ahead)                       \
    {                                                                                                                  \
        static const mm_tile_fn tiles[MM_TILE] = {id##_1, id##_2, id##_3, id##_4, id##_5, id##_6, id##_7, id##_8};     \
        mm_run(WEFT_##format, tiles, MM_FEWS(WEFT_##format, id), MM_PAIRS(WEFT_##format, id), panels, stride, n_out,   \
               k, act, m, out, ldo, ahead);                                                                            \
    }                                                                                                                  \
    static void id##_run(const void *panels, size_t stride, int64_t n_out, int64_t k, const void *act, int64_t m,      \
                         float *out, int64_t ldo)                                                                      \
    {                                                                                                                  \
        id##_run_ahead(panels, stride, n_out, k, act, m, out, ldo, NULL);                                              \
    }                                                                                                                  \
    static size_t id##_panel_bytes(int64_t k)                                                                          \
    {                                                                                                                  \
        return mm_panel_bytes(WEFT_##format, k);                                                                       \
    }                                                                                                                  \
    const weft__matmul weft__matmul_##id##_##tier_name = {                                                             \
        .name = "matmul_" #id "_" #tier_name,                                                                          \
        .dtype = WEFT_##format,                                                                                        \
        .tier = WEFT__TIER_##TIER,                                                                                     \
        .panel_rows = MM_PANEL,                                                                                        \
        .act = &act_form,                                                                                              \
        .panel_bytes = id##_panel_bytes,                                                                               \
        .pack = pack_fn,                                                                                               \
        .run = id##_run,                                                                                               \
        .run_ahead = MM_DOT32 ? id##_run_ahead : NULL,                                                                 \
        .run_row = id##_run_row,                                                                                       \
    };

#endif