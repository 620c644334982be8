// SPDX-License-Identifier: Apache-2.0
/* tokens.h: between a tokenizer and its chat template: special tokens as templates name them, and a rendered
 * conversation as ids. Stateless. */
#ifndef WEFT_TEXT_CHAT_TOKENS_H
#define WEFT_TEXT_CHAT_TOKENS_H

#include "text/chat/template.h"
#include "text/tokenizer/tokenizer.h"

#define WEFT__CHAT_TOKENS 7

/* "bos_token" and the others that the vocabulary has; returns how many. Texts live with the tokenizer. */
size_t weft__chat_tokens(const weft__tok *tok, weft__chat_token out[WEFT__CHAT_TOKENS]);

/* Appends the ids of the rendered text from byte `skip` on. Control tokens are recognized in what the template wrote,
 * never in what came from messages, tools or kwargs. With skip 0 BOS stands in front where the tokenizer wants one and
 * the template does not write it. Fails with WEFT_ARGUMENT (skip beyond the text), and as weft__tok_encode_spans
 * does. */
weft_status weft__chat_encode(const weft__tok *tok, const weft__jinja_output *o, size_t skip, weft__tok_ids *out,
                              weft_error *err);

#endif
