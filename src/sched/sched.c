// SPDX-License-Identifier: Apache-2.0
/* sched.c: the scheduler's life, and that of a request: accepted, finished.
 * Invariant: a request is accepted only when it could run alone, and is finished exactly once. Owner: the engine
 * thread. */
#include "base/alloc.h"
#include "sched/parts.h"

enum { MAX_REQUESTS = 1 << 16, MAX_CTX = 1 << 24, MAX_COST = 1024, QUEUE_SHARE = 8, IDLE_TENANTS = 64 };

/* ---- the scheduler ---- */

static weft_status check_limits(const weft__sched_limits *l, weft_error *err)
{
    const struct {
        const char *name;
        int32_t value, min, max;
    } limits[] = {
        {"n_slots", l->n_slots, 1, MAX_REQUESTS},
        {"step_rows", l->step_rows, l->n_slots, INT32_MAX},
        {"chunk", l->chunk, 1, INT32_MAX},
        {"max_queue", l->max_queue, 1, MAX_REQUESTS},
        {"n_ctx", l->n_ctx, 1, MAX_CTX},
        {"reserve", l->reserve, 0, MAX_CTX},
        {"decode_cost", l->decode_cost, 1, MAX_COST},
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (limits[i].value < limits[i].min || limits[i].value > limits[i].max)
            return weft_fail(err, WEFT_ARGUMENT, "scheduler: %s is %d; it must be %d .. %d", limits[i].name,
                             limits[i].value, limits[i].min, limits[i].max);
    if (l->age_us == 0) return weft_fail(err, WEFT_ARGUMENT, "scheduler: age_us is 0; it must be at least 1");
    return WEFT_OK;
}

static int deadline_before(const void *sched, int32_t a, int32_t b)
{
    const sched_request *r = ((const weft__sched *)sched)->requests;
    return r[a].deadline_us != r[b].deadline_us ? r[a].deadline_us < r[b].deadline_us : r[a].seq < r[b].seq;
}

static int line_before(const void *sched, int32_t a, int32_t b)
{
    const sched_line *l = ((const weft__sched *)sched)->lines;
    return l[a].charged != l[b].charged ? l[a].charged < l[b].charged : l[a].seq < l[b].seq;
}

static int heap_init(const weft__sched *s, weft__sched_heap *h, int (*before)(const void *, int32_t, int32_t),
                     int32_t *at)
{
    *h = (weft__sched_heap){weft__alloc_array((size_t)s->n_requests, sizeof *h->items), at, 0, before, s};
    return h->items != NULL;
}

static int32_t *indices(int32_t n)
{
    int32_t *a = weft__alloc_array((size_t)n, sizeof *a);
    for (int32_t i = 0; a && i < n; i++) a[i] = -1;
    return a;
}

static int allocate(weft__sched *s)
{
    size_t n = (size_t)s->n_requests, n_slots = (size_t)s->limits.n_slots;
    s->requests = weft__alloc_zero(n, sizeof *s->requests);
    s->lines = weft__alloc_zero(n, sizeof *s->lines);
    s->free_lines = weft__alloc_array(n, sizeof *s->free_lines);
    s->running = weft__alloc_array(n_slots, sizeof *s->running);
    s->waiting = weft__alloc_array(n_slots, sizeof *s->waiting);
    s->items = weft__alloc_zero(n_slots, sizeof *s->items);
    s->tenants = weft__alloc_zero((size_t)s->n_tenants, sizeof *s->tenants);
    s->buckets = indices((int32_t)s->n_buckets);
    s->line_at = indices(s->n_requests);
    int32_t *deadline_at = s->deadlines.at = indices(s->n_requests),
            *reader_at = s->readers.at = indices(s->n_requests);
    int ok = s->requests && s->lines && s->free_lines && s->running && s->waiting && s->items && s->tenants &&
             s->buckets && s->line_at && deadline_at && reader_at;
    ok = ok && heap_init(s, &s->deadlines, deadline_before, deadline_at) &&
         heap_init(s, &s->readers, weft__sched_reads_before, reader_at);
    for (int level = 0; ok && level < SCHED_LEVELS; level++)
        ok = heap_init(s, &s->levels[level], line_before, s->line_at);
    return ok;
}

weft_status weft__sched_create(const weft__sched_limits *limits, const weft__sched_store *store,
                               const weft__sched_hooks *hooks, weft__sched **out, weft_error *err)
{
    *out = NULL;
    weft_status st = check_limits(limits, err);
    if (st) return st;
    weft__sched *s = weft__alloc_zero(1, sizeof *s);
    if (!s) goto no_memory;
    s->limits = *limits;
    s->store = *store;
    s->hooks = *hooks;
    s->n_requests = limits->n_slots + limits->max_queue;
    s->n_tenants = s->n_requests + IDLE_TENANTS;
    for (s->n_buckets = 1; s->n_buckets < (uint32_t)s->n_tenants;) s->n_buckets *= 2;
    s->max_lag = (int64_t)limits->n_slots * limits->n_ctx << SCHED_CREDIT_SHIFT;
    if (!allocate(s)) goto no_memory;
    for (int32_t i = 0; i < s->n_requests; i++) {
        s->requests[i].next = i + 1 < s->n_requests ? i + 1 : -1;
        s->free_lines[s->n_free_lines++] = i;
    }
    s->first_ending = s->last_ending = s->first_idle = s->last_idle = -1;
    *out = s;
    return WEFT_OK;
no_memory:
    weft__sched_destroy(&s);
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for the tables of %d requests",
                     limits->n_slots + limits->max_queue);
}

void weft__sched_destroy(weft__sched **sched)
{
    weft__sched *s = sched ? *sched : NULL;
    if (!s) return;
    for (int level = SCHED_LEVELS - 1; level >= 0; level--) weft__free(s->levels[level].items);
    weft__free(s->readers.items);
    weft__free(s->deadlines.items);
    weft__free(s->readers.at);
    weft__free(s->deadlines.at);
    weft__free(s->line_at);
    weft__free(s->buckets);
    weft__free(s->tenants);
    weft__free(s->items);
    weft__free(s->waiting);
    weft__free(s->running);
    weft__free(s->free_lines);
    weft__free(s->lines);
    weft__free(s->requests);
    weft__free(s);
    *sched = NULL;
}

/* ---- accepting ---- */

static weft_status check_request(const weft__sched *s, const weft__sched_request *q, weft_error *err)
{
    if (q->n_prompt < 1)
        return weft_fail(err, WEFT_ARGUMENT, "the prompt has %d tokens; at least one is needed", q->n_prompt);
    if (q->max_new < 0)
        return weft_fail(err, WEFT_ARGUMENT, "max_tokens is %d; it cannot be negative here", q->max_new);
    int64_t total = (int64_t)q->n_prompt + q->max_new;
    if (q->n_most > 0 && q->n_most < total) total = q->n_most;
    if (total < (int64_t)q->n_prompt + (q->max_new > 0))
        return weft_fail(err, WEFT_LIMIT, "%d tokens of prompt are more than the %d that are held at a time",
                         q->n_prompt, q->n_most);
    if (total > s->limits.n_ctx)
        return weft_fail(err, WEFT_LIMIT, "%d tokens of prompt and %d to generate exceed the context of %d tokens",
                         q->n_prompt, q->max_new, s->limits.n_ctx);
    for (int32_t g = 0; g < s->store.n_groups; g++) {
        int64_t pages = s->store.pages(s->store.arg, q->user, g, (int32_t)(q->max_new > 0 ? total - 1 : total));
        int64_t capacity = s->store.capacity(s->store.arg, g);
        if (pages > capacity)
            return weft_fail(
                err, WEFT_LIMIT,
                "%d tokens of prompt and %d to generate need %lld KV pages of group %d, which has %lld in all: ask "
                "for fewer tokens, or give the engine more KV memory",
                q->n_prompt, q->max_new, (long long)pages, g, (long long)capacity);
    }
    return WEFT_OK;
}

/* A tenant's queue grows only while it is shorter than a multiple of the room that is left: so several that flood get
 * equal parts, and leave room for another (dynamic thresholds, Choudhury and Hahne 1998). */
static int has_room(const weft__sched *s, int32_t tenant, int32_t n_own, int32_t n_coming)
{
    int32_t room = s->n_requests - s->n_live - n_coming;
    return room > 0 && (s->tenants[tenant].n_queued + n_own) / QUEUE_SHARE < room;
}

int weft__sched_has_room(weft__sched *s, uint64_t tenant, int32_t n_own, int32_t n_coming)
{
    return has_room(s, weft__sched_tenant_get(s, tenant), n_own, n_coming);
}

int32_t weft__sched_max_accepted(const weft__sched *s)
{
    return (QUEUE_SHARE * s->n_requests - 1) / (QUEUE_SHARE + 1) + 1; /* has_room until then, if all of them wait */
}

static int32_t request_take(weft__sched *s, const weft__sched_request *q, int32_t tenant)
{
    int32_t i = s->free_request, priority = q->priority;
    sched_request *r = &s->requests[i];
    if (priority < WEFT__SCHED_PRIORITY_MIN) priority = WEFT__SCHED_PRIORITY_MIN;
    if (priority > WEFT__SCHED_PRIORITY_MAX) priority = WEFT__SCHED_PRIORITY_MAX;
    s->free_request = r->next;
    s->n_live++;
    *r = (sched_request){
        .user = q->user,
        .deadline_us = q->deadline_us,
        .seq = s->n_seq++,
        .generation = r->generation + 1,
        .live = 1,
        .level = priority - WEFT__SCHED_PRIORITY_MIN,
        .tenant = tenant,
        .n_prompt = q->n_prompt,
        .max_new = q->max_new,
        .n_most = q->n_most,
        .next_ending = -1,
    };
    return i;
}

weft_status weft__sched_submit(weft__sched *s, const weft__sched_request *q, uint64_t now_us, uint64_t *id,
                               double *retry_after_s, weft_error *err)
{
    *id = 0;
    if (now_us > s->now_us) s->now_us = now_us;
    weft_status st = check_request(s, q, err);
    if (st) return st;
    int32_t tenant = weft__sched_tenant_get(s, q->tenant);
    if (!has_room(s, tenant, 0, 0)) {
        double seconds = weft__sched_retry_after(s, now_us);
        if (retry_after_s) *retry_after_s = seconds;
        s->stats.refused++;
        return weft_fail(err, WEFT_BUSY, "%d requests wait already; try again in %.0f s", s->n_queued,
                         seconds < 1 ? 1 : seconds);
    }
    int32_t i = request_take(s, q, tenant);
    weft__sched_tenant_enter(s, tenant);
    weft__sched_queue_push(s, i);
    if (q->deadline_us > 0) weft__sched_heap_push(&s->deadlines, i);
    s->stats.submitted++;
    *id = weft__sched_id(s, i);
    return WEFT_OK;
}

/* ---- finishing ---- */

/* The record of an id, or -1. */
static int32_t sched_find(const weft__sched *s, uint64_t id)
{
    uint32_t i = (uint32_t)id - 1;
    if (i >= (uint32_t)s->n_requests || !s->requests[i].live || weft__sched_id(s, (int32_t)i) != id) return -1;
    return (int32_t)i;
}

void weft__sched_mark(weft__sched *s, int32_t i, weft__sched_why why)
{
    sched_request *r = &s->requests[i];
    if (r->ending) return;
    r->ending = 1;
    r->why = why;
    *(s->last_ending >= 0 ? &s->requests[s->last_ending].next_ending : &s->first_ending) = i;
    s->last_ending = i;
}

static void unmark(weft__sched *s, int32_t i)
{
    int32_t before = -1, *link = &s->first_ending;
    for (; *link != i; link = &s->requests[*link].next_ending) before = *link;
    *link = s->requests[i].next_ending;
    if (s->last_ending == i) s->last_ending = before;
}

void weft__sched_finish(weft__sched *s, int32_t i, weft__sched_why why, const weft_error *err)
{
    sched_request *r = &s->requests[i];
    void *user = r->user;
    if (r->ending) unmark(s, i);
    weft__sched_heap_remove(&s->deadlines, i);
    if (r->state == WEFT__SCHED_QUEUED) {
        weft__sched_queue_remove(s, i);
    } else {
        weft__sched_unlist(s, i);
        s->store.release(s->store.arg, user, WEFT__SCHED_FINISHED);
        s->n_changes++;
        weft__sched_prepay(s, i, 0);
    }
    weft__sched_tenant_leave(s, r->tenant);
    r->live = 0;
    r->next = s->free_request;
    s->free_request = i;
    s->n_live--;
    s->stats.finished[why]++;
    s->hooks.finished(s->hooks.arg, user, why, err);
}

void weft__sched_finish_marked(weft__sched *s)
{
    while (s->first_ending >= 0) weft__sched_finish(s, s->first_ending, s->requests[s->first_ending].why, NULL);
}

void weft__sched_cancel(weft__sched *s, uint64_t id)
{
    int32_t i = sched_find(s, id);
    if (i >= 0) weft__sched_mark(s, i, WEFT__SCHED_CANCELLED);
}

void weft__sched_cancel_all(weft__sched *s)
{
    for (int32_t i = 0; i < s->n_requests; i++)
        if (s->requests[i].live) weft__sched_mark(s, i, WEFT__SCHED_CANCELLED);
}

void weft__sched_end(weft__sched *s, uint64_t id)
{
    int32_t i = sched_find(s, id);
    if (i >= 0) weft__sched_mark(s, i, WEFT__SCHED_ENDED);
}

/* ---- looking ---- */

void weft__sched_get_stats(const weft__sched *s, weft__sched_stats *out)
{
    *out = s->stats;
    out->n_queued = s->n_queued;
    out->n_preempted = s->n_waiting;
    out->n_tenants = s->n_live_tenants;
    for (int32_t k = 0; k < s->n_running; k++)
        if (s->requests[s->running[k]].state == WEFT__SCHED_DECODING) out->n_decoding++;
        else out->n_prefilling++, out->n_restoring += s->requests[s->running[k]].restoring;
}
