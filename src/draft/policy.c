// SPDX-License-Identifier: Apache-2.0
/* policy.c: how many tokens of a draft become rows (draft.h), by what rows cost (cost.c). Of all numbers of them that
 * one is taken at which tokens per time, as they are expected, are most: Leviathan et al. 2023 have the expected tokens
 * of a step. Owner: one thread. */
#include "draft/draft.h"

enum {
    SHORT_MOST = 8, /* tokens of a draft that little speaks for, and of a model's */
    ENOUGH = 12,
    PROBE = 24,        /* drafts passed over */
    PROBE_MOST = 4096, /* steps without a draft model */
    PROBE_FACTOR = 4   /* longer each time that it was wrong: each time it reads all that it has missed */
};

static const float DECAY = 0.95f, PRIOR_WEIGHT = 2;
/* Of the first token, before any was seen, by how much speaks for it. */
static const float prior[WEFT__DRAFT_BUCKETS] = {0.3f, 0.45f, 0.6f, 0.8f};
/* The same of a draft model, by how sure it is. */
static const float prior_sure[WEFT__DRAFT_BUCKETS] = {0.3f, 0.5f, 0.7f, 0.9f};

/* What is forced and has nothing beside it is certain. */
static float prior_of(int kind, int bucket)
{
    if (kind == WEFT__DRAFT_FORCED && bucket == WEFT__DRAFT_BUCKETS - 1) return 1;
    return (kind == WEFT__DRAFT_MODEL ? prior_sure : prior)[bucket];
}

/* ---- trust ---- */

static int bucket_of(int32_t matched)
{
    return matched < 3 ? 0 : matched < 6 ? 1 : matched < ENOUGH ? 2 : 3;
}

static int bucket_of_sure(float p)
{
    return p < 0.4f ? 0 : p < 0.7f ? 1 : p < 0.9f ? 2 : 3;
}

static int trust_place_of(int32_t k)
{
    return k < 2 ? k : k < 5 ? 2 : 3;
}

void weft__draft_trust_begin(weft__draft_trust *t)
{
    *t = (weft__draft_trust){.n_wait = PROBE};
    for (int kind = 0; kind < WEFT__DRAFT_KINDS; kind++)
        for (int b = 0; b < WEFT__DRAFT_BUCKETS; b++)
            for (int p = 0; p < WEFT__DRAFT_PLACES; p++) {
                t->seen[kind][b][p] = PRIOR_WEIGHT;
                t->right[kind][b][p] = PRIOR_WEIGHT * prior_of(kind, b);
            }
    for (int b = 0; b < WEFT__DRAFT_BUCKETS; b++) t->sure[b] = 1;
}

static double part_right(const weft__draft_trust *t, int kind, int bucket, int32_t k)
{
    return (double)(t->right[kind][bucket][trust_place_of(k)] / t->seen[kind][bucket][trust_place_of(k)]);
}

/* Of the draft's token k, where those before it are right. How sure a model is, is what its tokens are counted by; of
 * the other drafters p is a share of what has followed. */
static double chance(const weft__draft_trust *t, const weft__draft *d, int32_t k)
{
    if (d->kind == WEFT__DRAFT_MODEL) return part_right(t, d->kind, bucket_of_sure(d->p[k]), k);
    return part_right(t, d->kind, bucket_of(d->matched), k) * (double)d->p[k];
}

/* Of a token k that a draft model has not guessed yet. */
static double chance_unseen(const weft__draft_trust *t, int32_t k)
{
    double sum = 0, all = 0;
    for (int b = 0; b < WEFT__DRAFT_BUCKETS; b++) {
        sum += (double)t->sure[b] * part_right(t, WEFT__DRAFT_MODEL, b, k);
        all += (double)t->sure[b];
    }
    return sum / all;
}

static int32_t most_of(const weft__draft *d, int32_t most, int32_t n_rows)
{
    const int is_short = d->kind == WEFT__DRAFT_MODEL || d->matched < ENOUGH;
    if (is_short && most > SHORT_MOST) most = SHORT_MOST;
    return most > WEFT__DRAFT_ROWS - n_rows ? WEFT__DRAFT_ROWS - n_rows : most;
}

/* The number of tokens, up to `most`, at which tokens per time are most, and more than *rate, which becomes that; 0:
 * there is none. Those beyond d->n are a model's, and cost token_cost each. */
static int32_t best_of(const weft__draft_cost *c, const weft__draft_trust *t, const weft__draft *d, int32_t n_rows,
                       double token_cost, int32_t most, double *rate)
{
    double tokens = n_rows, right = 1;
    int32_t best = 0;
    for (int32_t k = 0; k < most; k++) {
        const int32_t n_more = k < d->n ? 0 : k + 1 - d->n;
        right *= n_more ? chance_unseen(t, k) : chance(t, d, k);
        tokens += right;
        const double now = tokens / (weft__draft_cost_of(c, n_rows + k + 1) + n_more * token_cost);
        if (now > *rate) {
            *rate = now;
            best = k + 1;
        }
    }
    return best;
}

double weft__draft_rate(const weft__draft_cost *c, const weft__draft_trust *t, const weft__draft *d, int32_t n_rows)
{
    double rate = n_rows / weft__draft_cost_of(c, n_rows);
    best_of(c, t, d, n_rows, 0, most_of(d, d->n, n_rows), &rate);
    return rate;
}

void weft__draft_take_better(const weft__draft_cost *c, const weft__draft_trust *t, const weft__draft *other,
                             int32_t n_rows, weft__draft *d)
{
    if (other->n && (!d->n || weft__draft_rate(c, t, other, n_rows) > weft__draft_rate(c, t, d, n_rows))) *d = *other;
}

int32_t weft__draft_choose(const weft__draft_cost *c, weft__draft_trust *t, const weft__draft *d, int32_t n_rows)
{
    const int32_t most = most_of(d, d->n, n_rows);
    double rate = n_rows / weft__draft_cost_of(c, n_rows);
    if (most < 1) return 0;
    const int32_t best = best_of(c, t, d, n_rows, 0, most, &rate);
    if (d->kind == WEFT__DRAFT_MODEL) return best ? best : t->is_probe;
    if (!best && ++t->n_passed < PROBE) return 0;
    t->n_passed = 0;
    return best ? best : 1;
}

/* Would it pay, were each of its tokens right? */
static int could_pay(const weft__draft_cost *c, int32_t n_rows, double token_cost, int32_t most, double rate)
{
    for (int32_t k = 1; k <= most; k++)
        if ((n_rows + k) / (weft__draft_cost_of(c, n_rows + k) + k * token_cost) > rate) return 1;
    return 0;
}

int32_t weft__draft_reach(const weft__draft_cost *c, weft__draft_trust *t, const weft__draft *d, int32_t n_rows,
                          double token_cost, double other, int32_t most)
{
    const double alone = n_rows / weft__draft_cost_of(c, n_rows);
    double rate = other > alone ? other : alone;
    most = most_of(d, most, n_rows);
    for (int b = 0; b < WEFT__DRAFT_BUCKETS && d->n; b++)
        t->sure[b] = t->sure[b] * DECAY + (b == bucket_of_sure(d->p[d->n - 1]));
    const int32_t best = most < 1 ? 0 : best_of(c, t, d, n_rows, token_cost, most, &rate);
    if (d->n) return best;
    t->is_probe = 0;
    if (best || most < 1 || other > alone) return best;
    /* Times change little: what can never pay is asked as seldom as may be. */
    const int32_t wait = could_pay(c, n_rows, token_cost, most, rate) ? t->n_wait : PROBE_MOST;
    return t->is_probe = ++t->n_waited >= wait; /* and again, until it has guessed */
}

double weft__draft_expect(const weft__draft_cost *c, double part)
{
    weft__draft_trust t;
    const weft__draft d = {.kind = WEFT__DRAFT_MODEL};
    const double alone = 1 / weft__draft_cost_of(c, 1);
    double rate = 0;
    weft__draft_trust_begin(&t);
    best_of(c, &t, &d, 1, part * weft__draft_cost_of(c, 1), SHORT_MOST, &rate);
    return rate / alone;
}

void weft__draft_learn(weft__draft_trust *t, const weft__draft *d, int32_t n_tried, int32_t n_right)
{
    const int is_model = d->kind == WEFT__DRAFT_MODEL;
    for (int32_t k = 0; k < n_tried && k <= n_right; k++) {
        const int b = is_model ? bucket_of_sure(d->p[k]) : bucket_of(d->matched);
        float *right = &t->right[d->kind][b][trust_place_of(k)], *seen = &t->seen[d->kind][b][trust_place_of(k)];
        *right = *right * DECAY + (k < n_right ? 1.0f : 0.0f);
        *seen = *seen * DECAY + 1;
    }
    if (!is_model) return;
    if (n_right > 0) t->n_wait = 1; /* soon again */
    else if (t->is_probe) t->n_wait = t->n_wait < PROBE_MOST ? PROBE_FACTOR * t->n_wait : PROBE_MOST;
    t->n_waited = 0;
}
