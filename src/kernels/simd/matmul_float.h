// SPDX-License-Identifier: Apache-2.0
/* matmul_float.h: products of F32, F16 and BF16 weights, for any vector tier.
 *
 * The including file has included its tier's matmul_vec.h. A unit is what one instruction takes of a row: one input,
 * which is converted and goes into a fused multiply-add in f32; or, with MM_BF16_DOT, two inputs in bf16 for VDPBF16PS.
 * Weights: panels [units][registers][MM_R] of 1 or 2 elements. Activations: tiles of MM_FLOAT_TILE rows (the last of m
 * rows has the rest), steps of 16 units, [rows of the tile][16] words of 4 bytes (an f32, or two bf16), padded with
 * zeros. An output is one chain over k in order, so neither the number of rows nor how many panels go side by side
 * changes its bits. */
#ifndef WEFT_KERNELS_SIMD_MATMUL_FLOAT_H
#define WEFT_KERNELS_SIMD_MATMUL_FLOAT_H

#include <string.h>

#include "kernels/kernels.h"
#include "kernels/simd/matmul_layout.h"
#include "kernels/simd/next.h"
#include "kernels/simd/tuned.h"
#include "kernels/simd/unroll.h"

#ifndef MM_BF16_DOT
#define MM_BF16_DOT 0
#endif
#ifndef MM_FLOAT_TILE
#define MM_FLOAT_TILE 12 /* by two panels: 24 accumulators of 32 registers; AVX2 has half of both, and says so */
#endif

enum { MM_UNITS = 16, MM_UNIT_ELEMS = MM_BF16_DOT ? 2 : 1, MM_MAX_VECTORS = 4 };

/* Registers of rows in a panel. One chain of additions for each is needed to hide their latency, and panels that are
 * read side by side come slower than what lies one behind the other, where there is something to be done with each
 * line: F16 has both registers in one panel. Adapters of BF16 often have no more rows in A than one register. */
#define MM_FLOAT_VECTORS(f) ((f) == WEFT_F16 && MM_R == 16 ? 2 : 1)

/* Rows in the tile that begins at row i of m. */
MM_INLINE int mm_float_tile_rows(int64_t i, int64_t m)
{
    return m - i < MM_FLOAT_TILE ? (int)(m - i) : MM_FLOAT_TILE;
}

MM_INLINE int64_t mm_units(int64_t k)
{
    return (k + MM_UNIT_ELEMS - 1) / MM_UNIT_ELEMS;
}

MM_INLINE int64_t mm_unit_steps(int64_t k)
{
    return (mm_units(k) + MM_UNITS - 1) / MM_UNITS;
}

/* Bytes of one unit of a panel, and of one register's rows of it. */
MM_INLINE int mm_vector_bytes(int f)
{
    return (f == WEFT_F32 ? 4 : 2) * MM_UNIT_ELEMS * MM_R;
}

MM_INLINE int mm_unit_bytes(int f)
{
    return MM_FLOAT_VECTORS(f) * mm_vector_bytes(f);
}

MM_INLINE size_t mm_float_panel_bytes(int f, int64_t k)
{
    return ((size_t)mm_units(k) * (size_t)mm_unit_bytes(f) + 63) & ~(size_t)63;
}

/* weft__matmul.pack, 64 inputs of all rows at a time: what is written stays in the first level. */
MM_INLINE void mm_float_pack(int f, const uint8_t *rows, size_t row_bytes, int n_rows, int64_t k, uint8_t *panel)
{
    const int size = f == WEFT_F32 ? 4 : 2, panel_rows = MM_FLOAT_VECTORS(f) * MM_R;
    memset(panel, 0, mm_float_panel_bytes(f, k));
    for (int64_t begin = 0; begin < k; begin += 64) {
        const int64_t end = k - begin < 64 ? k : begin + 64;
        for (int r = 0; r < n_rows; r++) {
            const uint8_t *from = rows + (size_t)r * row_bytes;
            for (int64_t i = begin; i < end; i++) {
                int64_t at = (i / MM_UNIT_ELEMS * panel_rows + r) * MM_UNIT_ELEMS + i % MM_UNIT_ELEMS;
                memcpy(panel + at * size, from + i * size, (size_t)size);
            }
        }
    }
}

static inline size_t mm_float_act_bytes(int64_t k, int64_t m)
{
    return (size_t)mm_unit_steps(k) * (size_t)m * MM_UNITS * 4;
}

/* 16 units, all of them or n_elems inputs, into the form that is multiplied. */
MM_INLINE void mm_float_put_step(const float *x, int64_t n_elems, uint8_t *to)
{
    enum { ELEMS = MM_UNITS * MM_UNIT_ELEMS };
    float rest[ELEMS] = {0};
    if (n_elems < ELEMS) {
        memcpy(rest, x, (size_t)n_elems * sizeof *x);
        x = rest;
    }
#if MM_BF16_DOT
    for (int i = 0; i < 2; i++) mm_store_bf16(to + 32 * i, vf_load(x + 16 * i));
#else
    memcpy(to, x, ELEMS * sizeof *x);
#endif
}

/* weft__act.put */
static inline void mm_float_act_put(const float *x, int64_t ldx, const weft__act_part *part, void *act)
{
    enum { ELEMS = MM_UNITS * MM_UNIT_ELEMS, STEP = MM_UNITS * 4 };
    const int64_t steps = mm_unit_steps(part->k), n = part->to - part->from;
    for (int64_t row = part->row; row < part->row + part->n; row++, x += ldx) {
        const int64_t first = row / MM_FLOAT_TILE * MM_FLOAT_TILE;
        const int n_rows = mm_float_tile_rows(first, part->m);
        uint8_t *to = (uint8_t *)act + (first * steps + part->from / ELEMS * n_rows + (row - first)) * STEP;
        for (int64_t i = 0; i < n; i += ELEMS, to += n_rows * STEP) mm_float_put_step(x + i, n - i, to);
    }
}

/* weft__act.take */
static inline void mm_float_act_take(const void *act, int64_t k, int64_t row, int64_t m, void *to, int64_t to_row,
                                     int64_t to_m)
{
    enum { STEP = MM_UNITS * 4 };
    const int64_t first = row / MM_FLOAT_TILE * MM_FLOAT_TILE, to_first = to_row / MM_FLOAT_TILE * MM_FLOAT_TILE,
                  steps = mm_unit_steps(k);
    const int n_rows = mm_float_tile_rows(first, m), to_n = mm_float_tile_rows(to_first, to_m);
    const uint8_t *s = (const uint8_t *)act + (first * steps + (row - first)) * STEP;
    uint8_t *d = (uint8_t *)to + (to_first * steps + (to_row - to_first)) * STEP;
    for (int64_t i = 0; i < steps; i++, s += n_rows * STEP, d += to_n * STEP) memcpy(d, s, STEP);
}

/* ---- tiles ---- */

MM_INLINE vf mm_load_unit(int f, const uint8_t *w)
{
    if (MM_BF16_DOT || f == WEFT_F32) return vf_load((const float *)w);
    return f == WEFT_F16 ? vf_load_f16((const uint16_t *)w) : vf_load_bf16((const uint16_t *)w);
}

MM_INLINE vf mm_add_unit(vf acc, vf w, vf a)
{
#if MM_BF16_DOT
    return mm_dot_bf16(acc, w, a);
#else
    return vf_fma(w, a, acc);
#endif
}

/* One unit of n_panels panels, `stride` bytes apart, and of n_rows rows, into acc[register of outputs][row]. */
MM_INLINE void mm_unit(int f, int n_panels, int n_rows, const uint8_t *w, size_t stride, const uint8_t *a,
                       vf (*acc)[MM_FLOAT_TILE])
{
    const int v = MM_FLOAT_VECTORS(f), n = n_panels * v;
    vf x[MM_MAX_VECTORS];
    UNROLL for (int i = 0; i < n; i++) x[i] =
        mm_load_unit(f, w + (size_t)(i / v) * stride + i % v * mm_vector_bytes(f));
    UNROLL for (int t = 0; t < n_rows; t++)
    {
        vf y = vf_word(a + 4 * MM_UNITS * t);
        UNROLL for (int i = 0; i < n; i++) acc[i][t] = mm_add_unit(acc[i][t], x[i], y);
    }
}

/* Prefetches `bytes` bytes of n_panels panels, so far ahead. */
MM_INLINE void mm_float_prefetch(int n_panels, int distance, const uint8_t *w, size_t stride, int bytes)
{
    UNROLL for (int p = 0; p < n_panels; p++)
    {
        UNROLL for (int l = 0; l < bytes; l += 64)
            _mm_prefetch((const char *)w + (size_t)p * stride + distance + l, _MM_HINT_T1);
    }
}

/* mm_float_tile; tune: how panels are prefetched, a constant. */
MM_INLINE void mm_float_tile_tuned(int f, int n_panels, int n_rows, const weft__kernel_tune *tune,
                                   const weft__product *p, int fetch)
{
    enum { TOGETHER = 4 };
    const int unit_bytes = mm_unit_bytes(f), n = n_panels * MM_FLOAT_VECTORS(f), apart = MM_FLOAT_VECTORS(f) > 1;
    const int is_bound = n_rows <= tune->bound_rows, distance = is_bound ? tune->bound_distance : tune->distance;
    const int second = is_bound && tune->bound_prefetch == WEFT__PREFETCH_SECOND;
    const uint8_t *w = p->panels;
    const size_t stride = p->stride;
    const int64_t k = p->k;
    const uint8_t *a = p->act;
    vf acc[MM_MAX_VECTORS][MM_FLOAT_TILE];
    UNROLL for (int i = 0; i < n; i++)
    {
        UNROLL for (int t = 0; t < n_rows; t++) acc[i][t] = vf_zero();
    }
    int64_t units = mm_units(k);
    for (; units >= MM_UNITS; units -= MM_UNITS, a += n_rows * MM_UNITS * 4) {
        for (int i = 0; i < MM_UNITS; i += TOGETHER, w += TOGETHER * unit_bytes) {
            if (fetch && !apart) mm_float_prefetch(n_panels, distance, w, stride, TOGETHER * unit_bytes);
            UNROLL for (int j = 0; j < TOGETHER; j++)
            {
                if (fetch && apart) {
                    simd_fence(); /* between products, not before them all (mm_ask, matmul_sums.h) */
                    if (!second || j % 2 == 0)
                        mm_float_prefetch(n_panels, distance, w + j * unit_bytes, stride, unit_bytes);
                }
                mm_unit(f, n_panels, n_rows, w + j * unit_bytes, stride, a + 4 * (i + j), acc);
            }
        }
    }
    for (; units > 0; units--, w += unit_bytes, a += 4) mm_unit(f, n_panels, n_rows, w, stride, a, acc);
    float *out = p->out;
    const int64_t ldo = p->ldo;
    int64_t n_out = p->n_out;
    UNROLL for (int i = 0; i < n; i++, out += MM_R, n_out -= MM_R)
    {
        UNROLL for (int t = 0; t < n_rows; t++)
        {
            if (n_out >= MM_R) {
                vf_store(out + t * ldo, acc[i][t]);
            } else {
                vf_store_part(out + t * ldo, acc[i][t], n_out < 0 ? 0 : (int)n_out);
            }
        }
    }
}

/* n_panels panels times one tile of n_rows rows; of the last panel perhaps not all outputs are there. `fetch`: the
 * panels come from memory. */
MM_INLINE void mm_float_tile(int f, int n_panels, int n_rows, const weft__product *p, int fetch)
{
    const weft__kernel_tune *const zen4 = MM_TUNE_OF(WEFT__UARCH_ZEN4, f), *const generic =
                                                                               MM_TUNE_OF(WEFT__UARCH_GENERIC, f);
    if (n_rows <= zen4->bound_rows && zen4 != generic && weft__kernel_uarch == WEFT__UARCH_ZEN4)
        mm_float_tile_tuned(f, n_panels, n_rows, zen4, p, fetch);
    else mm_float_tile_tuned(f, n_panels, n_rows, generic, p, fetch);
}

typedef void (*mm_float_fn)(const weft__product *p, int fetch);

/* Panels that go side by side: few rows need several to cover the latency of the adder. */
MM_INLINE int mm_panels_at_once(int f, int n_rows)
{
    return MM_FLOAT_VECTORS(f) > 1 ? 1 : n_rows <= 2 ? 4 : 2;
}

/* One tile of n_rows rows times a group of panels. */
MM_INLINE void mm_float_group(int f, const mm_float_fn *one, const mm_float_fn *some, int n_rows, weft__product p,
                              int fetch)
{
    const int64_t rows = MM_FLOAT_VECTORS(f) * MM_R, step = mm_panels_at_once(f, n_rows) * rows;
    for (int64_t left = p.n_out; left > 0;) {
        const int many = left > step - rows; /* the last panel of several may be partial */
        const int64_t take = many ? step : rows;
        p.n_out = left < take ? left : take;
        const mm_float_fn run = many ? some[n_rows - 1] : one[n_rows - 1];
        run(&p, fetch);
        p.panels = (const uint8_t *)p.panels + (size_t)(take / rows) * p.stride;
        p.out += take;
        left -= take;
    }
}

/* weft__matmul.run: chunk of rows, then group of panels, then tile. one[n - 1] serves n rows of one panel, some[n - 1]
 * of as many as mm_panels_at_once says. */
MM_INLINE void mm_float_run(int f, const mm_float_fn *one, const mm_float_fn *some, const weft__product *p)
{
    const int64_t m = p->m, row_bytes = mm_unit_steps(p->k) * MM_UNITS * 4;
    int64_t chunk =
        (512 << 10) / row_bytes / MM_FLOAT_TILE * MM_FLOAT_TILE; /* activations that stay in the second level */
    if (chunk < 2 * MM_FLOAT_TILE) chunk = 2 * MM_FLOAT_TILE;
    weft__product part = *p;
    for (int64_t c = 0; c < m; c += chunk) {
        const int64_t end = m - c < chunk ? m : c + chunk;
        const int64_t group = (end - c < 2 * MM_FLOAT_TILE ? MM_MAX_VECTORS : 2) * MM_R;
        for (int64_t n = 0; n < p->n_out; n += group) {
            part.panels = (const uint8_t *)p->panels + (size_t)(n / (MM_FLOAT_VECTORS(f) * MM_R)) * p->stride;
            part.n_out = p->n_out - n < group ? p->n_out - n : group;
            for (int64_t i = c; i < end; i += MM_FLOAT_TILE) {
                part.act = (const uint8_t *)p->act + i * row_bytes;
                const int n_rows = mm_float_tile_rows(i, m);
                part.m = n_rows;
                part.out = p->out + i * p->ldo + n;
                mm_float_group(f, one, some, n_rows, part, i == c);
            }
        }
    }
}

#define MM_FLOAT_FN(f, name, n_rows)                                                                                   \
    static void name##_one_##n_rows(const weft__product *p, int fetch)                                                 \
    {                                                                                                                  \
        mm_float_tile(f, 1, n_rows, p, fetch);                                                                         \
    }                                                                                                                  \
    static void name##_some_##n_rows(const weft__product *p, int fetch)                                                \
    {                                                                                                                  \
        mm_float_tile(f, mm_panels_at_once(f, n_rows), n_rows, p, fetch);                                              \
    }

#if MM_FLOAT_TILE == 12
#define MM_FLOAT_ROWS_MORE(X, f, name)                                                                                 \
    X(f, name, 7) X(f, name, 8) X(f, name, 9) X(f, name, 10) X(f, name, 11) X(f, name, 12)
#else
#define MM_FLOAT_ROWS_MORE(X, f, name)
#endif
#define MM_FLOAT_ROWS(X, f, name)                                                                                      \
    X(f, name, 1) X(f, name, 2) X(f, name, 3) X(f, name, 4) X(f, name, 5) X(f, name, 6) MM_FLOAT_ROWS_MORE(X, f, name)
#define MM_FLOAT_ONE(f, name, n_rows) name##_one_##n_rows,
#define MM_FLOAT_SOME(f, name, n_rows) name##_some_##n_rows,

/* Defines weft__matmul_ID_TIER. */
#define MM_FLOAT_KERNEL(format, id, tier_name, TIER, act_form)                                                         \
    MM_FLOAT_ROWS(MM_FLOAT_FN, WEFT_##format, id)                                                                      \
    static void id##_run(const weft__product *p, weft__kernel_prefetch *ahead)                                         \
    {                                                                                                                  \
        static const mm_float_fn one[] = {MM_FLOAT_ROWS(MM_FLOAT_ONE, f, id)};                                         \
        static const mm_float_fn some[] = {MM_FLOAT_ROWS(MM_FLOAT_SOME, f, id)};                                       \
        (void)ahead;                                                                                                   \
        mm_float_run(WEFT_##format, one, some, p);                                                                     \
    }                                                                                                                  \
    static size_t id##_panel_bytes(int64_t k)                                                                          \
    {                                                                                                                  \
        return mm_float_panel_bytes(WEFT_##format, k);                                                                 \
    }                                                                                                                  \
    static void id##_pack(const uint8_t *rows, size_t row_bytes, int n_rows, int64_t k, void *panel)                   \
    {                                                                                                                  \
        mm_float_pack(WEFT_##format, rows, row_bytes, n_rows, k, panel);                                               \
    }                                                                                                                  \
    const weft__matmul weft__matmul_##id##_##tier_name = {                                                             \
        .name = "matmul_" #id "_" #tier_name,                                                                          \
        .dtype = WEFT_##format,                                                                                        \
        .tier = WEFT__TIER_##TIER,                                                                                     \
        .panel_rows = MM_FLOAT_VECTORS(WEFT_##format) * MM_R,                                                          \
        .act = &act_form,                                                                                              \
        .panel_bytes = id##_panel_bytes,                                                                               \
        .pack = id##_pack,                                                                                             \
        .run = id##_run,                                                                                               \
    };

#endif
