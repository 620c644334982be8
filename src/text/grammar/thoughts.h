// SPDX-License-Identifier: Apache-2.0
/* thoughts.h: what a model may think before an answer that is held to something, as its template writes it
 * (text/answer/format.h), as rules. */
#ifndef WEFT_TEXT_GRAMMAR_THOUGHTS_H
#define WEFT_TEXT_GRAMMAR_THOUGHTS_H

#include "text/answer/format.h"
#include "text/grammar/grammar.h"

typedef enum weft__gram_thinking {
    WEFT__GRAM_THINKS_NOT,
    WEFT__GRAM_MAY_THINK,    /* it may begin to */
    WEFT__GRAM_THINKS,       /* it has begun to */
    WEFT__GRAM_ENDS_THINKING /* it has begun to, and is to end that at once */
} weft__gram_thinking;

/* Thoughts, their end, and the marks up to where a call may begin: an expression of g, which has its vocabulary. For a
 * style with reasoning; not for THINKS_NOT. */
int32_t weft__gram_thoughts(weft__gram *g, const weft__answer_style *style, weft__gram_thinking thinking);
/* 1: something may stand before the form of an answer. */
int weft__gram_has_lead(const weft__answer_style *style, weft__gram_thinking thinking);
/* A text of the rule `form`, behind the mark with which the format's text begins. */
int32_t weft__gram_led(weft__gram *g, const weft__answer_style *style, int32_t form);
/* The rule of an answer that is one of the rule `form` behind what may stand before it: thoughts, and the mark with
 * which the format's text begins. */
int32_t weft__gram_behind_thoughts(weft__gram *g, const weft__answer_style *style, weft__gram_thinking thinking,
                                   int32_t form);

#endif
