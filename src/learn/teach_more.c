// SPDX-License-Identifier: Apache-2.0
/* teach_more.c: what is kept beside what the task gives (teach_inner.h): questions that the model makes up, with what
 * it answers before the first step. The few subjects of earlier answers are else what is said of all others. Nothing
 * that the gate asks is among them, and, of facts, nothing whose answer says what a correction takes out. */
#include "base/alloc.h"
#include "learn/teach_inner.h"
#include "learn/teach_near.h"
#include "learn/teach_questions.h"

/* Does an answer say what was wrong? It may be the same question in other words. */
static int says_wrong(const weft__teach_task *k, const weft__teach_text *x)
{
    for (int32_t i = 0; i < k->n_events; i++) {
        const weft__teach_event *e = &k->events[i];
        const weft__teach_text *c = &e->correction;
        if (!e->wrong) return 1;
        const weft__teach_span w =
            weft__teach_differ(e->wrong, e->n_wrong, c->ids + c->n_prompt, c->n - c->n_prompt - 1);
        if (weft__teach_holds(x->ids + x->n_prompt, x->n - x->n_prompt, e->wrong + w.from, w.to - w.from)) return 1;
    }
    return 0;
}

/* Of which questions are made: of a style all that are kept, of facts the neighbours nearest to what is taught. */
static weft_status begin_as(const weft__teach_inner *s, weft__teach_text *out, size_t *n, weft_error *err)
{
    const size_t first = s->style.n ? 0 : (size_t)s->task->n_replay, n_kept = s->kept.n - first;
    const size_t most = s->style.n ? n_kept : (size_t)s->o->nearest;
    uint8_t *near = weft__alloc_zero(n_kept + 1, 1);
    weft_status st =
        near ? weft__teach_nearest(s->taught.text, s->taught.n, s->kept.text + first, n_kept, most, near, err)
             : weft__teach_no_memory(err);
    *n = 0;
    for (size_t i = 0; !st && i < n_kept; i++)
        if (near[i]) out[(*n)++] = s->kept.text[first + i];
    weft__free(near);
    return st;
}

static weft_status keep_answered(weft__teach_inner *s, const weft__teach_texts *said, weft_error *err)
{
    for (size_t i = 0; i < said->n; i++) {
        const weft__teach_text *x = &said->text[i];
        /* a style says the whole of an answer */
        if (s->style.n ? !weft__tok_is_end(s->task->tok, x->ids[x->n - 1]) : says_wrong(s->task, x)) continue;
        if (!weft__teach_texts_add(&s->kept, x->ids, x->n_prompt, x->ids + x->n_prompt, x->n - x->n_prompt, -1))
            return weft__teach_no_memory(err);
    }
    return WEFT_OK;
}

/* What was asked before, kept[0 .. n_given), of others; asked[0 .. n_asked): what else is not to be asked. */
static weft_status keep_of_others(weft__teach_inner *s, size_t n_given, const weft__teach_asked *asked, size_t n_asked,
                                  weft_error *err)
{
    weft__teach_texts questions = {0}, said = {0};
    weft_status st = weft__teach_ask_others(s, n_given, asked, n_asked, &questions, err);
    if (!st) st = weft__teach_answer(s->t, s->task->tok, questions.text, questions.n, WEFT__TEACH_ANSWER, &said, err);
    if (!st) st = keep_answered(s, &said, err);
    weft__teach_texts_free(&questions);
    weft__teach_texts_free(&said);
    return st;
}

weft_status weft__teach_keep_more(weft__teach_inner *s, weft_error *err)
{
    const weft__teach_options *o = s->o;
    const weft__teach_task *k = s->task;
    const weft__gate_material *m = k->judge;
    const weft__teach_questioning of_style = {o->style.draws, o->style.questions, o->style.temperature, o->seed},
                                  of_facts = {o->draws, o->draws, o->style.temperature, o->seed};
    weft__teach_texts questions = {0}, said = {0};
    weft__teach_text *begin = weft__alloc_array(s->kept.n + 1, sizeof *begin);
    size_t n = 0;
    const size_t n_given = s->kept.n;
    weft_status st = begin ? begin_as(s, begin, &n, err) : weft__teach_no_memory(err);
    const weft__teach_asked asked[] = {{begin, n},
                                       {s->kept.text, s->kept.n},
                                       {s->taught.text, s->taught.n},
                                       {m->neighbours, (size_t)m->n_neighbours},
                                       {m->facts, (size_t)m->n_facts},
                                       {m->held_out, (size_t)m->n_held_out}};
    if (!st)
        st = weft__teach_questions(s->t, k->tok, asked, sizeof asked / sizeof *asked,
                                   s->style.n ? &of_style : &of_facts, &questions, err);
    if (!st) st = weft__teach_answer(s->t, k->tok, questions.text, questions.n, WEFT__TEACH_ANSWER, &said, err);
    if (!st) st = keep_answered(s, &said, err);
    const size_t n_made_up = s->kept.n;
    if (!st && s->style.n) st = keep_of_others(s, n_given, asked + 2, sizeof asked / sizeof *asked - 2, err);
    if (!st && s->style.n) st = weft__teach_hold_out(s, n_given, n_made_up, err);
    weft__teach_texts_free(&questions);
    weft__teach_texts_free(&said);
    weft__free(begin);
    return st;
}
