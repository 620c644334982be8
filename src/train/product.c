// SPDX-License-Identifier: Apache-2.0
/* product.c: products of matrices by packed strips (product.h).
 *
 * The left factor is packed whole, once, by all threads; after a barrier each thread takes a range of columns (or of
 * rows, where there are too few columns), packs panels of the right factor for itself and runs the tiles. A multiplier
 * is used by one thread at a time, but for weft__train_multiplier_run_alone, whose scratch is the thread's. */
#include "train/product.h"

#include <string.h>

#include "base/alloc.h"
#include "train/served.h"

enum {
    KC = 256,        /* elements of a panel: a strip of the right factor stays in the first level */
    AHEAD = 16,      /* rows of the right factor that are asked for in advance: they lie too far apart to be foreseen */
    NC = 256,        /* columns of a panel: with the left factor's block, they stay in the second */
    BLOCK_ROWS = 480 /* rows of the left factor that pass by a panel at a time */
};

struct scratch {
    float *panel;   /* [NC / nr strips][KC][nr] */
    float *rows;    /* decoded: [nr][KC] or two of [NC]; of BF16 [nr][KC] elements and 2 * KC inputs */
    float *left;    /* of weft__train_multiplier_run_alone */
    uint8_t *group; /* of served products */
};

struct weft__train_multiplier {
    weft__pool *pool;
    const weft__gemm *f32, *bf16; /* bf16: NULL where it would not be faster, or nothing may be rounded */
    const weft__kernels *k;
    uint32_t served_tiers; /* none: nothing may be rounded */
    float *left;
    uint8_t *rows; /* of served products, prepared */
    /* Whose A these hold, and in which form. */
    uint64_t left_mark, rows_mark;
    const weft__gemm *left_form;
    const weft__act *rows_form;
    struct scratch *scratch; /* [threads] */
    uint64_t n_bytes;
    /* the running job */
    const weft__train_product *p;
    const weft__gemm *g;
    const weft__matmul *served; /* instead of g, or NULL */
    int by_rows, has_a;
};

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t round_up(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

static void *aligned(weft__train_multiplier *x, size_t n_bytes)
{
    x->n_bytes += n_bytes;
    return weft__alloc_aligned(64, n_bytes ? n_bytes : 64);
}

static float *floats(weft__train_multiplier *x, int64_t n)
{
    return aligned(x, (size_t)n * sizeof(float));
}

static int allocate(weft__train_multiplier *x, const weft__train_room *room)
{
    const int n_threads = weft__pool_size(x->pool);
    const int64_t nr = WEFT__GEMM_MAX_NR;
    x->left = floats(x, room->left);
    x->rows = aligned(x, room->rows);
    x->scratch = weft__alloc_zero((size_t)n_threads, sizeof *x->scratch);
    int ok = x->left && x->rows && x->scratch;
    for (int t = 0; ok && t < n_threads; t++) {
        struct scratch *s = &x->scratch[t];
        s->panel = floats(x, (int64_t)(NC + WEFT__GEMM_MAX_NR) * KC);
        s->rows = floats(x, nr * KC + 2 * KC);
        s->left = floats(x, room->alone);
        s->group = aligned(x, room->n_group);
        ok = s->panel && s->rows && s->left && s->group;
    }
    return ok;
}

weft_status weft__train_multiplier_create(weft__pool *pool, uint32_t tiers, int exact, const weft__train_room *room,
                                          weft__train_multiplier **out, weft_error *err)
{
    weft__train_multiplier *x = *out = weft__alloc_zero(1, sizeof *x);
    if (!x) return weft_fail(err, WEFT_NO_MEMORY, "no memory for products of matrices");
    x->pool = pool;
    x->f32 = weft__gemm_find(WEFT_F32, tiers);
    x->k = weft__kernels_get(tiers);
    const weft__gemm *bf16 = weft__gemm_find(WEFT_BF16, tiers);
    if (!exact && bf16->tier > x->f32->tier) x->bf16 = bf16;
    if (!exact) x->served_tiers = tiers;
    if (allocate(x, room)) return WEFT_OK;
    weft__train_multiplier_destroy(out);
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for products of matrices");
}

void weft__train_multiplier_destroy(weft__train_multiplier **px)
{
    weft__train_multiplier *x = *px;
    if (!x) return;
    for (int t = 0; x->scratch && t < weft__pool_size(x->pool); t++) {
        weft__free(x->scratch[t].group);
        weft__free(x->scratch[t].left);
        weft__free(x->scratch[t].rows);
        weft__free(x->scratch[t].panel);
    }
    weft__free(x->scratch);
    weft__free(x->rows);
    weft__free(x->left);
    weft__free(x);
    *px = NULL;
}

uint64_t weft__train_multiplier_bytes(const weft__train_multiplier *x)
{
    return x->n_bytes;
}

/* ---- packing ---- */

/* Inputs in an element. */
static int inputs(const weft__gemm *g)
{
    return g->dtype == WEFT_BF16 ? 2 : 1;
}

static int64_t elements(const weft__gemm *g, int64_t k)
{
    return (k + inputs(g) - 1) / inputs(g);
}

/* Rows of n inputs, n_rows of them, as part of a strip; `room`: BF16's elements. */
static void put_rows(const weft__gemm *g, const float *rows, int64_t ld, int n_rows, int64_t n, float *room, float *to,
                     int64_t width)
{
    if (g->dtype == WEFT_F32) {
        g->turn(rows, ld, n_rows, n, to, width);
        return;
    }
    const int64_t kc = elements(g, n);
    for (int i = 0; i < n_rows; i++) g->round(rows + i * ld, n, room + i * kc);
    g->turn(room, kc, n_rows, kc, to, width);
}

/* Strips [first, last) of A for all k: block of KC after block, in each the strips one after another. */
static void pack_left(const weft__gemm *g, const weft__train_product *p, int64_t first, int64_t last, float *room,
                      float *left)
{
    const int64_t mr = g->mr, rows_up = round_up(p->m, mr), k = elements(g, p->k), by = inputs(g);
    for (int64_t k0 = 0; k0 < k; k0 += KC) {
        const int64_t kc = min64(KC, k - k0);
        for (int64_t s = first; s < last; s++) {
            float *to = left + k0 * rows_up + s * mr * kc;
            const int64_t i = s * mr, n = min64(mr, p->m - i);
            if (n < mr) memset(to, 0, (size_t)(mr * kc) * sizeof *to);
            if (!p->a_across) {
                put_rows(g, p->a + i * p->lda + k0 * by, p->lda, (int)n, min64(kc * by, p->k - k0 * by), room, to, mr);
                continue;
            }
            for (int64_t q = 0; q < kc; q++) memcpy(to + q * mr, p->a + (k0 + q) * p->lda + i, (size_t)n * sizeof *to);
        }
    }
}

/* Elements [from, from + n) of row r: where they lie, or decoded into `room`. from is a multiple of the format's
 * block. */
static const float *row_part(const weft__train_multiplier *x, const weft__train_rows_of *b, int64_t r, int64_t from,
                             int64_t n, float *room)
{
    const uint8_t *row = b->data + (uint64_t)r * b->row_bytes;
    if (b->dtype == WEFT_F32) {
        const float *at = (const float *)(const void *)row + from;
        if (((uintptr_t)row & 3) == 0) return at;
        memcpy(room, row + from * 4, (size_t)n * sizeof *room);
        return room;
    }
    const weft_dtype_info info = weft_dtype_describe(b->dtype);
    x->k->decode_row(b->dtype, row + from / info.block_elems * info.block_bytes, n, room);
    return room;
}

/* Asks for elements [from, from + n) of row r. */
static void ask_row_part(const weft__train_rows_of *b, int64_t r, int64_t from, int64_t n)
{
    const weft_dtype_info info = weft_dtype_describe(b->dtype);
    const uint8_t *at = b->data + (uint64_t)r * b->row_bytes + from / info.block_elems * info.block_bytes,
                  *end = at + (n + info.block_elems - 1) / info.block_elems * info.block_bytes;
    for (; at < end; at += 64) __builtin_prefetch(at);
    __builtin_prefetch(end - 1);
}

/* Rows of B: columns [j0, j0 + nc), elements [k0, k0 + kc) of k. */
static void pack_across(const weft__train_multiplier *x, const weft__gemm *g, const weft__train_product *p, int64_t j0,
                        int64_t nc, int64_t k0, int64_t kc, struct scratch *s)
{
    const int64_t nr = g->nr, n_strips = (nc + nr - 1) / nr, by = inputs(g);
    for (int64_t q = 0; q < kc; q++) {
        const int64_t r = (k0 + q) * by;
        for (int64_t i = 0; i < by && r + AHEAD + i < p->k; i++) ask_row_part(&p->b, r + AHEAD + i, j0, nc);
        const float *even = row_part(x, &p->b, r, j0, nc, s->rows), *odd = NULL;
        if (by > 1 && r + 1 < p->k) odd = row_part(x, &p->b, r + 1, j0, nc, s->rows + NC);
        for (int64_t j = 0; j < n_strips; j++) {
            float *to = s->panel + (j * kc + q) * nr;
            const int64_t n = min64(nr, nc - j * nr);
            if (by > 1) g->pair(even + j * nr, odd ? odd + j * nr : NULL, n, to);
            else memcpy(to, even + j * nr, (size_t)n * sizeof *to);
        }
    }
}

/* Columns of B that are rows of b: [j0, j0 + nc), elements [k0, k0 + kc) of k. */
static void pack_along(const weft__train_multiplier *x, const weft__gemm *g, const weft__train_product *p, int64_t j0,
                       int64_t nc, int64_t k0, int64_t kc, struct scratch *s)
{
    const int64_t nr = g->nr, n_strips = (nc + nr - 1) / nr, by = inputs(g), from = k0 * by,
                  len = min64(kc * by, p->k - from);
    const int direct = p->b.dtype == WEFT_F32 && ((uintptr_t)p->b.data & 3) == 0 && p->b.row_bytes % 4 == 0;
    for (int64_t j = 0; j < n_strips; j++) {
        const int64_t first = j0 + j * nr;
        const int n = (int)min64(nr, nc - j * nr);
        const float *rows = s->rows;
        int64_t ld = kc;
        if (by == 1 && direct) {
            rows = (const float *)(const void *)(p->b.data + (uint64_t)first * p->b.row_bytes) + k0;
            ld = (int64_t)(p->b.row_bytes / 4);
        } else {
            for (int i = 0; i < n; i++) {
                float *to = s->rows + i * kc, *room = by > 1 ? s->rows + nr * KC : to;
                const float *at = row_part(x, &p->b, first + i, from, len, room);
                if (by > 1) g->round(at, len, to);
                else if (at != to) memcpy(to, at, (size_t)kc * sizeof *to);
            }
        }
        g->turn(rows, ld, n, kc, s->panel + j * nr * kc, nr);
    }
}

/* Columns [j0, j0 + nc) of B at elements [k0, k0 + kc) into strips. */
static void pack_right(const weft__train_multiplier *x, const weft__gemm *g, const weft__train_product *p, int64_t j0,
                       int64_t nc, int64_t k0, int64_t kc, struct scratch *s)
{
    const int64_t nr = g->nr, n_strips = (nc + nr - 1) / nr;
    if (nc % nr) memset(s->panel + (n_strips - 1) * nr * kc, 0, (size_t)(nr * kc) * sizeof(float));
    if (p->b_across) pack_across(x, g, p, j0, nc, k0, kc, s);
    else pack_along(x, g, p, j0, nc, k0, kc, s);
}

/* ---- tiles ---- */

/* A tile at the edge of C: all of it aside, then what C has of it. */
static void edge_tile(const weft__gemm *g, int64_t kc, const float *a, const float *b, float *c, int64_t ldc, int add,
                      int64_t rows, int64_t cols)
{
    float aside[WEFT__GEMM_MAX_MR * WEFT__GEMM_MAX_NR];
    (2 * cols <= g->nr ? g->half : g->tile)(kc, a, b, aside, g->nr, 0);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < cols; j++) c[i * ldc + j] = (add ? c[i * ldc + j] : 0) + aside[i * g->nr + j];
    }
}

/* Columns [j0, j1) of rows in strips [first, last). */
static void multiply_range(const weft__train_multiplier *x, const weft__gemm *g, const weft__train_product *p,
                           const float *left, struct scratch *s, int64_t j0, int64_t j1, int64_t first, int64_t last)
{
    const int64_t mr = g->mr, nr = g->nr, rows_up = round_up(p->m, mr), block = BLOCK_ROWS / mr, k = elements(g, p->k);
    for (int64_t j = j0; j < j1; j += NC) {
        const int64_t nc = min64(NC, j1 - j);
        for (int64_t k0 = 0; k0 < k; k0 += KC) {
            const int64_t kc = min64(KC, k - k0);
            const int add = p->add || k0 > 0;
            pack_right(x, g, p, j, nc, k0, kc, s);
            for (int64_t from = first; from < last; from += block) {
                const int64_t to = min64(last, from + block);
                for (int64_t c = 0; c < nc; c += nr) {
                    const int64_t cols = min64(nr, nc - c);
                    for (int64_t i = from; i < to; i++) {
                        const int64_t rows = min64(mr, p->m - i * mr);
                        const float *a = left + k0 * rows_up + i * mr * kc, *b = s->panel + c * kc;
                        float *at = p->c + i * mr * p->ldc + j + c;
                        if (rows == mr && cols == nr) g->tile(kc, a, b, at, p->ldc, add);
                        else if (rows == mr && 2 * cols == nr) g->half(kc, a, b, at, p->ldc, add);
                        else edge_tile(g, kc, a, b, at, p->ldc, add, rows, cols);
                    }
                }
            }
        }
    }
}

/* ---- sharing ---- */

/* Columns are shared in units that begin where a strip and a block of the format do. */
static int64_t column_unit(const weft__gemm *g, const weft__train_product *p)
{
    const int64_t nr = g->nr, block = p->b_across ? (int64_t)weft_dtype_describe(p->b.dtype).block_elems : 1;
    return block <= nr ? nr : block; /* both are powers of two */
}

static void served_run(weft__train_multiplier *x, int thread, int n_threads)
{
    if (!x->has_a) {
        weft__train_served_prepare(x->served, x->p, thread, n_threads, x->rows);
        weft__pool_barrier(x->pool, thread);
    }
    weft__train_served_run(x->served, x->p, thread, n_threads, x->rows, x->scratch[thread].group);
}

static void strips_run(weft__train_multiplier *x, int thread, int n_threads)
{
    const weft__train_product *p = x->p;
    const int64_t mr = x->g->mr, n_strips = (p->m + mr - 1) / mr;
    if (!x->has_a) {
        pack_left(x->g, p, weft__train_share(n_strips, thread, n_threads),
                  weft__train_share(n_strips, thread + 1, n_threads), x->scratch[thread].rows, x->left);
        weft__pool_barrier(x->pool, thread);
    }
    int64_t j0 = 0, j1 = p->n, first = 0, last = n_strips;
    if (x->by_rows) {
        first = weft__train_share(n_strips, thread, n_threads);
        last = weft__train_share(n_strips, thread + 1, n_threads);
    } else {
        const int64_t unit = column_unit(x->g, p), n_units = (p->n + unit - 1) / unit;
        j0 = weft__train_share(n_units, thread, n_threads) * unit;
        j1 = min64(p->n, weft__train_share(n_units, thread + 1, n_threads) * unit);
    }
    if (j0 < j1 && first < last) multiply_range(x, x->g, p, x->left, &x->scratch[thread], j0, j1, first, last);
}

static void product_run(void *arg, int thread, int n_threads)
{
    weft__train_multiplier *x = arg;
    if (x->served) served_run(x, thread, n_threads);
    else strips_run(x, thread, n_threads);
}

/* Columns or rows, of which the largest share of any thread is the smaller; the right factor is packed by all in the
 * latter case. */
static int shared_by_rows(const weft__train_multiplier *x, const weft__train_product *p)
{
    const int64_t n_threads = weft__pool_size(x->pool), mr = x->g->mr, unit = column_unit(x->g, p),
                  columns = round_up((p->n + unit - 1) / unit, n_threads) / n_threads * unit,
                  rows = round_up((p->m + mr - 1) / mr, n_threads) / n_threads * mr;
    return (double)rows / (double)p->m < 0.9 * (double)columns / (double)p->n;
}

void weft__train_multiplier_run(weft__train_multiplier *x, const weft__train_product *p)
{
    x->p = p;
    x->served = weft__train_served_by(p, x->served_tiers);
    x->g = p->rounded && !p->a_across && x->bf16 ? x->bf16 : x->f32;
    if (x->served) {
        x->has_a = p->a_mark && p->a_mark == x->rows_mark && x->rows_form == x->served->act;
        x->rows_mark = p->a_mark;
        x->rows_form = x->served->act;
    } else {
        x->has_a = p->a_mark && p->a_mark == x->left_mark && x->left_form == x->g;
        x->left_mark = p->a_mark;
        x->left_form = x->g;
        x->by_rows = shared_by_rows(x, p);
    }
    weft__pool_run(x->pool, product_run, x);
}

void weft__train_multiplier_run_alone(weft__train_multiplier *x, int thread, const weft__train_product *p)
{
    struct scratch *s = &x->scratch[thread];
    const weft__gemm *g = x->f32;
    const int64_t n_strips = (p->m + g->mr - 1) / g->mr;
    pack_left(g, p, 0, n_strips, s->rows, s->left);
    multiply_range(x, g, p, s->left, s, 0, p->n, 0, n_strips);
}
