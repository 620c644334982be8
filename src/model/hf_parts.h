// SPDX-License-Identifier: Apache-2.0
/* hf_parts.h: what the hf_*.c files share. One thread builds a weft__hf; it is not changed once loaded. */
#ifndef WEFT_MODEL_HF_PARTS_H
#define WEFT_MODEL_HF_PARTS_H

#include "base/json.h"
#include "format/arena.h"
#include "format/gguf_write.h"
#include "format/safetensors.h"
#include "model/hf.h"

/* X(bit, class in "architectures", model_type, general.architecture). The bits choose among the rules for tensors and
 * fields. */
#define WEFT__HF_FAMILIES(X)                                                                                           \
    X(LLAMA, 0, "LlamaForCausalLM", "llama", "llama")                                                                  \
    X(MISTRAL, 1, "MistralForCausalLM", "mistral", "llama")                                                            \
    X(MIXTRAL, 2, "MixtralForCausalLM", "mixtral", "llama")                                                            \
    X(QWEN2, 3, "Qwen2ForCausalLM", "qwen2", "qwen2")                                                                  \
    X(QWEN3, 4, "Qwen3ForCausalLM", "qwen3", "qwen3")                                                                  \
    X(QWEN3MOE, 5, "Qwen3MoeForCausalLM", "qwen3_moe", "qwen3moe")                                                     \
    X(PHI3, 6, "Phi3ForCausalLM", "phi3", "phi3")                                                                      \
    X(GEMMA2, 7, "Gemma2ForCausalLM", "gemma2", "gemma2")                                                              \
    X(GEMMA3, 8, "Gemma3ForCausalLM", "gemma3_text", "gemma3")                                                         \
    X(GEMMA3_VISION, 9, "Gemma3ForConditionalGeneration", "gemma3", "gemma3")

enum {
#define WEFT__HF_BIT(name, bit, class_name, model_type, arch) WEFT__HF_##name = 1 << (bit),
    WEFT__HF_FAMILIES(WEFT__HF_BIT)
#undef WEFT__HF_BIT
        WEFT__HF_LLAMAS = WEFT__HF_LLAMA | WEFT__HF_MISTRAL | WEFT__HF_MIXTRAL,
    WEFT__HF_GEMMA3S = WEFT__HF_GEMMA3 | WEFT__HF_GEMMA3_VISION,
    WEFT__HF_GEMMAS = WEFT__HF_GEMMA2 | WEFT__HF_GEMMA3S,
    WEFT__HF_QWENS = WEFT__HF_QWEN2 | WEFT__HF_QWEN3 | WEFT__HF_QWEN3MOE,
    WEFT__HF_MOES = WEFT__HF_MIXTRAL | WEFT__HF_QWEN3MOE,
    WEFT__HF_ALL = (1 << 10) - 1
};

/* What config.json says about sizes. */
typedef struct weft__hf_sizes {
    int32_t n_layers, d_model, d_ff, n_heads, n_kv_heads, head_dim, n_rot, n_ctx, n_experts, d_ff_expert, n_vocab;
    int tied;
} weft__hf_sizes;

/* How a tensor comes about from those of the files. */
typedef struct weft__hf_tensor {
    const weft__tensor_desc *const *parts; /* [n_parts] of equal shape and type: experts, else one */
    size_t n_parts;                        /* 0: `values` */
    const float *values;                   /* computed already; in the arena */
    int plus_one;                          /* 1 is added to each element */
    int32_t heads;                         /* > 0: rows of this many heads, which GGUF wants in pairs */
} weft__hf_tensor;

struct weft__hf {
    char *folder;
    weft__json *config;
    const weft__json *text; /* the language model's part of config */
    unsigned family;        /* one WEFT__HF_ bit */
    const char *arch;
    weft__hf_sizes size;
    weft__arena arena; /* names, parts */
    weft__safetensors *weights;
    weft__tensor_set tensors;
    weft__hf_tensor *how; /* [tensors.n] */
    size_t how_capacity;
    weft_buffer **made; /* computed by load */
    size_t n_made, made_capacity;
    weft__strbuf meta_bytes;
    weft__gguf *meta;
    weft__source meta_view;
};

/* hf.c: maps a file of the folder; WEFT_NOT_FOUND when there is none of that name. */
weft_status weft__hf_map(const weft__hf *hf, const char *name, weft_buffer **out, weft_error *err);
/* hf.c: the same, parsed; the message names the file. */
weft_status weft__hf_json(const weft__hf *hf, const char *name, weft__json **out, weft_error *err);
/* hf.c: adds a tensor; desc->name is copied. */
weft_status weft__hf_add(weft__hf *hf, const weft__tensor_desc *desc, const weft__hf_tensor *how, weft_error *err);
/* hf.c: adds a vector of n values, which are copied. */
weft_status weft__hf_add_values(weft__hf *hf, const char *name, const float *values, size_t n, weft_error *err);

/* Fields of config.json: null counts as absent. Each leaves *out as it was (the default) when the field is absent,
 * unless it is `required`. A value of another kind or outside [min, max] is an error that names it. */
weft_status weft__hf_int(const weft__json *object, const char *key, int required, int64_t min, int64_t max,
                         int32_t *out, weft_error *err);
weft_status weft__hf_number(const weft__json *object, const char *key, int required, double *out, weft_error *err);
weft_status weft__hf_flag(const weft__json *object, const char *key, int *out, weft_error *err);
/* Borrowed; NULL when absent. */
weft_status weft__hf_string(const weft__json *object, const char *key, const char **out, weft_error *err);

/* hf_config.c: reads hf->config into hf->family, arch and size. */
weft_status weft__hf_read_sizes(weft__hf *hf, weft_error *err);
/* hf_keys.c: writes the architecture's keys; refuses what the engine does not compute. */
weft_status weft__hf_put_keys(weft__hf *hf, weft__gguf_writer *w, weft_error *err);
/* hf_rope.c: the keys of rope, and its factors as tensors. */
weft_status weft__hf_put_rope(weft__hf *hf, weft__gguf_writer *w, weft_error *err);
/* hf_tensors.c: finds, checks and names all tensors of hf->weights. */
weft_status weft__hf_read_tensors(weft__hf *hf, weft_error *err);

/* hf_vocab.c: the vocabulary as its files describe it, with roles and ends filled in. */
typedef struct weft__hf_vocab weft__hf_vocab;
weft_status weft__hf_vocab_read(const weft__hf *hf, weft__hf_vocab **out, weft_error *err);
const weft__tok_spec *weft__hf_vocab_spec(const weft__hf_vocab *v);
void weft__hf_vocab_free(weft__hf_vocab **v);

#endif
