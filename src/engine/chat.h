// SPDX-License-Identifier: Apache-2.0
/* chat.h: what stands behind weft_chat and weft_chat_prompt; for chat.c and chat_parser.c. */
#ifndef WEFT_ENGINE_CHAT_H
#define WEFT_ENGINE_CHAT_H

#include "text/answer/format.h"
#include "text/chat/messages.h"
#include "text/chat/tokens.h"
#include "weft/text.h"

struct weft_chat {
    const weft__tok *tokenizer;
    weft__chat_template *tmpl;
    weft__chat_token tokens[WEFT__CHAT_TOKENS];
    size_t n_tokens;
    weft__chat_arguments_form arguments; /* of calls, as the template wants them */
    int functions;                       /* it knows "function_call" */
    weft__answer_style style;            /* of the answers */
    char *source;
    size_t n_source;
};

struct weft_chat_prompt {
    const weft_chat *chat;
    weft__jinja_output output;
    int continues; /* its last text is what the answer goes on from */
};

#endif
