// SPDX-License-Identifier: Apache-2.0
/* history.h: what was typed, kept between runs in a file that only its owner reads. One thread; several processes may
 * share a file, each seeing what the others wrote before it began. */
#ifndef WEFT_CLI_HISTORY_H
#define WEFT_CLI_HISTORY_H

#include <stddef.h>

#include "weft/error.h"

enum {
    HISTORY_MAX = 1000,
    HISTORY_ENTRY_MAX = 64 << 10
}; /* entries, and bytes of one; longer ones are kept for this run only */

typedef struct history {
    char **entries; /* [n] NUL-terminated, the oldest first */
    int n, room;
    int fd; /* -1: nothing is kept */
} history;

/* Where it is: $WEFT_HISTORY (empty or "off": nowhere), else weft/chat_history in $XDG_STATE_HOME or ~/.local/state. 0:
 * nowhere; out: `room` bytes. */
int history_place(char *out, size_t room);
/* *h is {.fd = -1} before. Reads the file, makes it and its folders where they are not there, and leaves the last
 * HISTORY_MAX entries in it. path NULL: a history of this run only, which is also what there is after a failure. Fails
 * with WEFT_IO. */
weft_status history_open(history *h, const char *path, weft_error *err);
/* Adds what is no blank and does not repeat the entry before; what begins with a space is not kept in the file, as
 * shells have it. */
void history_add(history *h, const char *text, size_t n);
void history_free(history *h);

#endif
