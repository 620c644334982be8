// SPDX-License-Identifier: Apache-2.0
/* svd.c: see svd.h. Matrices of doubles stand by columns. */
#include "adapt/svd.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/background.h"

enum { SWEEPS = 60 };

/* m columns of `rows` values as Q R: R stands in and above the diagonal, the reflectors' vectors below it but for their
 * first values. */
typedef struct triangle {
    int64_t rows;
    int32_t m, n; /* n: reflectors, the smaller of both */
    double *x;    /* [m, rows] */
    double *head; /* [n] first values of the vectors */
    double *beta; /* [n] 0: no reflection */
} triangle;

/* Columns that turn until they are at right angles. */
typedef struct turning {
    int32_t rows, n;
    double *w;    /* [n, rows] */
    double *z;    /* [n, n] the turns */
    double least; /* squared length of a column below which rounding is all there is */
} turning;

static double dot(const double *x, const double *y, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}

/* ---- QR ---- */

/* y - beta v (v y) for y [rows - j], v being reflector j. */
static void reflect(const triangle *t, int32_t j, double *y)
{
    const double *v = t->x + j * t->rows + j;
    const int64_t n = t->rows - j;
    const double f = t->beta[j] * (t->head[j] * y[0] + dot(v + 1, y + 1, n - 1));
    if (f == 0) return;
    y[0] -= f * t->head[j];
    for (int64_t i = 1; i < n; i++) y[i] -= f * v[i];
    weft__background_did((uint64_t)n * sizeof *y);
}

static void triangulate(triangle *t)
{
    for (int32_t j = 0; j < t->n; j++) {
        double *v = t->x + j * t->rows + j;
        const double below = dot(v + 1, v + 1, t->rows - j - 1), length = sqrt(v[0] * v[0] + below);
        t->beta[j] = 0;
        t->head[j] = 0;
        if (below == 0) continue; /* it is a column of a triangle already */
        t->head[j] = v[0] + (v[0] < 0 ? -length : length);
        t->beta[j] = 2 / (t->head[j] * t->head[j] + below);
        v[0] = v[0] < 0 ? length : -length;
        for (int32_t i = j + 1; i < t->m; i++) reflect(t, j, t->x + i * t->rows + j);
    }
}

static void triangle_free(triangle *t)
{
    weft__free(t->x);
    weft__free(t->head);
    weft__free(t->beta);
}

static int triangle_room(triangle *t, int64_t rows, int32_t m)
{
    *t = (triangle){.rows = rows, .m = m, .n = rows < m ? (int32_t)rows : m};
    t->x = weft__alloc_array((size_t)rows * (size_t)m, sizeof *t->x);
    t->head = weft__alloc_array((size_t)m, sizeof *t->head);
    t->beta = weft__alloc_array((size_t)m, sizeof *t->beta);
    return t->x && t->head && t->beta;
}

/* Q y: of y [rows], of which only the first n were set. */
static void apply_q(const triangle *t, double *y)
{
    for (int32_t j = t->n; j-- > 0;) reflect(t, j, y + j);
}

/* ---- Jacobi ---- */

static void turn(double *x, double *y, int64_t n, double c, double s)
{
    for (int64_t i = 0; i < n; i++) {
        const double at = x[i];
        x[i] = c * at - s * y[i];
        y[i] = s * at + c * y[i];
    }
}

/* Makes columns i and j orthogonal; 0: they are, as far as rounding tells. */
static int turn_pair(turning *t, int32_t i, int32_t j)
{
    double *x = t->w + (int64_t)i * t->rows, *y = t->w + (int64_t)j * t->rows;
    const double a = dot(x, x, t->rows), b = dot(y, y, t->rows), c = dot(x, y, t->rows);
    if (fmin(a, b) <= t->least || fabs(c) <= DBL_EPSILON * t->rows * sqrt(a) * sqrt(b)) return 0;
    const double zeta = (b - a) / (2 * c),
                 tangent = (zeta < 0 ? -1 : 1) / (fabs(zeta) + sqrt(1 + fmin(zeta * zeta, DBL_MAX))),
                 cosine = 1 / sqrt(1 + tangent * tangent);
    turn(x, y, t->rows, cosine, cosine * tangent);
    turn(t->z + (int64_t)i * t->n, t->z + (int64_t)j * t->n, t->n, cosine, cosine * tangent);
    return 1;
}

/* 0: they did not come to rest. */
static int orthogonalize(turning *t)
{
    memset(t->z, 0, (size_t)t->n * (size_t)t->n * sizeof *t->z);
    for (int32_t i = 0; i < t->n; i++) t->z[(int64_t)i * t->n + i] = 1;
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        int any = 0;
        for (int32_t i = 0; i < t->n; i++) {
            for (int32_t j = i + 1; j < t->n; j++) any |= turn_pair(t, i, j);
            weft__background_did((uint64_t)t->n * (uint64_t)t->rows * sizeof *t->w);
        }
        if (!any) return 1;
    }
    return 0;
}

/* ---- the whole ---- */

/* Element (i, j) of the triangle. */
static double at(const triangle *t, int32_t i, int32_t j)
{
    return i <= j ? t->x[j * t->rows + i] : 0;
}

/* What rounding may have made of C: of each term b_j a_j its share. Large terms may cancel each other, and then C is
 * smaller than that. */
static double rounding(const triangle *b, const triangle *a)
{
    double most = 0;
    for (int32_t j = 0; j < b->m; j++) {
        const double *x = b->x + j * b->rows, *y = a->x + j * a->rows;
        most = fmax(most, sqrt(dot(x, x, b->rows)) * sqrt(dot(y, y, a->rows)));
    }
    return most * DBL_EPSILON * b->m;
}

/* Rb Ra' as columns, of which there are no more than rows: `turned`, its transpose. */
static int make_core(const triangle *b, const triangle *a, int turned, turning *t)
{
    const triangle *up = turned ? a : b, *down = turned ? b : a;
    t->rows = up->n;
    t->n = down->n;
    t->w = weft__alloc_array((size_t)t->rows * (size_t)t->n, sizeof *t->w);
    t->z = weft__alloc_array((size_t)t->n * (size_t)t->n, sizeof *t->z);
    if (!t->w || !t->z) return 0;
    for (int32_t c = 0; c < t->n; c++)
        for (int32_t r = 0; r < t->rows; r++) {
            double sum = 0;
            for (int32_t i = r > c ? r : c; i < b->m; i++) sum += at(up, r, i) * at(down, c, i);
            t->w[(int64_t)c * t->rows + r] = sum;
        }
    return 1;
}

/* The columns by their lengths, the longest first, of two equal ones the first; how many are no noise. */
static int32_t sort_columns(const turning *t, double *length, int32_t *order)
{
    int32_t n = 0;
    for (int32_t i = 0; i < t->n; i++) {
        const double *x = t->w + (int64_t)i * t->rows, square = dot(x, x, t->rows);
        int32_t to = n;
        if (!(square > t->least)) continue;
        for (; to > 0 && length[to - 1] < sqrt(square); to--) {
            length[to] = length[to - 1];
            order[to] = order[to - 1];
        }
        length[to] = sqrt(square);
        order[to] = i;
        n++;
    }
    return n;
}

/* Column x [n] of the core's vectors, divided by `by`, as one of Q's: out [rows]. */
static void put_vector(const triangle *q, const double *x, int32_t n, double by, double *out)
{
    memset(out, 0, (size_t)q->rows * sizeof *out);
    for (int32_t i = 0; i < n; i++) out[i] = x[i] / by;
    apply_q(q, out);
}

static weft_status put_vectors(const triangle *b, const triangle *a, const turning *t, int turned, weft__adapt_svd *out,
                               weft_error *err)
{
    int32_t *order = weft__alloc_array((size_t)t->n, sizeof *order);
    out->s = weft__alloc_array((size_t)t->n, sizeof *out->s);
    if (order && out->s) out->rank = sort_columns(t, out->s, order);
    const size_t rank = (size_t)(out->rank + !out->rank);
    out->u = weft__alloc_array(rank * (size_t)b->rows, sizeof *out->u);
    out->v = weft__alloc_array(rank * (size_t)a->rows, sizeof *out->v);
    const int ok = order && out->s && out->u && out->v;
    for (int32_t i = 0; ok && i < out->rank; i++) {
        const double *w = t->w + (int64_t)order[i] * t->rows, *z = t->z + (int64_t)order[i] * t->n;
        put_vector(b, turned ? z : w, b->n, turned ? 1 : out->s[i], out->u + i * b->rows);
        put_vector(a, turned ? w : z, a->n, turned ? out->s[i] : 1, out->v + i * a->rows);
    }
    weft__free(order);
    return ok ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no memory for singular values");
}

weft_status weft__adapt_svd_of(const float *b, const float *a, int64_t n, int64_t k, int32_t rank, double scale,
                               weft__adapt_svd *out, weft_error *err)
{
    triangle tb = {0}, ta = {0};
    turning t = {0};
    weft_status st = WEFT_OK;
    *out = (weft__adapt_svd){0};
    const int room_b = triangle_room(&tb, n, rank), room_a = triangle_room(&ta, k, rank);
    if (!room_b || !room_a) st = weft_fail(err, WEFT_NO_MEMORY, "no memory for singular values");
    for (int32_t j = 0; !st && j < rank; j++) {
        for (int64_t i = 0; i < n; i++) tb.x[j * n + i] = scale * (double)b[i * rank + j];
        for (int64_t i = 0; i < k; i++) ta.x[j * k + i] = (double)a[j * k + i];
        weft__background_did((uint64_t)(n + k) * sizeof *tb.x);
    }
    if (!st) {
        t.least = rounding(&tb, &ta) * rounding(&tb, &ta);
        triangulate(&tb);
        triangulate(&ta);
    }
    const int turned = tb.n < ta.n;
    if (!st && !make_core(&tb, &ta, turned, &t)) st = weft_fail(err, WEFT_NO_MEMORY, "no memory for singular values");
    if (!st && !orthogonalize(&t))
        st = weft_fail(err, WEFT_LIMIT, "its singular values cannot be told apart; train it again");
    if (!st) st = put_vectors(&tb, &ta, &t, turned, out, err);
    weft__free(t.w);
    weft__free(t.z);
    triangle_free(&tb);
    triangle_free(&ta);
    if (st) weft__adapt_svd_free(out);
    return st;
}

void weft__adapt_svd_free(weft__adapt_svd *s)
{
    weft__free(s->s);
    weft__free(s->u);
    weft__free(s->v);
    *s = (weft__adapt_svd){0};
}
