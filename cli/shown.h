// SPDX-License-Identifier: Apache-2.0
/* shown.h: text of a model on its way to people. On a terminal, lines are broken between words and nothing of the text
 * can steer it; anywhere else it is written as it is. One thread. */
#ifndef WEFT_CLI_SHOWN_H
#define WEFT_CLI_SHOWN_H

#include <stdio.h>

#include "base/text.h"

typedef struct shown {
    FILE *f;
    int is_terminal;
    int column;                           /* where the next character goes, 0: at the beginning of a line */
    weft__strbuf word;                    /* not yet written: it may have to stand on the next line */
    int word_width, word_is_wide, joined; /* joined: the next character belongs to the one before */
    int returned;                         /* a carriage return waits: with a newline behind it, it is nothing */
    char part[4];                         /* of a character whose other bytes are yet to come */
    size_t n_part;
} shown;

void shown_begin(shown *s, FILE *f);
/* Writes text[0..n), but for a last word that may go on. 0, or 1 when it could not be written. Also a generate_sink, of
 * a shown *. */
int shown_put(void *s, const char *text, size_t n);
/* Writes what waits, and frees it; the line goes on. */
void shown_end(shown *s);

#endif
