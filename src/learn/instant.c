// SPDX-License-Identifier: Apache-2.0
/* instant.c: see instant.h. */
#include "learn/instant.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "learn/teach_inner.h"
#include "train/tail.h"

typedef struct instant {
    const weft__teach_task *task;
    const weft__teach_options *o;
    weft__trainer *t;
    weft__gate *gate;
    weft__train_tail tail;
} instant;

/* ---- the trainer ---- */

/* The last layer's ffn_down alone, beside what the parent changes, whose rank grows by that of the step. */
static weft_status open_trainer(instant *s, weft_error *err)
{
    char arch[64], last[32];
    int32_t n_layers = 0;
    weft_status st = weft__source_string(s->task->base, NULL, "general.architecture", 1, arch, sizeof arch, err);
    if (!st) st = weft__source_i32(s->task->base, arch, ".block_count", 1, 1, INT32_MAX, &n_layers, err);
    if (st) return st;
    weft__train_tail_target(n_layers, last);
    const weft__teach_lora lora = {
        .like = s->task->parent, .more = s->o->instant, .beside = last, .lr = s->o->lr, .max_rows = WEFT__TEACH_ROWS};
    st = weft__teach_trainer_open(s->task->base, s->o, &lora, &s->t, err);
    return !st && s->task->parent ? weft__trainer_start_adapter(s->t, s->task->parent, err) : st;
}

/* ---- the corrections ---- */

/* What differs from the wrong answer is learned, and nothing else: it is what moves others the least. */
static weft_status put_answer(const weft__teach_event *e, const weft__teach_text *prompt,
                              const weft__teach_text *answer, weft__teach_rows *rows, weft_error *err)
{
    weft__teach_texts text = {0};
    const int32_t *ids = answer->ids + answer->n_prompt, n = answer->n - answer->n_prompt;
    if (n < 2) return weft_fail(err, WEFT_ARGUMENT, "a correction says nothing");
    if (rows->n + prompt->n_prompt + n > WEFT__TEACH_ROWS)
        return weft_fail(err, WEFT_LIMIT, "corrections of more than %d tokens are not learned at once",
                         WEFT__TEACH_ROWS);
    uint8_t *differs = weft__alloc_zero((size_t)n, 1);
    float *weight = weft__alloc_array((size_t)n, sizeof *weight);
    int ok = differs && weight && weft__teach_mark(ids, n - 1, e->wrong, e->n_wrong, differs) &&
             weft__teach_texts_add(&text, prompt->ids, prompt->n_prompt, ids, n, -1);
    for (int32_t i = 0; ok && i < n; i++) weight[i] = differs[i] ? 1 : 0;
    ok = ok && weft__teach_rows_put(rows, &text.text[0], weight);
    weft__teach_texts_free(&text);
    weft__free(differs);
    weft__free(weight);
    return ok ? WEFT_OK : weft__teach_no_memory(err);
}

/* And the paraphrases that are learned, with the same answer where they have none. */
static weft_status put_correction(const weft__teach_event *e, weft__teach_rows *rows, weft_error *err)
{
    weft_status st = put_answer(e, &e->correction, &e->correction, rows, err);
    for (int32_t i = 0; !st && i < e->n_taught; i++) {
        const weft__teach_text *p = &e->paraphrases[i];
        st = put_answer(e, p, p->n > p->n_prompt ? p : &e->correction, rows, err);
    }
    return st;
}

/* The one pass, and the one step. */
static weft_status learn(instant *s, weft__teach_report *out, weft_error *err)
{
    const weft__train_tail_options o = {.rank = s->o->instant, .hold_at = s->o->hold_at};
    weft__train_tail_step step = {0};
    weft__teach_rows rows = {0};
    weft_status st = WEFT_OK;
    for (int32_t i = 0; !st && i < s->task->n_events; i++) st = put_correction(&s->task->events[i], &rows, err);
    const weft__train_batch b = weft__teach_rows_batch(&rows);
    uint64_t ns = weft__clock_ns();
    if (!st) st = weft__train_tail_keep(s->t, &b, &s->tail, err);
    out->pass_s = weft__teach_since(&ns);
    if (!st) st = weft__train_tail_move(s->t, &s->tail, &o, &step, err);
    out->step_s = weft__teach_since(&ns);
    out->n_steps = 1;
    out->scale = (float)step.length;
    out->came_out = step.holds;
    weft__teach_rows_free(&rows);
    return st;
}

/* ---- all of it ---- */

weft_status weft__teach_instant(const weft__teach_task *task, const weft__teach_options *o, weft__teach_report *out,
                                weft_error *err)
{
    instant s = {.task = task, .o = o};
    uint64_t ns = weft__clock_ns();
    *out = (weft__teach_report){.n_attempts = 1};
    if (task->n_events < 1) return weft_fail(err, WEFT_ARGUMENT, "there is nothing to learn");
    weft_status st = open_trainer(&s, err);
    if (!st)
        st = weft__gate_open(s.t, task->tok, task->judge, task->events, task->n_events, WEFT__TEACH_ANSWER, &s.gate,
                             err);
    out->judge_s += weft__teach_since(&ns);
    if (!st) st = learn(&s, out, err);
    out->learn_s += weft__teach_since(&ns);
    if (!st) {
        weft__trainer_hold_to_base(s.t);
        st = weft__gate_measure(s.gate, s.t, NULL, &out->gate, err);
    }
    out->judge_s += weft__teach_since(&ns);
    if (!st && out->gate.passed && task->path) st = weft__teach_inner_write(task, s.t, out, err);
    weft__gate_close(&s.gate);
    weft__train_tail_free(&s.tail);
    weft__trainer_destroy(&s.t);
    return st;
}
