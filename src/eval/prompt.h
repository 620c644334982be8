// SPDX-License-Identifier: Apache-2.0
/* prompt.h: what a model is asked for a document: description, examples, the question, and what follows it, put
 * together as lm-evaluation-harness does. One thread per object. */
#ifndef WEFT_EVAL_PROMPT_H
#define WEFT_EVAL_PROMPT_H

#include "eval/python_random.h"
#include "eval/task.h"
#include "weft/weft.h"

/* How examples are drawn; documents are asked for in order, none left out. */
typedef struct weft__eval_shots {
    const weft__eval_task *task;
    weft__eval_random random;
    size_t *order; /* [n_order] those of the document at hand */
    size_t n_order;
} weft__eval_shots;

weft_status weft__eval_shots_begin(weft__eval_shots *s, const weft__eval_task *task, uint64_t seed, weft_error *err);
void weft__eval_shots_free(weft__eval_shots *s);
/* The examples of document i, which is the next: s->order. */
weft_status weft__eval_shots_next(weft__eval_shots *s, size_t i, weft_error *err);

/* One question. */
typedef struct weft__eval_ask {
    weft__strbuf context, continuation; /* continuation: of what is scored */
    weft_chat_prompt *prompt;           /* of a conversation; context is its text. NULL: none */
} weft__eval_ask;

typedef struct weft__eval_asks {
    weft__eval_ask *items; /* [n] one, or one per choice */
    size_t n;
} weft__eval_asks;

typedef struct weft__eval_style {
    const weft_chat *chat; /* prompts are conversations in its template; NULL: plain text */
    int multiturn;         /* each example is a turn of the user's and one of the assistant's */
    const char *system;    /* before the description; NULL: nothing */
} weft__eval_style;

/* Of document i, with the examples of `shots`. Messages begin "document N: ". */
weft_status weft__eval_ask_make(const weft__eval_shots *shots, const weft__eval_style *style, size_t i,
                                weft__eval_asks *out, weft_error *err);
void weft__eval_asks_free(weft__eval_asks *asks);

/* 1 where the text ends (begins) with white space, as Python has it. */
int weft__eval_ends_blank(const char *s, size_t n);
int weft__eval_begins_blank(const char *s, size_t n);
/* Bytes of s[0..n) without white space at its end. */
size_t weft__eval_without_blanks(const char *s, size_t n);

#endif
