// SPDX-License-Identifier: Apache-2.0
/* pass.h: one request to the engine and what it brings (pass.c). The engine's thread writes what comes; the caller's
 * reads it once `done` was told, under the lock. */
#ifndef WEFT_EVAL_PASS_H
#define WEFT_EVAL_PASS_H

#include <pthread.h>

#include "eval/eval.h"
#include "eval/score.h"
#include "eval/tokens.h"
#include "text/stop.h"

/* Told when a request has finished. */
typedef struct weft__eval_bell {
    pthread_mutex_t lock;
    pthread_cond_t rang;
    int n_running;
} weft__eval_bell;

typedef struct weft__eval_request {
    const weft__eval_pass *pass;
    weft__eval_bell *bell;
    struct weft__eval_request *before; /* whose pages this waits for; NULL: none */
    int as_answer, submitted, done;
    uint64_t id, seed;
    const weft_tokenizer *tokenizer;
    weft_detok *detok;
    weft_chat_parser *parser; /* of a conversation's answer */
    weft__stop stop;
    weft__strbuf text;
    double logprob;
    int32_t at, n_scored, n_generated;
    int is_greedy, is_unended;
    weft_status status;
    char message[WEFT_ERROR_TEXT];
} weft__eval_request;

/* Before it is submitted: what an answer needs to become text. */
weft_status weft__eval_request_begin(weft__eval_request *r, const weft__eval_task *task,
                                     const weft_tokenizer *tokenizer, const weft_chat_prompt *prompt, weft_error *err);
/* WEFT_BUSY: later. The request stays where it is until it is done. */
weft_status weft__eval_request_submit(weft__eval_request *r, const weft__eval_task *task,
                                      const weft__eval_params *params, weft_error *err);
/* After it is done: the answer's text, without thinking, in r->text. */
weft_status weft__eval_request_end(weft__eval_request *r, weft_error *err);
void weft__eval_request_free(weft__eval_request *r);

#endif
