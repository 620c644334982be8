// SPDX-License-Identifier: Apache-2.0
/* llama.c: Llama and what shares its shape: Mistral (a window on every layer where the file says so), Mixtral
 * (experts). Pre-norm, grouped-query attention with adjacent-pair rope, SwiGLU. Llama 3's frequency factors come as
 * rope_freqs.weight. */
#include <string.h>

#include "model/arch/arch.h"

static weft_status llama_hparams(const weft__source *src, weft__hparams *hp, weft_error *err)
{
    char style[16] = "";
    weft_status st = weft__source_string(src, NULL, "weft.rope_style", 0, style, sizeof style, err);
    if (st) return st;
    /* GGUF has the rows of q and k in pairs; a Hugging Face folder, in halves. */
    hp->rope.style = strcmp(style, "halves") ? WEFT_ROPE_ADJACENT : WEFT_ROPE_HALVES;
    for (int32_t l = 0; l < hp->n_layers; l++) hp->window_of[l] = hp->sliding_window;
    return WEFT_OK;
}

static void llama_build(weft__build *m)
{
    const weft__hparams *hp = m->hp;
    weft_weight_id factors = weft__build_weight(m, WEFT__BUILD_OPTIONAL, hp->rope.n_rot / 2, 0, "rope_freqs.weight");
    weft_tensor_id x = weft__build_embed(m, 1);
    for (int l = 0; l < hp->n_layers; l++) {
        weft__build_attn_block attn = weft__build_attn_usual(m, l);
        attn.rope_factors = factors;
        x = weft__op_add(m->b, l, x, weft__build_attention(m, l, weft__build_norm(m, l, x, "attn_norm"), &attn));
        weft_tensor_id h = weft__build_norm(m, l, x, "ffn_norm");
        h = hp->n_experts > 0 ? weft__build_moe(m, l, h, WEFT_MOE_SOFTMAX, 1, WEFT_ACT_SILU)
                              : weft__build_ffn(m, l, h, WEFT_ACT_SILU);
        x = weft__op_add(m->b, l, x, h);
    }
    weft__build_head(m, x);
}

const weft__arch weft__arch_llama = {"llama", llama_hparams, llama_build};
