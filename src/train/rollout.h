// SPDX-License-Identifier: Apache-2.0
/* rollout.h: answers that a model with an adapter gives, many at once, by the engine that serves (weft/engine.h): the
 * same kernels, pages and sampler, at temperature 1 over the whole vocabulary, so that the log-probabilities that it
 * tells are those of what was sampled from. Invariant: an answer is a function of the model, the adapter's file, the
 * prompt and the seed, not of what was sampled beside it. One thread. */
#ifndef WEFT_TRAIN_ROLLOUT_H
#define WEFT_TRAIN_ROLLOUT_H

#include <stdint.h>

#include "weft/error.h"

typedef struct weft__train_rollout weft__train_rollout;

/* n_ctx: tokens of prompt and answer together at most. stop(arg), or NULL, is asked as weft_train_params says. Fails as
 * weft_model_open and weft_engine_new do. */
weft_status weft__train_rollout_open(const char *base, int32_t n_ctx, int32_t n_threads, int (*stop)(void *arg),
                                     void *arg, weft__train_rollout **out, weft_error *err);
void weft__train_rollout_close(weft__train_rollout **r);

/* Answers come with this adapter from now on. Fails as weft_engine_adapter_add does. */
weft_status weft__train_rollout_adapter(weft__train_rollout *r, const char *path, weft_error *err);

typedef struct weft__train_answer {
    /* The question. tokens: borrowed. greedy: the likeliest token each time, and no seed. */
    const int32_t *prompt;
    int32_t n_prompt, most, greedy;
    uint64_t seed;
    /* The answer: n ids without the token that ended it, and log p of each; the caller's arrays of `most`. */
    int32_t *ids;
    float *logp;
    int32_t n;
    int32_t ended; /* 1: by an end token; 0: by `most` */
} weft__train_answer;

/* All of them, in whatever order; each has its own. WEFT_CANCELLED: stop said so. */
weft_status weft__train_rollout_run(weft__train_rollout *r, weft__train_answer *answers, int32_t n, weft_error *err);

#endif
