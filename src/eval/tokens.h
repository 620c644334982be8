// SPDX-License-Identifier: Apache-2.0
/* tokens.h: questions as tokens, and which of them are scored. The tokenizer is the model's; any thread. */
#ifndef WEFT_EVAL_TOKENS_H
#define WEFT_EVAL_TOKENS_H

#include "eval/prompt.h"

/* One pass of the model: of ids[0..n) those from `from` on are scored; of what is generated, none are (from = n). */
typedef struct weft__eval_pass {
    int32_t *ids; /* weft__free() */
    int32_t n, from, to;
    int32_t n_cut; /* tokens of the context that did not fit, from its beginning */
    size_t ask;    /* of which question: of long texts there are several passes */
} weft__eval_pass;

typedef struct weft__eval_passes {
    weft__eval_pass *items;
    size_t n, capacity;
} weft__eval_passes;

typedef struct weft__eval_tokens {
    const weft_tokenizer *tokenizer;
    int32_t n_ctx;
    int32_t prefix; /* what an empty context is: BOS, or EOS where there is none; -1: neither */
    int32_t bos;    /* before each text; -1: none */
} weft__eval_tokens;

/* no_bos: nothing stands before texts, whatever the model's file says. */
weft_status weft__eval_tokens_begin(weft__eval_tokens *t, const weft_model *model, int32_t n_ctx, int no_bos,
                                    weft_error *err);
/* Of the questions of one document. max_tokens: room for an answer. */
weft_status weft__eval_tokens_of(const weft__eval_tokens *t, const weft__eval_task *task, const weft__eval_asks *asks,
                                 weft__eval_passes *out, weft_error *err);
void weft__eval_passes_free(weft__eval_passes *p);

#endif
