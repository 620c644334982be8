// SPDX-License-Identifier: Apache-2.0
/* matmul.h: products of quantized weights and 8-bit activations by AMX: 16 rows times 16 outputs times the inputs that
 * share a scale in one instruction (layouts and words: simd/matmul_layout.h, simd/matmul_quant.h). Those are 32, where
 * scales are small integers too (mm_small_scales), which are multiplied into the codes; Q6_K's 16 take as long as 32.
 *
 * Panels are taken apart into codes of eight bits, which are tiles of weights as they lie, and float scales: two at a
 * time, AMX_STEPS steps of them, which stay in the first-level cache while all rows of the chunk pass by (amx_block),
 * or, for one tile of rows, one turn after the other (amx_tile). Tiles of activations are read where they lie. What a
 * tile of products comes to goes through memory, as tile registers know no floats.
 *
 * What that takes:
 *  - Between a product and the floats of its sums lie several products' time. So four are under way, each in sum
 *    registers of its own: while the sums of one are scaled and added, those of the next are stored, and the fourth
 *    behind it begins; so from one panel or tile of rows to the next, but not between parts of a panel.
 *  - For a while behind an instruction for tiles, one of the two units that multiply 512 bits rests: multiplications,
 *    fused or not, and conversions go at half of their rate, additions of floats do not. So sums are not converted:
 *    they start where an integer is the mantissa of a float (AMX_ORIGIN), and one addition takes that off.
 *  - Lines come slowly from the second level to the first: hence two panels for each tile of rows.
 *  - Memory gives less while this goes on than it gives a mere read (amx_asks).
 *  - Addresses that come from memory cost time, as loads behind the storing of a tile wait.
 *
 * Invariant: sums of integers are exact, and the floats are those of mm_tile in the same order; so every number of rows
 * gives the same bits, and rows that are in no tile of 16 (mm_whole) are left to the kernel of VPDPBUSD, whose panels
 * these are. */
#ifndef WEFT_KERNELS_AMX_MATMUL_H
#define WEFT_KERNELS_AMX_MATMUL_H

#define MM_TILE_ROWS 16
#include "kernels/avx512vnni/matmul_vec.h" /* first: the layout depends on it */

#include "kernels/amx/tile.h"
#include "kernels/simd/matmul_pack.h"
#include "kernels/list.h"
#include "kernels/simd/matmul_quant.h"

extern const weft__act weft__act_q8_amx;

enum {
    AMX_STEPS = 8,                                        /* a multiple of every mm_steps and amx_turn_steps */
    AMX_CODES = 8 * MM_REG,                               /* bytes of the codes of half a step */
    AMX_HALF = AMX_CODES + 3 * MM_R * (int)sizeof(float), /* and behind them its scales: amx_d, amx_m */
    AMX_PANEL = 2 * AMX_STEPS * AMX_HALF,                 /* of a panel's steps */
    AMX_PANELS = 2,                                       /* that share the fetching of rows */
    AMX_FLIGHT = 4,                                       /* products under way: a turn */
    AMX_ASKS = 2,                                         /* times that a turn asks for lines */
    AMX_SUMS = MM_TILE * MM_R                             /* of a product */
};

/* ---- products ---- */

/* Tile registers: 0 to 3 sums, 4 and 5 activations, 6 and 7 weights. */
static inline void amx_begin(int f)
{
    const int inputs = 32 / wide_parts(f);
    amx_config c = {.palette = 1};
    for (int i = 0; i < AMX_FLIGHT; i++) amx_shape(&c, i, MM_TILE, MM_R * 4);
    for (int i = 0; i < 2; i++) {
        amx_shape(&c, 4 + i, MM_TILE, inputs);
        amx_shape(&c, 6 + i, inputs / 4, MM_REG);
    }
    amx_load_config(&c);
}

/* Sums start here, where an integer of less than 2^22 is the mantissa of a float: 1.5 * 2^23. Their magnitude is 255 *
 * 128 * 32 at most. (Where a program rounds downward, a sum of zero comes back as -0, which a conversion would not
 * give.) */
#define AMX_ORIGIN 0x1.8p23f
static const _Alignas(64) float amx_origin[MM_R] = {
    AMX_ORIGIN, AMX_ORIGIN, AMX_ORIGIN, AMX_ORIGIN, AMX_ORIGIN, AMX_ORIGIN, AMX_ORIGIN, AMX_ORIGIN,
    AMX_ORIGIN, AMX_ORIGIN, AMX_ORIGIN, AMX_ORIGIN, AMX_ORIGIN, AMX_ORIGIN, AMX_ORIGIN, AMX_ORIGIN};

/* Sums of a row as floats, exactly. */
MM_INLINE vf amx_from_sums(const float *sums)
{
    return vf_add(vf_load(sums), vf_set(-AMX_ORIGIN));
}

#define AMX_MULTIPLY(f, w, w_at, a, a_at, sums, rows, weights)                                                         \
    do {                                                                                                               \
        AMX_LOAD(weights, w, w_at, MM_REG);                                                                            \
        AMX_LOAD(rows, a, a_at, MM_STEP);                                                                              \
        AMX_LOAD_SAME(sums, amx_origin);                                                                               \
        if (mm_has_min(f)) _tile_dpbsud(sums, rows, weights);                                                          \
        else _tile_dpbssd(sums, rows, weights);                                                                        \
    } while (0)

/* The product of codes at w + w_at and rows at a + a_at to sum register i % AMX_FLIGHT, constants. */
MM_INLINE void amx_multiply(int f, int i, const uint8_t *w, int w_at, const uint8_t *a, int a_at)
{
    switch (i % AMX_FLIGHT) {
    case 0: AMX_MULTIPLY(f, w, w_at, a, a_at, 0, 4, 6); break;
    case 1: AMX_MULTIPLY(f, w, w_at, a, a_at, 1, 5, 7); break;
    case 2: AMX_MULTIPLY(f, w, w_at, a, a_at, 2, 4, 6); break;
    default: AMX_MULTIPLY(f, w, w_at, a, a_at, 3, 5, 7); break;
    }
}

/* Sum register i % AMX_FLIGHT to its place in `sums`. */
MM_INLINE void amx_store(int i, float *sums)
{
    enum { BYTES = AMX_SUMS * (int)sizeof(float) };
    switch (i % AMX_FLIGHT) {
    case 0: AMX_STORE(0, sums, 0, MM_R * 4); break;
    case 1: AMX_STORE(1, sums, BYTES, MM_R * 4); break;
    case 2: AMX_STORE(2, sums, 2 * BYTES, MM_R * 4); break;
    default: AMX_STORE(3, sums, 3 * BYTES, MM_R * 4); break;
    }
}

/* ---- weights ---- */

/* Where the scales of half a step that was taken apart begin: d[i] (mm_small_scales: of the span), and m[i] behind
 * them. */
MM_INLINE int amx_d(int i)
{
    return AMX_CODES + i * MM_R * (int)sizeof(float);
}
MM_INLINE int amx_m(int i)
{
    return amx_d(1 + i);
}
MM_INLINE vf amx_scale(const uint8_t *half, int at)
{
    return vf_load((const float *)(half + at));
}

/* Codes as the tiles want them: with their offset taken off, where there is one, which saves the bias. Of Q3_K, minus
 * the product of code and scale: that is in [-128, 124]. */
MM_INLINE vi amx_code(int f, const uint8_t *c, int h, int g, vi scale)
{
    const vi w = wide_code(f, c, h, g, scale);
    if (mm_has_min(f)) return w;
    return f == WEFT_Q4_0 && h == 0 ? vi_sub8(w, vi_bytes(8)) : vi_xor(w, vi_bytes(0x80));
}

/* Takes n spans of a panel apart. */
MM_INLINE void amx_unpack(int f, const uint8_t *restrict w, int64_t n_spans, uint8_t *restrict to)
{
    for (; n_spans > 0; n_spans--, w += mm_span_bytes(f)) {
        const uint8_t *c = w + mm_head_row(f) * MM_PANEL;
        mm_head head;
        mm_load_head(f, w, 0, &head);
        for (int s = 0; s < mm_steps(f); s++, c += mm_step_regs(f) * MM_REG) {
            UNROLL for (int h = 0; h < 2; h++, to += AMX_HALF)
            {
                mm_scales sc;
                mm_load_scales(f, w, 0, &head, s, h, &sc);
                UNROLL for (int q = 0; q < 2; q++)
                {
                    vi scale = {0};
                    if (mm_small_scales(f)) scale = wide_scale(f, mm_scales_by_16(f, w, 0, s, h, q));
                    UNROLL for (int g = 4 * q; g < 4 * q + 4; g++)
                        vi_store(to + g * MM_REG, amx_code(f, c, h, g, scale));
                }
                vf_store((float *)(to + amx_d(0)), mm_small_scales(f) ? head.d[0] : sc.d[0]);
                if (wide_parts(f) == 2) vf_store((float *)(to + amx_d(1)), sc.d[1]);
                UNROLL for (int i = 0; i < mm_mins(f); i++)
                {
                    if (mm_has_min(f)) vf_store((float *)(to + amx_m(i)), sc.m[i]);
                }
            }
        }
    }
    amx_fence();
}

/* ---- floats ---- */

/* Adds half h of a step to acc (mm_small_scales: the span's part); sums: of its first product, w: the half, a: the
 * step. */
MM_INLINE void amx_add(int f, int h, const float *sums, const uint8_t *w, const uint8_t *a, vf acc[MM_TILE])
{
    UNROLL for (int r = 0; r < MM_TILE; r++)
    {
        const vf scale = vf_word(a + mm_scale_at(MM_TILE) + 4 * (2 * r + h));
        const vf x = amx_from_sums(sums + r * MM_R);
        if (wide_parts(f) == 2) {
            const vf first = vf_mul(x, amx_scale(w, amx_d(0)));
            acc[r] =
                vf_fma(vf_fma(amx_from_sums(sums + AMX_SUMS + r * MM_R), amx_scale(w, amx_d(1)), first), scale, acc[r]);
        } else if (mm_small_scales(f)) {
            acc[r] = f == WEFT_Q3_K ? vf_fnma(x, scale, acc[r]) : vf_fma(x, scale, acc[r]);
        } else {
            acc[r] = vf_fma(x, vf_mul(amx_scale(w, amx_d(0)), scale), acc[r]);
        }
        if (mm_min_with_products(f))
            acc[r] = vf_fma(amx_scale(w, amx_m(0)), vf_word(mm_sum_of(f, a, h, MM_TILE, r, 0)), acc[r]);
    }
    /* GCC would carry this over the next AMX_STORE, but not the loads, and has no registers for what they bring. */
    UNROLL for (int r = 0; r < MM_TILE; r++) __asm__ volatile("" : SIMD_REGISTER(acc[r]));
}

/* The end of a span, whose codes and rows begin at w and a: adds its part to what there was, in `before`, and its
 * minimums. */
MM_INLINE void amx_span_end(int f, const uint8_t *w, const uint8_t *a, float *before, vf acc[MM_TILE])
{
    if (mm_small_scales(f)) {
        const vf d = amx_scale(w, amx_d(0));
        UNROLL for (int r = 0; r < MM_TILE; r++) acc[r] = vf_fma(acc[r], d, vf_load(before + r * MM_R));
    }
    for (int s = 0; mm_min_with_span(f) && s < mm_steps(f); s++, a += MM_TILE * MM_ROW_STEP) {
        UNROLL for (int h = 0; h < 2; h++, w += AMX_HALF)
        {
            UNROLL for (int i = 0; i < mm_mins(f); i++)
            {
                const vf m = amx_scale(w, amx_m(i));
                UNROLL for (int r = 0; r < MM_TILE; r++) acc[r] = mm_add_min(f, h, i, MM_TILE, r, m, a, acc[r]);
            }
        }
    }
    if (mm_small_scales(f)) {
        UNROLL for (int r = 0; r < MM_TILE; r++)
        {
            vf_store(before + r * MM_R, acc[r]);
            acc[r] = vf_zero();
        }
    }
}

/* ---- rows ---- */

/* Some steps of panels, taken apart, times tiles of rows. A tile meets all panels while it is in the first-level
 * cache. */
typedef struct amx_part {
    const uint8_t *codes;  /* of panels, AMX_PANEL apart */
    int n_panels, n_steps; /* whole turns, or one step */
    const uint8_t *a;      /* of the first tile */
    int64_t n_tiles, tile_bytes;
    const float *from; /* sums go on from those here, ld_from from row to row; NULL: from zero */
    float *to;         /* and are left here, ld_to from row to row */
    int64_t ld_from, ld_to;
    int n_out;        /* outputs that are there */
    const char *next; /* what comes next, next_apart for each panel, and how many lines are asked for at once */
    int64_t next_apart;
    int lines;
} amx_part;

/* What goes through memory: sums of the products under way, and what was there before a span. */
typedef struct amx_memory {
    float *sums, *before;
} amx_memory;

/* Steps of a turn, which has AMX_FLIGHT products. */
MM_INLINE int amx_turn_steps(int f)
{
    return AMX_FLIGHT / (2 * wide_parts(f));
}

/* One tile of rows asks for weights `bound_distance` bytes farther on, and of each page for its first `page_lead` bytes
 * alone: from there on the processor's own prefetching goes faster than requests do. */
#define AMX_TUNED(f, field) WEFT__KERNEL_TUNED(WEFT__TIER_AMX, weft__kernel_class_of(f), field)
enum { AMX_PAGE = 4096 };

MM_INLINE int amx_lead(int f)
{
    return AMX_TUNED(f, page_lead) ? AMX_TUNED(f, page_lead) : AMX_PAGE;
}

/* What is asked for ahead: `lines` lines at once, of each page those among the first `lead` bytes. */
typedef struct amx_asks {
    uintptr_t at, end;
    int lines, lead;
} amx_asks;

/* The line at `at`, or the first behind it that is asked for. */
MM_INLINE uintptr_t amx_asked(uintptr_t at, int lead)
{
    const uintptr_t in_page = at % AMX_PAGE;
    return in_page < (uintptr_t)lead ? at : at + AMX_PAGE - in_page;
}

/* Asks for the next lines, and moves on. One after the other: the compiler would change their order, which the
 * processor's own prefetching follows. */
MM_INLINE void amx_ask(amx_asks *asks)
{
    for (int i = 0; i < asks->lines && asks->at < asks->end; i++) {
        _mm_prefetch((const char *)asks->at, _MM_HINT_T1);
        simd_fence();
        asks->at = amx_asked(asks->at + 64, asks->lead);
    }
}

/* Lines to ask for at once, so that what comes next is asked for while n_spans of a panel meet n_tiles. A lone step
 * asks for none. */
MM_INLINE int amx_lines(int f, int64_t n_spans, int64_t n_tiles)
{
    const int64_t n_lines = n_spans * mm_span_bytes(f) / 64, n_turns = n_spans * mm_steps(f) / amx_turn_steps(f);
    const int64_t n_asks = AMX_ASKS * n_tiles * n_turns;
    return n_asks ? (int)((n_lines + n_asks - 1) / n_asks) : 0;
}

/* Begins product i of a turn whose codes and rows begin at w and a. */
MM_INLINE void amx_start(int f, int i, const uint8_t *w, const uint8_t *a)
{
    const int parts = wide_parts(f), half = i / parts, part = i % parts;
    const int w_at = half * AMX_HALF + part * AMX_CODES / parts;
    amx_multiply(f, i, w, w_at, a, half / 2 * MM_TILE * MM_ROW_STEP + half % 2 * 32 + 32 / parts * part);
}

/* Adds the turn at w and a, whose products are under way, to acc. If there is `more`, the products of the turn at
 * next_w, next_a begin. asks: those of a turn; moves on. */
MM_INLINE void amx_turn(int f, int more, amx_asks *asks, const uint8_t *next_w, const uint8_t *next_a, const uint8_t *w,
                        const uint8_t *a, float *sums, vf acc[MM_TILE])
{
    const int parts = wide_parts(f);
    UNROLL for (int i = 0; i < AMX_FLIGHT; i++)
    {
        const int half = i / parts;
        if (more) amx_start(f, i, next_w, next_a);
        if (i % (AMX_FLIGHT / AMX_ASKS) == 0) amx_ask(asks);
        amx_store(i + 1,
                  sums); /* behind the last, the first of what comes next; where that is nothing, what is never read */
        if (i % parts == parts - 1)
            amx_add(f, half % 2, sums + half * parts * AMX_SUMS, w + half * AMX_HALF,
                    a + half / 2 * MM_TILE * MM_ROW_STEP, acc);
    }
}

/* A step that is no turn, while nothing is under way: of formats in blocks of 32. */
MM_INLINE void amx_lone_step(int f, const uint8_t *w, const uint8_t *a, float *sums, vf acc[MM_TILE])
{
    UNROLL for (int h = 0; h < 2; h++)
    {
        amx_start(f, h, w, a);
        amx_store(h, sums);
        amx_add(f, h, sums + h * AMX_SUMS, w + h * AMX_HALF, a, acc);
    }
}

/* What a tile of rows comes to so far: n_out outputs of each row, ld apart. NULL: nothing. */
MM_INLINE void amx_take(int f, const float *from, int64_t ld, int n_out, float *before, vf acc[MM_TILE])
{
    UNROLL for (int r = 0; r < MM_TILE; r++)
    {
        acc[r] = from ? vf_load_part(from + r * ld, n_out) : vf_zero();
        if (mm_small_scales(f)) {
            vf_store(before + r * MM_R, acc[r]);
            acc[r] = vf_zero();
        }
    }
}

/* The same back. */
MM_INLINE void amx_leave(int f, const float *before, const vf acc[MM_TILE], float *to, int64_t ld, int n_out)
{
    UNROLL for (int r = 0; r < MM_TILE; r++)
    {
        vf_store_part(to + r * ld, mm_small_scales(f) ? vf_load(before + r * MM_R) : acc[r], n_out);
    }
}

/* Adds n_steps steps, whole turns and spans, at w and a, whose first turn is under way. next_w, next_a: the turn behind
 * them; NULL: none. */
MM_INLINE void amx_turns(int f, int n_steps, amx_asks *asks, const uint8_t *w, const uint8_t *a, const uint8_t *next_w,
                         const uint8_t *next_a, amx_memory memory, vf acc[MM_TILE])
{
    enum { STEP = MM_TILE * MM_ROW_STEP };
    const int turn = amx_turn_steps(f), n_turns = n_steps / turn, span_turns = mm_steps(f) / turn;
    for (int i = 1; i <= n_turns; i++, w += 2 * turn * AMX_HALF, a += turn * STEP) {
        if (i < n_turns) amx_turn(f, 1, asks, w + 2 * turn * AMX_HALF, a + turn * STEP, w, a, memory.sums, acc);
        else amx_turn(f, next_a != NULL, asks, next_w, next_a, w, a, memory.sums, acc);
        if (mm_is_256(f) && i % span_turns == 0)
            amx_span_end(f, w - (span_turns - 1) * 2 * turn * AMX_HALF, a - (span_turns - 1) * turn * STEP,
                         memory.before, acc);
    }
}

/* Begins the turn at w and a. */
MM_INLINE void amx_first_turn(int f, const uint8_t *w, const uint8_t *a, float *sums)
{
    UNROLL for (int i = 0; i < AMX_FLIGHT; i++) amx_start(f, i, w, a);
    amx_store(0, sums);
}

/* Does the part; moves what it says about sums and about what comes next to its end. */
MM_INLINE void amx_rows(int f, amx_part *p)
{
    _Alignas(64) float sums[AMX_FLIGHT * AMX_SUMS], before[AMX_SUMS];
    const int is_lone = p->n_steps % amx_turn_steps(f); /* one step */
    const uint8_t *a = p->a;
    if (!is_lone) amx_first_turn(f, p->codes, a, sums);
    for (int64_t t = 0; t < p->n_tiles; t++, a += p->tile_bytes) {
        for (int i = 0; i < p->n_panels; i++) {
            const int last = i + 1 == p->n_panels, left = p->n_out - i * MM_PANEL,
                      n_out = left < MM_PANEL ? left : MM_PANEL;
            const uint8_t *w = p->codes + i * AMX_PANEL, *next_a = !last                ? a
                                                                   : t + 1 < p->n_tiles ? a + p->tile_bytes
                                                                                        : NULL;
            amx_asks asks = {(uintptr_t)(p->next + i * p->next_apart), UINTPTR_MAX, p->lines, AMX_PAGE};
            vf acc[MM_TILE];
            amx_take(f, p->from ? p->from + i * MM_R : NULL, p->ld_from, n_out, before, acc);
            if (is_lone) amx_lone_step(f, w, a, sums, acc);
            else
                amx_turns(f, p->n_steps, &asks, w, a, last ? p->codes : w + AMX_PANEL, next_a,
                          (amx_memory){sums, before}, acc);
            amx_leave(f, before, acc, p->to + i * MM_R, p->ld_to, n_out);
        }
        p->next += p->n_steps / amx_turn_steps(f) * AMX_ASKS * p->lines * 64;
        if (p->from) p->from += MM_TILE * p->ld_from;
        p->to += MM_TILE * p->ld_to;
    }
}

/* All of a matrix times one tile of rows. What it comes to stays in registers, and of each panel a unit of steps is
 * taken apart while the first turn of the one before it is under way. Panels are not cut into blocks: weights are read
 * in one go, and one tile of activations stays in the second level anyway. */
MM_INLINE void amx_tile(int f, const weft__product *p)
{
    const uint8_t *w = p->panels, *const act = p->act;
    const size_t stride = p->stride;
    const int64_t n_out = p->n_out, n_spans = mm_spans(f, p->k), ldo = p->ldo;
    float *const out = p->out;
    const int unit =
        amx_turn_steps(f) > mm_steps(f) ? amx_turn_steps(f) : mm_steps(f); /* steps: whole turns and spans */
    const int spans = unit / mm_steps(f);
    const int64_t n_units = n_spans / spans, unit_bytes = (int64_t)spans * mm_span_bytes(f);
    const int64_t act_bytes = (int64_t)unit * MM_TILE * MM_ROW_STEP;
    const int lead = amx_lead(f), lines = (amx_lines(f, spans, 1) * lead + AMX_PAGE - 1) / AMX_PAGE; /* on average */
    const int distance = AMX_TUNED(f, bound_distance);
    const int is_lone = n_spans % spans != 0;
    _Alignas(64) uint8_t codes[2][2 * 4 * AMX_HALF]; /* of the unit at hand, and of the next: 4 steps at most */
    _Alignas(64) float sums[AMX_FLIGHT * AMX_SUMS], before[AMX_SUMS];
    amx_asks asks = {.at = amx_asked((uintptr_t)w + (uintptr_t)distance, lead), .lines = lines, .lead = lead};
    int turn = 0; /* which codes are multiplied */
    for (int64_t n = 0; n < n_out; n += MM_PANEL, w += stride) {
        const int is_last = n + MM_PANEL >= n_out, outs = is_last ? (int)(n_out - n) : MM_PANEL;
        vf acc[MM_TILE];
        if (n_units && (n == 0 || is_lone)) {
            amx_unpack(f, w, spans, codes[turn]);
            amx_first_turn(f, codes[turn], act, sums);
        }
        amx_take(f, NULL, 0, outs, before, acc);
        for (int64_t i = 1; i <= n_units; i++, turn = !turn) {
            const uint8_t *next = i < n_units ? w + i * unit_bytes : is_lone || is_last ? NULL : w + stride;
            const uint8_t *a = act + (i - 1) * act_bytes, *next_a = i < n_units ? a + act_bytes : act;
            asks.end = (uintptr_t)(w + i * unit_bytes) + (uintptr_t)distance;
            if (next) amx_unpack(f, next, spans, codes[!turn]);
            amx_turns(f, unit, &asks, codes[turn], a, codes[!turn], next ? next_a : NULL, (amx_memory){sums, before},
                      acc);
        }
        if (is_lone) {
            amx_unpack(f, w + n_units * unit_bytes, 1, codes[turn]);
            amx_lone_step(f, codes[turn], act + n_units * act_bytes, sums, acc);
        }
        amx_leave(f, before, acc, out + n, ldo, outs);
    }
}

/* All panels of a block, of MM_CHUNK_ROWS rows at most. Returns how many outputs that were. */
MM_INLINE int64_t amx_block(int f, const mm_block *b, int64_t n_out, int64_t n_rows, float *out, int64_t ldo)
{
    enum { OUTS = AMX_PANELS * MM_PANEL };
    _Alignas(64) uint8_t codes[AMX_PANELS * AMX_PANEL];
    _Alignas(64) float sums[MM_CHUNK_ROWS * OUTS];
    const int64_t at_once = AMX_STEPS / mm_steps(f), n_tiles = n_rows / MM_TILE;
    amx_part p = {.codes = codes,
                  .n_tiles = n_tiles,
                  .tile_bytes = MM_TILE * b->row_bytes,
                  .next_apart = (int64_t)b->stride,
                  .lines = amx_lines(f, b->n_spans, n_tiles)};
    const uint8_t *w = b->w;
    for (int64_t n = 0; n < n_out; n += OUTS, w += AMX_PANELS * b->stride) {
        p.next = (const char *)(n + OUTS < n_out ? w + AMX_PANELS * b->stride : b->after);
        p.n_out = n_out - n < OUTS ? (int)(n_out - n) : OUTS;
        p.n_panels = (p.n_out + MM_PANEL - 1) / MM_PANEL;
        for (int64_t first = 0, spans; first < b->n_spans; first += spans) {
            spans = b->n_spans - first < at_once ? b->n_spans - first : at_once;
            if (spans > 1 && spans * mm_steps(f) % amx_turn_steps(f)) spans--; /* the last step goes by itself */
            const int last = first + spans == b->n_spans;
            float *o = out + n;
            for (int i = 0; i < p.n_panels; i++)
                amx_unpack(f, w + (size_t)i * b->stride + first * mm_span_bytes(f), spans, codes + i * AMX_PANEL);
            p.n_steps = (int)spans * mm_steps(f);
            p.a = b->act + first * mm_steps(f) * MM_TILE * MM_ROW_STEP;
            p.from = first ? sums : b->more ? o : NULL;
            p.ld_from = first ? OUTS : ldo;
            p.to = last ? o : sums;
            p.ld_to = last ? ldo : OUTS;
            amx_rows(f, &p);
        }
    }
    return n_out;
}

typedef void (*amx_tile_fn)(const weft__product *p);

/* weft__matmul.run; few: the kernel of VPDPBUSD. */
static inline void amx_run(int f, amx_tile_fn tile, mm_pairs_fn block, const weft__matmul *few, const weft__product *p)
{
    const int64_t n_steps = mm_act_steps(p->k), row_bytes = n_steps * MM_ROW_STEP, whole = mm_whole(p->m);
    const int64_t chunk = mm_chunk_rows(n_steps > MM_BLOCK_STEPS ? MM_BLOCK_STEPS * MM_ROW_STEP : row_bytes);
    if (whole) {
        amx_begin(f);
        for (int64_t c = 0, end; c < whole; c = end) {
            end = whole - c < chunk ? whole : c + chunk;
            const weft__product part = weft__product_rows(p, row_bytes, c, end - c);
            if (end - c == MM_TILE && MM_TILE <= AMX_TUNED(f, bound_rows)) tile(&part);
            else mm_run_blocks(f, block, 1, (p->n_out + MM_PANEL - 1) / MM_PANEL, &part, NULL);
        }
        _tile_release(); /* a thread without tiles is switched sooner */
    }
    if (p->m > whole) {
        const weft__product rest = weft__product_rows(p, row_bytes, whole, p->m - whole);
        few->run(&rest, NULL);
    }
}

/* Defines weft__matmul_ID_amx. */
#define KERNEL(format, id)                                                                                             \
    static void id##_tile(const weft__product *p)                                                                      \
    {                                                                                                                  \
        amx_tile(WEFT_##format, p);                                                                                    \
    }                                                                                                                  \
    static int64_t id##_block(const mm_block *b, int64_t n_out, int64_t n_rows, float *out, int64_t ldo)               \
    {                                                                                                                  \
        return amx_block(WEFT_##format, b, n_out, n_rows, out, ldo);                                                   \
    }                                                                                                                  \
    static void id##_run(const weft__product *p, weft__kernel_prefetch *ahead)                                         \
    {                                                                                                                  \
        (void)ahead;                                                                                                   \
        amx_run(WEFT_##format, id##_tile, id##_block, &weft__matmul_##id##_avx512vnni, p);                             \
    }                                                                                                                  \
    static size_t id##_panel_bytes(int64_t k)                                                                          \
    {                                                                                                                  \
        return mm_panel_bytes(WEFT_##format, k);                                                                       \
    }                                                                                                                  \
    const weft__matmul weft__matmul_##id##_amx = {                                                                     \
        .name = "matmul_" #id "_amx",                                                                                  \
        .dtype = WEFT_##format,                                                                                        \
        .tier = WEFT__TIER_AMX,                                                                                        \
        .panel_rows = MM_PANEL,                                                                                        \
        .act = &weft__act_q8_amx,                                                                                      \
        .panels = "matmul_" #id "_avx512vnni",                                                                         \
        .panel_bytes = id##_panel_bytes,                                                                               \
        .pack = weft__matmul_pack_##id,                                                                                \
        .run = id##_run,                                                                                               \
    };

#endif
