// SPDX-License-Identifier: Apache-2.0
/* submit.c: a request from what the caller hands over to the scheduler's queue, or to those that wait for the disk; and
 * its end when the caller asks for it. Any thread. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/params.h"
#include "batcher/batcher.h"
#include "sample/sampler.h"

/* WEFT_POOLING_MEAN or _LAST; _NONE: no embedding is wanted, or the model's own is of another kind. */
static int pooling_of(const weft_engine *e, const weft_request_params *p)
{
    if (p->embedding != WEFT_POOLING_MODEL) return p->embedding;
    switch (e->model->hp.pooling) {
    case WEFT__HPARAMS_POOLING_UNSAID:
    case WEFT__HPARAMS_POOLING_NONE:
    case WEFT__HPARAMS_POOLING_MEAN: return WEFT_POOLING_MEAN;
    case WEFT__HPARAMS_POOLING_LAST: return WEFT_POOLING_LAST;
    default: return WEFT_POOLING_NONE;
    }
}

static weft_status check_request(const weft_engine *e, const weft_request_params *p, weft_error *err)
{
    int32_t n_vocab = e->model->hp.n_vocab;
    if (e->params.rehearsal) return weft_fail(err, WEFT_STATE, "an engine of an outline takes no requests");
    if (!p->event) return weft_fail(err, WEFT_ARGUMENT, "a request without an event function");
    if (p->n_tokens < 1 || !p->tokens) return weft_fail(err, WEFT_ARGUMENT, "the prompt has no tokens");
    if (p->max_tokens < -1)
        return weft_fail(err, WEFT_ARGUMENT, "max_tokens is %d; it must be -1 (until the context is full) or more",
                         p->max_tokens);
    if (p->n_top < -1 || p->n_top > BATCHER_MAX_TOP)
        return weft_fail(err, WEFT_ARGUMENT, "n_top is %d; it must be -1 (none) to %d", p->n_top, BATCHER_MAX_TOP);
    if (p->embedding && (p->grammar || p->prompt_logprobs || p->max_tokens > 0))
        return weft_fail(err, WEFT_ARGUMENT,
                         "a request for an embedding generates no tokens and has no log-probabilities");
    if (p->embedding < WEFT_POOLING_NONE || p->embedding > WEFT_POOLING_LAST)
        return weft_fail(err, WEFT_ARGUMENT, "embedding is %d; it must be a weft_pooling, %d to %d", p->embedding,
                         WEFT_POOLING_NONE, WEFT_POOLING_LAST);
    if (p->embedding == WEFT_POOLING_MODEL && !pooling_of(e, p))
        return weft_fail(err, WEFT_UNSUPPORTED,
                         "the model's pooling_type is %d; there are 1 (mean) and 3 (last): ask for one of them",
                         e->model->hp.pooling);
    if (p->n_insert < 0 || (p->n_insert && !p->insert))
        return weft_fail(err, WEFT_ARGUMENT, "n_insert is %d, without tokens", p->n_insert);
    for (int32_t i = 0; i < p->n_insert; i++)
        if (p->insert[i] < 0 || p->insert[i] >= n_vocab)
            return weft_fail(err, WEFT_ARGUMENT, "token %d of `insert`: the model has ids 0 to %d", p->insert[i],
                             n_vocab - 1);
    for (int32_t i = 0; i < p->n_tokens; i++)
        if (p->tokens[i] < 0 || p->tokens[i] >= n_vocab)
            return weft_fail(err, WEFT_ARGUMENT, "token %d at place %d: the model has ids 0 to %d", p->tokens[i], i,
                             n_vocab - 1);
    if (p->n_predicted < 0 || (p->n_predicted && !p->predicted))
        return weft_fail(err, WEFT_ARGUMENT, "n_predicted is %d, without tokens", p->n_predicted);
    for (int32_t i = 0; i < p->n_predicted; i++)
        if (p->predicted[i] < 0 || p->predicted[i] >= n_vocab)
            return weft_fail(err, WEFT_ARGUMENT, "token %d of `predicted`: the model has ids 0 to %d", p->predicted[i],
                             n_vocab - 1);
    if (p->draft_max < 0 || p->draft_max > WEFT_DRAFT_MAX || p->draft_min < 0)
        return weft_fail(err, WEFT_ARGUMENT, "drafts of %d to %d tokens; they have 0 to %d", p->draft_min, p->draft_max,
                         WEFT_DRAFT_MAX);
    if (!(p->draft_p_min >= 0 && p->draft_p_min <= 1))
        return weft_fail(err, WEFT_ARGUMENT, "draft_p_min is %g; it must be 0 to 1", (double)p->draft_p_min);
    return p->embedding ? WEFT_OK : weft__sample_check(&p->sampler, n_vocab, err); /* an embedding samples nothing */
}

/* Tokens to generate at most; WEFT_LIMIT when prompt and answer can never be held. */
static weft_status count_tokens(const weft_engine *e, const weft_request_params *p, batcher_request *r, weft_error *err)
{
    int32_t n_ctx = e->params.n_ctx, wanted = p->embedding ? 0 : p->max_tokens, least = wanted != 0,
            cut = wanted < 0 || p->cut_to_fit || p->shift;
    if (p->n_tokens > n_ctx - least)
        return weft_fail(err, WEFT_LIMIT, "the prompt has %d tokens; the context holds %d, the answer included",
                         p->n_tokens, n_ctx);
    if (wanted > n_ctx - p->n_tokens && !cut)
        return weft_fail(err, WEFT_LIMIT, "%d tokens of prompt and max_tokens %d exceed the context of %d tokens",
                         p->n_tokens, wanted, n_ctx);
    int32_t *max_new = &r->max_new;
    *max_new = wanted < 0 || wanted > n_ctx - p->n_tokens ? n_ctx - p->n_tokens : wanted;
    weft__sched_store store = weft__batcher_store((weft_engine *)(uintptr_t)e);
    for (int32_t g = 0; g < store.n_groups; g++) {
        const int64_t capacity = store.capacity(store.arg, g), unit = weft__batcher_units(e, r->cache->pool, g, 1);
        /* Until the pages are full, unless just as many are wanted. */
        while (cut && *max_new > 1 && store.pages(store.arg, r, g, p->n_tokens + *max_new - 1) > capacity) (*max_new)--;
        const int64_t pages = store.pages(store.arg, r, g, p->n_tokens + (*max_new > 0 ? *max_new - 1 : 0));
        if (pages > capacity)
            return weft_fail(err, WEFT_LIMIT,
                             "%d tokens of prompt and %d to generate need %lld KV pages; there are %lld: ask for "
                             "fewer, or give the engine more",
                             p->n_tokens, *max_new, (long long)(pages / unit), (long long)(capacity / unit));
    }
    return WEFT_OK;
}

static weft_status refuse_type(const weft_engine *e, uint32_t dtype, weft_error *err)
{
    char asked[WEFT_KV_NAME_MAX], name[WEFT_KV_NAME_MAX], all[WEFT_KV_TYPES_MAX * (WEFT_KV_NAME_MAX + 2)] = "";
    for (int32_t i = 0, at = 0; i < e->n_caches; i++)
        at += snprintf(all + at, sizeof all - (size_t)at, "%s%s", i ? ", " : "",
                       weft_kv_type_name(e->caches[i].dtype, name));
    return weft_fail(err, WEFT_ARGUMENT, "keys and values in %s: this engine has %s", weft_kv_type_name(dtype, asked),
                     all);
}

/* Copies what was asked for into a record that no other thread sees. */
static weft_status draft(weft_engine *e, const weft_request_params *p, batcher_request *r, weft_error *err)
{
    const char *tenant = p->tenant ? p->tenant : "";
    *r = (batcher_request){.engine = e,
                           .n_prompt = p->n_tokens,
                           .n_known = p->n_tokens,
                           .n_top = p->n_top,
                           .priority = p->priority,
                           .sampling = p->sampler,
                           .ignore_end = p->ignore_end,
                           .prompt_logprobs = p->prompt_logprobs,
                           .embedding = pooling_of(e, p),
                           .no_cache = p->no_cache,
                           .read_events = p->read_events,
                           .n_insert = p->n_insert,
                           .at_insert = p->n_insert,
                           .can_insert = p->n_insert > 0,
                           .deadline_ms = p->deadline_ms,
                           .event = p->event,
                           .arg = p->arg,
                           .submitted_ns = weft__clock_ns(),
                           .tenant = weft__hash(tenant, strlen(tenant)),
                           .end_token = -1,
                           .finish = WEFT_FINISH_END};
    r->cache = weft__batcher_cache(e, p->kv_dtype);
    if (!r->cache) return refuse_type(e, p->kv_dtype, err);
    weft_status st = count_tokens(e, p, r, err);
    if (!st) st = weft__batcher_shift_plan(e, p, r, err);
    if (!st) st = weft__batcher_lease(e, p, r, err);
    if (!st) st = weft__batcher_root(e, r->cache, tenant, r->lease, &r->root, err);
    if (!st) st = weft__batcher_draft_ask(e, p, r, err);
    if (st) return st;
    if (p->deadline_ms)
        r->deadline_ns = r->submitted_ns + (p->deadline_ms < INT32_MAX ? p->deadline_ms : INT32_MAX) * 1000000;
    size_t room = (size_t)r->n_most, n_bias = (size_t)p->sampler.n_bias, d = (size_t)e->model->hp.d_model;
    r->tokens = weft__alloc_array(room, sizeof *r->tokens);
    r->bias = weft__alloc_array(n_bias, sizeof *r->bias);
    r->insert = weft__alloc_array((size_t)p->n_insert, sizeof *r->insert);
    if (p->embedding) r->sum = weft__alloc_zero(d, sizeof *r->sum);
    if (!r->tokens || !r->bias || !r->insert || (p->embedding && !r->sum))
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for a request of %zu tokens", room);
    memcpy(r->tokens, p->tokens, (size_t)p->n_tokens * sizeof *r->tokens);
    if (p->n_insert) memcpy(r->insert, p->insert, (size_t)p->n_insert * sizeof *r->insert);
    if (n_bias) memcpy(r->bias, p->sampler.bias, n_bias * sizeof *r->bias);
    r->sampling.bias = r->bias;
    r->sampling.nameless = e->vocab.nameless;
    r->sampling.n_nameless = e->vocab.n_nameless;
    if (p->grammar) r->grammar = weft_grammar_retain(p->grammar);
    return weft__kv_seq_create(r->cache->pool, (int32_t)room, &r->seq, err);
}

static void append_pending(weft_engine *e, int32_t i)
{
    e->records.all[i].next = -1;
    *(e->records.last_pending < 0 ? &e->records.first_pending : &e->records.all[e->records.last_pending].next) = i;
    e->records.last_pending = i;
}

/* 1: one more that waits for the disk leaves others the room that they would have beside so many in the queue. With the
 * lock. */
static int may_wait_for_disk(weft_engine *e, uint64_t tenant)
{
    int32_t n_own = 0, n = 0;
    for (int32_t i = e->records.first_pending; i >= 0; i = e->records.all[i].next, n++)
        n_own += e->records.all[i].tenant == tenant;
    return weft__sched_has_room(e->sched, tenant, n_own, n);
}

/* Gives the draft a record, and that to the scheduler, or to those that wait for the disk. With the lock. */
static weft_status admit(weft_engine *e, const batcher_request *draft, int fetch, uint64_t *id, double *retry_after_s,
                         weft_error *err)
{
    if (e->draining) return weft_fail(err, WEFT_STATE, "the engine accepts no more requests: it is shutting down");
    if (e->records.first_free < 0 || (fetch && !may_wait_for_disk(e, draft->tenant))) {
        double seconds = weft__sched_retry_after(e->sched, weft__clock_ns() / 1000);
        if (retry_after_s) *retry_after_s = seconds;
        return weft_fail(err, WEFT_BUSY, "%d requests are here already; try again in %.0f s", e->records.n_live,
                         seconds < 1 ? 1 : seconds);
    }
    int32_t i = e->records.first_free, next = e->records.all[i].next;
    batcher_request *r = &e->records.all[i];
    uint32_t generation = r->generation + 1;
    *r = *draft;
    r->generation = generation;
    r->id = (uint64_t)generation << 32 | (uint32_t)(i + 1);
    weft_status st = WEFT_OK;
    if (fetch) {
        r->state = BATCHER_ASKING;
    } else {
        st = weft__batcher_schedule(r, retry_after_s, err);
    }
    if (st) {
        *r = (batcher_request){.engine = e, .generation = generation, .next = next};
        return st;
    }
    e->records.first_free = next;
    if (fetch) append_pending(e, i);
    e->records.n_live++;
    *id = r->id;
    return WEFT_OK;
}

weft_status weft_engine_submit(weft_engine *e, const weft_request_params *params, uint64_t *request,
                               double *retry_after_s, weft_error *err)
{
    weft_request_params own, *p = &own;
    weft_sampler_params sampler;
    batcher_request r = {.engine = e};
    *request = 0;
    weft_request_params_default(p);
    sampler = own.sampler;
    weft_status st = weft__params_read(WEFT__PARAMS_TYPE(weft_request_params), p, params, err);
    if (!st) st = weft__params_read(WEFT__PARAMS_TYPE(weft_sampler_params), &sampler, &p->sampler, err);
    if (!st) own.sampler = sampler;
    if (!st) st = check_request(e, p, err);
    if (!st) st = draft(e, p, &r, err);
    int fetch = !st && weft__batcher_worth_fetching(&r);
    if (!st) {
        pthread_mutex_lock(&e->lock);
        st = admit(e, &r, fetch, request, retry_after_s, err);
        e->stats.n_submitted += st == WEFT_OK;
        e->stats.n_refused += st == WEFT_BUSY;
        e->work |= st == WEFT_OK;
        if (!st) pthread_cond_signal(&e->wake);
        pthread_mutex_unlock(&e->lock);
    }
    if (st) weft__batcher_clear(&r);
    return st;
}

weft_status weft__batcher_schedule(batcher_request *r, double *retry_after_s, weft_error *err)
{
    weft_engine *e = r->engine;
    weft__sched_request q = {.user = r,
                             .tenant = r->tenant,
                             .priority = r->priority,
                             .n_prompt = r->n_prompt,
                             .max_new = r->max_new,
                             .n_most = r->n_most,
                             .deadline_us = r->deadline_ns / 1000};
    weft_status st = weft__sched_submit(e->sched, &q, weft__clock_ns() / 1000, &r->sched_id, retry_after_s, err);
    if (!st) r->state = BATCHER_SCHEDULED;
    return st;
}

/* Ends it through the scheduler; one that still waits for the disk is cancelled. */
static void end_from_outside(weft_engine *e, uint64_t request, void (*end)(weft__sched *s, uint64_t id))
{
    uint32_t i = (uint32_t)request - 1, generation = (uint32_t)(request >> 32);
    if (i >= (uint32_t)e->records.n) return;
    batcher_request *r = &e->records.all[i];
    pthread_mutex_lock(&e->lock);
    if (r->state != BATCHER_FREE && r->generation == generation) {
        if (r->state == BATCHER_SCHEDULED) end(e->sched, r->sched_id);
        r->cancelled = 1;
        e->work = 1;
        pthread_cond_signal(&e->wake);
    }
    pthread_mutex_unlock(&e->lock);
}

void weft_engine_cancel(weft_engine *e, uint64_t request)
{
    end_from_outside(e, request, weft__sched_cancel);
}

void weft_engine_finish(weft_engine *e, uint64_t request)
{
    end_from_outside(e, request, weft__sched_end);
}
