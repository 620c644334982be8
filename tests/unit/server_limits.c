// SPDX-License-Identifier: Apache-2.0
/* server_limits.c: over any stretch of time no key, team or organisation is let have more than its limits, and what is
 * left is let have at the moment that is told; time is the test's. */
#include "unit/fixture.h"

#include <stdio.h>

#include "server/limits.h"

static uint64_t now;

static uint64_t test_clock(void)
{
    return now;
}

typedef struct hall {
    weft__server_limits limits;
    weft__server_account *key[2], *team, *organisation;
    weft__server_chain chain[2]; /* two keys of one team */
} hall;

static void begin(hall *h)
{
    now = 1000000;
    weft__server_limits_begin(&h->limits);
    h->limits.now_ms = test_clock;
    h->team = weft__server_account_new(1, "acme/lab");
    h->organisation = weft__server_account_new(2, "acme");
    for (int i = 0; i < 2; i++) {
        h->key[i] = weft__server_account_new(0, i ? "bert" : "anna");
        h->chain[i] = (weft__server_chain){{h->key[i], h->team, h->organisation}, 3};
    }
}

static void end(hall *h)
{
    weft__server_account_release(&h->limits, &h->key[0]);
    weft__server_account_release(&h->limits, &h->key[1]);
    weft__server_account_release(&h->limits, &h->team);
    weft__server_account_release(&h->limits, &h->organisation);
    weft__server_limits_end(&h->limits);
}

static weft__server_refusal why;

static int enters(hall *h, int i, int64_t n_prompt)
{
    why = (weft__server_refusal){0};
    return weft__server_limits_enter(&h->limits, &h->chain[i], n_prompt, &why);
}

static void leaves(hall *h, int i)
{
    weft__server_limits_leave(&h->limits, &h->chain[i], -1);
}

static void passes(hall *h, int i, int64_t n_prompt)
{
    assert_true(enters(h, i, n_prompt));
    leaves(h, i);
}

static void is_refused(hall *h, int i, int64_t n_prompt, const char *name, weft__server_limit limit, int retry_s)
{
    assert_false(enters(h, i, n_prompt));
    assert_string_equal(why.name, name);
    assert_int_equal(why.limit, limit);
    assert_int_equal(why.retry_s, retry_s);
}

static void without_limits_nothing_is_refused(void **state)
{
    hall h;
    (void)state;
    begin(&h);
    for (int i = 0; i < 1000; i++) assert_true(enters(&h, 0, 1 << 30));
    assert_int_equal(h.team->at_once, 1000);
    end(&h);
}

static void a_minute_has_so_many_requests(void **state)
{
    hall h;
    (void)state;
    begin(&h);
    weft__server_account_set(&h.limits, h.key[0], 6, 0, 0);
    for (int i = 0; i < 6; i++) passes(&h, 0, 1);
    is_refused(&h, 0, 1, "anna", WEFT__SERVER_REQUESTS, 10);
    passes(&h, 1, 1); /* another's */
    now += 9999;
    is_refused(&h, 0, 1, "anna", WEFT__SERVER_REQUESTS, 1);
    now += 1;
    passes(&h, 0, 1);
    is_refused(&h, 0, 1, "anna", WEFT__SERVER_REQUESTS, 10);
    now += 3600000; /* what is not used does not add up */
    for (int i = 0; i < 6; i++) passes(&h, 0, 1);
    is_refused(&h, 0, 1, "anna", WEFT__SERVER_REQUESTS, 10);
    now -= 100; /* a clock that is read twice may seem to go back */
    is_refused(&h, 0, 1, "anna", WEFT__SERVER_REQUESTS, 10);
    end(&h);
}

/* Whatever the steps of the clock, the sum over an hour is the limit's; no remainder is lost or made. */
static void steps_of_the_clock_do_not_matter(void **state)
{
    static const int steps[] = {1, 7, 999, 8571, 60000};
    (void)state;
    for (size_t k = 0; k < sizeof steps / sizeof *steps; k++) {
        hall h;
        int n = 0;
        begin(&h);
        weft__server_account_set(&h.limits, h.key[0], 7, 0, 0);
        for (uint64_t began = now; now <= began + 600000; now += (uint64_t)steps[k])
            while (enters(&h, 0, 1)) n++;
        assert_true(n <= 7 + 70 && n >= 70);
        if (steps[k] == 1) assert_int_equal(n, 77);
        end(&h);
    }
}

static void tokens_of_prompt_and_answer(void **state)
{
    hall h;
    (void)state;
    begin(&h);
    weft__server_account_set(&h.limits, h.key[0], 0, 600, 0);
    assert_true(enters(&h, 0, 500));
    is_refused(&h, 0, 200, "anna", WEFT__SERVER_TOKENS, 10);
    weft__server_limits_use(&h.limits, &h.chain[0], 500, 400); /* 300 more than there were */
    leaves(&h, 0);
    is_refused(&h, 0, 1, "anna", WEFT__SERVER_TOKENS, 31);
    now += 30000;
    is_refused(&h, 0, 1, "anna", WEFT__SERVER_TOKENS, 1);
    now += 100;
    passes(&h, 0, 1);
    now += 60000;
    passes(&h, 0, 5000); /* more than there ever is: when all is there, and then it is waited for */
    is_refused(&h, 0, 1, "anna", WEFT__SERVER_TOKENS, 441);
    assert_int_equal(h.key[0]->n_prompt, 500);
    assert_int_equal(h.key[0]->n_generated, 400);
    end(&h);
}

static int aside(hall *h, int i, int64_t n, int64_t n_prompt)
{
    return weft__server_limits_enter_aside(&h->limits, &h->chain[i], n, n_prompt);
}

static void aside_is_done_what_takes_no_room_from_requests(void **state)
{
    hall h;
    (void)state;
    begin(&h);
    weft__server_account_set(&h.limits, h.key[0], 2, 600, 1);
    assert_false(aside(&h, 0, 101, 500)); /* the request would not find its 500 */
    assert_true(aside(&h, 0, 100, 500));
    assert_int_equal(h.team->at_once, 1);
    assert_false(aside(&h, 0, 1, 1)); /* one at once */
    weft__server_limits_leave_aside(&h.limits, &h.chain[0], 100, 30);
    assert_int_equal(h.key[0]->at_once, 0);
    assert_int_equal(h.team->n_prompt, 30);
    assert_int_equal(h.key[0]->n_requests, 0);
    assert_false(aside(&h, 0, 71, 500)); /* 30 are gone, 70 were given back */
    passes(&h, 0, 500);
    passes(&h, 0, 1);
    assert_false(aside(&h, 0, 1, 1)); /* two a minute */
    is_refused(&h, 0, 1, "anna", WEFT__SERVER_REQUESTS, 30);
    assert_int_equal(h.key[0]->n_refused[WEFT__SERVER_TOKENS], 0);
    now += 59999;
    assert_false(aside(&h, 0, 1, 1)); /* there is room, for who was refused */
    now += 1;
    assert_true(aside(&h, 0, 1, 1));
    weft__server_limits_leave_aside(&h.limits, &h.chain[0], 1, 1);
    end(&h);
}

static void a_team_is_the_sum_of_its_keys(void **state)
{
    hall h;
    (void)state;
    begin(&h);
    weft__server_account_set(&h.limits, h.key[0], 100, 0, 0);
    weft__server_account_set(&h.limits, h.key[1], 100, 0, 0);
    weft__server_account_set(&h.limits, h.team, 10, 0, 0);
    weft__server_account_set(&h.limits, h.organisation, 12, 0, 0);
    for (int i = 0; i < 10; i++) passes(&h, i % 2, 1);
    is_refused(&h, 0, 1, "acme/lab", WEFT__SERVER_REQUESTS, 6);
    is_refused(&h, 1, 1, "acme/lab", WEFT__SERVER_REQUESTS, 6);
    assert_int_equal(h.team->n_refused[WEFT__SERVER_REQUESTS], 2);
    assert_int_equal(h.organisation->n_refused[WEFT__SERVER_REQUESTS], 0);
    weft__server_account_set(&h.limits, h.team, 0, 0, 0);
    passes(&h, 0, 1); /* a refusal took nothing at the other levels */
    passes(&h, 0, 1);
    is_refused(&h, 0, 1, "acme", WEFT__SERVER_REQUESTS, 5);
    assert_int_equal(h.key[0]->buckets[WEFT__SERVER_REQUESTS].level, (100 - 7) * 60000);
    end(&h);
}

static void of_several_limits_the_longest_is_named(void **state)
{
    hall h;
    (void)state;
    begin(&h);
    weft__server_account_set(&h.limits, h.key[0], 60, 60, 1);
    weft__server_account_set(&h.limits, h.team, 1, 0, 0);
    assert_true(enters(&h, 0, 50));
    is_refused(&h, 0, 20, "acme/lab", WEFT__SERVER_REQUESTS, 60);
    now += 55000;
    is_refused(&h, 0, 1, "acme/lab", WEFT__SERVER_REQUESTS, 5);
    now += 5000;
    is_refused(&h, 0, 1, "anna", WEFT__SERVER_AT_ONCE, 1);
    leaves(&h, 0);
    assert_true(enters(&h, 0, 1));
    leaves(&h, 0);
    end(&h);
}

static void what_never_ran_is_given_back(void **state)
{
    hall h;
    (void)state;
    begin(&h);
    weft__server_account_set(&h.limits, h.key[0], 1, 100, 1);
    for (int i = 0; i < 20; i++) {
        assert_true(enters(&h, 0, 100));
        weft__server_limits_leave(&h.limits, &h.chain[0], 100);
    }
    assert_int_equal(h.key[0]->n_requests, 0);
    assert_int_equal(h.key[0]->at_once, 0);
    passes(&h, 0, 100);
    assert_int_equal(h.key[0]->n_requests, 1);
    end(&h);
}

/* A reload: what was used stays used, and no bucket has more than its new limit. */
static void limits_change(void **state)
{
    hall h;
    (void)state;
    begin(&h);
    weft__server_account_set(&h.limits, h.key[0], 10, 0, 0);
    for (int i = 0; i < 8; i++) passes(&h, 0, 1);
    weft__server_account_set(&h.limits, h.key[0], 100, 0, 0);
    passes(&h, 0, 1);
    passes(&h, 0, 1);
    is_refused(&h, 0, 1, "anna", WEFT__SERVER_REQUESTS, 1);
    now += 60000;
    weft__server_account_set(&h.limits, h.key[0], 3, 0, 0);
    for (int i = 0; i < 3; i++) passes(&h, 0, 1);
    is_refused(&h, 0, 1, "anna", WEFT__SERVER_REQUESTS, 20);
    end(&h);
}

static void numbers_stay_within_their_bounds(void **state)
{
    hall h;
    (void)state;
    begin(&h);
    weft__server_account_set(&h.limits, h.key[0], 1000000000000, 1000000000000, 0);
    now = UINT64_MAX / 2;
    passes(&h, 0, INT64_MAX);
    assert_false(enters(&h, 0, 1));
    for (int i = 0; i < 10; i++) weft__server_limits_use(&h.limits, &h.chain[0], 0, INT64_MAX);
    assert_false(enters(&h, 0, 1));
    assert_true(why.retry_s > 1);
    now = UINT64_MAX;
    weft__server_limits_leave(&h.limits, &(weft__server_chain){{h.key[0]}, 1}, INT64_MAX);
    end(&h);
}

static void counters_have_a_bound(void **state)
{
    enum { N = 300 };
    hall h;
    weft__server_account *all[N];
    weft__strbuf out = {0};
    char name[32];
    (void)state;
    begin(&h);
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof name, "k%d", i);
        all[i] = weft__server_account_new(0, name);
        weft__server_limits_use(&h.limits, &(weft__server_chain){{all[i]}, 1}, 2, 3);
    }
    weft__server_accounts_write(&h.limits, all, N, &out);
    assert_non_null(strstr(out.data, "\nweft_account_prompt_tokens_total{level=\"key\",name=\"k255\"} 2\n"));
    assert_non_null(strstr(out.data, "\nweft_account_generated_tokens_total{level=\"key\",name=\"(other)\"} 132\n"));
    assert_null(strstr(out.data, "k256"));
    assert_non_null(strstr(out.data, "{level=\"key\",name=\"k0\",limit=\"concurrent\"} 0\n"));
    for (int i = 0; i < N; i++) weft__server_account_release(&h.limits, &all[i]);
    weft__strbuf_free(&out);
    end(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(without_limits_nothing_is_refused),
                                       cmocka_unit_test(a_minute_has_so_many_requests),
                                       cmocka_unit_test(steps_of_the_clock_do_not_matter),
                                       cmocka_unit_test(tokens_of_prompt_and_answer),
                                       cmocka_unit_test(aside_is_done_what_takes_no_room_from_requests),
                                       cmocka_unit_test(a_team_is_the_sum_of_its_keys),
                                       cmocka_unit_test(of_several_limits_the_longest_is_named),
                                       cmocka_unit_test(what_never_ran_is_given_back),
                                       cmocka_unit_test(limits_change),
                                       cmocka_unit_test(numbers_stay_within_their_bounds),
                                       cmocka_unit_test(counters_have_a_bound)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
