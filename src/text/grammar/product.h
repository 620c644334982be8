// SPDX-License-Identifier: Apache-2.0
/* product.h: languages without calls, and what several of them have in common; for builders that hold one text to
 * several rules at once. One thread. */
#ifndef WEFT_TEXT_GRAMMAR_PRODUCT_H
#define WEFT_TEXT_GRAMMAR_PRODUCT_H

#include "text/grammar/grammar.h"

enum {
    WEFT__GRAM_MAX_PRODUCT = 1 << 14,   /* states */
    WEFT__GRAM_ALL_PRODUCTS = 1 << 17,  /* of all products of a grammar */
    WEFT__GRAM_LANGUAGE_WORK = 1 << 21, /* that may be spent on the languages of a grammar, together */
    WEFT__GRAM_MAX_PATTERNS = 5         /* of patternProperties */
};

/* The language of `root` as a deterministic automaton; takes from *work. Fails as weft__gram_compile does, and with
 * WEFT_LIMIT where it has calls, is too ambiguous, or needs more than *work. */
weft_status weft__gram_language(weft__gram *rules, int32_t root, size_t *work, weft__gram_automaton **out,
                                weft_error *err);
/* 1 when it has the text. */
int weft__gram_language_has(const weft__gram_automaton *a, const char *s, size_t n);

typedef struct weft__gram_part {
    const weft__gram_automaton *language;
    int lacked; /* 1: the text is not of this language */
} weft__gram_part;

enum { WEFT__GRAM_NO_TEXT = -1, WEFT__GRAM_TOO_MANY = -2 };
/* The texts that are of each part, or lacked by it. Less than 0: there is no such text, or g has failed; or too many
 * states would be needed, for this or all products of g. */
int32_t weft__gram_common(weft__gram *g, const weft__gram_part *parts, size_t n);
/* The same of at most so many characters; `characters` is the language of any number of them, and complete behind
 * each. */
int32_t weft__gram_counted(weft__gram *g, const weft__gram_part *parts, size_t n,
                           const weft__gram_automaton *characters, uint32_t most);

#endif
