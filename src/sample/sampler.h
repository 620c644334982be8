// SPDX-License-Identifier: Apache-2.0
/* sampler.h: what the core asks of samplers beyond weft.h. Thread-safe. */
#ifndef WEFT_SAMPLE_SAMPLER_H
#define WEFT_SAMPLE_SAMPLER_H

#include "weft/weft.h"

/* Would weft_sampler_new take these? It refuses with the same messages. */
weft_status weft__sample_check(const weft_sampler_params *params, int32_t n_vocab, weft_error *err);
/* Bytes that it holds. */
uint64_t weft__sample_bytes(const weft_sampler *s);
/* The most that one of a request of n_ctx tokens holds, with some thousand biases. */
uint64_t weft__sample_bytes_most(int32_t n_vocab, int32_t n_ctx);

#endif
