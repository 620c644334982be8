/* serve.c: weft_engine: its parameters and its life, and what any thread may ask of it (serve.h says who owns what). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/params.h"
#include "base/thread.h"
#include "engine/serve.h"
#include "sample/sampler.h"

enum { DEFAULT_SLOTS = 16, DEFAULT_CTX = 4096, DEFAULT_CHUNK = 128, DEFAULT_QUEUE = 256, DECODE_COST = 2, AGE_US = 5000000 };
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
    *p = (weft_request_params){.size = sizeof *p, .max_tokens = -1, .n_top = -1};
    weft_sampler_params_default(&p->sampler);
}

void weft_request_params_init(weft_request_params *params, uint32_t size)
{
    weft_request_params own;
    (weft_request_params_default)(&own);
    weft__params_init(WEFT__PARAMS_TYPE(weft_request_params), params, size, &own);
}

static const uint64_t MASK_NS = 4000000; /* of a step for masks of grammars: those for data take some hundredths of it */

static int32_t or_default(int32_t value, int32_t otherwise)
{
    return value ? value : otherwise;
}

static weft_status check_range(const char *name, int64_t value, int64_t least, int64_t most, weft_error *err)
{
    if (value >= least && value <= most) return WEFT_OK;
    return weft_fail(err, WEFT_ARGUMENT, "%s is %lld; it must be %lld to %lld", name, (long long)value, (long long)least,
                     (long long)most);
}

/* Puts numbers where zeros stand, and checks them; n_kv_tokens is left to the pages. */
static weft_status complete_params(const weft_model *m, weft_engine_params *p, weft_error *err)
{
    weft_status st;
    p->step_rows = or_default(p->step_rows, m->max_rows);
    p->n_slots = or_default(p->n_slots, m->max_wanted < DEFAULT_SLOTS ? m->max_wanted : DEFAULT_SLOTS);
    p->n_ctx = or_default(p->n_ctx, m->hp.n_ctx < DEFAULT_CTX ? m->hp.n_ctx : DEFAULT_CTX);
    p->chunk = or_default(p->chunk, p->step_rows < DEFAULT_CHUNK ? p->step_rows : DEFAULT_CHUNK);
    p->max_queue = or_default(p->max_queue, DEFAULT_QUEUE);
    if (!p->store_bytes) p->store_bytes = (uint64_t)4 << 30;
    if (!p->disk_wait_ms) p->disk_wait_ms = 30000;
    if ((st = check_range("step_rows", p->step_rows, 1, m->max_rows, err)) ||
        (st = check_range("n_slots", p->n_slots, 1, m->max_wanted < p->step_rows ? m->max_wanted : p->step_rows, err)) ||
        (st = check_range("n_ctx", p->n_ctx, 1, WEFT_CTX_MAX, err)) || (st = weft__model_context(m, p->n_ctx, err)) ||
        (st = check_range("chunk", p->chunk, 1, p->step_rows, err)) ||
        (st = check_range("max_queue", p->max_queue, 1, WEFT_QUEUE_MAX, err)) ||
        (st = check_range("n_kv_tokens", p->n_kv_tokens, 0, INT64_MAX / 2, err)))
        return st;
    return WEFT_OK;
}

/* ---- life ---- */

static void make_locks(weft_engine *e)
{
    pthread_mutex_init(&e->lock, NULL);
    weft__clock_cond_init(&e->wake);
    weft__clock_cond_init(&e->told);
}

static void on_began(void *arg, void *user)
{
    weft_engine *e = arg;
    e->began[e->n_began++] = (int32_t)((serve_request *)user - e->records);
}

void weft__serve_late(serve_request *r)
{
    r->status = WEFT_TIMEOUT;
    snprintf(r->message, sizeof r->message, "the request was not finished within its %llu ms",
             (unsigned long long)r->deadline_ms);
}

static void on_finished(void *arg, void *user, weft__sched_why why, const weft_error *err)
{
    weft_engine *e = arg;
    serve_request *r = user;
    if (!r->status && why == WEFT__SCHED_LENGTH) r->finish = WEFT_FINISH_LENGTH;
    if (why == WEFT__SCHED_CANCELLED) r->finish = WEFT_FINISH_CANCELLED;
    if (!r->status && why == WEFT__SCHED_TIMEOUT) weft__serve_late(r);
    if (!r->status && why == WEFT__SCHED_FAILED) {
        r->status = err ? (weft_status)err->status : WEFT_INTERNAL;
        snprintf(r->message, sizeof r->message, "%.255s", err ? err->message : "");
    }
    e->ended[e->n_ended++] = (int32_t)(r - e->records);
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
    weft__sched_store store = weft__serve_store(e);
    weft__sched_hooks hooks = {e, on_began, on_finished};
    return weft__sched_create(&limits, &store, &hooks, &e->sched, err);
}

static weft_status make_tables(weft_engine *e, weft_error *err)
{
    const weft_model *m = e->model;
    size_t n_vocab = (size_t)m->hp.n_vocab;
    e->n_records = e->params.n_slots + e->params.max_queue;
    e->max_wanted = e->params.n_slots > LEAST_WANTED ? e->params.n_slots : LEAST_WANTED;
    if (e->max_wanted > m->max_wanted) e->max_wanted = m->max_wanted;
    e->records = weft__alloc_zero((size_t)e->n_records, sizeof *e->records);
    e->began = weft__alloc_array((size_t)e->n_records, sizeof *e->began);
    e->ended = weft__alloc_array((size_t)e->n_records, sizeof *e->ended);
    e->parts = weft__alloc_array((size_t)e->params.n_slots, sizeof *e->parts);
    e->logits = weft__alloc_aligned(64, (size_t)e->max_wanted * n_vocab * sizeof *e->logits);
    e->raw = weft__alloc_array(n_vocab, sizeof *e->raw);
    e->vector = weft__alloc_array((size_t)m->hp.d_model, sizeof *e->vector);
    e->ends = weft__alloc_array(n_vocab, sizeof *e->ends);
    e->nameless = weft__alloc_array(n_vocab, sizeof *e->nameless);
    e->is_nameless = weft__alloc_zero(n_vocab, sizeof *e->is_nameless);
    if (!e->records || !e->began || !e->ended || !e->parts || !e->logits || !e->raw || !e->vector || !e->ends || !e->nameless ||
        !e->is_nameless)
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for an engine of %d requests", e->n_records);
    for (int32_t i = 0; i < e->n_records; i++)
        e->records[i] = (serve_request){.engine = e, .next = i + 1 < e->n_records ? i + 1 : -1};
    for (int32_t t = 0; m->tokenizer && t < weft_tokenizer_n_vocab(m->tokenizer); t++)
        if (weft_token_is_end(m->tokenizer, t)) e->ends[e->n_ends++] = t;
    e->n_nameless = m->tokenizer ? weft_tokenizer_nameless(m->tokenizer, m->hp.n_vocab, e->nameless, m->hp.n_vocab) : 0;
    for (int32_t i = 0; i < e->n_nameless; i++) e->is_nameless[e->nameless[i]] = 1;
    e->first_pending = e->last_pending = -1;
    weft__serve_count_pages(e); /* who asks before the first step is told what is held, too */
    return WEFT_OK;
}

static weft_status start(weft_engine *e, weft_error *err)
{
    int why = weft__thread_start(&e->thread, weft__serve_thread, e);
    return why ? weft_fail(err, WEFT_LIMIT, "no thread for an engine: %s", strerror(why)) : WEFT_OK;
}

/* Of one whose thread does not run. */
static void discard(weft_engine *e)
{
    weft__store_close(&e->store, e->params.disk_wait_ms); /* calls back for what is queued */
    weft__serve_commands_free(e);                         /* what it called back with too late, and what it gave up */
    weft__serve_keep_nothing(e);
    for (; e->n_keeps > 0; e->n_keeps--) weft__free(e->keeps[(e->first_keep + e->n_keeps - 1) % SERVE_KEEPS].tokens);
    weft__serve_trace_close(e);
    weft__sched_destroy(&e->sched);
    weft__serve_close_pages(e);
    weft__adapt_store_destroy(&e->adapters);
    weft__free(e->is_nameless);
    weft__free(e->nameless);
    weft__free(e->ends);
    weft__free(e->vector);
    weft__free(e->raw);
    weft__free(e->logits);
    weft__free(e->parts);
    weft__free(e->ended);
    weft__free(e->began);
    weft__free(e->records);
    pthread_cond_destroy(&e->told);
    pthread_cond_destroy(&e->wake);
    pthread_mutex_destroy(&e->lock);
    weft__free(e);
}

weft_status weft_engine_new(weft_model *model, const weft_engine_params *params, weft_engine **out, weft_error *err)
{
    weft_engine_params p;
    *out = NULL;
    weft_engine_params_default(&p);
    weft_status st = weft__params_read(WEFT__PARAMS_TYPE(weft_engine_params), &p, params, err);
    if (!st) st = complete_params(model, &p, err);
    if (st) return st;
    weft_engine *e = weft__alloc_zero(1, sizeof *e);
    if (!e) return weft_fail(err, WEFT_NO_MEMORY, "no memory for an engine");
    e->model = model;
    e->params = p;
    e->mask_most_ns = MASK_NS;
    make_locks(e);
    weft__serve_stats_begin(e);
    if ((st = weft__serve_open_adapters(e, err)) || (st = weft__serve_open_pages(e, err)) || (st = make_tables(e, err)) ||
        (st = make_sched(e, err)) || (p.store_dir && (st = weft__serve_open_store(e, err))) ||
        (p.trace && (st = weft__serve_trace_open(e, p.trace, err))) || (st = start(e, err))) {
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
    for (int32_t i = 0; i < e->n_records; i++) e->records[i].cancelled = 1;
    weft__sched_cancel_all(e->sched);
    e->work = 1;
    pthread_cond_signal(&e->wake);
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

void weft_engine_drain(weft_engine *e, uint64_t timeout_ms)
{
    const uint64_t until = weft__clock_ns() + (timeout_ms < INT32_MAX ? timeout_ms : INT32_MAX) * 1000000;
    pthread_mutex_lock(&e->lock);
    e->draining = 1;
    while (e->n_live > 0 && !weft__clock_wait(&e->told, &e->lock, until))
        ;
    if (e->n_live > 0) cancel_all(e);
    while (e->n_live > 0) pthread_cond_wait(&e->told, &e->lock);
    pthread_mutex_unlock(&e->lock);
}

/* ---- submit ---- */

static weft_status check_request(const weft_engine *e, const weft_request_params *p, weft_error *err)
{
    int32_t n_vocab = e->model->hp.n_vocab;
    if (!p->event) return weft_fail(err, WEFT_ARGUMENT, "a request without an event function");
    if (p->n_tokens < 1 || !p->tokens) return weft_fail(err, WEFT_ARGUMENT, "the prompt has no tokens");
    if (p->max_tokens < -1)
        return weft_fail(err, WEFT_ARGUMENT, "max_tokens is %d; it must be -1 (until the context is full) or more",
                         p->max_tokens);
    if (p->n_top < -1 || p->n_top > SERVE_MAX_TOP)
        return weft_fail(err, WEFT_ARGUMENT, "n_top is %d; it must be -1 (none) to %d", p->n_top, SERVE_MAX_TOP);
    if (p->embedding && (p->grammar || p->prompt_logprobs || p->max_tokens > 0))
        return weft_fail(err, WEFT_ARGUMENT, "a request for an embedding generates no tokens and has no log-probabilities");
    for (int32_t i = 0; i < p->n_tokens; i++)
        if (p->tokens[i] < 0 || p->tokens[i] >= n_vocab)
            return weft_fail(err, WEFT_ARGUMENT, "token %d at place %d: the model has ids 0 to %d", p->tokens[i], i, n_vocab - 1);
    return p->embedding ? WEFT_OK : weft__sampler_check(&p->sampler, n_vocab, err); /* an embedding samples nothing */
}

/* Tokens to generate at most; WEFT_LIMIT when prompt and answer can never be held. */
static weft_status count_tokens(const weft_engine *e, const weft_request_params *p, int32_t *max_new, weft_error *err)
{
    int32_t n_ctx = e->params.n_ctx, wanted = p->embedding ? 0 : p->max_tokens, least = wanted != 0,
            cut = wanted < 0 || p->cut_to_fit;
    if (p->n_tokens > n_ctx - least)
        return weft_fail(err, WEFT_LIMIT, "the prompt has %d tokens; the context holds %d, the answer included", p->n_tokens,
                         n_ctx);
    if (wanted > n_ctx - p->n_tokens && !cut)
        return weft_fail(err, WEFT_LIMIT, "%d tokens of prompt and max_tokens %d exceed the context of %d tokens", p->n_tokens,
                         wanted, n_ctx);
    *max_new = wanted < 0 || wanted > n_ctx - p->n_tokens ? n_ctx - p->n_tokens : wanted;
    weft__sched_store store = weft__serve_store((weft_engine *)(uintptr_t)e);
    for (int32_t g = 0; g < store.n_groups; g++) {
        int64_t capacity = store.capacity(store.arg, g);
        /* Until the pages are full, unless just as many are wanted. */
        while (cut && *max_new > 1 && store.pages(store.arg, g, p->n_tokens + *max_new - 1) > capacity) (*max_new)--;
        int64_t pages = store.pages(store.arg, g, p->n_tokens + (*max_new > 0 ? *max_new - 1 : 0));
        if (pages > capacity)
            return weft_fail(
                err, WEFT_LIMIT,
                "%d tokens of prompt and %d to generate need %lld KV pages; there are %lld: ask for fewer, or give the engine more",
                p->n_tokens, *max_new, (long long)pages, (long long)capacity);
    }
    return WEFT_OK;
}

/* Copies what was asked for into a record that nobody else sees. */
static weft_status draft(weft_engine *e, const weft_request_params *p, serve_request *r, weft_error *err)
{
    const char *tenant = p->tenant ? p->tenant : "";
    *r = (serve_request){.engine = e,
                         .n_prompt = p->n_tokens,
                         .n_known = p->n_tokens,
                         .n_top = p->n_top,
                         .priority = p->priority,
                         .sampling = p->sampler,
                         .ignore_end = p->ignore_end,
                         .prompt_logprobs = p->prompt_logprobs,
                         .embedding = p->embedding,
                         .no_cache = p->no_cache,
                         .read_events = p->read_events,
                         .deadline_ms = p->deadline_ms,
                         .event = p->event,
                         .arg = p->arg,
                         .submitted_ns = weft__clock_ns(),
                         .tenant = weft__hash(tenant, strlen(tenant)),
                         .finish = WEFT_FINISH_END};
    weft_status st = count_tokens(e, p, &r->max_new, err);
    if (!st) st = weft__serve_lease(e, p, r, err);
    if (!st) st = weft__serve_root(e, tenant, r->lease, &r->root, err);
    if (st) return st;
    if (p->deadline_ms) r->deadline_ns = r->submitted_ns + (p->deadline_ms < INT32_MAX ? p->deadline_ms : INT32_MAX) * 1000000;
    size_t room = (size_t)p->n_tokens + (size_t)r->max_new, n_bias = (size_t)p->sampler.n_bias, d = (size_t)e->model->hp.d_model;
    r->tokens = weft__alloc_array(room, sizeof *r->tokens);
    r->bias = weft__alloc_array(n_bias, sizeof *r->bias);
    if (p->embedding) r->sum = weft__alloc_zero(d, sizeof *r->sum);
    if (!r->tokens || !r->bias || (p->embedding && !r->sum))
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for a request of %zu tokens", room);
    memcpy(r->tokens, p->tokens, (size_t)p->n_tokens * sizeof *r->tokens);
    if (n_bias) memcpy(r->bias, p->sampler.bias, n_bias * sizeof *r->bias);
    r->sampling.bias = r->bias;
    r->sampling.nameless = e->nameless;
    r->sampling.n_nameless = e->n_nameless;
    if (p->grammar) r->grammar = weft_grammar_retain(p->grammar);
    return weft__kv_seq_create(e->pool, (int32_t)room, &r->seq, err);
}

static void append_pending(weft_engine *e, int32_t i)
{
    e->records[i].next = -1;
    *(e->last_pending < 0 ? &e->first_pending : &e->records[e->last_pending].next) = i;
    e->last_pending = i;
}

/* 1: one more that waits for the disk leaves others the room that they would have beside so many in the queue. With the lock. */
static int may_wait_for_disk(weft_engine *e, uint64_t tenant)
{
    int32_t n_own = 0, n = 0;
    for (int32_t i = e->first_pending; i >= 0; i = e->records[i].next, n++) n_own += e->records[i].tenant == tenant;
    return weft__sched_has_room(e->sched, tenant, n_own, n);
}

/* Gives the draft a record, and that to the scheduler, or to those who wait for the disk. With the lock. */
static weft_status admit(weft_engine *e, const serve_request *draft, int fetch, uint64_t *id, double *retry_after_s,
                         weft_error *err)
{
    if (e->draining) return weft_fail(err, WEFT_STATE, "the engine accepts no more requests: it is shutting down");
    if (e->free_record < 0 || (fetch && !may_wait_for_disk(e, draft->tenant))) {
        double seconds = weft__sched_retry_after(e->sched, weft__clock_ns() / 1000);
        if (retry_after_s) *retry_after_s = seconds;
        return weft_fail(err, WEFT_BUSY, "%d requests are here already; try again in %.0f s", e->n_live,
                         seconds < 1 ? 1 : seconds);
    }
    int32_t i = e->free_record, next = e->records[i].next;
    serve_request *r = &e->records[i];
    uint32_t generation = r->generation + 1;
    *r = *draft;
    r->generation = generation;
    r->id = (uint64_t)generation << 32 | (uint32_t)(i + 1);
    weft_status st = WEFT_OK;
    if (fetch) {
        r->state = SERVE_ASKING;
    } else {
        st = weft__serve_schedule(r, retry_after_s, err);
    }
    if (st) {
        *r = (serve_request){.engine = e, .generation = generation, .next = next};
        return st;
    }
    e->free_record = next;
    if (fetch) append_pending(e, i);
    e->n_live++;
    *id = r->id;
    return WEFT_OK;
}

weft_status weft_engine_submit(weft_engine *e, const weft_request_params *params, uint64_t *request, double *retry_after_s,
                               weft_error *err)
{
    weft_request_params own, *p = &own;
    weft_sampler_params sampler;
    serve_request r = {.engine = e};
    *request = 0;
    weft_request_params_default(p);
    sampler = own.sampler;
    weft_status st = weft__params_read(WEFT__PARAMS_TYPE(weft_request_params), p, params, err);
    if (!st) st = weft__params_read(WEFT__PARAMS_TYPE(weft_sampler_params), &sampler, &p->sampler, err);
    if (!st) own.sampler = sampler;
    if (!st) st = check_request(e, p, err);
    if (!st) st = draft(e, p, &r, err);
    int fetch = !st && weft__serve_worth_fetching(&r);
    if (!st) {
        pthread_mutex_lock(&e->lock);
        st = admit(e, &r, fetch, request, retry_after_s, err);
        e->stats.n_submitted += st == WEFT_OK;
        e->stats.n_refused += st == WEFT_BUSY;
        e->work |= st == WEFT_OK;
        if (!st) pthread_cond_signal(&e->wake);
        pthread_mutex_unlock(&e->lock);
    }
    if (st) weft__serve_clear(&r);
    return st;
}

weft_status weft__serve_schedule(serve_request *r, double *retry_after_s, weft_error *err)
{
    weft_engine *e = r->engine;
    weft__sched_request q = {.user = r,
                             .tenant = r->tenant,
                             .priority = r->priority,
                             .n_prompt = r->n_prompt,
                             .max_new = r->max_new,
                             .deadline_us = r->deadline_ns / 1000};
    weft_status st = weft__sched_submit(e->sched, &q, weft__clock_ns() / 1000, &r->sched_id, retry_after_s, err);
    if (!st) r->state = SERVE_SCHEDULED;
    return st;
}

void weft_engine_cancel(weft_engine *e, uint64_t request)
{
    uint32_t i = (uint32_t)request - 1, generation = (uint32_t)(request >> 32);
    if (i >= (uint32_t)e->n_records) return;
    serve_request *r = &e->records[i];
    pthread_mutex_lock(&e->lock);
    if (r->state != SERVE_FREE && r->generation == generation) {
        if (r->state == SERVE_SCHEDULED) weft__sched_cancel(e->sched, r->sched_id);
        r->cancelled = 1;
        e->work = 1;
        pthread_cond_signal(&e->wake);
    }
    pthread_mutex_unlock(&e->lock);
}

/* ---- save and restore ---- */

/* For n tokens, which are copied where they are given; NULL: no memory. */
static serve_command *command_new(weft_engine *e, const char *name, const int32_t *tokens, int32_t n)
{
    serve_command *c = weft__alloc_zero(1, sizeof *c);
    if (!c) return NULL;
    c->engine = e;
    c->n = c->capacity = n;
    snprintf(c->name, sizeof c->name, "%s", name);
    c->tokens = weft__alloc_array((size_t)n, sizeof *c->tokens);
    if (c->tokens && tokens) memcpy(c->tokens, tokens, (size_t)n * sizeof *tokens);
    if (c->tokens) return c;
    weft__serve_command_free(c);
    return NULL;
}

/* Changes when the engine's thread, or the store's, does some of what c waits for. With the lock. */
static uint64_t progress(const serve_command *c)
{
    return c->n_turns + weft__store_n_done(c->engine->store);
}

/* Waits until the engine's thread, or the store's, is done with it: 1, and it is the caller's to free; 0: nothing has moved for
 * disk_wait_ms: the disk does not answer. */
static int wait_for(serve_command *c, weft_error *err)
{
    weft_engine *e = c->engine;
    pthread_mutex_lock(&e->lock);
    uint32_t wait_ms = e->params.disk_wait_ms;
    for (int late = 0; !c->done && !late;) {
        const uint64_t seen = progress(c), until = weft__clock_ns() + wait_ms * 1000000ull;
        do late = weft__clock_wait(&e->told, &e->lock, until) != 0;
        while (!c->done && !late && progress(c) == seen);
        late = late && progress(c) == seen;
    }
    int done = c->done;
    if (!done) weft__serve_command_abandon(c);
    pthread_mutex_unlock(&e->lock);
    if (!done) weft_fail(err, WEFT_TIMEOUT, "the disk has not answered within %g s; it may do it yet", wait_ms / 1e3);
    else if (c->status && err) *err = c->err;
    return done;
}

static weft_status check_slot(const weft_engine *e, const char *name, weft_error *err)
{
    if (!e->store) return weft_fail(err, WEFT_UNSUPPORTED, "this engine has no store to keep slots in; give it a folder for one");
    if (!name || !weft__store_name_ok(name))
        return weft_fail(err, WEFT_ARGUMENT, "a slot's name has 1 to %d of the characters A-Z a-z 0-9 . _ - and is not . or ..",
                         WEFT__STORE_NAME);
    return WEFT_OK;
}

weft_status weft_engine_save(weft_engine *e, const char *tenant, const int32_t *tokens, int32_t n, const char *name,
                             int32_t *n_saved, uint64_t *n_bytes, weft_error *err)
{
    weft__kv_key root;
    *n_saved = 0;
    *n_bytes = 0;
    weft_status st = check_slot(e, name, err);
    if (!st && (n < 1 || n > WEFT__SNAPSHOT_TOKENS)) st = weft_fail(err, WEFT_ARGUMENT, "%d tokens to save", n);
    if (!st) st = weft__serve_root(e, tenant ? tenant : "", NULL, &root, err);
    if (st) return st;
    serve_command *c = command_new(e, name, tokens, n);
    if (!c) return weft_fail(err, WEFT_NO_MEMORY, "no memory to save %d tokens", n);
    c->save = 1;
    c->root = root;
    pthread_mutex_lock(&e->lock);
    weft__serve_command(c);
    pthread_mutex_unlock(&e->lock);
    if (!wait_for(c, err)) return WEFT_TIMEOUT;
    st = c->status;
    if (!st) {
        *n_saved = c->n;
        *n_bytes = c->n_bytes;
    }
    weft__serve_command_free(c);
    return st;
}

weft_status weft_engine_restore(weft_engine *e, const char *name, int32_t *tokens, int32_t capacity, int32_t *n_tokens,
                                uint64_t *n_bytes, weft_error *err)
{
    *n_tokens = 0;
    *n_bytes = 0;
    weft_status st = check_slot(e, name, err);
    if (st) return st;
    serve_command *c = command_new(e, name, NULL, capacity);
    if (!c) return weft_fail(err, WEFT_NO_MEMORY, "no memory to restore %d tokens", capacity);
    if ((st = weft__store_fetch_slot(e->store, name, weft__serve_slot_read, c, err))) {
        weft__serve_command_free(c);
        return st;
    }
    if (!wait_for(c, err)) return WEFT_TIMEOUT;
    st = c->status;
    if (!st) {
        int32_t n_told = c->n < capacity ? c->n : capacity;
        if (n_told > 0) memcpy(tokens, c->tokens, (size_t)n_told * sizeof *tokens);
        *n_tokens = c->n;
        *n_bytes = c->n_bytes;
    }
    weft__serve_command_free(c);
    return st;
}

weft_status weft_engine_erase(weft_engine *e, const char *name, weft_error *err)
{
    weft_status st = check_slot(e, name, err);
    if (st) return st;
    serve_command *c = command_new(e, name, NULL, 0);
    if (!c) return weft_fail(err, WEFT_NO_MEMORY, "no memory to erase a slot");
    if ((st = weft__store_erase(e->store, name, weft__serve_slot_done, c, err))) {
        weft__serve_command_free(c);
        return st;
    }
    if (!wait_for(c, err)) return WEFT_TIMEOUT;
    st = c->status;
    weft__serve_command_free(c);
    return st;
}
