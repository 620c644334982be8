// SPDX-License-Identifier: Apache-2.0
/* memory.c: which request starts, and which gives its pages up.
 * Invariant: running and preempted requests together are at most n_slots, both lists in order of rank; rank does not
 * change while a request stands in a list. Owner: the engine thread. */
#include "sched/parts.h"

/* ---- rank ---- */

int32_t weft__sched_rank_level(const sched_request *r)
{
    int64_t level = (int64_t)r->level + (int64_t)r->n_preempted * SCHED_PREEMPTION_LIFT;
    return level < SCHED_LEVELS - 1 ? (int32_t)level : SCHED_LEVELS - 1;
}

static int outranks(const sched_request *a, const sched_request *b)
{
    int32_t la = weft__sched_rank_level(a), lb = weft__sched_rank_level(b);
    return la != lb ? la > lb : a->start_seq < b->start_seq;
}

int32_t weft__sched_aged_level(const weft__sched *s, const sched_request *r)
{
    uint64_t aged = (uint64_t)weft__sched_rank_level(r) + (s->now_us - r->served_us) / s->limits.age_us;
    return aged < SCHED_LEVELS - 1 ? (int32_t)aged : SCHED_LEVELS - 1;
}

static void list_insert(const weft__sched *s, int32_t *list, int32_t *n, int32_t i)
{
    int32_t k = (*n)++;
    for (; k > 0 && outranks(&s->requests[i], &s->requests[list[k - 1]]); k--) list[k] = list[k - 1];
    list[k] = i;
}

static void list_remove(int32_t *list, int32_t *n, int32_t i)
{
    int32_t k = 0;
    while (list[k] != i) k++;
    for (--*n; k < *n; k++) list[k] = list[k + 1];
}

void weft__sched_unlist(weft__sched *s, int32_t i)
{
    if (s->requests[i].state == WEFT__SCHED_WAITING) list_remove(s->waiting, &s->n_waiting, i);
    else list_remove(s->running, &s->n_running, i);
}

/* ---- what fits ---- */

/* Pages of a group that a request may still take before it has `reserve` tokens more than it knows. */
static int64_t promised(const weft__sched *s, const sched_request *r, int32_t group)
{
    int32_t max = (int32_t)(weft__sched_total(r) - (r->max_new > 0)); /* the last token needs no keys and values */
    int32_t known = weft__sched_known(r);
    int32_t target = s->limits.reserve < max - known ? known + s->limits.reserve : max;
    return s->store.more(s->store.arg, r->user, group, target);
}

/* Whether request i, which does not run yet, fits besides what those that run were promised. */
static int fits(const weft__sched *s, int32_t i)
{
    for (int32_t g = 0; g < s->store.n_groups; g++) {
        int64_t room = s->store.available(s->store.arg, g) - promised(s, &s->requests[i], g);
        for (int32_t k = 0; room >= 0 && k < s->n_running; k++) room -= promised(s, &s->requests[s->running[k]], g);
        if (room < 0) return 0;
    }
    return 1;
}

static int64_t pages_available(const weft__sched *s)
{
    int64_t sum = 0;
    for (int32_t g = 0; g < s->store.n_groups; g++) sum += s->store.available(s->store.arg, g);
    return sum;
}

static int still_blocked(const weft__sched *s, int32_t i)
{
    return s->blocked_id == weft__sched_id(s, i) && s->blocked_changes == s->n_changes &&
           pages_available(s) <= s->blocked_pages;
}

static void set_blocked(weft__sched *s, int32_t i)
{
    s->blocked_id = weft__sched_id(s, i);
    s->blocked_changes = s->n_changes;
    s->blocked_pages = pages_available(s);
}

/* ---- starting ---- */

/* Finds its prefix, and whether the rest fits; when it does not, nothing is held. */
static int attach(weft__sched *s, int32_t i)
{
    sched_request *r = &s->requests[i];
    r->n_computed = 0;
    if (r->bare) return fits(s, i);
    r->n_computed = s->store.match(s->store.arg, r->user, weft__sched_known(r) - 1);
    if (fits(s, i)) return 1;
    s->store.release(s->store.arg, r->user, WEFT__SCHED_DETACHED);
    r->n_computed = 0;
    if (s->n_running > 0) return 0;
    r->bare = 1; /* a prefix that must be copied can need more than all pages: no other runs, so it must fit without */
    return fits(s, i);
}

/* What was found now needs no computing: it is paid back when it was charged. */
static void count_found(weft__sched *s, int32_t i)
{
    sched_request *r = &s->requests[i];
    if (r->n_computed > r->n_highest) r->n_highest = r->n_computed;
    weft__sched_prepay(s, i, r->n_highest < r->n_prompt ? r->n_prompt - r->n_highest : 0);
}

/* What the store kept, as far as it is there by now. */
static void restore(weft__sched *s, int32_t i)
{
    sched_request *r = &s->requests[i];
    const int32_t n = s->store.restore(s->store.arg, r->user, weft__sched_known(r) - 1);
    r->restoring = n == WEFT__SCHED_LATER;
    r->n_computed = r->restoring ? 0 : n;
    if (!r->restoring) count_found(s, i);
}

void weft__sched_restore_some(weft__sched *s)
{
    for (int32_t k = 0; k < s->n_running; k++)
        if (s->requests[s->running[k]].restoring) restore(s, s->running[k]);
}

int weft__sched_only_restores(const weft__sched *s)
{
    for (int32_t k = 0; k < s->n_running; k++)
        if (!s->requests[s->running[k]].restoring) return 0;
    return s->n_running > 0;
}

static void memory_begin(weft__sched *s, int32_t i)
{
    sched_request *r = &s->requests[i];
    weft__sched_queue_remove(s, i);
    weft__sched_queue_started(s, r->level);
    r->start_seq = s->n_starts++;
    r->n_cached = r->n_computed;
    s->stats.cached_tokens += (uint64_t)r->n_cached;
    s->stats.started++;
}

/* 0: no memory for it yet. 1: it runs, or failed. */
static int start(weft__sched *s, int32_t i)
{
    sched_request *r = &s->requests[i];
    if (still_blocked(s, i)) return 0;
    if (!attach(s, i)) {
        weft_error err = {0};
        if (s->n_running > 0) {
            set_blocked(s, i);
            return 0;
        }
        weft_fail(&err, WEFT_NO_MEMORY, "the KV pages for %d tokens are taken by something that no request releases",
                  weft__sched_known(r));
        weft__sched_finish(s, i, WEFT__SCHED_FAILED, &err);
        return 1;
    }
    int first = r->state == WEFT__SCHED_QUEUED;
    if (first) memory_begin(s, i);
    else weft__sched_unlist(s, i);
    if (r->swapped) restore(s, i);
    else count_found(s, i);
    r->state = WEFT__SCHED_PREFILLING;
    r->fresh = !r->swapped;
    r->swapped = 0;
    r->rows = 0;
    r->start_step = s->n_steps;
    r->served_us = s->now_us;
    list_insert(s, s->running, &s->n_running, i);
    if (first && s->hooks.began) s->hooks.began(s->hooks.arg, r->user);
    return 1;
}

/* The preempted one of highest rank, unless a request of a higher level waits. Preempted ones keep their place. */
static int32_t candidate(weft__sched *s)
{
    int32_t back = s->n_waiting > 0 ? s->waiting[0] : -1;
    int32_t next = s->n_running + s->n_waiting < s->limits.n_slots ? weft__sched_queue_next(s) : -1;
    if (back < 0 || next < 0) return back < 0 ? next : back;
    return s->requests[next].level > weft__sched_aged_level(s, &s->requests[back]) ? next : back;
}

void weft__sched_admit(weft__sched *s)
{
    for (int32_t i; (i = candidate(s)) >= 0 && start(s, i);)
        ;
}

void weft__sched_match_again(weft__sched *s, int32_t i)
{
    sched_request *r = &s->requests[i];
    int32_t n = s->store.match(s->store.arg, r->user, weft__sched_known(r) - 1);
    if (n <= r->n_computed) return;
    if (r->n_preempted == 0) {
        s->stats.cached_tokens += (uint64_t)(n - r->n_cached);
        r->n_cached = n;
    }
    r->n_computed = n;
    count_found(s, i);
}

/* ---- giving way ---- */

static void preempt(weft__sched *s, int32_t i)
{
    sched_request *r = &s->requests[i];
    weft__sched_unlist(s, i);
    r->swapped = s->store.release(s->store.arg, r->user, WEFT__SCHED_PREEMPTED);
    r->n_computed = r->rows = r->restoring = 0;
    r->n_preempted++;
    r->state = WEFT__SCHED_WAITING;
    r->served_us = s->now_us;
    list_insert(s, s->waiting, &s->n_waiting, i);
    s->n_changes++;
    s->stats.preempted++;
}

/* 1: the pages for its rows are there. 0: it runs no more. */
static int take_pages(weft__sched *s, int32_t i)
{
    sched_request *r = &s->requests[i];
    for (;;) {
        weft_error err = {0};
        weft_status st = s->store.reserve(s->store.arg, r->user, r->n_computed + r->rows, &err);
        int alone = s->n_running == 1;
        if (!st) return 1;
        if (st != WEFT_LIMIT || (alone && r->bare)) {
            weft__sched_finish(s, i, WEFT__SCHED_FAILED, &err);
            return 0;
        }
        if (alone) r->bare = 1;
        int32_t last = s->running[s->n_running - 1];
        preempt(s, last);
        if (last == i) return 0;
    }
}

void weft__sched_reserve_rows(weft__sched *s)
{
    for (int32_t k = 0; k < s->n_running;)
        if (s->requests[s->running[k]].rows == 0 || take_pages(s, s->running[k]))
            k++; /* else the next one moved here */
}
