// SPDX-License-Identifier: Apache-2.0
/* tool_template.h: a chat for tools where the model's template has no variable for them.
 *
 * Its template is the model's, with a prelude in front: the tools go into the variable that the template has for them
 * under another name; or into a system message, with the form of a call as the template writes it in earlier answers,
 * or, where it writes none, as a JSON object. Everything else is rendered as the model's own template does. */
#ifndef WEFT_API_TOOL_TEMPLATE_H
#define WEFT_API_TOOL_TEMPLATE_H

#include "weft/weft.h"

/* *out is NULL, and that is no failure, where `chat`, of this model, needs none: its template reads `tools`. Fails as
 * weft_chat_open does, and with WEFT_UNSUPPORTED where the template takes no such message. */
weft_status weft__api_tool_chat_open(const weft_model *model, const weft_chat *chat, weft_chat **out, weft_error *err);

#endif
