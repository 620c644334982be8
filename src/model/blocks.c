// SPDX-License-Identifier: Apache-2.0
/* blocks.c: the parts that most architectures are made of. */
#include <math.h>

#include "model/build.h"

weft_tensor_id weft__build_norm(weft__build *m, int layer, weft_tensor_id x, const char *name)
{
    weft_weight_id w = weft__build_weight(m, WEFT__BUILD_REQUIRED, m->hp->d_model, 0, "blk.%d.%s.weight", layer, name);
    return weft__op_norm(m->b, layer, x, w, m->hp->norm_eps, 0);
}

weft__build_attn_block weft__build_attn_usual(weft__build *m, int l)
{
    const weft__hparams *hp = m->hp;
    int64_t d = hp->d_model, n_q = (int64_t)hp->n_heads * hp->head_dim_k,
            n_k = (int64_t)hp->n_kv_heads * hp->head_dim_k;
    int64_t n_v = (int64_t)hp->n_kv_heads * hp->head_dim_v, n_o = (int64_t)hp->n_heads * hp->head_dim_v;
    weft__build_attn_block a = {.rope = hp->rope,
                                .rope_factors = WEFT_NONE,
                                .scale = 1.0f / sqrtf((float)hp->head_dim_k),
                                .softcap = hp->attn_softcap};
    a.q = weft__build_weight(m, WEFT__BUILD_REQUIRED, d, n_q, "blk.%d.attn_q.weight", l);
    a.k = weft__build_weight(m, WEFT__BUILD_REQUIRED, d, n_k, "blk.%d.attn_k.weight", l);
    a.v = weft__build_weight(m, WEFT__BUILD_REQUIRED, d, n_v, "blk.%d.attn_v.weight", l);
    a.out = weft__build_weight(m, WEFT__BUILD_REQUIRED, n_o, d, "blk.%d.attn_output.weight", l);
    a.q_bias = weft__build_weight(m, WEFT__BUILD_OPTIONAL, n_q, 0, "blk.%d.attn_q.bias", l);
    a.k_bias = weft__build_weight(m, WEFT__BUILD_OPTIONAL, n_k, 0, "blk.%d.attn_k.bias", l);
    a.v_bias = weft__build_weight(m, WEFT__BUILD_OPTIONAL, n_v, 0, "blk.%d.attn_v.bias", l);
    a.out_bias = weft__build_weight(m, WEFT__BUILD_OPTIONAL, d, 0, "blk.%d.attn_output.bias", l);
    a.q_norm = weft__build_weight(m, WEFT__BUILD_OPTIONAL, hp->head_dim_k, 0, "blk.%d.attn_q_norm.weight", l);
    a.k_norm = weft__build_weight(m, WEFT__BUILD_OPTIONAL, hp->head_dim_k, 0, "blk.%d.attn_k_norm.weight", l);
    return a;
}

void weft__build_need_qk_norm(weft__build *m, int l, const weft__build_attn_block *a)
{
    if (a->q_norm == WEFT_NONE) weft__build_fail(m, WEFT_FORMAT, "tensor blk.%d.attn_q_norm.weight is missing", l);
    if (a->k_norm == WEFT_NONE) weft__build_fail(m, WEFT_FORMAT, "tensor blk.%d.attn_k_norm.weight is missing", l);
}

weft_tensor_id weft__build_attention(weft__build *m, int l, weft_tensor_id x, const weft__build_attn_block *a)
{
    const weft__hparams *hp = m->hp;
    weft_tensor_id q = weft__op_linear(m->b, l, x, a->q, a->q_bias);
    weft_tensor_id k = weft__op_linear(m->b, l, x, a->k, a->k_bias);
    weft_tensor_id v = weft__op_linear(m->b, l, x, a->v, a->v_bias);
    if (a->q_norm != WEFT_NONE) q = weft__op_norm(m->b, l, q, a->q_norm, hp->norm_eps, hp->head_dim_k);
    if (a->k_norm != WEFT_NONE) k = weft__op_norm(m->b, l, k, a->k_norm, hp->norm_eps, hp->head_dim_k);
    weft_attr_rope rope = a->rope;
    rope.n_heads = hp->n_heads;
    q = weft__op_rope(m->b, l, q, &rope, a->rope_factors);
    rope.n_heads = hp->n_kv_heads;
    k = weft__op_rope(m->b, l, k, &rope, a->rope_factors);
    weft_tensor_id order = weft__op_kv_write(m->b, l, k, v, m->kv_of[l]);
    weft_attr_attention attr = {.kv = m->kv_of[l],
                                .n_heads = hp->n_heads,
                                .n_kv_heads = hp->n_kv_heads,
                                .head_dim_k = hp->head_dim_k,
                                .head_dim_v = hp->head_dim_v,
                                .scale = a->scale,
                                .softcap = a->softcap,
                                .window = hp->window_of[l]};
    return weft__op_linear(m->b, l, weft__op_attention(m->b, l, q, order, &attr), a->out, a->out_bias);
}

weft_tensor_id weft__build_gated(weft__build *m, int l, weft_tensor_id x, weft_weight_id gate, weft_weight_id up,
                                 weft_weight_id down, int activation)
{
    weft_tensor_id g = weft__op_linear(m->b, l, x, gate, WEFT_NONE);
    weft_tensor_id u = weft__op_linear(m->b, l, x, up, WEFT_NONE);
    return weft__op_linear(m->b, l, weft__op_glu(m->b, l, g, u, activation), down, WEFT_NONE);
}

weft_tensor_id weft__build_ffn(weft__build *m, int l, weft_tensor_id x, int activation)
{
    int64_t d = m->hp->d_model, f = m->hp->d_ff;
    weft_weight_id gate = weft__build_weight(m, WEFT__BUILD_REQUIRED, d, f, "blk.%d.ffn_gate.weight", l);
    weft_weight_id up = weft__build_weight(m, WEFT__BUILD_REQUIRED, d, f, "blk.%d.ffn_up.weight", l);
    weft_weight_id down = weft__build_weight(m, WEFT__BUILD_REQUIRED, f, d, "blk.%d.ffn_down.weight", l);
    return weft__build_gated(m, l, x, gate, up, down, activation);
}

weft_tensor_id weft__build_moe(weft__build *m, int l, weft_tensor_id x, int gate, int normalize, int activation)
{
    const weft__hparams *hp = m->hp;
    int64_t d = hp->d_model, f = hp->d_ff_expert, e = hp->n_experts;
    weft_attr_moe attr = {.n_experts = hp->n_experts,
                          .n_used = hp->n_experts_used,
                          .gate = gate,
                          .normalize = normalize,
                          .scale = 1,
                          .activation = activation};
    weft_weight_id router = weft__build_weight(m, WEFT__BUILD_REQUIRED, d, e, "blk.%d.ffn_gate_inp.weight", l);
    weft_weight_id w_gate = weft__build_experts(m, d, f, e, "blk.%d.ffn_gate_exps.weight", l);
    weft_weight_id w_up = weft__build_experts(m, d, f, e, "blk.%d.ffn_up_exps.weight", l);
    weft_weight_id w_down = weft__build_experts(m, f, d, e, "blk.%d.ffn_down_exps.weight", l);
    weft_tensor_id route = weft__op_moe_route(m->b, l, weft__op_linear(m->b, l, x, router, WEFT_NONE), &attr);
    return weft__op_moe_ffn(m->b, l, x, route, w_gate, w_up, w_down, &attr);
}

weft_tensor_id weft__build_embed(weft__build *m, float scale)
{
    weft_weight_id table =
        weft__build_weight(m, WEFT__BUILD_REQUIRED, m->hp->d_model, m->hp->n_vocab, "token_embd.weight");
    return weft__op_embed(m->b, table, scale);
}

void weft__build_head(weft__build *m, weft_tensor_id x)
{
    const weft__hparams *hp = m->hp;
    weft_weight_id norm = weft__build_weight(m, WEFT__BUILD_REQUIRED, hp->d_model, 0, "output_norm.weight");
    weft_weight_id out = weft__build_weight(m, WEFT__BUILD_OPTIONAL, hp->d_model, hp->n_vocab, "output.weight");
    if (out == WEFT_NONE) {
        out = weft__build_weight(m, WEFT__BUILD_REQUIRED, hp->d_model, hp->n_vocab, "token_embd.weight");
        m->n_params -= (double)hp->d_model * hp->n_vocab; /* counted as the embedding */
    }
    weft_tensor_id logits = weft__op_norm(m->b, -1, weft__op_pick_rows(m->b, x), norm, hp->norm_eps, 0);
    logits = weft__op_linear(m->b, -1, logits, out, WEFT_NONE);
    if (hp->final_softcap > 0) logits = weft__op_softcap(m->b, -1, logits, hp->final_softcap);
    weft__builder_output(m->b, logits);
    weft__builder_output(m->b, x); /* costs nothing where it is not asked for; its norm is the caller's */
}
