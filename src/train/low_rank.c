// SPDX-License-Identifier: Apache-2.0
/* low_rank.c: a sum of outer products as a product of low rank (tail.h). With M = G^T X over n rows, a left vector is
 * u = G^T c, so that all of it happens among the n coefficients c: u . u' = c^T (G G^T) c', and M M^T u has the
 * coefficients (X X^T) (G G^T) c. Sums are in double, in one order. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "train/tail.h"

enum { ROUNDS = 32, BESIDE = 2 /* vectors that are iterated beside those that are wanted: it converges sooner */ };
static const double NOTHING = 1e-12; /* of a squared length: what is left of a vector that the others span */

typedef struct low_rank {
    int32_t n, q;  /* q: vectors that are iterated */
    double *gg;    /* [n, n] G G^T */
    double *xx;    /* [n, n] X X^T */
    double *c;     /* [q, n] coefficients */
    double *image; /* [q, n] (G G^T) c */
} low_rank;

static double dot_of(const float *a, const float *b, int64_t n)
{
    double sum[8] = {0};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        for (int j = 0; j < 8; j++) sum[j] += (double)a[i + j] * (double)b[i + j];
    }
    for (; i < n; i++) sum[0] += (double)a[i] * (double)b[i];
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

static void gram(const float *rows, int32_t n, int64_t width, double *out)
{
    for (int32_t i = 0; i < n; i++)
        for (int32_t j = 0; j <= i; j++)
            out[i * n + j] = out[j * n + i] = dot_of(rows + i * width, rows + j * width, width);
}

static void times(const double *m, const double *c, int32_t n, double *out)
{
    for (int32_t i = 0; i < n; i++) {
        double sum = 0;
        for (int32_t j = 0; j < n; j++) sum += m[i * n + j] * c[j];
        out[i] = sum;
    }
}

static double inner(const double *a, const double *b, int32_t n)
{
    double sum = 0;
    for (int32_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

/* The vectors become orthonormal, in their order, twice over for the sake of rounding; what the others span becomes 0.
 */
static void orthonormalise(low_rank *s)
{
    for (int32_t v = 0; v < s->q; v++) {
        double *c = s->c + v * s->n, *image = s->image + v * s->n;
        times(s->gg, c, s->n, image);
        const double before = inner(c, image, s->n);
        double left = before;
        for (int twice = 0; twice < 2; twice++) {
            for (int32_t u = 0; u < v; u++) {
                const double along = inner(c, s->image + u * s->n, s->n);
                for (int32_t i = 0; i < s->n; i++) c[i] -= along * s->c[u * s->n + i];
            }
            times(s->gg, c, s->n, image);
            left = inner(c, image, s->n);
        }
        const double by = left > NOTHING * before ? 1 / sqrt(left) : 0;
        for (int32_t i = 0; i < s->n; i++) c[i] *= by, image[i] *= by;
    }
}

/* It begins with the rows whose products are the largest. */
static void take_largest(low_rank *s)
{
    for (int32_t v = 0; v < s->q; v++) {
        int32_t best = -1;
        double most = -1;
        for (int32_t i = 0; i < s->n; i++) {
            const double size = s->gg[i * s->n + i] * s->xx[i * s->n + i];
            int taken = 0;
            for (int32_t u = 0; u < v; u++) taken |= s->c[u * s->n + i] != 0;
            if (!taken && size > most) best = i, most = size;
        }
        if (best >= 0) s->c[v * s->n + best] = 1;
    }
}

/* Where all rows are wanted, any vectors that span them do. */
static void iterate(low_rank *s, int32_t r)
{
    take_largest(s);
    orthonormalise(s);
    for (int round = 0; s->n > r && round < ROUNDS; round++) {
        for (int32_t v = 0; v < s->q; v++) times(s->xx, s->image + v * s->n, s->n, s->c + v * s->n);
        orthonormalise(s);
    }
}

/* B's columns are G^T c, A's rows are c^T (G G^T) X: M as its projection on them has it. */
static void write_out(const low_rank *s, const float *g, const float *x, int64_t d, int64_t k, int32_t r, float *b,
                      float *a)
{
    memset(b, 0, (size_t)(d * r) * sizeof *b);
    memset(a, 0, (size_t)(k * r) * sizeof *a);
    for (int32_t v = 0; v < r && v < s->q; v++) {
        for (int32_t t = 0; t < s->n; t++) {
            const float c = (float)s->c[v * s->n + t], image = (float)s->image[v * s->n + t];
            for (int64_t i = 0; i < d; i++) b[i * r + v] += c * g[t * d + i];
            for (int64_t i = 0; i < k; i++) a[v * k + i] += image * x[t * k + i];
        }
    }
}

int weft__train_low_rank(const float *g, const float *x, int32_t n, int64_t d, int64_t k, int32_t r, float *b, float *a)
{
    low_rank s = {.n = n, .q = r + BESIDE < n ? r + BESIDE : n};
    const size_t square = (size_t)n * (size_t)n, all = (size_t)s.q * (size_t)n;
    double *room = weft__alloc_zero(2 * square + 2 * all + 1, sizeof *room);
    if (!room) return 0;
    s.gg = room;
    s.xx = s.gg + square;
    s.c = s.xx + square;
    s.image = s.c + all;
    gram(g, n, d, s.gg);
    gram(x, n, k, s.xx);
    iterate(&s, r);
    write_out(&s, g, x, d, k, r, b, a);
    weft__free(room);
    return 1;
}
