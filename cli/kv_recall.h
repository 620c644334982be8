// SPDX-License-Identifier: Apache-2.0
/* kv_recall.h: does a model find again what stands far back? Two tests by depth, in which keys that are a little wrong
 * show first: a pass key in a sentence, asked for behind a text of that many tokens; and a run of random tokens, of
 * which the model is given the beginning once more, that many tokens later. One thread. */
#ifndef WEFT_CLI_KV_RECALL_H
#define WEFT_CLI_KV_RECALL_H

#include "kv_quality.h"
#include "weft/weft.h"

typedef struct kv_recall {
    weft_model *model;
    weft_session *const *sessions; /* [KV_BOTH] */
    const int32_t *text;           /* [n_text] tokens that are read in between, and drawn from; 1 at least */
    size_t n_text;
    int32_t n_ctx, n_vocab, bos; /* bos -1: none */
    int32_t n_tries;             /* pass keys for each depth */
    uint64_t seed;
} kv_recall;

/* Fills q->passkey and q->copy, as deep as the context is. progress: weft_progress_fn, may be NULL. WEFT_CANCELLED
 * where that says so; WEFT_NO_MEMORY, and what the model's sessions fail with. */
weft_status kv_recall_run(const kv_recall *r, kv_quality *q, weft_progress_fn progress, void *arg, weft_error *err);

#endif
