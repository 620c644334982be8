// SPDX-License-Identifier: Apache-2.0
/* divergence.h: how well a model predicts tokens, and how far its probabilities are from another's, with the
 * definitions of llama-perplexity, so that either engine can be the other's reference. One thread per object.
 *
 * V vocabulary. A base file holds, for each token that is scored, 2*ceil(V/2) + 4 u16: f32 scale, f32 min_log_prob,
 * codes of the log-probabilities, clipped to 16 below the largest logit (base_file.h). */
#ifndef WEFT_EVAL_DIVERGENCE_H
#define WEFT_EVAL_DIVERGENCE_H

#include <stddef.h>
#include <stdint.h>

#include "weft/eval.h"

/* u16 of one scored token in a base file. */
int64_t weft__eval_record_size(int32_t n_vocab);

/* Negative log-probability of `token`; with record != NULL also encodes all log-probabilities into it. */
double weft__eval_nll(const float *logits, int32_t n_vocab, int32_t token, uint16_t *record);

/* One token against a base. */
typedef struct weft__eval_compared {
    double nll, nll_base, kld;
    int same_top; /* the likeliest token is the base's */
} weft__eval_compared;

/* The token from its record. */
weft__eval_compared weft__eval_against(const float *logits, int32_t n_vocab, int32_t token, const uint16_t *record);
/* The same from the base's own logits, unrounded; token -1: nobody knows what follows, and both nll are 0. */
weft__eval_compared weft__eval_between(const float *logits, const float *base, int32_t n_vocab, int32_t token);

/* Tokens added up. Zero-initialise. */
typedef struct weft__eval_totals {
    int64_t n, same_top;
    double nll, nll2;                         /* of this model */
    double nll_base, nll_base2, nll_nll_base; /* of the base */
    double kld, kld2, p_diff, p_diff2, p_diff4;
    float *klds, *p_diffs; /* [n] of those that were compared */
    size_t klds_room, p_diffs_room;
} weft__eval_totals;

/* Adds one token without a base. */
void weft__eval_totals_add(weft__eval_totals *s, double nll);
/* Adds one against a base; returns 0 without memory. */
int weft__eval_totals_compare(weft__eval_totals *s, const weft__eval_compared *one);
void weft__eval_totals_free(weft__eval_totals *s);

/* Message for when they are not known; its argument is the number of the token, a long long. */
#define WEFT__EVAL_LOST                                                                                                \
    "token %lld of those that are scored: the model gives it no finite log-probability, so that there is no "          \
    "perplexity; are its "                                                                                             \
    "weights damaged (NaN)?"
/* 1 when something was scored and all sums are finite: there are figures. */
int weft__eval_totals_known(const weft__eval_totals *s);

/* Sorts klds and p_diffs, as weft__eval_quantile has them. */
void weft__eval_totals_sort(weft__eval_totals *s);
/* Of n sorted values, n >= 1: between the two nearest ranks. fraction: 0 to 1. */
double weft__eval_quantile(const float *sorted, int64_t n, double fraction);

/* figures.c: all figures of a result but its numbers of chunks and texts; NAN of what is not known. compared: there is
 * a base. Not the quantiles, which stay as they are. */
void weft__eval_figures_of(const weft__eval_totals *s, int compared, weft_perplexity_result *out);
/* The quantiles; sorts the values. */
void weft__eval_figures_sorted(weft__eval_totals *s, weft_perplexity_result *out);

#endif
