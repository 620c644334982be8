// SPDX-License-Identifier: Apache-2.0
/* tools.h: tools for a model whose template has no variable for them, or wants more of them than clients send.
 *
 * The template for them is the model's, with a prelude in front: the tools go into the variable that the template has
 * for them under another name; or into a system message, with the form of a call as the template writes it in earlier
 * answers, or, where it writes none, as a JSON object. Everything else is rendered as the model's own template does.
 * Stateless. */
#ifndef WEFT_TEXT_CHAT_TOOLS_H
#define WEFT_TEXT_CHAT_TOOLS_H

#include "base/text.h"
#include "text/chat/messages.h"

/* A template and how it is asked. */
typedef struct weft__chat_asked {
    const weft__chat_template *t;
    const char *source; /* [n], of it */
    size_t n;
    weft__chat_arguments_form arguments;
    int functions;
    const weft__chat_token *tokens; /* [n_tokens] */
    size_t n_tokens;
} weft__chat_asked;

/* Appends the source of a template for tools; nothing where `asked` needs none: it reads `tools`. Fails with
 * WEFT_UNSUPPORTED where the template takes no message that tells of them, WEFT_NO_MEMORY. */
weft_status weft__chat_tools_source(const weft__chat_asked *asked, weft__strbuf *out, weft_error *err);

/* The tools with the members that OpenAI lets out, and without which many templates refuse them. NULL without
 * memory. */
weft__json *weft__chat_tools_filled(const weft__json *tools);

#endif
