/* gen.c: one request from submit to its last byte: what the engine tells becomes text, and text a dialect's answer.
 *
 * Threads: weft__server_response_start runs on a worker, weft__server_response_leased and weft__server_response_compiled on the threads of their lines; on_event on the engine's thread, which owns the choices from submit to FINISHED;
 * weft__server_response_answer on the thread of answers, when all have finished; gone on the HTTP façade's watcher. A gen lives until the worker or its line, the façade and every submitted choice have let go. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/random.h"
#include "server/server.h"
#include "text/stop.h"

/* ---- life ---- */

static void choice_free(weft__server_choice *c)
{
    weft_detok_free(&c->detok);
    if (c->stop) weft__stop_free(c->stop);
    weft__free(c->stop);
    weft__strbuf_free(&c->text);
    weft__free(c->entries);
    weft__free(c->prompt_entries);
    weft__free(c->tops);
    weft__free(c->embedding);
}

static void unref(weft__server_response *g)
{
    if (atomic_fetch_sub(&g->refs, 1) != 1) return;
    for (int i = 0; i < g->n_choices; i++) choice_free(&g->choices[i]);
    weft__free(g->choices);
    weft__server_prompts_free(&g->prompts);
    weft__api_params_free(&g->params);
    weft_engine_lease_free(g->server->engine, &g->lease);
    weft_grammar_free(&g->grammar);
    weft__strbuf_free(&g->scratch);
    pthread_mutex_destroy(&g->lock);
    weft__http_release(g->r);
    weft__free(g);
}

static void drop(void *arg)
{
    unref(arg);
}

/* Cancels what was submitted and has not finished. Not under the lock: the engine may be waiting for it in on_event. */
static void cancel_all(weft__server_response *g)
{
    for (int i = 0; i < g->n_choices; i++) {
        weft__server_choice *c = &g->choices[i];
        pthread_mutex_lock(&g->lock);
        int running = c->submitted && !c->finished;
        uint64_t id = c->request;
        pthread_mutex_unlock(&g->lock);
        if (running) weft_engine_cancel(g->server->engine, id);
    }
}

static void gone(void *arg)
{
    weft__server_response *g = arg;
    pthread_mutex_lock(&g->lock);
    g->gone = 1;
    pthread_mutex_unlock(&g->lock);
    cancel_all(g);
}

/* ---- events ---- */

static int add_entry(weft__server_choice *c, weft__server_entry **all, size_t *n, size_t *capacity, const weft_event *e)
{
    if (!weft__grow(all, capacity, *n + 1, sizeof **all)) return 0;
    if (e->n_top > 0 && !weft__grow(&c->tops, &c->cap_tops, c->n_tops + (size_t)e->n_top, sizeof *c->tops)) return 0;
    (*all)[(*n)++] = (weft__server_entry){
        .token = e->token, .logprob = e->logprob, .n_top = e->n_top, .first_top = c->n_tops, .begin = c->raw, .end = c->raw};
    if (e->n_top > 0) memcpy(c->tops + c->n_tops, e->top, (size_t)e->n_top * sizeof *c->tops);
    c->n_tops += (size_t)(e->n_top > 0 ? e->n_top : 0);
    return 1;
}

size_t weft__server_entries_shown(const weft__server_choice *c)
{
    size_t n = c->n_entries;
    if (c->stop->found >= 0)
        for (n = 0; n < c->n_entries && c->entries[n].begin < c->text.len;) n++;
    return n;
}

/* Entries whose text is certain. */
static size_t entries_ready(const weft__server_choice *c, int all)
{
    size_t n = c->n_shown;
    if (c->stop->found >= 0) {
        size_t shown = weft__server_entries_shown(c);
        return shown > n ? shown : n;
    }
    while (n < c->n_entries && (all || c->entries[n].end <= c->text.len)) n++;
    return n;
}

/* The first thing that goes wrong with a choice is what it ends with. */
static void gen_fail(weft__server_choice *c, weft_status status, const char *message)
{
    if (c->failed) return;
    c->failed = status;
    snprintf(c->message, sizeof c->message, "%.255s", message && *message ? message : weft_status_text(status));
}

static void fail_memory(weft__server_choice *c)
{
    gen_fail(c, WEFT_NO_MEMORY, "no memory for the answer");
}

/* 0: there was no memory for what was to be said, and nothing of it is. */
static int send(weft__server_response *g)
{
    int ok = !g->scratch.failed;
    if (ok && g->scratch.len) weft__http_write(g->r, g->scratch.data, g->scratch.len);
    g->scratch.len = 0;
    g->scratch.failed = 0;
    return ok;
}

/* Streams what became certain. */
static void send_delta(weft__server_choice *c, int last)
{
    weft__server_response *g = c->gen;
    size_t n_text = c->text.len - c->shown, n_entries = entries_ready(c, last && c->stop->found < 0);
    if (!g->params.stream || (!n_text && !(last && n_entries > c->n_shown))) return;
    g->writer->delta(c, n_text, n_entries, &g->scratch);
    c->shown = c->text.len;
    c->n_shown = n_entries;
    if (!send(g)) fail_memory(c);
}

static void on_began(weft__server_choice *c, const weft_event *e)
{
    weft__server_response *g = c->gen;
    c->began = 1;
    c->last_ns = weft__http_began_ns(g->r);
    weft__server_count_began(c, e->queue_ms);
    if (!g->embedding)
        c->slot = weft__server_slots_take(&g->server->slots, (int32_t)g->params.id_slot, e->request, g->tenant, c->prompt->ids,
                                          c->prompt->n, (int32_t)g->params.max_tokens, c->with_adapters);
    if (!g->params.stream || !g->writer->stream_begin) return;
    g->writer->stream_begin(c, &g->scratch);
    if (!send(g)) fail_memory(c);
}

static int on_token(weft__server_choice *c, const weft_event *e)
{
    weft__server_response *g = c->gen;
    weft_error err = {0};
    const char *text;
    size_t n;
    weft__server_count_token(c, weft__clock_ns());
    weft__server_slots_token(&g->server->slots, c->slot, e->token);
    weft_status st = weft_detok_push(c->detok, e->token, &text, &n, &err);
    if (st) gen_fail(c, st, err.message);
    else if (g->keep_entries && !add_entry(c, &c->entries, &c->n_entries, &c->cap_entries, e)) fail_memory(c);
    if (c->failed) return 1;
    c->raw += n;
    if (g->keep_entries) c->entries[c->n_entries - 1].end = c->raw;
    int stopped = weft__stop_push(c->stop, text, n, &c->text);
    if (c->text.failed) fail_memory(c);
    else send_delta(c, 0);
    return stopped || c->failed;
}

static void on_embedding(weft__server_choice *c, const weft_event *e)
{
    c->embedding = weft__alloc_array((size_t)e->n_embedding, sizeof *c->embedding);
    if (!c->embedding) {
        fail_memory(c);
        return;
    }
    memcpy(c->embedding, e->embedding, (size_t)e->n_embedding * sizeof *c->embedding);
    c->n_embedding = e->n_embedding;
}

static void keep_status(weft__server_choice *c, weft_status status, const char *message)
{
    c->status = status;
    snprintf(c->message, sizeof c->message, "%.255s", message ? message : "");
    if (c->gen->server->wants_keys) weft__server_hide_tenants(c->message, c->gen->tenant);
}

static void keep_finish(weft__server_choice *c, const weft_event *e)
{
    c->finish = c->failed ? WEFT_FINISH_FAILED : e->finish;
    if (c->failed) c->status = c->failed; /* and its message stands */
    else
        keep_status(c,
                    e->finish == WEFT_FINISH_CANCELLED ? WEFT_CANCELLED
                    : e->finish == WEFT_FINISH_FAILED  ? e->status
                                                       : WEFT_OK,
                    e->message);
    if (!c->failed && c->status == WEFT_TIMEOUT && c->gen->params.timeout_ms > 0) /* the engine was told what was left of it */
        snprintf(c->message, sizeof c->message, "not finished within the %lld ms of its 'timeout_ms'",
                 (long long)c->gen->params.timeout_ms);
    c->n_prompt = e->n_prompt;
    c->n_cached = e->n_cached;
    c->queue_ms = e->queue_ms;
    c->prompt_ms = e->prompt_ms;
    c->generate_ms = e->generate_ms;
}

static weft_status submit(weft__server_choice *c, double *retry_after_s, weft_error *err);

/* Nothing more is to be asked for: it was refused, its client left, or c has failed. */
static int is_over(weft__server_response *g, const weft__server_choice *c)
{
    pthread_mutex_lock(&g->lock);
    int over = c->status || g->refused || g->gone;
    pthread_mutex_unlock(&g->lock);
    return over;
}

/* What was not asked for will not come. */
static void ask_no_more(weft__server_response *g)
{
    pthread_mutex_lock(&g->lock);
    g->n_left -= g->n_choices - g->n_asked;
    g->n_asked = g->n_choices;
    pthread_mutex_unlock(&g->lock);
}

/* A request may have more inputs than the queue has places: as c ends, the next ones are asked for. Where the queue is full they wait for
 * the next end of one of ours; when there is none left, that is the answer. */
static void ask_on(weft__server_choice *c)
{
    weft__server_response *g = c->gen;
    g->n_done++;
    while (g->n_asked < g->n_choices && g->n_asked - g->n_done < g->n_at_once) {
        weft__server_choice *next = &g->choices[g->n_asked];
        weft_error err = {0};
        double retry_after_s = 1;
        weft_status st = is_over(g, c) ? WEFT_CANCELLED : submit(next, &retry_after_s, &err);
        if (st == WEFT_BUSY && g->n_asked > g->n_done) return;
        if (st) {
            if (st != WEFT_CANCELLED) keep_status(next, st, err.message);
            g->retry_s = (int)ceil(retry_after_s);
            ask_no_more(g);
            return;
        }
        g->n_asked++;
        if (is_over(g, c)) weft_engine_cancel(g->server->engine, next->request); /* meanwhile: who cancels all did not see it */
    }
}

/* The rest of the text. */
static void end_text(weft__server_choice *c)
{
    const char *text;
    size_t n;
    weft_error err = {0};
    weft_status st = c->stop->found < 0 ? weft_detok_finish(c->detok, &text, &n, &err) : WEFT_OK;
    if (st) gen_fail(c, st, err.message);
    else if (c->stop->found < 0) {
        c->raw += n;
        weft__stop_push(c->stop, text, n, &c->text);
    }
    if (c->stop->found < 0) weft__stop_flush(c->stop, &c->text);
    if (c->text.failed) fail_memory(c);
    if (c->n_entries) c->entries[c->n_entries - 1].end = c->raw;
}

static void set_note(weft__server_response *g)
{
    static const char *const names[] = {"stop", "length", "stop", "cancelled", "failed"};
    weft__server_log_entry *note = weft__alloc_zero(1, sizeof *note);
    if (!note) return;
    snprintf(note->tenant, sizeof note->tenant, "%s", g->tenant);
    snprintf(note->model, sizeof note->model, "%.60s", g->model);
    snprintf(note->finish, sizeof note->finish, "%s", names[g->choices[0].finish]);
    note->n_choices = g->n_choices;
    for (int i = 0; i < g->n_choices; i++) {
        const weft__server_choice *c = &g->choices[i];
        if (weft__server_first_of_prompt(c)) {
            note->n_prompt += c->n_prompt;
            note->n_cached += c->n_cached;
        }
        note->n_generated += c->n_generated;
        if (c->queue_ms > note->queue_ms) note->queue_ms = c->queue_ms;
    }
    weft__http_set_note(g->r, note);
}

void weft__server_response_answer(weft__server_response *g)
{
    weft__api_error error = {0};
    set_note(g);
    for (int i = 0; i < g->n_choices && !error.status; i++)
        if (g->choices[i].status) weft__server_error_of(&error, g->choices[i].status, g->choices[i].message);
    error.retry_s = g->retry_s;
    if (!error.status) {
        g->writer->whole(g, &g->scratch);
        if (g->scratch.failed) weft__server_error_of(&error, WEFT_NO_MEMORY, "no memory for the answer");
    }
    if (error.status) weft__server_reply_error(g->r, &error);
    else weft__server_reply_json(g->r, 200, &g->scratch);
    unref(g);
}

/* Ends of a stream: one that there is no memory for is told of by what needs none, so that no answer looks whole that is not. */
static void send_end(weft__server_response *g)
{
    static const char *const said[] = {
        "data: {\"error\":{\"message\":\"no memory for the answer\",\"type\":\"server_error\",\"param\":null,"
        "\"code\":\"service_unavailable\"}}\n\n",
        "data: {\"error\":{\"code\":503,\"message\":\"no memory for the answer\",\"type\":\"unavailable_error\"}}\n\n"};
    const char *text = said[weft__server_dialect_of(weft__http_path(g->r)) == WEFT__SERVER_LLAMA];
    if (!send(g)) weft__http_write(g->r, text, strlen(text));
}

static void end_stream(weft__server_response *g)
{
    set_note(g);
    g->writer->stream_end(g, &g->scratch);
    send_end(g);
    weft__http_end(g->r);
}

static void on_finished(weft__server_choice *c, const weft_event *e)
{
    weft__server_response *g = c->gen;
    if (!g->embedding) end_text(c);
    keep_finish(c, e);
    weft__server_count_read(c, e->n_read, e->n_cached); /* what no event told of */
    weft__server_count_end(c);
    weft__server_slots_give(&g->server->slots, c->slot);
    weft__http_client_add(g->r, -1, 0);
    pthread_mutex_lock(&g->lock);
    g->n_left--;
    c->finished = 1;
    pthread_mutex_unlock(&g->lock);
    ask_on(c);
    pthread_mutex_lock(&g->lock);
    int refused = g->refused, last = g->n_left == 0;
    pthread_mutex_unlock(&g->lock);
    if (!refused && last && !g->params.stream) {
        weft__server_answers_put(&g->server->answers, g);
        return;
    }
    if (!refused && g->params.stream) {
        if (!c->status) send_delta(c, 1);
        c->status = c->failed ? c->failed : c->status;
        g->writer->choice_end(c, &g->scratch);
        send_end(g);
        if (last) end_stream(g);
    }
    unref(g);
}

static int on_event(void *arg, const weft_event *e)
{
    weft__server_choice *c = arg;
    switch ((enum weft_event_kind)e->kind) {
    case WEFT_EVENT_BEGAN: on_began(c, e); return c->failed != 0;
    case WEFT_EVENT_READ: weft__server_count_read(c, e->n_read, e->n_cached); return 0;
    case WEFT_EVENT_PROMPT_TOKEN:
        if (!add_entry(c, &c->prompt_entries, &c->n_prompt_entries, &c->cap_prompt_entries, e)) fail_memory(c);
        return c->failed != 0;
    case WEFT_EVENT_TOKEN: return on_token(c, e);
    case WEFT_EVENT_EMBEDDING: on_embedding(c, e); return c->failed != 0;
    case WEFT_EVENT_FINISHED: on_finished(c, e); return 0;
    }
    return 0;
}

/* ---- submit ---- */

/* Biases of texts become biases of their tokens, which count as those given by id: each choice holds them all, and each of its tokens looks
 * at them all. */
static int add_text_biases(weft__server_response *g, weft__api_error *error)
{
    weft__api_params *a = &g->params;
    size_t capacity = (size_t)a->n_bias;
    for (int32_t i = 0; i < a->n_bias_texts; i++) {
        int32_t ids[WEFT__API_MAX_STOP_BYTES + 16];
        size_t n;
        weft_error err = {0};
        weft_status st = weft_tokenize(g->server->tokenizer, a->bias_texts[i].text, a->bias_texts[i].n, 0, ids,
                                       WEFT__API_MAX_STOP_BYTES + 16, &n, &err);
        if (st)
            return weft__api_error_set(error, st == WEFT_NO_MEMORY ? 503 : 400, "logit_bias", "'logit_bias': %s", err.message);
        if ((size_t)a->n_bias + n > WEFT__API_MAX_BIASES)
            return weft__api_error_set(error, 400, "logit_bias",
                                       "'logit_bias' must have at most %d tokens, those of its texts included",
                                       WEFT__API_MAX_BIASES);
        if (!weft__grow(&a->bias, &capacity, (size_t)a->n_bias + n, sizeof *a->bias))
            return weft__api_error_set(error, 503, NULL, "no memory for the request");
        for (size_t k = 0; k < n; k++) a->bias[a->n_bias++] = (weft_logit_bias){ids[k], a->bias_texts[i].bias};
    }
    return 1;
}

/* The field that constrains the answer; NULL: none. */
static const char *constraint_of(const weft__api_params *a)
{
    return a->grammar ? "grammar" : a->json_object ? "response_format" : a->json_value ? "json_schema" : NULL;
}

/* The grammars of JSON are compiled once. On the thread of grammars. */
static weft_status json_grammar(weft_server *s, int any, weft_grammar **out, weft_error *err)
{
    weft_grammar **json = &s->json[any];
    const uint32_t kind = any ? WEFT_GRAMMAR_JSON_VALUE : WEFT_GRAMMAR_JSON;
    weft_status st = *json ? WEFT_OK : weft_grammar_new(s->tokenizer, kind, NULL, 0, json, err);
    *out = st ? NULL : weft_grammar_retain(*json);
    return st;
}

static int compile_grammar(weft__server_response *g, weft__api_error *error)
{
    weft_error err = {0};
    weft_status st = WEFT_OK;
    if (g->params.grammar)
        st = weft_grammar_new(g->server->tokenizer, WEFT_GRAMMAR_GBNF, g->params.grammar, strlen(g->params.grammar), &g->grammar,
                              &err);
    else st = json_grammar(g->server, g->params.json_value, &g->grammar, &err);
    if (!st) return 1;
    const char *field = constraint_of(&g->params);
    return weft__api_error_set(error, st == WEFT_NO_MEMORY ? 503 : 400, field, "'%s': %s", field, err.message);
}

static int check_length(weft__server_response *g, weft__api_error *error)
{
    int32_t n_ctx = g->server->n_ctx;
    for (size_t i = 0; i < g->prompts.n; i++) {
        int32_t n = g->prompts.items[i].n, room = n_ctx - n;
        if (!n) return weft__api_error_set(error, 400, g->embedding ? "input" : "prompt", "the prompt has no tokens");
        if (room >= (g->embedding || g->params.max_tokens == 0 ? 0 : 1)) continue;
        weft__api_error_set(error, 400, "", "the prompt has %d tokens; this server's context holds %d, the answer included", n,
                            n_ctx);
        error->code = "context_length_exceeded";
        error->n_prompt = n;
        error->n_ctx = n_ctx;
        return 0;
    }
    return 1;
}

static int refuse_entries(const weft__server_response *g, int64_t n_tokens, int64_t most, weft__api_error *error)
{
    const weft__api_params *a = &g->params;
    const weft__api_table *f = a->form;
    char remedy[96] = "";
    if (most > 0) snprintf(remedy, sizeof remedy, "at most %lld as '%s', or ", (long long)most, f->tokens);
    return weft__api_error_set(
        error, 400, a->n > 1 || a->n_top < 1 ? f->n : f->top,
        "%lld answers ('%s' times the prompts), %s%lld tokens in all, with %lld likeliest ones beside each "
        "('%s'), come to more than the %d that a request may have; give %sa smaller '%s' or '%s'",
        (long long)a->n * (long long)g->prompts.n, f->n, a->echo ? "their prompts included, " : "", (long long)n_tokens,
        (long long)(a->n_top > 0 ? a->n_top : 0), f->top, WEFT__API_MAX_ENTRIES, remedy, f->n, f->top);
}

/* Entries are kept until the last answer has ended, those of streams too. Answers to a request that sets no limit of tokens end where all
 * entries are used up; where that would leave them few, it is refused, as one whose own limit is beyond that. */
static int check_entries(weft__server_response *g, weft__api_error *error)
{
    weft__api_params *a = &g->params;
    if (!g->keep_entries) return 1;
    int64_t all =
        WEFT__API_MAX_ENTRIES / (a->n * (1 + (a->n_top > 0 ? a->n_top : 0))); /* tokens, when each prompt had one answer */
    int64_t echoed = 0, asked = 0, n_prompts = (int64_t)g->prompts.n,
            limit = a->max_tokens < 0 ? WEFT__API_FEW_TOKENS : a->max_tokens;
    for (int64_t i = 0; i < n_prompts; i++) {
        int64_t room = g->server->n_ctx - g->prompts.items[i].n;
        asked += limit < room ? limit : room;
        if (a->echo) echoed += g->prompts.items[i].n;
    }
    int64_t most = n_prompts ? (all - echoed) / n_prompts : 0;
    if (echoed + asked > all) return refuse_entries(g, a->n * (echoed + asked), most, error);
    if (a->max_tokens < 0 && most < g->server->n_ctx) a->max_tokens = most;
    return 1;
}

static int begin_choice(weft__server_response *g, int i, weft__api_error *error)
{
    weft__server_choice *c = &g->choices[i];
    c->gen = g;
    c->index = i;
    c->slot = -1;
    c->prompt = &g->prompts.items[i / (int)g->params.n];
    c->stop = weft__alloc_zero(1, sizeof *c->stop);
    if (!c->stop) return weft__api_error_set(error, 503, NULL, "no memory for the request");
    weft_error err = {0};
    weft_status st = weft__stop_begin(c->stop, g->params.stops, g->params.stop_lengths, g->params.n_stops, &err);
    if (!st) st = weft_detok_new(g->server->tokenizer, WEFT_DETOK_CONTINUE, &c->detok, &err);
    if (st) weft__server_error_of(error, st, err.message);
    return !st;
}

static int gen_prepare(weft__server_response *g, weft__api_error *error)
{
    int64_t n = (int64_t)g->prompts.n * g->params.n;
    if (!g->embedding && n > WEFT__API_MAX_N)
        return weft__api_error_set(error, 400, "n", "'n' times the number of prompts must be at most %d, not %lld",
                                   WEFT__API_MAX_N, (long long)n);
    if (!g->embedding && n > g->server->max_requests)
        return weft__api_error_set(error, 400, g->params.n > 1 ? "n" : "prompt",
                                   "%lld answers at once: this server takes %d together, in its slots and its queue (--queue)",
                                   (long long)n, g->server->max_requests);
    if (!check_length(g, error) || !check_entries(g, error) ||
        !weft__server_adapters_lease(g->server, &g->params, g->tenant, &g->has_lease, &g->lease, g->adapters, error) ||
        !add_text_biases(g, error))
        return 0;
    g->choices = weft__alloc_zero((size_t)n, sizeof *g->choices);
    if (!g->choices) return weft__api_error_set(error, 503, NULL, "no memory for the request");
    /* Drawn ones have 31 bits: /completion tells them, and llama.cpp's clients read them as a number of 32. */
    uint64_t seed = g->params.seed_given ? (uint64_t)g->params.seed : weft__rng_entropy() >> 33;
    for (; g->n_choices < n; g->n_choices++) {
        if (!begin_choice(g, g->n_choices, error)) {
            g->n_choices++; /* half-built: freed with the others */
            return 0;
        }
        g->choices[g->n_choices].seed = seed + (uint64_t)g->n_choices;
    }
    g->n_left = g->n_asked = g->n_at_once = g->n_choices;
    if (g->embedding) { /* twice the slots keep them busy; as many as another leaves at least are asked for at first */
        int most = 2 * g->server->n_slots < g->server->max_requests ? 2 * g->server->n_slots : g->server->max_requests;
        int first = g->server->max_requests / 8 > 1 ? g->server->max_requests / 8 : 1;
        if (g->n_at_once > most) g->n_asked = g->n_at_once = most;
        if (g->n_asked > first) g->n_asked = first;
    }
    return 1;
}

static void fill_sampler(const weft__server_choice *c, weft_sampler_params *p)
{
    const weft__api_params *a = &c->gen->params;
    weft_sampler_params_default(p);
    p->temperature = (float)(a->temperature > 0 ? a->temperature : 0);
    p->top_k = (int32_t)(a->top_k > 0 ? a->top_k : 0);
    p->top_p = (float)(a->top_p > 1e-6 ? a->top_p : 1e-6); /* 0: the likeliest alone */
    p->min_p = (float)a->min_p;
    p->repeat_penalty = (float)a->repeat_penalty;
    p->presence_penalty = (float)a->presence_penalty;
    p->frequency_penalty = (float)a->frequency_penalty;
    /* What no text fills is all of it, and needs no list of what leaves. */
    p->penalty_last_n = a->penalty_last_n < c->gen->server->n_ctx ? (int32_t)a->penalty_last_n : -1;
    p->n_bias = a->n_bias;
    p->bias = a->bias;
    p->seed = c->seed;
    p->seed_given = 1;
}

/* Milliseconds until the request's deadline, which counts from its head, at least 1; 0: it has none. */
static uint64_t time_left(const weft__server_response *g)
{
    uint64_t all = (uint64_t)g->params.timeout_ms, gone = (weft__clock_ns() - weft__http_began_ns(g->r)) / 1000000;
    return !all ? 0 : gone < all ? all - gone : 1;
}

uint64_t weft__server_response_deadline(const weft__server_response *g)
{
    return g->params.timeout_ms ? weft__http_began_ns(g->r) + (uint64_t)g->params.timeout_ms * 1000000 : 0;
}

/* The engine sees to it that a tenant leaves room for the others: max_requests are what one ever gets. An address whose requests name many users is
 * many tenants to it, and gets a little more than one, so that its users find room beside each other, and not all there is. */
static int most_of_address(const weft_server *s)
{
    return s->wants_keys ? INT_MAX : s->max_requests + 1 + s->max_requests / 32;
}

static weft_status submit(weft__server_choice *c, double *retry_after_s, weft_error *err)
{
    weft__server_response *g = c->gen;
    const weft__api_params *a = &g->params;
    weft_request_params p;
    uint64_t id = 0;
    int64_t room = g->server->n_ctx - c->prompt->n;
    weft_request_params_default(&p);
    p.tokens = c->prompt->ids;
    p.n_tokens = c->prompt->n;
    p.max_tokens = g->embedding ? 0 : (int32_t)(a->max_tokens < room ? a->max_tokens : room);
    p.cut_to_fit = 1; /* clients ask for more than they expect: what context and pages hold is enough */
    p.ignore_end = a->ignore_end;
    fill_sampler(c, &p.sampler);
    p.grammar = g->grammar;
    p.lease = g->lease;
    c->with_adapters = g->lease != NULL;
    p.n_top = g->embedding ? -1 : (int32_t)a->n_top;
    p.prompt_logprobs = a->echo && a->n_top >= 0;
    p.embedding = g->embedding;
    p.priority = (int32_t)a->priority;
    p.no_cache = !a->cache_prompt && !g->embedding;
    p.tenant = g->tenant;
    p.deadline_ms = time_left(g);
    p.read_events = 1;
    p.event = on_event;
    p.arg = c;
    if (!weft__http_client_add(g->r, 1, most_of_address(g->server)))
        return weft_fail(err, WEFT_BUSY, "%d requests of this address are here already; try again in 1 s",
                         most_of_address(g->server));
    atomic_fetch_add(&g->refs, 1);
    weft_status st = weft_engine_submit(g->server->engine, &p, &id, retry_after_s, err);
    if (st) {
        weft__http_client_add(g->r, -1, 0);
        unref(g);
        return st;
    }
    pthread_mutex_lock(&g->lock);
    c->request = id;
    c->submitted = 1;
    pthread_mutex_unlock(&g->lock);
    return WEFT_OK;
}

/* All that is asked for at once, or none. */
static int submit_all(weft__server_response *g, weft__api_error *error)
{
    weft_error err = {0};
    double retry_after_s = 1;
    const int n = g->n_asked, all = n == g->n_choices; /* the engine's thread may ask for more soon */
    for (int i = 0; i < n; i++) {
        weft_status st = submit(&g->choices[i], &retry_after_s, &err);
        if (!st) continue;
        pthread_mutex_lock(&g->lock);
        g->refused = 1;
        pthread_mutex_unlock(&g->lock);
        cancel_all(g);
        weft__server_error_of(error, st, err.message);
        error->retry_s = (int)ceil(retry_after_s);
        return 0;
    }
    if (all) weft_engine_lease_free(g->server->engine, &g->lease); /* else those that are asked for later need it */
    return 1;
}

/* An id that nobody can guess. */
static void make_id(char *out, size_t n, const char *prefix)
{
    snprintf(out, n, "%s%016llx%08llx", prefix, (unsigned long long)weft__rng_entropy(),
             (unsigned long long)(weft__rng_entropy() & 0xffffffff));
}

static weft__server_response *new_gen(weft_server *s, weft__http_request *r, const weft__server_writer *writer,
                                      const weft__server_caller *who, const char *tenant)
{
    weft__server_response *g = weft__alloc_zero(1, sizeof *g);
    if (!g) return NULL;
    g->server = s;
    g->r = r;
    g->writer = writer;
    atomic_init(&g->refs, 1);
    pthread_mutex_init(&g->lock, NULL);
    g->created = (int64_t)time(NULL);
    snprintf(g->tenant, sizeof g->tenant, "%s", tenant);
    memcpy(g->label, who->label, sizeof g->label);
    return g;
}

static int has_left(weft__server_response *g)
{
    pthread_mutex_lock(&g->lock);
    int left = g->gone;
    pthread_mutex_unlock(&g->lock);
    return left;
}

/* Submits; takes over the caller's share of it. */
static void set_off(weft__server_response *g)
{
    weft__api_error error = {0};
    if (!submit_all(g, &error)) weft__server_reply_error(g->r, &error);
    else if (g->params.stream) weft__http_begin(g->r);
    if (has_left(g)) cancel_all(g); /* while we were submitting */
    unref(g);
}

static int set_late(const char *what, weft__api_error *error)
{
    return weft__api_error_set(error, 504, NULL, "the deadline passed before %s was ready", what);
}

static void gen_refuse(weft__server_response *g, const weft__api_error *error)
{
    weft__server_reply_error(g->r, error);
    unref(g);
}

/* Its adapters are there, or take their turn; then its grammar; then it is submitted. Takes over the caller's share of it. */
static void gen_go_on(weft__server_response *g)
{
    weft_server *s = g->server;
    weft__api_error error = {0};
    if (!g->has_lease) {
        if (weft__server_wait_queue_put(&s->adapters, g)) return;
        weft__api_error_set(&error, 429, NULL, "too many requests wait for adapters to be read; try again in 2 s");
        error.retry_s = 2;
        gen_refuse(g, &error);
    } else if (constraint_of(&g->params)) {
        if (weft__server_wait_queue_put(&s->grammars, g)) return;
        weft__api_error_set(&error, 429, constraint_of(&g->params), "too many grammars wait to be compiled; try again in 2 s");
        error.retry_s = 2;
        gen_refuse(g, &error);
    } else {
        set_off(g);
    }
}

enum { ROOM_S = 60 /* since the request came */, LOOK_MS = 100 };

/* Where those in use fill the budget it waits until one is given back, since whoever has one needs none of those in this line; a little at a
 * time, as others in it may need ones for which there is room. Not for ever: adapters that are ready are lent past the line, and may be in
 * use again and again. */
int weft__server_response_lease(weft__server_response *g, weft__api_error *error)
{
    uint64_t deadline = weft__server_response_deadline(g), until = weft__http_began_ns(g->r) + ROOM_S * 1000000000ull;
    if (has_left(g)) {
        weft__server_error_of(error, WEFT_CANCELLED, "the client left");
        return 0;
    }
    if (weft__server_adapters_lease(g->server, &g->params, g->tenant, NULL, &g->lease, g->adapters, error)) return 1;
    uint64_t now = weft__clock_ns();
    if (error->status != 429 || now >= until) return 0;
    if (deadline && now >= deadline) return set_late(g->server->adapters.what, error);
    weft_engine_lease_wait(g->server->engine, LOOK_MS);
    return -1;
}

void weft__server_response_leased(weft__server_response *g, const weft__api_error *error)
{
    g->has_lease = 1;
    if (error) gen_refuse(g, error);
    else gen_go_on(g);
}

int weft__server_response_compile(weft__server_response *g, weft__api_error *error)
{
    if (!has_left(g)) return compile_grammar(g, error);
    weft__server_error_of(error, WEFT_CANCELLED, "the client left");
    return 0;
}

void weft__server_response_expired(weft__server_response *g, const char *what)
{
    weft__api_error error = {0};
    set_late(what, &error);
    weft__server_reply_error(g->r, &error);
}

void weft__server_response_compiled(weft__server_response *g, const weft__api_error *error)
{
    if (!error) {
        set_off(g);
        return;
    }
    weft__server_reply_error(g->r, error);
    unref(g);
}

void weft__server_response_drop(weft__server_response *g)
{
    unref(g);
}

void weft__server_response_start(weft_server *s, weft__http_request *r, const weft__server_writer *writer,
                                 const weft__server_caller *who, const char *tenant, const char *id_prefix,
                                 weft__api_params *params, weft__server_prompts *prompts, int embedding)
{
    weft__api_error error = {0};
    weft__server_response *g = new_gen(s, r, writer, who, tenant);
    if (!g) {
        weft__api_error_set(&error, 503, NULL, "no memory for the request");
        weft__server_reply_error(r, &error);
        weft__api_params_free(params);
        weft__server_prompts_free(prompts);
        weft__http_release(r);
        return;
    }
    g->params = *params;
    g->prompts = *prompts;
    g->embedding = embedding;
    if (embedding) g->params.n = 1;
    g->keep_entries = !embedding && (g->params.n_top >= 0 || g->params.return_tokens);
    g->several = g->prompts.n > 1;
    make_id(g->id, sizeof g->id, id_prefix);
    snprintf(g->model, sizeof g->model, "%s", g->params.model && *g->params.model ? g->params.model : s->name);
    int ready = gen_prepare(g, &error);
    if (ready) weft__api_params_settle(&g->params);
    weft__http_free_body(r);
    if (!ready) {
        gen_refuse(g, &error);
        return;
    }
    atomic_fetch_add(&g->refs, 1);
    weft__http_on_gone(r, gone, drop, g);
    gen_go_on(g);
}
