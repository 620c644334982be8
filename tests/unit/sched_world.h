// SPDX-License-Identifier: Apache-2.0
/* sched_world.h: a world for the scheduler without a model: clients, a clock that a cost model advances, and a store
 * that counts pages (sched_pages.h). It holds every step against what sched.h promises, from its own books; a breach
 * ends the test and names the seed. */
#ifndef WEFT_TESTS_SCHED_WORLD_H
#define WEFT_TESTS_SCHED_WORLD_H

#include "unit/sched_pages.h"

/* ---- hooks ---- */

static int64_t target_of(const world *w, const client *c)
{
    int32_t most = c->n_prompt + (c->max_new > 0 ? c->max_new - 1 : 0), known = c->n_prompt + c->sampled;
    return w->limits.reserve < most - known ? known + w->limits.reserve : most;
}

/* All that run can still have what they were promised. */
static void check_promises(world *w)
{
    for (int32_t g = 0; g < w->n_groups; g++) {
        int64_t room = store_available(w, g);
        for (int32_t i = 0; i < w->n_clients; i++) {
            client *c = &w->clients[i];
            if (runs(w, c)) room -= store_more(w, c, g, (int32_t)target_of(w, c));
        }
        CHECK(w, room >= 0);
    }
}

static void cancel(world *w, client *c)
{
    if (!c->cancelled) c->cancel_step = w->steps;
    c->cancelled = 1;
    weft__sched_cancel(w->sched, c->id);
}

static void began(void *arg, void *user)
{
    world *w = arg;
    client *c = user;
    CHECK(w, w->in_next && c->accepted && !c->began && !c->finished);
    c->began = 1;
    c->began_us = w->now_us;
    c->start = w->n_starts++;
    for (int32_t i = 0; i < w->n_clients; i++) {
        const client *o = &w->clients[i];
        CHECK(w, !o->waiting || o->finished || runs(w, o) ||
                     rank_of(o) < level_of(c->priority)); /* preempted ones first */
        if (o->accepted && !o->began && !o->finished && o->tenant == c->tenant &&
            level_of(o->priority) == level_of(c->priority))
            CHECK(w, o->order > c->order);
    }
    if (!w->lie) check_promises(w);
    if (w->hook_cancels && weft__rng_below(&w->rng, 8) == 0) cancel(w, c);
}

static void finished(void *arg, void *user, weft__sched_why why, const weft_error *err)
{
    world *w = arg;
    client *c = user;
    CHECK(w, c->accepted && !c->finished);
    CHECK(w, (why == WEFT__SCHED_FAILED) == (err != NULL));
    CHECK(w, why != WEFT__SCHED_LENGTH || c->sampled == c->max_new);
    CHECK(w, why != WEFT__SCHED_ENDED || c->sampled == c->n_real);
    CHECK(w, why != WEFT__SCHED_CANCELLED || c->cancelled);
    CHECK(w, why != WEFT__SCHED_TIMEOUT || (c->deadline_us > 0 && c->deadline_us <= w->now_us));
    for (int32_t g = 0; g < w->n_groups; g++) CHECK(w, pages_held(w, c, g) == 0);
    c->finished = 1;
    c->finished_us = w->now_us;
    c->why = why;
    c->status = err ? (weft_status)err->status : WEFT_OK;
    w->n_finished++;
}

/* ---- clients and steps ---- */

static inline void world_open(world *w)
{
    weft__sched_store store = {w,          w->n_groups, store_capacity, store_available, store_pages,
                               store_more, store_match, store_reserve,  store_release,   store_restore};
    weft__sched_hooks hooks = {w, began, finished};
    for (int32_t g = 0; g < w->n_groups; g++) w->unused[g] = w->total[g];
    w->clients = weft__alloc_zero(MAX_CLIENTS, sizeof *w->clients);
    assert_non_null(w->clients);
    assert_int_equal(weft__sched_create(&w->limits, &store, &hooks, &w->sched, NULL), WEFT_OK);
}

/* Nobody is left, and no page is missing. */
static inline void world_close(world *w)
{
    weft__sched_stats stats;
    weft__sched_get_stats(w->sched, &stats);
    CHECK(w, stats.n_queued + stats.n_prefilling + stats.n_decoding + stats.n_preempted == 0 && stats.n_tenants == 0);
    CHECK(w, w->n_finished == w->n_accepted && stats.submitted == (uint64_t)w->n_accepted);
    for (int32_t g = 0; g < w->n_groups; g++) {
        int64_t cached = 0;
        for (int f = 0; g == 0 && f < MAX_FAMILIES; f++)
            for (int32_t p = 0; p < w->chain[f]; p++, cached++) CHECK(w, w->pins[f][p] == 0);
        CHECK(w, w->unused[g] + cached == w->total[g]);
        if (w->pool) CHECK(w, weft__kv_pool_free_pages(w->pool, g) == w->total[g]);
    }
    weft__sched_destroy(&w->sched);
    for (int32_t i = 0; i < w->n_clients; i++) weft__kv_seq_destroy(&w->clients[i].seq);
    weft__kv_pool_destroy(&w->pool);
    weft__free(w->clients);
}

static inline client *world_add(world *w, uint64_t tenant, int32_t priority, int32_t n_prompt, int32_t max_new)
{
    CHECK(w, w->n_clients < MAX_CLIENTS);
    client *c = &w->clients[w->n_clients++];
    *c = (client){.tenant = tenant,
                  .priority = priority,
                  .n_prompt = n_prompt,
                  .max_new = max_new,
                  .n_real = max_new,
                  .arrival_us = w->now_us};
    if (w->pool) assert_int_equal(weft__kv_seq_create(w->pool, w->limits.n_ctx, &c->seq, NULL), WEFT_OK);
    return c;
}

/* Submits; on WEFT_BUSY the client comes back when it was told to. */
static inline weft_status world_submit(world *w, client *c)
{
    weft__sched_request q = {c, c->tenant, c->priority, c->n_prompt, c->max_new, c->deadline_us};
    double retry = -1;
    weft_status st = weft__sched_submit(w->sched, &q, w->now_us, &c->id, &retry, NULL);
    CHECK(w, (st == WEFT_OK) == (c->id != 0));
    c->tries++;
    c->accepted = st == WEFT_OK;
    c->order = w->n_accepted;
    w->n_accepted += c->accepted;
    if (st == WEFT_BUSY) {
        CHECK(w, retry >= 0.1 && retry <= 600);
        c->arrival_us = w->now_us + (uint64_t)(retry * 1e6) + 1;
    }
    return st;
}

/* Submissions and cancellations that are due. */
static inline void world_arrivals(world *w)
{
    for (int32_t i = 0; i < w->n_clients; i++) {
        client *c = &w->clients[i];
        if (!c->accepted && !c->finished && c->arrival_us <= w->now_us) {
            weft_status st = world_submit(w, c);
            CHECK(w, st == WEFT_OK || st == WEFT_BUSY);
        }
        if (c->accepted && !c->finished && !c->cancelled && c->cancel_us && c->cancel_us <= w->now_us) cancel(w, c);
    }
}

static inline void check_plan(world *w, const weft__sched_plan *plan)
{
    int32_t n_rows = 0, n_prompt = 0, n_decode = 0, decoding = 0, resumed = 0;
    for (int32_t k = 0; k < plan->n_items; k++) {
        const weft__sched_item *item = &plan->items[k];
        client *c = item->user;
        CHECK(w, item->id == c->id && runs(w, c) && item->n > 0 && !c->coming);
        CHECK(w, item->first == c->length && item->first + item->n <= c->n_prompt + c->sampled);
        CHECK(w, item->sample == (c->max_new > 0 && item->first + item->n == c->n_prompt + c->sampled));
        CHECK(w, item->decode == c->decoding && (!item->decode || item->n == 1));
        CHECK(w, k == 0 || item->decode <= plan->items[k - 1].decode);
        for (int32_t j = 0; j < k; j++) CHECK(w, plan->items[j].id != item->id);
        for (int32_t g = 0; g < w->n_groups && !w->pool; g++)
            CHECK(w, c->own[g] + (g == 0 ? c->pinned : 0) >= pages_of(w, g, item->first + item->n));
        n_rows += item->n;
        *(item->decode ? &n_decode : &n_prompt) += item->n;
    }
    CHECK(w, n_rows == plan->n_rows && n_prompt == plan->n_prompt_rows && n_rows <= w->limits.step_rows);
    CHECK(w, n_decode == 0 || n_prompt <= w->limits.chunk);
    for (int32_t i = 0; i < w->n_clients; i++) {
        client *c = &w->clients[i];
        if (!c->accepted || c->finished) continue;
        if (c->waiting && runs(w, c)) resumed += c->waiting--;
        decoding += c->decoding;
        CHECK(w, plan->n_items > 0 || only_coming(w));                              /* else it would never be served */
        CHECK(w, !c->cancelled || (w->hook_cancels && c->cancel_step == w->steps)); /* within one step */
        CHECK(w, c->deadline_us == 0 || c->deadline_us > w->now_us);
    }
    CHECK(w, decoding == n_decode);
    CHECK(w, w->limits.reserve < w->limits.n_ctx || w->partial || w->n_preemptions == 0);
    if (resumed && w->step_preemptions == 0 && !w->lie && !w->partial) check_promises(w);
}

/* Rows of drafts, for which there is room and memory. */
static inline void world_draft(world *w, const weft__sched_plan *plan)
{
    for (int32_t k = 0; k < plan->n_items && w->drafts > 0; k++) {
        const client *c = plan->items[k].user;
        int32_t room = weft__sched_draft_room(w->sched, k), before = plan->n_rows;
        CHECK(w, plan->items[k].decode || room == 0);
        CHECK(w, room <= w->limits.step_rows - plan->n_rows && room <= c->max_new - c->sampled - plan->items[k].decode);
        if (room < 1 || weft__rng_double(&w->rng) > w->drafts) continue;
        int32_t n = 1 + (int32_t)weft__rng_below(&w->rng, (uint64_t)(room < 8 ? room : 8));
        for (int32_t g = 0; g < w->n_groups && !w->pool; g++)
            while (n > 0 && c->own[g] + (g == 0 ? c->pinned : 0) < pages_of(w, g, c->length + 1 + n)) n--;
        if (n < 1) continue;
        if (w->pool && weft__kv_seq_reserve(c->seq, 1 + n, NULL)) {
            assert_int_equal(weft__kv_seq_reserve(c->seq, 1, NULL), WEFT_OK); /* what it has let go of just now */
            continue;
        }
        weft__sched_draft(w->sched, k, n);
        CHECK(w, plan->items[k].n == 1 + n && plan->items[k].n_draft == n && plan->n_rows == before + n);
    }
}

/* As many as the sampler agreed with; no more than the answer has. */
static inline void keep_drafts(world *w, const weft__sched_item *item, int sample)
{
    const client *c = item->user;
    int32_t most = c->n_real - c->sampled - 1, n = (int32_t)weft__rng_below(&w->rng, (uint64_t)item->n_draft + 1);
    weft__sched_drafted(w->sched, c->id, !sample || most < 0 ? 0 : at_most(n, most));
}

static inline void compute(world *w, const weft__sched_plan *plan)
{
    for (int32_t k = 0; k < plan->n_items; k++) {
        client *c = plan->items[k].user;
        if (c->n_highest < c->length) c->n_highest = c->length;
        int32_t fresh = at_most(c->length + plan->items[k].n, c->n_prompt) - c->n_highest;
        if (fresh > 0) w->served[c->tenant & 7] += fresh;
        int sample = plan->items[k].sample && !(w->put_offs > 0 && weft__rng_double(&w->rng) < w->put_offs);
        const int drafted = plan->items[k].n_draft > 0;
        if (drafted) keep_drafts(w, &plan->items[k], sample);
        if (sample != plan->items[k].sample) {
            weft__sched_defer(w->sched, c->id);
            CHECK(w, !plan->items[k].sample);
        }
        c->length += plan->items[k].n;
        c->n_rows += plan->items[k].n;
        if (c->n_highest < c->length) c->n_highest = c->length;
        if (w->pool) weft__kv_seq_advance(c->seq, plan->items[k].n);
        if (w->pool && drafted) weft__kv_seq_trim(c->seq, c->length);
        if (!plan->items[k].decode) publish(w, c, 1);
        if (!plan->items[k].sample) continue;
        c->decoding = 1;
        c->sampled += 1 + plan->items[k].n_draft;
        w->served[c->tenant & 7] += w->limits.decode_cost * (1 + plan->items[k].n_draft);
        if (c->sampled == c->n_real && c->n_real < c->max_new) weft__sched_end(w->sched, c->id);
    }
}

/* One step; 0 when nobody was there. A decode row reads all weights once for the step; a prompt row costs its
 * multiplications. */
static inline int world_step(world *w)
{
    w->step_preemptions = 0;
    w->in_next = 1;
    const weft__sched_plan *plan = weft__sched_next(w->sched, w->now_us);
    w->in_next = 0;
    check_plan(w, plan);
    if (plan->n_items == 0) {
        w->now_us += 1000;
        return only_coming(w);
    }
    world_draft(w, plan);
    w->now_us += 10000 + 200 * (uint64_t)plan->n_prompt_rows + 300 * (uint64_t)(plan->n_rows - plan->n_prompt_rows);
    world_arrivals(w); /* while the step is computed */
    compute(w, plan);
    weft__sched_done(w->sched, w->now_us);
    w->steps++;
    return 1;
}

/* Until everybody is finished, or w->tick says stop (then all are cancelled). */
static inline void world_run(world *w)
{
    for (;;) {
        if (w->tick && !w->tick(w)) break;
        world_arrivals(w);
        if (world_step(w)) continue;
        uint64_t next = UINT64_MAX;
        for (int32_t i = 0; i < w->n_clients; i++) {
            const client *c = &w->clients[i];
            if (!c->accepted && !c->finished && c->arrival_us < next) next = c->arrival_us;
        }
        if (next == UINT64_MAX && !w->tick) return;
        w->now_us = next == UINT64_MAX || next <= w->now_us ? w->now_us + 1000 : next;
    }
    for (int32_t i = 0; i < w->n_clients; i++) w->clients[i].cancelled = w->clients[i].accepted;
    weft__sched_cancel_all(w->sched);
    assert_int_equal(world_step(w), 0);
}

/* One group of plenty of memory, n_slots places, room in the queue. */
static inline void plain_world(world *w, int32_t n_slots, int32_t n_ctx)
{
    *w = (world){.n_groups = 1};
    weft__rng_seed(&w->rng, 7);
    w->limits = (weft__sched_limits){.n_slots = n_slots,
                                     .step_rows = 256,
                                     .chunk = 64,
                                     .max_queue = 200,
                                     .n_ctx = n_ctx,
                                     .reserve = 32,
                                     .decode_cost = 2,
                                     .age_us = 1000000};
    w->groups[0] = (weft_kv_group){
        .kind = WEFT_KV_FULL, .n_layers = 1, .n_kv_heads = 1, .head_dim_k = 4, .head_dim_v = 4, .page_tokens = 16};
    w->total[0] = (int64_t)n_slots * (n_ctx / 16 + 1);
}

#endif
