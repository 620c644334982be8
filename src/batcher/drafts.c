// SPDX-License-Identifier: Apache-2.0
/* drafts.c: tokens that are guessed ahead of a step (draft/draft.h), and what became of them. A guess that is tried is
 * a row behind the request's last known token, its token in r->tokens beyond n_known; step.c has the request's own
 * sampler run at each, and what that picks is the answer. So nothing here changes a token.
 *
 * Rows of drafts come last: where a step has room for them, and for its logits, and where pages are free without
 * evicting or preempting for them. Owner: the engine's thread, but for weft__batcher_draft_ask. */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "batcher/batcher.h"

enum {
    WINDOW_TOKENS = 1 << 14, /* of a request, that are looked through */
    POOL_BYTES = 16 << 20,   /* of finished answers, at most */
    POOL_OF_SLOT = 3 << 19,  /* of them, for each slot */
    MODEL_TOKENS = 8         /* that rows are left for, of a draft model */
};

_Static_assert((int)WEFT_DRAFT_MAX == (int)WEFT__DRAFT_MOST && (int)WEFT_DRAFTERS == (int)WEFT__DRAFT_KINDS &&
                   (int)WEFT_DRAFTER_SUFFIX == (int)WEFT__DRAFT_SUFFIX &&
                   (int)WEFT_DRAFTER_PREDICTION == (int)WEFT__DRAFT_PREDICTION &&
                   (int)WEFT_DRAFTER_FORCED == (int)WEFT__DRAFT_FORCED &&
                   (int)WEFT_DRAFTER_MODEL == (int)WEFT__DRAFT_MODEL,
               "weft.h has the kinds of drafts");

const char *weft_drafter_name(int32_t drafter)
{
    static const char *const names[] = {"suffix", "prediction", "forced", "model"};
    return drafter >= 0 && drafter < WEFT_DRAFTERS ? names[drafter] : "?";
}

/* ---- life ---- */

int weft__batcher_asks_model(const weft_engine_params *p)
{
    return p->draft && (p->spec == WEFT_SPEC_AUTO || p->spec == WEFT_SPEC_DRAFT);
}

weft__engine_drafter_params weft__batcher_drafter_params(const weft_engine_params *p)
{
    return (weft__engine_drafter_params){
        .n_texts = p->n_slots, .n_ctx = p->n_ctx, .n_kv_tokens = p->n_kv_tokens, .kv_dtype = p->kv_dtype};
}

static weft_status open_model(weft_engine *e, weft_error *err)
{
    const weft__engine_drafter_params p = weft__batcher_drafter_params(&e->params);
    e->draft.asks = weft__alloc_array((size_t)p.n_texts, sizeof *e->draft.asks);
    e->draft.guessed = weft__alloc_array((size_t)p.n_texts, sizeof *e->draft.guessed);
    if (!e->draft.asks || !e->draft.guessed) return weft_fail(err, WEFT_NO_MEMORY, "no memory for drafts");
    return weft__engine_drafter_new(e->model, e->params.draft, &p, &e->draft.model, err);
}

weft_status weft__batcher_open_drafts(weft_engine *e, weft_error *err)
{
    const weft_model *m = e->model;
    if (e->params.spec == WEFT_SPEC_OFF) return WEFT_OK;
    const size_t n_tokens = m->tokenizer ? (size_t)weft_tokenizer_n_vocab(m->tokenizer) : 0;
    e->draft.pool = weft__draft_pool_new(weft__batcher_answers_bytes(e->params.n_slots));
    e->draft.bits = weft__alloc_array((n_tokens + 63) / 64, sizeof *e->draft.bits);
    if (!e->draft.pool || !e->draft.bits) return weft_fail(err, WEFT_NO_MEMORY, "no memory for drafts");
    if (!weft__batcher_asks_model(&e->params)) return WEFT_OK;
    const weft_status st = open_model(e, err);
    if (!st) (void)weft__batcher_limit_pages(e); /* its pages are among those that are limited */
    return st;
}

void weft__batcher_draft_costs(weft_engine *e)
{
    if (e->draft.pool) weft__engine_cost_begin(&e->draft.cost, e->model, e->params.rehearsal ? NULL : &e->steps);
}

void weft__batcher_close_drafts(weft_engine *e)
{
    weft__engine_drafter_free(&e->draft.model);
    weft__free(e->draft.asks);
    weft__free(e->draft.guessed);
    weft__free(e->draft.bits);
    weft__draft_pool_free(&e->draft.pool);
}

static int32_t window_of(int32_t n_tokens)
{
    return n_tokens < WINDOW_TOKENS ? n_tokens : WINDOW_TOKENS;
}

uint64_t weft__batcher_answers_bytes(int32_t n_slots)
{
    const uint64_t n = (uint64_t)n_slots * POOL_OF_SLOT;
    return n < POOL_BYTES ? n : POOL_BYTES;
}

uint64_t weft__batcher_draft_bytes(int32_t n_tokens)
{
    weft__draft_history *h = weft__draft_history_new(window_of(n_tokens));
    const uint64_t n = weft__draft_history_bytes(h);
    weft__draft_history_free(&h);
    return n;
}

weft_status weft__batcher_draft_ask(weft_engine *e, const weft_request_params *p, batcher_request *r, weft_error *err)
{
    r->draft.most = e->draft.pool && r->max_new > 1 ? p->draft_max : 0;
    r->draft.least = p->draft_min;
    r->draft.p_least = p->draft_p_min;
    if (r->draft.most < 1) return WEFT_OK;
    weft_status st = weft__batcher_answers_key(e, p->tenant ? p->tenant : "", r->lease, r->draft.key, err);
    if (st || p->n_predicted < 1) return st;
    r->draft.expected = weft__draft_expected_new(p->predicted, p->n_predicted);
    return r->draft.expected ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no memory for a prediction");
}

void weft__batcher_draft_begin(batcher_request *r)
{
    if (r->draft.most < 1) return;
    weft_engine *e = r->engine;
    weft__draft_trust_begin(&r->draft.trust);
    r->draft.own = weft__draft_history_new(window_of(r->n_most));
    if (!r->draft.own) r->draft.most = 0;
    if (e->draft.model && r->draft.most)
        r->draft.text = weft__engine_drafter_text_new(e->draft.model, r->n_most, r->no_cache ? NULL : &r->root);
}

void weft__batcher_draft_preempt(batcher_request *r)
{
    weft__engine_drafter_text_forget(r->draft.text);
}

void weft__batcher_draft_end(batcher_request *r)
{
    const int32_t from = r->n_shifts ? 0 : r->n_prompt; /* what is left of the answer; where it shifted, of all */
    if (r->draft.most < 1 || r->status || !weft__batcher_feeds_cache(r) || r->n_known <= from) return;
    weft__draft_pool_add(r->engine->draft.pool, r->draft.key, r->tokens + from, r->n_known - from);
}

void weft__batcher_draft_clear(batcher_request *r)
{
    weft__draft_expected_free(&r->draft.expected);
    weft__draft_history_free(&r->draft.own);
    weft__engine_drafter_text_free(&r->draft.text);
}

/* ---- a draft ---- */

/* What its event function has asked to be written is known. */
static void from_insert(void *self, const weft__draft_text *text, int32_t most, weft__draft *d)
{
    const batcher_request *r = self;
    (void)text;
    d->kind = WEFT__DRAFT_FORCED;
    d->matched = WEFT__DRAFT_DEPTH;
    for (; d->n < most && r->at_insert + d->n < r->n_insert; d->n++) {
        d->token[d->n] = r->insert[r->at_insert + d->n];
        d->p[d->n] = 1;
    }
}

/* What a test guesses. */
static void from_guess(void *self, const weft__draft_text *text, int32_t most, weft__draft *d)
{
    const weft_engine *e = self;
    d->matched = 1;
    d->n = e->draft.guess(e->draft.guess_arg, text->tokens, text->n_prompt, text->n, most, d->token);
}

/* What is known of its text, and was not when it was asked last. */
static void catch_up(batcher_request *r)
{
    const int64_t known = (int64_t)r->n_known + r->n_dropped, more = known - r->draft.n_known;
    const int32_t n = more < r->n_known ? (int32_t)more : r->n_known;
    weft__draft_history_add(r->draft.own, r->tokens + r->n_known - n, n);
    r->draft.n_known = known;
}

enum { DRAFTERS = 5 };

/* Of all drafters but a model. */
static int drafters_of(batcher_request *r, weft__drafter *all)
{
    weft_engine *e = r->engine;
    int n = 0;
    if (e->draft.guess) {
        all[n++] = (weft__drafter){from_guess, e, 0};
        return n;
    }
    if (r->at_insert < r->n_insert) all[n++] = (weft__drafter){from_insert, r, 0};
    if (e->params.spec == WEFT_SPEC_DRAFT) return n;
    catch_up(r);
    if (r->draft.expected && !r->n_shifts) all[n++] = (weft__drafter){weft__draft_by_prediction, r->draft.expected, 0};
    all[n++] = (weft__drafter){weft__draft_by_history, r->draft.own, 0};
    weft__draft_history *others = r->no_cache ? NULL : weft__draft_pool_find(e->draft.pool, r->draft.key);
    if (others) all[n++] = (weft__drafter){weft__draft_by_history, others, 0};
    r->draft.forced.tokenizer = e->model->tokenizer;
    r->draft.forced.matcher = r->matcher;
    r->draft.forced.bits = e->draft.bits;
    if (r->matcher && e->params.spec == WEFT_SPEC_AUTO)
        all[n++] = (weft__drafter){weft__engine_forced_propose, &r->draft.forced, 1};
    return n;
}

static void propose(batcher_request *r, int32_t most, weft__draft *d)
{
    const weft__draft_text text = {r->tokens, r->n_prompt, r->n_known};
    weft__engine_bounds bounds = {r->engine->model->tokenizer, r->matcher, r->draft.p_least, 0};
    weft__drafter all[DRAFTERS];
    const int n = drafters_of(r, all);
    weft__draft_propose(all, n, &text, most, r->engine->draft.guess ? NULL : weft__engine_keep_within, &bounds, d);
}

/* Tokens of a draft for which there are free pages. */
static int32_t room_of_pages(const weft_engine *e, const batcher_request *r, int32_t most)
{
    for (int32_t g = 0; g < e->model->graph->n_kv_groups; g++)
        while (most > 0 && weft__kv_seq_pages_for(r->seq, g, 1 + most) > weft__kv_pool_free_pages(r->cache->pool, g))
            most--;
    return most;
}

static void add_draft(weft_engine *e, batcher_request *r, int32_t item)
{
    const weft__draft *d = &r->draft.now;
    if (weft__kv_seq_reserve(r->seq, 1 + d->n, NULL)) {
        (void)weft__kv_seq_reserve(r->seq, 1, NULL); /* what the scheduler had, and what was just let go */
        r->draft.now.n = 0;
        return;
    }
    memcpy(r->tokens + r->n_known, d->token, (size_t)d->n * sizeof *d->token);
    pthread_mutex_lock(&e->lock);
    weft__sched_draft(e->sched, item, d->n);
    pthread_mutex_unlock(&e->lock);
}

/* As many of the draft's tokens as are worth it, and as the request wants, become rows. */
static void try_draft(weft_engine *e, batcher_request *r, int32_t item, int32_t n_rows)
{
    weft__draft *d = &r->draft.now;
    if (!e->draft.always) d->n = weft__draft_choose(&e->draft.cost, &r->draft.trust, d, n_rows);
    if (d->n < r->draft.least) d->n = 0;
    if (d->n > 0) add_draft(e, r, item);
}

/* ---- a draft model, asked for all requests at once ---- */

/* Puts the question for a request that may have `most` tokens; 0: nobody is asked. */
static int ask_model(weft_engine *e, batcher_request *r, int32_t most, int32_t n_rows, int32_t n_asks)
{
    const weft__draft *d = &r->draft.now;
    weft_matcher *matcher = NULL;
    if (!r->draft.text || r->at_insert < r->n_insert || (e->draft.always && d->n > 0)) return 0;
    if (r->matcher && weft_matcher_copy(r->matcher, &matcher, NULL)) return 0;
    e->draft.asks[n_asks] = (weft__engine_drafter_ask){
        .text = r->draft.text,
        .tokens = r->tokens,
        .n = r->n_known,
        .sampler = r->sampler,
        .matcher = matcher,
        .ends = r->ignore_end && !r->matcher ? WEFT__ENGINE_DRAFTER_FORBID : WEFT__ENGINE_DRAFTER_STOP,
        .most = most,
        .p_least = r->draft.p_least,
        .cost = e->draft.always ? NULL : &e->draft.cost,
        .trust = &r->draft.trust,
        .n_rows = n_rows,
        .other = weft__draft_rate(&e->draft.cost, &r->draft.trust, d, n_rows),
        .draft = &e->draft.guessed[n_asks]};
    r->draft.ask = n_asks + 1;
    return 1;
}

/* What it has guessed, or what there was before, whichever brings more. */
static void take_guess(weft_engine *e, batcher_request *r, int32_t n_rows)
{
    weft__engine_drafter_ask *a = &e->draft.asks[r->draft.ask - 1];
    weft_matcher_free(&a->matcher);
    weft__draft_take_better(&e->draft.cost, &r->draft.trust, a->draft, n_rows, &r->draft.now);
}

static void propose_by_model(weft_engine *e, const weft__sched_plan *plan, int32_t n_decode, int32_t n_asks)
{
    const uint64_t begin = weft__clock_ns();
    for (int32_t k = 0; k < n_decode; k++) {
        batcher_request *r = plan->items[k].user;
        if (r->draft.ask) weft__batcher_stage(r, BATCHER_SAMPLING, begin);
    }
    weft__engine_drafter_propose(e->draft.model, e->draft.asks, n_asks, (int32_t)e->pace.rows);
    const uint64_t end = weft__clock_ns();
    e->step.draft_ns += end - begin;
    for (int32_t k = 0; k < n_decode; k++) {
        batcher_request *r = plan->items[k].user;
        if (!r->draft.ask) continue;
        take_guess(e, r, plan->n_rows);
        r->draft.ask = 0;
        try_draft(e, r, k, plan->n_rows);
        weft__batcher_stage(r, BATCHER_WAITING, end);
    }
}

static int32_t least_of(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

void weft__batcher_draft(weft_engine *e, const weft__sched_plan *plan)
{
    int32_t n_decode = 0, n_asks = 0, promised = 0, wanted;
    if (!e->draft.pool) return;
    while (n_decode < plan->n_items && plan->items[n_decode].decode) n_decode++;
    wanted = n_decode;
    for (int32_t k = 0; k < n_decode; k++) {
        batcher_request *r = plan->items[k].user;
        const int32_t n_rows = plan->n_rows + promised;
        int32_t most = least_of(weft__sched_draft_room(e->sched, k) - promised, e->max_wanted - wanted - promised);
        r->draft.now.n = r->draft.n_right = 0;
        most = least_of(least_of(most, r->draft.most), WEFT__DRAFT_ROWS - n_rows);
        if ((most = room_of_pages(e, r, most)) < 1) continue;
        const batcher_stage before = weft__batcher_stage(r, BATCHER_SAMPLING, weft__clock_ns());
        propose(r, most, &r->draft.now);
        if (ask_model(e, r, most, n_rows, n_asks)) {
            n_asks++;
            promised += least_of(most, e->draft.always ? most : MODEL_TOKENS);
        } else {
            try_draft(e, r, k, n_rows);
            wanted += r->draft.now.n;
        }
        weft__batcher_stage(r, before, weft__clock_ns());
    }
    if (n_asks) propose_by_model(e, plan, n_decode, n_asks);
}

void weft__batcher_drafted(batcher_request *r, int32_t n_tried)
{
    const weft__draft *d = &r->draft.now;
    weft_draft_stats *s = &r->engine->step.drafts[d->kind];
    if (n_tried < 1) return;
    s->n_drafts++;
    s->n_tokens += (uint64_t)n_tried;
    s->n_accepted += (uint64_t)r->draft.n_right;
    for (int32_t k = 0; k < n_tried; k++) {
        s->tokens_at[k]++;
        s->accepted_at[k] += k < r->draft.n_right;
    }
    r->draft.tried[d->kind] += n_tried;
    r->draft.right[d->kind] += r->draft.n_right;
    weft__draft_learn(&r->draft.trust, d, n_tried, r->draft.n_right);
}
