// SPDX-License-Identifier: Apache-2.0
/* check_learn.c: what training adds: tiles of products, turned rows, and the backward operations on rows (check.h). */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "quant/half.h"

static const int lengths[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 1000, 1023, 1024, 1025, 4099};
#define N_LENGTHS (sizeof lengths / sizeof lengths[0])

/* Values that a strip of n elements holds. */
static void strip_values(check *c, const weft__gemm *g, pattern p, float *strip, int64_t n)
{
    if (g->dtype == WEFT_F32) {
        check_values(c, p, strip, n);
        return;
    }
    float *x = weft__alloc_array(2 * (size_t)n, sizeof *x);
    if (!x) {
        check_fail(c, "no memory");
        return;
    }
    check_values(c, p, x, 2 * n);
    g->round(x, 2 * n, strip);
    weft__free(x);
}

/* Input `half` of an element, which for F32 has one. */
static double input_of(const weft__gemm *g, const float *element, int half)
{
    if (g->dtype == WEFT_F32) return half ? 0 : (double)*element;
    uint32_t bits;
    memcpy(&bits, element, sizeof bits);
    return (double)weft__bf16_to_f32((uint16_t)(bits >> 16 * half));
}

/* The line's own kernel, or ref when that is the line. */
static void tile_case(check *c, const weft__gemm *g, int64_t k, int add, pattern p)
{
    const int64_t ldc = g->nr + 5, n_a = k * g->mr, n_b = k * g->nr, n_c = (g->mr - 1) * ldc + g->nr;
    guarded a = guarded_new((size_t)n_a * 4, 4), b = guarded_new((size_t)n_b * 4, 8),
            out = guarded_new((size_t)n_c * 4, 12);
    float want[WEFT__GEMM_MAX_MR * (WEFT__GEMM_MAX_NR + 5)], before[WEFT__GEMM_MAX_MR * (WEFT__GEMM_MAX_NR + 5)],
        half[WEFT__GEMM_MAX_MR * (WEFT__GEMM_MAX_NR + 5)];
    strip_values(c, g, p, (float *)a.p, n_a);
    strip_values(c, g, P_NORMAL, (float *)b.p, n_b);
    check_values(c, P_NORMAL, (float *)out.p, n_c);
    memcpy(before, out.p, (size_t)n_c * 4);
    memcpy(want, out.p, (size_t)n_c * 4);
    for (int i = 0; i < g->mr; i++) {
        for (int j = 0; j < g->nr; j++) {
            double sum = add ? before[i * ldc + j] : 0;
            for (int64_t q = 0; q < 2 * k; q++)
                sum += input_of(g, (float *)a.p + q / 2 * g->mr + i, q & 1) *
                       input_of(g, (float *)b.p + q / 2 * g->nr + j, q & 1);
            want[i * ldc + j] = (float)sum;
        }
    }
    g->tile(k, (float *)a.p, (float *)b.p, (float *)out.p, ldc, add);
    char what[80];
    snprintf(what, sizeof what, "k %lld, add %d, %s", (long long)k, add, check_pattern_name(p));
    memcpy(half, before, (size_t)n_c * 4);
    g->half(k, (float *)a.p, (float *)b.p, half, ldc, add);
    for (int i = 0; i < g->mr; i++) { /* the tile's bits, and behind them what was there */
        const int n = g->nr / 2, rest = i + 1 < g->mr ? (int)ldc - n : g->nr - n;
        if (!check_same_bits(half + i * ldc, (float *)out.p + i * ldc, n) ||
            !check_same_bits(half + i * ldc + n, before + i * ldc + n, rest))
            check_fail(c, "half a tile is another: %s", what);
    }
    check_error(c, check_nmse((float *)out.p, want, n_c), what);
    for (int i = 0; i + 1 < g->mr; i++) { /* what lies between the rows is somebody else's */
        if (!check_same_bits((float *)out.p + i * ldc + g->nr, before + i * ldc + g->nr, 5))
            check_fail(c, "wrote between rows: %s", what);
    }
    guarded_free(c, &a, "the left strip");
    guarded_free(c, &b, "the right strip");
    guarded_free(c, &out, "the tile");
}

static void turn_case(check *c, const weft__gemm *g, int n_rows, int64_t k, int width)
{
    const int64_t ld = k + 3, n_src = (n_rows - 1) * ld + k, n_dst = (k - 1) * width + n_rows;
    guarded src = guarded_new((size_t)n_src * 4, 4), dst = guarded_new((size_t)n_dst * 4, 8);
    check_values(c, P_NORMAL, (float *)src.p, n_src);
    g->turn((float *)src.p, ld, n_rows, k, (float *)dst.p, width);
    int same = 1;
    for (int j = 0; j < n_rows; j++) {
        for (int64_t p = 0; p < k; p++)
            same &= check_same_bits((float *)dst.p + p * width + j, (float *)src.p + j * ld + p, 1);
    }
    check_error(c, 0, "turning");
    if (!same)
        check_fail(c, "%d rows of %lld turned into a strip of %d are other numbers", n_rows, (long long)k, width);
    guarded_free(c, &src, "the rows");
    guarded_free(c, &dst, "the strip");
}

/* Rounding a row, and pairing two: ref's bits, of numbers that are not so small that they may be zero. */
static void round_case(check *c, const weft__gemm *g, int64_t n, pattern p)
{
    const weft__gemm *ref = weft__gemm_find(WEFT_BF16, 0);
    const int64_t half = (n + 1) / 2;
    guarded x = guarded_new((size_t)n * 4, 4), y = guarded_new((size_t)n * 4, 8), out = guarded_new((size_t)n * 4, 12),
            want = guarded_new((size_t)n * 4, 4);
    check_values(c, p, (float *)x.p, n);
    check_values(c, P_NORMAL, (float *)y.p, n);
    g->round((float *)x.p, n, (float *)out.p);
    ref->round((float *)x.p, n, (float *)want.p);
    if (memcmp(out.p, want.p, (size_t)half * 4)) check_fail(c, "rounded, %lld are other numbers", (long long)n);
    for (int none = 0; none < 2; none++) {
        const float *other = none ? NULL : (float *)y.p;
        g->pair((float *)x.p, other, n, (float *)out.p);
        ref->pair((float *)x.p, other, n, (float *)want.p);
        if (memcmp(out.p, want.p, (size_t)n * 4)) check_fail(c, "paired, %lld are other numbers", (long long)n);
    }
    guarded_free(c, &x, "a row");
    guarded_free(c, &y, "a row");
    guarded_free(c, &out, "the elements");
    guarded_free(c, &want, "ref's elements");
}

void check_gemm(check *c)
{
    const weft__gemm *g = c->entry->gemm;
    if (g->mr > WEFT__GEMM_MAX_MR || g->nr > WEFT__GEMM_MAX_NR)
        check_fail(c, "tiles larger than WEFT__GEMM_MAX_MR x WEFT__GEMM_MAX_NR");
    if (weft__gemm_find(g->dtype, 1u << c->entry->tier) != g) check_fail(c, "weft__gemm_find gives another one");
    if (c->fault[0]) return;
    for (size_t i = 0; i < N_LENGTHS; i++) {
        for (int p = 0; p < P_FINITE; p++) tile_case(c, g, lengths[i], p & 1, (pattern)p);
        for (int n_rows = 1; n_rows <= g->nr; n_rows++)
            turn_case(c, g, n_rows, lengths[i] < 200 ? lengths[i] : 200, g->nr);
        turn_case(c, g, g->mr, lengths[i], g->mr);
        for (int p = 0; g->dtype == WEFT_BF16 && p < P_COUNT; p++)
            if (p != P_DENORMAL) round_case(c, g, lengths[i], (pattern)p);
    }
}

/* Rows of n: three inputs and two outputs, the latter guarded. */
struct backs {
    guarded in[3], out[2], want[2];
    float *x, *y, *z;
};

static struct backs backs_new(check *c, int64_t n, pattern p)
{
    struct backs b;
    for (int i = 0; i < 3; i++) b.in[i] = guarded_new((size_t)n * 4, 4 * weft__rng_below(&c->rng, 16));
    for (int i = 0; i < 2; i++)
        b.out[i] = guarded_new((size_t)n * 4, 4 + 4 * (size_t)i), b.want[i] = guarded_new((size_t)n * 4, 0);
    b.x = (float *)b.in[0].p, b.y = (float *)b.in[1].p, b.z = (float *)b.in[2].p;
    check_values(c, p, b.x, n);
    check_values(c, P_NORMAL, b.y, n);
    check_values(c, P_NORMAL, b.z, n);
    return b;
}

static void backs_free(check *c, struct backs *b)
{
    for (int i = 0; i < 3; i++) guarded_free(c, &b->in[i], "an input");
    for (int i = 0; i < 2; i++) guarded_free(c, &b->out[i], "an output"), guarded_free(c, &b->want[i], "ref's output");
}

/* Largest difference, relative to the largest element; infinite where only one is NaN. */
static double of_row(const float *a, const float *b, int64_t n)
{
    double most = 1e-30, worst = 0;
    for (int64_t i = 0; i < n; i++)
        most = fabs((double)b[i]) > most ? fabs((double)b[i]) : most; /* fmax: GCC 12 for AArch64 fails */
    for (int64_t i = 0; i < n; i++) {
        if (isnan(a[i]) && isnan(b[i])) continue;
        double d = fabs((double)a[i] - b[i]) / most;
        if (isnan(d)) return INFINITY; /* a later element would hide it */
        if (d > worst) worst = d;
    }
    return worst;
}

static double mean_square(const float *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)x[i] * x[i];
    return sum / (double)n;
}

void check_norm_back(check *c)
{
    static const pattern patterns[] = {P_NORMAL, P_OUTLIERS, P_ZERO, P_WHOLE};
    for (size_t i = 0; i < N_LENGTHS * 8; i++) {
        int64_t n = lengths[i / 8];
        struct backs b = backs_new(c, n, patterns[i % 4]);
        const float *w = i & 4 ? b.y : NULL;
        double inverse = 1 / sqrt(mean_square(b.x, n) + 1e-5);
        c->ref->norm_back(b.x, w, b.z, inverse, n, (float *)b.want[0].p);
        c->k->norm_back(b.x, w, b.z, inverse, n, (float *)b.out[0].p);
        /* At n = 1 two large terms cancel: the error is relative to them. */
        double scale = n == 1 ? fabs(inverse * b.z[0] * (w ? w[0] : 1)) : 0;
        double error = n == 1 ? fabs((double)*(float *)b.out[0].p - *(float *)b.want[0].p) / (scale + 1e-30)
                              : of_row((float *)b.out[0].p, (float *)b.want[0].p, n);
        char what[60];
        snprintf(what, sizeof what, "n %lld, %s", (long long)n, check_pattern_name(patterns[i % 4]));
        check_error(c, error, what);
        backs_free(c, &b);
    }
}

/* Errors relative to dy * up, as the slope passes through 0, and for dup to the element. */
static void glu_back_case(check *c, int act, int64_t n, struct backs *b, const char *what)
{
    float *dg = (float *)b->out[0].p, *du = (float *)b->out[1].p, *want_g = (float *)b->want[0].p,
          *want_u = (float *)b->want[1].p;
    c->ref->glu_back(act, b->x, b->y, b->z, n, want_g, want_u);
    c->k->glu_back(act, b->x, b->y, b->z, n, dg, du);
    for (int64_t i = 0; i < n; i++) {
        if (isnan(b->x[i]) && isnan(dg[i]) && isnan(want_g[i])) continue;
        check_error(c, fabs((double)dg[i] - want_g[i]) / (fabs((double)b->y[i] * b->z[i]) + 1e-30), what);
    }
    check_error(c, check_difference(du, want_u, n, 1e-30), what);
    c->k->glu_back(act, b->x, b->y, b->z, n, b->x, b->y); /* in place */
    if (!check_same_bits(b->x, dg, n) || !check_same_bits(b->y, du, n)) {
        if (check_difference(b->x, dg, n, 1e-30) != 0) check_fail(c, "in place differs: %s", what);
    }
}

void check_glu_back(check *c)
{
    char what[80];
    for (int act = 0; act < 4; act++) {
        for (size_t i = 0; i < N_LENGTHS * P_INFINITE; i++) {
            int64_t n = lengths[i / P_INFINITE];
            pattern p = (pattern)(i % P_INFINITE);
            struct backs b = backs_new(c, n, p);
            snprintf(what, sizeof what, "activation %d, n %lld, %s", act, (long long)n, check_pattern_name(p));
            glu_back_case(c, act, n, &b, what);
            backs_free(c, &b);
        }
        for (int range = 1; range <= 100; range *= 10) {
            enum { N = 4096 };
            struct backs b = backs_new(c, N, P_NORMAL);
            for (int i = 0; i < N; i++) b.x[i] = (float)range * (2 * (float)i / N - 1);
            snprintf(what, sizeof what, "activation %d over -%d..%d", act, range, range);
            glu_back_case(c, act, N, &b, what);
            backs_free(c, &b);
        }
    }
}

void check_exp_sum(check *c)
{
    static const pattern patterns[] = {P_NORMAL, P_OUTLIERS, P_ZERO, P_WHOLE, P_NAN};
    for (size_t i = 0; i < N_LENGTHS * 5; i++) {
        int64_t n = lengths[i / 5];
        struct backs b = backs_new(c, n, patterns[i % 5]);
        float shift = -INFINITY;
        for (int64_t j = 0; j < n; j++) shift = fmaxf(shift, b.x[j]);
        if (shift == -INFINITY) shift = 0; /* nothing but NaN */
        double want = c->ref->exp_sum(b.x, shift, n, (float *)b.want[0].p),
               got = c->k->exp_sum(b.x, shift, n, (float *)b.out[0].p);
        char what[60];
        snprintf(what, sizeof what, "n %lld, %s", (long long)n, check_pattern_name(patterns[i % 5]));
        check_error(c, check_difference((float *)b.out[0].p, (float *)b.want[0].p, n, 1e-30), what);
        if (isnan(want) != isnan(got)) check_fail(c, "the sum is %g instead of %g: %s", got, want, what);
        else if (!isnan(want)) check_error(c, fabs(got - want) / want, what);
        c->k->exp_sum(b.x, shift, n, b.x); /* in place */
        if (check_difference(b.x, (float *)b.out[0].p, n, 1e-30) != 0) check_fail(c, "in place differs: %s", what);
        backs_free(c, &b);
    }
    float far[40], y[40]; /* what would be denormal is nothing */
    for (int j = 0; j < 40; j++) far[j] = j ? -87.5f - (float)(j % 20) : 0;
    const double sum = c->k->exp_sum(far, 0, 40, y);
    if (sum != 1) check_fail(c, "far weights have a sum of %g", sum - 1);
    for (int j = 1; j < 40; j++)
        if (y[j] != 0) check_fail(c, "e^%g is %g", (double)far[j], (double)y[j]);
}
