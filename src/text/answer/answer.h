// SPDX-License-Identifier: Apache-2.0
/* answer.h: an answer as it grows, taken apart into text, reasoning and calls by the style of its template (format.h).
 *
 * Invariant: what is told, joined by kind and place, does not depend on how the answer was cut, and every byte of it is
 * in a part, in a marker or white space beside one. Work and memory grow with the answer, whatever it has in it. One
 * thread per object. */
#ifndef WEFT_TEXT_ANSWER_ANSWER_H
#define WEFT_TEXT_ANSWER_ANSWER_H

#include "base/json.h"
#include "text/answer/format.h"
#include "weft/text.h"

typedef struct weft__answer weft__answer;

typedef struct weft__answer_params {
    weft__answer_style style;
    int calls, reasoning, form; /* as weft_chat_parser_params */
    const char *prompt;
    size_t n_prompt;
    size_t n_begun; /* bytes at the prompt's end that the answer goes on from */
} weft__answer_params;

/* A part, and the bytes of the answer that it was made of. Non-zero: stop. */
typedef int weft__answer_tell(void *arg, const weft_chat_part *part, size_t from, size_t to);

/* Takes over tools (an array as OpenAI has it, or NULL) in any case. Fails with WEFT_NO_MEMORY. */
weft_status weft__answer_create(const weft__answer_params *params, weft__json *tools, weft__answer **out,
                                weft_error *err);
/* Whether a prompt has begun the reasoning: it ends with what begins it, or what the answer goes on from has begun it
 * and not ended it. */
int weft__answer_begun(const weft__answer_params *params);
void weft__answer_destroy(weft__answer **a);
/* What follows now is reasoning. */
int weft__answer_reasons(const weft__answer *a);
/* What is pushed from now on ends the reasoning. */
void weft__answer_end_reasoning(weft__answer *a);
/* Whether a special token that is spelled so is part of a marker. */
int weft__answer_has(const weft__answer *a, const char *spelled, size_t n);
/* As weft_chat_parser_push and weft_chat_parser_finish. */
weft_status weft__answer_push(weft__answer *a, const char *text, size_t n, weft__answer_tell *tell, void *arg,
                              weft_error *err);
weft_status weft__answer_finish(weft__answer *a, weft__answer_tell *tell, void *arg, weft_error *err);

#endif
