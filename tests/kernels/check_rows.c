// SPDX-License-Identifier: Apache-2.0
/* check_rows.c: the operations on rows against ref (check.h): all lengths up to two vectors and a few long ones, any
 * alignment of floats, in place and not, every pattern of values. */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "weft/graph.h"

/* Results below this may lose their last bits to denormals. */
#define FLOOR 1e-30

static const int lengths[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17,  18,   19,   20,
                              21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 63, 64, 65, 127, 1000, 2048, 4099};

/* One case: two inputs of n, and room for the output under test (guarded) and for that of ref. */
struct rows {
    guarded a, b, got, want;
    float *x, *y, *out, *expect;
    int64_t n;
};

static struct rows rows_new(check *c, int64_t n, pattern p)
{
    struct rows r = {.n = n};
    size_t bytes = (size_t)n * sizeof(float), shift = 4 * weft__rng_below(&c->rng, 16);
    r.a = guarded_new(bytes, shift);
    r.b = guarded_new(bytes, 4);
    r.got = guarded_new(bytes, shift);
    r.want = guarded_new(bytes, 0);
    r.x = (float *)r.a.p;
    r.y = (float *)r.b.p;
    r.out = (float *)r.got.p;
    r.expect = (float *)r.want.p;
    check_values(c, p, r.x, n);
    check_values(c, P_NORMAL, r.y, n);
    return r;
}

static void rows_free(check *c, struct rows *r)
{
    guarded_free(c, &r->a, "the input");
    guarded_free(c, &r->b, "the second input");
    guarded_free(c, &r->got, "the output");
    guarded_free(c, &r->want, "ref's output");
}

/* Runs `one` for all lengths and patterns. */
static void for_all(check *c, void (*one)(check *c, const weft__kernels *k, struct rows *r, float *out, int variant),
                    int n_variants)
{
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i += EVERY_SIZE) {
        for (int p = 0; p < P_COUNT * n_variants; p++) {
            struct rows r = rows_new(c, lengths[i], (pattern)(p % P_COUNT));
            int variant = p / P_COUNT;
            char what[80];
            snprintf(what, sizeof what, "n %d, %s, variant %d", lengths[i], check_pattern_name((pattern)(p % P_COUNT)),
                     variant);
            one(c, c->ref, &r, r.expect, variant);
            one(c, c->k, &r, r.out, variant);
            check_error(c, check_difference(r.out, r.expect, r.n, FLOOR), what);
            one(c, c->k, &r, r.x, variant); /* in place */
            if (!check_same_bits(r.x, r.out, r.n)) {
                /* NaN may carry different bits, anything else may not */
                if (check_difference(r.x, r.out, r.n, FLOOR) != 0) check_fail(c, "in place differs: %s", what);
            }
            rows_free(c, &r);
        }
    }
}

static void one_norm(check *c, const weft__kernels *k, struct rows *r, float *out, int variant)
{
    (void)c;
    k->norm_rms(r->x, variant ? r->y : NULL, 1e-5f, r->n, out);
}

void check_norm_rms(check *c)
{
    for_all(c, one_norm, 2);
}

static void one_add(check *c, const weft__kernels *k, struct rows *r, float *out, int variant)
{
    (void)c;
    if (variant) {
        k->add(r->y, r->x, r->n, out);
    } else {
        k->add(r->x, r->y, r->n, out);
    }
}

void check_add(check *c)
{
    for_all(c, one_add, 2);
}

static void one_scale(check *c, const weft__kernels *k, struct rows *r, float *out, int variant)
{
    static const float factors[] = {0.125f, -3.7f, 0, 1e-20f, 1e30f};
    (void)c;
    k->scale(r->x, factors[variant], r->n, out);
}

void check_scale(check *c)
{
    for_all(c, one_scale, 5);
}

static void one_glu(check *c, const weft__kernels *k, struct rows *r, float *out, int variant)
{
    (void)c;
    k->glu(variant, r->x, r->y, r->n, out);
}

/* The activations over their whole range, where a polynomial or a rounding might go wrong. */
void check_glu(check *c)
{
    for_all(c, one_glu, 4);
    enum { N = 4096 };
    struct rows r = rows_new(c, N, P_NORMAL);
    for (int i = 0; i < N; i++) r.y[i] = 1;
    for (int act = 0; act < 4; act++) {
        for (int range = 1; range <= 200; range *= 10) {
            for (int i = 0; i < N; i++) r.x[i] = (float)range * (2 * (float)i / N - 1);
            c->ref->glu(act, r.x, r.y, N, r.expect);
            c->k->glu(act, r.x, r.y, N, r.out);
            char what[60];
            snprintf(what, sizeof what, "activation %d over -%d..%d", act, range, range);
            check_error(c, check_difference(r.out, r.expect, N, FLOOR), what);
        }
    }
    rows_free(c, &r);
}

static void one_softcap(check *c, const weft__kernels *k, struct rows *r, float *out, int variant)
{
    (void)c;
    k->softcap(r->x, variant ? 50.0f : 0.5f, r->n, out);
}

void check_softcap(check *c)
{
    for_all(c, one_softcap, 2);
    enum { N = 4096 };
    struct rows r = rows_new(c, N, P_NORMAL);
    for (int i = 0; i < N; i++) r.x[i] = 30 * (2 * (float)i / N - 1);
    c->ref->softcap(r.x, 3, N, r.expect);
    c->k->softcap(r.x, 3, N, r.out);
    check_error(c, check_difference(r.out, r.expect, N, FLOOR), "-30..30 with cap 3");
    rows_free(c, &r);
}

/* Largest difference of rotated heads, relative to the length of the pair (which a rotation keeps). */
static double rope_difference(const float *a, const float *b, int n_heads, int head_dim, int n_rot, int style)
{
    double worst = 0;
    for (int h = 0; h < n_heads; h++, a += head_dim, b += head_dim) {
        for (int i = 0; i < n_rot / 2; i++) {
            int j = style == WEFT_ROPE_ADJACENT ? 2 * i : i,
                l = style == WEFT_ROPE_ADJACENT ? 2 * i + 1 : i + n_rot / 2;
            double length = hypot(b[j], b[l]) + FLOOR;
            double d = fmax(fabs((double)a[j] - b[j]), fabs((double)a[l] - b[l])) / length;
            if (isfinite(b[j]) && isfinite(b[l]) && !(d <= worst)) worst = d;
            if (isfinite(a[j]) != isfinite(b[j]) || isfinite(a[l]) != isfinite(b[l])) return INFINITY;
        }
        if (!check_same_bits(a + n_rot, b + n_rot, head_dim - n_rot)) return INFINITY;
    }
    return worst;
}

static void rope_case(check *c, int n_heads, int head_dim, int n_rot, int style, pattern p)
{
    int64_t n = (int64_t)n_heads * head_dim;
    guarded got = guarded_new((size_t)n * 4, 4), want = guarded_new((size_t)n * 4, 0),
            table = guarded_new((size_t)n_rot * 4, 4);
    float *cs = (float *)table.p;
    check_values(c, p, (float *)want.p, n);
    memcpy(got.p, want.p, (size_t)n * 4);
    for (int i = 0; i < n_rot / 2; i++) {
        double angle = weft__rng_double(&c->rng) * 7;
        cs[2 * i] = (float)cos(angle);
        cs[2 * i + 1] = (float)sin(angle);
    }
    c->ref->rope((float *)want.p, n_heads, head_dim, n_rot, style, cs);
    c->k->rope((float *)got.p, n_heads, head_dim, n_rot, style, cs);
    char what[100];
    snprintf(what, sizeof what, "%d heads of %d, %d rotated, style %d, %s", n_heads, head_dim, n_rot, style,
             check_pattern_name(p));
    check_error(c, rope_difference((float *)got.p, (float *)want.p, n_heads, head_dim, n_rot, style), what);
    guarded_free(c, &got, "the heads");
    guarded_free(c, &want, "ref's heads");
    guarded_free(c, &table, "cos and sin");
}

void check_rope(check *c)
{
    for (int style = 0; style < 2; style++) {
        for (int n_rot = 2; n_rot <= 68; n_rot += 2 * EVERY_SIZE) {
            for (int p = 0; p < P_COUNT; p++)
                rope_case(c, 1 + n_rot % 3, n_rot + 3 * (n_rot % 4), n_rot, style, (pattern)p);
        }
        rope_case(c, 32, 128, 128, style, P_NORMAL);
    }
}

static void argmax_case(check *c, const float *x, int64_t n, const char *what)
{
    int64_t got = c->k->argmax(x, n), want = c->ref->argmax(x, n);
    check_error(c, 0, what);
    if (got != want) check_fail(c, "argmax %lld instead of %lld: %s", (long long)got, (long long)want, what);
}

void check_argmax(check *c)
{
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        int n = lengths[i];
        for (int p = 0; p < P_COUNT; p++) {
            struct rows r = rows_new(c, n, (pattern)p);
            argmax_case(c, r.x, n, check_pattern_name((pattern)p));
            for (int j = 0; j < n; j++) r.x[j] = (float)weft__rng_below(&c->rng, 4);
            argmax_case(c, r.x, n, "many equals");
            for (int j = 0; j < n; j++) r.x[j] = weft__rng_below(&c->rng, 2) ? NAN : -INFINITY;
            argmax_case(c, r.x, n, "NaN and -inf");
            for (int j = 0; j < n; j++) r.x[j] = NAN;
            argmax_case(c, r.x, n, "all NaN");
            r.x[n - 1] = -5;
            argmax_case(c, r.x, n, "only the last is a number");
            rows_free(c, &r);
        }
    }
}
