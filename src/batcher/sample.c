// SPDX-License-Identifier: Apache-2.0
/* sample.c: from logits and hidden states to what a request is told: tokens, log-probabilities, embeddings. What is
 * random comes from the request's own sampler; nothing is allocated after weft__batcher_prepare. Owner: the engine's
 * thread. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "batcher/batcher.h"
#include "sample/sampler.h"

int32_t weft__batcher_generated(const batcher_request *r)
{
    return r->n_known + r->n_dropped - r->n_prompt;
}

void weft__batcher_prepare(batcher_request *r)
{
    weft_error err = {0};
    weft_status st = WEFT_OK;
    if (r->max_new > 0) st = weft_sampler_new(r->engine->model->hp.n_vocab, &r->sampling, &r->sampler, &err);
    if (!st && r->grammar) st = weft_matcher_new(r->grammar, &r->matcher, &err);
    if (!st) weft__batcher_draft_begin(r);
    r->n_scratch = (uint64_t)r->n_most * sizeof *r->tokens + (r->sampler ? weft__sample_bytes(r->sampler) : 0) +
                   weft__draft_history_bytes(r->draft.own) + weft__draft_expected_bytes(r->draft.expected) +
                   (r->draft.text ? weft__engine_drafter_text_bytes(r->n_most) : 0);
    r->engine->n_scratch += r->n_scratch;
    for (int32_t i = 0; i < r->n_prompt && r->sampler && !st; i++)
        st = weft_sampler_accept(r->sampler, r->tokens[i], &err);
    if (st) weft__batcher_fail(r, st, err.message);
}

/* ---- log-probabilities ---- */

static double log_sum_exp(const float *logits, int32_t n)
{
    float largest = -INFINITY;
    double sum = 0;
    for (int32_t i = 0; i < n; i++) largest = logits[i] > largest ? logits[i] : largest;
    if (!(largest < INFINITY) || largest == -INFINITY) return (double)largest;
    for (int32_t i = 0; i < n; i++) sum += (double)expf(logits[i] - largest);
    return (double)largest + log(sum);
}

/* The n_top largest that have a text, the lowest id of equals first; returns how many there are. */
static int32_t find_top(const float *logits, const uint8_t *is_nameless, int32_t n, int32_t n_top, double norm,
                        weft_token_prob *top)
{
    int32_t n_found = 0;
    for (int32_t t = 0; t < n; t++) {
        if (n_top == 0 || is_nameless[t] || !(logits[t] > -INFINITY) ||
            (n_found == n_top && !(logits[t] > top[n_top - 1].logprob)))
            continue;
        int32_t k = n_found < n_top ? n_found++ : n_top - 1;
        for (; k > 0 && logits[t] > top[k - 1].logprob; k--) top[k] = top[k - 1];
        top[k] = (weft_token_prob){t, logits[t]};
    }
    for (int32_t k = 0; k < n_found; k++) top[k].logprob = (float)((double)top[k].logprob - norm);
    return n_found;
}

static void add_probs(const batcher_request *r, const float *logits, weft_token_prob *top, weft_event *event)
{
    int32_t n = r->engine->model->hp.n_vocab;
    double norm = log_sum_exp(logits, n);
    event->logprob = (float)((double)logits[event->token] - norm);
    event->n_top = find_top(logits, r->engine->vocab.is_nameless, n, r->n_top, norm, top);
    event->top = top;
}

void weft__batcher_prompt_token(batcher_request *r, int32_t at, const float *logits)
{
    weft_token_prob top[BATCHER_MAX_TOP];
    weft_event event = weft__batcher_event(r, WEFT_EVENT_PROMPT_TOKEN);
    event.token = r->tokens[at];
    if (logits && r->n_top >= 0) add_probs(r, logits, top, &event);
    r->n_told = at + 1;
    weft__batcher_notify(r, &event);
}

/* ---- tokens ---- */

/* What grammars take of a step is counted as time: it is what the others wait. */
static weft_status mask(batcher_request *r, float *logits, weft_error *err)
{
    weft_engine *e = r->engine;
    uint64_t begin = weft__clock_ns(), end;
    weft__batcher_stage(r, BATCHER_MASKING, begin);
    weft_status st = weft_matcher_apply(r->matcher, logits, e->model->hp.n_vocab, err);
    weft__batcher_stage(r, BATCHER_SAMPLING, end = weft__clock_ns());
    e->mask_ns += end - begin;
    return st;
}

/* What a step computed is of no use; logits: as weft__engine_explain_adapters has them. */
static void fail_computing(batcher_request *r, weft_status st, const char *what, const float *logits)
{
    char names[256] = "";
    weft_error err = {0};
    if (r->lease) weft__adapt_store_name(r->engine->adapters, r->lease, names, sizeof names);
    weft_status why = weft__engine_explain_adapters(st, names, what, logits, r->engine->model->hp.n_vocab, &err);
    static atomic_flag told = ATOMIC_FLAG_INIT; /* once: every request has it */
    if (why == WEFT_INTERNAL && !atomic_flag_test_and_set(&told))
        weft__log(WEFT__LOG_ERROR, "%s: %s", r->engine->model->source.label, err.message);
    weft__batcher_fail(r, why, err.message);
}

/* The answer goes on by this token; -1 after weft__batcher_fail, where the grammar does not allow it. */
static int32_t take(batcher_request *r, int32_t token)
{
    weft_error err = {0};
    weft_status st = weft_sampler_accept(r->sampler, token, &err);
    if (!st && r->matcher) st = weft_matcher_accept(r->matcher, token, &err);
    if (st) weft__batcher_fail(r, st, err.message);
    return st ? -1 : token;
}

/* The token that follows, or -1 after weft__batcher_end. */
static int32_t pick(batcher_request *r, float *logits)
{
    weft_engine *e = r->engine;
    weft_error err = {0};
    int32_t token = -1;
    weft_status st = WEFT_OK;
    if (r->at_insert < r->n_insert) return take(r, r->insert[r->at_insert++]);
    if (r->ignore_end && !r->matcher)
        for (int32_t i = 0; i < e->vocab.n_ends; i++) logits[e->vocab.ends[i]] = -INFINITY;
    if (r->matcher) st = mask(r, logits, &err);
    if (!st && (st = weft_sampler_pick(r->sampler, logits, &token, &err))) {
        fail_computing(r, st, err.message, logits);
        return -1;
    }
    if (!st && weft__batcher_is_end(e, token)) {
        r->end_token = r->n_top >= 0 ? token : -1;
        weft__batcher_end(r, WEFT_FINISH_END);
        return -1;
    }
    if (st) weft__batcher_fail(r, st, err.message);
    return st ? -1 : take(r, token);
}

int weft__batcher_has_time(const batcher_request *r)
{
    return !r->matcher || r->engine->mask_ns < r->engine->mask_most_ns;
}

/* What the last event of a request that an end token ended tells of that. */
static void keep_end(batcher_request *r)
{
    weft_event event = {.token = r->end_token};
    if (r->end_token < 0) return;
    add_probs(r, r->engine->raw, r->end_top, &event);
    r->end_logprob = event.logprob;
    r->n_end_top = event.n_top;
}

void weft__batcher_sample(batcher_request *r, float *logits, int32_t guessed)
{
    weft_engine *e = r->engine;
    weft_token_prob top[BATCHER_MAX_TOP];
    if (r->n_top >= 0) memcpy(e->raw, logits, (size_t)e->model->hp.n_vocab * sizeof *logits);
    int32_t token = pick(r, logits);
    if (!r->first_ns) r->first_ns = weft__clock_ns();
    if (token < 0) {
        keep_end(r);
        return;
    }
    r->tokens[r->n_known++] = token;
    e->step.generated++;
    weft_event event = weft__batcher_event(r, WEFT_EVENT_TOKEN);
    event.token = token;
    if (token == guessed) {
        event.drafter = 1 + r->draft.now.kind;
        r->draft.n_right++;
    }
    if (r->n_top >= 0) add_probs(r, e->raw, top, &event);
    weft__batcher_notify(r, &event);
    if (r->matcher && weft_matcher_complete(r->matcher) == 2) weft__batcher_end(r, WEFT_FINISH_END);
}

/* ---- embeddings ---- */

/* The norm between the last layer and the output matrix. */
static const weft_node *final_norm(const weft_graph *g)
{
    for (int32_t i = g->n_nodes - 1; i >= 0; i--)
        if (g->nodes[i].op == WEFT_OP_NORM && g->tensors[g->nodes[i].out[0]].shape.d[1] == WEFT_WANTED)
            return &g->nodes[i];
    return NULL;
}

/* Adds one token's hidden state, normed as attr.norm says (weft__build_head makes it RMS over the row). */
static void add_state(batcher_request *r, const weft_node *norm, const float *x)
{
    const weft_model *m = r->engine->model;
    const weft_weight *w = &m->graph->weights[norm->w[0]];
    const float *scale = (const float *)(const void *)((const char *)w->buffer->data + w->offset);
    double squares = 0;
    for (int32_t i = 0; i < m->hp.d_model; i++) squares += (double)x[i] * (double)x[i];
    double factor = 1 / sqrt(squares / m->hp.d_model + (double)norm->attr.norm.eps);
    for (int32_t i = 0; i < m->hp.d_model; i++) r->sum[i] += (double)x[i] * factor * (double)scale[i];
}

static void tell_embedding(batcher_request *r)
{
    weft_engine *e = r->engine;
    int32_t d = e->model->hp.d_model;
    double squares = 0;
    for (int32_t i = 0; i < d; i++) squares += r->sum[i] * r->sum[i];
    if (!isfinite(squares)) {
        fail_computing(r, WEFT_ARGUMENT, "the hidden states are no finite numbers, and so would be the embedding",
                       NULL);
        return;
    }
    for (int32_t i = 0; i < d; i++) e->vector[i] = squares > 0 ? (float)(r->sum[i] / sqrt(squares)) : 0;
    r->first_ns = weft__clock_ns();
    weft_event event = weft__batcher_event(r, WEFT_EVENT_EMBEDDING);
    event.embedding = e->vector;
    event.n_embedding = d;
    weft__batcher_notify(r, &event);
}

int weft__batcher_embeds(const batcher_request *r, int32_t position)
{
    return r->embedding == WEFT_POOLING_MEAN || (r->embedding == WEFT_POOLING_LAST && position == r->n_prompt - 1);
}

void weft__batcher_embed(batcher_request *r, int32_t first, int32_t n, const float *hidden)
{
    const weft_model *m = r->engine->model;
    const weft_node *norm = final_norm(m->graph);
    if (!norm) {
        weft__batcher_fail(r, WEFT_UNSUPPORTED, "this model has no final norm to take embeddings from");
        return;
    }
    for (int32_t i = 0; i < n; i++) {
        if (first + i < r->n_summed) continue; /* computed once more after a preemption */
        if (weft__batcher_embeds(r, first + i)) add_state(r, norm, hidden + (size_t)i * (size_t)m->hp.d_model);
        r->n_summed++;
    }
    if (r->n_summed == r->n_prompt) tell_embedding(r);
}
