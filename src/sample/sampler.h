// SPDX-License-Identifier: Apache-2.0
/* sampler.h: what the core asks of samplers beyond weft.h. Thread-safe. */
#ifndef WEFT_SAMPLE_SAMPLER_H
#define WEFT_SAMPLE_SAMPLER_H

#include "base/random.h"
#include "weft/weft.h"

/* Would weft_sampler_new take these? It refuses with the same messages. */
weft_status weft__sample_check(const weft_sampler_params *params, int32_t n_vocab, weft_error *err);
/* Bytes that it holds. */
uint64_t weft__sample_bytes(const weft_sampler *s);
/* ---- looking ahead: what it would pick, without having picked ----
 * Between begin and end, tokens are picked and accepted as by weft_sampler_pick and weft_sampler_accept, with the same
 * random draws that come next; then all of it is undone. What guesses for the sampler from a smaller model's logits
 * picks what the sampler will, as far as the logits are alike. */
enum { WEFT__SAMPLE_AHEAD = 16 }; /* tokens of one look at most */
typedef struct weft__sample_ahead {
    weft__rng rng;
    int32_t n;
    int32_t token[WEFT__SAMPLE_AHEAD], lost[WEFT__SAMPLE_AHEAD]; /* lost: from the window; -1: none */
} weft__sample_ahead;
void weft__sample_ahead_begin(const weft_sampler *s, weft__sample_ahead *a);
/* logits [V], which it may change; *p: the part of the distribution that the token has before temperature and filters.
 * Fails as weft_sampler_pick does, and with WEFT_LIMIT behind WEFT__SAMPLE_AHEAD tokens. */
weft_status weft__sample_ahead_pick(weft_sampler *s, weft__sample_ahead *a, float *logits, int32_t *token, float *p,
                                    weft_error *err);
void weft__sample_ahead_end(weft_sampler *s, const weft__sample_ahead *a);

/* The most that one of a request of n_ctx tokens holds, with some thousand biases. */
uint64_t weft__sample_bytes_most(int32_t n_vocab, int32_t n_ctx);

#endif
