// SPDX-License-Identifier: Apache-2.0
/* model.h: files, models and what they run on. */
#ifndef WEFT_MODEL_H
#define WEFT_MODEL_H

#include "weft/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- files: metadata and tensors without loading the model ---- */

/* A GGUF file, a compiled plan, or a Hugging Face folder, whose config.json and tensors are shown under the names
 * that GGUF has for them. */
WEFT_API weft_status weft_file_open(const char *path, weft_file **out, weft_error *err);
/* What was read from it by pointer ends with it; models do not need it any more. */
WEFT_API void weft_file_close(weft_file **file);
/* of the GGUF format; 0: a Hugging Face folder or a compiled plan */
WEFT_API uint32_t weft_file_version(const weft_file *file);
/* How the weights of a compiled plan are packed ("Q4_0: matmul_q4_0_avx2 ..."), living with the file; NULL: it is no
 * plan. */
WEFT_API const char *weft_file_plan_layout(const weft_file *file);
/* Reads all of a compiled plan and compares its checksums: WEFT_FORMAT when it is damaged. Other files have none:
 * WEFT_UNSUPPORTED. */
WEFT_API weft_status weft_file_check(const weft_file *file, weft_progress_fn progress, void *arg, weft_error *err);

typedef struct weft_meta_info {
    const char *key;  /* NUL-terminated, lives with the file */
    const char *type; /* "u32", "string", "array of string" */
    uint64_t count;   /* elements of an array, else 1 */
} weft_meta_info;

/* How many keys of metadata the file has. */
WEFT_API int64_t weft_file_n_meta(const weft_file *file);
/* Key `index`, in the order of the file. WEFT_ARGUMENT where there is none of that index. */
WEFT_API weft_status weft_file_meta(const weft_file *file, int64_t index, weft_meta_info *out, weft_error *err);
/* The value as JSON text; an array shows at most max_items elements. Writes a NUL-terminated string of at most
 * `capacity` bytes and stores its full length (without NUL) in *length; a longer text is cut. */
WEFT_API weft_status weft_file_meta_json(const weft_file *file, int64_t index, int64_t max_items, char *out,
                                         size_t capacity, size_t *length, weft_error *err);

typedef struct weft_tensor_info {
    const char *name; /* lives with the file */
    uint32_t dtype;
    int32_t n_dims;
    int64_t d[4]; /* d[0] contiguous */
    uint64_t n_bytes;
} weft_tensor_info;

/* How many tensors the file has, all parts of a split one together. */
WEFT_API int64_t weft_file_n_tensors(const weft_file *file);
/* Tensor `index`, in the order of the file. WEFT_ARGUMENT where there is none of that index. */
WEFT_API weft_status weft_file_tensor(const weft_file *file, int64_t index, weft_tensor_info *out, weft_error *err);

/* ---- models ---- */

#define WEFT_THREADS_MAX 1024
#define WEFT_ROWS_DEFAULT 512 /* of a step */

/* How positions are turned beyond the context that a model was trained for: what GGUF's keys ARCH.rope.* say, for
 * this opening of the model. 0 (NULL bytes): as the file says. */
enum weft_rope_scaling {
    WEFT_ROPE_SCALING_FILE = 0,
    WEFT_ROPE_SCALING_NONE = 1,
    WEFT_ROPE_SCALING_LINEAR = 2, /* all frequencies are divided by the factor */
    WEFT_ROPE_SCALING_YARN = 3    /* low frequencies are, high ones stay (Peng et al. 2023) */
};
typedef struct weft_rope_params {
    /* weft_rope_scaling; a factor without one is linear where the file has none either */
    int32_t scaling;
    int32_t orig_ctx; /* tokens of the context that is stretched */
    float factor;     /* the context becomes so many times as long */
    /* frequencies are powers of it; a larger one than the file's stretches the context, too */
    float freq_base;
    float ext_factor;           /* of YaRN: how much of the ramp is mixed in */
    float attn_factor;          /* scores are multiplied by its square; YaRN's own temperature comes on top */
    float beta_fast, beta_slow; /* of YaRN: turns within orig_ctx between which the ramp lies */
} weft_rope_params;

typedef struct weft_model_params {
    uint32_t size;
    int32_t n_threads; /* at most WEFT_THREADS_MAX; 0: one per core that we may use, or WEFT_THREADS */
    int32_t max_rows;  /* rows of the largest step; 0: WEFT_ROWS_DEFAULT */
    /* context that will be used; some models choose their rope by it. 0: the model's own */
    int32_t n_ctx;
    /* a plugin beside the CPU: its path, or its name in a folder of WEFT_PLUGIN_PATH; NULL or "cpu": none */
    const char *provider;
    weft_progress_fn progress;
    void *progress_arg;
    weft_rope_params rope;
    /* 1: an outline: no weight is read or packed, which takes milliseconds and little memory. It can be described, its
     * bytes and steps counted, the machine measured; sessions, engines and what else needs its weights are refused
     * (WEFT_STATE) */
    int32_t outline;
    /* 1: it computes on the threads of all models of this process that say so and have as many; they take turns */
    int32_t share_threads;
    /* 1: it is loaded so that models that compute meanwhile hardly notice: on one thread, of low precedence */
    int32_t in_background;
    /* 1: a compiled plan of an earlier version, or for another processor, is compiled again in its place, where the
     * model that it was made of is still there as it was; a line of the log (WEFT_LOG) says so. 0: it is refused */
    int32_t renew_plan;
} weft_model_params;

/* Fills in the defaults. The macro tells the library how large the program's struct is. */
WEFT_API void weft_model_params_default(weft_model_params *params);
WEFT_API void weft_model_params_init(weft_model_params *params, uint32_t size);
#define weft_model_params_default(params) weft_model_params_init(params, sizeof *(params))
/* With a plugin, each op goes to whom ranks it higher (weft_backend_api.supports), the plugin or the CPU. A compiled
 * plan is packed for the CPU alone, and takes no plugin: WEFT_UNSUPPORTED. Fails with WEFT_LIMIT when n_ctx is above
 * weft_model_info.n_ctx_max, WEFT_ARGUMENT (a parameter, by name) and as weft_file_open does. */
WEFT_API weft_status weft_model_open(const char *path, const weft_model_params *params, weft_model **out,
                                     weft_error *err);
/* After its sessions and engines were freed. */
WEFT_API void weft_model_close(weft_model **model);

typedef struct weft_model_info {
    uint32_t size;
    int32_t n_vocab, n_ctx_train, n_layers, n_heads, n_kv_heads, d_model, d_ff;
    int32_t n_threads;
    /* tokens of a context at most: n_ctx_train, or what the file or weft_rope_params stretch it to */
    int32_t n_ctx_max;
    uint64_t n_params, n_bytes; /* of all tensors */
    double load_ms;
    char arch[64];
    char name[128];    /* general.name, or the file's name */
    char type[32];     /* "Q4_0": the type that most bytes have */
    char provider[64]; /* "cpu" */
    char device[128];
} weft_model_info;

/* `out->size` set by the caller. */
WEFT_API weft_status weft_model_describe(const weft_model *model, weft_model_info *out, weft_error *err);

/* Bytes of memory that a model takes. */
typedef struct weft_model_bytes {
    uint32_t size, reserved;
    uint64_t packed; /* matrices, in the order in which they are multiplied by */
    /* what steps read as the file has it, embeddings above all: pages of the file, which the system may drop */
    uint64_t own;
    uint64_t steps; /* activations and scratch of each engine or group of sessions */
} weft_model_bytes;
/* Of an outline, too: then what it would take. `out->size` set by the caller. WEFT_UNSUPPORTED where a plugin does not
 * tell. */
WEFT_API weft_status weft_model_count_bytes(const weft_model *model, weft_model_bytes *out, weft_error *err);

/* 32 hexadecimal digits that tell models apart, by shapes, types and a part of the weights: the same from run to run,
 * for notes about a model. Not for what must not be mistaken: who makes a file can make one of the same number. */
WEFT_API void weft_model_fingerprint(const weft_model *model, char out[33]);

WEFT_API const weft_file *weft_model_file(const weft_model *model);           /* NULL for synthetic ones */
WEFT_API const weft_tokenizer *weft_model_tokenizer(const weft_model *model); /* NULL where the file has none */
/* Order, fusion, memory and kernels of the plan, as text for people; "" without memory for it. Lives with the model. */
WEFT_API const char *weft_model_plan_text(weft_model *model);

/* ---- providers ---- */

/* Opens provider `name` for a moment and describes it. `out->size` set by the caller. */
WEFT_API weft_status weft_provider_describe(const char *name, weft_backend_info *out, weft_error *err);
/* Names of the linked-in providers, NULL-terminated. */
WEFT_API const char *const *weft_provider_list(void);

#ifdef __cplusplus
}
#endif
#endif
