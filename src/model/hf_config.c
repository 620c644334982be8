// SPDX-License-Identifier: Apache-2.0
/* hf_config.c: config.json: which family of models it describes, and its sizes with the defaults of that family's
 * configuration class in transformers (hf_parts.h). */
#include <string.h>

#include "model/hf_parts.h"
#include "model/hparams.h"

enum { MAX_WIDTH = 1 << 20, MAX_HEADS = 1 << 14, MAX_CTX = 1 << 28, MAX_EXPERTS = 4096, MAX_VOCAB = 1 << 24 };

static const struct family {
    unsigned bit;
    const char *class_name, *model_type, *arch;
} FAMILIES[] = {
#define FAMILY(name, n, class_name, model_type, arch) {1u << (n), class_name, model_type, arch},
    WEFT__HF_FAMILIES(FAMILY)
#undef FAMILY
};
#define N_FAMILIES (sizeof FAMILIES / sizeof *FAMILIES)

#define CLASS(name, n, class_name, model_type, arch) class_name ", "
static const char CLASSES[] = WEFT__HF_FAMILIES(CLASS);
#undef CLASS

/* What a configuration class assumes; 0: the field is required, or follows from others. */
static const struct defaults {
    unsigned families;
    int32_t n_heads, n_kv_heads, head_dim, n_ctx;
} DEFAULTS[] = {
    {WEFT__HF_LLAMA, 0, 0, 0, 2048},     {WEFT__HF_MISTRAL | WEFT__HF_MIXTRAL, 0, 8, 0, 131072},
    {WEFT__HF_QWEN2, 0, 32, 0, 32768},   {WEFT__HF_QWEN3, 0, 32, 128, 32768},
    {WEFT__HF_QWEN3MOE, 0, 4, 0, 32768}, {WEFT__HF_PHI3, 0, 0, 0, 4096},
    {WEFT__HF_GEMMA2, 0, 4, 256, 8192},  {WEFT__HF_GEMMA3S, 8, 4, 256, 131072},
};

static const struct family *find_family(const char *text, size_t n, int by_type)
{
    for (size_t i = 0; i < N_FAMILIES; i++) {
        const char *name = by_type ? FAMILIES[i].model_type : FAMILIES[i].class_name;
        if (strlen(name) == n && !memcmp(name, text, n)) return &FAMILIES[i];
    }
    return NULL;
}

static weft_status read_family(weft__hf *hf, weft_error *err)
{
    const weft__json *list = weft__json_get(hf->config, "architectures");
    const struct family *f = NULL;
    const char *s = "none";
    size_t n = 4;
    char shown[WEFT__NAME_SHOW];
    int by_type = weft__json_size(list) == 0;
    if (weft__json_kind_of(hf->config) != WEFT__JSON_OBJECT)
        return weft_fail(err, WEFT_FORMAT, "config.json: it is no object");
    if (weft__json_string(by_type ? weft__json_get(hf->config, "model_type") : weft__json_at(list, 0), &s, &n))
        f = find_family(s, n, by_type);
    if (!f)
        return weft_fail(err, WEFT_UNSUPPORTED, "config.json: architecture '%s' is not supported; supported are: %.*s",
                         weft__name_show(shown, s, n), (int)sizeof CLASSES - 3, CLASSES);
    hf->family = f->bit;
    hf->arch = f->arch;
    hf->text = hf->config;
    if (f->bit == WEFT__HF_GEMMA3_VISION) {
        hf->text = weft__json_get(hf->config, "text_config");
        if (weft__json_kind_of(hf->text) != WEFT__JSON_OBJECT)
            return weft_fail(err, WEFT_FORMAT, "config.json: text_config is missing");
    }
    if (weft__json_get(hf->config, "quantization_config") &&
        !weft__json_is_null(weft__json_get(hf->config, "quantization_config")))
        return weft_fail(
            err, WEFT_UNSUPPORTED,
            "config.json: quantization_config: quantized folders are not supported; use the original weights");
    return WEFT_OK;
}

static weft_status read_experts(weft__hf *hf, weft_error *err)
{
    weft__hf_sizes *z = &hf->size;
    int mixtral = hf->family == WEFT__HF_MIXTRAL;
    if (!(hf->family & WEFT__HF_MOES)) return WEFT_OK;
    z->n_experts = mixtral ? 8 : 128;
    z->d_ff_expert = mixtral ? z->d_ff : 768;
    weft_status st =
        weft__hf_int(hf->text, mixtral ? "num_local_experts" : "num_experts", 0, 1, MAX_EXPERTS, &z->n_experts, err);
    if (st || mixtral) return st;
    return weft__hf_int(hf->text, "moe_intermediate_size", 0, 1, MAX_WIDTH, &z->d_ff_expert, err);
}

/* Phi 3 may rotate only the first part of each head; the others say so only in fields that are not supported. */
static weft_status read_rotated(weft__hf *hf, weft_error *err)
{
    double part = 1;
    const weft__json *rope = weft__json_get(hf->text, "rope_parameters");
    weft_status st = weft__hf_number(hf->text, "partial_rotary_factor", 0, &part, err);
    if (!st) st = weft__hf_number(rope, "partial_rotary_factor", 0, &part, err);
    if (st) return st;
    if (part != 1 && hf->family != WEFT__HF_PHI3)
        return weft_fail(err, WEFT_UNSUPPORTED,
                         "config.json: a partial_rotary_factor of %g is not supported for this architecture", part);
    if (!(part > 0 && part <= 1))
        return weft_fail(err, WEFT_FORMAT, "config.json: partial_rotary_factor is %g, not above 0 and at most 1", part);
    hf->size.n_rot = (int32_t)(hf->size.head_dim * part);
    if (hf->size.n_rot < 2 || hf->size.n_rot % 2)
        return weft_fail(err, WEFT_FORMAT, "config.json: %d rotated elements in a head of %d", hf->size.n_rot,
                         hf->size.head_dim);
    return WEFT_OK;
}

static weft_status read_attention(weft__hf *hf, const struct defaults *d, weft_error *err)
{
    weft__hf_sizes *z = &hf->size;
    weft_status st;
    z->n_heads = d->n_heads;
    if ((st = weft__hf_int(hf->text, "num_attention_heads", !d->n_heads, 1, MAX_HEADS, &z->n_heads, err))) return st;
    z->n_kv_heads = d->n_kv_heads ? d->n_kv_heads : z->n_heads;
    z->head_dim = d->head_dim ? d->head_dim : z->d_model / z->n_heads;
    if ((st = weft__hf_int(hf->text, "num_key_value_heads", 0, 1, MAX_HEADS, &z->n_kv_heads, err)) ||
        (st = weft__hf_int(hf->text, "head_dim", 0, 1, MAX_WIDTH, &z->head_dim, err)))
        return st;
    if (z->n_heads % z->n_kv_heads)
        return weft_fail(err, WEFT_FORMAT, "config.json: %d heads cannot share %d key/value heads evenly", z->n_heads,
                         z->n_kv_heads);
    if (z->head_dim < 1 || (int64_t)z->n_heads * z->head_dim > MAX_WIDTH)
        return weft_fail(err, WEFT_FORMAT, "config.json: %d heads of width %d", z->n_heads, z->head_dim);
    return read_rotated(hf, err);
}

weft_status weft__hf_read_sizes(weft__hf *hf, weft_error *err)
{
    weft__hf_sizes *z = &hf->size;
    weft_status st = read_family(hf, err);
    if (st) return st;
    const struct defaults *d = DEFAULTS;
    while (!(d->families & hf->family)) d++;
    z->n_ctx = d->n_ctx;
    z->tied = (hf->family & WEFT__HF_GEMMAS) != 0;
    if ((st = weft__hf_int(hf->text, "hidden_size", 1, 1, MAX_WIDTH, &z->d_model, err)) ||
        (st = weft__hf_int(hf->text, "intermediate_size", 1, 1, MAX_WIDTH, &z->d_ff, err)) ||
        (st = weft__hf_int(hf->text, "num_hidden_layers", 1, 1, WEFT__HPARAMS_MAX_LAYERS, &z->n_layers, err)) ||
        (st = weft__hf_int(hf->text, "max_position_embeddings", 0, 1, MAX_CTX, &z->n_ctx, err)) ||
        (st = weft__hf_int(hf->text, "vocab_size", 0, 1, MAX_VOCAB, &z->n_vocab, err)) ||
        (st = weft__hf_flag(hf->config, "tie_word_embeddings", &z->tied, err)) ||
        (st = weft__hf_flag(hf->text, "tie_word_embeddings", &z->tied, err)) || (st = read_attention(hf, d, err)))
        return st;
    return read_experts(hf, err);
}
