// SPDX-License-Identifier: Apache-2.0
/* step.c: the rows of a step, and what its end changes.
 * Invariant: outside of a step no request has rows. Owner: the engine thread. */
#include <assert.h>

#include "sched/parts.h"

static void expire(weft__sched *s)
{
    while (s->deadlines.n > 0) {
        int32_t i = s->deadlines.items[0];
        if (s->requests[i].deadline_us > s->now_us) return;
        weft__sched_heap_remove(&s->deadlines, i);
        weft__sched_mark(s, i, WEFT__SCHED_TIMEOUT);
    }
}

/* Prompts: higher level first, then the tenant served least, then in order of starting. Ageing makes up for differences
 * of level and for nothing else, or a tenant with many prompts would get more than one with few. */
int weft__sched_reads_before(const void *sched, int32_t a, int32_t b)
{
    const weft__sched *s = sched;
    const sched_request *ra = &s->requests[a], *rb = &s->requests[b];
    const sched_tenant *ta = &s->tenants[ra->tenant], *tb = &s->tenants[rb->tenant];
    int32_t la = weft__sched_aged_level(s, ra), lb = weft__sched_aged_level(s, rb);
    if (la > s->top_level) la = s->top_level;
    if (lb > s->top_level) lb = s->top_level;
    if (la != lb) return la > lb;
    int64_t ua = ta->charged - ta->prepaid, ub = tb->charged - tb->prepaid;
    return ua != ub ? ua < ub : ra->start_seq < rb->start_seq;
}

/* One row for each request that decodes. Returns the rows left for prompts. */
static int32_t pick_decoders(weft__sched *s)
{
    int32_t n_decode = 0;
    s->top_level = 0;
    for (int32_t k = 0; k < s->n_running; k++) {
        sched_request *r = &s->requests[s->running[k]];
        r->rows = r->state == WEFT__SCHED_DECODING;
        n_decode += r->rows;
        if (r->rows == 0 && !r->restoring && weft__sched_rank_level(r) > s->top_level)
            s->top_level = weft__sched_rank_level(r);
    }
    int32_t left = s->limits.step_rows - n_decode;
    return n_decode > 0 && left > s->limits.chunk ? s->limits.chunk : left;
}

static void pick_prompts(weft__sched *s, int32_t left)
{
    s->readers.n = 0;
    for (int32_t k = 0; k < s->n_running; k++)
        if (s->requests[s->running[k]].rows == 0 && !s->requests[s->running[k]].restoring)
            weft__sched_heap_push(&s->readers, s->running[k]);
    while (left > 0 && s->readers.n > 0) {
        int32_t i = s->readers.items[0];
        sched_request *r = &s->requests[i];
        weft__sched_heap_remove(&s->readers, i);
        if (r->fresh && !r->bare && r->start_step != s->n_steps) weft__sched_match_again(s, i);
        int32_t want = weft__sched_known(r) - r->n_computed;
        r->rows = want < left ? want : left;
        left -= r->rows;
    }
}

static void add_item(weft__sched *s, int32_t i)
{
    const sched_request *r = &s->requests[i];
    int decode = r->state == WEFT__SCHED_DECODING;
    s->items[s->plan.n_items++] = (weft__sched_item){
        .id = weft__sched_id(s, i),
        .user = r->user,
        .first = r->n_computed,
        .n = r->rows,
        .decode = decode,
        .sample = r->max_new > 0 && r->n_computed + r->rows == weft__sched_known(r),
    };
    s->plan.n_rows += r->rows;
    if (!decode) s->plan.n_prompt_rows += r->rows;
}

static void make_plan(weft__sched *s)
{
    for (int decode = 1; decode >= 0; decode--)
        for (int32_t k = 0; k < s->n_running; k++) {
            const sched_request *r = &s->requests[s->running[k]];
            if (r->rows > 0 && (r->state == WEFT__SCHED_DECODING) == decode) add_item(s, s->running[k]);
        }
}

void weft__sched_set_chunk(weft__sched *s, int32_t n)
{
    assert(!s->in_step);
    s->limits.chunk = n < 1 ? 1 : n < s->limits.step_rows ? n : s->limits.step_rows;
}

const weft__sched_plan *weft__sched_next(weft__sched *s, uint64_t now_us)
{
    assert(!s->in_step);
    if (now_us > s->now_us) s->now_us = now_us;
    s->plan = (weft__sched_plan){.items = s->items};
    expire(s);
    weft__sched_finish_marked(s);
    weft__sched_restore_some(s);
    /* A round without rows has preempted or finished a request, or all that run are being restored; in the next one
     * none starts while others run, or those whom memory just failed would be asked for ever. */
    for (int first = 1; s->n_live > 0 && s->plan.n_items == 0; first = 0) {
        if (first || s->n_running == 0) weft__sched_admit(s);
        if (weft__sched_only_restores(s)) break;
        pick_prompts(s, pick_decoders(s));
        weft__sched_reserve_rows(s);
        make_plan(s);
    }
    s->in_step = s->plan.n_items > 0;
    s->n_steps += s->plan.n_items > 0;
    return &s->plan;
}

/* A prompt again, of other tokens. */
static void restart(weft__sched *s, int32_t i, int32_t n_known)
{
    sched_request *r = &s->requests[i];
    r->max_new -= r->n_generated;
    r->n_prompt = n_known;
    r->n_generated = r->n_computed = r->n_highest = r->n_cached = 0;
    r->state = WEFT__SCHED_PREFILLING;
    r->fresh = 1;
    weft__sched_prepay(s, i, n_known);
    s->n_changes++;
}

/* What the rows of one request have brought. */
static void advance(weft__sched *s, int32_t i, const weft__sched_item *item)
{
    sched_request *r = &s->requests[i];
    int32_t from = r->n_computed > r->n_highest ? r->n_computed : r->n_highest; /* anything below was computed before */
    r->n_computed += item->n;
    if (r->n_computed > r->n_highest) r->n_highest = r->n_computed;
    int32_t prompt_to = r->n_computed < r->n_prompt ? r->n_computed : r->n_prompt;
    const int32_t n_sampled = item->sample + item->n_draft;
    weft__sched_charge(s, i, prompt_to > from ? prompt_to - from : 0, n_sampled);
    s->stats.recomputed_rows += (uint64_t)(r->n_computed > from ? item->n - (r->n_computed - from) : item->n);
    r->rows = r->fresh = 0;
    r->served_us = s->now_us;
    if (item->sample) {
        r->n_generated += n_sampled;
        s->n_changes += r->state == WEFT__SCHED_PREFILLING;
        r->state = WEFT__SCHED_DECODING;
    }
    if (r->n_computed >= r->n_prompt && r->n_generated >= r->max_new) weft__sched_mark(s, i, WEFT__SCHED_LENGTH);
    if (item->kept > 0 && !r->ending) restart(s, i, item->kept);
}

void weft__sched_restart(weft__sched *s, uint64_t id, int32_t n_known)
{
    assert(s->in_step && n_known > 0);
    for (int32_t k = 0; k < s->plan.n_items; k++)
        if (s->items[k].id == id) s->items[k].kept = n_known;
}

/* ---- drafts ---- */

int32_t weft__sched_draft_room(const weft__sched *s, int32_t k)
{
    const weft__sched_item *item = &s->items[k];
    const sched_request *r = &s->requests[(int32_t)(uint32_t)item->id - 1];
    if (!item->decode || !item->sample) return 0;
    int32_t rows = s->limits.step_rows - s->plan.n_rows,
            tokens = (int32_t)(weft__sched_total(r) - weft__sched_known(r)) - 1;
    return rows < tokens ? rows : tokens;
}

void weft__sched_draft(weft__sched *s, int32_t k, int32_t n)
{
    assert(s->in_step && !s->items[k].n_draft && n <= weft__sched_draft_room(s, k));
    s->items[k].n += n;
    s->items[k].n_draft = n;
    s->plan.n_rows += n;
    s->stats.draft_rows += (uint64_t)n;
}

static weft__sched_item *item_of(weft__sched *s, uint64_t id)
{
    int32_t k = 0;
    while (s->items[k].id != id) k++;
    assert(s->in_step && k < s->plan.n_items);
    return &s->items[k];
}

void weft__sched_drafted(weft__sched *s, uint64_t id, int32_t n_kept)
{
    weft__sched_item *item = item_of(s, id);
    item->n -= item->n_draft - n_kept;
    item->n_draft = n_kept;
}

void weft__sched_defer(weft__sched *s, uint64_t id)
{
    weft__sched_item *item = item_of(s, id);
    assert(item->sample && !item->n_draft);
    item->sample = 0;
    item->n--;
    s->stats.deferred++;
}

void weft__sched_done(weft__sched *s, uint64_t now_us)
{
    assert(s->in_step);
    if (now_us > s->now_us) s->now_us = now_us;
    for (int32_t k = 0; k < s->plan.n_items; k++) advance(s, (int32_t)(uint32_t)s->items[k].id - 1, &s->items[k]);
    s->stats.steps++;
    s->stats.prompt_rows += (uint64_t)s->plan.n_prompt_rows;
    s->stats.decode_rows += (uint64_t)(s->plan.n_rows - s->plan.n_prompt_rows);
    s->in_step = 0;
    weft__sched_finish_marked(s);
}
