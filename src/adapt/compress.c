// SPDX-License-Identifier: Apache-2.0
/* compress.c: an adapter at a smaller rank, each change as near as that can be (adapt.h, svd.h). One thread; the result
 * is a new adapter in float32. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "adapt/parts.h"
#include "adapt/svd.h"
#include "base/alloc.h"

/* A pair's experts at the largest rank that any may have, the largest terms first. */
typedef struct terms {
    int32_t most;    /* rank of the rows below */
    float *a, *b;    /* [E, most, k], [E, n, most] */
    double *squares; /* [E, most] of the singular values */
    double *smaller; /* [E] of those that `most` leaves out, together */
} terms;

static weft_status compress_no_memory(weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "no memory to compress an adapter");
}

static weft_status check(const weft__adapt *a, const weft__adapt_cut *cut, weft_error *err)
{
    if (cut->rank < 0 || cut->rank > WEFT__ADAPT_RANK_MAX)
        return weft_fail(err, WEFT_ARGUMENT, "a rank of %d; it must be 1 to %d, or 0 for any", cut->rank,
                         WEFT__ADAPT_RANK_MAX);
    if (!(cut->keep > 0 && cut->keep <= 1))
        return weft_fail(err, WEFT_ARGUMENT, "a share of %g to keep; it must be above 0 and at most 1", cut->keep);
    for (int32_t i = 0; i < a->n_pairs; i++) {
        const weft__adapt_pair *p = &a->pairs[i];
        int ok = isfinite(p->scale) != 0;
        if (p->magnitude)
            return weft_fail(
                err, WEFT_UNSUPPORTED,
                "%s has DoRA's magnitudes, by which an error in the change is scaled: it is not compressed", p->name);
        for (int64_t v = 0; v < p->n_experts * p->rank * p->k; v++) ok &= isfinite(p->a[v]) != 0;
        for (int64_t v = 0; v < p->n_experts * p->rank * p->n; v++) ok &= isfinite(p->b[v]) != 0;
        if (!ok) return weft_fail(err, WEFT_ARGUMENT, "%s: it holds NaN or infinity", p->name);
    }
    return WEFT_OK;
}

/* ---- one pair ---- */

static void terms_free(terms *t)
{
    weft__free(t->a);
    weft__free(t->b);
    weft__free(t->squares);
    weft__free(t->smaller);
}

static int terms_room(terms *t, const weft__adapt_pair *p, int32_t rank)
{
    const size_t e = (size_t)p->n_experts;
    *t = (terms){.most = rank && rank < p->rank ? rank : p->rank};
    t->a = weft__alloc_zero(e * (size_t)t->most * (size_t)p->k, sizeof *t->a);
    t->b = weft__alloc_zero(e * (size_t)t->most * (size_t)p->n, sizeof *t->b);
    t->squares = weft__alloc_zero(e * (size_t)t->most, sizeof *t->squares);
    t->smaller = weft__alloc_zero(e, sizeof *t->smaller);
    return t->a && t->b && t->squares && t->smaller;
}

/* Both halves have the root of the singular value: neither is much larger than the other, whatever the input was. */
static weft_status fill_expert(const weft__adapt_pair *p, int64_t e, terms *t, weft_error *err)
{
    weft__adapt_svd s;
    weft_status st = weft__adapt_svd_of(p->b + e * p->n * p->rank, p->a + e * p->rank * p->k, p->n, p->k, p->rank,
                                        (double)p->scale, &s, err);
    for (int32_t i = 0; !st && i < s.rank; i++) {
        const double root = sqrt(s.s[i]);
        if (i >= t->most) {
            t->smaller[e] += s.s[i] * s.s[i];
            continue;
        }
        t->squares[e * t->most + i] = s.s[i] * s.s[i];
        for (int64_t c = 0; c < p->k; c++) t->a[(e * t->most + i) * p->k + c] = (float)(root * s.v[i * p->k + c]);
        for (int64_t r = 0; r < p->n; r++) t->b[(e * p->n + r) * t->most + i] = (float)(root * s.u[i * p->n + r]);
    }
    if (!st) weft__adapt_svd_free(&s);
    return st;
}

/* The least rank, 1 at least, at which every expert keeps that share of its squares, or all it has up to `most`. */
static int32_t rank_for(const weft__adapt_pair *p, const terms *t, double keep)
{
    int32_t rank = 1;
    for (int64_t e = 0; e < p->n_experts; e++) {
        const double *q = t->squares + e * t->most;
        double rest = t->smaller[e], all;
        int32_t need = t->most;
        for (int32_t i = t->most; i-- > 0;) rest += q[i];
        all = rest;
        rest = t->smaller[e];
        while (need > 0 && rest + q[need - 1] <= (1 - keep) * all) rest += q[--need];
        rank = need > rank ? need : rank;
    }
    return rank;
}

static weft__adapt_lost lost_of(const weft__adapt_pair *p, const terms *t, int32_t rank)
{
    double lost = 0, all = 0;
    for (int64_t e = 0; e < p->n_experts; e++) {
        lost += t->smaller[e];
        for (int32_t i = t->most; i-- > 0;) {
            all += t->squares[e * t->most + i];
            if (i >= rank) lost += t->squares[e * t->most + i];
        }
        all += t->smaller[e];
    }
    return (weft__adapt_lost){.rank_before = p->rank, .rank = rank, .error = all > 0 ? sqrt(lost / all) : 0};
}

static weft_status put_pair(weft__adapt *out, const weft__adapt_pair *p, const terms *t, int32_t rank, weft_error *err)
{
    const int64_t n_a = rank * p->k, n_b = p->n * rank;
    float *a = weft__arena_array(&out->arena, (size_t)n_a * sizeof *a, (size_t)p->n_experts),
          *b = weft__arena_array(&out->arena, (size_t)n_b * sizeof *b, (size_t)p->n_experts);
    int ok = 1;
    if (!a || !b) return compress_no_memory(err);
    for (int64_t e = 0; e < p->n_experts; e++) {
        memcpy(a + e * n_a, t->a + e * t->most * p->k, (size_t)n_a * sizeof *a);
        for (int64_t r = 0; r < p->n; r++)
            memcpy(b + e * n_b + r * rank, t->b + (e * p->n + r) * t->most, (size_t)rank * sizeof *b);
    }
    for (int64_t i = 0; i < n_a * p->n_experts; i++) ok &= isfinite(a[i]) != 0;
    for (int64_t i = 0; i < n_b * p->n_experts; i++) ok &= isfinite(b[i]) != 0;
    weft__adapt_pair *to = &out->pairs[out->n_pairs++];
    *to = *p;
    to->rank = rank;
    to->scale = 1;
    to->a_dtype = to->b_dtype = WEFT_F32;
    to->a = a;
    to->b = b;
    return ok ? WEFT_OK : weft_fail(err, WEFT_ARGUMENT, "%s: its values are too large to be compressed", p->name);
}

static weft_status compress_pair(weft__adapt *out, const weft__adapt_pair *p, const weft__adapt_cut *cut,
                                 weft__adapt_lost *lost, weft_error *err)
{
    terms t;
    weft_status st = terms_room(&t, p, cut->rank) ? WEFT_OK : compress_no_memory(err);
    for (int64_t e = 0; !st && e < p->n_experts; e++) {
        st = fill_expert(p, e, &t, err);
        if (st && st != WEFT_NO_MEMORY) st = weft_fail_within(err, st, "%s", p->name);
    }
    if (!st) {
        const int32_t rank = rank_for(p, &t, cut->keep);
        if (lost) *lost = lost_of(p, &t, rank);
        st = put_pair(out, p, &t, rank, err);
    }
    terms_free(&t);
    return st;
}

/* ---- the whole ---- */

weft_status weft__adapt_compress(const weft__adapt *a, const weft__adapt_cut *cut, weft__adapt **out,
                                 weft__adapt_lost *lost, weft_error *err)
{
    *out = NULL;
    weft_status st = check(a, cut, err);
    if (st) return st;
    weft__adapt *to = weft__alloc_zero(1, sizeof *to);
    if (!to || !(to->label = weft__strdup("compressed")) ||
        !(to->pairs = weft__arena_array(&to->arena, (size_t)a->n_pairs + 1, sizeof *to->pairs)))
        st = compress_no_memory(err);
    if (!st) {
        memcpy(to->arch, a->arch, sizeof to->arch);
        to->base_fingerprint = a->base_fingerprint;
    }
    for (int32_t i = 0; !st && i < a->n_pairs; i++)
        st = compress_pair(to, &a->pairs[i], cut, lost ? &lost[i] : NULL, err);
    if (!st) st = weft__adapt_identify(to, err);
    if (st) weft__adapt_close(&to);
    *out = to;
    return st;
}
