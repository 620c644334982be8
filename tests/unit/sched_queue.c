// SPDX-License-Identifier: Apache-2.0
/* sched_queue.c: claims about the scheduler's edges: what is refused, queues that overflow or lose most of those who
 * wait, ids that are no more, a store that lies, refused allocations. Every step is checked by sched_world.h. */
#include "unit/sched_world.h"

/* ---- the door ---- */

static void refuses_what_can_never_run(void **state)
{
    (void)state;
    static const struct {
        int32_t n_prompt, max_new;
        weft_status status;
        const char *says;
    } bad[] = {
        {0, 5, WEFT_ARGUMENT, "0 tokens"},
        {5, -1, WEFT_ARGUMENT, "max_tokens is -1"},
        {400, 113, WEFT_LIMIT, "context of 512"},
        {INT32_MAX, INT32_MAX, WEFT_LIMIT, "context of 512"},
        {100, 62, WEFT_LIMIT, "11 KV pages of group 0, which has 10"},
    };
    world w;
    plain_world(&w, 2, 512);
    w.total[0] = 10;
    world_open(&w);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        weft__sched_request q = {.tenant = 1, .n_prompt = bad[i].n_prompt, .max_new = bad[i].max_new};
        weft_error err = {0};
        uint64_t id = 5;
        assert_int_equal(weft__sched_submit(w.sched, &q, 0, &id, NULL, &err), bad[i].status);
        assert_int_equal(id, 0);
        assert_non_null(strstr(err.message, bad[i].says));
    }
    world_add(&w, 1, 0, 100, 61); /* 160 tokens: the last one needs no page */
    world_run(&w);
    assert_int_equal(w.clients[0].why, WEFT__SCHED_LENGTH);
    world_close(&w);
}

static void refuses_limits_without_sense(void **state)
{
    (void)state;
    world w;
    weft__sched_hooks hooks = {0};
    weft__sched_store store = {0};
    weft_error err = {0};
    plain_world(&w, 4, 512);
    for (int i = 0; i < 8; i++) {
        static const char *const names[] = {"n_slots", "step_rows", "chunk",       "max_queue",
                                            "n_ctx",   "reserve",   "decode_cost", "age_us"};
        weft__sched_limits l = w.limits;
        int32_t *fields[] = {&l.n_slots, &l.step_rows, &l.chunk, &l.max_queue, &l.n_ctx, &l.reserve, &l.decode_cost};
        if (i < 7) *fields[i] = i == 1 ? 3 : i == 5 ? -1 : 0;
        else l.age_us = 0;
        assert_int_equal(weft__sched_create(&l, &store, &hooks, &w.sched, &err), WEFT_ARGUMENT);
        assert_null(w.sched);
        assert_non_null(strstr(err.message, names[i]));
    }
}

/* One tenant floods: others still find room, and then others again. */
static void a_flood_leaves_room_in_the_queue(void **state)
{
    (void)state;
    world w;
    plain_world(&w, 4, 512);
    world_open(&w);
    int32_t n[3] = {0};
    assert_int_equal(weft__sched_max_accepted(w.sched), 182);
    for (int t = 0; t < 3; t++)
        while (world_submit(&w, world_add(&w, (uint64_t)t, 0, 10, 10)) == WEFT_OK) n[t]++;
    assert_int_equal(n[0], 182); /* 8/9 of 204 */
    assert_in_range(n[1], 15, 25);
    assert_in_range(n[2], 1, 4);
    for (int32_t i = 0; i < w.n_clients; i++) w.clients[i].cancelled = 1;
    weft__sched_cancel_all(w.sched);
    assert_int_equal(weft__sched_next(w.sched, 0)->n_items, 0);
    world_close(&w);
}

/* A queue that is full of others: most are cancelled while they wait, some are late, those who came last first. Each
 * ends at once and for its own reason, whoever is left is served, and there is room again. */
static void cancelled_and_late_requests_leave_the_queue(void **state)
{
    (void)state;
    enum { N = 41 };
    world w;
    client *c[N];
    plain_world(&w, 1, 64);
    w.limits.max_queue = N;
    world_open(&w);
    for (int i = 0; i < N; i++) {
        c[i] = world_add(&w, (uint64_t)(i % 3), i % 2, 4, 8);
        if (i % 4 == 3) c[i]->deadline_us = (uint64_t)(60 - i) * 2000;
        if (i % 4 == 1 || i % 4 == 2) c[i]->cancel_us = 1 + (uint64_t)(i * 7919 % 30000);
    }
    world_run(&w);
    for (int i = 0; i < N; i++) {
        weft__sched_why why = i % 4 == 0   ? WEFT__SCHED_LENGTH
                              : i % 4 == 3 ? WEFT__SCHED_TIMEOUT
                                           : WEFT__SCHED_CANCELLED;
        if (i == 1 || i == 2 || i == 3) continue; /* may have begun before */
        if (c[i]->why != why) fail_msg("request %d ended with %d instead of %d", i, (int)c[i]->why, (int)why);
        assert_int_equal(c[i]->tries, 1);
    }
    client *another = world_add(&w, 1, 0, 4, 8);
    assert_int_equal(world_submit(&w, another), WEFT_OK);
    world_run(&w);
    assert_int_equal(another->why, WEFT__SCHED_LENGTH);
    world_close(&w);
}

static int thrice_as_many_as_can_be(world *w)
{
    while (w->n_clients < 600 && (uint64_t)w->n_clients * 50000 < w->now_us)
        world_add(w, (uint64_t)w->n_clients % 5, 0, 20, 60);
    return w->n_clients < 600 || w->n_finished < 600;
}

/* Three times the load that can be served: who comes back when it was told to need not come often, nor after everybody
 * else. */
static void retry_after_is_worth_obeying(void **state)
{
    (void)state;
    world w;
    plain_world(&w, 8, 128);
    w.limits.max_queue = 20;
    w.tick = thrice_as_many_as_can_be;
    world_open(&w);
    world_run(&w);
    int32_t tries = 0, most = 0;
    for (int32_t i = 0; i < 600; i++) {
        tries += w.clients[i].tries;
        if (w.clients[i].tries > most) most = w.clients[i].tries;
    }
    print_message("600 clients, %d tries, at most %d of one; %.0f s\n", tries, most, (double)w.now_us * 1e-6);
    assert_true(tries > 900 && tries < 600 * 4 && most < 20);
    world_close(&w);
}

/* A flood of requests that are refused and never come back: nobody is told to wait for more than a minute, and once the
 * queue was empty the estimate is the pace of the queue again. Those who wait elsewhere ask for room, and do not
 * count. */
static void a_flood_is_forgotten(void **state)
{
    (void)state;
    world w;
    plain_world(&w, 2, 64);
    w.limits.max_queue = 4;
    world_open(&w);
    weft__sched_request q = {NULL, 1, 0, 4, 8, 0};
    double first[2], last = 0;
    uint64_t id;
    for (int round = 0; round < 2; round++) {
        while (weft__sched_has_room(w.sched, 1, 0, 0))
            assert_int_equal(world_submit(&w, world_add(&w, 1, 0, 4, 8)), WEFT_OK);
        for (int i = 0; i < 1000; i++) assert_false(weft__sched_has_room(w.sched, 1, 0, 0));
        assert_int_equal(weft__sched_submit(w.sched, &q, w.now_us, &id, &first[round], NULL), WEFT_BUSY);
        for (int i = 0; i < 5000; i++)
            assert_int_equal(weft__sched_submit(w.sched, &q, w.now_us, &id, &last, NULL), WEFT_BUSY);
        assert_true(last > 10 && last <= 60 && weft__sched_retry_after(w.sched, w.now_us) <= 60);
        world_run(&w);
    }
    assert_true(first[0] <= 1 && first[1] <= 1);
    weft__sched_stats stats;
    weft__sched_get_stats(w.sched, &stats);
    assert_true(stats.refused == 10002);
    world_close(&w);
}

/* ---- the end ---- */

static void stale_ids_are_ignored(void **state)
{
    (void)state;
    world w;
    plain_world(&w, 1, 64);
    w.limits.max_queue = 1;
    world_open(&w);
    client *a = world_add(&w, 1, 0, 4, 2);
    world_run(&w);
    client *b = world_add(&w, 1, 0, 4, 2);
    assert_int_equal(world_submit(&w, b), WEFT_OK);
    assert_true(record_of(&w, b)->state == WEFT__SCHED_QUEUED && record_of(&w, b)->n_prompt == 4);
    assert_ptr_equal(record_of(&w, a), record_of(&w, b)); /* under another id */
    assert_true(a->id != b->id);
    const uint64_t ids[] = {a->id, 0, UINT64_MAX, 77};
    for (int i = 0; i < 4; i++) weft__sched_cancel(w.sched, ids[i]);
    weft__sched_end(w.sched, a->id);
    world_run(&w);
    assert_int_equal(b->why, WEFT__SCHED_LENGTH);
    world_close(&w);
}

/* Pages that the store promises and does not have: an error for those who need them, and no endless loop. */
static void a_store_that_lies_fails_requests(void **state)
{
    (void)state;
    world w;
    plain_world(&w, 4, 256);
    w.total[0] = 10;
    w.lie = 6;
    world_open(&w);
    for (int i = 0; i < 6; i++) world_add(&w, 1, 0, 100, i % 2 ? 20 : 150);
    world_run(&w);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(w.clients[i].why, i % 2 ? WEFT__SCHED_LENGTH : WEFT__SCHED_FAILED);
        assert_int_equal(w.clients[i].status, i % 2 ? WEFT_OK : WEFT_LIMIT);
    }
    world_close(&w);
}

static int create_one(void *arg)
{
    world *w = arg;
    weft__sched_hooks hooks = {0};
    weft__sched_store store = {0};
    weft_error err = {0};
    weft_status st = weft__sched_create(&w->limits, &store, &hooks, &w->sched, &err);
    assert_true(st == WEFT_OK ? w->sched != NULL : st == WEFT_NO_MEMORY && !w->sched && err.message[0]);
    weft__sched_destroy(&w->sched);
    return st == WEFT_OK;
}

static void reports_each_failed_allocation(void **state)
{
    (void)state;
    world w;
    plain_world(&w, 4, 256);
    assert_true(fail_each(create_one, &w) > 10);
    weft__sched_destroy(NULL);
}

/* ---- a request that goes on with other tokens ---- */

static int64_t roomy(void *arg, int32_t group)
{
    (void)arg;
    (void)group;
    return 1000;
}

static int64_t pages_of_16(void *arg, void *user, int32_t group, int32_t n)
{
    (void)user;
    (void)arg;
    (void)group;
    return (n + 15) / 16;
}

static int64_t promised_of_16(void *arg, void *user, int32_t group, int32_t n)
{
    int32_t *most = user;
    *most = n > *most ? n : *most;
    return pages_of_16(arg, user, group, n);
}

static int32_t nothing_known(void *arg, void *user, int32_t n)
{
    (void)arg;
    (void)user;
    (void)n;
    return 0;
}

static weft_status always_room(void *arg, void *user, int32_t n, weft_error *err)
{
    (void)arg;
    (void)user;
    (void)n;
    (void)err;
    return WEFT_OK;
}

static int let_go(void *arg, void *user, weft__sched_release how)
{
    (void)arg;
    (void)user;
    (void)how;
    return 0;
}

static weft__sched_why ended_why = WEFT__SCHED_FAILED;

static void on_ended(void *arg, void *user, weft__sched_why why, const weft_error *err)
{
    (void)arg;
    (void)user;
    (void)err;
    ended_why = why;
}

/* One that holds 16 tokens at most, and goes on with 7 of them whenever they are full: it is promised no more pages
 * than these take, reads what stays like a prompt, pays for that like one, and ends after as many tokens as it may
 * generate. */
static void a_restart_is_a_prompt_again(void **state)
{
    (void)state;
    enum { MOST = 16, KEPT = 7, NEW = 40 };
    const weft__sched_store store = {.n_groups = 1,
                                     .capacity = roomy,
                                     .available = roomy,
                                     .pages = pages_of_16,
                                     .more = promised_of_16,
                                     .match = nothing_known,
                                     .reserve = always_room,
                                     .release = let_go};
    const weft__sched_hooks hooks = {.finished = on_ended};
    const weft__sched_limits limits = {2, 32, 32, 4, 64, 8, 2, 1000000};
    int32_t promised = 0, known = 10, n_sampled = 0, n_restarts = 0;
    const weft__sched_request q = {.user = &promised, .tenant = 5, .n_prompt = 10, .max_new = NEW, .n_most = MOST};
    weft__sched *s = NULL;
    weft_error err = {0};
    uint64_t id;
    assert_int_equal(weft__sched_create(&limits, &store, &hooks, &s, &err), WEFT_OK);
    assert_int_equal(weft__sched_submit(s, &q, 0, &id, NULL, &err), WEFT_OK);
    const sched_tenant *t = &s->tenants[s->requests[0].tenant];
    const weft__sched_plan *plan;
    for (int32_t reads = 10; (plan = weft__sched_next(s, 0))->n_items; reads = 0) {
        const int64_t before = t->charged;
        assert_int_equal(plan->items[0].first, known - plan->items[0].n);
        assert_int_equal(plan->items[0].decode, n_sampled > 0 && known != KEPT);
        assert_true(plan->items[0].sample && (!reads || plan->items[0].n == reads));
        known++;
        n_sampled++;
        const int full = known == MOST && n_sampled < NEW;
        if (full) weft__sched_restart(s, id, known = KEPT);
        n_restarts += full;
        weft__sched_done(s, 0);
        assert_true(t->charged - before == (full ? KEPT + 2 : 2) << SCHED_CREDIT_SHIFT); /* 2: a generated token */
        assert_true(t->prepaid == (full ? KEPT : 0) << SCHED_CREDIT_SHIFT);
    }
    assert_int_equal(n_sampled, NEW);
    assert_int_equal(n_restarts, 4); /* after 6 tokens, and every 9 */
    assert_int_equal(ended_why, WEFT__SCHED_LENGTH);
    assert_int_equal(promised, MOST - 1);
    weft__sched_destroy(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_restart_is_a_prompt_again),
        cmocka_unit_test(refuses_what_can_never_run),
        cmocka_unit_test(refuses_limits_without_sense),
        cmocka_unit_test(a_flood_leaves_room_in_the_queue),
        cmocka_unit_test(cancelled_and_late_requests_leave_the_queue),
        cmocka_unit_test(retry_after_is_worth_obeying),
        cmocka_unit_test(a_flood_is_forgotten),
        cmocka_unit_test(stale_ids_are_ignored),
        cmocka_unit_test(a_store_that_lies_fails_requests),
        cmocka_unit_test(reports_each_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
