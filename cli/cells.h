// SPDX-License-Identifier: Apache-2.0
/* cells.h: how text fills the cells of a terminal. UTF-8; of no locale. Thread-safe. */
#ifndef WEFT_CLI_CELLS_H
#define WEFT_CLI_CELLS_H

#include <stddef.h>
#include <stdint.h>

/* Columns that a character takes: 0 (a mark on the one before), 1 or 2. */
int cell_width(uint32_t cp);
/* Bytes of the character at s[0..n), n >= 1, as a reader sees it: with the marks, joiners and modifiers that belong to
 * it. */
size_t cell_cluster(const char *s, size_t n);
/* What a terminal is to be given for it: the text itself, or the form of what could steer it (clean_form). Appends to
 * nothing: *shown points into `s` or into `room`, which has 16 bytes. Returns its columns, stores its bytes. */
int cell_shown(const char *s, size_t n, char room[16], const char **shown, size_t *n_shown);

#endif
