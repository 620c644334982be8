// SPDX-License-Identifier: Apache-2.0
/* reply.h: an answer of a chat as it comes: what was thought apart from what is said, where the template's models have
 * thoughts. One thread. */
#ifndef WEFT_CLI_REPLY_H
#define WEFT_CLI_REPLY_H

#include "base/text.h"
#include "weft/weft.h"

typedef struct reply {
    /* Set by the caller: who is told of text and reasoning; NULL: none. */
    weft_chat_on_part *on_part;
    void *on_part_arg;
    /* kept */
    weft__strbuf said, thought;
    weft_chat_parser *parser; /* NULL: all is said */
    weft_error why;           /* of a failure that stopped it */
} reply;

/* For the answer to this prompt. lead: of the grammar that it follows (answer_form_lead); 0: it begins with what is
 * said, also where the prompt has begun the thinking; -1: there is none. */
weft_status reply_begin(reply *r, const weft_chat *chat, const weft_chat_prompt *prompt, int32_t lead, weft_error *err);
/* More of its text: a generate_sink, of a reply *. */
int reply_put(void *r, const char *text, size_t n);
/* 1: this special token is to be put as it is spelled. */
int reply_shows(const void *r, int32_t token);
/* All of it was put. Fails as what stopped it did. */
weft_status reply_end(reply *r, weft_error *err);
void reply_free(reply *r);

#endif
