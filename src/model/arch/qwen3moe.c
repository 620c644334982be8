// SPDX-License-Identifier: Apache-2.0
/* qwen3moe.c: Qwen 3 with routed experts in every layer; the chosen experts' weights are divided by their sum. */
#include "model/arch/arch.h"

static weft_status qwen3moe_hparams(const weft__source *src, weft__hparams *hp, weft_error *err)
{
    hp->rope.style = WEFT_ROPE_HALVES;
    if (hp->n_experts < 1) return weft_fail(err, WEFT_FORMAT, "%s: key qwen3moe.expert_count is missing", src->label);
    return WEFT_OK;
}

static void qwen3moe_build(weft__build *m)
{
    weft_tensor_id x = weft__build_embed(m, 1);
    for (int l = 0; l < m->hp->n_layers; l++) {
        weft__build_attn_block attn = weft__build_attn_usual(m, l);
        weft__build_need_qk_norm(m, l, &attn);
        x = weft__op_add(m->b, l, x, weft__build_attention(m, l, weft__build_norm(m, l, x, "attn_norm"), &attn));
        weft_tensor_id h = weft__build_norm(m, l, x, "ffn_norm");
        x = weft__op_add(m->b, l, x, weft__build_moe(m, l, h, WEFT_MOE_SOFTMAX, 1, WEFT_ACT_SILU));
    }
    weft__build_head(m, x);
}

const weft__arch weft__arch_qwen3moe = {"qwen3moe", qwen3moe_hparams, qwen3moe_build};
