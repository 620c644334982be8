// SPDX-License-Identifier: Apache-2.0
/* phi3.c: Phi 3 and 3.5: q, k and v in one matrix, gate and up in another, a window on every layer, and for the
 * long-context variants two sets of rope factors, chosen by the context in use. */
#include <math.h>

#include "model/arch/arch.h"

static weft_status phi3_hparams(const weft__source *src, weft__hparams *hp, weft_error *err)
{
    (void)src;
    (void)err;
    hp->rope.style = WEFT_ROPE_HALVES;
    for (int32_t l = 0; l < hp->n_layers; l++) hp->window_of[l] = hp->sliding_window;
    return WEFT_OK;
}

/* The factors of LongRoPE (Ding et al. 2024): short ones up to the original context, long ones beyond. */
static weft_weight_id rope_factors(weft__build *m)
{
    const weft__hparams *hp = m->hp;
    int long_context = hp->n_ctx > hp->rope.n_ctx_orig;
    return weft__build_weight(m, WEFT__BUILD_OPTIONAL, hp->rope.n_rot / 2, 0, "%s",
                              long_context ? "rope_factors_long.weight" : "rope_factors_short.weight");
}

static weft__build_attn_block attention_block(weft__build *m, int l)
{
    const weft__hparams *hp = m->hp;
    int64_t d = hp->d_model, n_q = (int64_t)hp->n_heads * hp->head_dim_k,
            n_k = (int64_t)hp->n_kv_heads * hp->head_dim_k;
    int64_t n_v = (int64_t)hp->n_kv_heads * hp->head_dim_v, all = n_q + n_k + n_v;
    weft__build_attn_block a = {.q_bias = WEFT_NONE,
                                .k_bias = WEFT_NONE,
                                .v_bias = WEFT_NONE,
                                .out_bias = WEFT_NONE,
                                .q_norm = WEFT_NONE,
                                .k_norm = WEFT_NONE,
                                .rope = hp->rope,
                                .scale = 1.0f / sqrtf((float)hp->head_dim_k)};
    a.q = weft__build_rows(m, d, all, 0, n_q, "blk.%d.attn_qkv.weight", l);
    a.k = weft__build_rows(m, d, all, n_q, n_k, "blk.%d.attn_qkv.weight", l);
    a.v = weft__build_rows(m, d, all, n_q + n_k, n_v, "blk.%d.attn_qkv.weight", l);
    a.out = weft__build_weight(m, WEFT__BUILD_REQUIRED, (int64_t)hp->n_heads * hp->head_dim_v, d,
                               "blk.%d.attn_output.weight", l);
    return a;
}

static weft_tensor_id ffn(weft__build *m, int l, weft_tensor_id x)
{
    int64_t d = m->hp->d_model, f = m->hp->d_ff;
    weft_weight_id gate = weft__build_rows(m, d, 2 * f, 0, f, "blk.%d.ffn_up.weight", l);
    weft_weight_id up = weft__build_rows(m, d, 2 * f, f, f, "blk.%d.ffn_up.weight", l);
    weft_weight_id down = weft__build_weight(m, WEFT__BUILD_REQUIRED, f, d, "blk.%d.ffn_down.weight", l);
    return weft__build_gated(m, l, x, gate, up, down, WEFT_ACT_SILU);
}

static void phi3_build(weft__build *m)
{
    weft_weight_id factors = rope_factors(m);
    weft_tensor_id x = weft__build_embed(m, 1);
    for (int l = 0; l < m->hp->n_layers; l++) {
        weft__build_attn_block attn = attention_block(m, l);
        attn.rope_factors = factors;
        x = weft__op_add(m->b, l, x, weft__build_attention(m, l, weft__build_norm(m, l, x, "attn_norm"), &attn));
        x = weft__op_add(m->b, l, x, ffn(m, l, weft__build_norm(m, l, x, "ffn_norm")));
    }
    weft__build_head(m, x);
}

const weft__arch weft__arch_phi3 = {"phi3", phi3_hparams, phi3_build};
