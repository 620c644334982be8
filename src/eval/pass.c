// SPDX-License-Identifier: Apache-2.0
/* pass.c: requests to the engine (pass.h). */
#include "eval/pass.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

weft_status weft__eval_request_begin(weft__eval_request *r, const weft__eval_task *task,
                                     const weft_tokenizer *tokenizer, const weft_chat_prompt *prompt, weft_error *err)
{
    const weft__eval_generation *g = &task->generation;
    size_t *lengths = NULL;
    weft_chat_parser_params pp;
    r->is_greedy = 1;
    r->tokenizer = tokenizer;
    if (task->output != WEFT__EVAL_GENERATE) return WEFT_OK;
    lengths = weft__alloc_array(g->n_until + 1, sizeof *lengths);
    if (!lengths) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a request");
    for (size_t i = 0; i < g->n_until; i++) lengths[i] = strlen(g->until[i]);
    weft_status st = weft__stop_begin(&r->stop, g->until, lengths, (int)g->n_until, err);
    weft__free(lengths);
    if (!st) st = weft_detok_new(tokenizer, WEFT_DETOK_CONTINUE, &r->detok, err);
    weft_chat_parser_params_default(&pp);
    pp.calls = 0;
    if (!st && prompt) st = weft_chat_parser_new(prompt, &pp, &r->parser, err);
    return st;
}

void weft__eval_request_free(weft__eval_request *r)
{
    weft_detok_free(&r->detok);
    weft_chat_parser_free(&r->parser);
    weft__stop_free(&r->stop);
    weft__strbuf_free(&r->text);
}

/* ---- on the engine's thread ---- */

static int fail(weft__eval_request *r, weft_status st, const char *message)
{
    if (!r->status) {
        r->status = st;
        snprintf(r->message, sizeof r->message, "%s", message);
    }
    return 1;
}

/* The log-probability of the next token that is scored. */
static int add_logprob(weft__eval_request *r, const weft_event *e)
{
    if (!isfinite(e->logprob))
        return fail(r, WEFT_FORMAT,
                    "the model gives a token no finite log-probability; are its weights damaged (NaN)?");
    r->logprob += (double)e->logprob;
    r->n_scored++;
    r->is_greedy &= e->n_top > 0 && !(e->top[0].logprob > e->logprob);
    return 0;
}

static int add_text(weft__eval_request *r, int32_t token)
{
    const char *text = NULL;
    size_t n = 0;
    weft_error err = {0};
    weft_status st = WEFT_OK;
    r->n_generated++;
    if (r->parser && weft_chat_parser_shows(r->parser, token)) text = weft_token_piece(r->tokenizer, token, &n);
    else st = weft_detok_push(r->detok, token, &text, &n, &err);
    if (st) return fail(r, st, err.message);
    return weft__stop_push(&r->stop, text, n, &r->text);
}

static void finished(weft__eval_request *r, const weft_event *e, int generates)
{
    weft_error err = {0};
    const char *text = NULL;
    size_t n = 0;
    if (e->finish == WEFT_FINISH_FAILED) fail(r, e->status, e->message ? e->message : "the request failed");
    else if (e->finish == WEFT_FINISH_CANCELLED) fail(r, WEFT_CANCELLED, "cancelled");
    r->is_unended = generates && e->finish == WEFT_FINISH_LENGTH;
    if (generates && !r->status && r->stop.found < 0) {
        if (!weft_detok_finish(r->detok, &text, &n, &err)) weft__stop_push(&r->stop, text, n, &r->text);
        if (r->stop.found < 0) weft__stop_flush(&r->stop, &r->text);
    }
    pthread_mutex_lock(&r->bell->lock);
    r->done = 1;
    r->bell->n_running--;
    pthread_cond_signal(&r->bell->rang);
    pthread_mutex_unlock(&r->bell->lock);
}

static int on_event(void *arg, const weft_event *e)
{
    weft__eval_request *r = arg;
    const int generates = r->pass->from == r->pass->n;
    switch (e->kind) {
    case WEFT_EVENT_BEGAN: return r->as_answer ? WEFT_EVENT_INSERT : 0;
    case WEFT_EVENT_PROMPT_TOKEN: {
        const int32_t at = r->at++;
        return at >= r->pass->from && at < r->pass->to ? add_logprob(r, e) : 0;
    }
    case WEFT_EVENT_TOKEN: return generates ? add_text(r, e->token) : add_logprob(r, e);
    case WEFT_EVENT_FINISHED: finished(r, e, generates); return 0;
    default: return 0;
    }
}

/* ---- on the caller's ---- */

static void sample_as(weft_sampler_params *s, const weft__eval_generation *g, uint64_t seed)
{
    weft_sampler_params_default(s);
    s->temperature = (float)g->temperature;
    s->top_k = (int32_t)g->top_k;
    s->top_p = g->top_p > 0 && g->top_p <= 1 ? (float)g->top_p : 1;
    s->min_p = (float)g->min_p;
    s->repeat_penalty = 1;
    s->seed = seed;
    s->seed_given = 1;
}

weft_status weft__eval_request_submit(weft__eval_request *r, const weft__eval_task *task,
                                      const weft__eval_params *params, weft_error *err)
{
    const weft__eval_pass *pass = r->pass;
    const int generates = pass->from == pass->n;
    weft_request_params p;
    weft_request_params_default(&p);
    p.tokens = pass->ids;
    p.lease = params->lease;
    p.event = on_event;
    p.arg = r;
    sample_as(&p.sampler, &task->generation, r->seed);
    if (generates) {
        p.n_tokens = pass->n;
        p.max_tokens = (int32_t)(task->generation.max_tokens < INT32_MAX ? task->generation.max_tokens : INT32_MAX);
        p.cut_to_fit = 1;
    } else if (r->as_answer) {
        p.n_tokens = pass->from;
        p.n_top = 1;
        p.max_tokens = p.n_insert = pass->to - pass->from;
        p.insert = pass->ids + pass->from;
    } else {
        p.n_tokens = pass->to;
        p.n_top = 1;
        p.max_tokens = 0;
        p.prompt_logprobs = 1;
    }
    if (generates) p.n_top = -1;
    pthread_mutex_lock(&r->bell->lock);
    r->bell->n_running++;
    pthread_mutex_unlock(&r->bell->lock);
    weft_status st = weft_engine_submit(params->engine, &p, &r->id, NULL, err);
    r->submitted = !st;
    if (!st) return WEFT_OK;
    pthread_mutex_lock(&r->bell->lock);
    r->bell->n_running--;
    pthread_mutex_unlock(&r->bell->lock);
    return st;
}

static int on_part(void *arg, const weft_chat_part *part)
{
    if (part->kind == WEFT_CHAT_TEXT) weft__strbuf_put(arg, part->text, part->n_text);
    return 0;
}

weft_status weft__eval_request_end(weft__eval_request *r, weft_error *err)
{
    weft__strbuf content = {0};
    if (r->status) return weft_fail(err, r->status, "%s", r->message);
    if (!r->parser) return r->text.failed ? weft_fail(err, WEFT_NO_MEMORY, "no memory for an answer") : WEFT_OK;
    weft_status st =
        weft_chat_parser_push(r->parser, r->text.data ? r->text.data : "", r->text.len, on_part, &content, err);
    if (!st) st = weft_chat_parser_finish(r->parser, on_part, &content, err);
    if (!st && (content.failed || r->text.failed)) st = weft_fail(err, WEFT_NO_MEMORY, "no memory for an answer");
    weft__strbuf_free(&r->text);
    r->text = content;
    return st;
}
