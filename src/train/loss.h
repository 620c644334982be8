// SPDX-License-Identifier: Apache-2.0
/* loss.h: what training minimises, as a table of losses, each a function of what one row, or pair of answers, says.
 *
 * A row's loss sees log p of the row's target and what the batch says of the row, and tells its value and its slope:
 * d value / d (-log p). The logits' gradient is then, for all of them, slope * (softmax - 1 at the target). A vector
 * target (a distribution q over the vocabulary) adds c * (softmax - q), c being its weight. Losses of pairs make slopes
 * out of the summed log-probabilities of two answers. Invariant: a loss divides by nothing that a batch decides: sums
 * are divided once, by weft__trainer_step, so that how a step is cut into batches does not show. Pure functions, in
 * double. Letters: s(x) = 1 / (1 + e^-x), p of the model that learns, b of the frozen base. */
#ifndef WEFT_TRAIN_LOSS_H
#define WEFT_TRAIN_LOSS_H

#include "train/train.h"

/* What a row's loss sees. log_rest: log(1 - p), from the other tokens' probabilities, exact where p is near 1. */
typedef struct weft__loss_seen {
    double logp, log_rest;
    double weight;    /* signed */
    double advantage; /* policies */
    double old_logp;  /* log p when the token was sampled; NAN: as logp, a ratio of 1 */
    double base_logp; /* log b; NAN where the loss does not ask for it */
} weft__loss_seen;

typedef struct weft__loss_told {
    double value, slope;
} weft__loss_told;

/* weight >= 0: weight * -log p (cross-entropy). weight < 0: |weight| * -log(1 - p), unlikelihood (Welleck et al. 2020),
 * whose gradient vanishes as p does, so that it ends by itself; its slope is |weight| * -p / (1 - p). */
weft__loss_told weft__loss_likelihood(const weft__train_objective *o, const weft__loss_seen *s);

/* weight * (-min(r A, clip(r, 1 - clip_low, 1 + clip_high) A) + beta (b/p - log(b/p) - 1)) with r = p / p_old and A the
 * advantage: the clipped surrogate of PPO (Schulman et al. 2017) as GRPO has it (Shao et al. 2024), and its estimate of
 * KL(p || b). What answers are averaged over is in the weights and the batch's `count`: 1 / length for GRPO, 1 for Dr.
 * GRPO (Liu et al. 2025) and DAPO. */
weft__loss_told weft__loss_policy(const weft__train_objective *o, const weft__loss_seen *s);

/* Of one group's rewards [n]: what each is better than their mean, with `scaled` divided by their deviation (of a
 * sample, n - 1) + 1e-4 (GRPO), without as it is (Dr. GRPO). 0: all rewards are the same, and the advantages are 0. */
int weft__loss_advantages(const double *reward, int32_t n, int scaled, double *advantage);

/* A pair's sums over its answers' targets. */
typedef struct weft__loss_pair {
    double chosen, rejected;           /* weighted sums of log p */
    double base_chosen, base_rejected; /* of log b */
    double n_chosen;                   /* sum of the chosen answer's weights */
} weft__loss_pair;

/* slope_chosen, slope_rejected: d value / d (-log p) of each token of that answer, to be multiplied by its weight. */
typedef struct weft__loss_pair_told {
    double value, margin, slope_chosen, slope_rejected;
} weft__loss_pair_told;

/* Direct preference optimization (Rafailov et al. 2023) with margin m = log(p/b) of the chosen - log(p/b) of the
 * rejected: -(1 - smoothing) log s(beta m) - smoothing log s(-beta m) (for labels that may be wrong: Mitchell
 * 2023), plus chosen * -log p(chosen) / its length (Pang et al. 2024), against the fall of both likelihoods. */
weft__loss_pair_told weft__loss_preference(const weft__train_objective *o, const weft__loss_pair *s);

/* Embeddings of a batch's texts, and which belong together. */
typedef struct weft__loss_contrast_texts {
    int32_t n;            /* texts */
    int64_t width;        /* of an embedding */
    const double *e;      /* [n, width], each of length 1 */
    const int32_t *group; /* [n] as weft__train_batch has it */
    const int32_t *same;  /* [n] the first text with the same tokens */
    double *score;        /* [n] scratch */
} weft__loss_contrast_texts;

typedef struct weft__loss_contrast_told {
    double value, margin; /* sums over records */
    int64_t n, n_better;
} weft__loss_contrast_told;

/* InfoNCE (van den Oord et al. 2018) with the batch's other texts and hard negatives (Karpukhin et al. 2020): of each
 * record, with q its query, p what belongs to it and D all texts of the batch that are no queries,
 * -log(e^(q p / beta) / sum of e^(q d / beta) over d in D); a d that says the same as p, and is not p, is left out, as
 * it is no wrong answer. gradient: [n, width] of the embeddings, filled; or NULL. */
void weft__loss_contrast(const weft__train_objective *o, const weft__loss_contrast_texts *x, double *gradient,
                         weft__loss_contrast_told *told);

enum {
    WEFT__LOSS_NEEDS_BASE = 1,  /* log b of the targets: LoRA only */
    WEFT__LOSS_NEEDS_PAIRS = 2, /* segments 2i and 2i + 1 are a pair */
    WEFT__LOSS_NEEDS_TEXTS = 4, /* whole texts, as embeddings: no row has a target */
};

typedef struct weft__loss_kind {
    const char *name;                                                                     /* "likelihood" */
    weft__loss_told (*row)(const weft__train_objective *, const weft__loss_seen *);       /* or NULL */
    weft__loss_pair_told (*pair)(const weft__train_objective *, const weft__loss_pair *); /* or NULL */
    unsigned needs;
} weft__loss_kind;

/* By weft__train_objective.kind; NULL: there is none. */
const weft__loss_kind *weft__loss_kind_of(int32_t kind);
/* WEFT__LOSS_NEEDS_*, by the objective's numbers too. */
unsigned weft__loss_needs(const weft__train_objective *o);
/* WEFT_ARGUMENT names the number that is out of range. */
weft_status weft__loss_check(const weft__train_objective *o, weft_error *err);

#endif
