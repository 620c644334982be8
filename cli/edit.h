// SPDX-License-Identifier: Apache-2.0
/* edit.h: a text that is being typed: what keys do to it. Knows no terminal. UTF-8; moves by characters as a reader
 * sees them. One thread. */
#ifndef WEFT_CLI_EDIT_H
#define WEFT_CLI_EDIT_H

#include "base/text.h"

/* Bytes that a text may have. */
#define EDIT_MAX ((size_t)16 << 20)

typedef struct edit {
    weft__strbuf text;
    size_t at;           /* byte at which the next character is put */
    weft__strbuf killed; /* what was cut out last */
} edit;

void edit_free(edit *e);
void edit_set(edit *e, const char *text, size_t n); /* the cursor stands behind it */
/* 1, or 0 when it would be too long or memory ran out: then nothing of it is there. */
int edit_insert(edit *e, const char *text, size_t n);

/* Places, from `at` on: of the character before and behind, the beginning and end of the word and of the line. */
size_t edit_left(const edit *e, size_t at);
size_t edit_right(const edit *e, size_t at);
size_t edit_word_left(const edit *e, size_t at);
size_t edit_word_right(const edit *e, size_t at);
size_t edit_line_start(const edit *e, size_t at);
size_t edit_line_end(const edit *e, size_t at);
/* The same place in the line above or below; `at` itself where there is none. */
size_t edit_above(const edit *e, size_t at);
size_t edit_below(const edit *e, size_t at);

/* Takes out what is between the cursor and another place; `keep`: to be put in again by edit_yank. */
void edit_cut(edit *e, size_t other, int keep);
void edit_yank(edit *e);
void edit_swap(edit *e); /* the characters before and behind the cursor */

#endif
