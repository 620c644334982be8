// SPDX-License-Identifier: Apache-2.0
/* contest.c: see contest.h. */
#include "learn/contest.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "learn/distil.h"
#include "learn/teach_inner.h"

typedef struct contest {
    const weft__contest_task *task;
    weft__teach_style style;    /* that the corrections have in common; of none (n 0), they are facts */
    weft__teach_inner by_style; /* of one: what its gate asks, once it was asked for */
    weft__contest_entry entry[WEFT__CONTEST_MOST];
    int32_t n, written; /* written: whose the file is; -1: nobody's */
} contest;

/* ---- asking ---- */

/* What the gate of a style asks, as of one that learned it in the first attempt. */
static weft_status gather_by_style(contest *c, weft__trainer *t, weft__gate_material *out, weft_error *err)
{
    weft__teach_inner *s = &c->by_style;
    weft_status st = WEFT_OK;
    if (!s->task) {
        *s = (weft__teach_inner){.task = &c->task->teach, .o = c->task->options, .t = t, .style = c->style};
        st = weft__teach_inner_gather(s, err);
        s->t = NULL;
    }
    *out = s->judge;
    return st;
}

/* As weft__teach asks one that learned from the base: what is to stay is what the base says. Whether this one learned
 * facts or a style it does not tell: it is asked for the one first, then for the other. */
static weft_status ask_gate(contest *c, const weft__adapt *a, weft__gate_report *out, weft_error *err)
{
    const weft__teach_task *k = &c->task->teach;
    weft__gate_material m = *k->judge, of_style = {0};
    weft__trainer *t = NULL;
    weft__gate *gate = NULL, *styled = NULL;
    m.goes_on = c->task->now_goes_on;
    const weft__teach_lora lora = {.like = a, .lr = c->task->options->lr, .max_rows = weft__teach_longest(k)};
    weft_status st = weft__teach_trainer_open(k->base, c->task->options, &lora, &t, err);
    if (!st) st = weft__gate_open(t, k->tok, &m, k->events, k->n_events, WEFT__TEACH_ANSWER, &gate, err);
    if (!st && c->style.n) st = gather_by_style(c, t, &of_style, err);
    of_style.goes_on = m.goes_on;
    if (!st && c->style.n)
        st = weft__gate_open(t, k->tok, &of_style, k->events, k->n_events, WEFT__TEACH_ANSWER, &styled, err);
    if (!st) st = weft__trainer_start_adapter(t, a, err);
    if (!st) {
        weft__trainer_hold_to_base(t);
        st = weft__gate_measure(gate, t, NULL, out, err);
    }
    if (!st && !out->passed && styled) st = weft__gate_measure(styled, t, &c->style, out, err);
    weft__gate_close(&gate);
    weft__gate_close(&styled);
    weft__trainer_destroy(&t);
    return st;
}

/* ---- who takes part ---- */

static weft__contest_entry *enter(contest *c, const char *by)
{
    weft__contest_entry *e = &c->entry[c->n++];
    *e = (weft__contest_entry){.by = by, .scale = 1, .retry = -1};
    return e;
}

static weft_status enter_learned(contest *c, const char *by, const weft__teach_task *task, const weft__teach_options *o,
                                 weft_error *err)
{
    weft__teach_report r;
    weft_status st = weft__teach(task, o, &r, err);
    if (st) return st;
    weft__contest_entry *e = enter(c, by);
    e->gate = r.gate;
    e->scale = r.scale;
    e->n_steps = r.n_steps;
    if (!r.gate.passed) return WEFT_OK;
    c->written = c->n - 1;
    return weft__adapt_open(c->task->teach.path, NULL, UINT64_MAX, &e->adapter, err);
}

/* What cannot be made keeps the others from nothing. */
static weft_status take_no_part(const char *by, weft_status st, weft_error *err)
{
    if (!st || st == WEFT_NO_MEMORY || st == WEFT_CANCELLED || st == WEFT_IO) return st;
    weft__log(WEFT__LOG_WARN, "a consolidation goes without one that is %s: %s", by, err ? err->message : "");
    if (err) *err = (weft_error){0};
    return WEFT_OK;
}

static int32_t rank_of(const weft__adapt *a)
{
    int32_t most = 0;
    for (int32_t i = 0; i < a->n_pairs; i++) most = a->pairs[i].rank > most ? a->pairs[i].rank : most;
    return most;
}

/* To the recipe's rank, where it has more, else to half of its own; and halves of that, as long as the gate lets them
 * pass: what one rank no longer holds, no smaller one does. */
static weft_status enter_compressed(contest *c, weft_error *err)
{
    const weft__adapt *now = c->task->now;
    const int32_t own = rank_of(now), usual = c->task->options->rank;
    weft_status st = WEFT_OK;
    for (int32_t rank = own > usual ? usual : own / 2, passed = 1; !st && passed && rank > 0; rank /= 2) {
        const weft__adapt_cut cut = {.rank = rank, .keep = 1};
        if (c->n == WEFT__CONTEST_MOST) break;
        weft__contest_entry *e = enter(c, "compressed");
        st = weft__adapt_compress(now, &cut, &e->adapter, NULL, err);
        if (st) {
            c->n--;
            return take_no_part("compressed", st, err);
        }
        e->rank = rank_of(e->adapter);
        st = ask_gate(c, e->adapter, &e->gate, err);
        passed = e->gate.passed;
    }
    return st;
}

static weft_status enter_distilled(contest *c, weft_error *err)
{
    const weft__contest_task *k = c->task;
    const int32_t long_one = weft__teach_longest(&k->teach);
    weft__teach_options o = *k->options;
    weft__distil *d = NULL;
    weft_status st = weft__distil_open(k->teacher, k->pupil, long_one,
                                       long_one > WEFT__TEACH_ROWS ? long_one : WEFT__TEACH_ROWS, o.n_threads, &d, err);
    o.soften = weft__distil_soften;
    o.soften_arg = d;
    if (!st) st = enter_learned(c, "distilled", &k->teach, &o, err);
    weft__distil_close(&d);
    return take_no_part("distilled", st, err);
}

/* All that was refused may be too much at once: what is wrong with one of them is not held against those of the other
 * tasks. */
static weft_status enter_retried(contest *c, weft_error *err)
{
    const weft__contest_task *k = c->task;
    weft_status st = WEFT_OK;
    for (int32_t i = 0; !st && i < k->n_retry; i++) {
        st = enter_learned(c, "retried", &k->retry[i], k->options, err);
        if (st) break;
        c->entry[c->n - 1].retry = i;
        if (!i && c->entry[c->n - 1].gate.passed) break;
    }
    return st;
}

static weft_status enter_all(contest *c, weft_error *err)
{
    const weft__contest_task *k = c->task;
    weft_status st = WEFT_OK;
    if (k->now) st = ask_gate(c, k->now, &enter(c, "current")->gate, err);
    if (!st && k->teach.n_events) st = enter_learned(c, "retrained", &k->teach, k->options, err);
    if (!st && k->teacher && k->teach.n_events && k->teach.n_replay + k->teach.n_neighbours)
        st = enter_distilled(c, err);
    if (!st) st = enter_retried(c, err);
    if (!st && k->now) st = enter_compressed(c, err);
    return st;
}

/* ---- the outcome ---- */

static void say_entry(const weft__contest_entry *e, char *out, size_t size)
{
    char rank[24] = "";
    if (e->rank) snprintf(rank, sizeof rank, " to rank %d", e->rank);
    if (!e->gate.passed) snprintf(out, size, "%s%s: %s", e->by, rank, weft__gate_reason_name(e->gate.reason));
    else
        snprintf(out, size, "%s%s: %d of %d, KL %.4g", e->by, rank, e->gate.corrections, e->gate.n_corrections,
                 e->gate.kl);
}

/* The best first, with what it is better by than the next best; then the others in their order. */
static void say_all(const contest *c, int32_t best, char out[WEFT__CONTEST_WHY])
{
    const char *by = "";
    int32_t next = -1;
    for (int32_t i = 0; i < c->n; i++)
        if (i != best && (next < 0 || weft__contest_compare(&c->entry[i].gate, &c->entry[next].gate, NULL) > 0))
            next = i;
    if (next >= 0) weft__contest_compare(&c->entry[best].gate, &c->entry[next].gate, &by);
    int n = snprintf(out, WEFT__CONTEST_WHY, "by %s: ", *by ? by : "none");
    for (int32_t i = -1; i < c->n && n < WEFT__CONTEST_WHY; i++) {
        char text[96];
        if (i == best) continue;
        say_entry(&c->entry[i < 0 ? best : i], text, sizeof text);
        n += snprintf(out + n, (size_t)(WEFT__CONTEST_WHY - n), "%s%s", i < 0 ? "" : "; ", text);
    }
}

static void refuse_best(weft__contest_entry *e)
{
    if (e->gate.passed) e->gate.reason = WEFT__GATE_NOT_BETTER;
    e->gate.passed = 0;
}

static weft_status settle(contest *c, weft__contest_result *out, weft_error *err)
{
    const int has_now = c->task->now != NULL;
    const char *path = c->task->teach.path;
    int32_t best = weft__contest_best(c->entry, c->n);
    weft_status st = WEFT_OK;
    say_all(c, best, out->why);
    out->won = !(has_now && best == 0) && c->entry[best].gate.passed;
    if (!out->won) {
        best = has_now + weft__contest_best(c->entry + has_now, c->n - has_now);
        if (has_now) refuse_best(&c->entry[best]);
    } else if (best != c->written)
        st = weft__adapt_write_gguf(c->entry[best].adapter, c->entry[best].adapter->arch, path, err);
    c->written = st || !out->won ? c->written : best;
    out->best = c->entry[best];
    if (out->won) out->id = out->best.adapter->id;
    out->best.adapter = NULL;
    return st;
}

weft_status weft__contest_hold(const weft__contest_task *task, weft__contest_result *out, weft_error *err)
{
    contest c = {.task = task, .written = -1};
    const weft__teach_task *k = &task->teach;
    weft_status st = WEFT_OK;
    *out = (weft__contest_result){0};
    if (task->options->styles && k->n_neighbours >= WEFT__GATE_STYLE_LEAST)
        st = weft__teach_style_find(k->tok, k->events, k->n_events, task->options->stop, task->options->stop_arg,
                                    &c.style, err);
    if (!st) st = enter_all(&c, err);
    if (!st) st = settle(&c, out, err);
    if ((st || !out->won) && c.written >= 0) unlink(task->teach.path);
    for (int32_t i = 0; i < c.n; i++) weft__adapt_close(&c.entry[i].adapter);
    weft__teach_inner_drop(&c.by_style);
    weft__teach_style_free(&c.style);
    return st;
}
