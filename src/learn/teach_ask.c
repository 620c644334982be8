// SPDX-License-Identifier: Apache-2.0
/* teach_ask.c: what a trainer's model makes of texts (teach_texts.h): whether answers come out, and which it gives. */
#include <string.h>

#include "base/alloc.h"
#include "learn/teach_style.h"

typedef struct learn_pass {
    weft__trainer *t;
    weft__trainer_info info;
    int32_t max_rows;
    weft__teach_rows rows;
    int32_t *likeliest;
    float *logp;
    uint64_t *draw;      /* of rows, where the texts have keys */
    const uint64_t *key; /* NULL, or of each text that is asked: its tokens are drawn */
    float temperature;
    size_t room[3];
} learn_pass;

static void pass_free(learn_pass *p)
{
    weft__teach_rows_free(&p->rows);
    weft__free(p->likeliest);
    weft__free(p->logp);
    weft__free(p->draw);
}

/* A row's key by its text's and its place: of the rows from `from` on. 0: no memory. */
static int put_keys(learn_pass *p, int32_t from, uint64_t key)
{
    if (!weft__grow(&p->draw, &p->room[2], (size_t)p->rows.n, sizeof *p->draw)) return 0;
    for (int32_t r = from; r < p->rows.n; r++)
        p->draw[r] = key + (uint64_t)(r - from + 1) * 0x9E3779B97F4A7C15u; /* the generator mixes them (SplitMix64) */
    return 1;
}

/* Packs texts from *at on, as many as a batch holds, and asks for their tokens; *at is then behind them. */
static weft_status pass_some(learn_pass *p, const weft__teach_text *texts, size_t n, size_t *at, weft_error *err)
{
    weft__teach_rows_clear(&p->rows);
    for (; *at < n; (*at)++) {
        const weft__teach_text *x = &texts[*at];
        if (x->n - 1 > p->info.n_ctx || x->n - 1 > p->info.max_rows)
            return weft_fail(err, WEFT_LIMIT, "a text of %d tokens; learning takes %d at most", x->n, p->info.n_ctx);
        if (p->rows.n + x->n - 1 > p->info.max_rows) break;
        const int32_t from = p->rows.n;
        if (!weft__teach_rows_put(&p->rows, x, NULL)) return weft__teach_no_memory(err);
        if (p->key && !put_keys(p, from, p->key[*at])) return weft__teach_no_memory(err);
    }
    if (!p->rows.n) return WEFT_OK;
    if (!weft__grow(&p->likeliest, &p->room[0], (size_t)p->rows.n, sizeof *p->likeliest) ||
        !weft__grow(&p->logp, &p->room[1], (size_t)p->rows.n, sizeof *p->logp))
        return weft__teach_no_memory(err);
    weft__train_batch b = weft__teach_rows_batch(&p->rows);
    if (p->key) b.draw = p->draw, b.temperature = p->temperature;
    weft_status st = weft__trainer_loss(p->t, &b, 1, p->logp, NULL, err);
    if (!st) weft__trainer_likeliest(p->t, p->likeliest);
    return st;
}

weft_status weft__teach_check(weft__trainer *t, const weft__teach_text *texts, size_t n, uint8_t *right, float *least,
                              weft_error *err)
{
    learn_pass p = {.t = t};
    weft_status st = WEFT_OK;
    weft__trainer_describe(t, &p.info);
    for (size_t at = 0, first = 0; !st && at < n; first = at) {
        if ((st = pass_some(&p, texts, n, &at, err))) break;
        int32_t r = 0;
        for (size_t i = first; i < at; i++) {
            float low = 0;
            right[i] = 1;
            for (int32_t k = 0; k + 1 < texts[i].n; k++, r++) {
                if (p.rows.target[r] < 0) continue;
                right[i] &= p.rows.target[r] == p.likeliest[r];
                if (p.logp[r] < low) low = p.logp[r];
            }
            if (least) least[i] = low;
        }
    }
    pass_free(&p);
    return st;
}

/* ---- answers ---- */

/* One prompt's answer in work: ids [n_prompt + most + 1], of which n are there. */
typedef struct teach_guess {
    int32_t *ids;
    int32_t n, n_prompt, most, done;
    const weft__teach_style *style; /* NULL, or it says `plain` in it, and nothing else */
    const int32_t *plain;           /* [n_plain] with the token that ends it */
    int32_t n_plain;
    int32_t stop; /* a token that ends it, too; -1: none */
} teach_guess;

/* In which way answers are given, and what a pass asks: [n] of what is not done. */
typedef struct answering {
    const weft__teach_style *style; /* of weft__teach_answer_in_style, whose texts have plain answers; or NULL */
    const uint64_t *key;            /* of weft__teach_draw, or NULL */
    float temperature;
    int32_t stop;
    weft__teach_text *asked;
    uint64_t *asked_key;
} answering;

/* How much of the plain answer is behind, and whether what was said last was put in instead of some of it. */
typedef struct style_at {
    int32_t n;
    int instead;
} style_at;

/* Is all that is left of the plain answer, but the token that ends it, what the style takes out? */
static int is_behind(const teach_guess *g, int32_t i)
{
    while (i + 1 < g->n_plain && weft__teach_set_has(&g->style->out, g->plain[i])) i++;
    return i + 1 == g->n_plain;
}

/* What is said where the model would say `id`: the plain answer's next, past what the style drops, or what the style
 * puts in there. */
static int32_t in_style(const teach_guess *g, int32_t id, style_at *at)
{
    const weft__teach_style *s = g->style;
    const int taken_out = weft__teach_set_has(&s->out, g->plain[at->n]);
    int32_t i = at->n;
    while (i + 1 < g->n_plain && g->plain[i] != id && weft__teach_set_has(&s->dropped, g->plain[i])) i++;
    if (g->plain[i] == id) {
        *at = (style_at){i + 1, 0};
        return id;
    }
    if (at->n && is_behind(g, at->n) && weft__teach_set_has(&s->in[WEFT__TEACH_BEHIND], id)) {
        *at = (style_at){g->n_plain - 1, 0};
        return id;
    }
    if ((taken_out || at->instead) && weft__teach_set_has(&s->in[WEFT__TEACH_INSTEAD], id)) {
        *at = (style_at){at->n + (taken_out && (!at->instead || weft__teach_set_has(&s->starts, id))), 1};
        return id;
    }
    if (weft__teach_set_has(&s->in[at->n ? WEFT__TEACH_WITHIN : WEFT__TEACH_BEFORE], id)) return id;
    *at = (style_at){at->n + 1, 0};
    return g->plain[at->n - 1];
}

/* The tokens behind the prompt become what was the likeliest there; 1 when that changed none up to the one that ends.
 */
static int take_likeliest(teach_guess *g, const weft__tok *tok, const int32_t *likeliest)
{
    const int32_t n = g->n;
    int32_t i = g->n_prompt;
    int same = 1;
    style_at at = {0};
    for (; i < n && !(g->style && at.n == g->n_plain); i++) {
        const int32_t id = g->style ? in_style(g, likeliest[i - 1], &at) : likeliest[i - 1];
        same &= id == g->ids[i];
        g->ids[i] = id;
        if (!same || (id != g->stop && !weft__tok_is_end(tok, id))) continue;
        g->n = i + 1;
        return 1;
    }
    if (!same) return 0;
    if (g->style && at.n == g->n_plain) { /* all of it is said, and nothing ended it */
        g->n = i;
        return 1;
    }
    if (n - g->n_prompt == g->most) return 1;
    /* all hold, and no end yet */
    g->ids[g->n++] = g->style ? in_style(g, likeliest[n - 1], &at) : likeliest[n - 1];
    return 0;
}

/* The answer ends where the trainer's texts do. */
static weft_status begin_guess(teach_guess *g, const weft__teach_text *text, int32_t most, int32_t n_ctx,
                               weft_error *err)
{
    const int32_t given = text->n - text->n_prompt;
    g->n_prompt = text->n_prompt;
    g->most = most < n_ctx - g->n_prompt ? most : n_ctx - g->n_prompt;
    if (g->most < 0)
        return weft_fail(err, WEFT_LIMIT, "a prompt of %d tokens; learning takes %d at most", g->n_prompt, n_ctx);
    g->ids = weft__alloc_array((size_t)(g->n_prompt + g->most + 1), sizeof *g->ids);
    if (!g->ids) return weft__teach_no_memory(err);
    g->n = g->n_prompt + (given < g->most ? given : g->most);
    memcpy(g->ids, text->ids, (size_t)g->n * sizeof *g->ids);
    return WEFT_OK;
}

/* One pass over those that are not done. */
static weft_status refine(learn_pass *p, const weft__tok *tok, teach_guess *guess, size_t n, const answering *how,
                          int *busy, weft_error *err)
{
    weft__teach_text *asked = how->asked;
    size_t n_asked = 0, at = 0;
    for (size_t i = 0; i < n; i++) {
        teach_guess *g = &guess[i];
        if (g->done) continue;
        g->ids[g->n] = g->ids[g->n - 1]; /* a row for the last token, too: any target asks what follows it */
        if (how->key) how->asked_key[n_asked] = how->key[i];
        asked[n_asked++] = (weft__teach_text){g->ids, g->n + 1, g->n_prompt};
    }
    *busy = n_asked > 0;
    for (size_t i = 0; at < n_asked;) {
        const size_t first = at;
        weft_status st = pass_some(p, asked, n_asked, &at, err);
        if (st) return st;
        for (int32_t r = 0, k = (int32_t)first; k < (int32_t)at; i++) {
            teach_guess *g = &guess[i];
            if (g->done) continue;
            const int32_t rows = asked[k++].n - 1;
            g->done = take_likeliest(g, tok, p->likeliest + r);
            r += rows;
        }
    }
    return WEFT_OK;
}

static weft_status answer(weft__trainer *t, const weft__tok *tok, const weft__teach_text *texts, size_t n, int32_t most,
                          answering *how, weft__teach_texts *out, weft_error *err)
{
    learn_pass p = {.t = t};
    teach_guess *guess = weft__alloc_zero(n + !n, sizeof *guess);
    how->asked = weft__alloc_array(n + !n, sizeof *how->asked);
    how->asked_key = how->key ? weft__alloc_array(n + !n, sizeof *how->asked_key) : NULL;
    weft_status st = guess && how->asked && (!how->key || how->asked_key) ? WEFT_OK : weft__teach_no_memory(err);
    weft__trainer_describe(t, &p.info);
    p.key = how->asked_key;
    p.temperature = how->temperature;
    const int32_t limit = p.info.n_ctx < p.info.max_rows ? p.info.n_ctx : p.info.max_rows;
    for (size_t i = 0; !st && i < n; i++) {
        st = begin_guess(&guess[i], &texts[i], most, limit, err);
        guess[i].stop = how->stop;
        if (!how->style) continue;
        guess[i].style = how->style;
        guess[i].plain = texts[i].ids + texts[i].n_prompt;
        guess[i].n_plain = texts[i].n - texts[i].n_prompt;
    }
    for (int busy = !st; busy && !st;) st = refine(&p, tok, guess, n, how, &busy, err);
    for (size_t i = 0; !st && i < n; i++)
        if (!weft__teach_texts_add(out, guess[i].ids, guess[i].n_prompt, guess[i].ids + guess[i].n_prompt,
                                   guess[i].n - guess[i].n_prompt, -1))
            st = weft__teach_no_memory(err);
    for (size_t i = 0; guess && i < n; i++) weft__free(guess[i].ids);
    weft__free(guess);
    weft__free(how->asked);
    weft__free(how->asked_key);
    pass_free(&p);
    return st;
}

weft_status weft__teach_answer(weft__trainer *t, const weft__tok *tok, const weft__teach_text *texts, size_t n,
                               int32_t most, weft__teach_texts *out, weft_error *err)
{
    answering how = {.stop = -1};
    return answer(t, tok, texts, n, most, &how, out, err);
}

weft_status weft__teach_answer_in_style(weft__trainer *t, const weft__tok *tok, const weft__teach_style *style,
                                        const weft__teach_text *plain, size_t n, int32_t most, weft__teach_texts *out,
                                        weft_error *err)
{
    answering how = {.style = style, .stop = -1};
    return answer(t, tok, plain, n, most, &how, out, err);
}

weft_status weft__teach_draw(weft__trainer *t, const weft__tok *tok, const weft__teach_drawing *d, int32_t most,
                             weft__teach_texts *out, weft_error *err)
{
    answering how = {.key = d->key, .temperature = d->temperature, .stop = d->stop};
    return answer(t, tok, d->text, d->n, most, &how, out, err);
}
