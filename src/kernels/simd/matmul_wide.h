// SPDX-License-Identifier: Apache-2.0
/* matmul_wide.h: products with weights that are costly to take apart, where many rows share them (words:
 * matmul_quant.h, which includes this). What is multiplied how is the including tier's: matmul_wide_dot.h,
 * matmul_wide_bytes.h.
 *
 * Two neighbouring panels, or both strips of one, are taken apart once, WIDE_STEPS steps at a time, into codes of eight
 * bits and float scales that stay in the first-level cache while all rows of the chunk pass by. What has been summed of
 * a row waits in memory meanwhile.
 *
 * Invariant: codes, scales and the sequence of operations on each output are those of mm_tile, so the bits are too. */
#ifndef WEFT_KERNELS_SIMD_MATMUL_WIDE_H
#define WEFT_KERNELS_SIMD_MATMUL_WIDE_H

#include "kernels/simd/matmul_block.h"
#include "kernels/simd/matmul_tile.h"
#include "kernels/simd/matmul_two.h"

#if MM_DOT32
#include "kernels/simd/matmul_wide_dot.h"
#else
#include "kernels/simd/matmul_wide_bytes.h"
#endif

/* Takes n spans of strip j of a panel apart, as part i of a pair. */
MM_INLINE void wide_unpack(int f, const uint8_t *w, int j, int n_spans, int i, wide_pair *to)
{
    uint8_t *half = to->halves[0] + i * MM_VEC; /* its part of each pair of registers, and of scales */
    for (int span = 0; span < n_spans; span++, w += mm_span_bytes(f)) {
        const uint8_t *c = w + mm_head_row(f) * MM_PANEL + j * MM_VEC;
        mm_head head;
        mm_load_head(f, w, j, &head);
        if (mm_small_scales(f)) vf_store(to->d[span] + i * MM_R, head.d[0]);
        for (int s = 0; s < mm_steps(f); s++, c += mm_step_regs(f) * MM_REG) {
            UNROLL for (int h = 0; h < 2; h++, half += WIDE_HALF)
            {
                mm_scales sc;
                mm_load_scales(f, w, j, &head, s, h, &sc);
                UNROLL for (int q = 0; q < 2; q++)
                {
                    vi scale = {0};
                    if (mm_small_scales(f)) scale = wide_scale(f, mm_scales_by_16(f, w, j, s, h, q));
                    UNROLL for (int g = 4 * q; g < 4 * q + 4; g++)
                        vi_store(half + 2 * g * MM_VEC, wide_code(f, c, h, g, scale));
                }
                pair_put_scales(f, &sc, 0, (float *)(half + WIDE_CODES));
            }
        }
    }
}

/* What is fetched meanwhile: `lines` lines of both panels of the pair that comes next for each step and pass, not all
 * of a tile's at once, as loads wait where all places for lines on their way are taken; and what else is asked for. */
typedef struct wide_next {
    const char *at, *stop; /* of the first panel */
    size_t stride;         /* to those of the second; of one panel, to the second half of its lines */
    int lines;
    weft__kernel_prefetch *ahead; /* or NULL */
} wide_next;

MM_INLINE void wide_ask(wide_next *next)
{
    for (int l = 0; l < next->lines && next->at < next->stop; l++, next->at += 64) {
        _mm_prefetch(next->at, _MM_HINT_T1);
        _mm_prefetch(next->at + next->stride, _MM_HINT_T1);
    }
    if (next->ahead) mm_fetch_ahead(next->ahead);
}

/* Where the sums of a tile go on, and where they are left; rows are ld apart. */
typedef struct wide_sums_at {
    const float *from; /* NULL: from zero */
    int64_t ld_from;
    float *to;
    int64_t ld;
} wide_sums_at;

/* Rows t0.. of a full tile, PAIR_ROWS of them, times n steps of a pair. */
MM_INLINE void wide_rows(int f, int t0, const wide_pair *w, int n_steps, const uint8_t *a, wide_next *next,
                         const wide_sums_at *at)
{
    const uint8_t *c = w->halves[0], *b = a;
    const float *const from = at->from;
    vf acc[2][PAIR_ROWS];
    UNROLL for (int t = 0; t < PAIR_ROWS; t++)
    {
        UNROLL for (int i = 0; i < 2; i++) acc[i][t] =
            from ? vf_load(from + (t0 + t) * at->ld_from + i * MM_R) : vf_zero();
    }
    for (int i = 0; i < n_steps; i += mm_steps(f)) {
        const uint8_t *const first = b;
        vf part[2][PAIR_ROWS] = {{{0}}};
        for (int s = 0; s < mm_steps(f); s++, b += MM_TILE * MM_ROW_STEP) {
            wide_ask(next);
            UNROLL for (int h = 0; h < 2; h++, c += WIDE_HALF)
                wide_half(f, h, t0, c, b, mm_small_scales(f) ? part : acc);
        }
        if (mm_small_scales(f)) {
            UNROLL for (int p = 0; p < 2; p++)
            {
                const vf d = vf_load(w->d[i / mm_steps(f)] + p * MM_R);
                UNROLL for (int t = 0; t < PAIR_ROWS; t++) acc[p][t] = vf_fma(part[p][t], d, acc[p][t]);
            }
        }
        if (mm_min_with_span(f))
            pair_mins(f, t0, PAIR_ROWS, (const float *)(c - 2 * mm_steps(f) * WIDE_HALF + WIDE_CODES),
                      WIDE_HALF / (int)sizeof(float), first, acc[0], acc[1]);
    }
    UNROLL for (int t = 0; t < PAIR_ROWS; t++)
    {
        UNROLL for (int i = 0; i < 2; i++) vf_store(at->to + (t0 + t) * at->ld + i * MM_R, acc[i][t]);
    }
}

/* The same for all rows of the tile. */
MM_INLINE void wide_tile(int f, const wide_pair *w, int n_steps, const uint8_t *a, wide_next *next,
                         const wide_sums_at *at)
{
    if (wide_is_unrolled(f)) {
        UNROLL for (int t0 = 0; t0 < MM_TILE; t0 += PAIR_ROWS) wide_rows(f, t0, w, n_steps, a, next, at);
    } else {
        for (int t0 = 0; t0 < MM_TILE; t0 += PAIR_ROWS) wide_rows(f, t0, w, n_steps, a, next, at);
    }
}

/* As pair_run, for MM_CHUNK_ROWS rows at most. Meanwhile the pair that comes next is fetched, and in good time the
 * lines that will be written. */
MM_INLINE int64_t wide_run(int f, const mm_block *b, int64_t n_out, int64_t n_rows, float *out, int64_t ldo)
{
    wide_pair pair;
    _Alignas(64) float sums[MM_CHUNK_ROWS * PAIR_OUTS];
    const int64_t at_once = WIDE_STEPS / mm_steps(f), n_parts = (b->n_spans + at_once - 1) / at_once;
    const int64_t n_asks = b->n_spans * mm_steps(f) * (n_rows / PAIR_ROWS);
    const int64_t pair_bytes = 2 / MM_STRIPS * (int64_t)b->stride,
                  n_lines = b->n_spans * mm_span_bytes(f) / 64 / MM_STRIPS;
    const uint8_t *w = b->w;
    wide_next next = {.stride = MM_STRIPS == 1 ? b->stride : 64 * (size_t)n_lines,
                      .lines = (int)((n_lines + n_asks - 1) / n_asks),
                      .ahead = b->ahead};
    int64_t n = 0;
    for (; n + PAIR_OUTS <= n_out; n += PAIR_OUTS, w += pair_bytes) {
        next.at = (const char *)(n + 2 * PAIR_OUTS <= n_out ? w + pair_bytes : b->after);
        next.stop = next.at + n_lines * 64;
        for (int64_t p = 0; p < n_parts; p++) {
            const int64_t first = p * at_once, spans = b->n_spans - first < at_once ? b->n_spans - first : at_once;
            const int last = p == n_parts - 1;
            for (int i = 0; i < 2; i++) {
                const uint8_t *from = w + (size_t)(i / MM_STRIPS) * b->stride + first * mm_span_bytes(f);
                wide_unpack(f, from, i % MM_STRIPS, (int)spans, i, &pair);
            }
            const uint8_t *a = b->act + first * mm_steps(f) * MM_TILE * MM_ROW_STEP;
            float *sum = sums;
            for (int64_t i = 0; i < n_rows; i += MM_TILE, a += MM_TILE * b->row_bytes, sum += MM_TILE * PAIR_OUTS) {
                float *o = out + i * ldo + n;
                if (p == n_parts - 2 || n_parts == 1) mm_fetch_outputs(o, ldo, MM_TILE, PAIR_OUTS);
                if (p == 0 && b->more)
                    mm_fetch_outputs(pair_then(n_out, n, n_rows, i, out, ldo), ldo, MM_TILE, PAIR_OUTS);
                const wide_sums_at at = {.from = p         ? sum
                                                 : b->more ? o
                                                           : NULL,
                                         .ld_from = p ? PAIR_OUTS : ldo,
                                         .to = last ? o : sum,
                                         .ld = last ? ldo : PAIR_OUTS};
                wide_tile(f, &pair, (int)spans * mm_steps(f), a, &next, &at);
            }
        }
    }
    return n;
}

#endif
