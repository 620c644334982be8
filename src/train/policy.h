// SPDX-License-Identifier: Apache-2.0
/* policy.h: learning from answers that are judged: GRPO (Shao et al. 2024) and Dr. GRPO (Liu et al. 2025).
 *
 * A step takes records with an answer as questions (what stands before the answer that is learned last) and references,
 * samples a group of answers to each by the adapter as it is (rollout.h), has them judged (verify.h), and adds the
 * gradient of the policy loss (loss.h): answers better than their group's mean become likelier, others less likely. One
 * update per sample: the ratio of the loss is between the trainer's p and what was served. Groups whose answers are all
 * as good say nothing, and are counted. Invariant: a step is a function of the parameters, the data, the seed and the
 * step's number, so a resumed run goes on to the same bits, as far as the verifier repeats itself. One thread. */
#ifndef WEFT_TRAIN_POLICY_H
#define WEFT_TRAIN_POLICY_H

#include "train/data.h"
#include "train/rollout.h"
#include "train/verify.h"

typedef struct weft__train_policy_options {
    const char *base, *folder;  /* the model; where the adapter is written for the engine, and removed again */
    const char *rule, *command; /* weft__train_verifier_open */
    int32_t n_ctx, max_rows, n_threads;
    int32_t n_prompts;     /* of a step at most */
    int32_t group;         /* answers to each, 2.. */
    int32_t answer_tokens; /* of an answer at most */
    int32_t by_length;     /* 1: GRPO: advantages by the deviation, each answer's mean over its tokens; 0: Dr. GRPO */
    uint64_t seed;
    int (*stop)(void *arg);
    void *arg;
} weft__train_policy_options;

typedef struct weft__train_policy weft__train_policy;

/* Texts are borrowed. Fails as weft__train_rollout_open and weft__train_verifier_open do, and with WEFT_NO_MEMORY. */
weft_status weft__train_policy_open(const weft__tok *tok, const weft__train_policy_options *o, weft__train_policy **out,
                                    weft_error *err);
void weft__train_policy_close(weft__train_policy **p);

/* Sums over what was sampled. */
typedef struct weft__train_policy_sums {
    double reward, n_answers;
    double apart, n_tokens;   /* |log p as trained - as served| of tokens that were learned; how many */
    int64_t n_groups, n_same; /* same: of one reward */
    int64_t n_endless;        /* answers that answer_tokens cut */
    weft__train_loss loss;    /* of all batches */
} weft__train_policy_sums;

/* A step's gradients, of the questions in `batch`, which becomes invalid where `d` hands out another. Fails as the two
 * and weft__trainer_learn do. */
weft_status weft__train_policy_add(weft__train_policy *p, weft__trainer *t, const weft__train_objective *o,
                                   const weft__train_batch *batch, weft__train_policy_sums *sums, weft_error *err);
/* The mean reward of the likeliest answers to the batch's questions is added. */
weft_status weft__train_policy_measure(weft__train_policy *p, weft__trainer *t, const weft__train_batch *batch,
                                       weft__train_policy_sums *sums, weft_error *err);

#endif
