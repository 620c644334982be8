// SPDX-License-Identifier: Apache-2.0
/* teach.h: from corrections to an adapter: what a tenant said was wrong becomes right, and as little else as can be.
 *
 * Corrections are learned beside neighbours: questions of the same kind about other things, whose answers are to stay
 * as they are (contrast). Learning ends as soon as the corrections come out with a margin; then the change is taken
 * back along the way it came, as far as they still come out (the scale is backtracked). Both follow the pilot of
 * docs/learning.md; what is learned goes through the gate (gate.h) before anybody is served with it.
 *
 * Invariant: the adapter is a function of the base, the adapter before it, the task, the options and the kind of
 * processor: no clock, no thread count and nothing that was learned for others shows, so that a log of events that is
 * taught again gives every content id again. One thread calls; the trainer has its own. */
#ifndef WEFT_LEARN_TEACH_H
#define WEFT_LEARN_TEACH_H

#include "learn/gate.h"

typedef struct weft__teach_options {
    int32_t n_threads; /* 0: one per core */
    /* LoRA of the first version; a later one goes on with what its parent has */
    int32_t rank;
    float alpha;
    const char *targets; /* as weft__train_options has them */
    float lr;
    int32_t most_steps;
    /* Of a step, in turns: neighbours of the `nearest` whose questions are most like what is taught (teach_near.h);
     * likewise of the other neighbours; and of what is replayed (replay_per_step 0: that has its turns among the
     * others) */
    int32_t per_step, far_per_step, replay_per_step, nearest;
    /* Of questions that the model makes up, as neighbours (teach_more.c): of the first attempt, and how many more of
     * each that follows one in which too much changed */
    int32_t draws, more_draws;
    int32_t public_per_step; /* public texts of a step, in turns, which are only held to what the parent says */
    /* What a token weighs: of a correction, where it differs from the wrong answer, and elsewhere; of the wrong
     * answer, where it differs (below 0: it becomes less likely; 0: not learned); of neighbours; of replay */
    float differs, same, wrong, neighbour, replay;
    float anchor; /* of KL(parent || this) on neighbours' tokens; 0: none */
    /* log p that the least likely token of every correction must have: to stop, and when the scale is taken back */
    float stop_at, hold_at;
    float norm_cap, l2_sp; /* as weft__train_options has them; l2_sp: of a version that goes on from another */
    float ewc; /* likewise: that what is replayed stays as that one has it, by what its answers hang on; 0: none */
    /* Corrections that have a style in common (teach_style.h) are learned by another recipe, where there is no parent:
     * rank, targets and lr of its own; other answers are said in the style (teach_rewrite.h; where that is no way for
     * most of them, by the model after `first_steps` of the corrections alone); then `steps` at most from the
     * beginning, each with the corrections, per_step of these answers, which weigh as neighbours, and public texts,
     * until the corrections come out at stop_at and these at said_at. styles 0: all are facts */
    int styles;
    struct {
        int32_t rank;
        const char *targets;
        float lr;
        int32_t draws, questions; /* that the model makes up, and how many of these are kept (teach_questions.h) */
        int32_t others, held;     /* asked before, that are asked of others, and how many of these the gate asks: they
                                 are not learned (teach_hold.c) */
        float sure_at;            /* log p that each token of such an answer has at least */
        float temperature;        /* of these */
        int32_t first_steps, steps, per_step;
        float stop_at, said_at;
    } style;
    /* What the gate refuses is learned anew so often in all, by a recipe that answers the reason: where too much
     * changed, more neighbours, made up ones among them, hold harder, and less is asked for; where too little did, it
     * goes on for longer */
    int32_t attempts;
    int32_t instant;        /* above 0: in one step, of this rank (instant.h), an experiment; 0: as above */
    uint64_t seed;          /* of A, and of the turns */
    int (*stop)(void *arg); /* as weft__train_options has it */
    void *stop_arg;
    /* NULL, or asked with each batch of what is kept, whose targets it may change (distil.h) */
    weft_status (*soften)(void *arg, weft__train_batch *b, weft_error *err);
    void *soften_arg;
} weft__teach_options;
void weft__teach_options_default(weft__teach_options *o);

typedef struct weft__teach_task {
    const weft__source *base;
    const weft__tok *tok;
    const weft__adapt *parent; /* the tenant's adapter now, or NULL */
    const weft__teach_event *events;
    int32_t n_events;
    const weft__teach_text *replay; /* what was accepted before, with its answers */
    int32_t n_replay;
    const weft__teach_text *neighbours; /* those without an answer have the parent's */
    int32_t n_neighbours;
    /* Texts that are nobody's and have nothing to do with it, n_prompt 1: what the model says of them is to stay.
     * Others than the gate's probe */
    const weft__teach_text *publics;
    int32_t n_publics;
    const weft__gate_material *judge; /* what the gate looks at beside all these */
    const char *path, *name;          /* where the adapter is written, and what its file calls it */
} weft__teach_task;

typedef struct weft__teach_report {
    int32_t n_attempts, n_steps; /* steps and scale of the last attempt */
    float scale;                 /* share of the way that was kept */
    int32_t n_style;             /* corrections that were learned as a style; 0: as facts */
    int came_out;                /* the corrections did, within most_steps */
    weft__adapt_id id;           /* of what was written */
    weft__gate_report gate;
    double learn_s, scale_s, judge_s; /* for people; nothing depends on it */
    double pass_s, step_s;            /* of learn_s, in one step (instant.h) */
} weft__teach_report;

/* The adapter is written where the gate lets it pass, and only then (out->gate.passed). Fails with WEFT_ARGUMENT (no
 * event, a text without an answer), WEFT_LIMIT (a text that is too long), and as the trainer does; nothing is written
 * then. */
weft_status weft__teach(const weft__teach_task *task, const weft__teach_options *o, weft__teach_report *out,
                        weft_error *err);

#endif
