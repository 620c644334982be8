// SPDX-License-Identifier: Apache-2.0
/* route.c: choices between arms, and what they learn from (route.h). One thread per router. */
#include "route/route.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/random.h"

enum { D = WEFT__ROUTE_DIMS, PACKED = D * (D + 1) / 2 };

/* Row i of a packed lower triangle. */
static inline size_t row_of(int i)
{
    return (size_t)i * (size_t)(i + 1) / 2;
}

typedef struct route_arm {
    double a[PACKED], b[D];            /* sum x x', sum r x; without the ridge, which no forgetting touches */
    double wins, losses;               /* of BETA */
    double factor[PACKED], weights[D]; /* of A: Cholesky's L, and A^-1 b; as of the last reward, unless is_stale */
    int is_stale;
} route_arm;

struct weft__route {
    weft__route_params p;
    uint64_t n_choices, n_rewards, n_changes;
    /* Page's test: the mean of squared errors since the last change, and how far its sum has risen above its least */
    double n_errors, mean_error, rise, least;
    route_arm *arms; /* [n_arms]; NULL before the first reward */
};

static const char *const methods[] = {"linucb", "thompson", "beta", "uniform", "first"};

int weft__route_method_of(const char *name, weft__route_method *out)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (!strcmp(methods[i], name)) return *out = (weft__route_method)i, 1;
    return 0;
}

const char *weft__route_method_name(weft__route_method method)
{
    return methods[method];
}

/* ---- life ---- */

void weft__route_params_default(weft__route_params *p)
{
    *p = (weft__route_params){
        .method = WEFT__ROUTE_LINUCB, .n_arms = 1, .alpha = 0.3, .ridge = 0.5, .explore = 0.01, .change = 6};
}

static weft_status route_check(const weft__route_params *p, weft_error *err)
{
    const struct {
        const char *name;
        double value, least, most;
    } all[] = {{"n_arms", p->n_arms, 1, WEFT__ROUTE_ARMS},
               {"cost_weight", p->cost_weight, 0, 1e6},
               {"alpha", p->alpha, 0, 1e6},
               {"ridge", p->ridge, 1e-6, 1e6},
               {"explore", p->explore, 0, 1},
               {"change", p->change, 0, 1e6},
               {"method", p->method, 0, WEFT__ROUTE_FIRST}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!(all[i].value >= all[i].least && all[i].value <= all[i].most))
            return weft_fail(err, WEFT_ARGUMENT, "a router's %s must be from %g to %g", all[i].name, all[i].least,
                             all[i].most);
    for (int i = 0; i < p->n_arms; i++)
        if (!(p->cost[i] >= 0 && p->cost[i] <= 1))
            return weft_fail(err, WEFT_ARGUMENT, "a cost of a router's arm must be from 0 to 1");
    return WEFT_OK;
}

weft_status weft__route_new(const weft__route_params *p, weft__route **out, weft_error *err)
{
    *out = NULL;
    const weft_status st = route_check(p, err);
    if (st) return st;
    weft__route *r = weft__alloc_zero(1, sizeof *r);
    if (!r) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a router");
    r->p = *p;
    *out = r;
    return WEFT_OK;
}

void weft__route_free(weft__route **r)
{
    if (!*r) return;
    weft__free((*r)->arms);
    weft__free(*r);
    *r = NULL;
}

int weft__route_is_trained(const weft__route *r)
{
    return r->arms != NULL;
}

uint64_t weft__route_changes(const weft__route *r)
{
    return r->n_changes;
}

uint64_t weft__route_mark(const weft__route *r)
{
    weft__hash_state h;
    weft__hash_begin(&h);
    const uint64_t counts[] = {r->n_choices, r->n_rewards, r->n_changes, r->p.seed, (uint64_t)r->p.method};
    const double test[] = {r->n_errors, r->mean_error, r->rise, r->least, r->p.alpha, r->p.ridge, r->p.explore};
    weft__hash_add(&h, counts, sizeof counts);
    weft__hash_add(&h, test, sizeof test);
    for (int i = 0; r->arms && i < r->p.n_arms; i++) {
        const route_arm *arm = &r->arms[i];
        const double beta[] = {arm->wins, arm->losses, r->p.cost[i]};
        weft__hash_add(&h, arm->a, sizeof arm->a);
        weft__hash_add(&h, arm->b, sizeof arm->b);
        weft__hash_add(&h, beta, sizeof beta);
    }
    return weft__hash_end(&h);
}

/* ---- the regression ---- */

/* A = L L', then L z = b and L' w = z. A is positive definite by its ridge. */
static void refresh(route_arm *arm, double ridge)
{
    for (int i = 0; i < D; i++)
        for (int j = 0; j <= i; j++) {
            const double *li = arm->factor + row_of(i), *lj = arm->factor + row_of(j);
            double sum = arm->a[row_of(i) + (size_t)j] + (i == j ? ridge : 0);
            for (int k = 0; k < j; k++) sum -= li[k] * lj[k];
            arm->factor[row_of(i) + (size_t)j] = i == j ? sqrt(sum > ridge ? sum : ridge) : sum / lj[j];
        }
    for (int i = 0; i < D; i++) {
        const double *li = arm->factor + row_of(i);
        double sum = arm->b[i];
        for (int k = 0; k < i; k++) sum -= li[k] * arm->weights[k];
        arm->weights[i] = sum / li[i];
    }
    for (int i = D - 1; i >= 0; i--) {
        double sum = arm->weights[i];
        for (int k = i + 1; k < D; k++) sum -= arm->factor[row_of(k) + (size_t)i] * arm->weights[k];
        arm->weights[i] = sum / arm->factor[row_of(i) + (size_t)i];
    }
    arm->is_stale = 0;
}

static double mean_of(const route_arm *arm, const float *x)
{
    double sum = 0;
    for (int i = 0; i < D; i++) sum += arm->weights[i] * x[i];
    return sum;
}

/* sqrt(x'A^-1 x) = |L^-1 x|. */
static double width_of(const route_arm *arm, const float *x)
{
    double z[D], square = 0;
    for (int i = 0; i < D; i++) {
        const double *li = arm->factor + row_of(i);
        double sum = x[i];
        for (int k = 0; k < i; k++) sum -= li[k] * z[k];
        z[i] = sum / li[i];
        square += z[i] * z[i];
    }
    return sqrt(square);
}

/* ---- choosing ---- */

/* Marsaglia and Tsang 2000, for shapes from 1. */
static double draw_gamma(weft__rng *rng, double shape)
{
    const double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        const double x = weft__rng_normal(rng), t = 1 + c * x, v = t * t * t;
        if (v <= 0) continue;
        if (log(1 - weft__rng_double(rng)) < 0.5 * x * x + d - d * v + d * log(v)) return d * v;
    }
}

static double draw_beta(weft__rng *rng, const route_arm *arm)
{
    const double a = draw_gamma(rng, 1 + arm->wins), b = draw_gamma(rng, 1 + arm->losses);
    return a / (a + b);
}

/* The allowed arm with the most; of equals one of them, each as likely. share[a] gains what its chance was. */
static int best_of(const weft__route *r, const double *score, uint32_t allowed, weft__rng *rng, double *share,
                   double weight)
{
    double most = -INFINITY;
    int n = 0, best = 0;
    for (int a = 0; a < r->p.n_arms; a++)
        if (allowed >> a & 1 && score[a] > most) most = score[a];
    for (int a = 0; a < r->p.n_arms; a++) n += allowed >> a & 1 && score[a] == most;
    uint64_t at = n > 1 ? weft__rng_below(rng, (uint64_t)n) : 0;
    for (int a = 0; a < r->p.n_arms; a++) {
        if (!(allowed >> a & 1 && score[a] == most)) continue;
        share[a] += weight / n;
        if (!at--) best = a;
    }
    return best;
}

/* What an arm is worth by its rewards; LINUCB's is the same each time. */
static void score_all(const weft__route *r, const double *mean, const double *width, weft__rng *rng, double *score)
{
    for (int a = 0; a < r->p.n_arms; a++) {
        double worth = 0;
        if (r->p.method == WEFT__ROUTE_LINUCB) worth = mean[a] + r->p.alpha * width[a];
        if (r->p.method == WEFT__ROUTE_THOMPSON) worth = mean[a] + r->p.alpha * width[a] * weft__rng_normal(rng);
        if (r->p.method == WEFT__ROUTE_BETA) worth = draw_beta(rng, &r->arms[a]);
        score[a] = worth - r->p.cost_weight * r->p.cost[a];
    }
}

/* The arm by its method, and each one's chance. Of many draws one counts, and each is as likely to be it: so the
 * shares among the draws are the chances. */
static int choose_learned(const weft__route *r, const float *x, uint32_t allowed, weft__rng *rng, double *share)
{
    const int draws = r->p.method == WEFT__ROUTE_LINUCB ? 1 : WEFT__ROUTE_DRAWS;
    double mean[WEFT__ROUTE_ARMS], width[WEFT__ROUTE_ARMS], score[WEFT__ROUTE_ARMS];
    int chosen = 0;
    for (int a = 0; a < r->p.n_arms; a++) {
        if (r->arms[a].is_stale) refresh(&r->arms[a], r->p.ridge);
        mean[a] = mean_of(&r->arms[a], x);
        width[a] = width_of(&r->arms[a], x);
    }
    const uint64_t counts = weft__rng_below(rng, (uint64_t)draws);
    for (int i = 0; i < draws; i++) {
        score_all(r, mean, width, rng, score);
        const int best = best_of(r, score, allowed, rng, share, 1.0 / draws);
        if ((uint64_t)i == counts) chosen = best;
    }
    return chosen;
}

/* One of them, each as likely. */
static int any_of(uint32_t allowed, weft__rng *rng)
{
    uint64_t at = weft__rng_below(rng, (uint64_t)__builtin_popcount(allowed));
    while (at--) allowed &= allowed - 1;
    return __builtin_ctz(allowed);
}

void weft__route_choose(weft__route *r, const float *x, uint32_t allowed, weft__route_choice *out)
{
    double share[WEFT__ROUTE_ARMS] = {0};
    weft__rng rng;
    const uint32_t there = allowed & (uint32_t)((1u << r->p.n_arms) - 1);
    const uint32_t may = there ? there : 1;
    const uint64_t drawn_from[] = {r->p.seed, r->n_choices};
    *out = (weft__route_choice){.n = r->n_choices++, .arm = __builtin_ctz(may), .propensity = 1};
    weft__rng_seed(&rng, weft__hash(drawn_from, sizeof drawn_from));
    const double even = 1.0 / __builtin_popcount(may);
    if (r->p.method == WEFT__ROUTE_UNIFORM) {
        out->arm = any_of(may, &rng);
        out->propensity = even;
        return;
    }
    if (!r->arms || r->p.method == WEFT__ROUTE_FIRST) return;
    out->arm = choose_learned(r, x, may, &rng, share);
    if (weft__rng_double(&rng) < r->p.explore) out->arm = any_of(may, &rng);
    out->propensity = (1 - r->p.explore) * share[out->arm] + r->p.explore * even;
}

/* ---- learning ---- */

/* Page 1954, of squared errors: they have become larger than they were for long. */
static int has_changed(weft__route *r, double error)
{
    const double slack = 0.05;
    r->n_errors++;
    r->mean_error += (error - r->mean_error) / r->n_errors;
    r->rise += error - r->mean_error - slack;
    if (r->rise < r->least) r->least = r->rise;
    return r->p.change > 0 && r->rise - r->least > r->p.change;
}

static void weigh_less(weft__route *r)
{
    const double keep = 0.05;
    for (int a = 0; a < r->p.n_arms; a++) {
        route_arm *arm = &r->arms[a];
        for (size_t i = 0; i < PACKED; i++) arm->a[i] *= keep;
        for (int i = 0; i < D; i++) arm->b[i] *= keep;
        arm->wins *= keep;
        arm->losses *= keep;
        arm->is_stale = 1;
    }
    r->n_errors = r->mean_error = r->rise = r->least = 0;
    r->n_changes++;
}

weft_status weft__route_reward(weft__route *r, const float *x, int arm, double reward, weft_error *err)
{
    if (arm < 0 || arm >= r->p.n_arms || isnan(reward))
        return weft_fail(err, WEFT_ARGUMENT, "a reward must be a number, and of one of %d arms", r->p.n_arms);
    if (!r->arms) {
        if (!(r->arms = weft__alloc_zero((size_t)r->p.n_arms, sizeof *r->arms)))
            return weft_fail(err, WEFT_NO_MEMORY, "no memory for a router's arms");
        for (int a = 0; a < r->p.n_arms; a++) r->arms[a].is_stale = 1;
    }
    route_arm *to = &r->arms[arm];
    const double value = reward < 0 ? 0 : reward > 1 ? 1 : reward;
    if (to->is_stale) refresh(to, r->p.ridge);
    const double error = value - mean_of(to, x);
    if (has_changed(r, error * error)) weigh_less(r);
    for (int i = 0; i < D; i++) {
        for (int j = 0; j <= i; j++) to->a[row_of(i) + (size_t)j] += (double)x[i] * x[j];
        to->b[i] += value * x[i];
    }
    to->wins += value;
    to->losses += 1 - value;
    to->is_stale = 1;
    r->n_rewards++;
    return WEFT_OK;
}
