// SPDX-License-Identifier: Apache-2.0
/* lark_parts.h: what the reader of Lark-like EBNF and that of its terminals share. */
#ifndef WEFT_TEXT_GRAMMAR_LARK_PARTS_H
#define WEFT_TEXT_GRAMMAR_LARK_PARTS_H

#include "text/grammar/grammar.h"

typedef struct weft__gram_lark {
    weft__gram *g;
    const char *s, *end;
    int line, depth, in_terminal;
    int32_t ignored; /* the rule of what may stand behind a terminal */
    weft__gram_list ignores;
    weft__gram_list items; /* expressions of the sequences and choices being read, one after the other */
} weft__gram_lark;

int weft__gram_lark_failed(const weft__gram_lark *r);
/* Says what is wrong, and what stands there. Returns -1. */
int32_t weft__gram_lark_fail(weft__gram_lark *r, weft_status status, const char *what);

/* "text", "text"i or "a".."z", which begins at r->s. */
int32_t weft__gram_lark_string(weft__gram_lark *r);
/* /expression/ with its flags. */
int32_t weft__gram_lark_regex(weft__gram_lark *r);
/* 1 when the library `common` has a terminal of that name. */
int weft__gram_lark_has_common(const char *name, size_t n);
/* Fails, unless something failed before, where one of them is used, and neither defined nor imported. */
void weft__gram_lark_check_common(weft__gram_lark *r);
/* Defines `rule` as that terminal, once. */
void weft__gram_lark_common(weft__gram_lark *r, const char *name, size_t n, int32_t rule);

#endif
