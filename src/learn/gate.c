// SPDX-License-Identifier: Apache-2.0
/* gate.c: see gate.h. */
#include "learn/gate.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "learn/teach_plain.h"

struct weft__gate {
    weft__trainer *t;
    const weft__tok *tok;
    const weft__gate_material *m;
    const weft__teach_event *events;
    int32_t n_events, most;
    weft__teach_texts neighbours, facts;   /* with the answers that they must have */
    float *least_neighbours, *least_facts; /* log p of the least likely token of each before */
    uint8_t *held;                         /* [held_out] came out before */
};

/* ---- before ---- */

/* Those that have answers are held to these, the others to what the model says now. */
static weft_status label(weft__gate *g, const weft__teach_text *texts, int32_t n, weft__teach_texts *out,
                         weft_error *err)
{
    weft__teach_texts said = {0};
    weft_status st = weft__teach_answer(g->t, g->tok, texts, (size_t)n, g->most, &said, err);
    for (int32_t i = 0; !st && i < n; i++) {
        const weft__teach_text *x = texts[i].n > texts[i].n_prompt ? &texts[i] : &said.text[i];
        if (!weft__teach_texts_add(out, x->ids, x->n, NULL, 0, -1)) st = weft__teach_no_memory(err);
        else out->text[i].n_prompt = x->n_prompt;
    }
    weft__teach_texts_free(&said);
    return st;
}

/* How likely what is kept was before. */
static weft_status note_least(weft__gate *g, const weft__teach_texts *kept, float **least, weft_error *err)
{
    uint8_t *right = weft__alloc_zero(kept->n + 1, 1);
    *least = weft__alloc_zero(kept->n + 1, sizeof **least);
    weft_status st =
        right && *least ? weft__teach_check(g->t, kept->text, kept->n, right, *least, err) : weft__teach_no_memory(err);
    weft__free(right);
    return st;
}

weft_status weft__gate_open(weft__trainer *t, const weft__tok *tok, const weft__gate_material *m,
                            const weft__teach_event *events, int32_t n_events, int32_t most, weft__gate **out,
                            weft_error *err)
{
    weft__gate *g = weft__alloc_zero(1, sizeof *g);
    *out = g;
    if (!g) return weft__teach_no_memory(err);
    *g = (weft__gate){.t = t, .tok = tok, .m = m, .events = events, .n_events = n_events, .most = most};
    g->held = weft__alloc_zero((size_t)m->n_held_out + 1, 1);
    weft_status st = g->held ? WEFT_OK : weft__teach_no_memory(err);
    if (!st) st = weft__teach_check(t, m->held_out, (size_t)m->n_held_out, g->held, NULL, err);
    if (!st) st = label(g, m->neighbours, m->n_neighbours, &g->neighbours, err);
    if (!st) st = label(g, m->facts, m->n_facts, &g->facts, err);
    if (!st) st = note_least(g, &g->neighbours, &g->least_neighbours, err);
    if (!st) st = note_least(g, &g->facts, &g->least_facts, err);
    if (st) weft__gate_close(out);
    return st;
}

void weft__gate_close(weft__gate **pg)
{
    weft__gate *g = pg ? *pg : NULL;
    if (!g) return;
    weft__teach_texts_free(&g->neighbours);
    weft__teach_texts_free(&g->facts);
    weft__free(g->least_neighbours);
    weft__free(g->least_facts);
    weft__free(g->held);
    weft__free(g);
    *pg = NULL;
}

/* ---- after ---- */

static int says(const weft__teach_text *answered, const int32_t *part, int32_t n)
{
    return weft__teach_holds(answered->ids + answered->n_prompt, answered->n - answered->n_prompt, part, n);
}

/* Does an answer say what is new in the event, and no longer what was wrong? */
static int is_corrected(const weft__teach_event *e, const weft__teach_text *answered)
{
    const weft__teach_text *c = &e->correction;
    const weft__teach_span s = weft__teach_event_span(e);
    if (!says(answered, c->ids + c->n_prompt + s.from, s.to - s.from)) return 0;
    if (!e->wrong) return 1;
    const weft__teach_span w = weft__teach_differ(e->wrong, e->n_wrong, c->ids + c->n_prompt, c->n - c->n_prompt - 1);
    return !says(answered, e->wrong + w.from, w.to - w.from);
}

static weft_status measure_event(weft__gate *g, const weft__teach_event *e, weft__gate_report *r, weft_error *err)
{
    weft__teach_texts said = {0};
    weft_status st = weft__teach_answer(g->t, g->tok, &e->correction, 1, g->most, &said, err);
    if (!st) st = weft__teach_answer(g->t, g->tok, e->paraphrases, (size_t)e->n_paraphrases, g->most, &said, err);
    for (size_t i = 0; !st && i < said.n; i++) {
        const int right = is_corrected(e, &said.text[i]);
        if (i == 0) r->corrections += right;
        else r->paraphrases += right;
    }
    r->n_corrections++;
    r->n_paraphrases += e->n_paraphrases;
    weft__teach_texts_free(&said);
    return st;
}

/* Is the new part of an event in the answer, which had no such thing before? */
static int bleeds(const weft__gate *g, const weft__teach_text *before, const weft__teach_text *now)
{
    for (int32_t i = 0; i < g->n_events; i++) {
        const weft__teach_text *c = &g->events[i].correction;
        const weft__teach_span s = weft__teach_event_span(&g->events[i]);
        const int32_t *part = c->ids + c->n_prompt + s.from;
        if (says(now, part, s.to - s.from) && !says(before, part, s.to - s.from)) return 1;
    }
    return 0;
}

/* How many of those that are kept still could be said, and in how many the new answer is said. */
static weft_status measure_kept(weft__gate *g, const weft__teach_texts *kept, const float *before, int32_t *n,
                                int32_t *bled, weft_error *err)
{
    weft__teach_texts said = {0};
    uint8_t *right = weft__alloc_zero(kept->n + 1, 1);
    float *least = weft__alloc_zero(kept->n + 1, sizeof *least);
    weft_status st = right && least ? WEFT_OK : weft__teach_no_memory(err);
    if (!st) st = weft__teach_check(g->t, kept->text, kept->n, right, least, err);
    if (!st) st = weft__teach_answer(g->t, g->tok, kept->text, kept->n, g->most, &said, err);
    for (size_t i = 0; !st && i < kept->n; i++) {
        *n += least[i] >= before[i] + g->m->bounds.least;
        *bled += bleeds(g, &kept->text[i], &said.text[i]);
    }
    weft__teach_texts_free(&said);
    weft__free(least);
    weft__free(right);
    return st;
}

/* How likely to the base the least likely token of each text is: by the trainer without what it has learned. */
static weft_status ask_base(const weft__gate *g, const weft__teach_texts *texts, float *least, weft_error *err)
{
    const size_t n = weft__trainer_n_params(g->t);
    float **learned = weft__alloc_zero(n + 1, sizeof *learned);
    uint8_t *right = weft__alloc_zero(texts->n + 1, 1);
    weft_status st = learned && right ? WEFT_OK : weft__teach_no_memory(err);
    for (size_t i = 0; !st && i < n; i++) {
        const weft__train_param p = weft__trainer_param(g->t, i);
        const size_t size = (size_t)(p.d[0] * p.d[1]);
        float *zero = weft__alloc_zero(size, sizeof *zero);
        learned[i] = zero ? weft__alloc_array(size, sizeof *zero) : NULL;
        if (learned[i]) {
            memcpy(learned[i], p.data, size * sizeof *zero);
            weft__trainer_set_param(g->t, i, zero);
        } else st = weft__teach_no_memory(err);
        weft__free(zero);
    }
    if (!st) st = weft__teach_check(g->t, texts->text, texts->n, right, least, err);
    for (size_t i = 0; learned && i < n; i++) {
        if (learned[i]) weft__trainer_set_param(g->t, i, learned[i]);
        weft__free(learned[i]);
    }
    weft__free(learned);
    weft__free(right);
    return st;
}

weft_status weft__gate_keeps(const weft__gate *g, const weft__teach_text *said, uint8_t *keeps, weft_error *err)
{
    const size_t n = g->neighbours.n;
    weft__teach_texts as_plain = {0};
    weft__teach_change change;
    float *least = weft__alloc_zero(n + 1, sizeof *least);
    weft_status st = weft__teach_change_find(g->tok, g->events, g->n_events, &change, err);
    if (!st && !least) st = weft__teach_no_memory(err);
    for (size_t i = 0; !st && i < n; i++) {
        const weft__teach_text *x = &g->neighbours.text[i], *y = &said[i];
        if (x->n != y->n || memcmp(x->ids, y->ids, (size_t)x->n * sizeof *x->ids))
            st = weft__teach_plain_of(&change, x, y, &as_plain, err);
        else if (!weft__teach_texts_add(&as_plain, x->ids, x->n_prompt, x->ids + x->n_prompt, x->n - x->n_prompt, -1))
            st = weft__teach_no_memory(err);
    }
    if (!st) st = ask_base(g, &as_plain, least, err);
    for (size_t i = 0; !st && i < n; i++) keeps[i] = least[i] >= g->least_neighbours[i] + g->m->bounds.least;
    weft__teach_change_free(&change);
    weft__teach_texts_free(&as_plain);
    weft__free(least);
    return st;
}

/* The same of a style: what is answered must be in it, and say what it is to say. */
static weft_status measure_styled(weft__gate *g, const weft__teach_style *style, weft__gate_report *r, weft_error *err)
{
    const size_t n = g->neighbours.n;
    weft__teach_texts plain = {0}, guess = {0}, said = {0};
    uint8_t *keeps = weft__alloc_zero(n + 1, 1);
    weft_status st = keeps ? WEFT_OK : weft__teach_no_memory(err);
    for (size_t i = 0; !st && i < n; i++)
        st = weft__teach_style_space(style, g->tok, &g->neighbours.text[i], &plain, err);
    for (size_t i = 0; !st && i < n; i++) /* to begin with: it changes nothing but the passes that it takes */
        st = weft__teach_style_rewrite(style, &plain.text[i], &guess, err);
    if (!st) st = weft__teach_answer(g->t, g->tok, guess.text, n, g->most, &said, err);
    if (!st) st = weft__gate_keeps(g, said.text, keeps, err);
    for (size_t i = 0; !st && i < n; i++) {
        const int has = weft__teach_style_has(style, &plain.text[i], &said.text[i]);
        if (has < 0) st = weft__teach_no_memory(err);
        r->paraphrases += has > 0;
        r->neighbours += keeps[i];
    }
    r->n_paraphrases += (int32_t)n;
    weft__teach_texts_free(&plain);
    weft__teach_texts_free(&guess);
    weft__teach_texts_free(&said);
    weft__free(keeps);
    return st;
}

static weft_status measure_held(weft__gate *g, weft__gate_report *r, weft_error *err)
{
    const int32_t n = g->m->n_held_out;
    uint8_t *now = weft__alloc_zero((size_t)n + 1, 1);
    weft_status st = now ? WEFT_OK : weft__teach_no_memory(err);
    if (!st) st = weft__teach_check(g->t, g->m->held_out, (size_t)n, now, NULL, err);
    for (int32_t i = 0; !st && i < n; i++) {
        r->lost += g->held[i] && !now[i];
        r->gained += !g->held[i] && now[i];
    }
    r->n_held_out = n;
    r->p = weft__gate_mcnemar(r->lost, r->gained);
    weft__free(now);
    return st;
}

/* KL(base || this) over the probe, in texts as long as the trainer's. */
static weft_status measure_kl(weft__gate *g, double *kl, weft_error *err)
{
    static const weft__train_objective HELD = {.kind = WEFT__LOSS_LIKELIHOOD, .anchor = 1};
    weft__trainer_info info;
    weft__teach_rows rows = {0};
    weft_status st = WEFT_OK;
    double sum = 0, n_tokens = 0;
    weft__trainer_describe(g->t, &info);
    for (int32_t at = 0, n; !st && at + 1 < g->m->n_probe; at += n) {
        n = g->m->n_probe - at < info.n_ctx + 1 ? g->m->n_probe - at : info.n_ctx + 1;
        const weft__teach_text text = {g->m->probe + at, n, 1};
        weft__train_loss l = {0};
        weft__teach_rows_clear(&rows);
        if (!weft__teach_rows_put(&rows, &text, NULL)) st = weft__teach_no_memory(err);
        const weft__train_batch b = weft__teach_rows_batch(&rows);
        if (!st) st = weft__trainer_measure(g->t, &HELD, &b, &l, err);
        sum += l.anchor;
        n_tokens += (double)l.n_targets;
    }
    *kl = n_tokens > 0 ? sum / n_tokens : 0;
    weft__teach_rows_free(&rows);
    return st;
}

static int is_finite(const weft__trainer *t)
{
    for (size_t i = 0; i < weft__trainer_n_params(t); i++) {
        const weft__train_param p = weft__trainer_param(t, i);
        for (uint64_t k = 0; k < p.d[0] * p.d[1]; k++)
            if (!isfinite(p.data[k])) return 0;
    }
    return 1;
}

weft_status weft__gate_measure(weft__gate *g, weft__trainer *t, const weft__teach_style *style, weft__gate_report *r,
                               weft_error *err)
{
    *r = (weft__gate_report){.kl = NAN, .norm = NAN, .is_style = style != NULL};
    g->t = t;
    weft_status st = WEFT_OK;
    if (is_finite(g->t)) {
        r->norm = weft__trainer_norm(g->t);
        for (int32_t i = 0; !st && i < g->n_events; i++) st = measure_event(g, &g->events[i], r, err);
        int32_t bled_facts = 0;
        r->n_neighbours = (int32_t)g->neighbours.n;
        r->n_facts = (int32_t)g->facts.n;
        if (!st) st = measure_held(g, r, err);
        if (!st && style) st = measure_styled(g, style, r, err);
        else if (!st) st = measure_kept(g, &g->neighbours, g->least_neighbours, &r->neighbours, &r->bled, err);
        if (!st) st = measure_kept(g, &g->facts, g->least_facts, &r->facts, &bled_facts, err);
        if (!st) st = measure_kl(g, &r->kl, err);
    }
    r->reason = weft__gate_judge(r, &g->m->bounds, g->m->goes_on);
    r->passed = r->reason == WEFT__GATE_PASSED;
    return st;
}
