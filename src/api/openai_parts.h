// SPDX-License-Identifier: Apache-2.0
/* openai_parts.h: what OpenAI's answers have in common, for openai.c and openai_chat.c. Writers, as answer.h has
 * them. */
#ifndef WEFT_API_OPENAI_PARTS_H
#define WEFT_API_OPENAI_PARTS_H

#include "api/answer.h"

/* "stop" or "length" */
const char *weft__api_finish_text(const weft__api_choice *c);
/* ,"dropped_tokens": of an answer whose context was full, and which went on; nothing of others. */
void weft__api_put_dropped(weft__strbuf *out, const weft__api_choice *c);
/* ,"quality": of the best of several; nothing of others. */
void weft__api_put_quality(weft__strbuf *out, const weft__api_choice *c);
/* ,"memories": of an answer whose prompt has some; nothing of others. */
void weft__api_put_memories(weft__strbuf *out, const weft__api_answer *a);
/* null where there is none. */
void weft__api_put_logprob(weft__strbuf *out, float logprob);
/* "" where the token has none. */
const char *weft__api_token_bytes(const weft__api_answer *a, int32_t token, size_t *n);
/* An answer's first members, without a comma behind them. */
void weft__api_put_head(weft__strbuf *out, const weft__api_answer *a, const char *object);
void weft__api_put_usage(weft__strbuf *out, const weft__api_answer *a);
/* Closes an event of one choice. */
void weft__api_end_chunk(weft__strbuf *out, const weft__api_answer *a);
void weft__api_stream_end(const weft__api_answer *a, weft__strbuf *out, const char *object);

#endif
