// SPDX-License-Identifier: Apache-2.0
/* chat.h: what stands behind weft_chat and weft_chat_prompt; for chat.c, chat_parser.c and chat_grammar.c. */
#ifndef WEFT_ENGINE_CHAT_H
#define WEFT_ENGINE_CHAT_H

#include "base/json.h"
#include "text/answer/answer.h"
#include "text/chat/messages.h"
#include "text/chat/tokens.h"
#include "weft/text.h"

struct weft_chat {
    const weft__tok *tokenizer;
    const weft_tokenizer *vocabulary; /* the same */
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
    int continues;  /* its last text is what the answer goes on from */
    int thinks_not; /* enable_thinking was false */
};

/* What the answer to a prompt is read by, but for what the caller wants. */
weft__answer_params weft__engine_chat_answer(const weft_chat_prompt *prompt);
/* Tools as callers give them: an array, null or NULL. */
weft_status weft__engine_chat_tools(const char *text, weft__json **out, weft_error *err);

#endif
