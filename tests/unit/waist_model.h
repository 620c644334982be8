// SPDX-License-Identifier: Apache-2.0
/* waist_model.h: a small model with a step of each kind, for tests of how steps run. */
#ifndef WEFT_TESTS_WAIST_MODEL_H
#define WEFT_TESTS_WAIST_MODEL_H

#include "waist.h"

enum { D = 128, F = 256, V = 40, EXPERTS = 3, HEADS = 2, DIM = 64 };

static inline weft_tensor_id attention_block(stage *s, weft_tensor_id x, int window)
{
    weft_kv_group g = {window ? WEFT_KV_WINDOW : WEFT_KV_FULL, window, 1, HEADS, DIM, DIM, 16};
    weft_attr_kv kv = {weft__builder_kv_group(s->b, &g), 0};
    weft_attr_attention a = {.kv = kv,
                             .n_heads = HEADS,
                             .n_kv_heads = HEADS,
                             .head_dim_k = DIM,
                             .head_dim_v = DIM,
                             .scale = 0.1f,
                             .window = window};
    weft_attr_rope rope = {
        .n_heads = HEADS, .head_dim = DIM, .n_rot = DIM, .base = 10000, .freq_scale = 1, .attn_factor = 1};
    weft_tensor_id h = weft__op_norm(s->b, 0, x, stage_vector(s, D, "attn_norm"), 1e-5f, 0);
    weft_tensor_id q = weft__op_linear(s->b, 0, h, stage_weight(s, WEFT_Q4_0, D, D, 0, "q"), WEFT_NONE);
    weft_tensor_id k = weft__op_linear(s->b, 0, h, stage_weight(s, WEFT_Q4_0, D, D, 0, "k"), WEFT_NONE);
    weft_tensor_id v = weft__op_linear(s->b, 0, h, stage_weight(s, WEFT_Q8_0, D, D, 0, "v"), WEFT_NONE);
    q = weft__op_rope(s->b, 0, q, &rope, WEFT_NONE);
    k = weft__op_rope(s->b, 0, k, &rope, WEFT_NONE);
    weft_tensor_id y = weft__op_attention(s->b, 0, q, weft__op_kv_write(s->b, 0, k, v, kv), &a);
    return weft__op_add(s->b, 0, x, weft__op_linear(s->b, 0, y, stage_weight(s, WEFT_Q4_0, D, D, 0, "o"), WEFT_NONE));
}

static inline weft_tensor_id ffn_block(stage *s, weft_tensor_id x)
{
    weft_tensor_id h = weft__op_norm(s->b, 0, x, stage_vector(s, D, "ffn_norm"), 1e-5f, 0);
    weft_tensor_id g = weft__op_linear(s->b, 0, h, stage_weight(s, WEFT_Q4_0, D, F, 0, "gate"), WEFT_NONE);
    weft_tensor_id u = weft__op_linear(s->b, 0, h, stage_weight(s, WEFT_Q4_0, D, F, 0, "up"), WEFT_NONE);
    weft_tensor_id y = weft__op_glu(s->b, 0, g, u, WEFT_ACT_SILU);
    return weft__op_add(s->b, 0, x,
                        weft__op_linear(s->b, 0, y, stage_weight(s, WEFT_Q4_0, F, D, 0, "down"), WEFT_NONE));
}

static inline weft_tensor_id moe_block(stage *s, weft_tensor_id x)
{
    weft_attr_moe moe = {
        .n_experts = EXPERTS, .n_used = 2, .gate = WEFT_MOE_SOFTMAX, .scale = 1, .activation = WEFT_ACT_SILU};
    weft_weight_id router = stage_weight(s, WEFT_F32, D, EXPERTS, 0, "router");
    weft_tensor_id route = weft__op_moe_route(s->b, 1, weft__op_linear(s->b, 1, x, router, WEFT_NONE), &moe);
    weft_weight_id gates = stage_weight(s, WEFT_Q4_0, D, F, EXPERTS, "gates"),
                   ups = stage_weight(s, WEFT_Q4_0, D, F, EXPERTS, "ups"),
                   downs = stage_weight(s, WEFT_Q8_0, F, D, EXPERTS, "downs");
    return weft__op_add(s->b, 1, x, weft__op_moe_ffn(s->b, 1, x, route, gates, ups, downs, &moe));
}

/* Two layers, the first one's attention over a window; with_experts: a mixture behind it. */
static inline void waist_model(stage *s, int with_experts)
{
    stage_open(s, 45);
    weft_tensor_id x = weft__op_embed(s->b, stage_weight(s, WEFT_F32, D, V, 0, "token_embd"), 3);
    x = ffn_block(s, attention_block(s, x, 24));
    if (with_experts) x = moe_block(s, x);
    x = ffn_block(s, attention_block(s, x, 0));
    x = weft__op_norm(s->b, -1, weft__op_pick_rows(s->b, x), stage_vector(s, D, "output_norm"), 1e-5f, 0);
    weft__builder_output(s->b, weft__op_linear(s->b, -1, x, stage_weight(s, WEFT_Q8_0, D, V, 0, "head"), WEFT_NONE));
    stage_finish(s);
}

#endif
