// SPDX-License-Identifier: Apache-2.0
/* gemma2.c: Gemma 2: embeddings scaled by sqrt(D), norms before and after each block, GeGLU, soft-capped scores and
 * logits, a window on every other layer, the first included. (The files store norm weights with their 1 already
 * added.) */
#include <math.h>

#include "model/arch/arch.h"

static weft_status gemma2_hparams(const weft__source *src, weft__hparams *hp, weft_error *err)
{
    (void)src;
    (void)err;
    hp->rope.style = WEFT_ROPE_HALVES;
    if (hp->attn_softcap == 0) hp->attn_softcap = 50; /* what all released models have; old files leave it out */
    if (hp->final_softcap == 0) hp->final_softcap = 30;
    if (hp->sliding_window == 0) hp->sliding_window = 4096;
    for (int32_t l = 0; l < hp->n_layers; l += 2) hp->window_of[l] = hp->sliding_window;
    return WEFT_OK;
}

static void gemma2_build(weft__build *m)
{
    const weft__hparams *hp = m->hp;
    weft_tensor_id x = weft__build_embed(m, sqrtf((float)hp->d_model));
    for (int l = 0; l < hp->n_layers; l++) {
        weft__build_attn_block attn = weft__build_attn_usual(m, l);
        /* The 27B model (46 layers) scales its queries by D/H instead of the head's width. */
        if (hp->n_layers == 46) attn.scale = 1.0f / sqrtf((float)hp->d_model / (float)hp->n_heads);
        weft_tensor_id h = weft__build_attention(m, l, weft__build_norm(m, l, x, "attn_norm"), &attn);
        x = weft__op_add(m->b, l, x, weft__build_norm(m, l, h, "post_attention_norm"));
        h = weft__build_ffn(m, l, weft__build_norm(m, l, x, "ffn_norm"), WEFT_ACT_GELU_TANH);
        x = weft__op_add(m->b, l, x, weft__build_norm(m, l, h, "post_ffw_norm"));
    }
    weft__build_head(m, x);
}

const weft__arch weft__arch_gemma2 = {"gemma2", gemma2_hparams, gemma2_build};
