// SPDX-License-Identifier: Apache-2.0
/* hf_keys.c: the architecture's metadata, and the refusal of what config.json asks for and this engine does not compute
 * (hf_parts.h). Rope has a file of its own. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "model/hf_parts.h"

enum { MAX_CTX = 1 << 28 };

/* What the writing functions share. Each is a no-op once `status` is set, so that a list of keys reads as one. */
typedef struct hf_keys_keys {
    weft__hf *hf;
    weft__gguf_writer *w;
    weft_error *err;
    weft_status status;
    char full[128];
} hf_keys_keys;

static const char *key_of(hf_keys_keys *k, const char *suffix)
{
    snprintf(k->full, sizeof k->full, "%s.%s", k->hf->arch, suffix);
    return k->full;
}

static void put_int(hf_keys_keys *k, const char *suffix, int32_t value)
{
    if (!k->status) k->status = weft__gguf_put_u32(k->w, key_of(k, suffix), (uint32_t)value, k->err);
}

static void put_number(hf_keys_keys *k, const char *suffix, double value)
{
    if (!k->status) k->status = weft__gguf_put_f32(k->w, key_of(k, suffix), (float)value, k->err);
}

static void hf_keys_refuse(hf_keys_keys *k, const char *format, ...) WEFT_PRINTF(2, 3);
static void hf_keys_refuse(hf_keys_keys *k, const char *format, ...)
{
    char text[256];
    va_list args;
    if (k->status) return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    k->status = weft_fail(k->err, WEFT_UNSUPPORTED, "config.json: %s", text);
}

/* A number of config.json, or the default. */
static double number(hf_keys_keys *k, const char *key, double value)
{
    if (!k->status) k->status = weft__hf_number(k->hf->text, key, 0, &value, k->err);
    return value;
}

static int flag(hf_keys_keys *k, const char *key, int value)
{
    if (!k->status) k->status = weft__hf_flag(k->hf->text, key, &value, k->err);
    return value;
}

static int is_null(const hf_keys_keys *k, const char *key)
{
    const weft__json *v = weft__json_get(k->hf->text, key);
    return v && weft__json_is_null(v);
}

/* ---- checks ---- */

static void check_activation(hf_keys_keys *k)
{
    const char *given = NULL, *wanted = k->hf->family & WEFT__HF_GEMMAS ? "gelu_pytorch_tanh" : "silu";
    if (k->hf->family & WEFT__HF_GEMMAS) k->status = weft__hf_string(k->hf->text, "hidden_activation", &given, k->err);
    if (!k->status && !given) k->status = weft__hf_string(k->hf->text, "hidden_act", &given, k->err);
    if (k->status || !given || !strcmp(given, wanted)) return;
    if (!strcmp(wanted, "silu") && !strcmp(given, "swish")) return;
    hf_keys_refuse(k, "the activation '%.60s' is not supported for this architecture, only %s", given, wanted);
}

/* Which layers have a window: as this engine's architecture files do it. */
static int windowed(const weft__hf *hf, int32_t layer, int32_t window)
{
    if (hf->family == WEFT__HF_GEMMA2) return layer % 2 == 0;
    if (hf->family & WEFT__HF_GEMMA3S) return layer % 6 != 5;
    return window > 0;
}

static void check_layer_types(hf_keys_keys *k, int32_t window)
{
    const weft__json *types = weft__json_get(k->hf->text, "layer_types");
    if (k->status || !types || weft__json_is_null(types)) return;
    if (weft__json_size(types) != (size_t)k->hf->size.n_layers) {
        k->status =
            weft_fail(k->err, WEFT_FORMAT, "config.json: layer_types is no list of %d entries", k->hf->size.n_layers);
        return;
    }
    for (int32_t l = 0; l < k->hf->size.n_layers; l++) {
        const char *s, *wanted = windowed(k->hf, l, window) ? "sliding_attention" : "full_attention";
        size_t n;
        if (weft__json_string(weft__json_at(types, (size_t)l), &s, &n) && !strcmp(s, wanted)) continue;
        hf_keys_refuse(
            k, "layer_types: layer %d is not %s, as it is in the models of this architecture that are supported", l,
            wanted);
        return;
    }
}

/* The scale of Gemma's queries is a field; the architecture files know what the released models have. */
static void check_query_scale(hf_keys_keys *k)
{
    const weft__hf_sizes *z = &k->hf->size;
    int large = z->n_layers == (k->hf->family == WEFT__HF_GEMMA2 ? 46 : 62);
    double wanted = large ? (double)z->d_model / z->n_heads : z->head_dim,
           given = number(k, "query_pre_attn_scalar", 256);
    if (given != wanted)
        hf_keys_refuse(k, "query_pre_attn_scalar is %g; for %d layers and heads of %d only %g is supported", given,
                       z->n_layers, z->head_dim, wanted);
}

/* ---- by architecture ---- */

static int32_t window_of(hf_keys_keys *k, int32_t missing)
{
    int32_t window = is_null(k, "sliding_window") ? 0 : missing;
    if (!k->status) k->status = weft__hf_int(k->hf->text, "sliding_window", 0, 0, MAX_CTX, &window, k->err);
    return window;
}

static void llama(hf_keys_keys *k)
{
    int32_t window = 0;
    if (k->hf->family != WEFT__HF_LLAMA) window = window_of(k, k->hf->family == WEFT__HF_MISTRAL ? 4096 : 0);
    if (window > 0) put_int(k, "attention.sliding_window", window);
    check_layer_types(k, window);
    put_int(k, "vocab_size", k->hf->size.n_vocab);
    if (!k->status) k->status = weft__gguf_put_string(k->w, "weft.rope_style", "halves", 6, k->err);
}

static void qwen(hf_keys_keys *k)
{
    if (flag(k, "use_sliding_window", 0))
        hf_keys_refuse(k, "use_sliding_window is not supported for this architecture");
    check_layer_types(k, 0);
}

static void phi3(hf_keys_keys *k)
{
    int32_t window = window_of(k, 0);
    put_int(k, "attention.sliding_window", window);
    check_layer_types(k, window);
}

static void gemma(hf_keys_keys *k)
{
    int gemma2 = k->hf->family == WEFT__HF_GEMMA2;
    double attn = gemma2 ? 50 : 0, final = gemma2 ? 30 : 0, pattern = 6;
    attn = number(k, "attn_logit_softcapping", attn);
    final = number(k, "final_logit_softcapping", final);
    if (gemma2 &&
        (is_null(k, "attn_logit_softcapping") || is_null(k, "final_logit_softcapping") || !(attn > 0) || !(final > 0)))
        hf_keys_refuse(k, "Gemma 2 without soft-caps is not supported");
    if (!gemma2) {
        pattern = number(k, "sliding_window_pattern", number(k, "_sliding_window_pattern", pattern));
        if (number(k, "rope_local_base_freq", 10000) != 10000)
            hf_keys_refuse(k, "rope_local_base_freq other than 10000 is not supported");
    }
    if (pattern != 6) hf_keys_refuse(k, "sliding_window_pattern %g is not supported, only 6", pattern);
    if (flag(k, "use_bidirectional_attention", 0)) hf_keys_refuse(k, "use_bidirectional_attention is not supported");
    int32_t window = window_of(k, 4096);
    if (window < 1) hf_keys_refuse(k, "Gemma without a sliding_window is not supported");
    put_int(k, "attention.sliding_window", window);
    check_layer_types(k, window);
    check_query_scale(k);
    if (attn > 0) put_number(k, "attn_logit_softcapping", attn);
    if (final > 0) put_number(k, "final_logit_softcapping", final);
}

static void experts(hf_keys_keys *k)
{
    const weft__hf_sizes *z = &k->hf->size;
    int32_t used = k->hf->family == WEFT__HF_MIXTRAL ? 2 : 8, step = 1;
    if (!k->status) k->status = weft__hf_int(k->hf->text, "num_experts_per_tok", 0, 1, z->n_experts, &used, k->err);
    put_int(k, "expert_count", z->n_experts);
    put_int(k, "expert_used_count", used);
    if (k->hf->family == WEFT__HF_MIXTRAL) return;
    put_int(k, "expert_feed_forward_length", z->d_ff_expert);
    if (!k->status) k->status = weft__hf_int(k->hf->text, "decoder_sparse_step", 0, 1, MAX_CTX, &step, k->err);
    if (step != 1) hf_keys_refuse(k, "decoder_sparse_step %d is not supported, only 1", step);
    if (weft__json_size(weft__json_get(k->hf->text, "mlp_only_layers")))
        hf_keys_refuse(k, "mlp_only_layers is not supported");
    if (!flag(k, "norm_topk_prob", 0)) hf_keys_refuse(k, "norm_topk_prob false is not supported");
}

weft_status weft__hf_put_keys(weft__hf *hf, weft__gguf_writer *w, weft_error *err)
{
    hf_keys_keys k = {.hf = hf, .w = w, .err = err};
    const weft__hf_sizes *z = &hf->size;
    put_int(&k, "block_count", z->n_layers);
    put_int(&k, "context_length", z->n_ctx);
    put_int(&k, "embedding_length", z->d_model);
    put_int(&k, "feed_forward_length", z->d_ff);
    put_int(&k, "attention.head_count", z->n_heads);
    put_int(&k, "attention.head_count_kv", z->n_kv_heads);
    put_int(&k, "attention.key_length", z->head_dim);
    put_int(&k, "attention.value_length", z->head_dim);
    put_int(&k, "rope.dimension_count", z->n_rot);
    double eps = hf->family & (WEFT__HF_MIXTRAL | WEFT__HF_PHI3) ? 1e-5 : 1e-6;
    put_number(&k, "attention.layer_norm_rms_epsilon", number(&k, "rms_norm_eps", eps));
    if (hf->family & WEFT__HF_MOES) experts(&k);
    if (!k.status) check_activation(&k);
    if (hf->family & WEFT__HF_LLAMAS) llama(&k);
    if (hf->family & WEFT__HF_QWENS) qwen(&k);
    if (hf->family & WEFT__HF_PHI3) phi3(&k);
    if (hf->family & WEFT__HF_GEMMAS) gemma(&k);
    return k.status;
}
