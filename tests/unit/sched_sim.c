// SPDX-License-Identifier: Apache-2.0
/* sched_sim.c: claims about the scheduler: thousands of random workloads in which sched_world.h checks every step, and
 * worlds made to break one promise each: starvation, unfair shares, priorities, memory that runs out. */
#include "unit/sched_world.h"

#include "claims.h"

/* ---- random workloads ---- */

#define N_WORLDS CLAIMS_REPEATED(CLAIMS_SWEPT(4000, 8000), 800, 500)
enum { N_ON_POOL = CLAIMS_REPEATED(300, 300, 100) };

static void random_limits(world *w)
{
    weft__sched_limits *l = &w->limits;
    l->n_slots = between(w, 1, weft__rng_below(&w->rng, 3) ? 6 : 24);
    l->step_rows = l->n_slots + (weft__rng_below(&w->rng, 4) ? between(w, 0, 200) : 0);
    l->chunk = weft__rng_below(&w->rng, 4) ? between(w, 1, 64) : 1 << 20;
    l->max_queue = between(w, 1, weft__rng_below(&w->rng, 3) ? 100 : 4);
    l->n_ctx = between(w, 16, 400);
    l->reserve = weft__rng_below(&w->rng, 4) ? between(w, 0, weft__rng_below(&w->rng, 2) ? 4 : 40) : l->n_ctx;
    l->decode_cost = between(w, 1, 3);
    l->age_us = (uint64_t)between(w, 1, 2000000);
}

/* Memory for one longest request at least, for all at most. */
static void random_memory(world *w)
{
    w->n_groups = between(w, 1, MAX_GROUPS);
    for (int32_t g = 0; g < w->n_groups; g++) {
        w->groups[g] = (weft_kv_group){.kind = WEFT_KV_FULL,
                                       .n_layers = 1,
                                       .n_kv_heads = 1,
                                       .head_dim_k = 4,
                                       .head_dim_v = 4,
                                       .page_tokens = 1 << between(w, 0, 5)};
        if (g > 0 && weft__rng_below(&w->rng, 2))
            w->groups[g].kind = WEFT_KV_WINDOW, w->groups[g].window = between(w, 1, 100);
        int32_t one = weft__kv_pages_needed(&w->groups[g], w->limits.n_ctx, w->limits.step_rows);
        int32_t most = weft__rng_below(&w->rng, 4) ? 2 * one : w->limits.n_slots * one;
        w->total[g] = between(w, one, most > one ? most : one);
    }
    w->partial = w->n_groups == 1 && weft__rng_below(&w->rng, 3) == 0;
    w->swaps = weft__rng_below(&w->rng, 3) == 0;
    if (weft__rng_below(&w->rng, 4) == 0) w->put_offs = weft__rng_below(&w->rng, 2) ? 0.05 : 0.9;
    if (weft__rng_below(&w->rng, 20) == 0) w->io_failures = weft__rng_below(&w->rng, 2) ? 0.002 : 0.1;
    w->hook_cancels = weft__rng_below(&w->rng, 10) == 0;
    if (weft__rng_below(&w->rng, 3) == 0) w->drafts = weft__rng_below(&w->rng, 2) ? 0.2 : 1;
}

static void random_clients(world *w)
{
    int32_t n = between(w, 1, 80), n_tenants = between(w, 1, 6),
            priorities = weft__rng_below(&w->rng, 2) ? 0 : between(w, 1, 12);
    uint64_t spread_us = weft__rng_below(&w->rng, 3) * 1000000 * (uint64_t)between(w, 1, 4);
    int cancels = weft__rng_below(&w->rng, 2) != 0, deadlines = weft__rng_below(&w->rng, 2) != 0;
    for (int32_t i = 0; i < n; i++) {
        int32_t longest = weft__rng_below(&w->rng, 2) ? 1 + w->limits.n_ctx / 4 : w->limits.n_ctx;
        int32_t n_prompt = between(w, 1, weft__rng_below(&w->rng, 2) ? longest : 1 + longest / 8);
        int32_t max_new = between(w, 0, at_most(w->limits.n_ctx - n_prompt, longest));
        client *c =
            world_add(w, (uint64_t)between(w, 1, n_tenants), between(w, -priorities, priorities), n_prompt, max_new);
        c->arrival_us = spread_us ? weft__rng_below(&w->rng, spread_us) : 0;
        if (max_new > 0 && weft__rng_below(&w->rng, 2)) c->n_real = between(w, 1, max_new);
        if (w->n_groups == 1) {
            c->family = between(w, 0, MAX_FAMILIES - 1);
            c->n_shared = between(w, 0, at_most(n_prompt, MAX_CHAIN));
        }
        if (cancels && weft__rng_below(&w->rng, 4) == 0)
            c->cancel_us = c->arrival_us + 1 + weft__rng_below(&w->rng, 3000000);
        if (deadlines && weft__rng_below(&w->rng, 4) == 0)
            c->deadline_us = c->arrival_us + weft__rng_below(&w->rng, 5000000);
    }
}

static void random_world(world *w, uint64_t seed)
{
    *w = (world){.seed = seed};
    weft__rng_seed(&w->rng, seed);
    random_limits(w);
    random_memory(w);
}

static void random_pool(world *w)
{
    int32_t n_pages[MAX_GROUPS];
    for (int32_t g = 0; g < w->n_groups; g++) n_pages[g] = (int32_t)w->total[g];
    assert_int_equal(weft__kv_pool_create(w->groups, w->n_groups, n_pages, WEFT_F16, &w->pool, NULL), WEFT_OK);
    w->partial = w->swaps = 0;
}

/* Whatever comes, each request ends once and as it should, in a number of steps that its tokens explain. */
static void run_random(uint64_t seed, int real_pool, uint64_t *n_preemptions)
{
    world w;
    random_world(&w, seed);
    if (real_pool) random_pool(&w);
    world_open(&w);
    random_clients(&w);
    fail_at none = {0, SIZE_MAX};
    weft__alloc_set_gate(fail_at_gate, &none);
    world_run(&w);
    weft__alloc_set_gate(NULL, NULL);
    CHECK(&w, none.seen == 0); /* no allocation after the start */
    weft__sched_stats stats;
    weft__sched_get_stats(w.sched, &stats);
    uint64_t tokens = 0;
    for (int32_t i = 0; i < w.n_clients; i++) {
        const client *c = &w.clients[i];
        tokens += (uint64_t)(c->n_prompt + c->sampled);
        CHECK(&w, c->finished && c->n_preempted <= 4 + w.limits.n_slots);
        CHECK(&w, c->why != WEFT__SCHED_FAILED || (c->status == WEFT_IO && w.io_failures > 0));
        CHECK(&w, c->why != WEFT__SCHED_LENGTH || c->n_real == c->max_new);
    }
    CHECK(&w, stats.preempted == (uint64_t)w.n_preemptions && stats.steps == w.steps);
    CHECK(&w, w.steps <= tokens + stats.recomputed_rows + stats.deferred &&
                  stats.recomputed_rows <= tokens + (uint64_t)w.limits.n_ctx);
    *n_preemptions += stats.preempted;
    world_close(&w);
}

static void random_workloads_keep_every_promise(void **state)
{
    (void)state;
    uint64_t n_preemptions = 0;
    for (int i = 1; i <= N_WORLDS; i++) run_random(claims_seed() + (uint64_t)i, 0, &n_preemptions);
    assert_true(n_preemptions > (uint64_t)N_WORLDS); /* else memory was never short, and this showed little */
}

static void random_workloads_run_on_the_real_pool(void **state)
{
    (void)state;
    uint64_t n_preemptions = 0;
    for (uint64_t seed = 100001; seed <= 100000 + N_ON_POOL; seed++) run_random(seed, 1, &n_preemptions);
    assert_true(n_preemptions > N_ON_POOL);
}

/* ---- worlds made for one claim ---- */

static int32_t n_pending(const world *w, uint64_t tenant)
{
    int32_t n = 0;
    for (int32_t i = 0; i < w->n_clients; i++) n += !w->clients[i].finished && w->clients[i].tenant == tenant;
    return n;
}

/* Two tenants with more than enough to do: one with long prompts, the other with long answers, and five times as many
 * of them. */
static int two_saturate(world *w)
{
    while (n_pending(w, 1) < 8) world_add(w, 1, 0, between(w, 100, 400), between(w, 1, 30));
    while (n_pending(w, 2) < 40) world_add(w, 2, 0, between(w, 1, 40), between(w, 20, 200));
    return w->served[1] + w->served[2] < 300000;
}

static void saturating_tenants_get_equal_shares(void **state)
{
    (void)state;
    for (int32_t n_slots = 1; n_slots <= 16; n_slots *= 4) {
        world w;
        plain_world(&w, n_slots, 512);
        w.tick = two_saturate;
        world_open(&w);
        world_run(&w);
        assert_in_range((int)(1000 * w.served[1] / (w.served[1] + w.served[2])), 475, 525);
        world_close(&w);
    }
}

/* Three tenants of whom one asks for little now and then: it gets all of that, and the others halves of the rest. */
static int two_and_a_light_one(world *w)
{
    while (n_pending(w, 1) < 10) world_add(w, 1, 0, between(w, 20, 200), between(w, 20, 60));
    while (n_pending(w, 2) < 10) world_add(w, 2, 0, between(w, 20, 200), between(w, 20, 60));
    if (w->steps % 300 == 0) world_add(w, 3, 0, 20, 20);
    return w->served[1] + w->served[2] < 300000;
}

static void light_tenants_are_served_at_once(void **state)
{
    (void)state;
    world w;
    plain_world(&w, 4, 512);
    w.tick = two_and_a_light_one;
    world_open(&w);
    world_run(&w);
    uint64_t longest = 0;
    for (int32_t i = 0; i < w.n_clients; i++) {
        const client *c = &w.clients[i];
        if (c->tenant == 3 && c->began && c->began_us - c->arrival_us > longest) longest = c->began_us - c->arrival_us;
    }
    assert_in_range((int)(1000 * w.served[1] / (w.served[1] + w.served[2])), 475, 525);
    assert_true(longest > 0 && longest < 2000000); /* one place becoming free, of four that take about 1.5 s each */
    world_close(&w);
}

/* A flood of 150 requests, then a newcomer with two: it waits for a place each time, not for the flood. Then one with
 * forty: it gets no more than its part, and the flood goes on. */
static void newcomers_neither_starve_nor_are_starved(void **state)
{
    (void)state;
    world w;
    plain_world(&w, 2, 4096);
    world_open(&w);
    for (int i = 0; i < 150; i++) world_add(&w, 1, 0, 50, 50);
    for (int i = 0; i < 2; i++) world_add(&w, 2, 0, 50, 50)->arrival_us = 20000000;
    for (int i = 0; i < 40; i++) world_add(&w, 3, 0, 50, 50)->arrival_us = 25000000;
    world_run(&w);
    int32_t before = 0, of1 = 0;
    for (int32_t i = 0; i < 150; i++) {
        before += w.clients[i].began_us > 20000000 && w.clients[i].start < w.clients[151].start;
        of1 += w.clients[i].start > w.clients[152].start && w.clients[i].start < w.clients[191].start;
    }
    assert_in_range(before, 0, 3);
    assert_in_range(of1, 36, 42); /* while the third had work, they took turns */
    world_close(&w);
}

/* Three who decode all the time and leave most places to one that floods; when another one floods too, these two take
 * turns: what the first one got when nobody wanted it counts for nothing. */
static int four_and_a_latecomer(world *w)
{
    for (uint64_t t = 3; t < 6; t++)
        while (n_pending(w, t) < 1) world_add(w, t, 0, 10, 1000);
    while (n_pending(w, 1) < 20) world_add(w, 1, 0, 40, 40);
    while (w->now_us > 30000000 && n_pending(w, 2) < 20) world_add(w, 2, 0, 40, 40);
    return w->now_us < 40000000;
}

static void use_of_idle_places_is_not_held_against_anybody(void **state)
{
    (void)state;
    world w;
    plain_world(&w, 8, 2048);
    w.tick = four_and_a_latecomer;
    world_open(&w);
    world_run(&w);
    int32_t n[3] = {0};
    for (int32_t i = 0; i < w.n_clients; i++)
        if (w.clients[i].tenant < 3 && w.clients[i].began_us > 30500000) n[w.clients[i].tenant]++;
    assert_true(n[1] > 30 && n[2] <= n[1] + 3 && n[1] <= n[2] + 3);
    world_close(&w);
}

/* Many places are free and one tenant came first with enough for all of them: the other one gets half. */
static void free_places_are_dealt_in_turn(void **state)
{
    (void)state;
    world w;
    plain_world(&w, 8, 512);
    world_open(&w);
    for (int i = 0; i < 16; i++) world_add(&w, 1 + (uint64_t)i / 8, 0, 100, 20);
    world_run(&w);
    int32_t n = 0;
    for (int i = 8; i < 16; i++) n += w.clients[i].start < 8;
    assert_int_equal(n, 4);
    world_close(&w);
}

/* Prompts that are cancelled before they are read cost nothing. */
static void cancelled_prompts_are_paid_back(void **state)
{
    (void)state;
    world w;
    plain_world(&w, 1, 2048);
    world_open(&w);
    for (int i = 0; i < 10; i++) {
        client *c = world_add(&w, 1, 0, 2000, 10);
        c->arrival_us = 1000000 * (uint64_t)i;
        c->cancel_us = c->arrival_us + 1;
    }
    for (int i = 0; i < 40; i++) world_add(&w, 2 - (uint64_t)i % 2, 0, 50, 20)->arrival_us = 20000000;
    world_run(&w);
    for (int i = 0; i < 40; i++) assert_in_range(w.clients[10 + i].start, 10 + i - 10, 10 + i + 10);
    world_close(&w);
}

/* New names all the time, each with one request: who has used much already gets its turn nevertheless. */
static int new_names(world *w)
{
    int32_t named = 0;
    for (int32_t i = 0; i < w->n_clients; i++) named += w->clients[i].tenant != 1 && !w->clients[i].finished;
    for (; named < 6; named++) world_add(w, 3 + 8 * (uint64_t)w->n_clients, 0, 20, 20);
    return n_pending(w, 1) > 0 && w->n_clients < MAX_CLIENTS - 10;
}

static void new_names_overtake_nobody_for_ever(void **state)
{
    (void)state;
    world w;
    plain_world(&w, 2, 512);
    world_open(&w);
    for (int i = 0; i < 4; i++) world_add(&w, 1, 0, 400, 100); /* alone at first: it gets ahead of the others */
    for (int i = 0; i < 10; i++) world_add(&w, 1, 0, 100, 100)->arrival_us = 9000000;
    w.tick = new_names;
    world_run(&w);
    assert_int_equal(n_pending(&w, 1), 0);
    assert_in_range((int)(1000 * w.served[1] / (w.served[1] + w.served[3])), 120, 200); /* one of seven */
    world_close(&w);
}

static int keep_high(world *w)
{
    while (n_pending(w, 2) < 12) world_add(w, 2, 5, 30, 30);
    return n_pending(w, 1) > 0 && w->n_clients < MAX_CLIENTS - 20;
}

/* Low priority waits while high ones flood, but not for ever; and high ones do go first. */
static void low_priority_is_late_but_not_starved(void **state)
{
    (void)state;
    world w;
    plain_world(&w, 2, 128);
    w.tick = keep_high;
    world_open(&w);
    client *low = world_add(&w, 1, 0, 60, 10), *mid = world_add(&w, 1, 3, 60, 10);
    world_run(&w);
    assert_true(low->finished && low->why == WEFT__SCHED_LENGTH && low->start > mid->start);
    assert_in_range(mid->start, 8, 16); /* passed over eight times, and for two seconds */
    assert_in_range(low->start, 20, 36);
    assert_true(low->began_us >= 5000000);
    world_close(&w);
}

static int two_levels(world *w)
{
    while (n_pending(w, 1) < 10) world_add(w, 1, 1, 20, 20);
    while (n_pending(w, 2) < 10) world_add(w, 2, 0, 20, 20);
    return w->n_clients < 500;
}

/* Where starts are rarer than age_us, a level above still gets four starts for one. */
static void levels_do_not_just_take_turns(void **state)
{
    (void)state;
    world w;
    plain_world(&w, 1, 512);
    w.limits.age_us = 1;
    w.tick = two_levels;
    world_open(&w);
    world_run(&w);
    assert_in_range((int)(100 * w.served[1] / w.served[2]), 380, 420);
    world_close(&w);
}

static int long_prompts_and_short_ones(world *w)
{
    while (n_pending(w, 1) < 10) world_add(w, 1, 0, 2000, 2);
    while (n_pending(w, 3) < 1) world_add(w, 3, 0, 10, 2000);
    if (w->steps % 50 == 0) world_add(w, 2, 0, 200, 1);
    return w->now_us < 30000000;
}

/* Ten long prompts of one tenant are being read, while somebody decodes: a short one of another tenant is read between
 * them. */
static void prompts_of_tenants_take_turns(void **state)
{
    (void)state;
    world w;
    plain_world(&w, 14, 4096);
    w.limits.age_us = 50000;
    w.tick = long_prompts_and_short_ones;
    world_open(&w);
    world_run(&w);
    uint64_t longest = 0;
    for (int32_t i = 0; i < w.n_clients; i++) {
        const client *c = &w.clients[i];
        uint64_t took = c->finished_us - c->arrival_us;
        if (c->tenant == 2 && c->why == WEFT__SCHED_LENGTH && took > longest) longest = took;
    }
    assert_true(longest > 0 &&
                longest < 400000); /* four chunks of 23 ms, as many of others between, and a step to start */
    world_close(&w);
}

static int keep_high_prompts(world *w)
{
    while (n_pending(w, 2) < 8) world_add(w, 2, 7, 500, 1);
    return n_pending(w, 1) > 0 && w->n_clients < 1000;
}

/* It has a place, but higher ones always have prompts to read. */
static void started_prompts_of_low_priority_are_read(void **state)
{
    (void)state;
    world w;
    plain_world(&w, 4, 512);
    world_open(&w);
    client *low = world_add(&w, 1, 0, 500, 1);
    world_arrivals(&w);
    w.tick = keep_high_prompts;
    world_run(&w);
    assert_true(low->finished && low->why == WEFT__SCHED_LENGTH);
    world_close(&w);
}

static int keep_high_and_steady(world *w)
{
    while (n_pending(w, 2) < 12) world_add(w, 2, 7, 60, 60);
    return n_pending(w, 1) > 0 && w->n_clients < 1000;
}

/* Preempted once, it needs a good part of the memory again, and higher ones would always take what becomes free. */
static void preempted_requests_resume_under_a_flood(void **state)
{
    (void)state;
    world w;
    plain_world(&w, 8, 256);
    w.limits.reserve = 0;
    w.total[0] = 45;
    world_open(&w);
    client *low = world_add(&w, 1, -8, 150, 100);
    world_arrivals(&w);
    w.tick = keep_high_and_steady;
    world_run(&w);
    assert_true(low->n_preempted > 0 && low->why == WEFT__SCHED_LENGTH && low->sampled == 100);
    world_close(&w);
}

/* A request that was promised memory and is cancelled before it took any makes room at once. */
static void promises_end_with_their_request(void **state)
{
    (void)state;
    world w;
    plain_world(&w, 4, 512);
    w.total[0] = 40;
    w.limits.chunk = 1;
    world_open(&w);
    world_add(&w, 1, 0, 10, 100);                /* decodes, so that prompts are read slowly */
    world_add(&w, 1, 0, 100, 1)->arrival_us = 1; /* is being read */
    client *promised = world_add(&w, 1, 0, 300, 1), *next = world_add(&w, 1, 0, 300, 1);
    promised->arrival_us = next->arrival_us = 2;
    promised->cancel_us = 400000;
    world_run(&w);
    assert_true(promised->why == WEFT__SCHED_CANCELLED && promised->n_rows == 0 &&
                next->began_us == promised->finished_us);
    world_close(&w);
}

static int keep_high_and_big(world *w)
{
    while (n_pending(w, 2) < 6) world_add(w, 2, 7, between(w, 10, 60), between(w, 40, 190));
    return n_pending(w, 1) > 0 && w->n_clients < MAX_CLIENTS - 20;
}

/* Memory for two and a half requests, and a flood of higher ones that grow: the low one is preempted, and finishes none
 * the less. */
static void preempted_requests_finish_under_a_flood(void **state)
{
    (void)state;
    int32_t n_preempted = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        world w;
        plain_world(&w, 6, 256);
        weft__rng_seed(&w.rng, seed);
        w.limits.reserve = 0;
        w.total[0] = 40;
        w.tick = keep_high_and_big;
        world_open(&w);
        client *low = world_add(&w, 1, -8, 100, 150);
        world_run(&w);
        assert_true(low->finished && low->why == WEFT__SCHED_LENGTH && low->sampled == 150);
        n_preempted += low->n_preempted;
        world_close(&w);
    }
    assert_true(n_preempted > 20);
}

static int keep_small(world *w)
{
    while (n_pending(w, 2) < 10) world_add(w, 2, 0, 10, between(w, 20, 40));
    return n_pending(w, 1) > 0 && w->n_clients < MAX_CLIENTS - 20;
}

/* A request that needs nearly all pages, among small ones that always find some. */
static void big_requests_get_in_among_small_ones(void **state)
{
    (void)state;
    world w;
    plain_world(&w, 8, 512);
    w.total[0] = 34;
    w.tick = keep_small;
    world_open(&w);
    client *big = world_add(&w, 1, 0, 480, 32);
    big->arrival_us = 1000000;
    world_run(&w);
    assert_true(big->finished && big->why == WEFT__SCHED_LENGTH && big->n_preempted == 0);
    assert_true(big->began_us - big->arrival_us < 2000000);
    world_close(&w);
}

/* Sixteen requests with one prompt at once: it is computed once, since the others look again when it is their turn. */
static void siblings_share_a_prompt_that_is_being_read(void **state)
{
    (void)state;
    world w;
    plain_world(&w, 16, 1024);
    world_open(&w);
    for (int i = 0; i < 16; i++) world_add(&w, 1, 0, 801, 20)->n_shared = 800;
    world_run(&w);
    weft__sched_stats stats;
    weft__sched_get_stats(w.sched, &stats);
    assert_true(stats.prompt_rows < 801 + 15 * 40 && stats.cached_tokens > 15 * 760);
    world_close(&w);
}

/* As above, but memory holds the prompt only twice: when it was read, those who share it fit, and need not wait for an
 * end. */
static void waiting_siblings_start_when_their_prompt_was_read(void **state)
{
    (void)state;
    world w;
    plain_world(&w, 16, 1024);
    w.total[0] = 2 * 51 + 14 * 3;
    world_open(&w);
    for (int i = 0; i < 16; i++) world_add(&w, 1, 0, 801, 20)->n_shared = 800;
    world_run(&w);
    uint64_t first_end = UINT64_MAX;
    for (int32_t i = 0; i < 16; i++)
        if (w.clients[i].finished_us < first_end) first_end = w.clients[i].finished_us;
    for (int32_t i = 0; i < 16; i++) assert_true(w.clients[i].began_us < first_end);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_workloads_keep_every_promise),
        cmocka_unit_test(random_workloads_run_on_the_real_pool),
        cmocka_unit_test(saturating_tenants_get_equal_shares),
        cmocka_unit_test(light_tenants_are_served_at_once),
        cmocka_unit_test(newcomers_neither_starve_nor_are_starved),
        cmocka_unit_test(use_of_idle_places_is_not_held_against_anybody),
        cmocka_unit_test(free_places_are_dealt_in_turn),
        cmocka_unit_test(cancelled_prompts_are_paid_back),
        cmocka_unit_test(levels_do_not_just_take_turns),
        cmocka_unit_test(prompts_of_tenants_take_turns),
        cmocka_unit_test(started_prompts_of_low_priority_are_read),
        cmocka_unit_test(preempted_requests_resume_under_a_flood),
        cmocka_unit_test(promises_end_with_their_request),
        cmocka_unit_test(new_names_overtake_nobody_for_ever),
        cmocka_unit_test(low_priority_is_late_but_not_starved),
        cmocka_unit_test(preempted_requests_finish_under_a_flood),
        cmocka_unit_test(big_requests_get_in_among_small_ones),
        cmocka_unit_test(siblings_share_a_prompt_that_is_being_read),
        cmocka_unit_test(waiting_siblings_start_when_their_prompt_was_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
