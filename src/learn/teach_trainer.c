// SPDX-License-Identifier: Apache-2.0
/* teach_trainer.c: see teach_trainer.h. */
#include "learn/teach_trainer.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/text.h"

enum { ROWS_LEAST = 256 };

/* Rank, scale and matrices. */
static weft_status shape_of(const weft__teach_lora *lora, weft__train_options *t, weft__strbuf *targets,
                            weft_error *err)
{
    const char *mine = lora->targets;
    char *of_like = NULL;
    float scale = lora->rank > 0 ? lora->alpha / (float)lora->rank : 1;
    weft_status st = WEFT_OK;
    t->lora_rank = lora->rank;
    if (lora->like) st = weft__train_adapter_options(lora->like, &t->lora_rank, &scale, &of_like, err);
    if (st) return st;
    if (lora->like) mine = of_like;
    if (t->lora_rank < lora->rank) t->lora_rank = lora->rank; /* it was compressed: what comes has room again */
    t->lora_rank += lora->more;
    t->lora_alpha = scale * (float)t->lora_rank;
    if (mine) weft__strbuf_printf(targets, "%s%s", mine, lora->beside && *mine ? "," : "");
    if (lora->beside) weft__strbuf_printf(targets, "%s", lora->beside);
    weft__free(of_like);
    t->lora_targets = targets->data;
    return targets->failed ? weft__teach_no_memory(err) : WEFT_OK;
}

weft_status weft__teach_trainer_open(const weft__source *base, const weft__teach_options *o,
                                     const weft__teach_lora *lora, weft__trainer **out, weft_error *err)
{
    weft__train_options t;
    weft__strbuf targets = {0};
    weft__train_options_default(&t);
    t.n_threads = o->n_threads;
    t.max_rows = lora->max_rows;
    t.seed = o->seed;
    t.schedule = lora->decay > 0 ? WEFT__TRAIN_LR_COSINE : WEFT__TRAIN_LR_CONSTANT;
    t.n_steps = lora->decay;
    t.lr_floor = 0.05f;
    t.lr = lora->lr;
    t.weight_decay = 0;
    t.l2_sp = lora->l2_sp;
    t.ewc = o->ewc;
    t.exact = 1; /* the steps are few, and a correction is to come out as it is asked for later */
    t.norm_cap = o->norm_cap;
    t.stop = o->stop;
    t.stop_arg = o->stop_arg;
    weft_status st = shape_of(lora, &t, &targets, err);
    if (!st) st = weft__trainer_create(base, &t, out, err);
    weft__strbuf_free(&targets);
    return st;
}

static int32_t longest(const weft__teach_text *texts, int32_t n, int32_t least)
{
    for (int32_t i = 0; i < n; i++)
        if (texts[i].n + WEFT__TEACH_ANSWER > least) least = texts[i].n + WEFT__TEACH_ANSWER;
    return least;
}

int32_t weft__teach_longest(const weft__teach_task *k)
{
    int32_t rows = ROWS_LEAST;
    for (int32_t i = 0; i < k->n_events; i++) {
        rows = longest(&k->events[i].correction, 1, rows);
        rows = longest(k->events[i].paraphrases, k->events[i].n_paraphrases, rows);
    }
    rows = longest(k->replay, k->n_replay, rows);
    rows = longest(k->neighbours, k->n_neighbours, rows);
    rows = longest(k->publics, k->n_publics, rows);
    rows = longest(k->judge->held_out, k->judge->n_held_out, rows);
    rows = longest(k->judge->neighbours, k->judge->n_neighbours, rows);
    return longest(k->judge->facts, k->judge->n_facts, rows);
}

double weft__teach_since(uint64_t *ns)
{
    const uint64_t now = weft__clock_ns();
    const double s = (double)(now - *ns) / 1e9;
    *ns = now;
    return s;
}
