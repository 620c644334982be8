// SPDX-License-Identifier: Apache-2.0
/* loose.h: values as Python or Gemma spell them, made into JSON.
 *
 * Beside JSON: True, False, None; strings between ' or ", between <|"|>; tuples; keys without quotes; name=value. A
 * quote ends a string only where what may follow a value follows, so that templates which do not escape quotes within
 * strings are read as far as that can be. Stateless but for the place in a growing text. */
#ifndef WEFT_TEXT_ANSWER_LOOSE_H
#define WEFT_TEXT_ANSWER_LOOSE_H

#include <stddef.h>

#include "base/text.h"

/* The place in a growing text; zero at its first bracket. */
typedef struct weft__answer_loose {
    size_t at;
    int depth;
    char quote; /* of the string it stands in, '|' for <|"|>; 0: in none */
} weft__answer_loose;

/* Goes on in s[0..n), all of the text so far, which begins with a bracket. 1: its bracket is closed before byte p->at;
 * 0: it wants more; -1: it is not closed as it was opened, or nests too deep. */
int weft__answer_loose_extent(weft__answer_loose *p, const char *s, size_t n);

/* Appends the value s[0..n), white space around it allowed, as JSON. 0: it is none; what was appended by then is
 * left. */
int weft__answer_loose_value(weft__strbuf *out, const char *s, size_t n);

/* The same of what stands in brackets, brackets included: (key=value, ...), {key: value, ...}. An object. */
int weft__answer_loose_members(weft__strbuf *out, const char *s, size_t n);

#endif
