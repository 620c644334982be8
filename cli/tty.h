// SPDX-License-Identifier: Apache-2.0
/* tty.h: the modes of the one terminal that people type at, given back however the program leaves: at its end, by a
 * signal, and while it is stopped (Ctrl-Z) until it goes on. One thread; handlers of signals do only what they may. */
#ifndef WEFT_CLI_TTY_H
#define WEFT_CLI_TTY_H

#include <stddef.h>

typedef enum tty_mode {
    TTY_GIVEN, /* as the program found it */
    TTY_KEYS,  /* each key at once, as bytes and unseen; Ctrl-C, Ctrl-Z and Ctrl-\ are bytes, too */
    TTY_QUIET  /* what is typed waits unseen; Ctrl-C, Ctrl-Z and Ctrl-\ are signals */
} tty_mode;

/* From now on `in` (where keys come from; -1: nowhere) and `out` (what is drawn on) belong to the program. `leave` is
 * written whenever the terminal is given back, `enter` whenever it is taken (both static, "": nothing). Takes SIGTERM,
 * SIGHUP, SIGQUIT, SIGINT, SIGTSTP and SIGWINCH where they were not ignored. Once per process. Returns 0 when `in` is
 * no terminal. */
int tty_take(int in, int out, const char *enter, const char *leave);
/* Sets the mode; pending keys stay. TTY_GIVEN gives it back, until another mode is set. */
void tty_set(tty_mode mode);
/* Gives the terminal back if it was taken; async-signal-safe. */
void tty_give_back(void);
/* Stops the program with all of its job, as Ctrl-Z does; returns when it goes on, in the mode of before. */
void tty_stop(void);

typedef enum tty_event {
    TTY_INPUT = 1, /* bytes can be read, or the terminal is gone */
    TTY_RESIZED = 2,
    TTY_WENT_ON = 4,  /* after it was stopped: others have drawn meanwhile */
    TTY_SIGNALLED = 8 /* SIGINT came: from elsewhere, as the key is a byte */
} tty_event;
/* Waits for events, ms at most (-1: for ever); returns those that there are, 0: none. */
int tty_wait(int ms);

/* Columns and rows of the terminal on fd: what it says, else COLUMNS and LINES, else 80 and 24; at least 1. */
void tty_size(int fd, int *columns, int *rows);
/* Is fd a terminal that understands escape sequences: neither TERM=dumb nor no terminal? */
int tty_draws(int fd);
/* May colours be used there? Not with NO_COLOR. */
int tty_colours(int fd);
/* Writes all of it, as far as that goes. */
void tty_write(int fd, const char *text, size_t n);

#endif
