// SPDX-License-Identifier: Apache-2.0
/* content.h: what a message's "content" may be, and the one string that chat templates see of it.
 *
 * Known are a string and a list of {"type": "text", "text": ...} and {"type": "refusal", "refusal": ...}: of those each
 * begins a line. None at all is an empty one, as beside calls of tools, where templates would write None. Invariant:
 * serving a model and training it show it the same. Stateless. */
#ifndef WEFT_TEXT_CHAT_CONTENT_H
#define WEFT_TEXT_CHAT_CONTENT_H

#include "base/json.h"

/* What is wrong with a content; how to say so is the caller's, which knows where it stands. */
typedef enum weft__chat_content_error {
    WEFT__CHAT_CONTENT_FINE,
    WEFT__CHAT_CONTENT_KIND,    /* neither a string nor a list, nor absent or null */
    WEFT__CHAT_CONTENT_NO_TYPE, /* a part that is no object with a "type" that is a string */
    WEFT__CHAT_CONTENT_OTHER,   /* a part whose type is neither text nor refusal */
    WEFT__CHAT_CONTENT_NO_TEXT, /* a part whose "text", or "refusal", is no string */
    WEFT__CHAT_CONTENT_NO_MEMORY
} weft__chat_content_error;

/* Where parts are at fault, *part (may be NULL) is the first one's place in the list. `content` may be NULL. */
weft__chat_content_error weft__chat_content_check(const weft__json *content, size_t *part);

/* The same, and with WEFT__CHAT_CONTENT_FINE *out is the content as one string, the caller's to free; NULL
 * otherwise. */
weft__chat_content_error weft__chat_content_flat(const weft__json *content, weft__json **out, size_t *part);

#endif
