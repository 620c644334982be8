// SPDX-License-Identifier: Apache-2.0
/* spans.h: what text a state of the automaton takes whatever it is: the inside of strings, above all.
 *
 * From a state with classes C and n, every text of at most n characters of C can be read, a character that is cut off
 * at its end included; and while it is read nothing is called, and a rule that others call does not come to an end. So
 * a walk may allow what is made of such text without looking at each byte. What is said is a lower bound. */
#ifndef WEFT_TEXT_SPANS_H
#define WEFT_TEXT_SPANS_H

#include "text/grammar/parts.h"
#include "text/grammar/token_classes.h"

typedef struct weft__gram_span {
    uint64_t classes; /* token_classes.h; never the broken one */
    uint64_t reads;   /* of which it reads a character, or begins to; the broken one in any case */
    uint8_t n;        /* characters; WEFT__GRAM_ANY_LENGTH: as many as there are; 0: nothing is known */
    uint8_t ends;     /* 1: behind n of them none of these classes can follow */
} weft__gram_span;

/* [n_states], for weft__free; NULL when there is no memory. Time grows as states and edges do. */
weft__gram_span *weft__gram_spans_make(const weft__gram_automaton *a);
/* 1: some rule calls this one. */
int weft__gram_is_called(const weft__gram_automaton *a, int32_t rule);

#endif
