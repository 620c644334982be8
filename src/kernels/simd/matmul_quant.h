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

/* Are two panels, or both strips of one, multiplied at once? (AVX-512 without VPDPBUSD could take two panels: nobody
 * has measured it.) */
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
    MM_PAIRS_BY(name##_narrow, pair_run(f, b, n_out, n_rows, out, ldo))                                                \
    MM_PAIRS_BY(name##_wide, wide_run(f, b, n_out, n_rows, out, ldo))                                                  \
    static int64_t name##_pairs(const mm_block *b, int64_t n_out, int64_t n_rows, float *out, int64_t ldo)             \
    {                                                                                                                  \
        if (mm_is_wide(f, n_rows)) return name##_wide(b, n_out, n_rows, out, ldo);                                     \
        if (n_rows < PAIR_TABLE_ENOUGH && (mm_has_min(f) || mm_by_16(f))) return 0;                                    \
        return name##_narrow(b, n_out, n_rows, out, ldo);                                                              \
    }
#define MM_PAIRS_BY(name, call)                                                                                        \
    static __attribute__((noinline)) int64_t name(const mm_block *b, int64_t n_out, int64_t n_rows, float *out,        \
                                                  int64_t ldo)                                                         \
    {                                                                                                                  \
        return call;                                                                                                   \
    }
#define MM_PAIRS(f, name) name##_pairs
#define MM_FEW_FN(f, name, n_rows)                                                                                     \
    static void name##_few_##n_rows(const weft__product *p, const uint8_t *then)                                       \
    {                                                                                                                  \
        if (few_has(f)) few_tile(f, n_rows, p, then);                                                                  \
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
    static int64_t name##_pairs(const mm_block *b, int64_t n_out, int64_t n_rows, float *out, int64_t ldo)             \
    {                                                                                                                  \
        return n_rows < MM_TUNED(f, unpacked) ? 0 : wide_run(f, b, n_out, n_rows, out, ldo);                           \
    }
#define MM_PAIRS(f, name) (MM_TUNED(f, unpacked) ? name##_pairs : NULL)
#else
#define MM_PAIRS_FN(f, name)
#define MM_PAIRS(f, name) NULL
#endif
#endif

/* Whole pairs of panels of a block's n_out outputs and n_rows rows, which are full tiles; returns how many outputs that
 * were. (Arguments, not members of the block: the compiler is short of registers where panels are taken apart.) */
typedef int64_t (*mm_pairs_fn)(const mm_block *b, int64_t n_out, int64_t n_rows, float *out, int64_t ldo);
/* A pair of panels and a tile of rows; then: the pair that comes next, if this one comes from memory. */
typedef void (*mm_few_fn)(const weft__product *p, const uint8_t *then);
/* A panel and a tile of rows (mm_tile). */
typedef void (*mm_tile_fn)(const weft__product *p, const simd_next *next);
/* A panel and row t of a tile of n_rows. */
typedef void (*mm_row_fn)(int n_rows, int t, const weft__product *p, const simd_next *next);

/* The functions of a format: tiles[n - 1] and few[n - 1] serve n rows; pairs, full tiles where a chunk has two, which
 * share the fetching of a pair. few and pairs may be NULL. */
typedef struct mm_ways {
    const mm_tile_fn *tiles;
    const mm_few_fn *few;
    mm_pairs_fn pairs;
} mm_ways;

/* Rows whose activations stay in the second-level cache while panels pass by. */
MM_INLINE int64_t mm_chunk_rows(int64_t bytes_per_row)
{
    int64_t rows = MM_CHUNK_BYTES / bytes_per_row / MM_TILE * MM_TILE;
    return rows < MM_TILE ? MM_TILE : rows > MM_CHUNK_ROWS ? MM_CHUNK_ROWS : rows;
}

/* All blocks of a product whose rows are full tiles, by `some`, which takes n_panels of its panels, so many together.
 * Returns how many outputs were computed. */
static inline int64_t mm_run_blocks(int f, mm_pairs_fn some, int together, int64_t n_panels, const weft__product *p,
                                    weft__kernel_prefetch *ahead)
{
    const int64_t at_once = MM_BLOCK_STEPS / mm_steps(f), span_bytes = mm_span_bytes(f), n_spans = mm_spans(f, p->k);
    const uint8_t *const panels = p->panels, *const end_of_panels = panels + (size_t)n_panels * p->stride;
    mm_block b = {.stride = p->stride, .row_bytes = n_spans * mm_steps(f) * MM_ROW_STEP, .ahead = ahead};
    int64_t done = 0;
    if (ahead) mm_spread(ahead, n_panels / together * (p->m / MM_TILE) * n_spans * mm_steps(f) * mm_passes(f, p->m));
    for (int64_t s = 0; s < n_spans; s += at_once) {
        const int last = s + at_once >= n_spans;
        b.w = panels + s * span_bytes;
        b.after = last ? end_of_panels : panels + (s + at_once) * span_bytes;
        b.n_spans = last ? n_spans - s : at_once;
        b.act = (const uint8_t *)p->act + s * mm_steps(f) * MM_TILE * MM_ROW_STEP;
        b.more = s > 0;
        done = some(&b, p->n_out, p->m, p->out, p->ldo);
    }
    return done;
}

/* weft__matmul.run: chunk of rows, then block, then pair of panels, then tile; what pairs leave over, and everything
 * where there is no such function, chunk by panel by tile, or by two panels. */
static inline void mm_run(int f, const mm_ways *ways, const weft__product *p, weft__kernel_prefetch *ahead)
{
    enum { ENOUGH = 2 * MM_TILE, PAIR = 2 / MM_STRIPS, BEGINNING = 3072 /* bytes of what comes next */ };
    const int64_t m = p->m, n_out = p->n_out, n_steps = mm_act_steps(p->k), row_bytes = n_steps * MM_ROW_STEP;
    const int64_t chunk =
        mm_chunk_rows(ways->pairs && n_steps > MM_BLOCK_STEPS ? MM_BLOCK_STEPS * MM_ROW_STEP : row_bytes);
    const size_t n_bytes = (size_t)((n_out + MM_PANEL - 1) / MM_PANEL) * p->stride;
    const uint8_t *asked = m < ENOUGH ? weft__prefetch_first(ahead) : NULL;
    const simd_next next = mm_next_of(f, p->panels, n_bytes, m, asked);
    weft__product part = *p; /* a tile of rows, and one panel or two */
    if (ahead) ahead->at = ahead->end = 0, ahead->lines = 0;
    for (int64_t c = 0; c < m; c += chunk) {
        const int64_t end = m - c < chunk ? m : c + chunk, full = c + (end - c) / MM_TILE * MM_TILE;
        int64_t paired = 0; /* outputs whose full tiles are done */
        if (ways->pairs && end - c >= ENOUGH) {
            const weft__product tiles = weft__product_rows(p, row_bytes, c, full - c);
            paired = mm_run_blocks(f, ways->pairs, PAIR, n_out / (PAIR * MM_PANEL) * PAIR, &tiles, ahead);
        }
        const uint8_t *w = p->panels;
        for (int64_t n = 0, outs; n < n_out; n += outs, w += (outs + MM_PANEL - 1) / MM_PANEL * (int64_t)p->stride) {
            const int64_t first = n < paired ? full : c;
            const int two = ways->few && n + 2 * MM_PANEL <= n_out &&
                            end - first >= (first > c ? MM_TUNED(f, two_panels_rest) : MM_TUNED(f, two_panels));
            outs = two ? 2 * MM_PANEL : n_out - n < MM_PANEL ? n_out - n : MM_PANEL;
            for (int l = 0; two && asked && n + outs == n_out && l < BEGINNING; l += 64)
                _mm_prefetch((const char *)asked + l, _MM_HINT_T1);
            part.panels = w;
            part.n_out = outs;
            for (int64_t i = first; i < end; i += MM_TILE) {
                const int comes = i == first;
                part.act = (const uint8_t *)p->act + i * row_bytes;
                part.m = mm_tile_rows(i, m);
                part.out = p->out + i * p->ldo + n;
                if (two) ways->few[part.m - 1](&part, comes ? w + 2 * p->stride : NULL);
                else ways->tiles[part.m - 1](&part, comes ? &next : NULL);
            }
        }
    }
}

/* weft__matmul.run_row */
static inline void mm_run_row(int f, mm_row_fn one, const weft__product *p, int64_t row, weft__kernel_prefetch *ahead)
{
    const int64_t row_bytes = mm_act_steps(p->k) * MM_ROW_STEP, n_out = p->n_out, first = mm_tile_first(row, p->m);
    const int n_rows = mm_tile_rows(first, p->m);
    const simd_next next = mm_next_of(f, p->panels, (size_t)((n_out + MM_PANEL - 1) / MM_PANEL) * p->stride, 1,
                                      weft__prefetch_first(ahead));
    const uint8_t *w = p->panels;
    weft__product part = weft__product_rows(p, row_bytes, first, n_rows);
    for (int64_t n = 0; n < n_out; n += MM_PANEL, w += p->stride) {
        part.panels = w;
        part.n_out = n_out - n < MM_PANEL ? n_out - n : MM_PANEL;
        part.out = p->out + n;
        one(n_rows, (int)(row - first), &part, &next);
    }
}

/* ---- kernels: what a tier's file expands for each format ---- */

#define MM_TILE_FN(f, name, n_rows)                                                                                    \
    static void name##_##n_rows(const weft__product *p, const simd_next *next)                                         \
    {                                                                                                                  \
        mm_tile(f, n_rows, 0, n_rows, p, next);                                                                        \
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
    static void id##_one(int n_rows, int t, const weft__product *p, const simd_next *next)                             \
    {                                                                                                                  \
        mm_tile(WEFT_##format, n_rows, t, 1, p, next);                                                                 \
    }                                                                                                                  \
    static void id##_run_row(const weft__product *p, int64_t row, weft__kernel_prefetch *ahead)                        \
    {                                                                                                                  \
        mm_run_row(WEFT_##format, id##_one, p, row, ahead);                                                            \
    }                                                                                                                  \
    static void id##_run(const weft__product *p, weft__kernel_prefetch *ahead)                                         \
    {                                                                                                                  \
        static const mm_tile_fn tiles[MM_TILE] = {id##_1, id##_2, id##_3, id##_4, id##_5, id##_6, id##_7, id##_8};     \
        const mm_ways ways = {tiles, MM_FEWS(WEFT_##format, id), MM_PAIRS(WEFT_##format, id)};                         \
        mm_run(WEFT_##format, &ways, p, MM_DOT32 ? ahead : NULL);                                                      \
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
        .run_row = id##_run_row,                                                                                       \
        .prefetches = MM_DOT32,                                                                                        \
    };

#endif