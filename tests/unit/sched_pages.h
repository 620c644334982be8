// SPDX-License-Identifier: Apache-2.0
/* sched_pages.h: the books of a world for the scheduler (sched_world.h), and its store: one that counts pages, keeps
 * what was preempted where the seed says so, and brings it back at once, later, or not at all. */
#ifndef WEFT_TESTS_SCHED_PAGES_H
#define WEFT_TESTS_SCHED_PAGES_H

#include "unit/fixture.h"

#include "base/random.h"
#include "kv/kv.h"
#include "sched/parts.h"

enum { MAX_GROUPS = 2, MAX_CLIENTS = 4096, MAX_FAMILIES = 4, MAX_CHAIN = 256 };

typedef struct client {
    /* What it asks for. */
    uint64_t tenant, deadline_us, cancel_us, arrival_us;
    int32_t priority, n_prompt, max_new, n_real; /* n_real <= max_new: tokens until its end token */
    int32_t family, n_shared;                    /* the first n_shared prompt tokens are those of its family */
    /* What became of it. */
    uint64_t id, began_us, finished_us, start;
    int32_t tries, order, sampled, n_rows, n_preempted, n_highest; /* n_highest: tokens ever computed or found */
    int accepted, began, finished, cancelled, decoding, waiting;
    uint64_t cancel_step;
    weft__sched_why why;
    weft_status status;
    /* Its sequence. */
    int32_t length, pinned; /* tokens; pages of the family's chain */
    int32_t own[MAX_GROUPS], gone[MAX_GROUPS], swapped;
    int32_t coming, n_later; /* tokens that the store brings back, in so many calls */
    int copies; /* the last pinned page is in part somebody else's: it must be copied before more is written */
    weft__kv_seq *seq;
} client;

typedef struct world {
    uint64_t seed, now_us, n_starts, steps;
    weft__rng rng;
    weft__sched *sched;
    weft__sched_limits limits;
    weft_kv_group groups[MAX_GROUPS];
    int32_t n_groups;
    int64_t total[MAX_GROUPS], unused[MAX_GROUPS];
    /* cached pages of a family, and how many sequences hold each */
    int32_t chain[MAX_FAMILIES], pins[MAX_FAMILIES][MAX_CHAIN];
    int partial, swaps; /* prefixes end inside of pages; contents are kept */
    double io_failures;
    double put_offs;     /* of tokens, that are sampled a step later */
    double drafts;       /* of tokens, behind which others are guessed */
    int hook_cancels;    /* some clients cancel when they begin */
    int64_t lie;         /* pages that the store has only in its words */
    weft__kv_pool *pool; /* the real pool instead of counts */
    client *clients;
    int32_t n_clients, n_accepted, n_finished, n_preemptions;
    int32_t step_preemptions; /* during one weft__sched_next */
    int in_next;
    double served[8];             /* by tenant, weighted */
    int (*tick)(struct world *w); /* before each step: more clients; 0: enough, stop */
} world;

#define CHECK(w, condition)                                                                                            \
    do {                                                                                                               \
        if (condition) break;                                                                                          \
        weft__alloc_set_gate(NULL, NULL);                                                                              \
        fail_msg("seed %llu, step %llu: %s", (unsigned long long)(w)->seed, (unsigned long long)(w)->steps,            \
                 #condition);                                                                                          \
    } while (0)

static inline int32_t between(world *w, int32_t a, int32_t b)
{
    return a + (int32_t)weft__rng_below(&w->rng, (uint64_t)(b - a + 1));
}

static inline int32_t at_most(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* ---- the store ---- */

static inline int32_t pages_of(const world *w, int32_t g, int32_t n)
{
    return (n + w->groups[g].page_tokens - 1) / w->groups[g].page_tokens;
}

static int64_t store_capacity(void *arg, int32_t g)
{
    world *w = arg;
    return w->total[g] + w->lie;
}

static int64_t store_available(void *arg, int32_t g)
{
    world *w = arg;
    if (w->pool) return weft__kv_pool_free_pages(w->pool, g);
    int64_t n = w->unused[g] + w->lie;
    for (int f = 0; g == 0 && f < MAX_FAMILIES; f++)
        for (int32_t p = w->chain[f] - 1; p >= 0 && w->pins[f][p] == 0; p--) n++;
    return n;
}

static int64_t store_pages(void *arg, void *user, int32_t g, int32_t n)
{
    world *w = arg;
    (void)user;
    return weft__kv_pages_needed(&w->groups[g], n, w->limits.step_rows);
}

static int64_t pages_held(const world *w, const client *c, int32_t g)
{
    if (!w->pool) return c->own[g] - c->gone[g] + (g == 0 ? c->pinned : 0);
    weft_seq_view view = weft__kv_seq_view(c->seq);
    int64_t n = 0;
    for (int32_t p = 0; p < view.n_pages[g]; p++) n += view.pages[g][p] >= 0;
    return n;
}

static int64_t store_more(void *arg, void *user, int32_t g, int32_t n)
{
    world *w = arg;
    client *c = user;
    int64_t more = store_pages(w, user, g, n) - pages_held(w, c, g);
    return (more > 0 ? more : 0) + (c->copies && g == 0);
}

static int take_page(world *w, int32_t g)
{
    for (int f = 0; w->unused[g] == 0 && g == 0 && f < MAX_FAMILIES; f++)
        if (w->chain[f] > 0 && w->pins[f][w->chain[f] - 1] == 0) {
            w->chain[f]--;
            w->unused[0]++;
        }
    if (w->unused[g] == 0) return 0;
    w->unused[g]--;
    return 1;
}

static int32_t store_match(void *arg, void *user, int32_t n_max)
{
    world *w = arg;
    client *c = user;
    int32_t size = w->groups[0].page_tokens, n = at_most(at_most(n_max, c->n_shared), w->chain[c->family] * size);
    CHECK(w, w->in_next && !c->finished && c->n_rows == 0 && n_max == c->n_prompt + c->sampled - 1);
    if (w->pool) return 0;
    if (!w->partial) n = n / size * size;
    if (n <= c->length) return c->length;
    CHECK(w, c->own[0] == 0); /* nothing was computed */
    for (; c->pinned < pages_of(w, 0, n); c->pinned++) w->pins[c->family][c->pinned]++;
    c->copies = n % size != 0;
    return c->length = n;
}

/* A sliding window lets go of pages that no later token sees. */
static void drop_window(world *w, client *c, int32_t g)
{
    int32_t oldest = c->length - w->groups[g].window + 1;
    if (w->groups[g].window == 0 || oldest < 0) return;
    int32_t gone = oldest / w->groups[g].page_tokens;
    if (gone > c->own[g]) gone = c->own[g];
    w->unused[g] += gone - c->gone[g];
    c->gone[g] = gone;
}

static int grow(world *w, client *c, int32_t g, int32_t n)
{
    drop_window(w, c, g);
    for (; c->own[g] + (g == 0 ? c->pinned : 0) < pages_of(w, g, n); c->own[g]++)
        if (!take_page(w, g)) return 0;
    return 1;
}

static void unpin_last(world *w, client *c)
{
    w->pins[c->family][--c->pinned]--;
}

static weft_status store_reserve(void *arg, void *user, int32_t n, weft_error *err)
{
    world *w = arg;
    client *c = user;
    CHECK(w, w->in_next && c->began && !c->finished && n > c->length && n <= c->n_prompt + c->sampled);
    if (w->io_failures > 0 && weft__rng_double(&w->rng) < w->io_failures) return weft_fail(err, WEFT_IO, "the disk");
    if (w->pool) return weft__kv_seq_reserve(c->seq, n - weft__kv_seq_length(c->seq), err);
    if (c->copies) {
        if (!take_page(w, 0)) return weft_fail(err, WEFT_LIMIT, "no page to copy to");
        unpin_last(w, c);
        c->own[0]++;
        c->copies = 0;
    }
    int32_t had[MAX_GROUPS];
    memcpy(had, c->own, sizeof had);
    for (int32_t g = 0; g < w->n_groups; g++) {
        if (grow(w, c, g, n)) continue;
        for (; g >= 0; g--) {
            w->unused[g] += c->own[g] - had[g];
            c->own[g] = had[g];
        }
        return weft_fail(err, WEFT_LIMIT, "no page");
    }
    return WEFT_OK;
}

/* What was computed of the family's prefix becomes known, as far as the chain lacks it. */
static void publish(world *w, client *c, int keep)
{
    int32_t size = w->groups[0].page_tokens, end = at_most(c->length, c->n_shared);
    while (!w->pool && !c->copies && c->own[0] > 0 && w->chain[c->family] == c->pinned &&
           (c->pinned + 1) * size <= end) {
        w->chain[c->family]++;
        c->own[0]--;
        w->pins[c->family][c->pinned++] = 1;
    }
    while (!keep && c->pinned > 0) unpin_last(w, c);
}

static int32_t level_of(int32_t priority)
{
    return priority < WEFT__SCHED_PRIORITY_MIN ? WEFT__SCHED_PRIORITY_MIN : at_most(priority, WEFT__SCHED_PRIORITY_MAX);
}

static int32_t rank_of(const client *c)
{
    return at_most(level_of(c->priority) + 4 * c->n_preempted, WEFT__SCHED_PRIORITY_MAX);
}

/* The scheduler's record of a request that has not finished. */
static const sched_request *record_of(const world *w, const client *c)
{
    return &w->sched->requests[(uint32_t)c->id - 1];
}

static int runs(const world *w, const client *c)
{
    return c->began && !c->finished && record_of(w, c)->state != WEFT__SCHED_WAITING;
}

static void check_victim(world *w, const client *c)
{
    for (int32_t i = 0; i < w->n_clients; i++) {
        const client *o = &w->clients[i];
        if (o == c || !runs(w, o)) continue;
        CHECK(w, rank_of(o) > rank_of(c) || (rank_of(o) == rank_of(c) && o->start < c->start));
    }
}

static int store_release(void *arg, void *user, weft__sched_release how)
{
    world *w = arg;
    client *c = user;
    int kept = how == WEFT__SCHED_PREEMPTED && w->swaps && (c->coming || (weft__rng_u64(&w->rng) & 1));
    CHECK(w, !c->finished && (c->began || how == WEFT__SCHED_DETACHED));
    if (how == WEFT__SCHED_PREEMPTED) {
        CHECK(w, w->in_next);
        check_victim(w, c);
        c->n_preempted++;
        c->waiting = 1;
        w->n_preemptions++;
        w->step_preemptions++;
    }
    if (kept) c->swapped = c->coming ? c->coming : c->length;
    if (how == WEFT__SCHED_FINISHED) c->swapped = 0;
    c->coming = 0;
    publish(w, c, 0);
    for (int32_t g = 0; g < w->n_groups; g++) {
        if (!w->pool) w->unused[g] += c->own[g] - c->gone[g];
        c->own[g] = c->gone[g] = 0;
    }
    if (w->pool) weft__kv_seq_trim(c->seq, 0);
    c->length = c->n_rows = c->copies = c->decoding = 0;
    return kept;
}

/* What is on its way has its pages, and no rows (check_items). */
static int32_t restore_later(world *w, client *c)
{
    CHECK(w, c->coming > 0 && c->length == 0);
    if (--c->n_later > 0) return WEFT__SCHED_LATER;
    c->length = weft__rng_below(&w->rng, 8) ? c->coming : 0; /* or the disk failed, after all */
    for (int32_t g = 0; c->length == 0 && g < w->n_groups; g++) {
        w->unused[g] += c->own[g] - c->gone[g];
        c->own[g] = c->gone[g] = 0;
    }
    while (c->length == 0 && c->pinned > 0) unpin_last(w, c);
    c->coming = c->copies = 0;
    return c->length;
}

static int32_t store_restore(void *arg, void *user, int32_t n_max)
{
    world *w = arg;
    client *c = user;
    if (c->coming) return restore_later(w, c);
    int32_t n = at_most(c->swapped, n_max);
    CHECK(w, c->swapped > 0 || c->n_preempted > 0);
    c->swapped = 0;
    if (n <= c->length || weft__rng_below(&w->rng, 8) == 0) return c->length; /* the disk failed: computed again */
    for (int32_t g = 0; g < w->n_groups; g++)                                 /* of a window, what later tokens see */
        if (w->groups[g].window > 0 && n > w->groups[g].window)
            c->own[g] = c->gone[g] = (n - w->groups[g].window + 1) / w->groups[g].page_tokens;
    if (store_reserve(w, c, n, NULL)) return c->length;
    if (weft__rng_u64(&w->rng) & 1) return c->length = n;
    c->length = 0;
    c->coming = n;
    c->n_later = between(w, 1, 5);
    return WEFT__SCHED_LATER;
}

/* Does all that runs wait for the store? */
static inline int only_coming(const world *w)
{
    int n = 0;
    for (int32_t i = 0; i < w->n_clients; i++) {
        const client *c = &w->clients[i];
        if (!c->accepted || c->finished || !runs(w, c)) continue;
        if (!c->coming) return 0;
        n++;
    }
    return n > 0;
}

#endif
