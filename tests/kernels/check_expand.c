// SPDX-License-Identifier: Apache-2.0
/* check_expand.c: adding an adapter's B h to outputs, against ref and exact arithmetic (check.h): every number of
 * outputs up to two panels and one, 1 to 9 rows, ranks around every group; each row has the same bits whatever comes
 * with it.
 *
 * The error is normalized by |B|² |h|² / rank summed over outputs, as that of products (check_matmul.c). */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

enum { MAX_ROWS = 9, GAP = 3 /* floats behind a row of outputs that nobody may touch */ };

struct expansion {
    const weft__expand *e;
    int64_t n, rank;
    int m;
    float *b, *h, *before; /* [n][rank] padded by one, [m][rank], [m][n] */
    float *out, *ref;      /* [m][n] */
};

static int64_t row_of_b(const struct expansion *x)
{
    return x->rank + 1;
}

/* Panels of the whole B by kernel e. */
static guarded pack(const struct expansion *x, const weft__expand *e, float factor)
{
    int64_t panels = (x->n + WEFT__EXPAND_ROWS - 1) / WEFT__EXPAND_ROWS;
    guarded g = guarded_new((size_t)panels * e->panel_bytes(x->rank), 0);
    for (int64_t i = panels - 1; i >= 0; i--) { /* backwards: one that runs into the next is found out */
        int64_t left = x->n - i * WEFT__EXPAND_ROWS;
        e->pack(x->b + i * WEFT__EXPAND_ROWS * row_of_b(x), row_of_b(x), factor,
                (int)(left < WEFT__EXPAND_ROWS ? left : WEFT__EXPAND_ROWS), x->rank,
                g.p + (size_t)i * e->panel_bytes(x->rank));
    }
    return g;
}

/* Adds to rows [first, first + m) of `before`, outputs from panel `skip` on; out [m][n - 16 * skip]. */
static void add(check *c, const struct expansion *x, const weft__expand *e, const uint8_t *panels, int64_t skip,
                int first, int m, float *out)
{
    int64_t n = x->n - skip * WEFT__EXPAND_ROWS;
    guarded h[MAX_ROWS], y[MAX_ROWS];
    const void *hp[MAX_ROWS];
    float *yp[MAX_ROWS];
    for (int t = 0; t < m; t++) {
        h[t] = guarded_new(e->h_bytes(x->rank), 0);
        y[t] = guarded_new((size_t)(n + GAP) * 4, 4);
        memset(y[t].p, 0xFF, y[t].n_bytes);
        e->h_put(x->h + (first + t) * x->rank, x->rank, h[t].p);
        memcpy(y[t].p, x->before + (first + t) * x->n + skip * WEFT__EXPAND_ROWS, (size_t)n * 4);
        hp[t] = h[t].p;
        yp[t] = (float *)y[t].p;
        if (e->h_bytes(x->rank) > 16 + 4 * (size_t)x->rank)
            check_fail(c, "h of rank %d needs %zu bytes", (int)x->rank, e->h_bytes(x->rank));
    }
    e->run(panels + (size_t)skip * e->panel_bytes(x->rank), n, x->rank, hp, m, yp, m % 2 ? panels : NULL);
    for (int t = 0; t < m; t++) {
        memcpy(out + t * n, y[t].p, (size_t)n * 4);
        for (int j = 0; j < GAP; j++)
            if (memcmp(yp[t] + n + j, "\377\377\377\377", 4)) check_fail(c, "wrote behind the outputs");
        guarded_free(c, &h[t], "h");
        guarded_free(c, &y[t], "the outputs");
    }
}

/* before + B h in double. */
static void exact(const struct expansion *x, float factor, float *out)
{
    for (int t = 0; t < x->m; t++) {
        for (int64_t j = 0; j < x->n; j++) {
            double sum = 0;
            for (int64_t i = 0; i < x->rank; i++) sum += (double)x->b[j * row_of_b(x) + i] * x->h[t * x->rank + i];
            out[t * x->n + j] = (float)(x->before[t * x->n + j] + factor * sum);
        }
    }
}

static double error_of(const struct expansion *x, const float *a, const float *b)
{
    double error = 0, bb = 0, hh = 0;
    for (int64_t i = 0; i < x->m * x->n; i++) error += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
    for (int64_t j = 0; j < x->n; j++)
        for (int64_t i = 0; i < x->rank; i++) bb += (double)x->b[j * row_of_b(x) + i] * x->b[j * row_of_b(x) + i];
    for (int64_t i = 0; i < x->m * x->rank; i++) hh += (double)x->h[i] * x->h[i];
    return error <= 1e-60 ? 0 : error / (bb * hh / (double)x->rank + 1e-70);
}

/* What packing a normal B may cost, apart from the kernel. */
static double packing_bound(uint32_t dtype)
{
    return dtype == WEFT_F32 ? 1e-10 : dtype == WEFT_BF16 ? 1e-5 : dtype == WEFT_Q8_0 ? 1e-4 : 2e-2;
}

static void check_rows_alone(check *c, const struct expansion *x, const uint8_t *panels, const char *what)
{
    float *row = weft__alloc_array((size_t)x->n, sizeof *row);
    for (int t = 0; t < x->m; t++) {
        add(c, x, x->e, panels, 0, t, 1, row);
        if (!check_same_bits(row, x->out + t * x->n, x->n)) check_fail(c, "row %d has other bits alone: %s", t, what);
        if (x->n <= WEFT__EXPAND_ROWS) continue;
        add(c, x, x->e, panels, 1, t, 1, row);
        if (!check_same_bits(row, x->out + t * x->n + WEFT__EXPAND_ROWS, x->n - WEFT__EXPAND_ROWS))
            check_fail(c, "a range of panels differs: %s", what);
    }
    weft__free(row);
}

static void check_poison_row(check *c, struct expansion *x, const uint8_t *panels, pattern strange, const char *what)
{
    int bad = x->m / 2;
    memcpy(x->ref, x->out, (size_t)(x->m * x->n) * 4);
    check_many_values(c, strange, x->h + bad * x->rank, x->rank);
    add(c, x, x->e, panels, 0, 0, x->m, x->out);
    for (int t = 0; t < x->m; t++) {
        const float *row = x->out + t * x->n;
        if (t != bad && !check_same_bits(row, x->ref + t * x->n, x->n))
            check_fail(c, "row %d changed row %d: %s", bad, t, what);
        for (int64_t j = 0; t == bad && j < x->n; j++)
            if (isfinite(row[j])) check_fail(c, "%s in, finite out: %s", check_pattern_name(strange), what);
    }
}

static void expand_case(check *c, int64_t n, int64_t rank, int m, pattern values, int whole_b)
{
    struct expansion x = {.e = c->entry->expand, .n = n, .rank = rank, .m = m};
    const int ref = x.e->tier == WEFT__TIER_REF, bits4 = x.e->dtype == WEFT_Q4_0;
    const float factor = whole_b ? 1 : 0.5f;
    char what[120];
    snprintf(what, sizeof what, "M %d, N %d, rank %d, %s, %s B", m, (int)n, (int)rank, check_pattern_name(values),
             whole_b ? "whole" : "normal");
    x.b = weft__alloc_array((size_t)(n * (rank + 1)), sizeof *x.b);
    x.h = weft__alloc_array((size_t)(m * rank), sizeof *x.h);
    x.before = weft__alloc_array((size_t)(m * n), sizeof *x.before);
    x.out = weft__alloc_array((size_t)(m * n), sizeof *x.out);
    x.ref = weft__alloc_array((size_t)(m * n), sizeof *x.ref);
    check_many_values(c, P_NORMAL, x.b, n * (rank + 1));
    for (int64_t j = 0; whole_b && j < n; j++) { /* what all types hold exactly */
        for (int64_t i = 0; i < rank; i++)
            x.b[j * (rank + 1) + i] = (float)weft__rng_below(&c->rng, bits4 ? 15 : 255) - (bits4 ? 7 : 127);
        x.b[j * (rank + 1) + j % rank] = bits4 ? -8 : 127;
    }
    for (int t = 0; t < m; t++) check_many_values(c, values, x.h + t * rank, rank);
    check_many_values(c, P_ZERO, x.before, m * n);
    guarded panels = pack(&x, x.e, factor);
    add(c, &x, x.e, panels.p, 0, 0, m, x.out);
    if (ref) {
        exact(&x, factor, x.ref);
        if (whole_b) check_error(c, error_of(&x, x.out, x.ref), what);
    } else {
        const weft__expand *e = weft__expand_find(x.e->dtype, 0);
        guarded of_ref = pack(&x, e, factor);
        add(c, &x, e, of_ref.p, 0, 0, m, x.ref);
        check_error(c, error_of(&x, x.out, x.ref), what);
        guarded_free(c, &of_ref, "ref's panels");
        exact(&x, factor, x.ref);
    }
    double off = error_of(&x, x.out, x.ref);
    if (values < P_FINITE && off > packing_bound(x.e->dtype) + 4 * c->entry->tolerance)
        check_fail(c, "packing costs %.2g: %s", off, what);
    check_many_values(c, P_NORMAL, x.before, m * n); /* what was there stays */
    add(c, &x, x.e, panels.p, 0, 0, m, x.out);
    check_rows_alone(c, &x, panels.p, what);
    check_poison_row(c, &x, panels.p, P_NAN, what);
    check_many_values(c, values, x.h + m / 2 * rank, rank);
    add(c, &x, x.e, panels.p, 0, 0, m, x.out);
    check_poison_row(c, &x, panels.p, P_INFINITE, what);
    guarded_free(c, &panels, "the panels");
    weft__free(x.b);
    weft__free(x.h);
    weft__free(x.before);
    weft__free(x.out);
    weft__free(x.ref);
}

void check_expand(check *c)
{
    static const int64_t ranks[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 24, 32, 33, 64, 129};
    int i = 0;
    for (int r = 0; r < 16; r++) {
        for (int64_t n = 1 + r % EVERY_ROW; n <= 2 * WEFT__EXPAND_ROWS + 1; n += EVERY_ROW, i++)
            expand_case(c, n, ranks[r], 1 + i % MAX_ROWS, P_NORMAL, i % 2);
        for (int m = 1 + r % EVERY_ROW; m <= MAX_ROWS; m += EVERY_ROW)
            expand_case(c, 40, ranks[r], m, m % 2 ? P_NORMAL : P_WHOLE, (m + r) % 3 == 0);
    }
    for (int p = 0; p < P_FINITE; p++) {
        for (int whole = 0; whole < 2; whole++) expand_case(c, 50, 16, 5, (pattern)p, whole);
        expand_case(c, 33, 40, 3, (pattern)p, 0);
    }
    expand_case(c, 80, WEFT__EXPAND_RANK_MAX, 6, P_NORMAL, 0);
    expand_case(c, 80, WEFT__EXPAND_RANK_MAX, 6, P_WHOLE, 1);
}
