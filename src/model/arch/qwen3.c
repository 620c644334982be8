// SPDX-License-Identifier: Apache-2.0
/* qwen3.c: Qwen 3, dense: as Llama, with a norm on each head of q and k, and rope over halves. */
#include "model/arch/arch.h"

static weft_status qwen3_hparams(const weft__source *src, weft__hparams *hp, weft_error *err)
{
    (void)src;
    (void)err;
    hp->rope.style = WEFT_ROPE_HALVES;
    return WEFT_OK;
}

static void qwen3_build(weft__build *m)
{
    weft_tensor_id x = weft__build_embed(m, 1);
    for (int l = 0; l < m->hp->n_layers; l++) {
        weft__build_attn_block attn = weft__build_attn_usual(m, l);
        weft__build_need_qk_norm(m, l, &attn);
        x = weft__op_add(m->b, l, x, weft__build_attention(m, l, weft__build_norm(m, l, x, "attn_norm"), &attn));
        x = weft__op_add(m->b, l, x, weft__build_ffn(m, l, weft__build_norm(m, l, x, "ffn_norm"), WEFT_ACT_SILU));
    }
    weft__build_head(m, x);
}

const weft__arch weft__arch_qwen3 = {"qwen3", qwen3_hparams, qwen3_build};
