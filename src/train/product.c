// SPDX-License-Identifier: Apache-2.0
/* product.c: products of matrices by packed strips (product.h).
 *
 * The left factor is packed whole, once, by all threads; after a barrier each thread takes a range of columns (or of
 * rows, where there are too few columns), packs panels of the right factor for itself and runs the tiles. A multiplier
 * is used by one thread at a time, but for weft__train_multiplier_run_alone, whose scratch is the thread's. */
#include "train/product.h"

#include <string.h>

#include "base/alloc.h"

enum {
    KC = 256,        /* inputs of a panel: a strip of the right factor stays in the first level */
    NC = 256,        /* columns of a panel: with the left factor's block, they stay in the second */
    BLOCK_ROWS = 480 /* rows of the left factor that pass by a panel at a time */
};

struct scratch {
    float *panel; /* [NC / nr strips][KC][nr] */
    float *rows;  /* decoded: [nr][KC] or [NC] */
    float *left;  /* of weft__train_multiplier_run_alone */
};

struct weft__train_multiplier {
    weft__pool *pool;
    const weft__gemm *g;
    const weft__kernels *k;
    float *left;
    struct scratch *scratch; /* [threads] */
    uint64_t n_bytes;
    const weft__train_product *p; /* the running job */
    int by_rows;
};

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t round_up(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

static float *floats(weft__train_multiplier *x, int64_t n)
{
    x->n_bytes += (uint64_t)n * sizeof(float);
    return weft__alloc_aligned(64, (size_t)n * sizeof(float));
}

weft_status weft__train_multiplier_create(weft__pool *pool, uint32_t tiers, int64_t max_left, int64_t max_alone,
                                          weft__train_multiplier **out, weft_error *err)
{
    int n_threads = weft__pool_size(pool);
    weft__train_multiplier *x = *out = weft__alloc_zero(1, sizeof *x);
    if (!x) return weft_fail(err, WEFT_NO_MEMORY, "no memory for products of matrices");
    x->pool = pool;
    x->g = weft__gemm_find(tiers);
    x->k = weft__kernels_get(tiers);
    const int64_t nr = x->g->nr;
    x->left = floats(x, max_left);
    x->scratch = weft__alloc_zero((size_t)n_threads, sizeof *x->scratch);
    int ok = x->left && x->scratch;
    for (int t = 0; ok && t < n_threads; t++) {
        struct scratch *s = &x->scratch[t];
        s->panel = floats(x, round_up(NC, nr) * KC);
        s->rows = floats(x, nr * KC > NC ? nr * KC : NC);
        s->left = floats(x, max_alone);
        ok = s->panel && s->rows && s->left;
    }
    if (ok) return WEFT_OK;
    weft__train_multiplier_destroy(out);
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for products of matrices");
}

void weft__train_multiplier_destroy(weft__train_multiplier **px)
{
    weft__train_multiplier *x = *px;
    if (!x) return;
    for (int t = 0; x->scratch && t < weft__pool_size(x->pool); t++) {
        weft__free(x->scratch[t].left);
        weft__free(x->scratch[t].rows);
        weft__free(x->scratch[t].panel);
    }
    weft__free(x->scratch);
    weft__free(x->left);
    weft__free(x);
    *px = NULL;
}

uint64_t weft__train_multiplier_bytes(const weft__train_multiplier *x)
{
    return x->n_bytes;
}

/* ---- packing ---- */

/* Strips [first, last) of A for all k: block of KC after block, in each the strips one after another. */
static void pack_left(const weft__gemm *g, const weft__train_product *p, int64_t first, int64_t last, float *left)
{
    const int64_t mr = g->mr, rows_up = round_up(p->m, mr);
    for (int64_t k0 = 0; k0 < p->k; k0 += KC) {
        const int64_t kc = min64(KC, p->k - k0);
        for (int64_t s = first; s < last; s++) {
            float *to = left + k0 * rows_up + s * mr * kc;
            const int64_t i = s * mr, n = min64(mr, p->m - i);
            if (n < mr) memset(to, 0, (size_t)(mr * kc) * sizeof *to);
            if (!p->a_across) {
                g->turn(p->a + i * p->lda + k0, p->lda, (int)n, kc, to, mr);
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

/* Columns [j0, j0 + nc) of B at k [k0, k0 + kc) into strips. */
static void pack_right(const weft__train_multiplier *x, const weft__train_product *p, int64_t j0, int64_t nc,
                       int64_t k0, int64_t kc, struct scratch *s)
{
    const int64_t nr = x->g->nr, n_strips = (nc + nr - 1) / nr;
    if (nc % nr) memset(s->panel + (n_strips - 1) * nr * kc, 0, (size_t)(nr * kc) * sizeof(float));
    if (p->b_across) {
        for (int64_t q = 0; q < kc; q++) {
            const float *row = row_part(x, &p->b, k0 + q, j0, nc, s->rows);
            for (int64_t j = 0; j < n_strips; j++)
                memcpy(s->panel + (j * kc + q) * nr, row + j * nr, (size_t)min64(nr, nc - j * nr) * sizeof(float));
        }
        return;
    }
    const int direct = p->b.dtype == WEFT_F32 && ((uintptr_t)p->b.data & 3) == 0 && p->b.row_bytes % 4 == 0;
    for (int64_t j = 0; j < n_strips; j++) {
        const int64_t first = j0 + j * nr;
        const int n = (int)min64(nr, nc - j * nr);
        const float *rows = s->rows;
        int64_t ld = kc;
        if (direct) {
            rows = (const float *)(const void *)(p->b.data + (uint64_t)first * p->b.row_bytes) + k0;
            ld = (int64_t)(p->b.row_bytes / 4);
        } else {
            for (int i = 0; i < n; i++) {
                float *room = s->rows + i * kc;
                const float *at = row_part(x, &p->b, first + i, k0, kc, room);
                if (at != room) memcpy(room, at, (size_t)kc * sizeof *room);
            }
        }
        x->g->turn(rows, ld, n, kc, s->panel + j * nr * kc, nr);
    }
}

/* ---- tiles ---- */

/* A tile at the edge of C: all of it aside, then what C has of it. */
static void edge_tile(const weft__gemm *g, int64_t kc, const float *a, const float *b, float *c, int64_t ldc, int add,
                      int64_t rows, int64_t cols)
{
    float aside[WEFT__GEMM_MAX_MR * WEFT__GEMM_MAX_NR];
    g->tile(kc, a, b, aside, g->nr, 0);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < cols; j++) c[i * ldc + j] = (add ? c[i * ldc + j] : 0) + aside[i * g->nr + j];
    }
}

/* Columns [j0, j1) of rows in strips [first, last). */
static void multiply_range(const weft__train_multiplier *x, const weft__train_product *p, const float *left,
                           struct scratch *s, int64_t j0, int64_t j1, int64_t first, int64_t last)
{
    const weft__gemm *g = x->g;
    const int64_t mr = g->mr, nr = g->nr, rows_up = round_up(p->m, mr), block = BLOCK_ROWS / mr;
    for (int64_t j = j0; j < j1; j += NC) {
        const int64_t nc = min64(NC, j1 - j);
        for (int64_t k0 = 0; k0 < p->k; k0 += KC) {
            const int64_t kc = min64(KC, p->k - k0);
            const int add = p->add || k0 > 0;
            pack_right(x, p, j, nc, k0, kc, s);
            for (int64_t from = first; from < last; from += block) {
                const int64_t to = min64(last, from + block);
                for (int64_t c = 0; c < nc; c += nr) {
                    const int64_t cols = min64(nr, nc - c);
                    for (int64_t i = from; i < to; i++) {
                        const int64_t rows = min64(mr, p->m - i * mr);
                        const float *a = left + k0 * rows_up + i * mr * kc, *b = s->panel + c * kc;
                        float *at = p->c + i * mr * p->ldc + j + c;
                        if (rows == mr && cols == nr) g->tile(kc, a, b, at, p->ldc, add);
                        else edge_tile(g, kc, a, b, at, p->ldc, add, rows, cols);
                    }
                }
            }
        }
    }
}

/* ---- sharing ---- */

/* Columns are shared in units that begin where a strip and a block of the format do. */
static int64_t column_unit(const weft__train_multiplier *x, const weft__train_product *p)
{
    const int64_t nr = x->g->nr, block = p->b_across ? (int64_t)weft_dtype_describe(p->b.dtype).block_elems : 1;
    return block <= nr ? nr : block; /* both are powers of two */
}

static void product_run(void *arg, int thread, int n_threads)
{
    weft__train_multiplier *x = arg;
    const weft__train_product *p = x->p;
    const int64_t mr = x->g->mr, n_strips = (p->m + mr - 1) / mr;
    if (!p->same_a) {
        pack_left(x->g, p, weft__train_share(n_strips, thread, n_threads),
                  weft__train_share(n_strips, thread + 1, n_threads), x->left);
        weft__pool_barrier(x->pool, thread);
    }
    int64_t j0 = 0, j1 = p->n, first = 0, last = n_strips;
    if (x->by_rows) {
        first = weft__train_share(n_strips, thread, n_threads);
        last = weft__train_share(n_strips, thread + 1, n_threads);
    } else {
        const int64_t unit = column_unit(x, p), n_units = (p->n + unit - 1) / unit;
        j0 = weft__train_share(n_units, thread, n_threads) * unit;
        j1 = min64(p->n, weft__train_share(n_units, thread + 1, n_threads) * unit);
    }
    if (j0 < j1 && first < last) multiply_range(x, p, x->left, &x->scratch[thread], j0, j1, first, last);
}

void weft__train_multiplier_run(weft__train_multiplier *x, const weft__train_product *p)
{
    const int64_t n_threads = weft__pool_size(x->pool), mr = x->g->mr, unit = column_unit(x, p);
    /* The largest share of any thread, if columns or rows are divided; the right factor is packed by all in the
     * latter case. */
    const int64_t columns = round_up((p->n + unit - 1) / unit, n_threads) / n_threads * unit;
    const int64_t rows = round_up((p->m + mr - 1) / mr, n_threads) / n_threads * mr;
    x->by_rows = (double)rows / (double)p->m < 0.9 * (double)columns / (double)p->n;
    x->p = p;
    weft__pool_run(x->pool, product_run, x);
}

void weft__train_multiplier_run_alone(weft__train_multiplier *x, int thread, const weft__train_product *p)
{
    struct scratch *s = &x->scratch[thread];
    const int64_t n_strips = (p->m + x->g->mr - 1) / x->g->mr;
    pack_left(x->g, p, 0, n_strips, s->left);
    multiply_range(x, p, s->left, s, 0, p->n, 0, n_strips);
}
