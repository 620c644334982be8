// SPDX-License-Identifier: Apache-2.0
/* response.c: one request from its start to its last byte: what the engine tells becomes text, and text a dialect's
 * answer.
 *
 * Threads: weft__server_response_start runs on a worker, weft__server_response_leased and
 * weft__server_response_compiled on the threads of their lines, weft__server_response_ahead on another one of its line;
 * on_event by events.c, which owns the choices from
 * submit to FINISHED; weft__server_response_answer on the thread of answers, when all have finished; gone on the
 * HTTP façade's watcher. A response lives until the worker or its line, the façade and every submitted choice have let
 * go. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/random.h"
#include "server/learn.h"
#include "server/response.h"
#include "server/rules.h"
#include "text/stop.h"

/* ---- life ---- */

static void choice_free(weft__server_choice *c)
{
    weft_detok_free(&c->detok);
    weft_chat_parser_free(&c->parser);
    weft__api_message_free(&c->message);
    if (c->out->stop) weft__stop_free(c->out->stop);
    weft__free(c->out->stop);
    weft__strbuf_free(&c->out->text);
    weft__free(c->out->entries);
    weft__free(c->out->prompt_entries);
    weft__free(c->out->tops);
    weft__free(c->out->embedding);
    weft__free(c->kept);
}

void weft__server_response_unref(weft__server_response *g)
{
    if (atomic_fetch_sub(&g->refs, 1) != 1) return;
    if (g->again.len) { /* its request goes to another response: on the thread that answers, as it is compiled anew */
        atomic_store(&g->refs, 1);
        weft__server_answers_put(&g->server->answers, g);
        return;
    }
    weft__server_response_leave(g);
    for (int i = 0; i < g->answer.n_choices; i++) choice_free(&g->choices[i]);
    weft__free(g->choices);
    weft__free(g->answer.choices);
    weft__api_prompts_free(&g->prompts);
    weft__api_params_free(&g->params);
    weft_engine_lease_free(g->model->engine, &g->lease);
    weft_grammar_free(&g->grammar);
    weft__free(g->thinking_end);
    weft__free(g->predicted);
    weft__strbuf_free(&g->scratch);
    pthread_mutex_destroy(&g->lock);
    weft__server_model_release(&g->model, g->stages.ended_ns);
    weft__server_rules_release(&g->rules);
    weft__server_response_verifier_free(g);
    if (g->r) weft__server_response_drop_failed(g->r);
    if (g->r) weft__http_release(g->r);
    weft__free(g);
}

static void drop(void *arg)
{
    weft__server_response_unref(arg);
}

/* Cancels what was submitted and has not finished. Not under the lock: the engine may be waiting for it in on_event. */
void weft__server_response_cancel_all(weft__server_response *g)
{
    for (int i = 0; i < g->answer.n_choices; i++) {
        weft__server_choice *c = &g->choices[i];
        pthread_mutex_lock(&g->lock);
        int running = c->submitted && !c->finished;
        uint64_t id = c->request;
        pthread_mutex_unlock(&g->lock);
        if (running) weft_engine_cancel(g->model->engine, id);
    }
}

static void gone(void *arg)
{
    weft__server_response *g = arg;
    pthread_mutex_lock(&g->lock);
    g->gone = 1;
    pthread_mutex_unlock(&g->lock);
    weft__server_response_cancel_all(g);
}

/* ---- events ---- */

static int add_entry(weft__server_choice *c, weft__api_entry **all, size_t *n, size_t *capacity, const weft_event *e)
{
    if (!weft__grow(all, capacity, *n + 1, sizeof **all)) return 0;
    if (e->n_top > 0 && !weft__grow(&c->out->tops, &c->cap_tops, c->n_tops + (size_t)e->n_top, sizeof *c->out->tops))
        return 0;
    (*all)[(*n)++] = (weft__api_entry){.token = e->token,
                                       .logprob = e->logprob,
                                       .n_top = e->n_top,
                                       .first_top = c->n_tops,
                                       .begin = c->raw,
                                       .end = c->raw};
    if (e->n_top > 0) memcpy(c->out->tops + c->n_tops, e->top, (size_t)e->n_top * sizeof *c->out->tops);
    c->n_tops += (size_t)(e->n_top > 0 ? e->n_top : 0);
    return 1;
}

/* Entries whose text is certain. */
static size_t entries_ready(const weft__server_choice *c, int all)
{
    size_t n = c->out->n_shown;
    if (c->out->stop->found >= 0) {
        size_t shown = weft__api_entries_shown(c->out);
        return shown > n ? shown : n;
    }
    while (n < c->out->n_entries && (all || c->out->entries[n].end <= c->out->text.len)) n++;
    return n;
}

/* The first thing that goes wrong with a choice is what it ends with. */
static void gen_fail(weft__server_choice *c, weft_status status, const char *message)
{
    if (c->failed) return;
    c->failed = status;
    snprintf(c->out->message, sizeof c->out->message, "%.255s",
             message && *message ? message : weft_status_text(status));
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
    weft__api_message *m = c->out->parsed;
    size_t n_text = c->out->text.len - c->out->shown, n_entries = entries_ready(c, last && c->out->stop->found < 0);
    const int is_news = m ? m->n_pieces > 0 : n_text > 0;
    if (!g->params.stream || (!is_news && !(last && n_entries > c->out->n_shown))) return;
    g->writer->delta(c->out, n_text, n_entries, &g->scratch);
    if (m) weft__api_message_shown(m);
    c->out->shown = c->out->text.len;
    c->out->n_shown = n_entries;
    if (!send(g)) fail_memory(c);
}

/* What its text says. Whole answers wait until all is there, but for those that end with a call. */
static void read_text(weft__server_choice *c, int ended)
{
    weft_error err = {0};
    if (!c->parser || !weft__server_parse_is_live(c)) return;
    weft_status st = weft__server_parse(c, ended, &err);
    if (st) gen_fail(c, st, err.message);
}

static void on_began(weft__server_choice *c, const weft_event *e)
{
    weft__server_response *g = c->gen;
    c->began = 1;
    if (!g->stages.began_ns) g->stages.began_ns = c->now_ns;
    g->has_run = 1;
    c->last_ns = weft__http_began_ns(g->r);
    weft__server_count_began(c, e->queue_ms);
    if (!g->embedding)
        c->out->slot = weft__server_slots_take(&g->model->slots, (int32_t)g->params.id_slot, e->request, g->tenant,
                                               c->out->prompt->ids, c->out->prompt->n, (int32_t)g->params.max_tokens,
                                               c->with_adapters, g->params.kv_type);
    if (!g->params.stream || !g->writer->stream_begin) return;
    g->writer->stream_begin(c->out, &g->scratch);
    if (!send(g)) fail_memory(c);
}

static int on_token(weft__server_choice *c, const weft_event *e)
{
    weft__server_response *g = c->gen;
    weft_error err = {0};
    const char *text;
    size_t n;
    if (!g->stages.first_ns) g->stages.first_ns = c->now_ns;
    weft__server_count_token(c);
    c->out->n_accepted += e->drafter != 0;
    c->out->n_predicted_accepted += e->drafter == 1 + WEFT_DRAFTER_PREDICTION;
    weft__server_slots_token(&g->model->slots, c->out->slot, e);
    weft__server_learn_token(c, e);
    weft_status st = weft__server_parse_token(c, e->token, &text, &n, &err);
    if (st) gen_fail(c, st, err.message);
    else if (g->keep_entries && !add_entry(c, &c->out->entries, &c->out->n_entries, &c->cap_entries, e)) fail_memory(c);
    if (c->failed) return 1;
    c->raw += n;
    if (g->keep_entries) c->out->entries[c->out->n_entries - 1].end = c->raw;
    int stopped = weft__stop_push(c->out->stop, text, n, &c->out->text);
    if (c->out->text.failed) fail_memory(c);
    else read_text(c, 0);
    if (!c->failed) send_delta(c, 0);
    if (stopped || c->is_whole || c->failed) return 1;
    return weft__server_parse_is_over(c, 1) ? WEFT_EVENT_INSERT : 0;
}

static void on_embedding(weft__server_choice *c, const weft_event *e)
{
    if (e->embedding) c->out->n_embedding = e->n_embedding;
    else fail_memory(c);
}

void weft__server_response_keep_status(weft__server_choice *c, weft_status status, const char *message)
{
    c->out->status = status;
    snprintf(c->out->message, sizeof c->out->message, "%.255s", message ? message : "");
    if (c->gen->server->wants_keys) weft__api_hide_tenants(c->out->message, c->gen->tenant);
}

static void keep_finish(weft__server_choice *c, const weft_event *e)
{
    c->out->finish = c->failed ? WEFT_FINISH_FAILED : c->has_ended ? WEFT_FINISH_STOP : e->finish;
    if (c->failed) c->out->status = c->failed; /* and its message stands */
    else if (c->has_ended)
        weft__server_response_keep_status(c, WEFT_OK, NULL); /* whatever the engine came to beyond that */
    else
        weft__server_response_keep_status(c,
                                          e->finish == WEFT_FINISH_CANCELLED ? WEFT_CANCELLED
                                          : e->finish == WEFT_FINISH_FAILED  ? e->status
                                                                             : WEFT_OK,
                                          e->message);
    if (!c->failed && c->out->status == WEFT_TIMEOUT &&
        c->gen->params.timeout_ms > 0) /* the engine was told what was left of it */
        snprintf(c->out->message, sizeof c->out->message, "not finished within the %lld ms of its 'timeout_ms'",
                 (long long)c->gen->params.timeout_ms);
    /* Who scores a prompt finds an entry behind it, whatever that is: it may be the end token. */
    if (c->gen->keep_entries && c->gen->params.echo && !c->has_ended && e->token >= 0 && !c->failed &&
        !add_entry(c, &c->out->entries, &c->out->n_entries, &c->cap_entries, e))
        fail_memory(c);
    c->n_prompt = e->n_prompt;
    c->out->n_cached = e->n_cached;
    c->out->n_drafted = e->n_drafted;
    memcpy(c->drafted, e->drafted, sizeof c->drafted);
    memcpy(c->accepted, e->accepted, sizeof c->accepted);
    c->out->n_predicted = e->n_predicted;
    c->out->n_dropped = e->n_dropped;
    c->queue_ms = e->queue_ms;
    c->out->prompt_ms = e->prompt_ms;
    c->out->generate_ms = e->generate_ms;
}

/* The rest of the text. */
static void end_text(weft__server_choice *c)
{
    const char *text;
    size_t n;
    weft_error err = {0};
    weft_status st = c->out->stop->found < 0 ? weft_detok_finish(c->detok, &text, &n, &err) : WEFT_OK;
    if (st) gen_fail(c, st, err.message);
    else if (c->out->stop->found < 0) {
        c->raw += n;
        weft__stop_push(c->out->stop, text, n, &c->out->text);
    }
    if (c->out->stop->found < 0) weft__stop_flush(c->out->stop, &c->out->text);
    if (c->out->text.failed) fail_memory(c);
    if (c->out->n_entries) c->out->entries[c->out->n_entries - 1].end = c->raw;
    if (!c->failed) read_text(c, 1);
}

void weft__server_response_answer(weft__server_response *g)
{
    weft__api_error error = {0};
    if (g->again.len) {
        weft__server_response_hand_on(g);
        return;
    }
    for (int i = 0; i < g->answer.n_choices && !error.status; i++)
        if (g->answer.choices[i].status)
            weft__api_error_of(&error, g->answer.choices[i].status, g->answer.choices[i].message);
    error.retry_s = g->retry_s;
    for (int i = 0; i < g->answer.n_choices && !error.status; i++) {
        weft__server_choice *c = &g->choices[i];
        weft_error err = {0};
        weft_status st = weft__server_parse_is_live(c) ? WEFT_OK : weft__server_parse(c, 1, &err);
        if (st) weft__api_error_of(&error, st, err.message);
    }
    if (!error.status && !weft__server_response_best(g))
        weft__api_error_of(&error, WEFT_NO_MEMORY, "no memory for the answer");
    if (!error.status && weft__server_response_again(g)) {
        weft__server_response_unref(g);
        return;
    }
    for (int i = 0; i < g->answer.n_choices && !error.status; i++) weft__server_learn_answer(&g->choices[i]);
    weft__server_response_note(g);
    if (!error.status) {
        g->writer->whole(&g->answer, &g->scratch);
        if (g->scratch.failed) weft__api_error_of(&error, WEFT_NO_MEMORY, "no memory for the answer");
    }
    if (error.status) weft__server_reply_error(g->r, &error);
    else weft__server_reply_json(g->r, 200, &g->scratch);
    weft__server_response_unref(g);
}

/* Ends of a stream: one that there is no memory for is told of by what needs none, so that no answer looks whole that
 * is not. */
static void send_end(weft__server_response *g)
{
    const char *text = weft__api_no_memory_event(weft__api_dialect_of(weft__http_path(g->r)));
    if (!send(g)) weft__http_write(g->r, text, strlen(text));
}

static void end_stream(weft__server_response *g)
{
    weft__server_response_note(g);
    g->writer->stream_end(&g->answer, &g->scratch);
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
    weft__server_slots_give(&g->model->slots, c->out->slot);
    weft__server_stage_engine(&g->stages, e);
    weft__http_client_add(g->r, -1, 0);
    atomic_fetch_sub(&g->server->n_running, 1);
    pthread_mutex_lock(&g->lock);
    c->finished = 1;
    g->has_failed |= c->out->status != WEFT_OK;
    g->n_done++;
    int refused = g->refused, last = --g->n_left == 0;
    int asks = !g->is_asking && g->n_asked < g->answer.n_choices;
    g->is_asking |= asks;
    pthread_mutex_unlock(&g->lock);
    if (asks && weft__server_response_ask(g)) last = 1;
    if (!refused && last) weft__server_stages_leave_engine(&g->stages, c->now_ns);
    if (last) weft__server_response_leave(g); /* who has the end of an answer may send the next request */
    if (!refused && last && !g->params.stream) {
        weft__server_answers_put(&g->server->answers, g);
        return;
    }
    if (!refused && g->params.stream) {
        if (!c->out->status) weft__server_learn_answer(c);
        if (!c->out->status) send_delta(c, 1);
        c->out->status = c->failed ? c->failed : c->out->status;
        g->writer->choice_end(c->out, &g->scratch);
        send_end(g);
        if (last) end_stream(g);
    }
    weft__server_response_unref(g);
}

int weft__server_response_on_event(weft__server_choice *c, const weft_event *e)
{
    switch ((enum weft_event_kind)e->kind) {
    case WEFT_EVENT_BEGAN:
        on_began(c, e);
        return c->failed ? 1 : weft__server_parse_is_over(c, 0) ? WEFT_EVENT_INSERT : 0;
    case WEFT_EVENT_READ: weft__server_count_read(c, e->n_read, e->n_cached); return 0;
    case WEFT_EVENT_PROMPT_TOKEN:
        if (!add_entry(c, &c->out->prompt_entries, &c->out->n_prompt_entries, &c->cap_prompt_entries, e))
            fail_memory(c);
        return c->failed != 0;
    case WEFT_EVENT_TOKEN: return on_token(c, e);
    case WEFT_EVENT_EMBEDDING: on_embedding(c, e); return c->failed != 0;
    case WEFT_EVENT_FINISHED: on_finished(c, e); return 0;
    }
    return 0;
}

/* ---- begin ---- */

/* An id that nobody can guess. */
static void make_id(char *out, size_t n, const char *prefix, const char *routed)
{
    if (*routed) snprintf(out, n, "%s%s", prefix, routed);
    else
        snprintf(out, n, "%s%016llx%08llx", prefix, (unsigned long long)weft__rng_entropy(),
                 (unsigned long long)(weft__rng_entropy() & 0xffffffff));
}

static weft__server_response *new_gen(weft__server_model *m, weft__http_request *r, const weft__api_writer *writer,
                                      const weft__server_caller *who, const char *tenant)
{
    weft__server_response *g = weft__alloc_zero(1, sizeof *g);
    if (!g) return NULL;
    g->server = m->server;
    g->model = weft__server_model_hold(m);
    g->r = r;
    g->writer = writer;
    atomic_init(&g->refs, 1);
    pthread_mutex_init(&g->lock, NULL);
    g->answer.tokenizer = m->prompt_model.tokenizer;
    g->answer.params = &g->params;
    g->answer.created = (int64_t)time(NULL);
    snprintf(g->tenant, sizeof g->tenant, "%s", tenant);
    memcpy(g->label, who->label, sizeof g->label);
    g->rules = weft__server_rules_share(who->rules);
    g->member = who->member;
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
    weft_chat_prompt_free(&g->prompts.chat); /* parsers and grammars are made */
    weft__server_learn_leased(g);
    weft__server_stage(&g->stages, WEFT__SERVER_QUEUE);
    g->stages.submitted_ns = g->stages.since_ns;
    if (!weft__server_response_submit_all(g, &error)) {
        weft__server_response_leave(g);
        weft__server_reply_error(g->r, &error);
    } else if (g->params.stream) weft__http_begin(g->r);
    if (has_left(g)) weft__server_response_cancel_all(g); /* while we were submitting */
    weft__server_response_unref(g);
}

static int set_late(const char *what, weft__api_error *error)
{
    return weft__api_error_set(error, 504, NULL, "the deadline passed before %s was ready", what);
}

static void gen_refuse(weft__server_response *g, const weft__api_error *error)
{
    weft__server_response_leave(g);
    weft__server_reply_error(g->r, error);
    weft__server_response_unref(g);
}

/* Its adapters are there, or take their turn; then its grammar, unless it was compiled before; then it is submitted.
 * Takes over the caller's share of it. */
static void gen_go_on(weft__server_response *g)
{
    weft_server *s = g->server;
    weft__api_error error = {0};
    weft__server_stage(&g->stages, WEFT__SERVER_QUEUE);
    if (!g->has_lease) {
        if (weft__server_wait_queue_put(&s->adapters, g)) return;
        weft__api_error_set(&error, 429, NULL, "too many requests wait for adapters to be read; try again in 2 s");
        error.retry_s = 2;
        gen_refuse(g, &error);
    } else if (weft__server_response_constraint_of(&g->params) && !weft__server_response_find_grammar(g)) {
        if (weft__server_wait_queue_put(&s->grammars, g)) return;
        weft__api_error_set(&error, 429, weft__server_response_constraint_of(&g->params),
                            "too many grammars wait to be compiled; try again in 2 s");
        error.retry_s = 2;
        gen_refuse(g, &error);
    } else {
        set_off(g);
    }
}

enum { ROOM_S = 60 /* since the request came */, LOOK_MS = 100 };

/* Where those in use fill the budget it waits until one is given back, since whoever has one needs none of those in
 * this line; a little at a time, as others in it may need ones for which there is room. Not for ever: adapters that are
 * ready are lent past the line, and may be in use again and again. */
int weft__server_response_lease(weft__server_response *g, weft__api_error *error)
{
    uint64_t deadline = weft__server_response_deadline(g), until = weft__http_began_ns(g->r) + ROOM_S * 1000000000ull;
    if (has_left(g)) {
        weft__api_error_of(error, WEFT_CANCELLED, "the client left");
        return 0;
    }
    if (weft__server_adapters_lease(g->model, &g->params, g->tenant, NULL, &g->lease, g->adapters, error)) return 1;
    uint64_t now = weft__clock_ns();
    if (error->status != 429 || now >= until) return 0;
    if (deadline && now >= deadline) return set_late(g->server->adapters.what, error);
    weft_engine_lease_wait(g->model->engine, LOOK_MS);
    return -1;
}

void weft__server_response_ahead(weft__server_response *g)
{
    weft__api_error error = {0}; /* is told at its turn */
    if (!has_left(g)) weft__server_adapters_lease(g->model, &g->params, g->tenant, NULL, NULL, NULL, &error);
}

void weft__server_response_leased(weft__server_response *g, const weft__api_error *error)
{
    g->has_lease = 1;
    if (error) gen_refuse(g, error);
    else gen_go_on(g);
}

int weft__server_response_compile(weft__server_response *g, weft__api_error *error)
{
    weft__server_stage(&g->stages, WEFT__SERVER_GRAMMAR);
    if (!has_left(g)) return weft__server_response_compile_grammar(g, error);
    weft__api_error_of(error, WEFT_CANCELLED, "the client left");
    return 0;
}

void weft__server_response_expired(weft__server_response *g, const char *what)
{
    weft__api_error error = {0};
    set_late(what, &error);
    weft__server_response_leave(g);
    weft__server_reply_error(g->r, &error);
}

void weft__server_response_compiled(weft__server_response *g, const weft__api_error *error)
{
    if (!error) {
        set_off(g);
        return;
    }
    gen_refuse(g, error);
}

void weft__server_response_drop(weft__server_response *g)
{
    weft__server_response_unref(g);
}

void weft__server_response_start(weft__server_model *m, weft__http_request *r, const weft__api_writer *writer,
                                 const weft__server_caller *who, const char *tenant, const char *id_prefix,
                                 weft__api_params *params, weft__api_prompts *prompts, int embedding)
{
    weft__api_error error = {0};
    weft__server_response *g = new_gen(m, r, writer, who, tenant);
    if (!g) {
        weft__api_error_set(&error, 503, NULL, "no memory for the request");
        weft__server_reply_error(r, &error);
        weft__api_params_free(params);
        weft__api_prompts_free(prompts);
        weft__http_release(r);
        return;
    }
    g->params = *params;
    g->prompts = *prompts;
    weft__server_stages_begin(&g->stages, weft__http_began_ns(r));
    weft__server_stage_move(&g->stages, WEFT__SERVER_TEMPLATE, prompts->template_ns);
    weft__server_stage_move(&g->stages, WEFT__SERVER_TOKENIZER, prompts->tokenizer_ns);
    g->stages.read_ns = g->stages.since_ns;
    g->embedding = embedding;
    if (embedding) g->params.n = 1;
    g->keep_entries =
        !embedding && (g->params.n_top >= 0 || g->params.return_tokens || g->params.n_best > 1 || g->params.verify);
    g->answer.several = g->prompts.n > 1;
    g->answer.memories = g->prompts.memories;
    g->answer.n_memories = g->prompts.n_memories;
    make_id(g->answer.id, sizeof g->answer.id, id_prefix, who->routed.id);
    snprintf(g->answer.model, sizeof g->answer.model, "%s",
             g->params.model && *g->params.model ? g->params.model : m->name);
    int ready = weft__server_response_verifier(g, who, &error) && weft__server_response_prepare(g, &error) &&
                weft__server_response_enter(g, &error);
    if (ready) weft__server_learn_begin(g);
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
