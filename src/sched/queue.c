// SPDX-License-Identifier: Apache-2.0
/* queue.c: tenants, what they have used, and which starts next.
 * Invariant: a line exists exactly while it has a request, and stands in the heap of its level; a line's key is at most
 * what its tenant's counter and first request say now. Owner: the engine thread. */
#include "sched/parts.h"

enum { MAX_RETRY_S = 60 };

/* ---- tenants ---- */

static uint32_t bucket_of(const weft__sched *s, uint64_t key)
{
    return (uint32_t)((key * 0x9E3779B97F4A7C15u) >> 32) & (s->n_buckets - 1); /* Fibonacci hashing */
}

static void idle_unlink(weft__sched *s, int32_t t)
{
    sched_tenant *tn = &s->tenants[t];
    *(tn->prev >= 0 ? &s->tenants[tn->prev].next : &s->first_idle) = tn->next;
    *(tn->next >= 0 ? &s->tenants[tn->next].prev : &s->last_idle) = tn->prev;
    tn->prev = tn->next = -1;
}

static void idle_append(weft__sched *s, int32_t t)
{
    sched_tenant *tn = &s->tenants[t];
    tn->prev = s->last_idle;
    tn->next = -1;
    *(s->last_idle >= 0 ? &s->tenants[s->last_idle].next : &s->first_idle) = t;
    s->last_idle = t;
}

/* A record for a new key: an unused one, or that of the tenant idle for longest, which is forgotten. */
static int32_t tenant_take(weft__sched *s)
{
    if (s->n_used_tenants < s->n_tenants) return s->n_used_tenants++;
    int32_t t = s->first_idle, *link = &s->buckets[bucket_of(s, s->tenants[t].key)];
    idle_unlink(s, t);
    while (*link != t) link = &s->tenants[*link].next_in_bucket;
    *link = s->tenants[t].next_in_bucket;
    return t;
}

int32_t weft__sched_tenant_get(weft__sched *s, uint64_t key)
{
    int32_t *bucket = &s->buckets[bucket_of(s, key)];
    for (int32_t t = *bucket; t >= 0; t = s->tenants[t].next_in_bucket)
        if (s->tenants[t].key == key) return t;
    int32_t t = tenant_take(s); /* may change *bucket */
    s->tenants[t] = (sched_tenant){.key = key, .next_in_bucket = *bucket};
    for (int l = 0; l < SCHED_LEVELS; l++) s->tenants[t].line[l] = -1;
    *bucket = t;
    idle_append(s, t);
    return t;
}

void weft__sched_tenant_enter(weft__sched *s, int32_t t)
{
    if (s->tenants[t].n_live++ > 0) return;
    idle_unlink(s, t);
    s->n_live_tenants++;
}

void weft__sched_tenant_leave(weft__sched *s, int32_t t)
{
    if (--s->tenants[t].n_live > 0) return;
    idle_append(s, t);
    s->n_live_tenants--;
}

/* ---- lines ---- */

static void line_refresh(weft__sched *s, int32_t l)
{
    sched_line *line = &s->lines[l];
    line->charged = s->tenants[line->tenant].charged;
    line->seq = s->requests[line->first].seq;
    weft__sched_heap_moved(&s->levels[line->level], l);
}

/* The line of a level that is next; its key is true. Keys that lag behind are at most what they should be, so the top
 * one is the least of all as soon as it is true itself. */
static int32_t level_top(weft__sched *s, int level)
{
    for (weft__sched_heap *h = &s->levels[level]; h->n > 0;) {
        int32_t l = h->items[0];
        const sched_line *line = &s->lines[l];
        sched_tenant *tn = &s->tenants[line->tenant];
        if (tn->charged < s->virtual_time - s->max_lag) tn->charged = s->virtual_time - s->max_lag;
        if (line->charged == tn->charged && line->seq == s->requests[line->first].seq) return l;
        line_refresh(s, l);
    }
    return -1;
}

/* What a tenant that begins to wait starts from: no tenant that waits is behind by more because of it, and it gets no
 * credit for the time when it asked for nothing. */
static void tenant_lift(weft__sched *s, int32_t t)
{
    int64_t min = INT64_MAX;
    for (int level = 0; level < SCHED_LEVELS; level++) {
        int32_t l = level_top(s, level);
        if (l >= 0 && s->lines[l].charged < min) min = s->lines[l].charged;
    }
    if (min != INT64_MAX && s->virtual_time < min) s->virtual_time = min;
    if (s->tenants[t].charged < s->virtual_time) s->tenants[t].charged = s->virtual_time;
}

static int32_t line_open(weft__sched *s, int32_t t, int32_t level, int32_t first)
{
    int32_t l = s->free_lines[--s->n_free_lines];
    s->lines[l] = (sched_line){s->tenants[t].charged, s->requests[first].seq, t, level, first, first};
    s->tenants[t].line[level] = l;
    if (s->levels[level].n == 0) {
        s->level_since_us[level] = s->now_us;
        s->level_passed[level] = 0;
    }
    weft__sched_heap_push(&s->levels[level], l);
    return l;
}

static void line_close(weft__sched *s, int32_t l)
{
    s->tenants[s->lines[l].tenant].line[s->lines[l].level] = -1;
    weft__sched_heap_remove(&s->levels[s->lines[l].level], l);
    s->free_lines[s->n_free_lines++] = l;
}

void weft__sched_queue_push(weft__sched *s, int32_t i)
{
    sched_request *r = &s->requests[i];
    sched_tenant *tn = &s->tenants[r->tenant];
    if (tn->n_queued++ == 0) tenant_lift(s, r->tenant);
    if (s->n_queued++ == 0) s->left_us = s->now_us;
    r->state = WEFT__SCHED_QUEUED;
    r->prev = r->next = -1;
    r->line = tn->line[r->level];
    if (r->line < 0) {
        r->line = line_open(s, r->tenant, r->level, i);
        return;
    }
    sched_line *line = &s->lines[r->line];
    r->prev = line->last;
    s->requests[line->last].next = i;
    line->last = i;
}

/* Smooths the intervals between requests that leave the queue, for retry_after. */
static void queue_left(weft__sched *s)
{
    double interval = (double)(s->now_us - s->left_us);
    s->leave_interval_us = s->leave_known ? 0.9 * s->leave_interval_us + 0.1 * interval : interval;
    s->leave_known = 1;
    s->left_us = s->now_us;
    if (s->n_turned_away > 0) s->n_turned_away--;
    if (s->n_queued == 0) s->n_turned_away = 0; /* the next finds room: those that never came back no longer count */
}

void weft__sched_queue_remove(weft__sched *s, int32_t i)
{
    sched_request *r = &s->requests[i];
    sched_line *line = &s->lines[r->line];
    *(r->prev >= 0 ? &s->requests[r->prev].next : &line->first) = r->next;
    *(r->next >= 0 ? &s->requests[r->next].prev : &line->last) = r->prev;
    if (line->first < 0) line_close(s, r->line);
    r->line = r->prev = r->next = -1;
    s->tenants[r->tenant].n_queued--;
    s->n_queued--;
    queue_left(s);
}

/* The highest level that waits, or the one that is most overdue. Time alone would not do: where starts are rarer than
 * age_us, all levels would take turns. */
static int level_next(const weft__sched *s)
{
    int top = SCHED_LEVELS - 1, next;
    while (top >= 0 && s->levels[top].n == 0) top--;
    next = top;
    double max = -1;
    for (int level = 0; level < top; level++) {
        if (s->levels[level].n == 0 || s->level_passed[level] < (int64_t)(top - level) * SCHED_PASSES_PER_LEVEL)
            continue;
        double overdue =
            (double)(s->now_us - s->level_since_us[level]) - (double)(top - level) * (double)s->limits.age_us;
        if (overdue < 0 || overdue <= max) continue;
        max = overdue;
        next = level;
    }
    return next;
}

int32_t weft__sched_queue_next(weft__sched *s)
{
    int level = level_next(s);
    return level < 0 ? -1 : s->lines[level_top(s, level)].first;
}

void weft__sched_queue_started(weft__sched *s, int32_t level)
{
    s->level_since_us[level] = s->now_us;
    s->level_passed[level] = 0;
    for (int lower = 0; lower < level; lower++) s->level_passed[lower]++;
}

/* ---- what was used ---- */

void weft__sched_prepay(weft__sched *s, int32_t i, int32_t n)
{
    sched_request *r = &s->requests[i];
    sched_tenant *tn = &s->tenants[r->tenant];
    int64_t more = ((int64_t)n - r->n_prepaid) * (1 << SCHED_CREDIT_SHIFT);
    r->n_prepaid = n;
    tn->charged += more;
    tn->prepaid += more;
    for (int level = 0; more < 0 && level < SCHED_LEVELS; level++)
        if (tn->line[level] >= 0) line_refresh(s, tn->line[level]);
}

void weft__sched_charge(weft__sched *s, int32_t i, int32_t n_prompt, int32_t n_generated)
{
    sched_request *r = &s->requests[i];
    sched_tenant *tn = &s->tenants[r->tenant];
    int64_t prompt = (int64_t)n_prompt << SCHED_CREDIT_SHIFT;
    int64_t generated = (int64_t)n_generated * s->limits.decode_cost << SCHED_CREDIT_SHIFT;
    r->n_prepaid -= n_prompt;
    tn->prepaid -= prompt;
    tn->charged += generated;
    s->virtual_time += (prompt + generated) / s->n_live_tenants;
}

double weft__sched_retry_after(weft__sched *s, uint64_t now_us)
{
    if (now_us > s->now_us) s->now_us = now_us;
    double interval = (double)(s->now_us - s->left_us);
    if (s->leave_known && s->leave_interval_us > interval) interval = s->leave_interval_us;
    if (!s->leave_known && interval < 1e6) interval = 1e6;
    double seconds = interval * 1e-6 * (double)(1 + s->n_turned_away);
    if (seconds > MAX_RETRY_S)
        return MAX_RETRY_S; /* one more would wait no longer: what is counted stays what was told */
    s->n_turned_away++;
    return seconds < 0.1 ? 0.1 : seconds;
}
