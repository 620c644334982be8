// SPDX-License-Identifier: Apache-2.0
/* quality.h: perplexity of a text and divergence from recorded probabilities, with the definitions of llama-perplexity,
 * so that either engine can be the other's reference.
 *
 * V vocabulary. A text is cut into chunks of n_ctx tokens, each evaluated from an empty context with its first token
 * replaced by BOS; the second half of each chunk but its last token is scored: n_ctx - 1 - n_ctx/2 tokens. Base file,
 * little-endian: "_logits_", i32 n_ctx, i32 V, i32 n_chunks, i32 tokens[n_ctx * n_chunks], then per scored token
 * 2*ceil(V/2) + 4 u16: f32 scale, f32 min_log_prob, codes of the log-probabilities, clipped to 16 below the largest
 * logit. */
#ifndef WEFT_CLI_QUALITY_H
#define WEFT_CLI_QUALITY_H

#include <stdint.h>

#include "base/text.h"

/* u16 of one scored token in a base file. */
int64_t quality_record(int32_t n_vocab);

/* Negative log-probability of `token`; with record != NULL also encodes all log-probabilities into it. */
double quality_nll(const float *logits, int32_t n_vocab, int32_t token, uint16_t *record);

typedef struct quality_sums {
    int64_t n, same_top, capacity;
    double nll, nll2;                         /* of this model */
    double nll_base, nll_base2, nll_nll_base; /* of the base */
    double kld, kld2, p_diff, p_diff2, p_diff4;
    float *klds, *p_diffs; /* [n], for percentiles; free() with quality_free */
} quality_sums;

/* One token against a base. */
typedef struct quality_sample {
    double nll, nll_base, kld;
    int same_top; /* the likeliest token is the base's */
} quality_sample;

/* Adds one token without a base. */
void quality_add(quality_sums *s, double nll);
/* The token from its record. */
quality_sample quality_against(const float *logits, int32_t n_vocab, int32_t token, const uint16_t *record);
/* The same from the base's own logits, unrounded; token -1: nobody knows what follows, and both nll are 0. */
quality_sample quality_between(const float *logits, const float *base, int32_t n_vocab, int32_t token);
/* Adds it; returns 0 without memory. */
int quality_add_sample(quality_sums *s, const quality_sample *sample);
void quality_free(quality_sums *s);

typedef struct quality_estimate {
    double value, error;
} quality_estimate;

/* Sorts klds and p_diffs, as quality_percentile has them. */
void quality_sort(quality_sums *s);
/* Of n sorted values, n >= 1: between the two nearest ranks. fraction: 0 to 1. */
double quality_percentile(const float *sorted, int64_t n, double fraction);

/* exp(mean nll) and its standard error. */
quality_estimate quality_perplexity(const quality_sums *s);
/* "Final estimate: PPL = ..." on stdout. */
void quality_print_final(const quality_sums *s);
/* One line per chunk, with the running figures. */
void quality_print_chunk_header(void);
void quality_print_chunk(int32_t chunk, const quality_sums *s);
/* The summary: perplexity, KL divergence, token probabilities. Sorts klds and p_diffs. */
void quality_print_summary(quality_sums *s);
/* Message for when they are not; its argument is the number of the token, a long long. */
#define QUALITY_LOST                                                                                                   \
    "token %lld of those that are scored: the model gives it no finite log-probability, so that there is no "          \
    "perplexity; are its "                                                                                             \
    "weights damaged (NaN)?"
/* 1 when something was scored and all sums are finite: there are figures. */
int quality_is_known(const quality_sums *s);
/* The figures of weft eval documents as members of a JSON object, null where there are none. */
void quality_put_documents(weft__strbuf *t, const quality_sums *s, int32_t n_documents, int32_t n_cut);
/* quality_print_summary as one JSON object, null where there are none. against: also the divergence. */
void quality_print_json(quality_sums *s, int32_t n_ctx, int32_t n_chunks, int against);

#endif
