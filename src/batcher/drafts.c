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
#include "engine/grammar.h"
#include "text/tokenizer/tokenizer.h"

enum {
    WINDOW_TOKENS = 1 << 14, /* of a request, that are looked through */
    POOL_BYTES = 16 << 20,   /* of finished answers, at most */
    POOL_OF_SLOT = 3 << 19,  /* of them, for each slot */
    END_BYTES = 64,          /* of a text, that its next tokens' spelling is taken to depend on */
    RUN_BYTES = 128,         /* that a grammar forces, of which tokens are made */
    SPELLED_TOKENS = END_BYTES + RUN_BYTES + 8,
    MATCHED_MOST = 64,   /* what speaks for a token without a choice */
    MATCHED_SPELLED = 8, /* and for one that is forced text as the tokenizer spells it */
    MODEL_TOKENS = 8     /* that rows are left for, of a draft model */
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

/* ---- what a grammar forces ----
 * Bytes, not tokens: any token with which they begin is allowed, and the model picks among these. It has learned texts
 * as the tokenizer spells them, so that spelling is guessed; where one token alone is allowed, it is that. */

/* The text behind which the guessed one stands, as far as it may matter for the spelling: [n] bytes, then [n_run]. */
typedef struct forced_text {
    char bytes[END_BYTES + RUN_BYTES];
    size_t n, n_run;
    int32_t token[SPELLED_TOKENS]; /* [n_tokens] of the run */
    int32_t n_tokens;
} forced_text;

/* Its last tokens, but for what is before a control token, which is no text. */
static void end_of_text(const weft_engine *e, const batcher_request *r, forced_text *x)
{
    const weft_tokenizer *t = e->model->tokenizer;
    size_t length, n = 0;
    for (int32_t k = r->n_known; k > 0; k--) {
        const char *bytes = weft_token_bytes(t, r->tokens[k - 1], &length);
        if (!bytes || length > END_BYTES - n || weft__tok_type_of(t->t, r->tokens[k - 1]) == WEFT__TOK_CONTROL) break;
        n += length;
        memcpy(x->bytes + END_BYTES - n, bytes, length);
    }
    memmove(x->bytes, x->bytes + END_BYTES - n, n);
    x->n = n;
}

/* A character that is cut off at the end of the run is left out. */
static void whole_characters(char *run, size_t *n)
{
    size_t k = *n;
    while (k > 0 && *n - k < 3 && (run[k - 1] & 0xC0) == 0x80) k--;
    if (!k || (run[k - 1] & 0xC0) != 0xC0) return;
    const unsigned char lead = (unsigned char)run[k - 1];
    const size_t whole = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (*n - (k - 1) < whole) *n = k - 1;
}

/* The tokens of the run in bytes[0, n + n_run), if one begins with it. */
static int spell(const weft_tokenizer *t, forced_text *x, const char *bytes, size_t n)
{
    size_t n_ids = 0, length, left = x->n_run;
    if (weft_tokenize(t, bytes, n + x->n_run, 0, x->token, SPELLED_TOKENS, &n_ids, NULL)) return 0;
    size_t k = n_ids;
    for (; k > 0 && left > 0; k--, left -= length) {
        const char *piece = weft_token_bytes(t, x->token[k - 1], &length);
        if (!piece || length > left || memcmp(piece, bytes + n + left - length, length)) return 0;
    }
    if (left) return 0;
    memmove(x->token, x->token + k, (n_ids - k) * sizeof *x->token);
    x->n_tokens = (int32_t)(n_ids - k);
    return 1;
}

/* As it stands in the text; where the text's last token is not what the tokenizer would have there, by itself, which
 * is not the beginning of a text, where some tokenizers put a space. */
static void spell_run(const weft_tokenizer *t, forced_text *x)
{
    char behind_line[1 + RUN_BYTES] = "\n";
    const char *mark = memchr(x->bytes + x->n, WEFT__GRAM_TRIE_CONTROL, x->n_run);
    x->n_tokens = 0;
    if (mark) x->n_run = (size_t)(mark - (x->bytes + x->n)); /* a control token, which is alone there */
    whole_characters(x->bytes + x->n, &x->n_run);
    if (!x->n_run || (x->n && spell(t, x, x->bytes, x->n)) || spell(t, x, x->bytes + x->n, 0)) return;
    memcpy(behind_line + 1, x->bytes + x->n, x->n_run);
    (void)spell(t, x, behind_line, 1);
}

/* Whether the token, which the matcher allows as e->draft.bits say, begins another one that is allowed: which of them
 * comes depends on what follows. */
static int begins_another(const weft_engine *e, int32_t token, size_t n_words)
{
    const weft_tokenizer *t = e->model->tokenizer;
    size_t length, other_length;
    const char *bytes = weft_token_bytes(t, token, &length);
    for (size_t w = 0; bytes && w < n_words; w++)
        for (uint64_t bits = e->draft.bits[w]; bits; bits &= bits - 1) {
            const char *other = weft_token_bytes(t, (int32_t)(64 * w) + __builtin_ctzll(bits), &other_length);
            if (other && other_length > length && !memcmp(other, bytes, length)) return 1;
        }
    return 0;
}

/* The one token that is allowed (*alone becomes 1), else the next one of the run (-1: it has no more); -1: nothing is
 * guessed. */
static int32_t forced_token(weft_engine *e, weft_matcher *m, int32_t spelled, int is_last, int *alone)
{
    const size_t n_words = ((size_t)weft_tokenizer_n_vocab(e->model->tokenizer) + 63) / 64;
    int32_t first = -1;
    int n = 0;
    *alone = 0;
    if (weft_matcher_complete(m) || weft_matcher_mask(m, e->draft.bits, n_words, NULL)) return -1;
    for (size_t w = 0; w < n_words && n < 2; w++) {
        const uint64_t bits = e->draft.bits[w];
        if (bits && first < 0) first = (int32_t)(64 * w) + __builtin_ctzll(bits);
        n += __builtin_popcountll(bits);
    }
    if (n == 1) return *alone = 1, first;
    return spelled >= 0 && is_last && begins_another(e, spelled, n_words) ? -1 : spelled;
}

/* What follows by force. Where no byte does, a token that is alone is looked for less and less often: that takes a
 * mask. */
static void add_forced(weft_engine *e, batcher_request *r, int32_t most, weft__draft *d)
{
    enum { IDLE_MOST = 5 };
    weft_matcher *m = NULL;
    forced_text x;
    end_of_text(e, r, &x);
    x.n_run = weft__engine_matcher_forced(r->matcher, x.bytes + x.n, RUN_BYTES);
    const int has_run = x.n_run > 0;
    if ((!has_run && r->draft.n_wait-- > 0) || weft_matcher_copy(r->matcher, &m, NULL)) return;
    spell_run(e->model->tokenizer, &x);
    d->kind = WEFT__DRAFT_FORCED;
    d->matched = MATCHED_MOST;
    for (int alone; d->n < most;) {
        const int32_t spelled = d->n < x.n_tokens ? x.token[d->n] : -1;
        const int32_t token = forced_token(e, m, spelled, d->n + 1 == x.n_tokens, &alone);
        if (token < 0 || weft_matcher_accept(m, token, NULL)) break;
        if (!alone) d->matched = MATCHED_SPELLED;
        d->token[d->n] = token;
        d->p[d->n++] = 1;
    }
    weft_matcher_free(&m);
    if (has_run) return;
    r->draft.n_idle = d->n ? 0 : r->draft.n_idle < IDLE_MOST ? r->draft.n_idle + 1 : IDLE_MOST;
    r->draft.n_wait = (1 << r->draft.n_idle) - 1;
}

/* Cuts the draft where the grammar does not allow its next token; where there is none, what the grammar forces is one.
 */
static void obey_grammar(weft_engine *e, batcher_request *r, int32_t most, weft__draft *d)
{
    weft_matcher *m = NULL;
    int32_t n = 0;
    if (!d->n) {
        if (e->params.spec == WEFT_SPEC_AUTO) add_forced(e, r, most, d);
        return;
    }
    if (weft_matcher_copy(r->matcher, &m, NULL)) {
        d->n = 0;
        return;
    }
    while (n < d->n && !weft_matcher_accept(m, d->token[n], NULL)) n++;
    d->n = n;
    weft_matcher_free(&m);
}

/* ---- a draft ---- */

/* What its event function has asked to be written is known. */
static void from_insert(const batcher_request *r, int32_t most, weft__draft *d)
{
    d->kind = WEFT__DRAFT_FORCED;
    d->matched = MATCHED_MOST;
    for (d->n = 0; d->n < most && r->at_insert + d->n < r->n_insert; d->n++) {
        d->token[d->n] = r->insert[r->at_insert + d->n];
        d->p[d->n] = 1;
    }
}

/* The longer match, of its own text or of finished answers. */
static void from_texts(batcher_request *r, int32_t most, weft__draft *d)
{
    const weft__draft_history *others = weft__draft_pool_find(r->engine->draft.pool, r->draft.key);
    weft__draft other = {.n = 0};
    const int64_t known = (int64_t)r->n_known + r->n_dropped, more = known - r->draft.n_known;
    const int32_t n = more < r->n_known ? (int32_t)more : r->n_known;
    weft__draft_history_add(r->draft.own, r->tokens + r->n_known - n, n);
    r->draft.n_known = known;
    d->kind = other.kind = WEFT__DRAFT_SUFFIX;
    weft__draft_history_propose(r->draft.own, r->tokens, r->n_known, most, d);
    if (!others || r->no_cache) return;
    weft__draft_history_propose(others, r->tokens, r->n_known, most, &other);
    if (other.n && other.matched > d->matched) *d = other;
}

static void from_guess(const batcher_request *r, int32_t most, weft__draft *d)
{
    const weft_engine *e = r->engine;
    *d = (weft__draft){.kind = WEFT__DRAFT_SUFFIX, .matched = 1};
    d->n = e->draft.guess(e->draft.guess_arg, r->tokens, r->n_prompt, r->n_known, most, d->token);
}

/* It ends before an end token, which brings nothing, and before what is less probable than the request wants. */
static void cut_draft(const batcher_request *r, weft__draft *d)
{
    int32_t n = 0;
    while (n < d->n && d->p[n] >= r->draft.p_least && !weft__batcher_is_end(r->engine, d->token[n])) n++;
    d->n = n;
}

/* Of all drafters but a model. */
static void propose(batcher_request *r, int32_t most, weft__draft *d)
{
    weft_engine *e = r->engine;
    d->n = d->matched = 0;
    d->kind = WEFT__DRAFT_SUFFIX;
    if (e->draft.guess) {
        from_guess(r, most, d);
        return;
    }
    if (r->at_insert < r->n_insert) {
        from_insert(r, most, d);
        return;
    }
    if (e->params.spec == WEFT_SPEC_DRAFT) return;
    if (r->draft.expected && !r->n_shifts) {
        d->kind = WEFT__DRAFT_PREDICTION;
        weft__draft_expected_propose(r->draft.expected, r->tokens + r->n_prompt, r->n_known - r->n_prompt, most, d);
    }
    weft__draft other;
    from_texts(r, most, &other);
    if (!d->n || (other.n && other.matched > d->matched)) *d = other;
    cut_draft(r, d);
    if (r->matcher) obey_grammar(e, r, most, d);
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
    const weft__draft *d = a->draft;
    weft_matcher_free(&a->matcher);
    if (d->n && (!r->draft.now.n || weft__draft_rate(&e->draft.cost, &r->draft.trust, d, n_rows) >
                                        weft__draft_rate(&e->draft.cost, &r->draft.trust, &r->draft.now, n_rows)))
        r->draft.now = *d;
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
