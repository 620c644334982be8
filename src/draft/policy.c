// SPDX-License-Identifier: Apache-2.0
/* policy.c: how many tokens of a draft become rows (draft.h). Of all numbers of them that one is taken at which tokens
 * per time, as they are expected, are most: Leviathan et al. 2023 have the expected tokens of a step. Owner: one
 * thread. */
#include "draft/draft.h"

enum {
    SHORT_MOST = 8 /* tokens of a draft that little speaks for */,
    ENOUGH = 12,
    PROBE = 24 /* drafts passed over */
};

static const float DECAY = 0.95f, PRIOR_WEIGHT = 2;
/* Of the first token, before any was seen, by how much speaks for it. */
static const float prior[WEFT__DRAFT_BUCKETS] = {0.3f, 0.45f, 0.6f, 0.8f};

/* ---- costs ---- */

/* Rows that read the same weights: seen on two cores of Zen 4, Q4_0 (bench/history). */
static double shared_rows(int32_t n)
{
    return n <= 4 ? 1 + 0.047 * (n - 1) : 1.14 + 0.138 * (n - 4);
}

void weft__draft_cost_begin(weft__draft_cost *c, int32_t n_experts, int32_t n_used, double expert_part)
{
    const double miss = n_experts > 0 ? 1 - (double)n_used / n_experts : 1;
    double all_miss = 1;
    *c = (weft__draft_cost){.ns = {0}};
    for (int32_t n = 1; n <= WEFT__DRAFT_ROWS; n++) {
        all_miss *= miss;
        const double distinct = n_experts > 0 ? (1 - all_miss) / (1 - miss) : shared_rows(n);
        c->shape[n] = (1 - expert_part) * shared_rows(n) + expert_part * distinct;
    }
}

/* Fast down, and slowly up: what disturbed a step does not come again. */
void weft__draft_cost_saw(weft__draft_cost *c, int32_t n_rows, uint64_t ns)
{
    if (n_rows < 1 || n_rows > WEFT__DRAFT_ROWS || !ns) return;
    double *had = &c->ns[n_rows], now = (double)ns;
    if (*had <= 0) *had = now;
    else if (now < *had) *had += 0.5 * (now - *had);
    else *had += 0.05 * ((now < 2 * *had ? now : 2 * *had) - *had);
}

double weft__draft_cost_of(const weft__draft_cost *c, int32_t n_rows)
{
    for (int32_t away = 0; away < WEFT__DRAFT_ROWS; away++)
        for (int side = -1; side <= 1; side += 2) {
            const int32_t n = n_rows + side * away;
            if (n >= 1 && n <= WEFT__DRAFT_ROWS && c->ns[n] > 0) return c->ns[n] * c->shape[n_rows] / c->shape[n];
        }
    return c->shape[n_rows];
}

/* ---- trust ---- */

static int bucket_of(int32_t matched)
{
    return matched < 3 ? 0 : matched < 6 ? 1 : matched < ENOUGH ? 2 : 3;
}

static int place_of(int32_t k)
{
    return k < 2 ? k : k < 5 ? 2 : 3;
}

void weft__draft_trust_begin(weft__draft_trust *t)
{
    t->n_passed = 0;
    for (int kind = 0; kind < WEFT__DRAFT_KINDS; kind++)
        for (int b = 0; b < WEFT__DRAFT_BUCKETS; b++)
            for (int p = 0; p < WEFT__DRAFT_PLACES; p++) {
                t->seen[kind][b][p] = PRIOR_WEIGHT;
                t->right[kind][b][p] = PRIOR_WEIGHT * prior[b];
            }
}

int32_t weft__draft_choose(const weft__draft_cost *c, weft__draft_trust *t, const weft__draft *d, int32_t n_rows)
{
    const int b = bucket_of(d->matched);
    int32_t most = d->n, best = 0;
    if (d->matched < ENOUGH && most > SHORT_MOST) most = SHORT_MOST;
    if (most > WEFT__DRAFT_ROWS - n_rows) most = WEFT__DRAFT_ROWS - n_rows;
    if (most < 1) return 0;
    double tokens = n_rows, right = 1, rate = n_rows / weft__draft_cost_of(c, n_rows);
    for (int32_t k = 0; k < most; k++) {
        const int p = place_of(k);
        right *= (double)(t->right[d->kind][b][p] / t->seen[d->kind][b][p] * d->p[k]);
        tokens += right;
        const double now = tokens / weft__draft_cost_of(c, n_rows + k + 1);
        if (now > rate) {
            rate = now;
            best = k + 1;
        }
    }
    if (!best && ++t->n_passed < PROBE) return 0;
    t->n_passed = 0;
    return best ? best : 1;
}

void weft__draft_learn(weft__draft_trust *t, const weft__draft *d, int32_t n_tried, int32_t n_right)
{
    const int b = bucket_of(d->matched);
    for (int32_t k = 0; k < n_tried && k <= n_right; k++) {
        float *right = &t->right[d->kind][b][place_of(k)], *seen = &t->seen[d->kind][b][place_of(k)];
        *right = *right * DECAY + (k < n_right ? 1.0f : 0.0f);
        *seen = *seen * DECAY + 1;
    }
}
