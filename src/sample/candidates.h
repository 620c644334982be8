// SPDX-License-Identifier: Apache-2.0
/* candidates.h: the tokens still in play, and how the filters narrow them.
 *
 * Order is by logit, largest first, the lower id first among equals: a total order, so that every result is one and the
 * same. Candidates belong to one sampler; nothing here allocates. */
#ifndef WEFT_SAMPLE_CANDIDATES_H
#define WEFT_SAMPLE_CANDIDATES_H

#include <stdint.h>

enum { WEFT__SAMPLE_BUCKETS = 1024 };

typedef struct weft__sample_candidate {
    float logit;
    int32_t id;
} weft__sample_candidate;

typedef struct weft__sample_candidates {
    const float *logits; /* [n_logits], borrowed */
    int32_t n_logits;
    float largest;
    /* items[0..n_sorted) are the largest, in order; to n_loaded a heap; the others are not loaded yet */
    weft__sample_candidate *items;
    int32_t n, n_sorted, n_loaded;
    int32_t next_bucket; /* the first that is not loaded */
    int32_t in_bucket[WEFT__SAMPLE_BUCKETS];
} weft__sample_candidates;

/* The largest of n logits; -infinity when there is none but NaN. */
float weft__sample_largest_logit(const float *logits, int32_t n);
/* The part of softmax(logits) that a token has. */
float weft__sample_part(const float *logits, int32_t n, int32_t token);
/* Takes the finite and +infinite of n logits, which must stay as they are; NaN and -infinity are left out. items has
 * room for n. */
void weft__sample_candidates_fill(weft__sample_candidates *c, weft__sample_candidate *items, const float *logits,
                                  int32_t n);
/* The item of rank i (0 the largest), i < c->n; sorts as far as needed. */
weft__sample_candidate weft__sample_candidates_at(weft__sample_candidates *c, int32_t i);
/* Keeps the k largest; k <= 0 keeps all. */
void weft__sample_candidates_top_k(weft__sample_candidates *c, int32_t k);
/* Keeps the fewest of the largest whose probabilities sum to at least p (Holtzman et al. 2019); at least one; p >= 1
 * keeps all. */
void weft__sample_candidates_top_p(weft__sample_candidates *c, float p);
/* Keeps those with at least p times the probability of the largest (Nguyen et al. 2024); p <= 0 keeps all. */
void weft__sample_candidates_min_p(weft__sample_candidates *c, float p);
/* The token that uniform u in [0, 1) picks from softmax(logit / temperature). */
int32_t weft__sample_candidates_draw(weft__sample_candidates *c, float temperature, double u);

#endif
