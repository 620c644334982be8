// SPDX-License-Identifier: Apache-2.0
/* hparams.h: the numbers that describe a model, read from its metadata and checked. */
#ifndef WEFT_MODEL_HPARAMS_H
#define WEFT_MODEL_HPARAMS_H

#include "model/source.h"
#include "weft/graph.h"
#include "weft/weft.h"

#define WEFT__HPARAMS_MAX_LAYERS 1024

typedef struct weft__hparams {
    char arch[64];
    int32_t n_vocab, n_ctx_train, n_layers, d_model, d_ff;
    int32_t n_heads, n_kv_heads, head_dim_k, head_dim_v;
    int32_t n_ctx;     /* that will be used; rope scaling may depend on it */
    int32_t n_ctx_max; /* tokens at most: those it was trained for, or what rope scaling makes of them */
    float norm_eps;
    weft_attr_rope rope;  /* n_heads unset: it differs for q and k */
    int32_t rope_scaling; /* weft__hparams_rope_scaling */
    float rope_factor;    /* of linear and YaRN scaling; 1 otherwise */
    int32_t n_experts, n_experts_used, d_ff_expert;
    int32_t sliding_window; /* 0: none */
    float attn_softcap, final_softcap;
    int32_t pooling; /* weft__hparams_pooling, or a number that is none of them: what embeddings are made of */
    int32_t window_of[WEFT__HPARAMS_MAX_LAYERS]; /* per layer, 0: full attention; set by the architecture */
} weft__hparams;

enum weft__hparams_rope_scaling {
    WEFT__HPARAMS_ROPE_NONE,
    WEFT__HPARAMS_ROPE_LINEAR,
    WEFT__HPARAMS_ROPE_YARN,
    WEFT__HPARAMS_ROPE_LONGROPE
};

/* The numbers of llama.cpp's enum llama_pooling_type, as files have them. */
enum weft__hparams_pooling {
    WEFT__HPARAMS_POOLING_UNSAID = -1,
    WEFT__HPARAMS_POOLING_NONE,
    WEFT__HPARAMS_POOLING_MEAN,
    WEFT__HPARAMS_POOLING_LAST = 3
};

/* Reads the keys that all architectures share, under `arch`, and checks their ranges; n_ctx 0 takes the model's own. */
weft_status weft__hparams_read(const weft__source *src, const char *arch, int32_t n_ctx, weft__hparams *out,
                               weft_error *err);

/* n_ctx_max where p overrides keys of a file: `file` was read without it, `now` with it. */
int32_t weft__hparams_reach(const weft__hparams *file, const weft__hparams *now, const weft_rope_params *p);

#endif
