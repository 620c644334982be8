// SPDX-License-Identifier: Apache-2.0
/* route.c: a router beats the best single arm by 300 questions on the shipped model's answers, its regret flattens, and
 * it recovers where the rules change; choices repeat, propensities are true, and untrained it is the first arm. */
#include "unit/fixture.h"

#include <math.h>

#include "route_replay.h"

enum { SEEDS = 20, ROUNDS = 2000 };

static replay_set set;
static replay_result results[SEEDS];

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, by_value);
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

static double regret_at(int seeds, int t)
{
    double values[SEEDS];
    for (int s = 0; s < seeds; s++) values[s] = results[s].regret[t];
    return median(values, seeds);
}

static int runs(weft__route_method method, int rounds, int changes)
{
    const int seeds = (int)CLAIMS_REPEATED(SEEDS, 5, 2);
    weft__route_params p;
    weft__route_params_default(&p);
    p.method = method;
    for (int s = 0; s < seeds; s++) assert_true(replay_run(&set, &p, (uint64_t)s + 1, rounds, changes, &results[s]));
    return seeds;
}

/* Of every seed below the best single arm at 300; twice as many questions cost far less than twice as much; and 85 of
 * 100 points are earned in the end. */
static void beats_the_best_arm(void **state)
{
    const weft__route_method methods[] = {WEFT__ROUTE_LINUCB, WEFT__ROUTE_THOMPSON};
    (void)state;
    for (int m = 0; m < 2; m++) {
        const int seeds = runs(methods[m], ROUNDS, 0);
        double last = 0, best = 0;
        for (int s = 0; s < seeds; s++) {
            assert_true(results[s].regret[300] < results[s].single[300]);
            assert_int_equal(results[s].n_changes, 0);
            last += results[s].last_earned;
            best += results[s].last_best;
        }
        assert_true(regret_at(seeds, 2000) < 1.75 * regret_at(seeds, 1000));
        assert_true(regret_at(seeds, 1000) < 5 * regret_at(seeds, 100));
        assert_true(last > 0.85 * best);
    }
}

/* The baselines are baselines: what knows no question earns no more than the best arm does. */
static void baselines_do_not(void **state)
{
    (void)state;
    const int seeds = runs(WEFT__ROUTE_LINUCB, 600, 0);
    const double learned = regret_at(seeds, 600);
    for (int m = WEFT__ROUTE_BETA; m <= WEFT__ROUTE_FIRST; m++) {
        runs((weft__route_method)m, 600, 0);
        assert_true(regret_at(seeds, 600) > 2 * learned);
    }
}

/* After other styles are wanted from the middle on, the end is as good as it was; without the test of changes, not. */
static void recovers_from_a_change(void **state)
{
    weft__route_params p;
    double last[2] = {0}, best[2] = {0};
    (void)state;
    const int seeds = runs(WEFT__ROUTE_LINUCB, ROUNDS, 1);
    weft__route_params_default(&p);
    p.change = 0;
    for (int s = 0; s < seeds; s++) {
        replay_result blind;
        assert_true(results[s].n_changes >= 1 && results[s].n_changes <= 3);
        assert_true(results[s].regret[ROUNDS] < results[s].single[ROUNDS]);
        assert_true(replay_run(&set, &p, (uint64_t)s + 1, ROUNDS, 1, &blind));
        last[0] += results[s].last_earned, best[0] += results[s].last_best;
        last[1] += blind.last_earned, best[1] += blind.last_best;
    }
    assert_true(last[0] > 0.85 * best[0]);
    assert_true(last[1] < 0.8 * best[1]);
}

static void replays(void **state)
{
    static replay_result again;
    weft__route_params p;
    (void)state;
    for (int m = 0; m <= WEFT__ROUTE_FIRST; m++) {
        weft__route_params_default(&p);
        p.method = (weft__route_method)m;
        assert_true(replay_run(&set, &p, 7, 200, 0, &results[0]));
        assert_true(replay_run(&set, &p, 7, 200, 0, &again));
        assert_memory_equal(&again, &results[0], sizeof again);
        assert_true(replay_run(&set, &p, 8, 200, 0, &again));
        assert_true(again.mark != results[0].mark);
    }
}

/* What one arm would have earned, from choices of others weighed by propensities, is what it earns. */
static void propensities_are_true(void **state)
{
    weft__route_params p;
    (void)state;
    for (int m = 0; m <= WEFT__ROUTE_UNIFORM; m++) {
        const int seeds = (int)CLAIMS_REPEATED(SEEDS, 8, 2);
        double weighed = 0, worth = 0;
        weft__route_params_default(&p);
        p.method = (weft__route_method)m;
        p.explore = 0.2;
        p.alpha = 1;
        for (int s = 0; s < seeds; s++) {
            assert_true(replay_run(&set, &p, 100 + (uint64_t)s, 1000, 0, &results[0]));
            weighed += results[0].weighed / seeds;
            worth += results[0].worth / seeds;
        }
        assert_true(fabs(weighed - worth) < CLAIMS_REPEATED(0.04, 0.08, 0.2));
    }
}

/* A propensity is the share in which an arm is chosen, all else alike. */
static void propensity_is_a_share(void **state)
{
    enum { TRIES = 3000 };
    weft__route_params p;
    (void)state;
    for (int m = 0; m < 4; m++) {
        double share[3] = {0}, said[3] = {0};
        weft__route *r;
        weft__route_params_default(&p);
        p.method = (weft__route_method)m;
        p.n_arms = 3;
        p.explore = 0.3;
        p.alpha = 1;
        assert_int_equal(weft__route_new(&p, &r, NULL), WEFT_OK);
        for (int i = 0; i < 6; i++) weft__route_reward(r, set.items[i].x, i % 3, i % 2, NULL);
        for (int i = 0; i < TRIES; i++) {
            weft__route_choice c;
            weft__route_choose(r, set.items[7].x, 5, &c); /* arm 1 may not answer */
            assert_int_equal(c.n, i);
            assert_true(c.arm != 1 && c.propensity > 0 && c.propensity <= 1);
            share[c.arm] += 1.0 / TRIES;
            said[c.arm] += 1 / c.propensity / TRIES; /* a sum of which the mean is 1 for an arm that is ever chosen */
        }
        for (int a = 0; a < 3; a += 2) assert_true(share[a] == 0 || fabs(said[a] - 1) < 0.35);
        assert_true(fabs(share[0] + share[2] - 1) < 1e-9);
        weft__route_free(&r);
    }
}

static void untrained_is_the_first(void **state)
{
    weft__route_params p;
    weft__route_choice c;
    weft__route *r;
    (void)state;
    weft__route_params_default(&p);
    p.n_arms = 4;
    for (int m = 0; m <= WEFT__ROUTE_BETA; m++) {
        p.method = (weft__route_method)m;
        assert_int_equal(weft__route_new(&p, &r, NULL), WEFT_OK);
        for (int i = 0; i < 50; i++) {
            weft__route_choose(r, set.items[i].x, i % 2 ? ~0u : 12, &c);
            assert_int_equal(c.arm, i % 2 ? 0 : 2);
            assert_true(c.propensity == 1);
        }
        assert_false(weft__route_is_trained(r));
        assert_int_equal(weft__route_reward(r, set.items[0].x, 1, 1, NULL), WEFT_OK);
        assert_true(weft__route_is_trained(r));
        weft__route_free(&r);
    }
}

/* A reward moves its own arm's worth for such requests up, its opposite down; a cost keeps an arm from being chosen. */
static void learns_the_sign(void **state)
{
    const float *x = set.items[3].x;
    weft__route_params p;
    weft__route_choice c;
    weft__route *r;
    (void)state;
    weft__route_params_default(&p);
    p.n_arms = 2;
    p.alpha = p.explore = 0;
    for (int way = 0; way < 3; way++) {
        p.cost[1] = 1;
        p.cost_weight = way == 2 ? 5 : 0;
        assert_int_equal(weft__route_new(&p, &r, NULL), WEFT_OK);
        for (int i = 0; i < 5; i++) {
            weft__route_reward(r, x, 0, 0.5, NULL);
            weft__route_reward(r, x, 1, way != 1, NULL);
        }
        weft__route_choose(r, x, 3, &c);
        assert_int_equal(c.arm, way == 0);
        weft__route_free(&r);
    }
}

static void features_tell_apart(void **state)
{
    float a[WEFT__ROUTE_DIMS], b[WEFT__ROUTE_DIMS], e[40];
    (void)state;
    weft__route_features("Where is the fox?", 17, NULL, 0, a);
    weft__route_features("where IS the FOX?", 17, NULL, 0, b);
    assert_memory_equal(a + WEFT__ROUTE_SHAPE, b + WEFT__ROUTE_SHAPE, WEFT__ROUTE_WORDS * sizeof *a);
    weft__route_features("def f(x): return {}", 19, NULL, 0, b);
    assert_true(b[3] > a[3] && b[7] == 0 && a[7] > 0);
    for (int i = 0; i < 40; i++) e[i] = i % 7 ? (float)i : NAN;
    weft__route_features(NULL, 0, e, 40, a);
    double sum = 0;
    for (int i = 0; i < WEFT__ROUTE_DIMS; i++) {
        assert_true(isfinite(a[i]));
        if (i >= WEFT__ROUTE_SHAPE + WEFT__ROUTE_WORDS) sum += a[i] * a[i];
    }
    assert_true(fabs(sum - 1) < 1e-5);
    e[3] = -e[3] - 40;
    weft__route_features(NULL, 0, e, 40, b);
    assert_memory_not_equal(a, b, sizeof a);
}

/* With words alone out of sight, embeddings tell what is wanted. */
static void learns_by_embeddings(void **state)
{
    weft__route_params p;
    weft__route_choice c;
    weft__route *r;
    weft__rng rng;
    int right = 0;
    (void)state;
    weft__rng_seed(&rng, 3);
    weft__route_params_default(&p);
    p.n_arms = 2;
    p.explore = 0;
    assert_int_equal(weft__route_new(&p, &r, NULL), WEFT_OK);
    for (int t = 0; t < 400; t++) {
        float e[32], x[WEFT__ROUTE_DIMS];
        const int kind = (int)weft__rng_below(&rng, 2);
        for (int i = 0; i < 32; i++)
            e[i] = (float)(weft__rng_normal(&rng) * 0.3 + (i % 2 == kind ? (i % 4 < 2 ? 1 : -1) : 0));
        weft__route_features("", 0, e, 32, x);
        weft__route_choose(r, x, 3, &c);
        weft__route_reward(r, x, c.arm, c.arm == kind, NULL);
        right += t >= 200 && c.arm == kind;
    }
    assert_true(right > 180);
    weft__route_free(&r);
}

static void refuses(void **state)
{
    weft__route_params p;
    weft__route *r;
    weft_error err;
    (void)state;
    struct {
        double *at, bad;
        const char *says;
    } all[] = {{&p.alpha, -1, "alpha"},
               {&p.ridge, 0, "ridge"},
               {&p.explore, 1.5, "explore"},
               {&p.change, NAN, "change"},
               {&p.cost_weight, INFINITY, "cost_weight"},
               {&p.cost[0], 2, "cost"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        weft__route_params_default(&p);
        *all[i].at = all[i].bad;
        assert_int_equal(weft__route_new(&p, &r, &err), WEFT_ARGUMENT);
        assert_non_null(strstr(err.message, all[i].says));
        assert_null(r);
    }
    weft__route_params_default(&p);
    p.n_arms = 17;
    assert_int_equal(weft__route_new(&p, &r, &err), WEFT_ARGUMENT);
    p.n_arms = 2;
    assert_int_equal(weft__route_new(&p, &r, &err), WEFT_OK);
    assert_int_equal(weft__route_reward(r, set.items[0].x, 2, 1, &err), WEFT_ARGUMENT);
    assert_int_equal(weft__route_reward(r, set.items[0].x, 0, NAN, &err), WEFT_ARGUMENT);
    assert_false(weft__route_is_trained(r));
    weft__route_free(&r);
}

static int one_life(void *arg)
{
    weft__route_params p;
    weft__route *r;
    (void)arg;
    weft__route_params_default(&p);
    if (weft__route_new(&p, &r, NULL)) return 0;
    const int ok = !weft__route_reward(r, set.items[0].x, 0, 1, NULL);
    weft__route_free(&r);
    return ok;
}

static void without_memory(void **state)
{
    (void)state;
    assert_int_equal(fail_each(one_life, NULL), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(beats_the_best_arm),
        cmocka_unit_test(baselines_do_not),
        cmocka_unit_test(recovers_from_a_change),
        cmocka_unit_test(replays),
        cmocka_unit_test(propensities_are_true),
        cmocka_unit_test(propensity_is_a_share),
        cmocka_unit_test(untrained_is_the_first),
        cmocka_unit_test(learns_the_sign),
        cmocka_unit_test(features_tell_apart),
        cmocka_unit_test(learns_by_embeddings),
        cmocka_unit_test(refuses),
        cmocka_unit_test(without_memory),
    };
    if (!replay_read("tests/unit/route_answers.txt", &set)) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
