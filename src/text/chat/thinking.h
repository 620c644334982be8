// SPDX-License-Identifier: Apache-2.0
/* thinking.h: what a template calls `enable_thinking`. Thread safety: all of it may be read by several threads. */
#ifndef WEFT_TEXT_CHAT_THINKING_H
#define WEFT_TEXT_CHAT_THINKING_H

#include "text/chat/template.h"

#define WEFT__CHAT_THINKING "enable_thinking"

/* A variable of templates that says whether the model is to think: templates that read it and have the text in them
 * (NULL: any). The values are JSON; NULL: that is what it is where nothing sets it. */
typedef struct weft__chat_thinking_name {
    const char *name, *text, *on, *off;
    int prompt_only; /* where it is off the prompt ends thoughts that the turn does not have once it is history */
} weft__chat_thinking_name;

/* That of a template and its source; NULL: it reads enable_thinking itself, or knows none. */
const weft__chat_thinking_name *weft__chat_thinking_of(const weft__jinja *t, const char *source, size_t n);

#endif
