// SPDX-License-Identifier: Apache-2.0
/* gemma3.c: Gemma 3: as Gemma 2 without soft-caps, with norms on the heads of q and k, and five windowed layers with a
 * local rope base of 10,000 for each layer with full attention and the model's own base. */
#include <math.h>

#include "model/arch/arch.h"

enum { PERIOD = 6 };
static const float LOCAL_BASE = 10000.0f;

static weft_status gemma3_hparams(const weft__source *src, weft__hparams *hp, weft_error *err)
{
    (void)err;
    hp->rope.style = WEFT_ROPE_HALVES;
    weft__source_value meta;
    if (!src->meta(src, "gemma3.rope.freq_base", &meta)) hp->rope.base = 1000000.0f; /* of all released models */
    for (int32_t l = 0; l < hp->n_layers; l++) hp->window_of[l] = l % PERIOD < PERIOD - 1 ? hp->sliding_window : 0;
    return WEFT_OK;
}

static void gemma3_build(weft__build *m)
{
    const weft__hparams *hp = m->hp;
    weft_tensor_id x = weft__build_embed(m, sqrtf((float)hp->d_model));
    for (int l = 0; l < hp->n_layers; l++) {
        weft__build_attn_block attn = weft__build_attn_usual(m, l);
        weft__build_need_qk_norm(m, l, &attn);
        if (hp->window_of[l] > 0) {
            attn.rope.base = LOCAL_BASE;
            attn.rope.freq_scale = 1; /* only the global layers are stretched */
        }
        /* The 27B model (62 layers) scales its queries by D/H instead of the head's width. */
        if (hp->n_layers == 62) attn.scale = 1.0f / sqrtf((float)hp->d_model / (float)hp->n_heads);
        weft_tensor_id h = weft__build_attention(m, l, weft__build_norm(m, l, x, "attn_norm"), &attn);
        x = weft__op_add(m->b, l, x, weft__build_norm(m, l, h, "post_attention_norm"));
        h = weft__build_ffn(m, l, weft__build_norm(m, l, x, "ffn_norm"), WEFT_ACT_GELU_TANH);
        x = weft__op_add(m->b, l, x, weft__build_norm(m, l, h, "post_ffw_norm"));
    }
    weft__build_head(m, x);
}

const weft__arch weft__arch_gemma3 = {"gemma3", gemma3_hparams, gemma3_build};
