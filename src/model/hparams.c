// SPDX-License-Identifier: Apache-2.0
/* hparams.c: metadata to hyperparameters. Every value is checked before anything is computed from it. */
#include "model/hparams.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Widths and counts beyond these are no model of today, and products of them stay far from overflow. */
enum { MAX_WIDTH = 1 << 20, MAX_VOCAB = 1 << 24, MAX_HEADS = 1 << 14, MAX_CTX = 1 << 28 };

/* Head counts and widths may be an array over layers; only equal ones are supported. */
static weft_status read_per_layer(const weft__source *src, const weft__hparams *hp, const char *suffix, int required,
                                  int32_t max, int32_t *out, weft_error *err)
{
    char key[128];
    weft__source_value meta;
    snprintf(key, sizeof key, "%s%s", hp->arch, suffix);
    if (!src->meta(src, key, &meta) || meta.kind != WEFT__SOURCE_ARRAY)
        return weft__source_i32(src, hp->arch, suffix, required, 1, max, out, err);
    if (meta.count < (uint64_t)hp->n_layers)
        return weft_fail(err, WEFT_FORMAT, "%s: key %s has %llu values for %d layers", src->label, key,
                         (unsigned long long)meta.count, hp->n_layers);
    double first = src->meta_at(src, key, 0);
    for (int32_t l = 1; l < hp->n_layers; l++)
        if (src->meta_at(src, key, (uint64_t)l) != first)
            return weft_fail(err, WEFT_UNSUPPORTED, "%s: key %s differs between layers, which is not supported",
                             src->label, key);
    if (!(first >= 1 && first <= max) || first != floor(first))
        return weft_fail(err, WEFT_FORMAT, "%s: key %s is %g, not in 1..%d", src->label, key, first, max);
    *out = (int32_t)first;
    return WEFT_OK;
}

static weft_status read_sizes(const weft__source *src, weft__hparams *hp, weft_error *err)
{
    const char *a = hp->arch;
    weft_status st;
    if ((st = weft__source_i32(src, a, ".block_count", 1, 1, WEFT__HPARAMS_MAX_LAYERS, &hp->n_layers, err)) ||
        (st = weft__source_i32(src, a, ".context_length", 1, 1, MAX_CTX, &hp->n_ctx_train, err)) ||
        (st = weft__source_i32(src, a, ".embedding_length", 1, 1, MAX_WIDTH, &hp->d_model, err)) ||
        (st = read_per_layer(src, hp, ".feed_forward_length", 1, MAX_WIDTH, &hp->d_ff, err)) ||
        (st = read_per_layer(src, hp, ".attention.head_count", 1, MAX_HEADS, &hp->n_heads, err)))
        return st;
    hp->n_kv_heads = hp->n_heads;
    if ((st = read_per_layer(src, hp, ".attention.head_count_kv", 0, MAX_HEADS, &hp->n_kv_heads, err))) return st;
    if (hp->n_heads % hp->n_kv_heads)
        return weft_fail(err, WEFT_FORMAT, "%s: %d heads cannot share %d key/value heads evenly", src->label,
                         hp->n_heads, hp->n_kv_heads);
    hp->head_dim_k = hp->d_model / hp->n_heads;
    if (hp->head_dim_k < 1)
        return weft_fail(err, WEFT_FORMAT, "%s: %d heads in a width of %d", src->label, hp->n_heads, hp->d_model);
    if ((st = weft__source_i32(src, a, ".attention.key_length", 0, 1, MAX_WIDTH, &hp->head_dim_k, err))) return st;
    hp->head_dim_v = hp->head_dim_k;
    if ((st = weft__source_i32(src, a, ".attention.value_length", 0, 1, MAX_WIDTH, &hp->head_dim_v, err))) return st;
    if ((int64_t)hp->n_heads * (hp->head_dim_k > hp->head_dim_v ? hp->head_dim_k : hp->head_dim_v) > MAX_WIDTH)
        return weft_fail(err, WEFT_FORMAT, "%s: %d heads of width %d are more than %d", src->label, hp->n_heads,
                         hp->head_dim_k, MAX_WIDTH);
    return WEFT_OK;
}

/* Files name the context after stretching, as usual, or the one before it. */
static int32_t reach(const weft__hparams *hp)
{
    double stretched = (double)hp->rope.n_ctx_orig * (double)hp->rope_factor;
    if (hp->rope_scaling != WEFT__HPARAMS_ROPE_LINEAR && hp->rope_scaling != WEFT__HPARAMS_ROPE_YARN)
        return hp->n_ctx_train;
    return stretched < hp->n_ctx_train ? hp->n_ctx_train : stretched < MAX_CTX ? (int32_t)stretched : MAX_CTX;
}

int32_t weft__hparams_reach(const weft__hparams *file, const weft__hparams *now, const weft_rope_params *p)
{
    if (!p->scaling && !(p->factor > 0) && !(p->freq_base > 0) && !p->orig_ctx) return file->n_ctx_max;
    const int32_t trained =
        file->rope_scaling && file->rope.n_ctx_orig < file->n_ctx_train ? file->rope.n_ctx_orig : file->n_ctx_train;
    const int keeps = !p->scaling && !(p->factor > 0) && !p->orig_ctx; /* the base alone is another */
    double most = keeps ? file->n_ctx_max : trained;
    if (now->rope_scaling == WEFT__HPARAMS_ROPE_LINEAR || now->rope_scaling == WEFT__HPARAMS_ROPE_YARN)
        most = fmax(most, (double)now->rope.n_ctx_orig * (double)now->rope_factor);
    /* The lowest frequency is base^-((n_rot - 2) / n_rot): another base stretches it by this. */
    const double n = now->rope.n_rot, by_base = pow((double)now->rope.base / (double)file->rope.base, (n - 2) / n);
    most = floor(most * fmax(1, by_base) * (1 + 1e-6)); /* factors are float32 */
    return most < MAX_CTX ? (int32_t)most : MAX_CTX;
}

static weft_status read_rope(const weft__source *src, weft__hparams *hp, weft_error *err)
{
    const char *a = hp->arch;
    weft_attr_rope *r = &hp->rope;
    weft_status st;
    float factor = 1, legacy = 0, mixed = 1;
    char scaling[32] = "";
    *r = (weft_attr_rope){.head_dim = hp->head_dim_k,
                          .n_rot = hp->head_dim_k,
                          .base = 10000,
                          .freq_scale = 1,
                          .attn_factor = 1,
                          .beta_fast = 32,
                          .beta_slow = 1,
                          .n_ctx_orig = hp->n_ctx_train};
    if ((st = weft__source_i32(src, a, ".rope.dimension_count", 0, 1, MAX_WIDTH, &r->n_rot, err)) ||
        (st = weft__source_f32(src, a, ".rope.freq_base", 0, &r->base, err)) ||
        (st = weft__source_f32(src, a, ".rope.scale_linear", 0, &legacy, err)) ||
        (st = weft__source_string(src, a, ".rope.scaling.type", 0, scaling, sizeof scaling, err)) ||
        (st = weft__source_f32(src, a, ".rope.scaling.factor", 0, &factor, err)) ||
        (st = weft__source_f32(src, a, ".rope.scaling.attn_factor", 0, &r->attn_factor, err)) ||
        (st = weft__source_i32(src, a, ".rope.scaling.original_context_length", 0, 1, MAX_CTX, &r->n_ctx_orig, err)) ||
        (st = weft__source_f32(src, a, ".rope.scaling.yarn_ext_factor", 0, &mixed, err)) ||
        (st = weft__source_f32(src, a, ".rope.scaling.yarn_beta_fast", 0, &r->beta_fast, err)) ||
        (st = weft__source_f32(src, a, ".rope.scaling.yarn_beta_slow", 0, &r->beta_slow, err)))
        return st;
    if (r->n_rot > hp->head_dim_k || r->n_rot % 2)
        return weft_fail(err, WEFT_FORMAT, "%s: %d rotated elements in a head of %d", src->label, r->n_rot,
                         hp->head_dim_k);
    if (!(r->base > 0) || !(factor >= 0) || !(legacy >= 0))
        return weft_fail(err, WEFT_FORMAT, "%s: rope base %g and scaling factor %g must be positive", src->label,
                         r->base, factor);
    hp->rope_factor = 1;
    if (!scaling[0] || !strcmp(scaling, "linear")) {
        /* A factor without a type means linear, as the oldest files had it. */
        float f = factor != 1 ? factor : legacy;
        hp->rope_scaling = f != 0 && f != 1 ? WEFT__HPARAMS_ROPE_LINEAR : WEFT__HPARAMS_ROPE_NONE;
        if (hp->rope_scaling == WEFT__HPARAMS_ROPE_LINEAR) {
            r->freq_scale = 1 / f;
            hp->rope_factor = f;
        }
    } else if (!strcmp(scaling, "yarn")) {
        if (!(factor > 0))
            return weft_fail(err, WEFT_FORMAT, "%s: YaRN rope scaling with factor %g", src->label, factor);
        hp->rope_scaling = WEFT__HPARAMS_ROPE_YARN;
        r->freq_scale = 1 / factor;
        hp->rope_factor = factor;
        if (!(mixed > 0)) mixed = 1; /* what says -1 leaves it to its reader */
        r->ext_factor = mixed;
        /* Attention temperature of the YaRN paper: 0.1 ln(s) + 1. */
        r->attn_factor *= 1.0f + 0.1f * logf(factor);
    } else if (!strcmp(scaling, "longrope")) {
        hp->rope_scaling = WEFT__HPARAMS_ROPE_LONGROPE;
    } else if (strcmp(scaling, "none")) {
        return weft_fail(err, WEFT_UNSUPPORTED,
                         "%s: rope scaling '%s' is not supported; known: none, linear, yarn, longrope", src->label,
                         scaling);
    }
    return WEFT_OK;
}

weft_status weft__hparams_read(const weft__source *src, const char *arch, int32_t n_ctx, weft__hparams *hp,
                               weft_error *err)
{
    weft_status st;
    memset(hp, 0, sizeof *hp);
    snprintf(hp->arch, sizeof hp->arch, "%s", arch);
    if ((st = read_sizes(src, hp, err))) return st;
    hp->n_ctx = n_ctx > 0 ? n_ctx : hp->n_ctx_train;
    if ((st = weft__source_f32(src, arch, ".attention.layer_norm_rms_epsilon", 1, &hp->norm_eps, err)) ||
        (st = read_rope(src, hp, err)))
        return st;
    hp->n_ctx_max = reach(hp);
    if (!(hp->norm_eps >= 0 && hp->norm_eps < 1))
        return weft_fail(err, WEFT_FORMAT, "%s: norm epsilon is %g", src->label, hp->norm_eps);
    const weft__tensor_desc *embd = src->tensor(src, "token_embd.weight");
    if (!embd) return weft_fail(err, WEFT_FORMAT, "%s: tensor token_embd.weight is missing", src->label);
    if (embd->d[1] > MAX_VOCAB)
        return weft_fail(err, WEFT_FORMAT, "%s: token_embd.weight has %llu rows", src->label,
                         (unsigned long long)embd->d[1]);
    hp->n_vocab = (int32_t)embd->d[1];
    hp->d_ff_expert = hp->d_ff;
    if ((st = weft__source_i32(src, arch, ".expert_count", 0, 0, 4096, &hp->n_experts, err)) ||
        (st = weft__source_i32(src, arch, ".expert_used_count", 0, 0, 4096, &hp->n_experts_used, err)) ||
        (st = weft__source_i32(src, arch, ".expert_feed_forward_length", 0, 0, MAX_WIDTH, &hp->d_ff_expert, err)) ||
        (st = weft__source_i32(src, arch, ".attention.sliding_window", 0, 0, MAX_CTX, &hp->sliding_window, err)) ||
        (st = weft__source_f32(src, arch, ".attn_logit_softcapping", 0, &hp->attn_softcap, err)) ||
        (st = weft__source_f32(src, arch, ".final_logit_softcapping", 0, &hp->final_softcap, err)) ||
        (st = weft__source_i32(src, arch, ".pooling_type", 0, -1, INT32_MAX, &hp->pooling, err)))
        return st;
    if (hp->n_experts_used > hp->n_experts || (hp->n_experts > 0 && hp->n_experts_used < 1))
        return weft_fail(err, WEFT_FORMAT, "%s: %d of %d experts used", src->label, hp->n_experts_used, hp->n_experts);
    return WEFT_OK;
}
