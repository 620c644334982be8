// SPDX-License-Identifier: Apache-2.0
/* hf_tensors.c: the tensors of a folder by rules: what each is called here and in GGUF, its shape in terms of
 * config.json, and what becomes of it (hf_parts.h).
 *
 * Invariant: every tensor of the folder is used by a rule or known to be of no use; any other is refused by name. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "model/hf_parts.h"

enum { OPTIONAL = 1, PLUS_ONE = 2, Q_ROWS = 4, K_ROWS = 8, TIED_AWAY = 16 };

/* Shapes as the folder writes them, a letter per dimension: V vocabulary, D model, Q and K all heads of queries and of
 * keys, H a head, A queries, keys and values, F feed-forward, G gate and up, E experts, X an expert's feed-forward. */
struct rule {
    const char *name, *gguf; /* %d: the layer, then the expert */
    const char *shape;
    unsigned families, flags;
};

#define NOT_PHI3 (WEFT__HF_ALL & ~WEFT__HF_PHI3)
#define DENSE (NOT_PHI3 & ~WEFT__HF_MOES)
#define NORMED (WEFT__HF_QWEN3 | WEFT__HF_QWEN3MOE)
#define WITH_BIAS (WEFT__HF_LLAMAS | WEFT__HF_QWEN3 | WEFT__HF_QWEN3MOE) /* where attention_bias is set */

static const struct rule OF_MODEL[] = {
    {"model.embed_tokens.weight", "token_embd.weight", "VD", WEFT__HF_ALL, 0},
    {"model.norm.weight", "output_norm.weight", "D", WEFT__HF_ALL & ~WEFT__HF_GEMMAS, 0},
    {"model.norm.weight", "output_norm.weight", "D", WEFT__HF_GEMMAS, PLUS_ONE},
    {"lm_head.weight", "output.weight", "VD", WEFT__HF_ALL, TIED_AWAY},
};

#define LAYER "model.layers.%d."
static const struct rule OF_LAYER[] = {
    {LAYER "input_layernorm.weight", "blk.%d.attn_norm.weight", "D", WEFT__HF_ALL & ~WEFT__HF_GEMMAS, 0},
    {LAYER "input_layernorm.weight", "blk.%d.attn_norm.weight", "D", WEFT__HF_GEMMAS, PLUS_ONE},
    {LAYER "self_attn.q_proj.weight", "blk.%d.attn_q.weight", "QD", NOT_PHI3, Q_ROWS},
    {LAYER "self_attn.k_proj.weight", "blk.%d.attn_k.weight", "KD", NOT_PHI3, K_ROWS},
    {LAYER "self_attn.v_proj.weight", "blk.%d.attn_v.weight", "KD", NOT_PHI3, 0},
    {LAYER "self_attn.q_proj.bias", "blk.%d.attn_q.bias", "Q", WEFT__HF_QWEN2, 0},
    {LAYER "self_attn.k_proj.bias", "blk.%d.attn_k.bias", "K", WEFT__HF_QWEN2, 0},
    {LAYER "self_attn.v_proj.bias", "blk.%d.attn_v.bias", "K", WEFT__HF_QWEN2, 0},
    {LAYER "self_attn.q_proj.bias", "blk.%d.attn_q.bias", "Q", WITH_BIAS, OPTIONAL | Q_ROWS},
    {LAYER "self_attn.k_proj.bias", "blk.%d.attn_k.bias", "K", WITH_BIAS, OPTIONAL | K_ROWS},
    {LAYER "self_attn.v_proj.bias", "blk.%d.attn_v.bias", "K", WITH_BIAS, OPTIONAL},
    {LAYER "self_attn.o_proj.bias", "blk.%d.attn_output.bias", "D", WITH_BIAS, OPTIONAL},
    {LAYER "self_attn.qkv_proj.weight", "blk.%d.attn_qkv.weight", "AD", WEFT__HF_PHI3, 0},
    {LAYER "self_attn.o_proj.weight", "blk.%d.attn_output.weight", "DQ", WEFT__HF_ALL, 0},
    {LAYER "self_attn.q_norm.weight", "blk.%d.attn_q_norm.weight", "H", NORMED, 0},
    {LAYER "self_attn.k_norm.weight", "blk.%d.attn_k_norm.weight", "H", NORMED, 0},
    {LAYER "self_attn.q_norm.weight", "blk.%d.attn_q_norm.weight", "H", WEFT__HF_GEMMA3S, PLUS_ONE},
    {LAYER "self_attn.k_norm.weight", "blk.%d.attn_k_norm.weight", "H", WEFT__HF_GEMMA3S, PLUS_ONE},
    {LAYER "post_attention_layernorm.weight", "blk.%d.ffn_norm.weight", "D", WEFT__HF_ALL & ~WEFT__HF_GEMMAS, 0},
    {LAYER "post_attention_layernorm.weight", "blk.%d.post_attention_norm.weight", "D", WEFT__HF_GEMMAS, PLUS_ONE},
    {LAYER "pre_feedforward_layernorm.weight", "blk.%d.ffn_norm.weight", "D", WEFT__HF_GEMMAS, PLUS_ONE},
    {LAYER "post_feedforward_layernorm.weight", "blk.%d.post_ffw_norm.weight", "D", WEFT__HF_GEMMAS, PLUS_ONE},
    {LAYER "mlp.gate_proj.weight", "blk.%d.ffn_gate.weight", "FD", DENSE, 0},
    {LAYER "mlp.up_proj.weight", "blk.%d.ffn_up.weight", "FD", DENSE, 0},
    {LAYER "mlp.gate_up_proj.weight", "blk.%d.ffn_up.weight", "GD", WEFT__HF_PHI3, 0},
    {LAYER "mlp.down_proj.weight", "blk.%d.ffn_down.weight", "DF", DENSE | WEFT__HF_PHI3, 0},
    {LAYER "block_sparse_moe.gate.weight", "blk.%d.ffn_gate_inp.weight", "ED", WEFT__HF_MIXTRAL, 0},
    {LAYER "mlp.gate.weight", "blk.%d.ffn_gate_inp.weight", "ED", WEFT__HF_QWEN3MOE, 0},
};

/* One of these per expert; together they are one tensor. */
static const struct rule OF_EXPERT[] = {
    {LAYER "block_sparse_moe.experts.%d.w1.weight", "blk.%d.ffn_gate_exps.weight", "XD", WEFT__HF_MIXTRAL, 0},
    {LAYER "block_sparse_moe.experts.%d.w3.weight", "blk.%d.ffn_up_exps.weight", "XD", WEFT__HF_MIXTRAL, 0},
    {LAYER "block_sparse_moe.experts.%d.w2.weight", "blk.%d.ffn_down_exps.weight", "DX", WEFT__HF_MIXTRAL, 0},
    {LAYER "mlp.experts.%d.gate_proj.weight", "blk.%d.ffn_gate_exps.weight", "XD", WEFT__HF_QWEN3MOE, 0},
    {LAYER "mlp.experts.%d.up_proj.weight", "blk.%d.ffn_up_exps.weight", "XD", WEFT__HF_QWEN3MOE, 0},
    {LAYER "mlp.experts.%d.down_proj.weight", "blk.%d.ffn_down_exps.weight", "DX", WEFT__HF_QWEN3MOE, 0},
};

/* Where the language model's tensors are in a folder that also sees. */
typedef enum hf_tensors_layout {
    PLAIN,
    OUTER,
    INNER
} hf_tensors_layout; /* model.X, language_model.model.X, model.language_model.X */

typedef struct hf_tensors_reading {
    weft__hf *hf;
    const weft__tensor_set *set;
    uint8_t *used; /* [set->n] */
    hf_tensors_layout layout;
    weft_error *err;
} hf_tensors_reading;

static uint64_t dimension(const weft__hf *hf, char letter)
{
    const weft__hf_sizes *z = &hf->size;
    uint64_t q = (uint64_t)z->n_heads * (uint64_t)z->head_dim, k = (uint64_t)z->n_kv_heads * (uint64_t)z->head_dim;
    switch (letter) {
    case 'V': return (uint64_t)z->n_vocab;
    case 'D': return (uint64_t)z->d_model;
    case 'Q': return q;
    case 'K': return k;
    case 'H': return (uint64_t)z->head_dim;
    case 'A': return q + 2 * k;
    case 'F': return (uint64_t)z->d_ff;
    case 'G': return 2 * (uint64_t)z->d_ff;
    case 'E': return (uint64_t)z->n_experts;
    default: return (uint64_t)z->d_ff_expert; /* X */
    }
}

/* Where a tensor of this name would be: "model.layers..." with the folder's prefix. */
static void place_name(const hf_tensors_reading *r, char *out, size_t size, const char *name)
{
    int inner = r->layout == INNER && !strncmp(name, "model.", 6);
    snprintf(out, size, "%s%s",
             inner                ? "model.language_model."
             : r->layout == OUTER ? "language_model."
                                  : "",
             inner ? name + 6 : name);
}

/* Finds the tensor, notes its use and checks its shape. NULL with *status OK when it is absent and optional. */
static const weft__tensor_desc *hf_tensors_find(hf_tensors_reading *r, const struct rule *rule, const char *name,
                                                weft_status *status)
{
    char full[256];
    place_name(r, full, sizeof full, name);
    const weft__tensor_desc *t = weft__tensor_find(r->set, full);
    size_t n = strlen(rule->shape);
    *status = WEFT_OK;
    if (!t) {
        if (!(rule->flags & OPTIONAL)) *status = weft_fail(r->err, WEFT_FORMAT, "tensor %s is missing", full);
        return NULL;
    }
    r->used[t - r->set->items] = 1;
    int ok = t->n_dims == n;
    for (size_t i = 0; ok && i < n; i++) ok = t->d[n - 1 - i] == dimension(r->hf, rule->shape[i]);
    if (ok) return t;
    char is[96] = "", want[96] = "";
    for (size_t i = t->n_dims, at = 0; i-- > 0 && at < sizeof is;)
        at += (size_t)snprintf(is + at, sizeof is - at, "%s%llu", at ? ", " : "", (unsigned long long)t->d[i]);
    for (size_t i = 0, at = 0; i < n; i++)
        at += (size_t)snprintf(want + at, sizeof want - at, "%s%llu", at ? ", " : "",
                               (unsigned long long)dimension(r->hf, rule->shape[i]));
    *status = weft_fail(r->err, WEFT_FORMAT, "tensor %s is [%s]; config.json says [%s]", full, is, want);
    return NULL;
}

/* Adds the tensor under its GGUF name; parts in the arena. */
static weft_status hf_tensors_add(hf_tensors_reading *r, const struct rule *rule, int layer,
                                  const weft__tensor_desc *const *parts, size_t n_parts, int experts)
{
    char name[WEFT__GGUF_TENSOR_NAME_BYTES];
    weft__hf *hf = r->hf;
    weft__hf_tensor how = {.parts = parts, .n_parts = n_parts, .plus_one = (rule->flags & PLUS_ONE) != 0};
    weft__tensor_desc t = *parts[0];
    snprintf(name, sizeof name, rule->gguf, layer);
    t.name = name;
    t.buffer = NULL;
    t.offset = 0;
    if (experts) t.d[t.n_dims++] = n_parts;
    if (t.n_dims == 1) t.dtype = WEFT_F32;
    if (hf->family & WEFT__HF_LLAMAS)
        how.heads = rule->flags & Q_ROWS ? hf->size.n_heads : rule->flags & K_ROWS ? hf->size.n_kv_heads : 0;
    return weft__hf_add(hf, &t, &how, r->err);
}

static const weft__tensor_desc **new_parts(hf_tensors_reading *r, size_t n)
{
    const weft__tensor_desc **parts = weft__arena_array(&r->hf->arena, n, sizeof *parts);
    if (!parts) weft_fail(r->err, WEFT_NO_MEMORY, "no memory for the list of tensors");
    return parts;
}

static weft_status apply(hf_tensors_reading *r, const struct rule *rule, int layer)
{
    char name[192];
    weft_status status;
    if (!(rule->families & r->hf->family) || (rule->flags & TIED_AWAY && r->hf->size.tied)) return WEFT_OK;
    snprintf(name, sizeof name, rule->name, layer);
    const weft__tensor_desc *t = hf_tensors_find(r, rule, name, &status);
    if (!t) return status;
    const weft__tensor_desc **parts = new_parts(r, 1);
    if (!parts) return WEFT_NO_MEMORY;
    parts[0] = t;
    return hf_tensors_add(r, rule, layer, parts, 1, 0);
}

static weft_status apply_experts(hf_tensors_reading *r, const struct rule *rule, int layer)
{
    size_t n = (size_t)r->hf->size.n_experts;
    if (!(rule->families & r->hf->family)) return WEFT_OK;
    const weft__tensor_desc **parts = new_parts(r, n);
    if (!parts) return WEFT_NO_MEMORY;
    for (size_t e = 0; e < n; e++) {
        char name[192];
        weft_status status;
        snprintf(name, sizeof name, rule->name, layer, (int)e);
        if (!(parts[e] = hf_tensors_find(r, rule, name, &status))) return status;
        if (parts[e]->dtype != parts[0]->dtype)
            return weft_fail(r->err, WEFT_UNSUPPORTED, "tensor %s is of another type than the other experts", name);
    }
    return hf_tensors_add(r, rule, layer, parts, n, 1);
}

/* ---- the whole ---- */

static void find_layout(hf_tensors_reading *r)
{
    const char *const probes[] = {"model.embed_tokens.weight", "language_model.model.embed_tokens.weight",
                                  "model.language_model.embed_tokens.weight"};
    for (int l = PLAIN; l <= INNER; l++)
        if (weft__tensor_find(r->set, probes[l])) r->layout = (hf_tensors_layout)l;
}

static int begins(const char *s, const char *with)
{
    return !strncmp(s, with, strlen(with));
}

/* Tensors that a folder may hold and that nothing is computed from. */
static int needless(const hf_tensors_reading *r, const char *name)
{
    static const char *const eyes[] = {"vision_tower.", "multi_modal_projector.", "model.vision_tower.",
                                       "model.multi_modal_projector."};
    static const char frequencies[] = ".rotary_emb.inv_freq";
    char head[64];
    size_t n = strlen(name), tail = sizeof frequencies - 1;
    if (n > tail && !strcmp(name + n - tail, frequencies)) return 1;
    place_name(r, head, sizeof head, "lm_head.weight");
    if (r->hf->size.tied && !strcmp(name, head)) return 1;
    for (size_t i = 0; r->hf->family == WEFT__HF_GEMMA3_VISION && i < sizeof eyes / sizeof *eyes; i++)
        if (begins(name, eyes[i])) return 1;
    return 0;
}

static weft_status check_all_used(const hf_tensors_reading *r)
{
    char shown[WEFT__NAME_SHOW];
    for (size_t i = 0; i < r->set->n; i++) {
        const char *name = r->set->items[i].name;
        if (r->used[i] || needless(r, name)) continue;
        return weft_fail(r->err, WEFT_UNSUPPORTED,
                         "tensor %s has no place in a model of this architecture and number of layers",
                         weft__name_show(shown, name, strlen(name)));
    }
    return WEFT_OK;
}

static weft_status hf_tensors_read_all(hf_tensors_reading *r)
{
    weft__hf *hf = r->hf;
    weft_status status = WEFT_OK;
    find_layout(r);
    if (!hf->size.n_vocab) { /* a text_config may leave it out */
        char name[64];
        place_name(r, name, sizeof name, OF_MODEL[0].name);
        const weft__tensor_desc *t = weft__tensor_find(r->set, name);
        hf->size.n_vocab = t && t->d[1] <= INT32_MAX ? (int32_t)t->d[1] : 0;
    }
    for (size_t i = 0; !status && i < sizeof OF_MODEL / sizeof *OF_MODEL; i++) status = apply(r, &OF_MODEL[i], 0);
    for (int l = 0; !status && l < hf->size.n_layers; l++) {
        for (size_t i = 0; !status && i < sizeof OF_LAYER / sizeof *OF_LAYER; i++) status = apply(r, &OF_LAYER[i], l);
        for (size_t i = 0; !status && i < sizeof OF_EXPERT / sizeof *OF_EXPERT; i++)
            status = apply_experts(r, &OF_EXPERT[i], l);
    }
    return status ? status : check_all_used(r);
}

weft_status weft__hf_read_tensors(weft__hf *hf, weft_error *err)
{
    hf_tensors_reading r = {.hf = hf, .set = weft__safetensors_tensors(hf->weights), .err = err};
    r.used = weft__alloc_zero(r.set->n, 1);
    if (!r.used) return weft_fail(err, WEFT_NO_MEMORY, "no memory for the list of tensors");
    weft_status status = hf_tensors_read_all(&r);
    weft__free(r.used);
    return status;
}

/* ---- names for adapters ---- */

static unsigned families_of(const char *arch)
{
    unsigned mask = 0;
#define WEFT__HF_OF_ARCH(name, bit, class_name, model_type, its_arch) mask |= strcmp(arch, its_arch) ? 0u : 1u << (bit);
    WEFT__HF_FAMILIES(WEFT__HF_OF_ARCH)
#undef WEFT__HF_OF_ARCH
    return mask;
}

/* 1 when name is the pattern with numbers below 2^20 for its at most two %d, without leading zeros; other numbers are
 * -1. */
static int reads_as(const char *pattern, const char *name, int32_t numbers[2])
{
    int n = 0;
    numbers[0] = numbers[1] = -1;
    for (; *pattern; pattern++) {
        if (pattern[0] != '%') {
            if (*name++ != *pattern) return 0;
            continue;
        }
        int32_t v = 0;
        const char *digit = name;
        for (; *digit >= '0' && *digit <= '9' && v < 1 << 16; digit++) v = v * 10 + (*digit - '0');
        if (digit == name || (*name == '0' && digit > name + 1)) return 0;
        numbers[n++] = v;
        name = digit;
        pattern++; /* the d */
    }
    return *name == 0;
}

/* Rule i of all that name matrices of these families, or NULL behind the last. */
static const struct rule *matrix_rule(size_t i, unsigned families, int *skip)
{
    enum {
        N_MODEL = sizeof OF_MODEL / sizeof *OF_MODEL,
        N_LAYER = sizeof OF_LAYER / sizeof *OF_LAYER,
        N_EXPERT = sizeof OF_EXPERT / sizeof *OF_EXPERT
    };
    if (i >= N_MODEL + N_LAYER + N_EXPERT) return NULL;
    const struct rule *r = i < N_MODEL             ? &OF_MODEL[i]
                           : i < N_MODEL + N_LAYER ? &OF_LAYER[i - N_MODEL]
                                                   : &OF_EXPERT[i - N_MODEL - N_LAYER];
    *skip = !(r->families & families) || strlen(r->shape) != 2;
    return r;
}

static void fill_place(const struct rule *rule, unsigned families, const int32_t numbers[2], weft__hf_place *out)
{
    *out = (weft__hf_place){.layer = numbers[0], .expert = numbers[1]};
    snprintf(out->name, sizeof out->name, rule->gguf, numbers[0]);
    if (families & WEFT__HF_LLAMAS) out->rows = rule->flags & Q_ROWS ? 'q' : rule->flags & K_ROWS ? 'k' : 0;
}

/* The name as a folder that does not see has it. */
static void plain_module(const char *module, char *out, size_t size)
{
    if (begins(module, "language_model.")) snprintf(out, size, "%s.weight", module + 15);
    else if (begins(module, "model.language_model.")) snprintf(out, size, "model.%s.weight", module + 21);
    else snprintf(out, size, "%s.weight", module);
}

int weft__hf_place_of(const char *arch, const char *module, weft__hf_place *out)
{
    unsigned families = families_of(arch);
    int32_t numbers[2];
    char name[256];
    int skip;
    plain_module(module, name, sizeof name);
    for (size_t i = 0;; i++) {
        const struct rule *rule = matrix_rule(i, families, &skip);
        if (!rule) return 0;
        if (skip || !reads_as(rule->name, name, numbers)) continue;
        fill_place(rule, families, numbers, out);
        return 1;
    }
}

int weft__hf_module_of(const char *arch, const char *tensor, int32_t expert, char *out, size_t size,
                       weft__hf_place *place)
{
    unsigned families = families_of(arch);
    int32_t numbers[2];
    char name[256];
    int skip;
    for (size_t i = 0;; i++) {
        const struct rule *rule = matrix_rule(i, families, &skip);
        if (!rule) return 0;
        int of_expert = strstr(rule->name, "experts.%d") != NULL;
        if (skip || of_expert != (expert >= 0) || !reads_as(rule->gguf, tensor, numbers)) continue;
        numbers[1] = expert;
        fill_place(rule, families, numbers, place);
        snprintf(name, sizeof name, rule->name, numbers[0], expert);
        snprintf(out, size, "%.*s", (int)(strlen(name) - strlen(".weight")), name);
        return 1;
    }
}
