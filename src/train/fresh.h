// SPDX-License-Identifier: Apache-2.0
/* fresh.h: a model that has not learned anything yet: hyperparameters, and weights drawn from a seed.
 * Matrices are normal with deviation 0.02, those that end a residual branch 0.02 / sqrt(2 L) (Radford et al. 2019),
 * norms are 1. The same shape and seed give the same model. Immutable once made. */
#ifndef WEFT_TRAIN_FRESH_H
#define WEFT_TRAIN_FRESH_H

#include "format/gguf.h"
#include "model/source.h"

typedef struct weft__train_scratch weft__train_scratch;

/* Architecture llama. */
typedef struct weft__train_scratch_shape {
    int32_t n_vocab, n_ctx, n_layers, d_model, d_ff, n_heads, n_kv_heads, head_dim;
    float rope_base, norm_eps; /* 0: 10000, 1e-5 */
    int tied;                  /* the output matrix is the embedding */
    const char *name;          /* general.name; NULL: "fresh" */
    uint64_t seed;
} weft__train_scratch_shape;

/* `extra` (may be NULL): metadata to be taken over, such as the tokenizer's; keys that the shape sets must not be among
 * them. The caller owns *out. Fails with WEFT_ARGUMENT (sizes that do not fit together), WEFT_EXISTS (a key twice),
 * WEFT_NO_MEMORY. */
weft_status weft__train_scratch_create(const weft__train_scratch_shape *shape, const weft__gguf *extra,
                                       weft__train_scratch **out, weft_error *err);
void weft__train_scratch_destroy(weft__train_scratch **f);
/* A view that lives as long as the model. */
void weft__train_scratch_source(const weft__train_scratch *f, weft__source *out);
/* All metadata, for weft__trainer_write_model. */
const weft__gguf *weft__train_scratch_meta(const weft__train_scratch *f);

#endif
