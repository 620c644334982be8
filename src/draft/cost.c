// SPDX-License-Identifier: Apache-2.0
/* cost.c: what steps of so many rows cost (draft.h): as it was measured when the model came, corrected by the steps
 * that are seen. Owner: one thread. */
#include <math.h>

#include "draft/draft.h"

/* ---- measured ---- */

enum { POINTS = 5, ROUNDS = 12, LEAST_ROUNDS = 3 };
static const int32_t point[POINTS] = {1, 2, 4, 8, 16};
/* After which no other part, no other round, and nothing at all is begun. */
static const uint64_t TOUCH_NS = 50000000, BUDGET_NS = 100000000, MOST_NS = 500000000;
static const double ALIKE = 1.15; /* times that agree */

/* A row never costs less than this part of a step of one: where it seemed to cost nothing, any guess would be worth
 * it. */
static const double LEAST_ROW = 0.01;

/* From points [0, n) on to all numbers of rows: more never cost less, nor more than as many steps of one row. */
static void fill_shape(const double *ns, int n, double *shape)
{
    double at[POINTS];
    for (int k = 0; k < n; k++) at[k] = ns[k] / ns[0];
    for (int32_t rows = 1, k = 1; rows <= WEFT__DRAFT_ROWS; rows++) {
        while (k < n - 1 && rows > point[k]) k++;
        const double slope = (at[k] - at[k - 1]) / (point[k] - point[k - 1]);
        double x = at[k - 1] + slope * (rows - point[k - 1]);
        if (rows == 1 || x > rows) x = rows;
        if (rows > 1 && x < shape[rows - 1] + LEAST_ROW) x = shape[rows - 1] + LEAST_ROW;
        shape[rows] = x;
    }
}

/* Of a part; 0: it failed, or so much time was spent that nothing more is asked. */
static uint64_t spend(const weft__draft_trial *t, int32_t part, int32_t n_rows, uint64_t *spent)
{
    const uint64_t ns = *spent < MOST_NS ? t->time(t->arg, part, n_rows) : 0;
    *spent += ns;
    return ns;
}

/* Times of a byte in one round, of each point, by the parts from *next on; 0: one has none. The same number of rows is
 * not timed by the same part in two rounds after one another. */
static int time_round(const weft__draft_trial *t, int n_points, int32_t n_parts, int32_t *next,
                      double (*sample)[ROUNDS], int round, uint64_t *spent)
{
    *next += n_points % n_parts == 0 || n_parts % n_points == 0;
    for (int k = 0; k < n_points; k++) {
        const int32_t part = (*next)++ % n_parts;
        const uint64_t ns = spend(t, part, point[k], spent);
        if (!ns) return 0;
        sample[k][round] = (double)ns / t->bytes[part];
    }
    return 1;
}

/* How many parts there are to time; 0: one failed. What begins with a first step of most rows is not timed. */
static int32_t touch(const weft__draft_trial *t, int32_t n_rows, uint64_t *spent)
{
    int32_t n = 0;
    if (!spend(t, 0, n_rows, spent)) return 0;
    for (; n < t->n_parts && (!n || *spent < TOUCH_NS); n++)
        if (!spend(t, n, 1, spent)) return 0;
    return n;
}

/* Others who take the processor for a while add to a time, and seldom the same; what a cache still had takes from it:
 * the least counts that two others are like. It is the one in the middle of these; 0: there are none. */
static double agreed(const double *sample, int n)
{
    double sorted[ROUNDS];
    for (int i = 0; i < n; i++) {
        int k = i;
        for (; k > 0 && sorted[k - 1] > sample[i]; k--) sorted[k] = sorted[k - 1];
        sorted[k] = sample[i];
    }
    for (int i = 0; i + 2 < n; i++)
        if (sorted[i + 2] <= ALIKE * sorted[i]) return sorted[i + 1];
    return 0;
}

static int all_agreed(double (*sample)[ROUNDS], int n_points, int n, double *at)
{
    for (int k = 0; k < n_points; k++)
        if (!(at[k] = agreed(sample[k], n))) return 0;
    return 1;
}

int weft__draft_measure(const weft__draft_trial *t, double shape[WEFT__DRAFT_ROWS + 1])
{
    double sample[POINTS][ROUNDS], at[POINTS];
    uint64_t spent = 0;
    int n_points = 0, known = 0;
    int32_t part = 0;
    while (n_points < POINTS && point[n_points] <= t->most_rows) n_points++;
    const int32_t n_parts = n_points < 2 ? 0 : touch(t, point[n_points - 1], &spent);
    if (!n_parts) return 0;
    for (int n = 0; !known && n < ROUNDS && (n < LEAST_ROUNDS || spent < BUDGET_NS); n++) {
        if (!time_round(t, n_points, n_parts, &part, sample, n, &spent)) return 0;
        known = n + 1 >= LEAST_ROUNDS && all_agreed(sample, n_points, n + 1, at);
    }
    if (known) fill_shape(at, n_points, shape);
    return known;
}

/* ---- assumed and seen ---- */

/* Where nothing was measured. */
static double assumed_rows(int32_t n)
{
    return n <= 4 ? 1 + 0.05 * (n - 1) : 1.15 + 0.14 * (n - 4);
}

void weft__draft_cost_begin(weft__draft_cost *c, const double *measured, int32_t n_experts, int32_t n_used,
                            double expert_part)
{
    const double miss = n_experts > 0 ? 1 - (double)n_used / n_experts : 1;
    double all_miss = 1;
    *c = (weft__draft_cost){.ns = {0}};
    for (int32_t n = 1; n <= WEFT__DRAFT_ROWS; n++) {
        const double shared = measured ? measured[n] : assumed_rows(n);
        all_miss *= miss;
        const double distinct = n_experts > 0 ? (1 - all_miss) / (1 - miss) : shared;
        c->shape[n] = (1 - expert_part) * shared + expert_part * distinct;
    }
}

/* Fast down, and slowly up: what disturbed a step does not come again. Fewer rows never take longer than more: when a
 * machine has become faster while steps had many rows, or was slow when they had one, rows would seem to cost nothing,
 * and any guess worth it. Half of what the shape says they cost is the least. */
void weft__draft_cost_saw(weft__draft_cost *c, int32_t n_rows, uint64_t ns)
{
    if (n_rows < 1 || n_rows > WEFT__DRAFT_ROWS || !ns) return;
    double *had = &c->ns[n_rows], now = (double)ns;
    if (*had <= 0) *had = now;
    else if (now < *had) *had += 0.5 * (now - *had);
    else *had += 0.05 * ((now < 2 * *had ? now : 2 * *had) - *had);
    for (int32_t n = 1; n < n_rows; n++) {
        const double most = *had / (1 + 0.5 * (c->shape[n_rows] / c->shape[n] - 1));
        if (c->ns[n] > most) c->ns[n] = most;
    }
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

static int has_seen(const weft__draft_cost *c)
{
    for (int32_t n = 1; n <= WEFT__DRAFT_ROWS; n++)
        if (c->ns[n] > 0) return 1;
    return 0;
}

double weft__draft_token_cost(const weft__draft_cost *c, const weft__draft_cost *small, double part, int32_t n)
{
    if (n > WEFT__DRAFT_ROWS) n = WEFT__DRAFT_ROWS;
    if (has_seen(c) && has_seen(small)) return weft__draft_cost_of(small, n) / n;
    return part * weft__draft_cost_of(c, 1) * small->shape[n] / n;
}
