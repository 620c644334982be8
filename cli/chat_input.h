// SPDX-License-Identifier: Apache-2.0
/* chat_input.h: lines, typed or from a pipe, made into what is said. One thread. */
#ifndef WEFT_CLI_CHAT_INPUT_H
#define WEFT_CLI_CHAT_INPUT_H

#include "base/text.h"

/* Bytes of a line from a pipe, and of a block of lines. */
#define INPUT_MAX ((size_t)16 << 20)

typedef enum input_outcome {
    INPUT_SAID,        /* text */
    INPUT_BLOCK,       /* text that stood between """ and """: no command, whatever it begins with */
    INPUT_END,         /* nothing comes any more; also in a block that was not closed, which is then told */
    INPUT_INTERRUPTED, /* Ctrl-C */
    INPUT_REFUSED      /* err says why; there may be more */
} input_outcome;

/* The next line without its end: free(). Of INPUT_SAID, INPUT_END, INPUT_INTERRUPTED, INPUT_REFUSED. */
typedef input_outcome (*line_reader)(void *arg, const char *prompt, char **text, size_t *n, weft_error *err);

typedef struct chat_input {
    /* Lines that are read from a descriptor. */
    int fd, out; /* out: a terminal that cannot draw and gets prompts; -1: none */
    weft__strbuf pending;
    size_t at;
    int begun, ended;
    long line;
    /* What reads lines: chat_input_line, with this as arg, or an editor. */
    line_reader read;
    void *arg;
    weft__strbuf raw; /* the last message as it was typed, with its """: for a history */
} chat_input;

/* Lines of fd, with prompts on `out` (-1: none), where tty_take was called before; ended by "\n" or "\r\n", the last
 * one also by the end; they may hold NUL. A byte order mark in front of the first is none of it. */
void chat_input_open(chat_input *in, int fd, int out);
input_outcome chat_input_line(void *in, const char *prompt, char **text, size_t *n, weft_error *err);
/* The next message, free(); NULL but for INPUT_SAID and INPUT_BLOCK. It has no blanks alone. A block is one message:
 * between lines that begin and end with """; "/system """ begins one, too. */
input_outcome chat_input_next(chat_input *in, char **text, size_t *n, weft_error *err);
void chat_input_close(chat_input *in);

#endif
