// SPDX-License-Identifier: Apache-2.0
/* sample.c: claims about the sampler chain: each filter against a plain sort, the order, the draw's distribution,
 * refusals. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/random.h"
#include "sample/candidates.h"
#include "sample/sampler.h"
#include "unit/sampling.h"
#include "weft/weft.h"

static weft_sampler_params plain(void)
{
    weft_sampler_params p;
    weft_sampler_params_default(&p);
    p.temperature = 1;
    p.top_k = 0;
    p.top_p = 1;
    p.min_p = 0;
    p.seed = 1;
    p.seed_given = 1;
    return p;
}

static int32_t pick(weft_sampler *s, const float *logits, int n)
{
    float copy[64];
    int32_t token = -1;
    memcpy(copy, logits, (size_t)n * sizeof *copy);
    assert_int_equal(weft_sampler_pick(s, copy, &token, NULL), WEFT_OK);
    return token;
}

static int by_rank(const void *a, const void *b)
{
    const weft__sample_candidate *x = a, *y = b;
    return x->logit > y->logit ? -1 : x->logit < y->logit ? 1 : (x->id > y->id) - (x->id < y->id);
}

/* Lazy order equals qsort's; top-k, top-p and min-p keep what a sorted list keeps. */
static void filters_equal_a_plain_sort(void **state)
{
    (void)state;
    enum { N = 3000 };
    static float logits[N];
    static weft__sample_candidate items[N], sorted[N];
    weft__rng rng;
    weft__rng_seed(&rng, 7);
    for (int round = 0; round < 200; round++) {
        int n = 1 + (int)weft__rng_below(&rng, N);
        for (int i = 0; i < n; i++) {
            logits[i] = (float)((round % 4 == 1 ? 40 : 4) * weft__rng_normal(&rng)); /* some too far away to matter */
            if (round % 3 == 0) logits[i] = floorf(logits[i]);                       /* many equals */
            if (round % 7 == 6) logits[i] += 1e6f;                                   /* coarse */
            sorted[i] = (weft__sample_candidate){logits[i], i};
        }
        qsort(sorted, (size_t)n, sizeof *sorted, by_rank);
        weft__sample_candidates c;
        weft__sample_candidates_fill(&c, items, logits, n);
        assert_int_equal(c.n, n);
        int k = 1 + (int)weft__rng_below(&rng, (uint64_t)n);
        assert_int_equal(weft__sample_candidates_at(&c, k / 2).id, sorted[k / 2].id);
        weft__sample_candidates_top_k(&c, k);
        assert_int_equal(c.n, k);
        double total = 0, sum = 0;
        for (int i = 0; i < k; i++) total += exp((double)sorted[i].logit - sorted[0].logit);
        float p = (float)weft__rng_double(&rng) * 0.98f + 0.01f;
        int keep = 0;
        while (keep < k && sum < p * total) sum += exp((double)sorted[keep++].logit - sorted[0].logit);
        weft__sample_candidates_top_p(&c, p);
        assert_int_equal(c.n, keep);
        weft__sample_candidates_min_p(&c, 0.2f);
        int m = 1;
        while (m < keep && exp((double)sorted[m].logit - sorted[0].logit) >= 0.2f) m++;
        assert_int_equal(c.n, m);
        for (int i = 0; i < m; i++) assert_int_equal(weft__sample_candidates_at(&c, i).id, sorted[i].id);
    }
}

static void greedy_takes_the_first_of_equals(void **state)
{
    (void)state;
    weft_sampler_params p = plain();
    weft_sampler *s;
    float logits[5] = {NAN, 1, 3, 3, -INFINITY};
    p.temperature = 0;
    assert_int_equal(weft_sampler_new(5, &p, &s, NULL), WEFT_OK);
    assert_int_equal(pick(s, logits, 5), 2);
    weft_sampler_free(&s);
    assert_null(s);
}

/* 20,000 draws agree with softmax(logit / T) within four standard deviations, and a seed repeats them. */
static void draws_follow_the_distribution(void **state)
{
    (void)state;
    weft_sampler_params p = plain();
    weft_sampler *s, *again;
    const float logits[4] = {0, 1, 2, -1};
    double weight[4], total = 0;
    int count[4] = {0}, n = 20000;
    p.temperature = 0.7f;
    assert_int_equal(weft_sampler_new(4, &p, &s, NULL), WEFT_OK);
    assert_int_equal(weft_sampler_new(4, &p, &again, NULL), WEFT_OK);
    for (int i = 0; i < n; i++) {
        int32_t token = pick(s, logits, 4);
        assert_int_equal(token, pick(again, logits, 4));
        count[token]++;
    }
    for (int i = 0; i < 4; i++) total += weight[i] = exp(logits[i] / 0.7);
    for (int i = 0; i < 4; i++) {
        double q = weight[i] / total;
        assert_true(fabs(count[i] - n * q) < 4 * sqrt(n * q * (1 - q)));
    }
    weft_sampler_free(&s);
    weft_sampler_free(&again);
}

static void penalties_see_the_window_only(void **state)
{
    (void)state;
    weft_sampler_params p = plain();
    weft_sampler *s;
    const float logits[3] = {2.0f, 1.9f, -1.0f};
    p.temperature = 0;
    p.repeat_penalty = 2;
    p.penalty_last_n = 2;
    assert_int_equal(weft_sampler_new(3, &p, &s, NULL), WEFT_OK);
    assert_int_equal(weft_sampler_accept(s, 0, NULL), WEFT_OK);
    assert_int_equal(pick(s, logits, 3), 1);
    assert_int_equal(weft_sampler_accept(s, 2, NULL), WEFT_OK);
    assert_int_equal(pick(s, logits, 3), 1);
    assert_int_equal(weft_sampler_accept(s, 2, NULL), WEFT_OK);
    assert_int_equal(pick(s, logits, 3), 0); /* token 0 left the window */
    weft_sampler_free(&s);

    p = plain();
    p.temperature = 0;
    p.penalty_last_n = -1;
    p.frequency_penalty = 0.06f;
    assert_int_equal(weft_sampler_new(3, &p, &s, NULL), WEFT_OK);
    weft_sampler_accept(s, 0, NULL);
    assert_int_equal(pick(s, logits, 3), 0); /* 1.94 */
    weft_sampler_accept(s, 0, NULL);
    assert_int_equal(pick(s, logits, 3), 1); /* 1.88 */
    weft_sampler_free(&s);

    p.frequency_penalty = 0;
    p.presence_penalty = 0.2f;
    assert_int_equal(weft_sampler_new(3, &p, &s, NULL), WEFT_OK);
    weft_sampler_accept(s, 0, NULL);
    assert_int_equal(pick(s, logits, 3), 1);
    weft_sampler_free(&s);
}

/* What is looked at ahead is what is picked then, whatever the window, and looking changes nothing. */
static void looking_ahead_takes_nothing(void **state)
{
    enum { V = 60, AHEAD = 9, ROUNDS = 12 };
    static const int windows[] = {0, -1, 4, 9, 64};
    float logits[AHEAD + 1][V], row[V], p;
    weft__rng rng;
    (void)state;
    weft__rng_seed(&rng, 8);
    for (size_t w = 0; w < sizeof windows / sizeof *windows; w++) {
        weft_sampler_params params = plain();
        weft_sampler *s = NULL;
        params.temperature = 1.2f;
        params.penalty_last_n = windows[w];
        params.repeat_penalty = 1.4f;
        params.frequency_penalty = 0.5f;
        assert_int_equal(weft_sampler_new(V, &params, &s, NULL), WEFT_OK);
        for (int round = 0; round < ROUNDS; round++) {
            weft__sample_ahead ahead;
            int32_t seen[AHEAD], token;
            for (int i = 0; i < (AHEAD + 1) * V; i++) logits[i / V][i % V] = (float)(3 * weft__rng_normal(&rng));
            weft__sample_ahead_begin(s, &ahead);
            for (int k = 0; k < AHEAD; k++) {
                memcpy(row, logits[k], sizeof row);
                assert_int_equal(weft__sample_ahead_pick(s, &ahead, row, &seen[k], &p, NULL), WEFT_OK);
                double sum = 0;
                for (int i = 0; i < V; i++) sum += exp((double)(row[i] - row[seen[k]]));
                assert_float_equal((double)p, 1 / sum, 1e-5);
            }
            weft__sample_ahead_end(s, &ahead);
            for (int k = 0; k < (round % 2 ? AHEAD : 3); k++) {
                memcpy(row, logits[k], sizeof row);
                assert_int_equal(weft_sampler_pick(s, row, &token, NULL), WEFT_OK);
                assert_int_equal(token, seen[k]);
                assert_int_equal(weft_sampler_accept(s, token, NULL), WEFT_OK);
            }
        }
        weft__sample_ahead ahead;
        weft_status st = WEFT_OK;
        int32_t token, n = 0;
        weft__sample_ahead_begin(s, &ahead);
        for (; !st && n < 100; n++) {
            memcpy(row, logits[0], sizeof row);
            st = weft__sample_ahead_pick(s, &ahead, row, &token, &p, NULL);
        }
        assert_int_equal(st, WEFT_LIMIT);
        assert_int_equal(n, WEFT__SAMPLE_AHEAD + 1);
        weft__sample_ahead_end(s, &ahead);
        weft_sampler_free(&s);
    }
}

static void bias_forbids_and_lifts(void **state)
{
    (void)state;
    weft_sampler_params p = plain();
    weft_sampler *s;
    weft_logit_bias bias[2] = {{0, -INFINITY}, {2, 5}};
    const float logits[3] = {9, 1, 0};
    p.temperature = 0;
    p.bias = bias;
    p.n_bias = 2;
    assert_int_equal(weft_sampler_new(3, &p, &s, NULL), WEFT_OK);
    bias[0].token = 1; /* it was copied */
    assert_int_equal(pick(s, logits, 3), 2);
    weft_sampler_free(&s);
}

/* However likely: unless a bias asks for them, alone or among others. */
static void nameless_ids_are_never_picked(void **state)
{
    (void)state;
    weft_sampler_params p = plain();
    weft_sampler *s;
    int32_t nameless[] = {1, 3, 4}, token;
    const float logits[5] = {0, 50, 1, 60, NAN};
    for (int greedy = 0; greedy < 2; greedy++) {
        p.temperature = greedy ? 0 : 1;
        p.nameless = nameless;
        p.n_nameless = 3;
        p.n_bias = 0;
        assert_int_equal(weft_sampler_new(5, &p, &s, NULL), WEFT_OK);
        nameless[0] = 0; /* they were copied */
        for (int i = 0; i < 50; i++) {
            token = pick(s, logits, 5);
            assert_true(greedy ? token == 2 : token == 0 || token == 2);
        }
        weft_sampler_free(&s);
        nameless[0] = 1;
        p.bias = (weft_logit_bias[]){{1, 20}, {3, -1}, {2, 5}};
        p.n_bias = 3;
        assert_int_equal(weft_sampler_new(5, &p, &s, NULL), WEFT_OK);
        assert_int_equal(pick(s, logits, 5), 1); /* 3 is likelier, and not asked for */
        weft_sampler_free(&s);
    }
    float none[5] = {-INFINITY, 50, -INFINITY, 60, 1};
    p.n_bias = 0;
    assert_int_equal(weft_sampler_new(5, &p, &s, NULL), WEFT_OK);
    assert_int_equal(weft_sampler_pick(s, none, &token, NULL), WEFT_ARGUMENT);
    weft_sampler_free(&s);
}

static void refuses_what_makes_no_sense(void **state)
{
    (void)state;
    weft_logit_bias outside = {3, 1}, nan = {0, NAN};
    int32_t far = 3;
    struct {
        const char *expect;
        weft_sampler_params p;
    } cases[15];
    int n = 0;
#define CASE(text, field, value) cases[n].expect = text, cases[n].p = plain(), cases[n++].p.field = value
    CASE("temperature", temperature, -1);
    CASE("temperature", temperature, NAN);
    CASE("top-k", top_k, -1);
    CASE("top-p", top_p, 0);
    CASE("top-p", top_p, 1.5f);
    CASE("min-p", min_p, -0.1f);
    CASE("repeat penalty", repeat_penalty, 0);
    CASE("presence", presence_penalty, INFINITY);
    CASE("frequency", frequency_penalty, NAN);
    CASE("penalty window", penalty_last_n, -2);
    CASE("token 3", n_bias, 1), cases[n - 1].p.bias = &outside;
    CASE("logit bias", n_bias, 1), cases[n - 1].p.bias = &nan;
    CASE("nameless token 3", n_nameless, 1), cases[n - 1].p.nameless = &far;
    CASE("without ids", n_nameless, 1);
    CASE("without ids", n_nameless, -1);
#undef CASE
    for (int i = 0; i < n; i++) {
        weft_sampler *s;
        weft_error err = {0};
        assert_int_equal(weft_sampler_new(3, &cases[i].p, &s, &err), WEFT_ARGUMENT);
        assert_null(s);
        assert_non_null(strstr(err.message, cases[i].expect));
    }
    weft_sampler_params p = plain();
    weft_sampler *s;
    int32_t token;
    float nothing[3] = {NAN, -INFINITY, NAN};
    assert_int_equal(weft_sampler_new(3, &p, &s, NULL), WEFT_OK);
    assert_int_equal(weft_sampler_pick(s, nothing, &token, NULL), WEFT_ARGUMENT);
    assert_int_equal(weft_sampler_accept(s, 3, NULL), WEFT_ARGUMENT);
    weft_sampler_free(&s);
}

/* The largest first, whatever the rest is. */
static void infinities_and_nothing_else(void **state)
{
    (void)state;
    const float logits[6] = {1, INFINITY, NAN, -INFINITY, INFINITY, 3e38f};
    static const int32_t order[4] = {1, 4, 5, 0};
    weft__sample_candidate items[6];
    weft__sample_candidates c;
    weft__sample_candidates_fill(&c, items, logits, 6);
    assert_int_equal(c.n, 4);
    for (int i = 0; i < 4; i++) assert_int_equal(weft__sample_candidates_at(&c, i).id, order[i]);
    assert_int_equal(weft__sample_candidates_draw(&c, 1, 0.49), 1); /* all the weight is theirs */
    assert_int_equal(weft__sample_candidates_draw(&c, 1, 0.51), 4);
}

/* ---- large vocabularies ---- */

static void check_growth(const char *what, float *logits, float *copy)
{
    for (int kind = 0; kind < SAMPLING_KINDS; kind++) {
        weft_sampler_params p;
        const char *name = sampling_kind(kind, &p);
        double times = growth_of(sampling_pick, &(sampling_job){logits, copy, &p}, SAMPLING_VOCAB);
        if (times > GROWTH_MOST)
            fail_msg("%s, %s: %.1f times as long for %d times the tokens", what, name, times, GROWTH_SIZES);
    }
}

/* A pick costs what reading the vocabulary costs, or sorting it, where nearly all tokens are as likely and the filters
 * keep most. */
static void a_pick_grows_with_the_vocabulary_and_no_faster(void **state)
{
    (void)state;
    float *logits = weft__alloc_array(SAMPLING_VOCAB, sizeof *logits),
          *copy = weft__alloc_array(SAMPLING_VOCAB, sizeof *copy);
    assert_true(logits && copy);
    sampling_logits(logits);
    check_growth("as of a model", logits, copy);
    for (int i = 0; i < SAMPLING_VOCAB; i++) logits[i] = (float)(i * 7919 % 4001) / 4001.0f;
    check_growth("flat", logits, copy);
    weft__free(logits);
    weft__free(copy);
}

static int fail_nth(void *arg, size_t n_bytes)
{
    (void)n_bytes;
    return (*(int *)arg)-- != 0;
}

static void every_failing_allocation_is_an_error(void **state)
{
    (void)state;
    weft_sampler_params p = plain();
    size_t live = weft__alloc_live();
    int n, done = 0;
    for (n = 0; !done; n++) {
        weft_sampler *s;
        int left = n;
        weft__alloc_set_gate(fail_nth, &left);
        weft_status st = weft_sampler_new(100, &p, &s, NULL);
        weft__alloc_set_gate(NULL, NULL);
        assert_true(st == WEFT_OK || st == WEFT_NO_MEMORY);
        done = st == WEFT_OK;
        weft_sampler_free(&s);
        assert_int_equal(weft__alloc_live(), live);
    }
    assert_true(n > 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filters_equal_a_plain_sort),
        cmocka_unit_test(greedy_takes_the_first_of_equals),
        cmocka_unit_test(draws_follow_the_distribution),
        cmocka_unit_test(penalties_see_the_window_only),
        cmocka_unit_test(looking_ahead_takes_nothing),
        cmocka_unit_test(bias_forbids_and_lifts),
        cmocka_unit_test(nameless_ids_are_never_picked),
        cmocka_unit_test(refuses_what_makes_no_sense),
        cmocka_unit_test(every_failing_allocation_is_an_error),
        cmocka_unit_test(infinities_and_nothing_else),
        cmocka_unit_test(a_pick_grows_with_the_vocabulary_and_no_faster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
