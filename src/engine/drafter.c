// SPDX-License-Identifier: Apache-2.0
/* drafter.c: see drafter.h. Owner: the thread of the engine or session. */
#include "engine/drafter.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "format/names.h"

struct weft__engine_drafter {
    weft_model *model;
    int32_t n_texts, n_ctx, n_vocab; /* n_vocab: of the target */
    int32_t block;                   /* tokens of the largest page */
    weft__kv_pool *pool;
    weft__kv_prefix *tree;
    weft__engine_steps steps;
    float *logits; /* [n_texts, V of the model] */
    float *wide;   /* [V of the target] */
    int32_t *ends; /* [n_ends] end tokens of the target */
    int32_t n_ends;
    weft__draft_cost cost; /* of its own steps */
    double part;           /* of the target's step, that one of its own should take */
};

struct weft__engine_drafter_text {
    weft__engine_drafter *d;
    weft__kv_seq *seq;
    int32_t *tokens;  /* [n_ctx], of which its pages have as many as seq is long */
    int32_t n_ctx;    /* also of the drafter */
    int32_t n_known;  /* of them, those that were no guesses when it was asked last */
    int has_root;     /* it may use the tree */
    int is_published; /* its prompt is in the tree */
    weft__kv_key root;
};

/* ---- which models fit ---- */

enum { PADDING = 128 /* ids that one vocabulary may have beyond the other */ };

static int same_token(const weft_tokenizer *a, const weft_tokenizer *b, int32_t id)
{
    size_t n, m;
    const char *x = weft_token_bytes(a, id, &n), *y = weft_token_bytes(b, id, &m);
    return n == m && (!n || !memcmp(x, y, n)) && weft_token_is_end(a, id) == weft_token_is_end(b, id);
}

static int far_apart(int32_t n, int32_t m)
{
    return n - m > PADDING || m - n > PADDING;
}

static weft_status refuse_size(const char *small, const char *large, int32_t n, int32_t m, const char *what,
                               const char *who, weft_error *err)
{
    return weft_fail(err, WEFT_ARGUMENT,
                     "%s cannot %s %s: its vocabulary has %d tokens, and that one %d; %s is one of the same family",
                     small, what, large, n, m, who);
}

weft_status weft__engine_drafter_words(const weft_tokenizer *a, const weft_tokenizer *b, const char *small,
                                       const char *large, const char *what, const char *who, weft_error *err)
{
    const int32_t n = weft_tokenizer_n_vocab(a), m = weft_tokenizer_n_vocab(b), shared = n < m ? n : m;
    int32_t id = 0;
    if (far_apart(n, m)) return refuse_size(small, large, n, m, what, who, err);
    while (id < shared && same_token(a, b, id)) id++;
    if (id == shared) return WEFT_OK;
    size_t n_x, n_y;
    const char *x = weft_token_piece(a, id, &n_x), *y = weft_token_piece(b, id, &n_y);
    return weft_fail(err, WEFT_ARGUMENT,
                     "%s cannot %s %s: they have different vocabularies (token %d is '%.*s' there, '%.*s' here); "
                     "%s is one of the same family",
                     small, what, large, id, n_x < 40 ? (int)n_x : 40, x ? x : "", n_y < 40 ? (int)n_y : 40, y ? y : "",
                     who);
}

weft_status weft__engine_drafter_fits(const weft_model *target, const weft_model *model, weft_error *err)
{
    static const char what[] = "guess for", who[] = "a draft model";
    char small[WEFT__NAME_SHOW * 2], large[WEFT__NAME_SHOW * 2];
    const weft_tokenizer *a = model->tokenizer, *b = target->tokenizer;
    weft__name_show_path(small, model->source.label);
    weft__name_show_path(large, target->source.label);
    if (!a != !b)
        return weft_fail(err, WEFT_ARGUMENT, "%s cannot guess for %s: %s has no tokenizer to compare", small, large,
                         a ? large : small);
    if (a) return weft__engine_drafter_words(a, b, small, large, what, who, err);
    const int32_t n = model->hp.n_vocab, m = target->hp.n_vocab;
    return n == m ? WEFT_OK : refuse_size(small, large, n, m, what, who, err);
}

/* Bytes of weights that a step of one row reads. */
static double read_bytes(const weft_model *m)
{
    const double part = weft__graph_expert_part(m->graph);
    const double used = m->hp.n_experts > 0 ? (double)m->hp.n_experts_used / m->hp.n_experts : 1;
    return (double)m->held * (1 - part + part * used);
}

static double part_of(const weft_model *target, const weft_model *model)
{
    const double large = read_bytes(target);
    return large > 0 ? read_bytes(model) / large : 1;
}

double weft__engine_drafter_gain(const weft_model *target, const weft_model *model)
{
    weft__draft_cost cost;
    weft__draft_cost_begin(&cost, NULL, target->hp.n_experts, target->hp.n_experts_used,
                           weft__graph_expert_part(target->graph));
    return weft__draft_expect(&cost, part_of(target, model));
}

weft_status weft_draft_fits(const weft_model *model, const weft_model *draft, double *gain, weft_error *err)
{
    const weft_status st = weft__engine_drafter_fits(model, draft, err);
    if (gain) *gain = st ? 0 : weft__engine_drafter_gain(model, draft);
    return st;
}

/* ---- life ---- */

static int32_t ctx_of(const weft_model *model, int32_t n_ctx)
{
    return n_ctx < model->hp.n_ctx_max ? n_ctx : model->hp.n_ctx_max;
}

/* Of one text. */
static int32_t least_pages(const weft_model *model, const weft_kv_group *g, int32_t n_ctx)
{
    return weft__kv_pages_needed(g, ctx_of(model, n_ctx), model->max_rows);
}

static int64_t pages_of(const weft_model *model, const weft_kv_group *g, const weft__engine_drafter_params *p)
{
    const int64_t pages = (p->n_kv_tokens + g->page_tokens - 1) / g->page_tokens;
    const int64_t one = least_pages(model, g, p->n_ctx), all = one * p->n_texts;
    if (g->window > 0 && all < pages) return all;
    return pages > one ? pages : one;
}

static weft_status make_pages(weft__engine_drafter *d, const weft__engine_drafter_params *p, weft_error *err)
{
    const weft_graph *g = d->model->graph;
    weft_status st = WEFT_OK;
    int32_t *n_pages = weft__alloc_array((size_t)g->n_kv_groups, sizeof *n_pages);
    if (!n_pages) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a draft model's pages");
    for (int32_t i = 0; i < g->n_kv_groups; i++) {
        const int64_t n = pages_of(d->model, &g->kv_groups[i], p);
        if (n > INT32_MAX) st = weft_fail(err, WEFT_LIMIT, "a draft model's pages are more than can be counted");
        n_pages[i] = (int32_t)n;
        if (g->kv_groups[i].page_tokens > d->block) d->block = g->kv_groups[i].page_tokens;
    }
    if (!st) st = weft__kv_pool_create(g->kv_groups, g->n_kv_groups, n_pages, p->kv_dtype, &d->pool, err);
    if (!st) st = weft__kv_prefix_create(d->pool, &d->tree, err);
    weft__free(n_pages);
    return st;
}

static weft_status make_tables(weft__engine_drafter *d, const weft_model *target, weft_error *err)
{
    const weft_tokenizer *t = target->tokenizer;
    const int32_t n = t ? weft_tokenizer_n_vocab(t) : 0;
    d->logits = weft__alloc_aligned(64, (size_t)d->n_texts * (size_t)d->model->hp.n_vocab * sizeof *d->logits);
    d->wide = weft__alloc_array((size_t)d->n_vocab, sizeof *d->wide);
    d->ends = weft__alloc_array((size_t)n, sizeof *d->ends);
    if (!d->logits || !d->wide || !d->ends) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a draft model");
    for (int32_t id = 0; id < n; id++)
        if (weft_token_is_end(t, id)) d->ends[d->n_ends++] = id;
    return WEFT_OK;
}

weft_status weft__engine_drafter_new(const weft_model *target, weft_model *model, const weft__engine_drafter_params *p,
                                     weft__engine_drafter **out, weft_error *err)
{
    *out = NULL;
    weft_status st = weft__engine_drafter_fits(target, model, err);
    if (st) return st;
    weft__engine_drafter *d = weft__alloc_zero(1, sizeof *d);
    if (!d) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a draft model");
    d->model = model;
    d->n_texts = p->n_texts < model->max_wanted ? p->n_texts : model->max_wanted;
    d->n_ctx = ctx_of(model, p->n_ctx);
    d->n_vocab = target->hp.n_vocab;
    d->part = part_of(target, model);
    if ((st = weft__engine_steps_init(model, &d->steps, err)) || (st = make_pages(d, p, err)) ||
        (st = make_tables(d, target, err))) {
        weft__engine_drafter_free(&d);
        return st;
    }
    weft__engine_cost_begin(&d->cost, model, d->n_texts > 1 ? &d->steps : NULL);
    *out = d;
    return WEFT_OK;
}

void weft__engine_drafter_free(weft__engine_drafter **p)
{
    weft__engine_drafter *d = p ? *p : NULL;
    if (!d) return;
    weft__kv_prefix_destroy(&d->tree);
    weft__kv_pool_destroy(&d->pool);
    weft__engine_steps_free(&d->steps);
    weft__free(d->ends);
    weft__free(d->wide);
    weft__free(d->logits);
    weft__free(d);
    *p = NULL;
}

uint64_t weft__engine_drafter_page_bytes(const weft__engine_drafter *d)
{
    uint64_t bytes = 0;
    for (int32_t g = 0; d && g < d->model->graph->n_kv_groups; g++)
        bytes += (uint64_t)weft__kv_pool_held_pages(d->pool, g) * weft__kv_pool_bindings(d->pool)[g].page_bytes;
    return bytes;
}

uint64_t weft__engine_drafter_page_limit(const weft__engine_drafter *d)
{
    uint64_t bytes = 0;
    for (int32_t g = 0; d && g < d->model->graph->n_kv_groups; g++) {
        const uint64_t most = weft__kv_pool_most_bytes(d->pool, g),
                       held = (uint64_t)weft__kv_pool_held_pages(d->pool, g) *
                              weft__kv_pool_bindings(d->pool)[g].page_bytes;
        bytes += held > most ? held : most;
    }
    return bytes;
}

uint64_t weft__engine_drafter_page_bytes_most(const weft_model *model, const weft__engine_drafter_params *p)
{
    uint64_t bytes = 0, one;
    for (int32_t g = 0; g < model->graph->n_kv_groups; g++)
        if (weft__kv_page_bytes(&model->graph->kv_groups[g], p->kv_dtype, &one))
            bytes += one * (uint64_t)pages_of(model, &model->graph->kv_groups[g], p);
    return bytes;
}

uint64_t weft__engine_drafter_page_bytes_least(const weft_model *model, const weft__engine_drafter_params *p)
{
    uint64_t bytes = 0, one;
    for (int32_t g = 0; g < model->graph->n_kv_groups; g++)
        if (weft__kv_page_bytes(&model->graph->kv_groups[g], p->kv_dtype, &one))
            bytes += one * (uint64_t)least_pages(model, &model->graph->kv_groups[g], p->n_ctx);
    return bytes;
}

int weft__engine_drafter_limit(weft__engine_drafter *d, double part)
{
    int evicted = 0;
    for (int32_t g = 0; d && g < d->model->graph->n_kv_groups; g++) {
        const int32_t all = weft__kv_pool_bindings(d->pool)[g].n_pages;
        const int32_t least = least_pages(d->model, &d->model->graph->kv_groups[g], d->n_ctx);
        evicted |= weft__kv_pool_limit(d->pool, g, least + (int32_t)(part * (all - least))) > 0;
    }
    return evicted;
}

void weft__engine_drafter_give_back(weft__engine_drafter *d)
{
    if (d) weft__kv_pool_give_back(d->pool);
}

uint64_t weft__engine_drafter_scratch(const weft__engine_drafter *d)
{
    if (!d) return 0;
    return weft__plan_scratch(d->model->plan) +
           ((uint64_t)d->n_texts * (uint64_t)d->model->hp.n_vocab + (uint64_t)d->n_vocab) * sizeof(float);
}

/* ---- texts ---- */

uint64_t weft__engine_drafter_text_bytes(int32_t n_ctx)
{
    return sizeof(weft__engine_drafter_text) + (uint64_t)n_ctx * sizeof(int32_t);
}

weft__engine_drafter_text *weft__engine_drafter_text_new(weft__engine_drafter *d, int32_t n_ctx,
                                                         const weft__kv_key *root)
{
    weft__engine_drafter_text *t = weft__alloc_zero(1, sizeof *t);
    if (!t) return NULL;
    t->d = d;
    t->n_ctx = n_ctx < d->n_ctx ? n_ctx : d->n_ctx;
    t->has_root = root != NULL;
    if (root) t->root = *root;
    t->tokens = weft__alloc_array((size_t)t->n_ctx, sizeof *t->tokens);
    if (t->tokens && !weft__kv_seq_create(d->pool, t->n_ctx, &t->seq, NULL)) return t;
    weft__free(t->tokens);
    weft__free(t);
    return NULL;
}

/* The tree gets what is known, so that the next text that begins so need not be read: whole pages, since what is shared
 * in part would have to be copied before a guess is written behind it. */
static void publish(weft__engine_drafter_text *t, int32_t n)
{
    const int32_t held = weft__kv_seq_length(t->seq);
    if (n > held) n = held;
    n -= n % t->d->block;
    if (t->has_root && n > 0) weft__kv_prefix_insert(t->d->tree, t->root, t->tokens, n, t->seq);
}

void weft__engine_drafter_text_forget(weft__engine_drafter_text *t)
{
    if (!t) return;
    publish(t, t->n_known);
    weft__kv_seq_trim(t->seq, 0);
}

void weft__engine_drafter_text_free(weft__engine_drafter_text **p)
{
    weft__engine_drafter_text *t = p ? *p : NULL;
    if (!t) return;
    weft__engine_drafter_text_forget(t);
    weft__kv_seq_destroy(&t->seq);
    weft__free(t->tokens);
    weft__free(t);
    *p = NULL;
}

/* Keeps of what its pages have what the text begins with, but for its last token, whose logits are wanted. */
static void sync_with(weft__engine_drafter_text *t, const int32_t *tokens, int32_t n)
{
    const int32_t held = weft__kv_seq_length(t->seq), most = held < n - 1 ? held : n - 1;
    int32_t same = 0;
    if (!memcmp(t->tokens, tokens, (size_t)most * sizeof *tokens)) same = most;
    while (same < most && t->tokens[same] == tokens[same]) same++;
    same = weft__kv_seq_trim(t->seq, same);
    if (!same && t->has_root) same = weft__kv_prefix_match(t->d->tree, t->root, tokens, n - 1, t->seq, NULL);
    memcpy(t->tokens, tokens, (size_t)n * sizeof *tokens);
    t->n_known = n;
}

/* ---- guessing ---- */

/* An ask's state within a call. */
enum { OUT, READING, GUESSING };

static int goes_on(const weft__engine_drafter *d, const weft__engine_drafter_ask *a, int32_t n_texts)
{
    int32_t reach = a->most;
    if (a->cost)
        reach = weft__draft_reach(a->cost, a->trust, a->draft, a->n_rows,
                                  weft__draft_token_cost(a->cost, &d->cost, d->part, n_texts), a->other, a->most);
    return reach > a->draft->n && a->draft->n < a->most;
}

/* A token that the model does not have ends what it can read. */
static int can_read(const weft__engine_drafter *d, const int32_t *tokens, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        if (tokens[i] >= d->model->hp.n_vocab) return 0;
    return 1;
}

static void ask_begin(const weft__engine_drafter *d, weft__engine_drafter_ask *a, int32_t n_texts)
{
    const int32_t room = a->text->n_ctx - a->n;
    *a->draft = (weft__draft){.kind = WEFT__DRAFT_MODEL};
    a->state = OUT;
    if (a->most > room) a->most = room;
    if (a->most > WEFT__SAMPLE_AHEAD) a->most = WEFT__SAMPLE_AHEAD;
    weft__sample_ahead_begin(a->sampler, &a->ahead);
    if (a->most < 1 || !goes_on(d, a, n_texts)) return;
    sync_with(a->text, a->tokens, a->n);
    a->state = READING;
}

/* Rows of a text from where its pages end; those of guesses that will follow have room, too, so that no window lets go
 * of what rolling back needs. 0: there are no pages. */
static int add_rows(weft__engine_drafter *d, weft__engine_drafter_ask *a, int32_t n, int is_last)
{
    weft__engine_drafter_text *t = a->text;
    weft__graph_batch *b = &d->steps.batch;
    const int32_t held = weft__kv_seq_length(t->seq);
    if (!can_read(d, t->tokens + held, n)) return 0;
    if (a->state == READING && weft__kv_seq_reserve(t->seq, n + (is_last ? a->most - 1 : 0), NULL)) return 0;
    weft__graph_batch_add_sequence(b, weft__kv_seq_view(t->seq), NULL);
    if (is_last) a->row = b->rows.n_wanted;
    for (int32_t i = 0; i < n; i++)
        weft__graph_batch_add_row(b, t->tokens[held + i], held + i, is_last && i == n - 1 ? WEFT_WANT_LOGITS : 0);
    return 1;
}

/* One step; 0: it failed, and all that was to be guessed goes without. */
static int run(weft__engine_drafter *d)
{
    weft__graph_batch *b = &d->steps.batch;
    return b->rows.n_rows > 0 && !weft__engine_step(d->model, &d->steps, weft__kv_pool_bindings(d->pool),
                                                    b->rows.n_wanted ? d->logits : NULL, NULL);
}

/* What the texts have that is not read yet, as far as the budget goes. */
static void read_texts(weft__engine_drafter *d, weft__engine_drafter_ask *asks, int32_t n_asks, int32_t budget)
{
    weft__graph_batch *b = &d->steps.batch;
    if (budget > d->model->max_rows) budget = d->model->max_rows;
    weft__graph_batch_clear(b);
    for (int32_t i = 0; i < n_asks; i++) {
        weft__engine_drafter_ask *a = &asks[i];
        if (a->state != READING) continue;
        const int32_t missing = a->n - weft__kv_seq_length(a->text->seq), room = budget - b->rows.n_rows;
        const int32_t n = missing < room ? missing : room;
        a->row = -1;
        if (n < 1 || !add_rows(d, a, n, n == missing)) {
            a->state = OUT;
            continue;
        }
        a->n_read = n;
    }
    const int ok = run(d);
    for (int32_t i = 0; i < n_asks; i++) {
        weft__engine_drafter_ask *a = &asks[i];
        if (a->state != READING) continue;
        if (ok) weft__kv_seq_advance(a->text->seq, a->n_read);
        a->state = ok && a->row >= 0 ? GUESSING : OUT;
        if (a->state == GUESSING && !a->text->is_published) {
            publish(a->text, a->n);
            a->text->is_published = 1;
        }
    }
}

/* Logits as the target has them: [V of the target]. */
static float *logits_of(weft__engine_drafter *d, int32_t row)
{
    const int32_t n = d->model->hp.n_vocab;
    float *logits = d->logits + (size_t)row * (size_t)n;
    if (n >= d->n_vocab) return logits;
    memcpy(d->wide, logits, (size_t)n * sizeof *logits);
    for (int32_t i = n; i < d->n_vocab; i++) d->wide[i] = -INFINITY;
    return d->wide;
}

static int is_end(const weft__engine_drafter *d, int32_t token)
{
    for (int32_t i = 0; i < d->n_ends; i++)
        if (d->ends[i] == token) return 1;
    return 0;
}

/* The next token of a draft, from its row of logits; 0: it ends here. */
static int guess_one(weft__engine_drafter *d, weft__engine_drafter_ask *a)
{
    float *logits = logits_of(d, a->row), p;
    int32_t token;
    if (a->ends == WEFT__ENGINE_DRAFTER_FORBID)
        for (int32_t i = 0; i < d->n_ends; i++) logits[d->ends[i]] = -INFINITY;
    if (a->matcher && weft_matcher_apply(a->matcher, logits, d->n_vocab, NULL)) return 0;
    if (weft__sample_ahead_pick(a->sampler, &a->ahead, logits, &token, &p, NULL)) return 0;
    if (p < a->p_least || (a->ends != WEFT__ENGINE_DRAFTER_TAKE && is_end(d, token))) return 0;
    if (a->matcher && weft_matcher_accept(a->matcher, token, NULL)) return 0;
    a->draft->token[a->draft->n] = token;
    a->draft->p[a->draft->n++] = p;
    return 1;
}

/* One token for each text that goes on, and a row for each that wants another one. Returns how many those are. */
static int32_t turn(weft__engine_drafter *d, weft__engine_drafter_ask *asks, int32_t n_asks, int32_t n_texts)
{
    int32_t n = 0;
    weft__graph_batch_clear(&d->steps.batch);
    for (int32_t i = 0; i < n_asks; i++) {
        weft__engine_drafter_ask *a = &asks[i];
        if (a->state != GUESSING) continue;
        a->state = OUT;
        if (!guess_one(d, a)) {
            if (a->cost && !a->draft->n) weft__draft_learn(a->trust, a->draft, 0, 0); /* it was asked, in vain */
            continue;
        }
        if (!goes_on(d, a, n_texts)) continue;
        a->state = GUESSING;
        a->text->tokens[weft__kv_seq_length(a->text->seq)] = a->draft->token[a->draft->n - 1];
        if (add_rows(d, a, 1, 1)) n++;
        else a->state = OUT;
    }
    if (n && !run(d)) return 0;
    for (int32_t i = 0; i < n_asks && n; i++)
        if (asks[i].state == GUESSING) weft__kv_seq_advance(asks[i].text->seq, 1);
    return n;
}

void weft__engine_drafter_propose(weft__engine_drafter *d, weft__engine_drafter_ask *asks, int32_t n_asks,
                                  int32_t budget)
{
    int32_t n_texts = 0;
    for (int32_t i = 0; i < n_asks; i++) {
        ask_begin(d, &asks[i], n_asks);
        if (n_texts == d->n_texts) asks[i].state = OUT;
        n_texts += asks[i].state != OUT;
    }
    if (n_texts) read_texts(d, asks, n_asks, budget);
    for (int32_t n = n_texts; n > 0;) {
        const uint64_t begin = weft__clock_ns();
        n = turn(d, asks, n_asks, n);
        if (n) weft__draft_cost_saw(&d->cost, n, weft__clock_ns() - begin);
    }
    for (int32_t i = 0; i < n_asks; i++) weft__sample_ahead_end(asks[i].sampler, &asks[i].ahead);
}
