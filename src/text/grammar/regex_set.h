// SPDX-License-Identifier: Apache-2.0
/* regex_set.h: sets of characters that an expression names, as rules over plain text or over the inside of a JSON
 * string. For regex*.c. */
#ifndef WEFT_TEXT_GRAMMAR_REGEX_SET_H
#define WEFT_TEXT_GRAMMAR_REGEX_SET_H

#include "text/grammar/grammar.h"

enum { WEFT__GRAM_REGEX_RANGES = 256 };

typedef struct weft__gram_regex_set {
    weft__gram_range r[WEFT__GRAM_REGEX_RANGES];
    size_t n;
} weft__gram_regex_set;

/* States of one character of the set, about. flags: weft__gram_regex's. */
uint32_t weft__gram_regex_set_size(unsigned flags, const weft__gram_regex_set *x);
/* A node of one character of the set; -1: failed, with *why where the set has none that can be. */
int32_t weft__gram_regex_set_emit(weft__gram *g, const weft__gram_regex_set *x, unsigned flags, const char **why);

#endif
