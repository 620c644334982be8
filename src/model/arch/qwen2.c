// SPDX-License-Identifier: Apache-2.0
/* qwen2.c: Qwen 2 and 2.5: as Llama, with biases on q, k and v and rope over halves. */
#include "model/arch/arch.h"

static weft_status qwen2_hparams(const weft__source *src, weft__hparams *hp, weft_error *err)
{
    (void)src;
    (void)err;
    hp->rope.style = WEFT_ROPE_HALVES;
    return WEFT_OK;
}

static void qwen2_build(weft__build *m)
{
    weft_tensor_id x = weft__build_embed(m, 1);
    for (int l = 0; l < m->hp->n_layers; l++) {
        weft__build_attn_block attn = weft__build_attn_usual(m, l);
        x = weft__op_add(m->b, l, x, weft__build_attention(m, l, weft__build_norm(m, l, x, "attn_norm"), &attn));
        x = weft__op_add(m->b, l, x, weft__build_ffn(m, l, weft__build_norm(m, l, x, "ffn_norm"), WEFT_ACT_SILU));
    }
    weft__build_head(m, x);
}

const weft__arch weft__arch_qwen2 = {"qwen2", qwen2_hparams, qwen2_build};
