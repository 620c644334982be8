// SPDX-License-Identifier: Apache-2.0
/* generate.c: weft_generate: sample, accept, detokenize, look for stop strings, evaluate. With guesses several tokens
 * are evaluated at once: the sampler runs at each as long as it picks what was guessed, and what the session has of the
 * others is trimmed, so that it holds what it would without. Belongs to the session's thread. */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/text.h"
#include "engine/drafter.h"
#include "engine/forced.h"
#include "engine/handles.h"
#include "text/stop.h"

enum { MAX_STOPS = 256, MAX_STOP_BYTES = (1 << 16) - 1, DRAFT_WINDOW = 1 << 14 /* tokens */ };

void(weft_generate_params_default)(weft_generate_params *p)
{
    *p = (weft_generate_params){.size = sizeof *p, .max_tokens = -1};
}

void weft_generate_params_init(weft_generate_params *params, uint32_t size)
{
    weft_generate_params own;
    (weft_generate_params_default)(&own);
    weft__params_init(WEFT__PARAMS_TYPE(weft_generate_params), params, size, &own);
}

typedef struct generation {
    weft_session *session;
    weft_sampler *sampler;
    weft_generate_params p;
    weft_generate_result r;
    weft__stop stop;
    weft__strbuf text; /* that became certain with the token at hand */
    weft_detok *detok;
    float *logits;     /* [1 + WEFT_DRAFT_MAX, V], without guesses [1, V] */
    weft__draft draft; /* what was evaluated behind the last token */
    int32_t n_right;   /* of it, so far: where the logits of the next token stand */
    int32_t n_start;   /* tokens that the session has before the first one that is generated; less what a shift took */
    int32_t n_keep;    /* where it shifts */
    weft__draft_expected *expected; /* NULL: nothing is */
    weft__engine_forced forced;     /* bits NULL: it is not asked */
    int ended;                      /* by a stop string or the callback */
} generation;

static weft_status begin_stops(generation *g, weft_error *err)
{
    const char *strings[MAX_STOPS];
    size_t lengths[MAX_STOPS];
    int n = 0;
    for (const char *const *s = g->p.stops; s && *s; s++) {
        if (n == MAX_STOPS) return weft_fail(err, WEFT_ARGUMENT, "more than %d stop strings", MAX_STOPS);
        strings[n] = *s;
        lengths[n] = strlen(*s);
        if (!lengths[n] || lengths[n] > MAX_STOP_BYTES)
            return weft_fail(err, WEFT_ARGUMENT, "stop string %d has %zu bytes; it must be 1 to %d", n, lengths[n],
                             MAX_STOP_BYTES);
        n++;
    }
    return weft__stop_begin(&g->stop, strings, lengths, n, err);
}

/* ---- guesses ---- */

/* With the first call that asks for it; its pages stay for the next ones. */
static weft_status open_draft_model(weft_session *s, weft_error *err)
{
    const weft__engine_drafter_params p = {.n_texts = 1,
                                           .n_ctx = s->n_ctx,
                                           .n_kv_tokens = s->n_ctx,
                                           .kv_dtype = weft__kv_pool_bindings(s->shared->pool)[0].dtype};
    if (!s->draft.small || s->draft.text) return WEFT_OK;
    weft_status st =
        s->draft.model ? WEFT_OK : weft__engine_drafter_new(s->model, s->draft.small, &p, &s->draft.model, err);
    if (st) return st;
    s->draft.text = weft__engine_drafter_text_new(s->draft.model, s->n_ctx, NULL);
    return s->draft.text ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no memory for a draft model");
}

/* Without memory it goes without them. */
static void begin_drafts(generation *g)
{
    weft_session *s = g->session;
    if (!g->p.spec) return;
    if (!s->draft.history) {
        s->draft.history = weft__draft_history_new(s->n_ctx < DRAFT_WINDOW ? s->n_ctx : DRAFT_WINDOW);
        weft__draft_trust_begin(&s->draft.trust);
        weft__engine_cost_begin(&s->draft.cost, s->model, NULL);
    }
    if (!s->draft.history) {
        g->p.spec = WEFT_SPEC_OFF;
        return;
    }
    weft__draft_history_add(s->draft.history, g->p.tokens, g->p.n_tokens);
    if (g->p.n_predicted > 0) g->expected = weft__draft_expected_new(g->p.predicted, g->p.n_predicted);
    g->forced = (weft__engine_forced){.tokenizer = s->model->tokenizer, .matcher = g->p.matcher};
    const size_t n_tokens = (size_t)weft_tokenizer_n_vocab(s->model->tokenizer);
    if (g->p.matcher && g->p.spec == WEFT_SPEC_AUTO)
        g->forced.bits = weft__alloc_array((n_tokens + 63) / 64, sizeof *g->forced.bits);
}

static int32_t least_of(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* Tokens that the session would hold without guesses: all but the last one. */
static int32_t n_held(const generation *g)
{
    return g->n_start + (g->r.n_generated > 0 ? g->r.n_generated - 1 : 0);
}

/* Of all drafters but the model. */
static void propose(generation *g, const weft__draft_text *text, int32_t most, weft__draft *d)
{
    weft__engine_bounds bounds = {g->session->model->tokenizer, g->p.matcher, 0, g->p.ignore_end && !g->p.matcher};
    weft__drafter all[3];
    int n = 0;
    if (g->expected && !g->r.n_shifts) all[n++] = (weft__drafter){weft__draft_by_prediction, g->expected, 0};
    all[n++] = (weft__drafter){weft__draft_by_history, g->session->draft.history, 0};
    if (g->forced.bits) all[n++] = (weft__drafter){weft__engine_forced_propose, &g->forced, 1};
    weft__draft_propose(all, n, text, most, weft__engine_keep_within, &bounds, d);
}

/* What the draft model would go on with. other: tokens per time of the draft that there is. */
static void ask_draft_model(generation *g, const weft__draft_text *text, int32_t most, double other, weft__draft *out)
{
    weft_session *s = g->session;
    weft_matcher *matcher = NULL;
    out->n = 0;
    if (g->p.matcher && weft_matcher_copy(g->p.matcher, &matcher, NULL)) return;
    weft__engine_drafter_ask a = {.text = s->draft.text,
                                  .tokens = text->tokens,
                                  .n = text->n,
                                  .sampler = g->sampler,
                                  .matcher = matcher,
                                  .ends = g->p.ignore_end && !matcher ? WEFT__ENGINE_DRAFTER_TAKE
                                                                      : WEFT__ENGINE_DRAFTER_STOP,
                                  .most = most,
                                  .cost = s->draft.always ? NULL : &s->draft.cost,
                                  .trust = &s->draft.trust,
                                  .n_rows = 1,
                                  .other = other,
                                  .draft = out};
    weft__engine_drafter_propose(s->draft.model, &a, 1, s->draft.small->max_rows);
    weft_matcher_free(&matcher);
}

/* With the first guess: texts without any need not wait for it. What was seen stays. */
static void measure_costs(weft_session *s)
{
    weft__draft_cost measured;
    if (s->draft.has_costs) return;
    s->draft.has_costs = 1;
    weft__engine_cost_begin(&measured, s->model, &s->shared->steps);
    memcpy(s->draft.cost.shape, measured.shape, sizeof measured.shape);
}

/* Guesses what follows the token, which the session holds next. Not more than fit into one step, so that no window lets
 * go of what trimming needs. */
static void make_draft(generation *g, int32_t token)
{
    weft_session *s = g->session;
    const int32_t held = weft_session_n_tokens(s);
    const weft__draft_text text = {s->tokens, g->r.n_shifts ? 0 : g->n_start, held + 1};
    int32_t most = least_of(WEFT_DRAFT_MAX, s->n_ctx - n_held(g) - 1 - (g->p.shift != 0));
    weft__draft *d = &g->draft, guessed;
    if (g->p.max_tokens >= 0) most = least_of(most, g->p.max_tokens - g->r.n_generated - 1);
    most = least_of(least_of(most, s->chunk - 1), s->model->max_wanted - 1);
    weft__draft_history_add(s->draft.history, &token, 1);
    d->n = 0;
    if (most < 1) return;
    s->tokens[held] = token;
    if (g->p.spec != WEFT_SPEC_DRAFT) propose(g, &text, most, d);
    const int asks_model = s->draft.text && g->p.spec != WEFT_SPEC_SUFFIX;
    if (d->n || asks_model) measure_costs(s);
    if (asks_model) {
        ask_draft_model(g, &text, most, weft__draft_rate(&s->draft.cost, &s->draft.trust, d, 1), &guessed);
        weft__draft_take_better(&s->draft.cost, &s->draft.trust, &guessed, 1, d);
    }
    if (!s->draft.always) d->n = weft__draft_choose(&s->draft.cost, &s->draft.trust, d, 1);
}

/* Only what was picked stays, and what became of the draft is learned. */
static void end_draft(generation *g)
{
    if (!g->draft.n) return;
    weft_session_trim(g->session, n_held(g));
    weft__draft_learn(&g->session->draft.trust, &g->draft, g->draft.n, g->n_right);
    g->r.n_drafted += g->draft.n;
    g->r.n_accepted += g->n_right;
    g->draft.n = g->n_right = 0;
}

/* What is guessed of ids that the model has not would fail a step, and what was read of them stays in the history. */
static weft_status check_ids(const char *of, const int32_t *ids, int32_t n, int32_t n_vocab, weft_error *err)
{
    for (int32_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= n_vocab)
            return weft_fail(err, WEFT_ARGUMENT, "token %d at place %d of `%s`: the model has ids 0 to %d", ids[i], i,
                             of, n_vocab - 1);
    return WEFT_OK;
}

static weft_status generate_begin(generation *g, weft_error *err)
{
    const weft_model *model = g->session->model;
    if (!model->tokenizer) return weft_fail(err, WEFT_UNSUPPORTED, "the model has no tokenizer, and so no text");
    if (g->p.n_tokens < 1 || !g->p.tokens) return weft_fail(err, WEFT_ARGUMENT, "there are no tokens to go on from");
    if (g->p.n_predicted < 0 || (g->p.n_predicted > 0 && !g->p.predicted))
        return weft_fail(err, WEFT_ARGUMENT, "a prediction of %d tokens%s", g->p.n_predicted,
                         g->p.predicted ? "" : ", and there are none");
    if (g->p.max_tokens < -1)
        return weft_fail(err, WEFT_ARGUMENT, "max_tokens is %d; it must be -1 (until the context is full) or more",
                         g->p.max_tokens);
    weft_status st = check_ids("tokens", g->p.tokens, g->p.n_tokens, model->hp.n_vocab, err);
    if (!st) st = check_ids("predicted", g->p.predicted, g->p.n_predicted, model->hp.n_vocab, err);
    if (!st) st = begin_stops(g, err);
    if (!st && g->p.shift) st = weft__engine_shift_keep(g->p.n_keep, g->session->n_ctx, &g->n_keep, err);
    if (st) return st;
    if (g->p.spec < WEFT_SPEC_OFF || g->p.spec > WEFT_SPEC_DRAFT)
        return weft_fail(err, WEFT_ARGUMENT, "spec is %d; it must be %d to %d", g->p.spec, WEFT_SPEC_OFF,
                         WEFT_SPEC_DRAFT);
    if (g->p.spec == WEFT_SPEC_DRAFT && !g->session->draft.small)
        return weft_fail(err, WEFT_ARGUMENT, "spec is %d: a draft model, and the session has none", g->p.spec);
    if ((g->p.spec == WEFT_SPEC_AUTO || g->p.spec == WEFT_SPEC_DRAFT) && (st = open_draft_model(g->session, err)))
        return st;
    begin_drafts(g);
    const size_t n_rows = g->p.spec ? 1 + WEFT_DRAFT_MAX : 1;
    g->logits = weft__alloc_array(n_rows * (size_t)model->hp.n_vocab, sizeof *g->logits);
    if (!g->logits) return weft_fail(err, WEFT_NO_MEMORY, "no memory for logits");
    return weft_detok_new(model->tokenizer, g->p.detok_flags, &g->detok, err);
}

/* The context is full with the n tokens that come next: what stays is read anew. */
static weft_status shift(generation *g, const int32_t *next, int32_t n_next, weft_error *err)
{
    weft_session *s = g->session;
    const int32_t held = weft_session_n_tokens(s), n = held + n_next;
    int32_t *tokens = weft__alloc_array((size_t)n, sizeof *tokens);
    if (!tokens) return weft_fail(err, WEFT_NO_MEMORY, "no memory for %d tokens", n);
    memcpy(tokens, s->tokens, (size_t)held * sizeof *tokens);
    memcpy(tokens + held, next, (size_t)n_next * sizeof *tokens);
    const int32_t kept = weft__engine_shift(tokens, n, s->n_ctx, g->n_keep);
    g->r.n_shifts++;
    g->r.n_dropped += n - kept;
    weft_session_trim(s, 0);
    weft_status st = weft_session_eval(s, tokens, kept, 0, g->logits, err);
    weft__free(tokens);
    return st;
}

/* Where it shifts, a token more always has a place. */
static weft_status evaluate(generation *g, const int32_t *next, int32_t n_next, weft_error *err)
{
    const int32_t room = g->session->n_ctx - weft_session_n_tokens(g->session);
    if (g->p.shift && n_next >= room) return shift(g, next, n_next, err);
    return weft_session_eval(g->session, next, n_next, 0, g->logits, err);
}

/* Evaluates the token, and a draft behind it, where a shift is not due within. */
static weft_status go_on(generation *g, int32_t token, weft_error *err)
{
    int32_t tokens[1 + WEFT_DRAFT_MAX] = {token};
    weft_session *s = g->session;
    end_draft(g);
    if (g->p.spec) make_draft(g, token);
    if (!g->draft.n) {
        const uint64_t began = weft__clock_ns();
        weft_status alone = evaluate(g, tokens, 1, err);
        if (g->p.spec && !alone) weft__draft_cost_saw(&s->draft.cost, 1, weft__clock_ns() - began);
        g->n_start = weft_session_n_tokens(s) - g->r.n_generated;
        return alone;
    }
    const int32_t n = 1 + g->draft.n;
    memcpy(tokens + 1, g->draft.token, (size_t)g->draft.n * sizeof *tokens);
    const uint64_t begin = weft__clock_ns();
    weft_status st = weft_session_eval(s, tokens, n, 1, g->logits, err);
    if (!st) weft__draft_cost_saw(&s->draft.cost, n, weft__clock_ns() - begin);
    else g->draft.n = 0; /* none of them is there */
    return st;
}

static weft_status read_prompt(generation *g, weft_error *err)
{
    weft_status st = evaluate(g, g->p.tokens, g->p.n_tokens, err);
    for (int32_t i = 0; i < g->p.n_tokens && !st; i++) st = weft_sampler_accept(g->sampler, g->p.tokens[i], err);
    g->n_start = weft_session_n_tokens(g->session);
    return st;
}

/* The next token, which becomes part of the text. */
static weft_status next_token(generation *g, int32_t *token, weft_error *err)
{
    weft_matcher *matcher = g->p.matcher;
    const int32_t n_vocab = g->session->model->hp.n_vocab;
    float *logits = g->logits + (size_t)g->n_right * (size_t)n_vocab;
    weft_status st = matcher ? weft_matcher_apply(matcher, logits, n_vocab, err) : WEFT_OK;
    if (!st && weft_sampler_pick(g->sampler, logits, token, err)) return weft_session_blame(g->session, logits, err);
    if (!st) st = weft_sampler_accept(g->sampler, *token, err);
    if (!st && matcher) st = weft_matcher_accept(matcher, *token, err);
    g->r.n_generated += !st;
    return st;
}

/* Hands the token and the text that is certain to the callback. */
static weft_status hand_on(generation *g, int32_t token, weft_error *err)
{
    if (g->text.failed) return weft_fail(err, WEFT_NO_MEMORY, "no memory for the text");
    const weft_generated piece = {
        .size = sizeof piece, .token = token, .text = g->text.len ? g->text.data : "", .length = g->text.len};
    if (g->p.callback && g->p.callback(g->p.arg, &piece)) g->ended = 1;
    g->text.len = 0;
    return WEFT_OK;
}

static weft_status hand_on_text(generation *g, int32_t token, weft_error *err)
{
    const char *text;
    size_t n;
    weft_status st = weft_detok_push(g->detok, token, &text, &n, err);
    if (st) return st;
    g->ended = weft__stop_push(&g->stop, text, n, &g->text);
    g->r.stop = g->stop.found;
    return hand_on(g, token, err);
}

static weft_status decode(generation *g, weft_error *err)
{
    int32_t token;
    weft_status st;
    g->r.finish = WEFT_FINISH_LENGTH;
    while (g->p.max_tokens < 0 || g->r.n_generated < g->p.max_tokens) {
        if ((st = next_token(g, &token, err))) return st;
        if ((g->p.matcher || !g->p.ignore_end) && weft_token_is_end(g->session->model->tokenizer, token)) {
            g->r.finish = WEFT_FINISH_END;
            return hand_on(g, token, err);
        }
        if ((st = hand_on_text(g, token, err))) return st;
        if (g->ended || (g->p.matcher && weft_matcher_complete(g->p.matcher) == 2)) {
            g->r.finish = g->ended ? WEFT_FINISH_STOP : WEFT_FINISH_END;
            return WEFT_OK;
        }
        if (g->r.n_generated == g->p.max_tokens || (!g->p.shift && n_held(g) >= weft_session_n_ctx(g->session)))
            return WEFT_OK;
        if (g->n_right < g->draft.n && token == g->draft.token[g->n_right]) {
            weft__draft_history_add(g->session->draft.history, &token, 1);
            g->n_right++;
        } else if ((st = go_on(g, token, err))) {
            return st;
        }
    }
    return WEFT_OK;
}

/* What was held back, and an incomplete character. */
static weft_status finish_text(generation *g, weft_error *err)
{
    const char *text;
    size_t n;
    weft_status st = g->ended ? WEFT_OK : weft_detok_finish(g->detok, &text, &n, err);
    if (st || g->ended) return st;
    g->ended = weft__stop_push(&g->stop, text, n, &g->text);
    g->r.stop = g->stop.found;
    if (!g->ended) weft__stop_flush(&g->stop, &g->text);
    else g->r.finish = WEFT_FINISH_STOP;
    return g->text.len || g->text.failed ? hand_on(g, -1, err) : WEFT_OK;
}

static weft_status generate_run(generation *g, weft_error *err)
{
    uint64_t start = weft__clock_ns();
    weft_status st = read_prompt(g, err);
    uint64_t middle = weft__clock_ns();
    if (!st) st = decode(g, err);
    end_draft(g);
    g->r.prompt_ms = (double)(middle - start) / 1e6;
    g->r.generate_ms = (double)(weft__clock_ns() - middle) / 1e6;
    if (st == WEFT_CANCELLED) {
        st = WEFT_OK;
        g->r.finish = WEFT_FINISH_CANCELLED;
    }
    return st ? st : finish_text(g, err);
}

weft_status weft_generate(weft_session *session, weft_sampler *sampler, const weft_generate_params *params,
                          weft_generate_result *result, weft_error *err)
{
    generation g = {.session = session,
                    .sampler = sampler,
                    .stop = {.found = -1},
                    .r = {.size = sizeof g.r, .finish = WEFT_FINISH_FAILED, .stop = -1}};
    (weft_generate_params_default)(&g.p);
    weft_status st = weft__params_read(WEFT__PARAMS_TYPE(weft_generate_params), &g.p, params, err);
    if (!st) st = generate_begin(&g, err);
    if (!st) st = generate_run(&g, err);
    if (st) g.r.finish = WEFT_FINISH_FAILED;
    weft_status filled =
        result ? weft__params_write(WEFT__PARAMS_TYPE(weft_generate_result), result, &g.r, st ? NULL : err) : WEFT_OK;
    weft_detok_free(&g.detok);
    weft__draft_expected_free(&g.expected);
    weft__free(g.forced.bits);
    weft__free(g.logits);
    weft__strbuf_free(&g.text);
    weft__stop_free(&g.stop);
    return st ? st : filled;
}
