// SPDX-License-Identifier: Apache-2.0
/* draw.h: a text that is being typed, on the rows of a terminal. Rows end where this says, not where the terminal would
 * break them, so that it is known where the cursor is; what is higher than the window shows the part with the cursor.
 * One thread. */
#ifndef WEFT_CLI_DRAW_H
#define WEFT_CLI_DRAW_H

#include "base/text.h"

typedef struct drawing {
    int fd;
    /* What stands there now; nothing: n_rows 0. */
    weft__strbuf rows; /* as they were written, with "\r\n" between them */
    int n_rows, columns, row, column;
    int *widths, room; /* [n_rows] columns that each takes */
} drawing;

void draw_free(drawing *d);
/* Draws `prompt` (of one column per byte) and text[0..n) in place of what was drawn before; the cursor stands at byte
 * `at`. */
void draw(drawing *d, const char *prompt, const char *text, size_t n, size_t at);
/* Leaves what is drawn, and goes to the line below it. */
void draw_leave(drawing *d);
/* Wipes the window; what is drawn next stands at its top. */
void draw_wipe(drawing *d);

#endif
