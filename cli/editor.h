// SPDX-License-Identifier: Apache-2.0
/* editor.h: a line, or several, typed at a terminal with the keys that people know from shells. One thread; one per
 * process (tty.h). */
#ifndef WEFT_CLI_EDITOR_H
#define WEFT_CLI_EDITOR_H

#include "draw.h"
#include "edit.h"
#include "history.h"
#include "keys.h"

/* What may stand in place of line[from..at): texts, each with its end. */
typedef struct completions {
    size_t from;
    char **items;
    int n, room;
} completions;

/* Copies it; what has no memory is left out. */
void completions_add(completions *c, const char *text);
/* Fills *c (zeroed) for a cursor at byte `at` of line. */
typedef void (*completer)(void *arg, const char *line, size_t at, completions *c);

typedef struct editor {
    int in, out;
    edit e;
    keys k;
    drawing d;
    history *past;
    completer complete;
    void *complete_arg;
    /* While a line is read. */
    const char *prompt;
    int at_entry; /* of the history; past->n: the new line, which is kept in `fresh` meanwhile */
    weft__strbuf fresh;
    int searching; /* Ctrl-R */
    weft__strbuf sought;
    int tabs;   /* pressed in a row */
    int n_keys; /* that were pressed, the last one included; of the latest line, too */
} editor;

typedef enum edit_outcome { EDIT_LINE, EDIT_END, EDIT_INTERRUPTED } edit_outcome;

/* Zero-initialised before; in and out are terminals. The history outlives it. */
void editor_open(editor *ed, int in, int out, history *past);
void editor_close(editor *ed);
/* Reads until Enter: *text is NUL-terminated UTF-8 without the newline at its end, with others where they were pasted
 * or put by Alt-Enter; free(). EDIT_END: Ctrl-D on an empty line, or the terminal is gone; EDIT_INTERRUPTED: Ctrl-C,
 * which drops what was typed. Without memory the text is NULL. */
edit_outcome editor_read(editor *ed, const char *prompt, char **text, size_t *n);

#endif
