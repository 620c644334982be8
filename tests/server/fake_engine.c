// SPDX-License-Identifier: Apache-2.0
/* fake_engine.c: a double of the engine for tests of the server: the functions of weft.h about requests and adapters
 * that the server calls, over fake_model.c. It says what its prompt tells it to; a prompt holds orders:
 *   [say TEXT]   generates TEXT, a token per byte, then ends      [loop TEXT]  TEXT again and again
 *   [delay MS]   before each token                                [queue MS]   before the first
 *   [fail N]     fails after N tokens                             [busy]       the queue is full
 *   [adapters]   generates the names and scales of its adapters   [versions]   their numbers and versions
 *   [reject]     the request is refused                           [seed]       generates the seed, in decimal
 *   [sampler]    generates temperature, top_k and the window of penalties
 *   [model]      generates the file of its model                  [pick A|B|C] one of them, by the seed
 *   [unlikely]   no token is among the likeliest                  [submit MS]  its caller is held before it has a place
 *   [most N]     ends the process where it is left to generate more tokens
 * Without an order it says "Hello, world!". Of a prediction each token is tried at its place. Any empty file may be an
 * adapter, but "other..." is of another base. A slot takes as long to be saved as "hung" as fake_hold does. A file
 * "slow..." that is added, and an adapter "slow..." that is first used, take as long as a file "hold" lies beside them.
 * For an adapter "full..." there is no room while a request runs; the file of one "changed..." has changed. One thread
 * owns the running requests, as in the engine; it complains on stderr when an end takes its thread much memory. */
#include "fake_engine.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"

void weft_sampler_params_init(weft_sampler_params *p, uint32_t size)
{
    (void)size;
    *p = (weft_sampler_params){.size = sizeof *p};
}

void weft_request_params_init(weft_request_params *p, uint32_t size)
{
    (void)size;
    *p = (weft_request_params){.size = sizeof *p, .n_top = -1, .draft_max = WEFT_DRAFT_MAX};
}

static void text_of(const weft_engine *e, const struct request *r, char *out, size_t capacity)
{
    size_t n = 0;
    for (int32_t i = 0; i < r->p.n_tokens && n + 24 < capacity; i++) {
        size_t length = 0;
        const char *s = weft_token_bytes(weft_model_tokenizer(e->model), r->tokens[i], &length);
        memcpy(out + n, s, length);
        n += length;
    }
    out[n] = 0;
}

static const char *order(const char *text, const char *name)
{
    char open[32];
    snprintf(open, sizeof open, "[%s ", name);
    const char *s = strstr(text, open);
    return s ? s + strlen(open) : NULL;
}

/* A|B|C]: the one of the seed's number, from 0. */
static void pick(struct request *r, const char *s)
{
    for (uint64_t at = r->p.sampler.seed; at && s[strcspn(s, "|]")] == '|'; at--) s += strcspn(s, "|]") + 1;
    snprintf(r->script, sizeof r->script, "%.*s", (int)strcspn(s, "|]"), s);
}

static void read_script(weft_engine *e, struct request *r)
{
    char text[8192];
    const char *s;
    text_of(e, r, text, sizeof text);
    const weft_engine_lease *lease = r->p.lease;
    r->fail_after = -1;
    strcpy(r->script, "Hello, world!");
    if ((s = order(text, "say")) || (s = order(text, "loop")))
        snprintf(r->script, sizeof r->script, "%.*s", (int)strcspn(s, "]"), s);
    r->loops = order(text, "loop") != NULL;
    if ((s = order(text, "delay"))) r->delay_ns = (uint64_t)atoi(s) * 1000000;
    if ((s = order(text, "queue"))) r->due_ns += (uint64_t)atoi(s) * 1000000;
    if ((s = order(text, "fail"))) r->fail_after = atoi(s);
    if (strstr(text, "[adapters]")) {
        r->script[0] = '-', r->script[1] = 0;
        for (int32_t i = 0, at = 0; lease && i < lease->n; i++)
            at += snprintf(r->script + at, sizeof r->script - (size_t)at, "%s=%g;", lease->adapters[i].name,
                           (double)lease->adapters[i].scale);
    }
    if (strstr(text, "[versions]"))
        for (int32_t i = 0, at = 0; lease && i < lease->n; i++)
            at += snprintf(r->script + at, sizeof r->script - (size_t)at, "%d.%d;", lease->adapters[i].index,
                           lease->adapters[i].version);
    if (strstr(text, "[model]")) snprintf(r->script, sizeof r->script, "%s", fake_model_path(e->model));
    if (strstr(text, "[seed]")) snprintf(r->script, sizeof r->script, "%llu", (unsigned long long)r->p.sampler.seed);
    if ((s = order(text, "pick"))) pick(r, s);
    if (strstr(text, "[sampler]"))
        snprintf(r->script, sizeof r->script, "%g %d %d", (double)r->p.sampler.temperature, r->p.sampler.top_k,
                 r->p.sampler.penalty_last_n);
    if ((s = order(text, "most"))) r->most = atoi(s);
    r->unlikely = strstr(text, "[unlikely]") != NULL;
    r->n_script = strlen(r->script);
    if ((s = order(text, "submit"))) r->hold_us = (unsigned)atoi(s) * 1000;
    if (strstr(text, "[busy]")) r->fail_after = -2;
    if (strstr(text, "[reject]")) r->fail_after = -3;
}

static void free_request(struct request *r)
{
    weft_grammar *g = (weft_grammar *)r->p.grammar;
    weft_grammar_free(&g);
    weft__free(r->tokens);
    weft__free(r);
}

const char *weft_drafter_name(int32_t drafter)
{
    static const char *const names[] = {"suffix", "prediction", "forced", "model"};
    return names[drafter];
}

/* A tenant leaves some places to others, as in the engine; where there are few, none. */
static int most_of_one(const weft_engine *e)
{
    int all = e->max_queue + N_SLOTS;
    return all - all / 9;
}

static weft_status refuse(weft_engine *e, const struct request *r, double *retry_after_s, weft_error *err)
{
    if (e->draining) return weft_fail(err, WEFT_STATE, "the engine is shutting down");
    if (r->fail_after == -3) return weft_fail(err, WEFT_ARGUMENT, "the engine does not like this request");
    int n = 0;
    for (const struct request *o = e->requests; o; o = o->next) n += !strcmp(o->tenant, r->tenant);
    if (r->fail_after != -2 && e->n_requests < e->max_queue + N_SLOTS && n < most_of_one(e)) return WEFT_OK;
    if (retry_after_s) *retry_after_s = 6.5;
    e->stats.n_refused++;
    return weft_fail(err, WEFT_BUSY, "the queue is full; try again in 7 seconds");
}

weft_status weft_engine_submit(weft_engine *e, const weft_request_params *params, uint64_t *request,
                               double *retry_after_s, weft_error *err)
{
    struct request *r = weft__alloc_zero(1, sizeof *r);
    if (params->n_tokens < 1) abort(); /* the server checks */
    for (int32_t i = 0; i < params->n_tokens; i++)
        if (params->tokens[i] < 0 || params->tokens[i] >= FAKE_VOCAB) abort();
    if (params->n_tokens + (params->max_tokens > 0) > e->n_ctx ||
        (!params->shift && params->max_tokens > e->n_ctx - params->n_tokens))
        abort();
    if (!params->shift && params->n_keep) abort();
    if (!params->cut_to_fit) abort(); /* pages are no reason to refuse what the context is none for */
    if (r) r->tokens = weft__alloc_array((size_t)params->n_tokens, sizeof *r->tokens);
    if (!r || !r->tokens) { /* --fail-every may refuse these, too */
        weft__free(r);
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for a request");
    }
    r->p = *params;
    memcpy(r->tokens, params->tokens, (size_t)params->n_tokens * sizeof *r->tokens);
    r->p.grammar = weft_grammar_retain(params->grammar);
    r->p.tokens = NULL;
    memcpy(r->insert, params->insert ? params->insert : r->insert, (size_t)params->n_insert * sizeof *r->insert);
    r->at_insert = params->n_insert;
    r->p.n_predicted = params->n_predicted < 256 && params->draft_max > 0 ? params->n_predicted : 0;
    memcpy(r->predicted, params->predicted ? params->predicted : r->predicted,
           (size_t)r->p.n_predicted * sizeof *r->predicted);
    snprintf(r->tenant, sizeof r->tenant, "%s", params->tenant ? params->tenant : "");
    r->p.tenant = NULL;
    r->p.sampler.bias = NULL;
    r->submitted_ns = r->due_ns = weft__clock_ns();
    if (params->deadline_ms) r->deadline_ns = r->submitted_ns + params->deadline_ms * 1000000;
    read_script(e, r);
    for (; r->p.lease && r->n_adapters < r->p.lease->n; r->n_adapters++)
        r->adapters[r->n_adapters] = r->p.lease->adapters[r->n_adapters].index;
    if (r->hold_us) usleep(r->hold_us);
    r->p.lease = NULL;
    r->limit = params->max_tokens < 0 ? e->n_ctx - params->n_tokens : params->max_tokens;
    pthread_mutex_lock(&e->lock);
    weft_status st = refuse(e, r, retry_after_s, err);
    if (!st) {
        struct request **end = &e->requests;
        while (*end) end = &(*end)->next;
        *end = r;
        for (int32_t i = 0; i < r->n_adapters; i++) fake_adapter_use(e, r->adapters[i], 1);
        *request = r->id = ++e->last_id;
        e->n_requests++;
        e->stats.n_submitted++;
        pthread_cond_signal(&e->wake);
    }
    pthread_mutex_unlock(&e->lock);
    if (st) free_request(r);
    return st;
}

void weft_engine_cancel(weft_engine *e, uint64_t request)
{
    pthread_mutex_lock(&e->lock);
    for (struct request *r = e->requests; r; r = r->next)
        if (r->id == request) r->cancelled = 1;
    pthread_cond_signal(&e->wake);
    pthread_mutex_unlock(&e->lock);
}

void weft_engine_finish(weft_engine *e, uint64_t request)
{
    pthread_mutex_lock(&e->lock);
    for (struct request *r = e->requests; r; r = r->next)
        if (r->id == request) r->finished = 1;
    pthread_cond_signal(&e->wake);
    pthread_mutex_unlock(&e->lock);
}

void weft_engine_on_told(weft_engine *e, void (*told)(void *arg), void *arg)
{
    pthread_mutex_lock(&e->told_lock);
    e->told = told;
    e->told_arg = arg;
    pthread_mutex_unlock(&e->told_lock);
}

static void call_told(weft_engine *e)
{
    pthread_mutex_lock(&e->told_lock);
    if (e->told) e->told(e->told_arg);
    pthread_mutex_unlock(&e->told_lock);
}

/* Without the lock from here on: events may cancel. */

static weft_event event(const struct request *r, uint32_t kind)
{
    return (weft_event){.size = sizeof(weft_event),
                        .kind = kind,
                        .request = r->id,
                        .n_prompt = r->p.n_tokens,
                        .n_read = r->p.n_tokens,
                        .n_generated = r->n_generated,
                        .logprob = NAN};
}

/* What goes beyond the context, but for what is to stay; not when it goes, as in an engine. */
static int32_t dropped(const weft_engine *e, const struct request *r)
{
    const int32_t n = r->p.n_tokens + r->n_generated - e->n_ctx;
    return r->p.shift && n > 0 ? n + r->p.n_keep : 0;
}

static _Thread_local size_t n_allocated;

void fake_engine_allocated(size_t n_bytes)
{
    n_allocated += n_bytes;
}

static void finish(weft_engine *e, struct request *r, weft_finish why, weft_status status, const char *message)
{
    weft_event ev = event(r, WEFT_EVENT_FINISHED);
    ev.token = -1; /* no script has an end token */
    uint64_t now = weft__clock_ns();
    ev.finish = why;
    ev.status = status;
    ev.message = message;
    ev.n_drafted = ev.n_predicted = r->n_generated < r->p.n_predicted ? r->n_generated : r->p.n_predicted;
    ev.drafted[WEFT_DRAFTER_PREDICTION] = ev.n_predicted;
    ev.accepted[WEFT_DRAFTER_PREDICTION] = r->n_right;
    ev.queue_ms = (double)((r->began_ns ? r->began_ns : now) - r->submitted_ns) / 1e6;
    ev.prompt_ms = 1;
    ev.n_dropped = dropped(e, r);
    ev.generate_ms = r->began_ns ? (double)(now - r->began_ns) / 1e6 : 0;
    pthread_mutex_lock(&e->lock);
    struct request **at = &e->requests;
    while (*at != r) at = &(*at)->next;
    *at = r->next;
    for (int32_t i = 0; i < r->n_adapters; i++) fake_adapter_use(e, r->adapters[i], -1);
    e->n_requests--;
    e->n_running -= r->running;
    e->stats.n_finished++;
    e->stats.prompt_tokens += (uint64_t)r->p.n_tokens;
    pthread_cond_broadcast(&e->idle);
    pthread_mutex_unlock(&e->lock);
    size_t before = n_allocated;
    r->p.event(r->p.arg, &ev);
    if (n_allocated - before > 1 << 20)
        fprintf(stderr, "fake engine: an end took its thread %zu bytes\n", n_allocated - before);
    free_request(r);
}

static int tell_token(struct request *r, uint32_t kind, int32_t token, float logprob)
{
    weft_token_prob top[20];
    weft_event ev = event(r, kind);
    ev.token = token;
    if (kind == WEFT_EVENT_TOKEN && r->n_generated <= r->p.n_predicted && r->predicted[r->n_generated - 1] == token)
        ev.drafter = 1 + WEFT_DRAFTER_PREDICTION, r->n_right++;
    if (r->p.n_top >= 0) ev.logprob = logprob;
    for (int32_t k = 0; k < r->p.n_top; k++)
        top[k] = (weft_token_prob){(token + k + r->unlikely) % FAKE_VOCAB, logprob + (float)r->unlikely - (float)k};
    ev.top = top;
    ev.n_top = r->p.n_top > 0 && !isnan(logprob) ? r->p.n_top : 0;
    return r->p.event(r->p.arg, &ev);
}

static void begin(weft_engine *e, struct request *r)
{
    weft_event ev = event(r, WEFT_EVENT_BEGAN);
    r->running = 1;
    r->began_ns = weft__clock_ns();
    pthread_mutex_lock(&e->lock);
    e->n_running++;
    pthread_mutex_unlock(&e->lock);
    if (r->p.event(r->p.arg, &ev) == WEFT_EVENT_INSERT) r->at_insert = 0;
    for (int32_t i = 0; r->p.prompt_logprobs && i < r->p.n_tokens; i++)
        tell_token(r, WEFT_EVENT_PROMPT_TOKEN, r->tokens[i], i ? -0.25f : NAN);
    if (!r->p.embedding) return;
    float v[FAKE_EMBEDDING];
    for (int i = 0; i < FAKE_EMBEDDING; i++)
        v[i] = i == r->p.n_tokens % FAKE_EMBEDDING ? 0.75f : i == 0 ? -0.5f * (float)r->p.embedding : 0;
    ev = event(r, WEFT_EVENT_EMBEDDING);
    ev.embedding = v;
    ev.n_embedding = FAKE_EMBEDDING;
    r->p.event(r->p.arg, &ev);
}

/* One token, or the end. */
static void advance(weft_engine *e, struct request *r)
{
    if (r->cancelled) return finish(e, r, WEFT_FINISH_CANCELLED, WEFT_OK, NULL);
    if (r->finished) return finish(e, r, WEFT_FINISH_STOP, WEFT_OK, NULL);
    if (!r->running) begin(e, r);
    if (r->p.embedding) return finish(e, r, WEFT_FINISH_END, WEFT_OK, NULL);
    if (r->fail_after == r->n_generated)
        return finish(e, r, WEFT_FINISH_FAILED, WEFT_INTERNAL, "the model broke, as it was told");
    if (r->n_generated >= r->limit) return finish(e, r, WEFT_FINISH_LENGTH, WEFT_OK, NULL);
    if (!r->loops && r->at_script == r->n_script) return finish(e, r, WEFT_FINISH_END, WEFT_OK, NULL);
    int32_t token = r->at_insert < r->p.n_insert ? r->insert[r->at_insert++]
                                                 : (unsigned char)r->script[r->at_script++ % r->n_script];
    if (++r->n_generated > r->most && r->most) abort();
    r->due_ns = weft__clock_ns() + r->delay_ns;
    int said = tell_token(r, WEFT_EVENT_TOKEN, token, -0.5f);
    if (said == WEFT_EVENT_INSERT && r->at_insert == r->p.n_insert) r->at_insert = 0;
    else if (said) finish(e, r, WEFT_FINISH_STOP, WEFT_OK, NULL);
}

/* The next request that something must be done for, or how long there is none. */
static struct request *next_due(weft_engine *e, uint64_t now, uint64_t *until, uint64_t after)
{
    struct request *first = NULL;
    *until = now + 100000000;
    for (struct request *r = e->requests; r; r = r->next) {
        int startable = r->running || e->n_running < N_SLOTS;
        uint64_t due = r->cancelled || r->finished ? 0 : startable ? r->due_ns : UINT64_MAX;
        if (r->deadline_ns && r->deadline_ns < due) due = r->deadline_ns;
        if (due <= now && r->id > after) return r;
        if (due <= now && !first) first = r;
        if (due < *until) *until = due;
    }
    return first;
}

static void *engine_thread(void *arg)
{
    weft_engine *e = arg;
    uint64_t after = 0, until;
    pthread_mutex_lock(&e->lock);
    while (!e->stop || e->requests) {
        struct request *r = next_due(e, weft__clock_ns(), &until, after);
        if (!r) {
            struct timespec t;
            clock_gettime(CLOCK_REALTIME, &t);
            uint64_t now = weft__clock_ns(), wait = until > now ? until - now : 0, at = (uint64_t)t.tv_nsec + wait;
            t.tv_sec += (time_t)(at / 1000000000);
            t.tv_nsec = (long)(at % 1000000000);
            pthread_cond_timedwait(&e->wake, &e->lock, &t);
            continue;
        }
        after = r->id;
        int late = r->deadline_ns && r->deadline_ns <= weft__clock_ns() && !r->cancelled;
        e->stats.n_steps++;
        pthread_mutex_unlock(&e->lock);
        if (late) finish(e, r, WEFT_FINISH_FAILED, WEFT_TIMEOUT, "the deadline passed");
        else advance(e, r);
        call_told(e);
        pthread_mutex_lock(&e->lock);
    }
    pthread_mutex_unlock(&e->lock);
    return NULL;
}

void weft_engine_params_init(weft_engine_params *params, uint32_t size)
{
    (void)size;
    *params = (weft_engine_params){.size = sizeof *params};
}

weft_status weft_engine_new(weft_model *model, const weft_engine_params *params, weft_engine **out, weft_error *err)
{
    weft_engine *e = weft__alloc_zero(1, sizeof *e);
    *out = e;
    if (!e) return weft_fail(err, WEFT_NO_MEMORY, "no memory for an engine");
    e->max_queue = params->max_queue ? params->max_queue : MAX_QUEUE;
    e->n_ctx = params->n_ctx ? params->n_ctx : FAKE_CTX;
    e->model = model;
    e->kv_bytes = params->kv_bytes;
    pthread_mutex_init(&e->lock, NULL);
    pthread_mutex_init(&e->loading, NULL);
    pthread_mutex_init(&e->told_lock, NULL);
    pthread_cond_init(&e->wake, NULL);
    pthread_cond_init(&e->idle, NULL);
    return weft__thread_start(&e->thread, engine_thread, e) ? weft_fail(err, WEFT_LIMIT, "no thread") : WEFT_OK;
}

/* Pages of one request take a hundred bytes. */
weft_status weft_engine_count_bytes(const weft_model *model, const weft_engine_params *params, weft_engine_bytes *out,
                                    weft_error *err)
{
    (void)params, (void)err;
    *out =
        (weft_engine_bytes){.size = sizeof *out, .weights = fake_model_bytes(model), .pages_least = 100, .pages = 1000};
    return WEFT_OK;
}

void weft_engine_limit_pages(weft_engine *e, uint64_t n_bytes)
{
    pthread_mutex_lock(&e->lock);
    e->kv_bytes = n_bytes;
    pthread_mutex_unlock(&e->lock);
}

int32_t weft_engine_kv_types(const weft_engine *e, uint32_t out[WEFT_KV_TYPES_MAX])
{
    (void)e;
    out[0] = WEFT_F16;
    out[1] = WEFT_KV_Q8;
    return 2;
}

int32_t weft_engine_spec(const weft_engine *e)
{
    (void)e;
    return WEFT_SPEC_OFF;
}

void weft_engine_limit_adapters(weft_engine *e, uint64_t n_bytes)
{
    (void)e, (void)n_bytes;
}

static void cancel_all(weft_engine *e)
{
    for (struct request *r = e->requests; r; r = r->next) r->cancelled = 1;
    pthread_cond_signal(&e->wake);
}

void weft_engine_drain(weft_engine *e, uint64_t timeout_ms)
{
    uint64_t until = weft__clock_ns() + timeout_ms * 1000000;
    pthread_mutex_lock(&e->lock);
    e->draining = 1;
    while (e->requests && weft__clock_ns() < until) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        t.tv_nsec += 10000000;
        if (t.tv_nsec >= 1000000000) t.tv_sec++, t.tv_nsec -= 1000000000;
        pthread_cond_timedwait(&e->idle, &e->lock, &t);
    }
    cancel_all(e);
    while (e->requests) pthread_cond_wait(&e->idle, &e->lock);
    pthread_mutex_unlock(&e->lock);
}

void weft_engine_free(weft_engine **engine)
{
    weft_engine *e = *engine;
    *engine = NULL;
    if (!e) return;
    if (fake_model_lingers(e->model)) fake_hold();
    pthread_mutex_lock(&e->lock);
    e->stop = 1;
    cancel_all(e);
    pthread_mutex_unlock(&e->lock);
    pthread_join(e->thread, NULL);
    if (e->n_leases) abort(); /* all were to be given back */
    pthread_mutex_destroy(&e->lock);
    pthread_mutex_destroy(&e->loading);
    pthread_mutex_destroy(&e->told_lock);
    pthread_cond_destroy(&e->wake);
    pthread_cond_destroy(&e->idle);
    weft__free(e);
}

void weft_engine_get_stats(const weft_engine *engine, weft_engine_stats *out)
{
    weft_engine *e = (weft_engine *)engine;
    pthread_mutex_lock(&e->lock);
    *out = e->stats;
    out->size = sizeof *out;
    out->n_slots = N_SLOTS;
    out->n_ctx = e->n_ctx;
    out->max_requests = most_of_one(e);
    out->n_running = e->n_running;
    out->n_waiting = e->n_requests - e->n_running;
    out->n_adapters = e->n_adapters;
    out->kv_pages = 100;
    out->memory.weights.bytes = out->memory.weights.peak = fake_model_bytes(e->model);
    out->kv_limit_bytes = e->kv_bytes;
    uint64_t *const moving[] = {&out->n_rows_decode,
                                &out->n_rows_prompt,
                                &out->n_cancelled,
                                &out->n_failed,
                                &out->n_preempted,
                                &out->cached_tokens,
                                &out->n_submitted,
                                &out->adapter_loads,
                                &out->adapter_evictions,
                                &out->store_written,
                                &out->store_read,
                                &out->store_write_failed,
                                &out->store_read_tokens,
                                &out->store_damaged,
                                &out->store_removed,
                                &out->n_put_off,
                                &out->n_generated,
                                &out->prefix_evicted_pages,
                                &out->n_refused,
                                &out->batch_rows.counts[1],
                                &out->draft_ns,
                                &out->drafts[0].n_tokens,
                                &out->drafts[1].n_drafts,
                                &out->drafts[3].n_accepted,
                                &out->drafts[3].tokens_at[2],
                                &out->drafts[1].accepted_at[0]};
    for (size_t i = 0; i < sizeof moving / sizeof *moving; i++) *moving[i] += out->n_steps; /* as a real one's may */
    out->model_ns = out->n_steps * 1000000;
    out->batch_rows.sum = (double)out->n_steps;
    out->batch_rows.n = 2;
    out->batch_rows.bounds[0] = 1;
    out->batch_rows.bounds[1] = 8;
    pthread_mutex_unlock(&e->lock);
}

weft_status weft_engine_save(weft_engine *e, const char *tenant, const int32_t *tokens, int32_t n, const char *name,
                             int32_t *n_saved, uint64_t *n_bytes, weft_error *err)
{
    (void)tenant, (void)tokens;
    if (strchr(name, '/') || !strcmp(name, "..")) abort(); /* the server checks */
    if (strstr(name, "hung")) fake_hold();
    int at = 0;
    pthread_mutex_lock(&e->lock);
    while (at < MAX_SAVED && e->saved[at][0] && strcmp(e->saved[at], name)) at++;
    if (at < MAX_SAVED) {
        snprintf(e->saved[at], sizeof e->saved[at], "%s", name);
        e->n_saved[at] = *n_saved = n;
        *n_bytes = (uint64_t)n * 100;
    }
    pthread_mutex_unlock(&e->lock);
    return at < MAX_SAVED ? WEFT_OK : weft_fail(err, WEFT_LIMIT, "the store is full");
}

weft_status weft_engine_restore(weft_engine *e, const char *name, int32_t *tokens, int32_t capacity, int32_t *n_tokens,
                                uint64_t *n_bytes, weft_error *err)
{
    int at = 0;
    pthread_mutex_lock(&e->lock);
    while (at < MAX_SAVED && strcmp(e->saved[at], name)) at++;
    if (at < MAX_SAVED) {
        *n_tokens = e->n_saved[at];
        for (int32_t i = 0; i < capacity && i < *n_tokens; i++) tokens[i] = 'r';
        *n_bytes = (uint64_t)*n_tokens * 100;
    }
    pthread_mutex_unlock(&e->lock);
    return at < MAX_SAVED ? WEFT_OK : weft_fail(err, WEFT_NOT_FOUND, "there is no saved slot '%s'", name);
}

weft_status weft_engine_erase(weft_engine *e, const char *name, weft_error *err)
{
    int at = 0;
    pthread_mutex_lock(&e->lock);
    while (at < MAX_SAVED && strcmp(e->saved[at], name)) at++;
    if (at < MAX_SAVED) e->saved[at][0] = 0;
    pthread_mutex_unlock(&e->lock);
    return at < MAX_SAVED ? WEFT_OK : weft_fail(err, WEFT_NOT_FOUND, "there is no saved slot '%s'", name);
}
