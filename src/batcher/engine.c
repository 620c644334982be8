// SPDX-License-Identifier: Apache-2.0
/* engine.c: weft_engine: its parameters and its life, and what any thread may ask of it (batcher.h says which
 * thread owns what). */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"
#include "batcher/batcher.h"
#include "mem/owners.h"
#include "sample/sampler.h"
#include "base/params.h"

enum {
    DEFAULT_SLOTS = 16,
    DEFAULT_CTX = 4096,
    DEFAULT_QUEUE = 256,
    DEFAULT_STEADY_MS = 100,
    DECODE_COST = 2,
    AGE_US = 5000000
};
/* Rows with logits in one run of the model, though there be fewer slots: for log-probabilities of prompts. */
enum { LEAST_WANTED = 32 };

/* ---- parameters ---- */

void(weft_engine_params_default)(weft_engine_params *p)
{
    *p = (weft_engine_params){.size = sizeof *p, .kv_dtype = WEFT_F16, .adapter_dtype = WEFT_ADAPTER_AUTO};
}

void weft_engine_params_init(weft_engine_params *params, uint32_t size)
{
    weft_engine_params own;
    (weft_engine_params_default)(&own);
    weft__params_init(WEFT__PARAMS_TYPE(weft_engine_params), params, size, &own);
}

void(weft_request_params_default)(weft_request_params *p)
{
    *p = (weft_request_params){
        .size = sizeof *p, .max_tokens = -1, .n_top = -1, .draft_max = WEFT_DRAFT_MAX, .kv_dtype = WEFT_KV_OF_ENGINE};
    weft_sampler_params_default(&p->sampler);
}

void weft_request_params_init(weft_request_params *params, uint32_t size)
{
    weft_request_params own;
    (weft_request_params_default)(&own);
    weft__params_init(WEFT__PARAMS_TYPE(weft_request_params), params, size, &own);
}

static const uint64_t MASK_NS =
    4000000; /* of a step for masks of grammars: those for data take some hundredths of it */

static int32_t or_default(int32_t value, int32_t otherwise)
{
    return value ? value : otherwise;
}

static weft_status check_range(const char *name, int64_t value, int64_t least, int64_t most, weft_error *err)
{
    if (value >= least && value <= most) return WEFT_OK;
    return weft_fail(err, WEFT_ARGUMENT, "%s is %lld; it must be %lld to %lld", name, (long long)value,
                     (long long)least, (long long)most);
}

weft_status weft__batcher_complete_params(const weft_model *m, weft_engine_params *p, weft_error *err)
{
    weft_status st;
    p->step_rows = or_default(p->step_rows, m->max_rows);
    p->n_slots = or_default(p->n_slots, m->max_wanted < DEFAULT_SLOTS ? m->max_wanted : DEFAULT_SLOTS);
    p->n_ctx = or_default(p->n_ctx, m->hp.n_ctx < DEFAULT_CTX ? m->hp.n_ctx : DEFAULT_CTX);
    if (p->chunk == WEFT_CHUNK_AUTO && !p->steady_ms) p->steady_ms = DEFAULT_STEADY_MS;
    if (p->chunk == WEFT_CHUNK_AUTO || (!p->chunk && p->steady_ms)) p->chunk = p->step_rows;
    p->chunk = or_default(p->chunk, p->step_rows < WEFT__BATCHER_CHUNK ? p->step_rows : WEFT__BATCHER_CHUNK);
    p->max_queue = or_default(p->max_queue, DEFAULT_QUEUE);
    if (!p->store_bytes) p->store_bytes = (uint64_t)4 << 30;
    if (!p->disk_wait_ms) p->disk_wait_ms = 30000;
    if ((st = check_range("step_rows", p->step_rows, 1, m->max_rows, err)) ||
        (st =
             check_range("n_slots", p->n_slots, 1, m->max_wanted < p->step_rows ? m->max_wanted : p->step_rows, err)) ||
        (st = check_range("n_ctx", p->n_ctx, 1, WEFT_CTX_MAX, err)) ||
        (st = weft__engine_model_context(m, p->n_ctx, err)) ||
        (st = check_range("chunk", p->chunk, 1, p->step_rows, err)) ||
        (st = check_range("steady_ms", p->steady_ms, 0, 60000, err)) ||
        (st = check_range("max_queue", p->max_queue, 1, WEFT_QUEUE_MAX, err)) ||
        (st = check_range("n_kv_tokens", p->n_kv_tokens, 0, INT64_MAX / 2, err)) ||
        (st = check_range("swap", p->swap, WEFT_SWAP_AUTO, WEFT_SWAP_ALWAYS, err)) ||
        (st = check_range("rehearsal", p->rehearsal, 0, m->outline, err)) ||
        (st = check_range("spec", p->spec, WEFT_SPEC_OFF, WEFT_SPEC_DRAFT, err)))
        return st;
    if (p->store_dir && p->swap_bytes > p->store_bytes / 4)
        return weft_fail(err, WEFT_ARGUMENT,
                         "swap_bytes is %llu; a quarter of the store's %llu can be had, so %llu at most",
                         (unsigned long long)p->swap_bytes, (unsigned long long)p->store_bytes,
                         (unsigned long long)p->store_bytes / 4);
    if ((st = check_range("n_kv_types", p->n_kv_types, 0, WEFT_KV_TYPES_MAX - 1, err))) return st;
    if (p->n_kv_types && !p->kv_types)
        return weft_fail(err, WEFT_ARGUMENT, "n_kv_types is %d, without types", p->n_kv_types);
    if (p->spec == WEFT_SPEC_DRAFT && !p->draft)
        return weft_fail(err, WEFT_ARGUMENT, "spec is %d: a draft model, and there is none; give one (--draft)",
                         p->spec);
    return WEFT_OK;
}

int weft__batcher_is_end(const weft_engine *e, int32_t token)
{
    for (int32_t i = 0; i < e->vocab.n_ends; i++)
        if (e->vocab.ends[i] == token) return 1;
    return 0;
}

/* ---- life ---- */

static void make_locks(weft_engine *e)
{
    pthread_mutex_init(&e->lock, NULL);
    pthread_mutex_init(&e->told.lock, NULL);
    weft__clock_cond_init(&e->wake);
    weft__clock_cond_init(&e->done);
}

static void on_began(void *arg, void *user)
{
    weft_engine *e = arg;
    e->events.began[e->events.n_began++] = (int32_t)((batcher_request *)user - e->records.all);
}

void weft__batcher_expire(batcher_request *r)
{
    r->status = WEFT_TIMEOUT;
    snprintf(r->message, sizeof r->message, "the request was not finished within its %llu ms",
             (unsigned long long)r->deadline_ms);
}

static void on_finished(void *arg, void *user, weft__sched_why why, const weft_error *err)
{
    weft_engine *e = arg;
    batcher_request *r = user;
    if (!r->status && why == WEFT__SCHED_LENGTH) r->finish = WEFT_FINISH_LENGTH;
    if (why == WEFT__SCHED_CANCELLED) r->finish = WEFT_FINISH_CANCELLED;
    if (why == WEFT__SCHED_ENDED && !r->ended) r->finish = WEFT_FINISH_STOP; /* weft_engine_finish */
    if (!r->status && why == WEFT__SCHED_TIMEOUT) weft__batcher_expire(r);
    if (!r->status && why == WEFT__SCHED_FAILED) {
        r->status = err ? (weft_status)err->status : WEFT_INTERNAL;
        snprintf(r->message, sizeof r->message, "%.255s", err ? err->message : "");
    }
    e->events.ended[e->events.n_ended++] = (int32_t)(r - e->records.all);
}

static weft_status make_sched(weft_engine *e, weft_error *err)
{
    const weft_engine_params *p = &e->params;
    weft__sched_limits limits = {.n_slots = p->n_slots,
                                 .step_rows = p->step_rows,
                                 .chunk = p->chunk,
                                 .max_queue = p->max_queue,
                                 .n_ctx = p->n_ctx,
                                 .reserve = e->block,
                                 .decode_cost = DECODE_COST,
                                 .age_us = AGE_US};
    weft__sched_store store = weft__batcher_store(e);
    weft__sched_hooks hooks = {e, on_began, on_finished};
    return weft__sched_create(&limits, &store, &hooks, &e->sched, err);
}

int32_t weft__batcher_max_wanted(const weft_model *m, int32_t n_slots)
{
    const int32_t n = n_slots > LEAST_WANTED ? n_slots : LEAST_WANTED;
    return n < m->max_wanted ? n : m->max_wanted;
}

static weft_status make_tables(weft_engine *e, weft_error *err)
{
    const weft_model *m = e->model;
    size_t n_vocab = (size_t)m->hp.n_vocab;
    e->records.n = e->params.n_slots + e->params.max_queue;
    e->max_wanted = weft__batcher_max_wanted(m, e->params.n_slots);
    e->records.all = weft__alloc_zero((size_t)e->records.n, sizeof *e->records.all);
    e->events.began = weft__alloc_array((size_t)e->records.n, sizeof *e->events.began);
    e->events.ended = weft__alloc_array((size_t)e->records.n, sizeof *e->events.ended);
    e->parts = weft__alloc_array((size_t)e->params.n_slots, sizeof *e->parts);
    e->logits = weft__alloc_aligned(64, (size_t)e->max_wanted * n_vocab * sizeof *e->logits);
    e->raw = weft__alloc_array(n_vocab, sizeof *e->raw);
    e->vector = weft__alloc_array((size_t)m->hp.d_model, sizeof *e->vector);
    e->vocab.ends = weft__alloc_array(n_vocab, sizeof *e->vocab.ends);
    e->vocab.nameless = weft__alloc_array(n_vocab, sizeof *e->vocab.nameless);
    e->vocab.is_nameless = weft__alloc_zero(n_vocab, sizeof *e->vocab.is_nameless);
    if (!e->records.all || !e->events.began || !e->events.ended || !e->parts || !e->logits || !e->raw || !e->vector ||
        !e->vocab.ends || !e->vocab.nameless || !e->vocab.is_nameless)
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for an engine of %d requests", e->records.n);
    weft_status st = e->params.rehearsal ? WEFT_OK : weft__engine_steps_init(m, &e->steps, err);
    if (st) return st;
    for (int32_t i = 0; i < e->records.n; i++)
        e->records.all[i] = (batcher_request){.engine = e, .next = i + 1 < e->records.n ? i + 1 : -1};
    for (int32_t t = 0; m->tokenizer && t < weft_tokenizer_n_vocab(m->tokenizer); t++)
        if (weft_token_is_end(m->tokenizer, t)) e->vocab.ends[e->vocab.n_ends++] = t;
    e->vocab.n_nameless =
        m->tokenizer ? weft_tokenizer_nameless(m->tokenizer, m->hp.n_vocab, e->vocab.nameless, m->hp.n_vocab) : 0;
    for (int32_t i = 0; i < e->vocab.n_nameless; i++) e->vocab.is_nameless[e->vocab.nameless[i]] = 1;
    e->records.first_pending = e->records.last_pending = -1;
    weft__batcher_count_pages(e); /* before the first step, too, callers are told what is held */
    return WEFT_OK;
}

static weft_status start(weft_engine *e, weft_error *err)
{
    weft__batcher_draft_costs(e);
    int why = weft__thread_start(&e->thread, weft__batcher_thread, e);
    return why ? weft_fail(err, WEFT_LIMIT, "no thread for an engine: %s", strerror(why)) : WEFT_OK;
}

/* Of one whose thread does not run. */
static void discard(weft_engine *e)
{
    weft__kv_store_close(&e->store, e->params.disk_wait_ms); /* calls back for what is queued */
    weft__kv_swap_destroy(&e->swap.pages);
    weft__batcher_commands_free(e); /* what it called back with too late, and what it gave up */
    weft__batcher_persist_end(e);
    weft__batcher_trace_close(e);
    weft__sched_destroy(&e->sched);
    weft__batcher_close_drafts(e);
    weft__batcher_close_pages(e);
    weft__adapt_store_destroy(&e->adapters);
    weft__free(e->vocab.is_nameless);
    weft__free(e->vocab.nameless);
    weft__free(e->vocab.ends);
    weft__free(e->vector);
    weft__free(e->raw);
    weft__free(e->logits);
    weft__free(e->parts);
    weft__engine_steps_free(&e->steps);
    weft__free(e->events.ended);
    weft__free(e->events.began);
    weft__free(e->records.all);
    pthread_cond_destroy(&e->done);
    pthread_cond_destroy(&e->wake);
    pthread_mutex_destroy(&e->told.lock);
    pthread_mutex_destroy(&e->lock);
    weft__free(e);
}

/* What steps need, others see, or takes memory. */
static void leave_out_what_runs(weft_engine_params *p)
{
    p->store_dir = p->trace = NULL;
    p->draft = NULL;
    p->lock_memory = 0;
    p->kv_bytes = 1; /* the pages of one request */
}

weft_status weft_engine_new(weft_model *model, const weft_engine_params *params, weft_engine **out, weft_error *err)
{
    weft_engine_params p;
    *out = NULL;
    weft_engine_params_default(&p);
    weft_status st = weft__params_read(WEFT__PARAMS_TYPE(weft_engine_params), &p, params, err);
    if (!st) st = weft__batcher_complete_params(model, &p, err);
    if (st) return st;
    if (p.rehearsal) leave_out_what_runs(&p);
    weft_engine *e = weft__alloc_zero(1, sizeof *e);
    if (!e) return weft_fail(err, WEFT_NO_MEMORY, "no memory for an engine");
    e->model = model;
    e->params = p;
    e->params.kv_types = e->kv_types;
    if (p.n_kv_types) memcpy(e->kv_types, p.kv_types, (size_t)p.n_kv_types * sizeof *e->kv_types);
    e->mask_most_ns = MASK_NS;
    make_locks(e);
    weft__batcher_pace_begin(e);
    weft__batcher_stats_begin(e);
    if ((st = weft__batcher_open_adapters(e, err)) || (st = weft__batcher_open_pages(e, err)) ||
        (st = weft__batcher_open_drafts(e, err)) || (st = make_tables(e, err)) || (st = make_sched(e, err)) ||
        (p.store_dir && ((st = weft__batcher_open_store(e, err)) || (st = weft__batcher_open_swap(e, err)))) ||
        (p.trace && (st = weft__batcher_trace_open(e, p.trace, err))) ||
        (p.lock_memory && (st = weft__mem_lock(err))) || (st = start(e, err))) {
        discard(e);
        return st;
    }
    e->params.store_dir = e->params.trace = NULL; /* the caller's */
    *out = e;
    return WEFT_OK;
}

/* With the lock. */
static void cancel_all(weft_engine *e)
{
    for (int32_t i = 0; i < e->records.n; i++) e->records.all[i].cancelled = 1;
    weft__sched_cancel_all(e->sched);
    e->work = 1;
    pthread_cond_signal(&e->wake);
}

weft_model *weft_engine_model(const weft_engine *e)
{
    return e->model;
}

int32_t weft_engine_spec(const weft_engine *e)
{
    return e->params.spec;
}

void weft_engine_free(weft_engine **p)
{
    weft_engine *e = p ? *p : NULL;
    if (!e) return;
    pthread_mutex_lock(&e->lock);
    e->draining = e->stop = 1;
    cancel_all(e);
    pthread_mutex_unlock(&e->lock);
    pthread_join(e->thread, NULL);
    discard(e);
    *p = NULL;
}

void weft_engine_limit_pages(weft_engine *e, uint64_t n_bytes)
{
    pthread_mutex_lock(&e->lock);
    e->kv_bytes = n_bytes ? n_bytes : 1; /* 0 is none that was asked for */
    e->work = 1;
    pthread_cond_signal(&e->wake);
    pthread_mutex_unlock(&e->lock);
}

void weft_engine_limit_adapters(weft_engine *e, uint64_t n_bytes)
{
    weft__adapt_store_give(e->adapters, n_bytes);
}

void weft_engine_drain(weft_engine *e, uint64_t timeout_ms)
{
    const uint64_t until = weft__clock_ns() + (timeout_ms < INT32_MAX ? timeout_ms : INT32_MAX) * 1000000;
    pthread_mutex_lock(&e->lock);
    e->draining = 1;
    while (e->records.n_live > 0 && !weft__clock_wait(&e->done, &e->lock, until))
        ;
    if (e->records.n_live > 0) cancel_all(e);
    while (e->records.n_live > 0) pthread_cond_wait(&e->done, &e->lock);
    pthread_mutex_unlock(&e->lock);
}
