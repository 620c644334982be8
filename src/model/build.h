// SPDX-License-Identifier: Apache-2.0
/* build.h: what an architecture file is written with: weights found by name and checked, and the blocks that models
 * share.
 *
 * An architecture file is straight-line code: the first failure is kept in the build and every later call is a no-op
 * that returns WEFT_NONE. One thread. */
#ifndef WEFT_MODEL_BUILD_H
#define WEFT_MODEL_BUILD_H

#include "graph/graph.h"
#include "model/hparams.h"

typedef struct weft__build {
    const weft__source *src;
    const weft__hparams *hp;
    weft__builder *b;
    weft_status status;
    weft_error *err;
    int32_t group_full, group_window; /* KV groups, WEFT_NONE where unused */
    weft_attr_kv kv_of[WEFT__HPARAMS_MAX_LAYERS];
    double n_params;
    uint8_t *used; /* [src->tensors->n]: that tensor was asked for; NULL where they cannot be listed */
} weft__build;

typedef struct weft__arch {
    const char *name; /* general.architecture */
    /* Fills what is peculiar to the architecture (rope style, windows); may be NULL. */
    weft_status (*hparams)(const weft__source *src, weft__hparams *hp, weft_error *err);
    void (*build)(weft__build *m);
} weft__arch;

/* The architecture of that name, or NULL. */
const weft__arch *weft__arch_find(const char *name);
/* Names of all, NULL-terminated. */
const char *const *weft__arch_names(void);

/* Reads the source's hyperparameters and builds its graph, ordered and checked. `hp` must outlive nothing; *build
 * receives the cost figures. n_ctx 0: the model's own. rope: what stands in place of the source's keys about it; NULL:
 * nothing. The caller owns *graph. A tensor that the architecture has no use for is an error that names it: without it
 * the model would compute something else without a word. */
weft_status weft__model_build(const weft__source *src, int32_t n_ctx, const weft_rope_params *rope, weft__hparams *hp,
                              weft__build *build, weft_graph **graph, weft_error *err);

enum weft__build_need { WEFT__BUILD_OPTIONAL, WEFT__BUILD_REQUIRED };

/* The tensor of that name as a matrix [k, n] (n 0: a vector of k); n_experts > 0: [k, n, n_experts]. Absent and
 * optional: WEFT_NONE. Another shape is an error that names both. Vectors must be F32. */
weft_weight_id weft__build_weight(weft__build *m, enum weft__build_need need, int64_t k, int64_t n,
                                  const char *name_format, ...) WEFT_PRINTF(5, 6);
weft_weight_id weft__build_experts(weft__build *m, int64_t k, int64_t n, int64_t n_experts, const char *name_format,
                                   ...) WEFT_PRINTF(5, 6);
/* Rows [first, first + n) of the matrix [k, n_total] of that name, as a weight of its own. */
weft_weight_id weft__build_rows(weft__build *m, int64_t k, int64_t n_total, int64_t first, int64_t n,
                                const char *name_format, ...) WEFT_PRINTF(6, 7);
void weft__build_fail(weft__build *m, weft_status status, const char *format, ...) WEFT_PRINTF(3, 4);

/* x -> norm with weight "blk.LAYER.NAME.weight". */
weft_tensor_id weft__build_norm(weft__build *m, int layer, weft_tensor_id x, const char *name);

typedef struct weft__build_attn_block {
    weft_weight_id q, k, v, out;                     /* matrices */
    weft_weight_id q_bias, k_bias, v_bias, out_bias; /* or WEFT_NONE */
    weft_weight_id q_norm, k_norm;                   /* per head [head_dim_k], or WEFT_NONE */
    weft_attr_rope rope;                             /* n_heads is filled in */
    weft_weight_id rope_factors;                     /* or WEFT_NONE */
    float scale, softcap;
} weft__build_attn_block;

/* The block with the usual names (attn_q, attn_k, attn_v, attn_output, their biases where present, attn_q_norm and
 * attn_k_norm where present), scale 1/sqrt(head_dim_k), the model's rope. */
weft__build_attn_block weft__build_attn_usual(weft__build *m, int layer);
/* Makes absent norms on q and k an error, for architectures that are nothing without them. */
void weft__build_need_qk_norm(weft__build *m, int layer, const weft__build_attn_block *block);
/* x [D,R], normed -> [D,R]. */
weft_tensor_id weft__build_attention(weft__build *m, int layer, weft_tensor_id x, const weft__build_attn_block *block);
/* down(act(gate x) * up x), with the usual names ffn_gate, ffn_up, ffn_down. */
weft_tensor_id weft__build_ffn(weft__build *m, int layer, weft_tensor_id x, int activation);
/* The same with given matrices. */
weft_tensor_id weft__build_gated(weft__build *m, int layer, weft_tensor_id x, weft_weight_id gate, weft_weight_id up,
                                 weft_weight_id down, int activation);
/* Routed experts with the usual names ffn_gate_inp, ffn_gate_exps, ffn_up_exps, ffn_down_exps. */
weft_tensor_id weft__build_moe(weft__build *m, int layer, weft_tensor_id x, int gate, int normalize, int activation);
/* Embedding of the step's tokens. */
weft_tensor_id weft__build_embed(weft__build *m, float scale);
/* Final norm, output matrix (the embedding's where there is no output.weight), soft-cap: the graph's outputs are the
 * logits [V,W] and x itself [D,R], the hidden state before the final norm. */
void weft__build_head(weft__build *m, weft_tensor_id x);

#endif
