// SPDX-License-Identifier: Apache-2.0
/* merge.c: several adapters as one (adapt.h has the methods and their sources). One thread; the result is a new adapter
 * in float32. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapt/parts.h"
#include "base/alloc.h"
#include "base/random.h"

enum { MOST = 64 };

typedef struct merging {
    const weft__adapt_use *uses;
    int32_t n;
    const weft__adapt_mix *mix;
    weft__rng rng;
    weft__adapt *out;
    weft_error *err;
} merging;

/* What the adapters have for one tensor; NULL: nothing. */
typedef struct group {
    const weft__adapt_pair *pair[MOST];
    const weft__adapt_pair *first;
} group;

static weft_status merge_no_memory(merging *m)
{
    return weft_fail(m->err, WEFT_NO_MEMORY, "no memory to merge adapters");
}

static weft_status check_group(merging *m, const group *g, int64_t *rank)
{
    const weft__adapt_pair *first = g->first;
    *rank = 0;
    for (int32_t i = 0; i < m->n; i++) {
        const weft__adapt_pair *p = g->pair[i];
        if (!p) continue;
        if (p->magnitude)
            return weft_fail(
                m->err, WEFT_UNSUPPORTED,
                "%s: %s has DoRA's magnitudes, which stand for the lengths of the base's rows: a sum of such changes "
                "is no "
                "adapter; merge them into the base (without --method), or use them together, by weights, as a stack",
                p->name, m->uses[i].adapter->label);
        if (p->k != first->k || p->n != first->n || p->n_experts != first->n_experts)
            return weft_fail(m->err, WEFT_ARGUMENT,
                             "%s has another shape in %s than in the adapters before: they have different bases",
                             p->name, m->uses[i].adapter->label);
        if (m->mix->method == WEFT__ADAPT_CAT) *rank += p->rank;
        else if (p->rank > *rank) *rank = p->rank;
    }
    if (*rank <= WEFT__ADAPT_RANK_MAX) return WEFT_OK;
    return weft_fail(m->err, WEFT_LIMIT, "%s: the ranks are %lld together; at most %d", first->name, (long long)*rank,
                     WEFT__ADAPT_RANK_MAX);
}

/* ---- concatenation ---- */

static void concatenate(const merging *m, const group *g, float *a, float *b, int64_t rank)
{
    int64_t k = g->first->k, n = g->first->n, at = 0;
    for (int32_t i = 0; i < m->n; i++) {
        const weft__adapt_pair *p = g->pair[i];
        float f = p ? m->uses[i].scale * p->scale : 0;
        for (int64_t e = 0; p && e < p->n_experts; e++) {
            memcpy(a + (e * rank + at) * k, p->a + e * p->rank * k, (size_t)(p->rank * k) * sizeof *a);
            for (int64_t r = 0; r < n; r++)
                for (int32_t j = 0; j < p->rank; j++)
                    b[(e * n + r) * rank + at + j] = f * p->b[(e * n + r) * p->rank + j];
        }
        at += p ? p->rank : 0;
    }
}

/* ---- halves by themselves ---- */

/* One half of every adapter: n_values each, with the factor that it counts by. */
typedef struct side {
    const float *values[MOST]; /* NULL: zeros */
    float *own[MOST];          /* the same where they were widened */
    size_t n_own[MOST];        /* of values, those that are no zeros of a larger rank's */
    double factor[MOST];
    size_t n_values;
} side;

/* A half [rows, width], wider or with more rows by zeros: so many in each of n_blocks. */
static float *widened(const float *x, int64_t n_blocks, int64_t rows, int64_t width, int64_t to_rows, int64_t to_width)
{
    float *out = weft__alloc_zero((size_t)(n_blocks * to_rows) * (size_t)to_width, sizeof *out);
    for (int64_t i = 0; out && i < n_blocks * rows; i++)
        memcpy(out + (i / rows * to_rows + i % rows) * to_width, x + i * width, (size_t)width * sizeof *out);
    return out;
}

static void mix_linear(const merging *m, const side *s, float *out)
{
    for (size_t v = 0; v < s->n_values; v++) {
        double sum = 0;
        for (int32_t i = 0; i < m->n; i++)
            if (s->values[i]) sum += s->factor[i] * (double)s->values[i][v];
        out[v] = (float)sum;
    }
}

static void mix_dare(merging *m, const side *s, float *out)
{
    memset(out, 0, s->n_values * sizeof *out);
    for (int32_t i = 0; i < m->n; i++)
        for (size_t v = 0; s->values[i] && v < s->n_values; v++)
            if (weft__rng_double(&m->rng) < m->mix->density)
                out[v] += (float)(s->factor[i] * (double)s->values[i][v] / m->mix->density);
}

/* The weights of a spherical interpolation, applied to what the factors leave of the scales. */
static void mix_slerp(const merging *m, const side *s, float *out)
{
    double w0 = (double)m->uses[0].scale, w1 = (double)m->uses[1].scale, t = w1 / (w0 + w1), dot = 0, n0 = 0, n1 = 0,
           c0 = 1 - t, c1 = t;
    for (size_t v = 0; v < s->n_values; v++) {
        double x = s->values[0] ? s->factor[0] * (double)s->values[0][v] : 0,
               y = s->values[1] ? s->factor[1] * (double)s->values[1][v] : 0;
        dot += x * y;
        n0 += x * x;
        n1 += y * y;
    }
    double cosine = n0 > 0 && n1 > 0 ? dot / sqrt(n0 * n1) : 1;
    if (fabs(cosine) < 0.9995) {
        double angle = acos(cosine), sine = sin(angle);
        c0 = sin((1 - t) * angle) / sine;
        c1 = sin(t * angle) / sine;
    }
    for (size_t v = 0; v < s->n_values; v++) {
        double x = s->values[0] ? s->factor[0] * (double)s->values[0][v] : 0,
               y = s->values[1] ? s->factor[1] * (double)s->values[1][v] : 0;
        out[v] = (float)(c0 * x + c1 * y);
    }
}

static int by_size(const void *x, const void *y)
{
    float a = *(const float *)x, b = *(const float *)y;
    return (a < b) - (a > b);
}

/* The magnitude from which on a half's values are among its largest `density`, of n_own; `equal` of those with exactly
 * it are. */
static void find_cut(const float *values, size_t n, size_t n_own, double density, float *sorted, float *cut,
                     size_t *equal)
{
    size_t keep = (size_t)(density * (double)n_own), above = 0;
    for (size_t v = 0; v < n; v++) sorted[v] = fabsf(values[v]);
    qsort(sorted, n, sizeof *sorted, by_size);
    *cut = keep ? sorted[keep - 1] : INFINITY;
    while (above < keep && sorted[above] > *cut) above++;
    *equal = keep - above;
}

static weft_status mix_ties(merging *m, const side *s, float *out)
{
    float *kept = weft__alloc_array(s->n_values * (size_t)m->n, sizeof *kept),
          *sorted = weft__alloc_array(s->n_values, sizeof *sorted);
    if (!kept || !sorted) {
        weft__free(sorted);
        weft__free(kept);
        return merge_no_memory(m);
    }
    for (int32_t i = 0; i < m->n; i++) {
        float *to = kept + (size_t)i * s->n_values, cut = INFINITY;
        size_t equal = 0;
        if (s->values[i]) find_cut(s->values[i], s->n_values, s->n_own[i], m->mix->density, sorted, &cut, &equal);
        for (size_t v = 0; v < s->n_values; v++) {
            float x = s->values[i] ? s->values[i][v] : 0, size = fabsf(x);
            int in = size > cut || (size == cut && equal > 0 && equal--);
            to[v] = in ? x : 0;
        }
    }
    for (size_t v = 0; v < s->n_values; v++) {
        double total = 0, sum = 0;
        int n = 0;
        for (int32_t i = 0; i < m->n; i++) total += (double)kept[(size_t)i * s->n_values + v];
        for (int32_t i = 0; i < m->n; i++) {
            double x = (double)kept[(size_t)i * s->n_values + v];
            if (x == 0 || (x > 0) != (total >= 0)) continue;
            sum += s->factor[i] * x;
            n++;
        }
        out[v] = n ? (float)(sum / n) : 0;
    }
    weft__free(sorted);
    weft__free(kept);
    return WEFT_OK;
}

static weft_status mix_side(merging *m, const side *s, float *out)
{
    switch (m->mix->method) {
    case WEFT__ADAPT_SLERP: mix_slerp(m, s, out); return WEFT_OK;
    case WEFT__ADAPT_TIES: return mix_ties(m, s, out);
    case WEFT__ADAPT_DARE: mix_dare(m, s, out); return WEFT_OK;
    default: mix_linear(m, s, out); return WEFT_OK;
    }
}

/* Pair p as one of the sides: of a smaller rank, with components of zeros up to `rank`, which its product does not
 * have. */
static weft_status put_sides(merging *m, side sides[2], int32_t i, const weft__adapt_pair *p, int64_t rank)
{
    /* SLERP's weights are its own. */
    double weight =
        m->mix->method == WEFT__ADAPT_SLERP ? (double)p->scale : (double)m->uses[i].scale * (double)p->scale;
    sides[0].factor[i] = sqrt(fabs(weight));
    sides[1].factor[i] = weight < 0 ? -sides[0].factor[i] : sides[0].factor[i];
    sides[0].n_own[i] = (size_t)(p->n_experts * p->rank * p->k);
    sides[1].n_own[i] = (size_t)(p->n_experts * p->n * p->rank);
    sides[0].values[i] = p->a;
    sides[1].values[i] = p->b;
    if (p->rank == rank) return WEFT_OK;
    sides[0].values[i] = sides[0].own[i] = widened(p->a, p->n_experts, p->rank, p->k, rank, p->k);
    sides[1].values[i] = sides[1].own[i] = widened(p->b, p->n_experts, p->n, p->rank, p->n, rank);
    return sides[0].own[i] && sides[1].own[i] ? WEFT_OK : merge_no_memory(m);
}

static weft_status mix_group(merging *m, const group *g, float *a, float *b, int64_t rank)
{
    side sides[2] = {{.n_values = (size_t)(g->first->n_experts * rank * g->first->k)},
                     {.n_values = (size_t)(g->first->n_experts * g->first->n * rank)}};
    weft_status st = WEFT_OK;
    for (int32_t i = 0; i < m->n && !st; i++)
        if (g->pair[i]) st = put_sides(m, sides, i, g->pair[i], rank);
    if (!st) st = mix_side(m, &sides[0], a);
    if (!st) st = mix_side(m, &sides[1], b);
    for (int32_t i = 0; i < m->n; i++) {
        weft__free(sides[0].own[i]);
        weft__free(sides[1].own[i]);
    }
    return st;
}

/* ---- the whole ---- */

static weft_status check_values(merging *m, const weft__adapt_pair *p)
{
    int ok = 1;
    for (int64_t i = 0; i < p->n_experts * p->rank * p->k; i++) ok &= isfinite(p->a[i]) != 0;
    for (int64_t i = 0; i < p->n_experts * p->rank * p->n; i++) ok &= isfinite(p->b[i]) != 0;
    return ok ? WEFT_OK
              : weft_fail(m->err, WEFT_ARGUMENT, "%s: the merged values are not finite; give smaller weights", p->name);
}

static weft_status merge_group(merging *m, const group *g)
{
    const weft__adapt_pair *first = g->first;
    weft__adapt *out = m->out;
    int64_t rank;
    weft_status st = check_group(m, g, &rank);
    if (st) return st;
    float *a = weft__arena_array(&out->arena, (size_t)(rank * first->k) * sizeof *a, (size_t)first->n_experts),
          *b = weft__arena_array(&out->arena, (size_t)(rank * first->n) * sizeof *b, (size_t)first->n_experts);
    if (!a || !b) return merge_no_memory(m);
    weft__adapt_pair *p = &out->pairs[out->n_pairs++];
    *p = (weft__adapt_pair){.k = first->k,
                            .n = first->n,
                            .n_experts = first->n_experts,
                            .rank = (int32_t)rank,
                            .scale = 1,
                            .a_dtype = WEFT_F32,
                            .b_dtype = WEFT_F32,
                            .a = a,
                            .b = b};
    snprintf(p->name, sizeof p->name, "%s", first->name);
    if (m->mix->method == WEFT__ADAPT_CAT) concatenate(m, g, a, b, rank);
    else st = mix_group(m, g, a, b, rank);
    return st ? st : check_values(m, p);
}

/* The first name, by order, that is left in any of the sorted lists; their heads move on. 0: none is left. */
static int next_group(const merging *m, int32_t heads[MOST], group *g)
{
    *g = (group){0};
    for (int32_t i = 0; i < m->n; i++) {
        if (heads[i] == m->uses[i].adapter->n_pairs) continue;
        const weft__adapt_pair *p = &m->uses[i].adapter->pairs[heads[i]];
        if (!g->first || strcmp(p->name, g->first->name) < 0) g->first = p;
    }
    for (int32_t i = 0; i < m->n && g->first; i++) {
        if (heads[i] == m->uses[i].adapter->n_pairs) continue;
        const weft__adapt_pair *p = &m->uses[i].adapter->pairs[heads[i]];
        if (!strcmp(p->name, g->first->name)) {
            g->pair[i] = p;
            heads[i]++;
        }
    }
    return g->first != NULL;
}

static weft_status merge_check(const weft__adapt_use *uses, int32_t n, const weft__adapt_mix *mix, weft_error *err)
{
    if (n < 1 || n > MOST) return weft_fail(err, WEFT_ARGUMENT, "%d adapters to merge; it must be 1 to %d", n, MOST);
    if (mix->method == WEFT__ADAPT_SLERP &&
        (n != 2 || !(uses[0].scale >= 0) || !(uses[1].scale >= 0) || !(uses[0].scale + uses[1].scale > 0)))
        return weft_fail(err, WEFT_ARGUMENT, "slerp is between two adapters with weights of 0 or more, not both 0");
    if (!(mix->density > 0 && mix->density <= 1))
        return weft_fail(err, WEFT_ARGUMENT, "the density is %g; it must be above 0 and at most 1", mix->density);
    for (int32_t i = 0; i < n; i++) {
        if (!isfinite(uses[i].scale)) return weft_fail(err, WEFT_ARGUMENT, "adapter %d: its weight must be finite", i);
        if (strcmp(uses[i].adapter->arch, uses[0].adapter->arch))
            return weft_fail(err, WEFT_ARGUMENT, "%s is for architecture '%s', %s for '%s'", uses[0].adapter->label,
                             uses[0].adapter->arch, uses[i].adapter->label, uses[i].adapter->arch);
    }
    return WEFT_OK;
}

weft_status weft__adapt_merge(const weft__adapt_use *uses, int32_t n, const weft__adapt_mix *mix, weft__adapt **out,
                              weft_error *err)
{
    merging m = {.uses = uses, .n = n, .mix = mix, .err = err};
    int32_t heads[MOST] = {0};
    size_t max = 0;
    group g;
    *out = NULL;
    weft_status st = merge_check(uses, n, mix, err);
    if (st) return st;
    for (int32_t i = 0; i < n; i++) max += (size_t)uses[i].adapter->n_pairs;
    m.out = weft__alloc_zero(1, sizeof *m.out);
    if (!m.out || !(m.out->label = weft__strdup("merged")) ||
        !(m.out->pairs = weft__arena_array(&m.out->arena, max, sizeof *m.out->pairs))) {
        weft__adapt_close(&m.out);
        return merge_no_memory(&m);
    }
    weft__rng_seed(&m.rng, mix->seed);
    snprintf(m.out->arch, sizeof m.out->arch, "%s", uses[0].adapter->arch);
    m.out->base_fingerprint = uses[0].adapter->base_fingerprint;
    for (int32_t i = 1; i < n; i++)
        if (uses[i].adapter->base_fingerprint != m.out->base_fingerprint) m.out->base_fingerprint = 0;
    while (!st && next_group(&m, heads, &g)) st = merge_group(&m, &g);
    if (!st) st = weft__adapt_identify(m.out, err);
    if (st) weft__adapt_close(&m.out);
    *out = m.out;
    return st;
}
