// SPDX-License-Identifier: Apache-2.0
/* matmul_pair.h: two neighbouring panels at once, for tiers with VPDPBUSD (words: matmul_quant.h, which includes this).
 *
 * Each word of activations is loaded once and multiplied twice, so that the multipliers, not the loads, are the limit.
 * Of 32 registers 16 hold sums of the tile and 8 sums of products (PAIR_DEEP: 8 and 16); nothing else may push one of
 * them out, as a stored register costs as much as two multiplications, and the compiler stores many when it is left to
 * itself. So loads stay where they are written (mm_fence), and scales that want more than two registers are made into
 * floats once for all rows, and read where they are used. Whoever changes these functions looks at what the compiler
 * made of each format: small changes turn into many stored registers.
 *
 * f is a format with a scale for every 32 inputs, or more of them. Invariant: codes, scales and the sequence of
 * operations on each output are those of mm_tile, so the bits are too. */
#ifndef WEFT_KERNELS_SIMD_MATMUL_PAIR_H
#define WEFT_KERNELS_SIMD_MATMUL_PAIR_H

#include "kernels/simd/matmul_block.h"
#include "kernels/simd/matmul_tile.h"
#include "kernels/simd/matmul_two.h"

enum {
    PAIR_TABLE_ENOUGH = 3 * MM_TILE /* rows that repay a table of scales */,
    PAIR_TABLE = MM_BLOCK_STEPS * 2 * PAIR_SCALES
};

/* Are scales read from a table of floats? Of the others, d of a half stays in registers. */
MM_INLINE int pair_has_table(int f)
{
    return mm_is_256(f) || mm_has_min(f);
}

/* ---- scales without a multiplier ----
 * On Zen 4 additions have units of their own, and only multiplications compete with VPDPBUSD: there, two additions make
 * the product of two scales (mm_powers). Others multiply (tune.def): scales are the same on all, so that answers are.
 * The bits are those of the product as long as numbers are far from the ends of their range: of activations that is
 * looked up beforehand. Of weights in blocks of 256, whose small integers make some scales zero, while the table is
 * made, and zeros are left out of additions; of others, whose f16 are looked at while they are read, a tile is done
 * again. */

#define PAIR_LEAST_ACT 0x1p-60f
#define PAIR_MOST_ACT 0x1p60f

/* For formats whose codes take hardly anything else to take apart: others have no room for additions (IQ4_NL gains
 * nothing, Q5_0 loses). Of those, a step in blocks of 32 begins with its scales, f16. */
MM_INLINE int pair_adds_apart(int f)
{
    return mm_is_plain(f) && MM_TUNED(f, by_addition);
}

/* Is the range of the weights' scales looked at where the table is made? */
MM_INLINE int pair_table_has_range(int f)
{
    return mm_is_256(f) && mm_is_plain(f);
}

/* Are the scales of all rows in range? Zero is: the codes are zeros, too. */
static inline int pair_usual_acts(const mm_block *b, int64_t n_steps, int64_t n_rows)
{
    unsigned beyond = 0;
    for (int64_t i = 0; i < n_rows; i += MM_TILE) {
        const uint8_t *a = b->act + i * b->row_bytes + mm_scale_at(MM_TILE);
        for (int64_t s = 0; s < n_steps; s++, a += MM_TILE * MM_ROW_STEP) {
            for (int r = 0; r < 2 * MM_TILE; r += MM_R) {
                const vf scale = vf_load((const float *)a + r);
                beyond |= vf_beyond(scale, PAIR_LEAST_ACT, PAIR_MOST_ACT);
            }
        }
    }
    return !beyond;
}

/* How a tile goes; what is best where is in tune.def. The bits are the same. */
enum pair_way {
    PAIR_PLAIN,
    PAIR_ADDS, /* scales are added, and found to be in range */
    /* Half of the rows at a time, which leaves registers for two sums of each 32 products, so that twice as many
     * products are on their way: where multipliers are two, one chain of sums for each row and panel is no more than
     * what keeps them busy. It reads a pair's panels twice. */
    PAIR_DEEP
};

MM_INLINE int pair_chains(int way)
{
    return way == PAIR_DEEP ? 2 : 1;
}

MM_INLINE int pair_pass_rows(int way)
{
    return MM_TILE / pair_chains(way);
}

MM_INLINE int pair_has_two_chains(int f, int64_t n_rows)
{
    return MM_TUNED(f, two_chains) && n_rows >= MM_TUNED(f, two_chains);
}

/* Scales of n spans of a pair of panels. Returns whether additions can make products of them. */
MM_INLINE int pair_fill_table(int f, const uint8_t *w, size_t stride, int64_t n_spans, float *to)
{
    unsigned odd = 0;
    for (int64_t i = 0; i < n_spans; i++, w += mm_span_bytes(f)) {
        mm_head head[2];
        UNROLL for (int p = 0; p < 2; p++) mm_load_head(f, w + (size_t)p * stride, 0, &head[p]);
        for (int s = 0; s < mm_steps(f); s++) {
            UNROLL for (int h = 0; h < 2; h++, to += PAIR_SCALES)
            {
                UNROLL for (int p = 0; p < 2; p++)
                {
                    mm_scales sc;
                    mm_load_scales(f, w + (size_t)p * stride, 0, &head[p], s, h, &sc);
                    pair_put_scales(f, &sc, p, to);
                    if (pair_table_has_range(f)) odd |= vf_odd(sc.d[0]);
                }
            }
        }
    }
    return !odd;
}

/* The scale of a panel, d, times that of half h of a row of a tile of `tile`. usual, a constant: all scales are in
 * range, and those of the weights that are not zero are `some`. */
MM_INLINE vf pair_scale(int usual, vf_mask some, int tile, int h, int row, vf d, const uint8_t *a)
{
    const uint8_t *powers = a + mm_powers_at(tile) + 8 * (2 * row + h);
    return usual ? vf_add(vf_times_power(d, some, powers), vf_times_power(d, some, powers + 4))
                 : vf_mul(d, vf_word(a + mm_scale_at(tile) + 4 * (2 * row + h)));
}

/* acc + what the sum of 32 products comes to: half h of a step, a row of a tile of `tile`, one panel; m: where its
 * minimums are. */
MM_INLINE vf pair_add(int f, int tile, int h, int row, vi sum, vf scale, const float *m, const uint8_t *a, vf acc)
{
    acc = vf_fma(vf_from_int(sum), scale, acc);
    return mm_min_with_products(f) ? vf_fma(vf_load(m), vf_word(mm_sum_of(f, a, h, tile, row, 0)), acc) : acc;
}

/* Into the second level; where scales are added into the first, although lines do not stay there until they are
 * used. */
MM_INLINE void pair_ask_line(int way, const char *line)
{
    if (way == PAIR_ADDS) _mm_prefetch(line, _MM_HINT_T0);
    else _mm_prefetch(line, _MM_HINT_T1);
}

/* The scales of half a step, of each panel. */
typedef struct pair_scales {
    vf d[2];         /* unless there is a table */
    vf_mask some[2]; /* PAIR_ADDS: which of them are not zero, or of blocks of 32 all */
} pair_scales;

/* Of step s of the first panel's span at w. */
MM_INLINE void pair_load_scales(int f, const uint8_t *w, size_t stride, int64_t s, int h, pair_scales *to)
{
    UNROLL for (int p = 0; p < 2; p++)
    {
        mm_scales sc = {0};
        if (!pair_has_table(f)) mm_load_scales(f, w + (size_t)p * stride, 0, NULL, s, h, &sc);
        to->d[p] = sc.d[0];
        to->some[p] = VF_ALL;
    }
}

/* What rows of a tile meet in half a step. */
typedef struct pair_step {
    const uint8_t *c[2]; /* codes of the step, of each panel */
    const pair_scales *sc;
    const float *table; /* of the half, where there is one */
    const uint8_t *a;   /* activations of the whole tile */
} pair_step;

/* Half h of a step, n rows from `row` on, at most PAIR_ROWS, of a tile of `tile`: adds 32 products to their sums. */
MM_INLINE void pair_half(int f, int way, int h, int tile, int row, int n, const pair_step *step, vf *acc0, vf *acc1)
{
    const int chains = pair_chains(way);
    const pair_scales *const sc = step->sc;
    const float *const table = step->table;
    const uint8_t *const a = step->a;
    vi sum[2][2][PAIR_ROWS]; /* of a chain, a panel, a row */
    UNROLL for (int t = 0; t < n; t++)
    {
        const uint8_t *bias = mm_bias_of(f, a, h, tile, row + t, 0);
        sum[0][0][t] = sum[0][1][t] = bias ? vi_word(bias) : (vi){0};
        sum[1][0][t] = sum[1][1][t] = (vi){0};
    }
    UNROLL for (int g = 0; g < 8; g++)
    {
        const vi w0 = mm_code(f, step->c[0], h, g), w1 = mm_code(f, step->c[1], h, g);
        UNROLL for (int t = 0; t < n; t++)
        {
            const vi x = vi_keep(vi_word(a + 64 * (row + t) + 32 * h + 4 * g));
            vi(*const s)[PAIR_ROWS] = sum[g % chains];
            s[0][t] = mm_dot_reg(s[0][t], w0, x);
            s[1][t] = mm_dot_reg(s[1][t], w1, x);
        }
        simd_fence();
    }
    UNROLL for (int t = 0; t < n; t++)
    {
        UNROLL for (int p = 0; p < 2; p++)
        {
            const vi all = chains == 2 ? vi_add32(sum[0][p][t], sum[1][p][t]) : sum[0][p][t];
            const vf by = pair_has_table(f) ? vf_load(table + p * MM_R) : sc->d[p];
            const vf scale = pair_scale(way == PAIR_ADDS, sc->some[p], tile, h, row + t, by, a);
            vf *acc = (p ? acc1 : acc0) + t;
            *acc = pair_add(f, tile, h, row + t, all, scale, table + (2 + p) * MM_R, a, *acc);
        }
        if (pair_has_table(f)) simd_fence(); /* the next row reads it again */
    }
    simd_fence();
}

/* A full tile of rows and a pair of panels of a block. */
typedef struct pair_tile {
    const uint8_t *w; /* of the first panel; the second is `stride` behind it */
    size_t stride;
    int64_t n_spans;
    const float *table; /* of scales, where there is one */
    const uint8_t *a;
    int more; /* sums go on from what is in out, else from zero */
    weft__kernel_prefetch *ahead;
    float *out; /* all outputs are there */
    int64_t ldo;
} pair_tile;

/* Rows t0.. of a tile, as many as `way` takes at a time (the rest: pair_run_tile). Meanwhile each step asks for `lines`
 * lines of two panels, from `next` on and `stride` behind it. Returns 0, and has put nothing into out, where the scales
 * are not as `way` wants them. */
MM_INLINE int pair_pass(int f, int way, int t0, const pair_tile *p, const char *next, int lines)
{
    const int steps = mm_steps(f), step_bytes = mm_step_regs(f) * MM_REG, span_bytes = mm_span_bytes(f);
    const int n = pair_pass_rows(way);
    const uint8_t *w = p->w, *a = p->a;
    const size_t stride = p->stride;
    const int64_t n_spans = p->n_spans, ldo = p->ldo;
    const float *table = p->table;
    weft__kernel_prefetch *const ahead = p->ahead;
    float *const out = p->out + t0 * ldo;
    unsigned odd = 0;
    vf acc[2][MM_TILE];
    UNROLL for (int t = 0; t < n; t++)
    {
        UNROLL for (int i = 0; i < 2; i++) acc[i][t] = p->more ? vf_load(out + t * ldo + i * MM_R) : vf_zero();
    }
    for (int64_t i = 0; i < n_spans; i++, w += span_bytes) {
        const uint8_t *c[2] = {w + mm_head_row(f) * MM_PANEL, w + stride + mm_head_row(f) * MM_PANEL};
        for (int64_t s = 0; s < steps; s++, c[0] += step_bytes, c[1] += step_bytes, a += MM_TILE * MM_ROW_STEP) {
            for (int l = 0; l < lines; l++, next += 64) {
                for (int j = 0; j < 2; j++) pair_ask_line(way, next + (size_t)j * stride);
            }
            if (way == PAIR_ADDS && !pair_table_has_range(f))
                odd |= vi_odd_f16(vi_load(w)) | vi_odd_f16(vi_load(w + stride));
            UNROLL for (int h = 0; h < 2; h++, table += PAIR_SCALES)
            {
                pair_scales sc;
                const pair_step step = {{c[0], c[1]}, &sc, table, a};
                if (ahead && h == 1) mm_fetch_ahead(ahead);
                pair_load_scales(f, w, stride, s, h, &sc);
                if (way == PAIR_ADDS && pair_table_has_range(f))
                    UNROLL for (int j = 0; j < 2; j++) sc.some[j] = vf_some(vf_load(table + j * MM_R));
                UNROLL for (int t = 0; t < n; t += PAIR_ROWS)
                    pair_half(f, way, h, MM_TILE, t0 + t, PAIR_ROWS, &step, acc[0] + t, acc[1] + t);
            }
        }
        if (mm_min_with_span(f))
            pair_mins(f, t0, n, table - 2 * steps * PAIR_SCALES, PAIR_SCALES, a - steps * MM_TILE * MM_ROW_STEP, acc[0],
                      acc[1]);
    }
    if (odd) return 0;
    UNROLL for (int t = 0; t < n; t++)
    {
        UNROLL for (int i = 0; i < 2; i++) vf_store(out + t * ldo + i * MM_R, acc[i][t]);
    }
    return 1;
}

/* What is fetched of the pair that comes next, spread over all passes of all tiles of a chunk: every line of its panels
 * once, but for less than a pass's lines behind their end. */
typedef struct pair_asks {
    const char *next;       /* the first panel */
    int64_t n_steps;        /* of a pass */
    int passes, each, more; /* lines of each panel that a step asks for; in so many passes one more */
} pair_asks;

static inline pair_asks pair_asks_of(int64_t n_lines, int64_t n_steps, int64_t passes)
{
    const int64_t each = n_lines / (n_steps * passes), rest = n_lines - each * n_steps * passes;
    return (pair_asks){NULL, n_steps, (int)passes, (int)each, (int)((rest + n_steps - 1) / n_steps)};
}

/* Where the lines of pass i begin, and how many of each panel a step asks for. */
MM_INLINE int pair_ask(const pair_asks *asks, int i, const char **next)
{
    const int before = i * asks->more / asks->passes, then = (i + 1) * asks->more / asks->passes;
    *next = asks->next + 64 * asks->n_steps * (i * asks->each + before);
    return asks->each + then - before;
}

/* The tile; i: the number of its first pass. Returns as pair_pass. */
MM_INLINE int pair_run_tile(int f, int way, const pair_tile *p, const pair_asks *asks, int i)
{
    const int n = pair_pass_rows(way);
    const char *next;
    int lines = pair_ask(asks, i, &next);
    if (!pair_pass(f, way, 0, p, next, lines)) return 0;
    if (n < MM_TILE) {
        lines = pair_ask(asks, i + 1, &next);
        (void)pair_pass(f, way, n, p, next, lines);
    }
    return 1;
}

/* Whole pairs of panels of a block. Returns how many outputs that were. */
MM_INLINE int64_t pair_run(int f, const mm_block *b, int64_t n_out, int64_t n_rows, float *out, int64_t ldo)
{
    _Alignas(64) float table[PAIR_TABLE];
    const int is_deep = pair_has_two_chains(f, n_rows);
    const int tile_passes = is_deep ? pair_chains(PAIR_DEEP) : 1;
    const int64_t n_steps = b->n_spans * mm_steps(f), n_lines = (b->n_spans * mm_span_bytes(f) + 63) / 64;
    pair_asks asks = pair_asks_of(n_lines, n_steps, n_rows / MM_TILE * tile_passes);
    pair_tile p = {b->w, b->stride, b->n_spans, table, b->act, b->more, b->ahead, out, ldo};
    const int usual_acts = pair_adds_apart(f) && pair_usual_acts(b, n_steps, n_rows);
    int usual = usual_acts;
    int64_t n = 0;
    for (; n + PAIR_OUTS <= n_out; n += PAIR_OUTS, p.w += 2 * b->stride) {
        int pass = 0;
        asks.next = (const char *)(n + 2 * PAIR_OUTS <= n_out ? p.w + 2 * b->stride : b->after);
        if (pair_has_table(f)) {
            const int in_range = pair_fill_table(f, p.w, b->stride, b->n_spans, table);
            if (pair_table_has_range(f)) usual = usual_acts && in_range;
        }
        for (int64_t i = 0; i < n_rows; i += MM_TILE, pass += tile_passes) {
            p.a = b->act + i * b->row_bytes;
            p.out = out + i * ldo + n;
            mm_fetch_outputs(b->more ? pair_then(n_out, n, n_rows, i, out, ldo) : p.out, ldo, MM_TILE, PAIR_OUTS);
            usual = usual && pair_run_tile(f, PAIR_ADDS, &p, &asks, pass);
            if (usual) continue;
            if (is_deep) (void)pair_run_tile(f, PAIR_DEEP, &p, &asks, pass);
            else (void)pair_run_tile(f, PAIR_PLAIN, &p, &asks, pass);
        }
    }
    return n;
}

#endif
