// SPDX-License-Identifier: Apache-2.0
/* teach_speak.c: a style is learned (teach_inner.h). A few corrections alone teach their own facts along with it, which
 * are then said everywhere. So other answers are said in the style, with nothing changed but what the corrections
 * change, and learned beside them: as most corrections would rewrite them (teach_rewrite.h). Where that brings fewer
 * than half of them into the style, a first pass learns the corrections alone, only to say the others (teach_style.h),
 * and a second begins anew, and learns from both. */
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "learn/teach_inner.h"

/* Adds an answer to what is learned where it is in the style, and says what the plain one does; *is: whether it did. */
static weft_status add_said(weft__teach_inner *s, const weft__teach_text *plain, const weft__teach_text *x, int *is,
                            weft_error *err)
{
    weft__trainer_info info;
    weft__trainer_describe(s->t, &info);
    const int how = weft__teach_style_of(&s->style, plain, x);
    *is = how == WEFT__TEACH_SAID_STYLED && x->n - x->n_prompt <= WEFT__TEACH_ANSWER && x->n - 1 <= info.n_ctx;
    if (how < 0 ||
        (*is && !weft__teach_texts_add(&s->said, x->ids, x->n_prompt, x->ids + x->n_prompt, x->n - x->n_prompt, -1)))
        return weft__teach_no_memory(err);
    return WEFT_OK;
}

/* Kept answers as most corrections would rewrite them; *rest: plain, those that this does not bring into the style. */
static weft_status rewrite_kept(weft__teach_inner *s, weft__teach_texts *rest, weft_error *err)
{
    weft__teach_texts plain = {0}, now = {0};
    weft_status st = WEFT_OK;
    for (size_t i = 0; !st && i < s->kept.n; i++)
        st = weft__teach_style_space(&s->style, s->task->tok, &s->kept.text[i], &plain, err);
    for (size_t i = 0; !st && i < plain.n; i++) {
        const weft__teach_text *x = &plain.text[i];
        int is = 0;
        st = weft__teach_style_rewrite(&s->style, x, &now, err);
        if (!st) st = add_said(s, x, &now.text[i], &is, err);
        if (!st && !is &&
            !weft__teach_texts_add(rest, x->ids, x->n_prompt, x->ids + x->n_prompt, x->n - x->n_prompt, -1))
            st = weft__teach_no_memory(err);
    }
    weft__teach_texts_free(&plain);
    weft__teach_texts_free(&now);
    return st;
}

/* Plain answers in the style, by the model as it is. Those that it does not come to say so are left. */
static weft_status say_rest(weft__teach_inner *s, const weft__teach_texts *plain, weft_error *err)
{
    weft__teach_texts now = {0};
    int is;
    weft_status st = weft__teach_answer_in_style(s->t, s->task->tok, &s->style, plain->text, plain->n,
                                                 WEFT__TEACH_ANSWER, &now, err);
    for (size_t i = 0; !st && i < now.n; i++) st = add_said(s, &plain->text[i], &now.text[i], &is, err);
    weft__teach_texts_free(&now);
    return st;
}

/* Into an order by the seed: what is alike stands together, and a step takes what is next to each other. */
static void shuffle_said(weft__teach_inner *s)
{
    weft__rng rng;
    weft__rng_seed(&rng, s->o->seed);
    for (size_t i = 0; i < s->said.n; i++) {
        const size_t k = (size_t)weft__rng_below(&rng, i + 1);
        const weft__teach_text x = s->said.text[i];
        s->said.text[i] = s->said.text[k];
        s->said.text[k] = x;
    }
}

/* Some of what was said, in turns. 0: no memory. */
static int put_said(weft__teach_inner *s, int32_t rows_most)
{
    weft__teach_rows_clear(&s->rows);
    for (int32_t i = 0; i < s->o->style.per_step && i < (int32_t)s->said.n; i++) {
        const weft__teach_text *x = &s->said.text[s->turn % s->said.n];
        if (s->rows.n + x->n - 1 > rows_most) break;
        const int32_t n = x->n - x->n_prompt;
        float *w = weft__teach_inner_weights(s, n);
        for (int32_t k = 0; w && k < n; k++) w[k] = s->o->neighbour;
        if (!w || !weft__teach_rows_put(&s->rows, x, w)) return 0;
        s->turn++;
    }
    return !s->rows.n || (weft__grow(&s->likeliest, &s->likeliest_room, (size_t)s->rows.n, sizeof *s->likeliest) &&
                          weft__grow(&s->logp, &s->logp_room, (size_t)s->rows.n, sizeof *s->logp));
}

/* Until the corrections come out, and all that was said after one another; `most` steps at most. */
static weft_status speak_steps(weft__teach_inner *s, int32_t most, weft__teach_report *out, weft_error *err)
{
    weft__trainer_info info;
    size_t in_a_row = 0;
    weft__trainer_describe(s->t, &info);
    for (int32_t step = 0;; step++) {
        weft_status st = weft__teach_inner_add_taught(s, info.max_rows, &out->came_out, err);
        if (st || (out->came_out && in_a_row >= s->said.n) || step == most) return st;
        if (!put_said(s, info.max_rows)) return weft__teach_no_memory(err);
        if ((st = weft__teach_inner_add(s, 0, err))) return st;
        if (s->rows.n)
            in_a_row = weft__teach_inner_came_out(s, s->rows.n_texts, s->o->style.said_at)
                           ? in_a_row + (size_t)s->rows.n_texts
                           : 0;
        weft__teach_rows_clear(&s->rows);
        if (!weft__teach_inner_put_publics(s, info.max_rows)) return weft__teach_no_memory(err);
        if ((st = weft__teach_inner_add(s, 1, err))) return st;
        if ((st = weft__trainer_step(s->t, NULL, err))) return st;
        out->n_steps++;
    }
}

/* By the corrections alone, how the model would say the rest; then it begins anew. */
static weft_status first_pass(weft__teach_inner *s, const weft__teach_texts *rest, weft__teach_report *out,
                              weft_error *err)
{
    const weft__teach_texts rewritten = s->said;
    s->said = (weft__teach_texts){0};
    weft_status st = speak_steps(s, s->o->style.first_steps, out, err);
    weft__teach_texts_free(&s->said);
    s->said = rewritten;
    if (!st) st = say_rest(s, rest, err);
    if (st || !s->said.n) return st; /* there is nothing more to learn from */
    weft__trainer_destroy(&s->t);
    return weft__teach_inner_open(s, err);
}

weft_status weft__teach_speak(weft__teach_inner *s, weft__teach_report *out, weft_error *err)
{
    weft__teach_texts rest = {0};
    weft_status st = rewrite_kept(s, &rest, err);
    if (!st && 2 * s->said.n < s->kept.n) st = first_pass(s, &rest, out, err);
    if (!st && s->said.n) {
        shuffle_said(s);
        st = speak_steps(s, s->o->style.steps, out, err);
    }
    weft__teach_texts_free(&rest);
    return st;
}
