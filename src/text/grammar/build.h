// SPDX-License-Identifier: Apache-2.0
/* build.h: short names for what the rules of a grammar `g` are made of, for the files that build grammars only. */
#ifndef WEFT_TEXT_GRAMMAR_BUILD_H
#define WEFT_TEXT_GRAMMAR_BUILD_H

#include "text/grammar/grammar.h"

#define GRAM_TEXT(literal) weft__gram_text(g, literal, sizeof(literal) - 1)
#define GRAM_REF(rule) weft__gram_ref(g, rule)
#define GRAM_SEQ(...)                                                                                                  \
    weft__gram_seq(g, (const int32_t[]){__VA_ARGS__}, sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))
#define GRAM_ALT(...)                                                                                                  \
    weft__gram_alt(g, (const int32_t[]){__VA_ARGS__}, sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))
#define GRAM_CLASS(...)                                                                                                \
    weft__gram_class(g, (const weft__gram_range[]){__VA_ARGS__},                                                       \
                     sizeof((const weft__gram_range[]){__VA_ARGS__}) / sizeof(weft__gram_range), 0)
#define GRAM_REPEAT(min, max, item) weft__gram_repeat(g, item, min, max)
#define GRAM_OPTIONAL(item) weft__gram_repeat(g, item, 0, 1)
#define GRAM_ANY_NUMBER(item) weft__gram_repeat(g, item, 0, UINT32_MAX)
#define GRAM_RULE(name) weft__gram_rule(g, name, sizeof(name) - 1)
#define GRAM_DIGITS(min, max) GRAM_REPEAT(min, max, GRAM_CLASS({'0', '9'}))
#define GRAM_HEX GRAM_CLASS({'0', '9'}, {'A', 'F'}, {'a', 'f'})

#endif
