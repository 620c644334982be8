// SPDX-License-Identifier: Apache-2.0
/* message.h: the message that an answer of a chat becomes where it is parsed: content, reasoning and calls.
 *
 * weft__api_message_add is what a weft_chat_parser tells its parts to; writers read what it kept. Invariant: a call has
 * an id, one of nine letters and digits where the model wrote none, since there are templates that take no other. Of a
 * stream only what the writer has not shown yet is kept, and in which order. One thread at a time; what a weft__api_
 * message points to is its own, weft__api_message_free. */
#ifndef WEFT_API_MESSAGE_H
#define WEFT_API_MESSAGE_H

#include "base/text.h"
#include "weft/weft.h"

/* Bytes of `spelled`. */
typedef struct weft__api_span {
    size_t at, n;
} weft__api_span;

typedef struct weft__api_call {
    weft__api_span id, name, arguments;
} weft__api_call;

/* Of a stream: what came one after the other. */
typedef struct weft__api_piece {
    uint32_t kind; /* weft_chat_part_kind */
    size_t at, n;  /* bytes of content or reasoning; calls */
} weft__api_piece;

typedef struct weft__api_message {
    /* set by the owner */
    int streams;  /* pieces are kept */
    int legacy;   /* reasoning stands in the content as well, between <think> and </think> */
    int one_call; /* the answer ends with its first call */
    /* kept */
    weft__strbuf content, reasoning, spelled;
    weft__api_call *calls; /* [n_calls] */
    size_t n_calls, cap_calls;
    weft__api_piece *pieces; /* [n_pieces] */
    size_t n_pieces, cap_pieces;
    int thinks; /* legacy: <think> stands open */
} weft__api_message;

/* A weft_chat_on_part whose arg is the message. Non-zero ends the answer: its one call is there, or memory ran out,
 * which weft__api_message_failed says. */
int weft__api_message_add(void *message, const weft_chat_part *part);
int weft__api_message_failed(const weft__api_message *m);
/* The writer of a stream has shown all pieces. */
void weft__api_message_shown(weft__api_message *m);
void weft__api_message_free(weft__api_message *m);

#endif
