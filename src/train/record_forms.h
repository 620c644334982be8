// SPDX-License-Identifier: Apache-2.0
/* record_forms.h: records as other programs write them, in the form that record.h has. Pure. */
#ifndef WEFT_TRAIN_RECORD_FORMS_H
#define WEFT_TRAIN_RECORD_FORMS_H

#include "base/json.h"

/* ShareGPT: "conversations", a list of {"from", "value"} (human or user; gpt, chatgpt, assistant or model; system;
 * tool, observation or function_response), also of messages {"role", "content"}; and "system", a string, beside it.
 * *messages is a new list of messages, the caller's. Fails with WEFT_FORMAT (what is wrong, and where),
 * WEFT_UNSUPPORTED (function_call) or WEFT_NO_MEMORY. */
weft_status weft__train_record_of_conversations(const weft__json *root, weft__json **messages, weft_error *err);
/* Alpaca: "instruction", "input" (absent, null or empty: none), and "system" and "history", a list of [question,
 * answer], beside them. *prompt is a new value, the caller's: a string, or with system or history a list of messages.
 * Fails as above. */
weft_status weft__train_record_of_instruction(const weft__json *root, weft__json **prompt, weft_error *err);

#endif
