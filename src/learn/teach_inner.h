// SPDX-License-Identifier: Apache-2.0
/* teach_inner.h: the inside of one attempt to learn (teach.h), for teach.c, which learns facts, teach_speak.c, which
 * learns a style, and instant.c, which makes one step. */
#ifndef WEFT_LEARN_TEACH_INNER_H
#define WEFT_LEARN_TEACH_INNER_H

#include "learn/teach_questions.h"
#include "learn/teach_style.h"
#include "learn/teach_trainer.h"

typedef struct weft__teach_inner {
    const weft__teach_task *task;
    const weft__teach_options *o;
    weft__trainer *t;
    weft__teach_texts taught;  /* corrections and the paraphrases that are learned, with answers */
    weft__teach_texts kept;    /* replay, then neighbours, with answers */
    weft__teach_texts held;    /* of a style: questions that the model made up, for the gate alone, with its answers */
    weft__teach_text *asked;   /* the task's that the gate asks, and these: borrowed */
    weft__gate_material judge; /* the task's; of a style with all these */
    uint8_t **differs;         /* [taught] of each token of the answer: is it new? */
    weft__teach_rows rows;
    float *weights; /* of an answer */
    size_t weights_room;
    /* [kept] in which they have their turns: the nearest (n_near), what is replayed where that has its own
     * (n_replayed), then the others */
    int32_t *order;
    size_t n_near, n_replayed, turn, replay_turn, far_turn, public_turn;
    int32_t *likeliest;
    float *logp;
    size_t likeliest_room, logp_room;
    float *began, *came;     /* parameters before the first step and behind the last, one after the other */
    weft__teach_style style; /* of none (n 0), facts are learned */
    weft__teach_texts said;  /* kept answers, said in the style */
} weft__teach_inner;

/* ---- teach.c ---- */
/* A trainer by the options, or by those of a style, that has made no step. */
weft_status weft__teach_inner_open(weft__teach_inner *s, weft_error *err);
/* What is taught and what is kept, by the trainer as it was opened; of a style with what the model makes up, of which
 * s->judge asks some. weft__teach_inner_drop frees what came, in any case. */
weft_status weft__teach_inner_gather(weft__teach_inner *s, weft_error *err);
void weft__teach_inner_drop(weft__teach_inner *s);
/* Room for the weights of n tokens; NULL: no memory. */
float *weft__teach_inner_weights(weft__teach_inner *s, int32_t n);
/* Appends public texts to the rows, that are to stay as the base says them. 0: no memory. */
int weft__teach_inner_put_publics(weft__teach_inner *s, int32_t rows_most);
/* Adds the rows' gradient; nothing of none. kept: they are held to what the parent says, and to another model's words
 * where there is one. */
weft_status weft__teach_inner_add(weft__teach_inner *s, int kept, weft_error *err);
/* Adds what is taught, in as many batches as it takes; *holds: all of it comes out. */
weft_status weft__teach_inner_add_taught(weft__teach_inner *s, int32_t rows_most, int *holds, weft_error *err);
/* Did the first n texts of the batch that was just passed come out at this log p? likeliest and logp have room. */
int weft__teach_inner_came_out(weft__teach_inner *s, int32_t n, float at);
/* Writes what the trainer has to the task's path; out->id: its content's. */
weft_status weft__teach_inner_write(const weft__teach_task *task, weft__trainer *t, weft__teach_report *out,
                                    weft_error *err);

/* ---- teach_more.c ---- */
/* Keeps more than the task gives: questions that the model makes up, with its answers as it is. Of a style it holds
 * some of them out, which s->judge asks then. */
weft_status weft__teach_keep_more(weft__teach_inner *s, weft_error *err);

/* ---- teach_hold.c ---- */
/* Appends what was asked in kept[0 .. first) as it is asked of others, without an answer: style.others such prompts at
 * most, that are not kept, and stand in none of asked[0 .. n_asked). Of whom something is asked tell any two that are
 * kept, the one among these, whose questions differ in one place, where they are answered alike, and the answer names
 * whom the question does. */
weft_status weft__teach_ask_others(weft__teach_inner *s, size_t first, const weft__teach_asked *asked, size_t n_asked,
                                   weft__teach_texts *out, weft_error *err);
/* Of kept[from ..] style.held at most become the gate's, which s->judge asks then, and are no longer kept: what was
 * asked in kept[0 .. first), of another, likewise; where there is room for the style, and the model is sure. What it is
 * not sure of it does not know. */
weft_status weft__teach_hold_out(weft__teach_inner *s, size_t first, size_t from, weft_error *err);

/* ---- teach_speak.c ---- */
/* A style is learned, beside other answers that are said in it. */
weft_status weft__teach_speak(weft__teach_inner *s, weft__teach_report *out, weft_error *err);

#endif
