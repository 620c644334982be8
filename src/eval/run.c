// SPDX-License-Identifier: Apache-2.0
/* run.c: a task over a model (eval.h): documents in flight as a queue, whose first becomes a line when it is done. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "eval/eval.h"
#include "eval/pass.h"
#include "eval/samples.h"

enum {
    DOCS = 64,        /* in flight */
    REQUESTS = 192,   /* of them with the engine */
    LONG_CONTEXT = 64 /* tokens from which several continuations of one context share its pages */
};

typedef struct doc {
    size_t index;
    weft__eval_asks asks;
    weft__eval_passes passes;
    weft__eval_request *requests; /* [n_requests] */
    size_t n_requests;
} doc;

typedef struct run {
    const weft__eval_task *task;
    const weft__eval_params *params;
    weft__eval_report *report;
    weft__eval_tokens tokens;
    weft__eval_shots shots;
    weft__eval_samples samples;
    weft__regex_scratch scratch;
    weft__eval_bell bell;
    doc queue[DOCS];
    size_t first, n_queued; /* queue[(first + i) % DOCS] */
    size_t next, end;       /* documents to be asked for */
} run;

void weft__eval_params_default(weft__eval_params *p)
{
    *p = (weft__eval_params){.fewshot_seed = 1234, .seed = 1234, .label = "", .adapters_id = ""};
}

/* ---- documents ---- */

static void free_doc(doc *d)
{
    for (size_t i = 0; i < d->n_requests; i++) weft__eval_request_free(&d->requests[i]);
    weft__free(d->requests);
    weft__eval_passes_free(&d->passes);
    weft__eval_asks_free(&d->asks);
    *d = (doc){0};
}

static int as_answer(const run *r, const doc *d, const weft__eval_pass *pass)
{
    if (pass->from == pass->n || r->params->how == WEFT__EVAL_AS_PROMPT || r->task->output == WEFT__EVAL_ROLLING)
        return 0;
    return r->params->how == WEFT__EVAL_AS_ANSWER ||
           (pass->from >= LONG_CONTEXT && (d->passes.n > 1 || (r->task->n_fewshot && r->task->fewshot_first)));
}

static weft_status make_requests(run *r, doc *d, weft_error *err)
{
    const weft__eval_task *t = r->task;
    const int generates = t->output == WEFT__EVAL_GENERATE;
    const size_t repeats = generates ? (size_t)t->repeats : 1;
    weft_status st = WEFT_OK;
    d->requests = weft__alloc_zero(d->passes.n * repeats + 1, sizeof *d->requests);
    if (!d->requests) return weft_fail(err, WEFT_NO_MEMORY, "no memory for requests");
    for (size_t i = 0; !st && i < d->passes.n * repeats; i++) {
        weft__eval_request *q = &d->requests[d->n_requests++];
        q->pass = &d->passes.items[i / repeats];
        q->bell = &r->bell;
        q->seed = r->params->seed + d->index * repeats + i % repeats;
        q->as_answer = as_answer(r, d, q->pass);
        if (i && (q->as_answer || generates)) q->before = d->requests;
        st = weft__eval_request_begin(q, t, r->tokens.tokenizer, d->asks.items[q->pass->ask].prompt, err);
    }
    return st;
}

/* The next document into the queue; its examples were drawn whatever becomes of it. */
static weft_status queue_next(run *r, weft_error *err)
{
    doc *d = &r->queue[(r->first + r->n_queued) % DOCS];
    weft_error why = {0};
    *d = (doc){.index = r->next++};
    r->n_queued++;
    weft_status st = weft__eval_shots_next(&r->shots, d->index, &why);
    if (!st) st = weft__eval_ask_make(&r->shots, &r->params->style, d->index, &d->asks, err);
    else weft_fail(err, st, "document %zu: %s", d->index + 1, why.message);
    if (st) return st;
    st = weft__eval_tokens_of(&r->tokens, r->task, &d->asks, &d->passes, &why);
    if (!st) st = make_requests(r, d, &why);
    return st ? weft_fail(err, st, "document %zu: %s", d->index + 1, why.message) : WEFT_OK;
}

/* ---- requests ---- */

static int is_done(run *r, const weft__eval_request *q)
{
    pthread_mutex_lock(&r->bell.lock);
    const int done = q->done;
    pthread_mutex_unlock(&r->bell.lock);
    return done;
}

static int n_running(run *r)
{
    pthread_mutex_lock(&r->bell.lock);
    const int n = r->bell.n_running;
    pthread_mutex_unlock(&r->bell.lock);
    return n;
}

/* As many as may run; *busy: the engine takes no more now. */
static weft_status submit_all(run *r, int *busy, weft_error *err)
{
    *busy = 0;
    for (size_t i = 0; i < r->n_queued; i++) {
        doc *d = &r->queue[(r->first + i) % DOCS];
        for (size_t k = 0; k < d->n_requests; k++) {
            weft__eval_request *q = &d->requests[k];
            weft_error why = {0};
            if (q->submitted || (q->before && !is_done(r, q->before))) continue;
            if (n_running(r) >= REQUESTS) return WEFT_OK;
            weft_status st = weft__eval_request_submit(q, r->task, r->params, &why);
            if (st == WEFT_BUSY && n_running(r)) {
                *busy = 1;
                return WEFT_OK;
            }
            if (st) return weft_fail(err, st, "document %zu: %s", d->index + 1, why.message);
        }
    }
    return WEFT_OK;
}

/* Until the first of the queue's requests is done, or another has been for a tenth of a second. */
static void wait_a_little(run *r, int running)
{
    pthread_mutex_lock(&r->bell.lock);
    if (r->bell.n_running >= running && running > 0)
        weft__clock_wait(&r->bell.rang, &r->bell.lock, weft__clock_ns() + 100000000);
    pthread_mutex_unlock(&r->bell.lock);
}

static int is_answered(run *r, const doc *d)
{
    for (size_t i = 0; i < d->n_requests; i++)
        if (!is_done(r, &d->requests[i])) return 0;
    return 1;
}

/* ---- lines ---- */

static weft_status gather(run *r, doc *d, weft__eval_response *responses, weft__eval_answers *a, weft_error *err)
{
    weft_status st = WEFT_OK;
    const int generates = r->task->output == WEFT__EVAL_GENERATE;
    for (size_t i = 0; i < d->asks.n; i++) responses[i].is_greedy = 1;
    for (size_t i = 0; i < d->n_requests && !st; i++) {
        weft__eval_request *q = &d->requests[i];
        weft__eval_response *to = &responses[generates ? i : q->pass->ask];
        st = weft__eval_request_end(q, err);
        to->text = q->text; /* lent */
        to->logprob += q->logprob;
        to->n_scored += q->n_scored;
        to->is_greedy &= q->is_greedy;
        a->n_cut += q->pass->n_cut > 0;
        a->n_tokens += generates ? q->n_generated : q->n_scored;
        a->n_unended += q->is_unended;
    }
    return st;
}

static weft_status finish_first(run *r, weft_error *err)
{
    doc *d = &r->queue[r->first];
    const size_t n = r->task->output == WEFT__EVAL_GENERATE ? d->n_requests : d->asks.n;
    weft__eval_response *responses = weft__alloc_zero(n + 1, sizeof *responses);
    weft__eval_answers a = {.doc = d->index, .asks = &d->asks, .items = responses, .n = n};
    weft__strbuf line = {0};
    weft_error why = {0};
    weft_status st =
        responses ? gather(r, d, responses, &a, &why) : weft_fail(&why, WEFT_NO_MEMORY, "no memory for answers");
    if (st) weft_fail(err, st, "document %zu: %s", d->index + 1, why.message);
    if (!st) st = weft__eval_judge(r->task, &a, &r->scratch, &line, err);
    if (!st) st = weft__eval_samples_put(&r->samples, &line, r->report, err);
    weft__strbuf_free(&line);
    weft__free(responses);
    free_doc(d);
    r->first = (r->first + 1) % DOCS;
    r->n_queued--;
    return st;
}

static weft_status tell_progress(const run *r, weft_error *err)
{
    const weft__eval_params *p = r->params;
    if (!p->progress || !p->progress(p->progress_arg, r->task->name, (double)r->report->n / (double)r->end))
        return WEFT_OK;
    return weft_fail(err, WEFT_CANCELLED, "stopped after %zu of %zu documents%s", r->report->n, r->end,
                     p->samples ? "; the same command goes on from there" : "");
}

static weft_status go(run *r, weft_error *err)
{
    weft_status st = WEFT_OK;
    while (!st && (r->n_queued || r->next < r->end)) {
        int busy = 0;
        while (!st && r->n_queued < DOCS && r->next < r->end && n_running(r) < REQUESTS) {
            st = queue_next(r, err);
            if (!st) st = submit_all(r, &busy, err);
            if (busy) break;
        }
        if (!st) st = submit_all(r, &busy, err);
        const int running = n_running(r);
        int finished = 0;
        while (!st && r->n_queued && is_answered(r, &r->queue[r->first])) {
            st = finish_first(r, err);
            finished = 1;
        }
        if (!st) st = tell_progress(r, err);
        if (!st && !finished) wait_a_little(r, running);
    }
    return st;
}

/* Ends what the engine still has of this run. */
static void stop(run *r)
{
    for (size_t i = 0; i < r->n_queued; i++) {
        const doc *d = &r->queue[(r->first + i) % DOCS];
        for (size_t k = 0; k < d->n_requests; k++)
            if (d->requests[k].submitted && !is_done(r, &d->requests[k]))
                weft_engine_cancel(r->params->engine, d->requests[k].id);
    }
    for (int n = n_running(r); n > 0; n = n_running(r)) wait_a_little(r, n);
    while (r->n_queued) {
        free_doc(&r->queue[r->first]);
        r->first = (r->first + 1) % DOCS;
        r->n_queued--;
    }
}

static weft_status begin(run *r, weft_error *err)
{
    weft_engine_stats stats = {.size = sizeof stats};
    weft_engine_get_stats(r->params->engine, &stats);
    weft__strbuf head = {0};
    weft_status st = weft__eval_tokens_begin(&r->tokens, r->params->model, stats.n_ctx, r->params->no_bos, err);
    if (!st) st = weft__eval_shots_begin(&r->shots, r->task, r->params->fewshot_seed, err);
    if (st) return st;
    weft__eval_head(r->task, r->params, &head);
    st = head.failed ? weft_fail(err, WEFT_NO_MEMORY, "no memory for a line of samples")
                     : weft__eval_samples_open(&r->samples, r->params, r->task, head.data, r->report, err);
    weft__strbuf_free(&head);
    /* Examples are drawn in order, for documents that are there already, too. */
    for (; !st && r->next < r->report->n && r->next < r->end; r->next++)
        st = weft__eval_shots_next(&r->shots, r->next, err);
    return st;
}

weft_status weft__eval_run(const weft__eval_task *task, const weft__eval_params *params, weft__eval_report *report,
                           weft_error *err)
{
    run *r = weft__alloc_zero(1, sizeof *r);
    if (!r) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a run");
    r->task = task;
    r->params = params;
    r->report = report;
    r->end = params->limit && params->limit < task->docs.n ? params->limit : task->docs.n;
    pthread_mutex_init(&r->bell.lock, NULL);
    weft__clock_cond_init(&r->bell.rang);
    weft_status st = begin(r, err);
    if (!st) st = go(r, err);
    stop(r);
    weft_error why = {0};
    weft_status closed = weft__eval_samples_close(&r->samples, st == WEFT_OK, &why);
    if (!st && closed) st = weft_fail(err, closed, "%s", why.message);
    weft__eval_shots_free(&r->shots);
    weft__regex_scratch_free(&r->scratch);
    pthread_cond_destroy(&r->bell.rang);
    pthread_mutex_destroy(&r->bell.lock);
    weft__free(r);
    return st;
}
