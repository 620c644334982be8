// SPDX-License-Identifier: Apache-2.0
/* prompts.h: what a request gives as prompt or messages, made tokens.
 *
 * Functions that may fail return 1, or 0 with the error filled; prompts are to be freed either way. Any thread: the
 * model is only read. */
#ifndef WEFT_API_PROMPTS_H
#define WEFT_API_PROMPTS_H

#include "api/fields.h"

/* What prompts are made with. */
typedef struct weft__api_prompt_model {
    const weft_tokenizer *tokenizer;
    weft_chat *chat;       /* NULL: the model's template cannot be read */
    char *chat_fault;      /* why; NULL: there was no memory to say it */
    weft_chat *tool_chat;  /* for tools, where the template has no variable for them; else NULL */
    char *tool_fault;      /* why that is NULL where it is needed */
    int32_t n_ctx;         /* tokens of a prompt and its answer */
    int64_t longest_token; /* bytes, at least 1 */
} weft__api_prompt_model;

typedef struct weft__api_prompt {
    int32_t *ids; /* [n] */
    int32_t n;
    char *text; /* [n_text], as it was given, or as its tokens read; only where an answer needs it */
    size_t n_text;
} weft__api_prompt;

enum { WEFT__API_MEMORIES = 8 };

typedef struct weft__api_prompts {
    weft__api_prompt *items; /* [n], owned with what they hold */
    size_t n;
    weft_chat_prompt *chat; /* owned: what the one prompt of a chat was before it was made tokens; else NULL */
    uint64_t template_ns, tokenizer_ns;   /* that went to both */
    char *source;                         /* owned: what was asked, as JSON, where that is kept (server/learn.h) */
    int32_t n_notes, n_memories;          /* corrections, and memories, that stand in it */
    int64_t memories[WEFT__API_MEMORIES]; /* [n_memories], their ids */
} weft__api_prompts;

void weft__api_prompts_free(weft__api_prompts *prompts);
/* Tokens of a "prompt": string, ids, a mix, or an array of those. special: BOS and the like are added; parse: special
 * tokens spelled in it become those. with_text: fills text. */
int weft__api_prompts_read(const weft__api_prompt_model *m, const char *field, const weft__json *v, int special,
                           int parse, int with_text, weft__api_prompts *out, weft__api_error *error);
/* The same of what no request will run: only the body's limit bounds it. */
int weft__api_texts_read(const weft__api_prompt_model *m, const char *field, const weft__json *v, int special,
                         int parse, int with_text, weft__api_prompts *out, weft__api_error *error);
/* Tokens of what is to be embedded, each text behind params->instruction in the form of Qwen3-Embedding; special
 * tokens stay text. 400: the instruction stands beside token ids. */
int weft__api_prompts_embed(const weft__api_prompt_model *m, const weft__api_params *params, weft__api_prompts *out,
                            weft__api_error *error);
/* The one prompt that messages become. */
int weft__api_prompts_chat(const weft__api_prompt_model *m, const weft__api_params *params, weft__api_prompts *out,
                           weft__api_error *error);
/* Text of messages; weft_chat_prompt_free. */
int weft__api_chat_text(const weft__api_prompt_model *m, const weft__api_params *params, weft_chat_prompt **out,
                        weft__api_error *error);

#endif
