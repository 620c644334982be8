/* weft.h: the engine, for programs that embed it.
 *
 * Handles are opaque; each is freed by its own ..._close or ..._free, which accepts NULL and a pointer to NULL and sets the pointer
 * to NULL. A model outlives its sessions; a file outlives nothing (models keep their own). Parameter structs begin with `size`:
 * fill them with the ..._default function, then change fields. A struct of another size than this build's is refused with WEFT_ABI:
 * programs are built against the header of the library they run with.
 * Thread safety: a model may be shared by threads: they read its description and tokenizer at once, and steps of its sessions and
 * engines take turns. A session belongs to one thread at a time, those of a group together.
 * Processors with AMX: when the first model is loaded, the process asks Linux for the tile registers, and from then on no thread may set
 * an alternate signal stack below 12 KB (sysconf(_SC_MINSIGSTKSZ)); WEFT_CPU=avx512bf16 does without them.
 * Strings are UTF-8. Token ids are int32. */
#ifndef WEFT_WEFT_H
#define WEFT_WEFT_H

#include "weft/backend.h"
#include "weft/version.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_file weft_file;
typedef struct weft_tokenizer weft_tokenizer;
typedef struct weft_detok weft_detok;
typedef struct weft_model weft_model;
typedef struct weft_session weft_session;
typedef struct weft_sampler weft_sampler;

/* ---- files: metadata and tensors without loading the model ---- */

/* A GGUF file, a compiled plan, or a Hugging Face folder, whose config.json and tensors are shown under the names that GGUF has for them. */
WEFT_API weft_status weft_file_open(const char *path, weft_file **out, weft_error *err);
WEFT_API void weft_file_close(weft_file **file);
WEFT_API uint32_t weft_file_version(const weft_file *file); /* of the GGUF format; 0: a Hugging Face folder or a compiled plan */
/* How the weights of a compiled plan are packed ("Q4_0: matmul_q4_0_avx2 ..."), living with the file; NULL: it is no plan. */
WEFT_API const char *weft_file_plan_layout(const weft_file *file);
/* Reads all of a compiled plan and compares its checksums: WEFT_FORMAT when it is damaged. Other files have none: WEFT_UNSUPPORTED. */
WEFT_API weft_status weft_file_check(const weft_file *file, weft_progress_fn progress, void *arg, weft_error *err);

typedef struct weft_meta_info {
    const char *key;  /* NUL-terminated, lives with the file */
    const char *type; /* "u32", "string", "array of string" */
    uint64_t count;   /* elements of an array, else 1 */
} weft_meta_info;

WEFT_API int64_t weft_file_n_meta(const weft_file *file);
WEFT_API weft_status weft_file_meta(const weft_file *file, int64_t index, weft_meta_info *out, weft_error *err);
/* The value as JSON text; an array shows at most max_items elements. Writes a NUL-terminated string of at most `capacity` bytes and
 * stores its full length (without NUL) in *length; a longer text is cut. */
WEFT_API weft_status weft_file_meta_json(const weft_file *file, int64_t index, int64_t max_items, char *out, size_t capacity,
                                         size_t *length, weft_error *err);

typedef struct weft_tensor_info {
    const char *name; /* lives with the file */
    uint32_t dtype;
    int32_t n_dims;
    int64_t d[4]; /* d[0] contiguous */
    uint64_t n_bytes;
} weft_tensor_info;

WEFT_API int64_t weft_file_n_tensors(const weft_file *file);
WEFT_API weft_status weft_file_tensor(const weft_file *file, int64_t index, weft_tensor_info *out, weft_error *err);

/* ---- tokenizer ---- */

/* Of a file that may hold a vocabulary only. Immutable: threads may share it. */
WEFT_API weft_status weft_tokenizer_open(const weft_file *file, weft_tokenizer **out, weft_error *err);
WEFT_API void weft_tokenizer_close(weft_tokenizer **tokenizer);
WEFT_API int32_t weft_tokenizer_n_vocab(const weft_tokenizer *tokenizer);

enum weft_tokenize_flags {
    WEFT_TOKENIZE_BOS = 1u << 0,    /* the special tokens that the model wants around a text (BOS, EOS), as its file says */
    WEFT_TOKENIZE_SPECIAL = 1u << 1 /* special tokens spelled in the text become those tokens; otherwise they stay text */
};

/* Stores up to `capacity` ids and the number there are in *n; returns WEFT_LIMIT when they did not fit. */
WEFT_API weft_status weft_tokenize(const weft_tokenizer *tokenizer, const char *text, size_t length, uint32_t flags, int32_t *ids,
                                   size_t capacity, size_t *n, weft_error *err);
/* The token's own text as the vocabulary spells it; *length without NUL. NULL when id is out of range. */
WEFT_API const char *weft_token_piece(const weft_tokenizer *tokenizer, int32_t id, size_t *length);
/* The bytes that the token stands for (" the", "\n"), which may be part of a character. NULL when id is out of range. */
WEFT_API const char *weft_token_bytes(const weft_tokenizer *tokenizer, int32_t id, size_t *length);
WEFT_API int weft_token_is_end(const weft_tokenizer *tokenizer, int32_t id); /* end of sequence, of turn, of message */

/* The ids below n_vocab, a model's, that stand for no text: those beyond the vocabulary, where a model has more rows than it has names, and
 * those that it leaves free (unused ones without a name, or called "[PAD7]" after themselves). Stores the first `capacity` of them in
 * ids, in order; returns how many there are. */
WEFT_API int32_t weft_tokenizer_nameless(const weft_tokenizer *tokenizer, int32_t n_vocab, int32_t *ids, int32_t capacity);

/* Turns ids into text as they come; never emits half a character. */
enum weft_detok_flags {
    WEFT_DETOK_SPECIAL = 1u << 0, /* special tokens as they are spelled; otherwise they give nothing */
    WEFT_DETOK_CONTINUE = 1u << 1 /* the ids continue a text: the first one keeps its leading space */
};

WEFT_API weft_status weft_detok_new(const weft_tokenizer *tokenizer, uint32_t flags, weft_detok **out, weft_error *err);
WEFT_API void weft_detok_free(weft_detok **detok);
/* The bytes that became complete; *text lives until the next call. Nameless ids give none. A negative one fails with WEFT_ARGUMENT. */
WEFT_API weft_status weft_detok_push(weft_detok *detok, int32_t id, const char **text, size_t *length, weft_error *err);
/* What is left: an incomplete character becomes U+FFFD. */
WEFT_API weft_status weft_detok_finish(weft_detok *detok, const char **text, size_t *length, weft_error *err);

/* ---- models ---- */

#define WEFT_THREADS_MAX 1024
#define WEFT_ROWS_DEFAULT 512 /* of a step */

/* How positions are turned beyond the context that a model was trained for: what GGUF's keys ARCH.rope.* say, for this opening of the model.
 * 0 (NULL bytes): as the file says. */
enum weft_rope_scaling {
    WEFT_ROPE_SCALING_FILE = 0,
    WEFT_ROPE_SCALING_NONE = 1,
    WEFT_ROPE_SCALING_LINEAR = 2, /* all frequencies are divided by the factor */
    WEFT_ROPE_SCALING_YARN = 3    /* low frequencies are, high ones stay (Peng et al. 2023) */
};
typedef struct weft_rope_params {
    int32_t scaling;            /* weft_rope_scaling; a factor without one is linear where the file has none either */
    int32_t orig_ctx;           /* tokens of the context that is stretched */
    float factor;               /* the context becomes so many times as long */
    float freq_base;            /* frequencies are powers of it; a larger one than the file's stretches the context, too */
    float ext_factor;           /* of YaRN: how much of the ramp is mixed in */
    float attn_factor;          /* scores are multiplied by its square; YaRN's own temperature comes on top */
    float beta_fast, beta_slow; /* of YaRN: turns within orig_ctx between which the ramp lies */
} weft_rope_params;

typedef struct weft_model_params {
    uint32_t size;
    int32_t n_threads; /* at most WEFT_THREADS_MAX; 0: one per core that we may use, or WEFT_THREADS */
    int32_t max_rows;  /* rows of the largest step; 0: WEFT_ROWS_DEFAULT */
    int32_t n_ctx;     /* context that will be used; some models choose their rope by it. 0: the model's own */
    const char
        *provider; /* a plugin beside the CPU: its path, or its name in a folder of WEFT_PLUGIN_PATH; NULL or "cpu": none */
    weft_progress_fn progress;
    void *progress_arg;
    weft_rope_params rope;
} weft_model_params;

WEFT_API void weft_model_params_default(weft_model_params *params);
/* With a plugin, each op goes to whom ranks it higher (weft_backend_api.supports), the plugin or the CPU. A compiled plan is packed for the CPU alone,
 * and takes no plugin: WEFT_UNSUPPORTED.
 * Fails with WEFT_LIMIT when n_ctx is above weft_model_info.n_ctx_max, WEFT_ARGUMENT (a parameter, by name) and as weft_file_open does. */
WEFT_API weft_status weft_model_open(const char *path, const weft_model_params *params, weft_model **out, weft_error *err);
/* A model of a known shape ("tinyllama-1.1b") with random weights of one type, in memory; without a tokenizer. For benchmarks. */
WEFT_API weft_status weft_model_synthetic(const char *shape, uint32_t dtype, const weft_model_params *params, weft_model **out,
                                          weft_error *err);
/* Writes the same model as a GGUF file, with a vocabulary of made-up words, so that other programs can measure it too. */
WEFT_API weft_status weft_synthetic_write(const char *shape, uint32_t dtype, const char *path, weft_progress_fn progress,
                                          void *arg, weft_error *err);
WEFT_API void weft_model_close(weft_model **model);

typedef struct weft_model_info {
    uint32_t size;
    int32_t n_vocab, n_ctx_train, n_layers, n_heads, n_kv_heads, d_model, d_ff;
    int32_t n_threads;
    int32_t n_ctx_max;          /* tokens of a context at most: n_ctx_train, or what the file or weft_rope_params stretch it to */
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
WEFT_API const weft_file *weft_model_file(const weft_model *model);           /* NULL for synthetic ones */
WEFT_API const weft_tokenizer *weft_model_tokenizer(const weft_model *model); /* NULL where the file has none */
/* Order, fusion, memory and kernels of the plan, as text for people; "" without memory for it. Lives with the model. */
WEFT_API const char *weft_model_plan_text(weft_model *model);
/* The limits of the hardware, measured now on the model's provider. */
WEFT_API weft_status weft_model_measure(weft_model *model, weft_peaks *out, weft_error *err);
/* What a step must move and multiply at least. */
typedef struct weft_step_cost {
    uint32_t size, reserved;
    double weight_bytes;                /* of the matrices, each read once */
    double kv_bytes;                    /* of the keys and values attended to, each read once per sequence */
    double int8_ops, bf16_ops, f32_ops; /* multiplications and additions of matrix products, by the unit for the weights' type */
    double attention_ops;               /* the same of attention */
} weft_step_cost;

/* Of a step with n_rows new tokens for each of n_seqs sequences that hold n_past tokens; n_wanted rows of all get logits.
 * out->size set by the caller. */
WEFT_API weft_status weft_model_step_cost(const weft_model *model, int32_t n_seqs, int32_t n_past, int32_t n_rows,
                                          int32_t n_wanted, uint32_t kv_dtype, weft_step_cost *out, weft_error *err);

/* ---- profiles: where the time of a step goes ---- */

typedef struct weft_profile_step {
    uint32_t size;
    int32_t n_rows, n_wanted;
    int32_t first_op, n_ops;
    int32_t reserved;
    uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC */
} weft_profile_step;

/* One op, as the thread that leads the step saw it: from begin to done it did its own share, until end it waited for the others. */
typedef struct weft_profile_op {
    uint32_t size;
    int32_t layer; /* -1: outside the layers */
    int32_t step;
    int32_t reserved;
    const char *op;   /* "linear" */
    const char *type; /* "Q4_0": of its first matrix; "" without */
    char name[96];    /* its weights, or else its first output, without the layer: "attn_q+attn_k+attn_v" */
    uint64_t begin_ns, done_ns, end_ns;
    double bytes; /* that it must read or write at least: weights, activations, keys and values */
    double ops;   /* multiplications and additions of matrix products and attention */
} weft_profile_op;

/* Records every op of the steps that follow, from an empty record; stop ends recording and keeps the record. Fails with
 * WEFT_UNSUPPORTED where the model's provider cannot. For the thread that steps the model. */
WEFT_API weft_status weft_model_profile_start(weft_model *model, weft_error *err);
WEFT_API void weft_model_profile_stop(weft_model *model);
WEFT_API int32_t weft_model_profile_n_steps(const weft_model *model);
/* Step `index`, and op `index` counted over all steps. out->size set by the caller. */
WEFT_API weft_status weft_model_profile_step(const weft_model *model, int32_t index, weft_profile_step *out, weft_error *err);
WEFT_API weft_status weft_model_profile_op(const weft_model *model, int32_t index, weft_profile_op *out, weft_error *err);

/* ---- chat templates: a conversation to the text that the model was trained on ---- */

typedef struct weft_chat weft_chat;
typedef struct weft_chat_prompt weft_chat_prompt;

/* source[0..length): a Jinja template; NULL: the model's own, WEFT_NOT_FOUND when it has none. The model outlives it. */
WEFT_API weft_status weft_chat_open(const weft_model *model, const char *source, size_t length, weft_chat **out, weft_error *err);
WEFT_API void weft_chat_close(weft_chat **chat);
/* Renders a conversation. messages: JSON, [{"role": "user", "content": "..."}, ...], as OpenAI has them: null stands for what is absent,
 * contents may be lists of text parts, and the arguments of calls are objects or JSON as text, and become what the template wants.
 * tools: JSON array or NULL; kwargs: JSON object of further variables (null: the template's default) or NULL. add_generation_prompt: 1
 * lets the assistant begin; with WEFT_CHAT_CONTINUE it has begun: the last message, the assistant's, is left open, and its answer
 * goes on from there. Fails with WEFT_ARGUMENT when the template refuses the conversation, or where a message is none, by its place
 * ("messages[2].tool_calls[0].function.arguments"), WEFT_UNSUPPORTED for content that is no text. The chat outlives the prompt. */
#define WEFT_CHAT_CONTINUE 2
WEFT_API weft_status weft_chat_render(const weft_chat *chat, const char *messages, const char *tools, const char *kwargs,
                                      int add_generation_prompt, weft_chat_prompt **out, weft_error *err);
WEFT_API void weft_chat_prompt_free(weft_chat_prompt **prompt);
/* The rendered text, NUL-terminated; lives with the prompt. */
WEFT_API const char *weft_chat_prompt_text(const weft_chat_prompt *prompt, size_t *length);
/* Token ids of the text from byte `skip` on. Special tokens are recognized in what the template wrote, never in what came from
 * messages, tools or kwargs. With skip 0 the model's BOS stands in front where the template does not write it. Otherwise as
 * weft_tokenize. */
WEFT_API weft_status weft_chat_prompt_tokenize(const weft_chat_prompt *prompt, size_t skip, int32_t *ids, size_t capacity,
                                               size_t *n, weft_error *err);

/* ---- sessions: one sequence of tokens and its keys and values ---- */

typedef struct weft_session_params {
    uint32_t size;
    uint32_t kv_dtype; /* WEFT_F16 (default) or WEFT_F32 */
    int32_t n_ctx;     /* tokens; 0: the model's own, at most 4096 */
    int32_t chunk;     /* rows per step while a prompt is read; 0: the model's max_rows */
} weft_session_params;

WEFT_API void weft_session_params_default(weft_session_params *params);
/* Fails with WEFT_LIMIT, which names the number, when n_ctx is above weft_model_info.n_ctx_max; WEFT_ARGUMENT, WEFT_NO_MEMORY. */
WEFT_API weft_status weft_session_new(weft_model *model, const weft_session_params *params, weft_session **out, weft_error *err);
WEFT_API void weft_session_free(weft_session **session);
WEFT_API int32_t weft_session_n_tokens(const weft_session *session);
WEFT_API int32_t weft_session_n_ctx(const weft_session *session);

/* Appends n tokens, n >= 1. logits: room for [n, V] floats with all_logits, else [V] for the last token; NULL: none wanted.
 * Fails with WEFT_LIMIT when the context is full, WEFT_CANCELLED after weft_session_cancel; the session then holds the tokens of
 * the steps that were completed. */
WEFT_API weft_status weft_session_eval(weft_session *session, const int32_t *tokens, int32_t n, int all_logits, float *logits,
                                       weft_error *err);
/* Forgets all but the first n tokens, as far as their state is still there; returns how many are kept (<= n). */
WEFT_API int32_t weft_session_trim(weft_session *session, int32_t n);
/* n sessions over one pool of pages, so that they can be stepped together. Each is freed on its own. */
WEFT_API weft_status weft_session_new_group(weft_model *model, const weft_session_params *params, int32_t n, weft_session **out,
                                            weft_error *err);
/* One step for n different sessions of one group: appends tokens[i] to sessions[i]; logits: [n, V] or NULL. The result of each is
 * bit for bit that of weft_session_eval. On failure no session has changed. Fails with WEFT_ARGUMENT when a session is there twice
 * or of another group. */
WEFT_API weft_status weft_session_eval_group(weft_session *const *sessions, const int32_t *tokens, int32_t n, float *logits,
                                             weft_error *err);
/* From now on the session's tokens are computed with a weighted stack of adapters (below), which may be closed afterwards; n 0: with none. Only while
 * the session holds no tokens: WEFT_STATE. Fails with WEFT_ARGUMENT (an adapter fits no matrix of the model, or a weight is not finite),
 * WEFT_LIMIT (ranks together), WEFT_UNSUPPORTED (provider; DoRA over a compiled plan without the weights), WEFT_NO_MEMORY; the session is then as before. */
typedef struct weft_adapter_use weft_adapter_use;
WEFT_API weft_status weft_session_set_adapters(weft_session *session, const weft_adapter_use *uses, int32_t n, weft_error *err);
/* After weft_sampler_pick failed, as *err says, on logits [V] of the session: tells in *err of the session's adapters, by their paths, where a
 * logit is NaN, as a scale far too large leaves it; without adapters the model's file is to blame, WEFT_INTERNAL. Returns err->status. */
WEFT_API weft_status weft_session_blame(const weft_session *session, const float *logits, weft_error *err);
/* Makes a running or the next weft_session_eval stop before its next step. Callable from a signal handler or any thread. */
WEFT_API void weft_session_cancel(weft_session *session);

/* ---- adapters: low-rank changes of a model's matrices (LoRA, rsLoRA, DoRA) ----
 * Files are GGUF adapters or PEFT folders (adapter_config.json and adapter_model.safetensors). What an adapter asks for and this engine
 * does not compute is refused by name; so are halves that are missing or do not fit, NaN and infinity. */
typedef struct weft_adapter_file weft_adapter_file; /* immutable: threads may share it */

struct weft_adapter_use {
    const weft_adapter_file *file;
    float scale; /* its weight in the stack; 1: as it was trained */
};

/* base: the model file that it changes, whose names, heads and shapes it is checked against; NULL: a GGUF adapter alone. The base may be closed
 * afterwards. Fails with WEFT_NOT_FOUND, WEFT_IO, WEFT_FORMAT, WEFT_UNSUPPORTED, WEFT_LIMIT (rank), WEFT_ARGUMENT (another base). */
WEFT_API weft_status weft_adapter_file_open(const char *path, const weft_file *base, weft_adapter_file **out, weft_error *err);
WEFT_API void weft_adapter_file_close(weft_adapter_file **file);

typedef struct weft_adapter_info {
    uint32_t size;
    int32_t n_matrices, min_rank, max_rank;
    int32_t n_dora;    /* matrices with magnitudes */
    int32_t is_folder; /* 1: PEFT */
    uint64_t n_params;
    char arch[64]; /* of its base */
    char id[33];   /* hexadecimal: of what it computes, whatever the format */
} weft_adapter_info;

typedef struct weft_adapter_matrix {
    uint32_t size;
    int32_t rank;
    int64_t k, n, n_experts; /* 1: no experts */
    float scale;             /* alpha / rank, or alpha / sqrt(rank) */
    int32_t dora;
    const char *name; /* GGUF's, of the tensor that it changes; lives with the file */
} weft_adapter_matrix;

/* out->size set by the caller. */
WEFT_API weft_status weft_adapter_file_describe(const weft_adapter_file *file, weft_adapter_info *out, weft_error *err);
WEFT_API weft_status weft_adapter_file_matrix(const weft_adapter_file *file, int32_t index, weft_adapter_matrix *out,
                                              weft_error *err);

/* Writes it as a GGUF adapter (path ends in ".gguf") or a PEFT folder; base as above, needed for folders and where the adapter does not name its
 * architecture. What is read back has the same id. Fails with WEFT_UNSUPPORTED where the format cannot say what it means, WEFT_IO. */
WEFT_API weft_status weft_adapter_file_save(const weft_adapter_file *file, const weft_file *base, const char *path,
                                            weft_error *err);

enum weft_merge_method {
    WEFT_MERGE_CAT = 0, /* the exact sum: ranks side by side */
    WEFT_MERGE_LINEAR, /* these four mix the matrices A and B by themselves, as PEFT does, smaller ranks with zeros up to the largest */
    WEFT_MERGE_SLERP, /* of two, between their directions */
    WEFT_MERGE_TIES,  /* trimmed to `density`, one sign elected, the mean of those of that sign */
    WEFT_MERGE_DARE   /* each value kept with probability `density`, and scaled up for that */
};
typedef struct weft_merge_params {
    uint32_t size;
    uint32_t method; /* weft_merge_method */
    double density;  /* (0, 1]; 1 by default */
    uint64_t seed;   /* of DARE */
} weft_merge_params;
WEFT_API void weft_merge_params_default(weft_merge_params *params);
/* Several adapters of one base as one, by their weights. WEFT_ARGUMENT (number, weights, shapes), WEFT_UNSUPPORTED (DoRA), WEFT_LIMIT. */
WEFT_API weft_status weft_adapter_file_merge(const weft_adapter_use *uses, int32_t n, const weft_merge_params *params,
                                             weft_adapter_file **out, weft_error *err);

/* ---- sampling ----
 * Order: nameless ids are left out, then logit bias, then penalties (repeat, presence, frequency) over the last penalty_last_n tokens;
 * temperature 0 picks the largest logit (the lowest id of equals); otherwise top-k, top-p, min-p on the untempered distribution, then temperature, and
 * one uniform draw. The same seed and logits give the same token on every machine with the same kernels. */
typedef struct weft_logit_bias {
    int32_t token;
    float bias; /* added; -INFINITY forbids */
} weft_logit_bias;

typedef struct weft_sampler_params {
    uint32_t size;
    float temperature;       /* >= 0; 0 greedy; default 0.8 */
    int32_t top_k;           /* 0: off; default 40 */
    float top_p;             /* 1: off; default 0.95 */
    float min_p;             /* 0: off; default 0.05 */
    float repeat_penalty;    /* 1: off. Divides positive, multiplies negative logits of tokens seen (Keskar et al. 2019) */
    float presence_penalty;  /* 0: off. Subtracted once from tokens seen */
    float frequency_penalty; /* 0: off. Subtracted per occurrence */
    int32_t penalty_last_n;  /* 0: off, -1: all; default 64 */
    int32_t n_bias;
    const weft_logit_bias *bias; /* copied */
    uint64_t seed;
    int32_t seed_given; /* 0: take one from the system's entropy */
    int32_t n_nameless;
    const int32_t
        *nameless; /* [n_nameless] ids that only a bias above 0 lets be picked (weft_tokenizer_nameless); copied. Engines
                                know those of their model */
} weft_sampler_params;

WEFT_API void weft_sampler_params_default(weft_sampler_params *params);
/* Parameters out of range are refused by name. */
WEFT_API weft_status weft_sampler_new(int32_t n_vocab, const weft_sampler_params *params, weft_sampler **out, weft_error *err);
/* The same for a model: of its vocabulary, and with its ids that have no text as `nameless`, whatever params say of these. */
WEFT_API weft_status weft_sampler_for(const weft_model *model, const weft_sampler_params *params, weft_sampler **out,
                                      weft_error *err);
WEFT_API void weft_sampler_free(weft_sampler **sampler);
WEFT_API uint64_t weft_sampler_seed(const weft_sampler *sampler); /* the seed in use */
/* Tells the sampler of a token that is part of the text (the prompt's too), for penalties. */
WEFT_API weft_status weft_sampler_accept(weft_sampler *sampler, int32_t token, weft_error *err);
/* Picks a token from logits [V], which it may change. Does not accept it. Fails with WEFT_ARGUMENT when no token has a finite or
 * +infinite logit (NaN everywhere, or all forbidden). */
WEFT_API weft_status weft_sampler_pick(weft_sampler *sampler, float *logits, int32_t *token, weft_error *err);

/* ---- grammars: what a model may write ----
 * A grammar is checked and compiled for a vocabulary before the first token; a matcher follows one text through it and masks the
 * logits. Control tokens are never allowed, end tokens where the text may end; half a character is, where the rest can follow.
 * Fails closed: where no token fits, that is an error. The text is the bytes of its tokens (WEFT_DETOK_CONTINUE). */
typedef struct weft_grammar weft_grammar;
typedef struct weft_matcher weft_matcher;

enum weft_grammar_kind {
    WEFT_GRAMMAR_GBNF = 0,      /* the dialect of llama.cpp; begins with rule `root`; at most 1 MiB */
    WEFT_GRAMMAR_JSON = 1,      /* any JSON object, at most 256 deep; no source */
    WEFT_GRAMMAR_JSON_VALUE = 2 /* any JSON value, the same */
};

/* Refuses what cannot work, by rule and line: WEFT_ARGUMENT for a malformed grammar, one with rules that are undefined,
 * left-recursive or fulfilled by no text; WEFT_LIMIT for one that is too large; WEFT_UNSUPPORTED for a WordPiece vocabulary. The
 * grammar may outlive the tokenizer. Immutable: threads may share it. */
WEFT_API weft_status weft_grammar_new(const weft_tokenizer *tokenizer, uint32_t kind, const char *source, size_t length,
                                      weft_grammar **out, weft_error *err);
/* One more owner; each calls weft_grammar_free. */
WEFT_API weft_grammar *weft_grammar_retain(const weft_grammar *grammar);
WEFT_API void weft_grammar_free(weft_grammar **grammar);

/* At the beginning of a text. Keeps the grammar alive. A matcher belongs to one thread. */
WEFT_API weft_status weft_matcher_new(const weft_grammar *grammar, weft_matcher **out, weft_error *err);
/* One more at the same place. */
WEFT_API weft_status weft_matcher_copy(const weft_matcher *matcher, weft_matcher **out, weft_error *err);
WEFT_API void weft_matcher_free(weft_matcher **matcher);
/* Sets the logits of all tokens that may not come next to -infinity; those beyond the vocabulary too. Before weft_sampler_pick.
 * Fails with WEFT_STATE when none may come, naming the place; WEFT_LIMIT where the grammar is too ambiguous. */
WEFT_API weft_status weft_matcher_apply(weft_matcher *matcher, float *logits, int32_t n, weft_error *err);
/* The same as bits: of bits[(weft_tokenizer_n_vocab + 63) / 64] bit t % 64 of bits[t / 64] for token t. */
WEFT_API weft_status weft_matcher_mask(weft_matcher *matcher, uint64_t *bits, size_t n_words, weft_error *err);
/* Goes on by a token. WEFT_ARGUMENT when it may not come next; nothing has changed then. */
WEFT_API weft_status weft_matcher_accept(weft_matcher *matcher, int32_t token, weft_error *err);
/* 0: the grammar wants more; 1: the text may end here; 2: nothing may follow. */
WEFT_API int weft_matcher_complete(const weft_matcher *matcher);

/* ---- engine: many requests at once over one model ----
 * An engine owns a thread that steps the model: a row for each request that generates, and chunks of prompts beside them. Requests
 * come from any thread. Results arrive as events on the engine's thread: an event function must not block and must not call the
 * engine, except weft_engine_cancel. Its steps take turns with those of others that step its model.
 * Same answer, always: a request's tokens do not depend on what runs beside it, on chunks, on what was cached or on preemption. */
typedef struct weft_engine weft_engine;

/* The most of each that an engine takes; a model whose steps have fewer rows takes fewer slots. */
#define WEFT_SLOTS_MAX 128
#define WEFT_CTX_MAX (1 << 24)
#define WEFT_QUEUE_MAX (1 << 15)

typedef struct weft_engine_params {
    uint32_t size;
    uint32_t kv_dtype;   /* WEFT_F16 (default) or WEFT_F32 */
    int32_t n_slots;     /* requests that run at once; 0: 16 */
    int32_t n_ctx;       /* tokens of one request at most, prompt included; 0: the model's own, at most 4096 */
    int64_t n_kv_tokens; /* tokens that all pages together hold; 0: n_slots * n_ctx, but at most half of the memory that is free;
                          WEFT_NO_MEMORY where they would take more than that memory */
    int32_t step_rows;   /* rows of one step at most; 0: the model's max_rows */
    int32_t chunk;       /* rows of prompts in one step at most while others decode; 0: 128 */
    int32_t max_queue;   /* requests that wait at most; 0: 256 */
    int32_t isolate_tenants; /* 1: prefixes are shared within a tenant only */
    const char *store_dir;   /* folder in which prefixes and saved slots outlive the process; NULL: none */
    uint64_t store_bytes;    /* its cap; 0: 4 GiB */
    const char *trace;       /* file for a Chrome trace of steps and ops; NULL: none */
    uint64_t adapter_bytes;  /* of adapters ready to be used, at most; 0: 1 GiB */
    uint32_t adapter_dtype;  /* in which they are kept: WEFT_ADAPTER_AUTO (default), WEFT_Q8_0, WEFT_Q4_0, WEFT_BF16, WEFT_F32 */
    uint32_t disk_wait_ms;   /* how long a slot, and the engine's end, wait for a disk that does not answer; 0: 30,000 */
} weft_engine_params;

WEFT_API void weft_engine_params_default(weft_engine_params *params);
/* The model outlives the engine. Fails with WEFT_ARGUMENT (a parameter, by name), WEFT_NO_MEMORY, WEFT_LIMIT (n_ctx above the model's n_ctx_max, pages), WEFT_IO (store, trace),
 * WEFT_STATE (another process has the store). */
WEFT_API weft_status weft_engine_new(weft_model *model, const weft_engine_params *params, weft_engine **out, weft_error *err);
/* Cancels what runs (each request gets its last event), waits for the thread, and for the store to write what it has, as
 * long as the disk does something: after disk_wait_ms without that, what is left is given up, and logged. */
WEFT_API void weft_engine_free(weft_engine **engine);

typedef enum weft_finish {
    WEFT_FINISH_END = 0,    /* an end token, which is no event of its own, or a complete grammar */
    WEFT_FINISH_LENGTH = 1, /* max_tokens, or a prompt without an answer */
    WEFT_FINISH_STOP = 2,   /* the event function said so */
    WEFT_FINISH_CANCELLED = 3,
    WEFT_FINISH_FAILED = 4
} weft_finish;

typedef struct weft_token_prob {
    int32_t token;
    float logprob;
} weft_token_prob;

enum weft_event_kind {
    WEFT_EVENT_BEGAN = 0,        /* left the queue */
    WEFT_EVENT_PROMPT_TOKEN = 1, /* in order, from the first token on, which has no log-probability (NAN) */
    WEFT_EVENT_TOKEN = 2,
    WEFT_EVENT_EMBEDDING = 3,
    WEFT_EVENT_FINISHED = 4, /* exactly once for each accepted request, the last */
    WEFT_EVENT_READ = 5      /* of a request that wants them: a step has read n_read tokens of the prompt, in all */
};

/* What it points to lives for the call. */
typedef struct weft_event {
    uint32_t size;
    uint32_t kind; /* weft_event_kind */
    uint64_t request;
    int32_t token; /* TOKEN, PROMPT_TOKEN */
    float
        logprob; /* natural, of the model's own distribution: before temperature, biases, penalties and grammar; NAN when none was asked for */
    const weft_token_prob *top; /* [n_top], the likeliest first of those that have a text */
    int32_t n_top;
    int32_t n_embedding;
    const float
        *embedding; /* EMBEDDING: L2-normalised mean of the last hidden states (after the final norm) of all prompt tokens */
    int32_t n_prompt, n_cached, n_generated;
    weft_finish finish;                      /* FINISHED */
    weft_status status;                      /* FINISHED with FAILED */
    const char *message;                     /* FINISHED with FAILED */
    double queue_ms, prompt_ms, generate_ms; /* FINISHED; queue_ms from BEGAN on */
    int32_t n_read;                          /* tokens of the prompt whose keys and values are there, the cached ones included */
} weft_event;

/* Non-zero: finish now (WEFT_FINISH_STOP). */
typedef int (*weft_event_fn)(void *arg, const weft_event *event);

/* Adapters by the names that weft_engine_adapter_add gave them, or by their numbers. */
typedef struct weft_request_adapter {
    const char *name; /* NULL: by index */
    float scale;      /* NAN: the name's own; 0: as if it were not there */
    int32_t index;    /* weft_engine_adapter.index, which never stands for another name's content */
} weft_request_adapter;

/* A stack of adapters as they were when it was made: requests that are given it compute with those contents, whatever becomes of the names. */
typedef struct weft_engine_lease weft_engine_lease;

typedef struct weft_request_params {
    uint32_t size;
    int32_t n_tokens;
    const int32_t *tokens; /* the prompt; copied */
    int32_t max_tokens;    /* to generate; -1: until the context is full; 0: prompt only */
    int32_t ignore_end;    /* 1: end tokens are never picked (a grammar's end ends nevertheless) */
    weft_sampler_params sampler;
    const weft_grammar *grammar; /* compiled for this model's tokenizer; retained; NULL: none */
    int32_t n_top;               /* log-probabilities of the n_top likeliest tokens with each token, 0..20; -1: none at all */
    int32_t prompt_logprobs;     /* 1: PROMPT_TOKEN events for the prompt (disables prefix reuse for this request) */
    int32_t embedding;           /* 1: an EMBEDDING event, no tokens (disables prefix reuse, too) */
    int32_t priority;            /* -8..7, larger first; 0 default */
    int32_t no_cache;            /* 1: neither reads nor feeds the prefix tree */
    const char *tenant;          /* for fairness and isolation; copied; NULL: "" */
    uint64_t deadline_ms;        /* from now: fails with WEFT_TIMEOUT when it has not finished then; 0: none */
    weft_event_fn event;
    void *arg;
    const weft_request_adapter *adapters; /* [n_adapters], a stack; copied */
    int32_t n_adapters;                   /* 0: none, or those of the lease; at most 8 */
    weft_engine_lease *lease;             /* shared; NULL: none */
    int32_t cut_to_fit;                   /* 1: max_tokens that context or KV pages can never hold is lowered; 0: WEFT_LIMIT */
    int32_t read_events;                  /* 1: READ events, for who counts while a prompt is read */
} weft_request_params;

WEFT_API void weft_request_params_default(weft_request_params *params);
/* From any thread, event functions included. The last event may come before it returns. WEFT_BUSY: the queue is full (the message has the seconds to wait; also *retry_after_s
 * when not NULL), or the adapters in use fill their budget. An adapter that is not ready is read here, while the caller waits:
 * WEFT_NOT_FOUND (no such name, or file), and as weft_engine_adapter_add; WEFT_STATE where its file has changed. WEFT_STATE: draining. Anything wrong with the request is refused here, by name (WEFT_ARGUMENT, WEFT_LIMIT). */
WEFT_API weft_status weft_engine_submit(weft_engine *engine, const weft_request_params *params, uint64_t *request,
                                        double *retry_after_s, weft_error *err);
/* Finishes the request with the step that runs; unknown ids are ignored. From any thread. */
WEFT_API void weft_engine_cancel(weft_engine *engine, uint64_t request);
/* No new requests (WEFT_STATE) from now on; returns when all have finished or after timeout_ms (then the rest is cancelled). */
WEFT_API void weft_engine_drain(weft_engine *engine, uint64_t timeout_ms);

/* ---- adapters of an engine: by name, for each request its own ----
 * A name stands for what its file held when it was added. Added again, it stands for the new content from the next request on; requests
 * that run finish with what they began with, and so after removal. What is ready is kept while it is used, then by last use within
 * adapter_bytes, and read again when it is needed. Cached prefixes are found again under the same contents and scales only. All functions from any
 * thread but the engine's. */
enum weft_adapter_flags {
    WEFT_ADAPTER_LAZY = 1u << 0,    /* the file is first read when a request asks for it */
    WEFT_ADAPTER_REPLACE = 1u << 1, /* the name may be there already */
    WEFT_ADAPTER_DISCREET =
        1u << 2 /* errors speak of the name, not of the path, which only the log has; those of requests always do */
};
/* Is it a name that an adapter may have: 1 to 128 of A-Z a-z 0-9 . _ -, not beginning with a point? WEFT_ARGUMENT. */
WEFT_API weft_status weft_engine_adapter_check_name(const char *name, weft_error *err);
/* name: as above. scale: finite; what a request means that gives none. Fails as weft_adapter_file_open does, with WEFT_ARGUMENT where the
 * adapter's values are too large at that scale, or of the name with WEFT_EXISTS, or WEFT_STATE where no more names are taken; nothing has
 * changed then. */
WEFT_API weft_status weft_engine_adapter_add(weft_engine *engine, const char *name, const char *path, float scale, uint32_t flags,
                                             weft_error *err);
WEFT_API weft_status weft_engine_adapter_remove(weft_engine *engine, const char *name, weft_error *err); /* WEFT_NOT_FOUND */

/* Takes adapters before the request that will use them, so that what was chosen by name or number is what computes, for each of several requests
 * too. What is not ready is read here. Fails as weft_engine_submit does for its adapters. *out NULL: they change nothing. Given back before the engine is freed. */
WEFT_API weft_status weft_engine_lease_new(weft_engine *engine, const weft_request_adapter *adapters, int32_t n,
                                           weft_engine_lease **out, weft_error *err);
/* The same for who must not wait: where something must be read, *ready is 0, and there is no lease. */
WEFT_API weft_status weft_engine_lease_ready(weft_engine *engine, const weft_request_adapter *adapters, int32_t n, int32_t *ready,
                                             weft_engine_lease **out, weft_error *err);
WEFT_API void weft_engine_lease_free(weft_engine *engine, weft_engine_lease **lease);

/* After WEFT_BUSY for want of room, for who has no lease himself that he could give back: returns 1 when another was given back since, or 0
 * after timeout_ms. */
WEFT_API int weft_engine_lease_wait(weft_engine *engine, uint32_t timeout_ms);

typedef struct weft_engine_adapter {
    uint32_t size;
    int32_t index;   /* from 0, as names were added; none is given twice */
    int32_t version; /* of the name, from 1 */
    float scale;
    int32_t n_requests; /* that use its content now */
    int32_t known;      /* 1: its file was read, and id is valid */
    uint64_t n_bytes;   /* ready, alone and in stacks */
    char id[33];        /* as weft_adapter_info.id */
    char name[129];
    char path[1024]; /* its end, where it is longer */
} weft_engine_adapter;
/* Copies at most `capacity` of them, in order of index, from index `first` on; returns how many there are from there on. */
WEFT_API int32_t weft_engine_adapters(const weft_engine *engine, int32_t first, weft_engine_adapter *out, int32_t capacity);

/* The one of that name; WEFT_NOT_FOUND. out->size set by the caller. */
WEFT_API weft_status weft_engine_adapter_find(const weft_engine *engine, const char *name, weft_engine_adapter *out,
                                              weft_error *err);

enum { WEFT_HISTOGRAM_MAX = 16 };
typedef struct weft_histogram {
    int32_t n, reserved;
    double bounds[WEFT_HISTOGRAM_MAX];       /* upper, rising; n of them */
    uint64_t counts[WEFT_HISTOGRAM_MAX + 1]; /* within each, the last above all */
    double sum;
} weft_histogram;

/* Bytes that are held now, and the most that were held at a time since the engine began. */
typedef struct weft_held {
    uint64_t bytes, peak;
} weft_held;

typedef struct weft_memory {
    weft_held weights;  /* of the model's tensors, as its file has them */
    weft_held pages;    /* of keys and values: pages held by requests and by the prefix tree */
    weft_held adapters; /* ready to be used */
    weft_held scratch;  /* activations, logits, and what running requests hold beside their pages: tokens, samplers */
} weft_memory;

/* Counts and gauges are of the last step that ended; none waits for the end of a request but n_finished, n_cancelled and n_failed. */
typedef struct weft_engine_stats {
    uint32_t size;
    int32_t n_slots, n_ctx, n_running, n_waiting;
    int32_t kv_pages, kv_pages_used, kv_pages_cached; /* in all; held by requests; held by the prefix tree alone */
    uint64_t n_steps, n_rows_decode, n_rows_prompt;
    uint64_t n_submitted, n_finished, n_cancelled, n_failed, n_refused, n_preempted;
    uint64_t prompt_tokens,
        cached_tokens; /* of prompts whose first rows were computed; those among them that the prefix tree had */
    weft_histogram batch_rows, step_ms;
    uint64_t model_ns; /* of the steps' time: in which the model computed; the rest is sampling, scheduling and telling */
    int32_t n_adapters, n_adapters_ready; /* names; stacks that are ready to be used */
    uint64_t adapter_bytes, adapter_loads, adapter_evictions;
    int32_t max_requests;                  /* of one tenant that an idle engine accepts together */
    int64_t store_prefixes, store_slots;   /* files on the disk now; without a store all of these are 0 */
    uint64_t store_bytes, store_cap_bytes; /* of them; of all that there may be */
    uint64_t store_written, store_write_failed, store_read, store_read_tokens, store_damaged,
        store_removed;                            /* files, and tokens of those that were read */
    uint64_t prefix_tokens, prefix_evicted_pages; /* that the prefix tree knows now; that it has given up */
    uint64_t n_put_off;    /* rows that were computed again, because a step had no time left for the masks of their grammars */
    int64_t store_waiting; /* prefixes and slots that are yet to be written to the disk, and take memory until then */
    uint64_t n_generated;  /* tokens */
    weft_memory memory;    /* who holds how much of it */
} weft_engine_stats;

/* out->size set by the caller. */
WEFT_API void weft_engine_get_stats(const weft_engine *engine, weft_engine_stats *out);

/* Slots in llama.cpp's sense: what is cached of tokens[0, n), the prompt and answer of a finished request of that tenant (NULL: "")
 * without adapters, goes to the store under a name ([A-Za-z0-9._-]{1,128}, not "." or ".."), and comes back from it into the prefix tree: *n_tokens
 * of them, of which the first `capacity` are told in tokens (NULL with 0: none), so that they can be saved again. Both wait for
 * the disk; not for event functions. WEFT_TIMEOUT: nothing of it, nor of what the disk has to do before it, was done for disk_wait_ms;
 * it may be done later. WEFT_UNSUPPORTED: the engine has no store; WEFT_NOT_FOUND: nothing is cached, or no such slot; WEFT_ARGUMENT (name), WEFT_LIMIT (the store's cap, pages), WEFT_IO, WEFT_FORMAT (it was damaged, and is dropped), WEFT_BUSY. */
WEFT_API weft_status weft_engine_save(weft_engine *engine, const char *tenant, const int32_t *tokens, int32_t n, const char *name,
                                      int32_t *n_saved, uint64_t *n_bytes, weft_error *err);
WEFT_API weft_status weft_engine_restore(weft_engine *engine, const char *name, int32_t *tokens, int32_t capacity,
                                         int32_t *n_tokens, uint64_t *n_bytes, weft_error *err);
/* Removes what was saved under a name; waits for the disk. WEFT_UNSUPPORTED, WEFT_ARGUMENT and WEFT_NOT_FOUND as above. */
WEFT_API weft_status weft_engine_erase(weft_engine *engine, const char *name, weft_error *err);

/* ---- converting ---- */

typedef struct weft_convert_params {
    uint32_t size;
    int32_t dtype;             /* weft_dtype of the matrices; -1: as they are stored */
    const char *pre_tokenizer; /* GGUF's name of the pre-tokenizer, where it cannot be recognized; NULL: none given */
    weft_progress_fn progress;
    void *progress_arg;
    int32_t saturate; /* as weft_quantize_params */
    int32_t reserved;
} weft_convert_params;

WEFT_API void weft_convert_params_default(weft_convert_params *params);
/* Writes the Hugging Face folder `in` as a GGUF file, which appears only when it is complete. Vectors and routers are F32; a matrix
 * whose rows are no multiple of the type's block keeps its stored type. The file's tokenizer is the folder's: what GGUF's usual keys
 * cannot say stands in keys tokenizer.weft.*, and what no key can say is refused with WEFT_UNSUPPORTED. Weights
 * that are not finite: WEFT_ARGUMENT, with their place. */
WEFT_API weft_status weft_convert(const char *in, const char *out, const weft_convert_params *params, weft_error *err);

/* ---- compiled plans ----
 * A model whose matrices are packed for one provider on one tier of processors. It is opened as any model is; its pages are mapped,
 * not packed, and shared by the processes that use it. On another tier, or by another version with other layouts, it is refused with
 * WEFT_UNSUPPORTED. */

typedef struct weft_plan_params {
    uint32_t size;
    int32_t n_threads;         /* 0: as weft_model_params */
    const char *provider;      /* NULL: cpu */
    const char *pre_tokenizer; /* as weft_convert_params; for folders */
    weft_progress_fn progress;
    void *progress_arg;
    int32_t keep_weights; /* 1: the matrices as they were, too, which DoRA adapters read when they are loaded */
    int32_t reserved;
} weft_plan_params;

typedef struct weft_plan_result {
    uint64_t bytes_before; /* of the model's tensors */
    uint64_t bytes_after;  /* of the file */
} weft_plan_result;

WEFT_API void weft_plan_params_default(weft_plan_params *params);
/* Packs model `in` and writes it to `out`, which appears when it is complete. Fails with WEFT_LIMIT when the disk has no room,
 * WEFT_UNSUPPORTED when the provider cannot hand out packed weights, WEFT_ARGUMENT for weights that are not finite, and as weft_model_open
 * does. */
WEFT_API weft_status weft_plan_write(const char *in, const char *out, const weft_plan_params *params, weft_plan_result *result,
                                     weft_error *err);

/* ---- quantizing ---- */

typedef struct weft_quantize_params {
    uint32_t size;
    int32_t n_threads;   /* 0: one per core */
    int32_t pure;        /* 1: every matrix in the one type, no mix */
    int32_t saturate;    /* 1: values beyond what their type can hold become the nearest that it has; 0: they are an error */
    const char *imatrix; /* importance matrix (weft imatrix or llama-imatrix wrote it), or NULL */
    weft_progress_fn progress;
    void *progress_arg;
} weft_quantize_params;

/* Tensors whose rows are no multiple of the block of the type that is meant for them, and took another. */
typedef struct weft_quantize_fallback {
    uint32_t wanted, taken; /* weft_dtype */
    int32_t n_tensors;
} weft_quantize_fallback;

typedef struct weft_quantize_result {
    uint64_t bytes_before, bytes_after;         /* of tensors */
    int32_t n_tensors, n_quantized, n_fallback; /* fallback: another type, because a row is no multiple of the block */
    weft_quantize_fallback fallbacks[16];       /* which, in the order of the file; behind the last, n_tensors is 0 */
    int32_t n_important;                        /* matrices that were encoded by their importance */
    uint64_t n_beyond;                          /* values beyond what their type can hold */
} weft_quantize_result;

WEFT_API void weft_quantize_params_default(weft_quantize_params *params);
/* Writes GGUF file `in` to `out` with its matrices in `type` ("Q4_K_M", "q8_0"; weft_quantize_types lists them). Vectors and
 * routers stay as they are. `out` appears only when it is complete. Fails with WEFT_ARGUMENT where a weight is NaN or infinite, which it
 * names, where the importance matrix is of no matrix that is encoded, and where values are beyond what F16 (or the F16 scales of blocks)
 * can hold, of which it tells the number and the first tensor, unless they are to be saturated. */
WEFT_API weft_status weft_quantize(const char *in, const char *out, const char *type, const weft_quantize_params *params,
                                   weft_quantize_result *result, weft_error *err);
/* The same with a weighted stack of adapters merged into the matrices, in float32, before they are encoded. type NULL: each tensor keeps
 * its own. Where the output head is tied to the embedding and an adapter changes one of them, `out` has both. WEFT_ARGUMENT: an adapter fits
 * no tensor of `in`. */
WEFT_API weft_status weft_adapter_apply(const char *in, const char *out, const weft_adapter_use *uses, int32_t n,
                                        const char *type, const weft_quantize_params *params, weft_quantize_result *result,
                                        weft_error *err);
/* "F16, BF16, Q8_0, ..." */
WEFT_API const char *weft_quantize_types(void);

typedef struct weft_imatrix_params {
    uint32_t size;
    int32_t chunk;      /* tokens per chunk, each from an empty context; 0: 512, or the model's context where that is less */
    int32_t max_chunks; /* 0: all */
    int32_t reserved;
    const char *dataset; /* name of the text, recorded in the file */
    weft_progress_fn progress;
    void *progress_arg;
} weft_imatrix_params;

WEFT_API void weft_imatrix_params_default(weft_imatrix_params *params);
/* Runs the model over tokens[n] and writes the mean square of every input of every matrix to `out`, in llama-imatrix's GGUF form.
 * Each chunk's first token becomes BOS where the vocabulary puts one before texts. *n_chunks receives the chunks used. Fails with
 * WEFT_FORMAT where what flows into a matrix is not finite, which it names; WEFT_LIMIT where a chunk is longer than n_ctx_max. */
WEFT_API weft_status weft_imatrix_collect(weft_model *model, const int32_t *tokens, int64_t n, const weft_imatrix_params *params,
                                          const char *out, int32_t *n_chunks, weft_error *err);

/* ---- pulled models ----
 * Models from a Hugging Face server (HF_ENDPOINT, by default https://huggingface.co; HF_TOKEN for those that want one), kept in
 * $WEFT_CACHE, $XDG_CACHE_HOME/weft or ~/.cache/weft. A name is OWNER/NAME or OWNER/NAME:WHAT, where WHAT is a file of the
 * repository or a quantization ("Q4_K_M"). */

typedef struct weft_pull_state {
    const char *what; /* "listing", "waiting" (another process pulls it), "checking" (what an earlier run left), "fetching" */
    const char *file; /* its path in the repository; NULL before the first */
    int32_t index, n_files; /* n_files 0: not known yet */
    uint64_t done, bytes;   /* of all files, with what was there before; bytes 0: not known */
} weft_pull_state;

/* Called by the thread that pulls, at least once a second; non-zero cancels. What was fetched stays for the next run. */
typedef int (*weft_pull_fn)(void *arg, const weft_pull_state *state);

typedef struct weft_pull_params {
    uint32_t size;
    int32_t reserved;
    weft_pull_fn progress;
    void *progress_arg;
} weft_pull_params;

typedef struct weft_pull_result {
    char path[4096];  /* to be opened: the file (the first part of a split one), or the folder */
    uint64_t n_bytes; /* of all files of the model */
    int32_t n_files;
    int32_t n_fetched;    /* of them, now; the others were there */
    int32_t n_unverified; /* of those, without a SHA-256 from the server to check against */
    int32_t reserved;
} weft_pull_result;

WEFT_API void weft_pull_params_default(weft_pull_params *params);
/* Fetches what is missing of a model; params NULL: the defaults. Without WHAT: the GGUF file of the first quantization in the order
 * Q4_K_M, Q4_K_S, Q4_0, IQ4_XS, IQ4_NL, Q4_1, Q5_K_M, Q5_K_S, Q5_0, Q5_1, Q6_K, Q8_0, Q3_K_M, Q3_K_L, Q3_K_S, Q2_K, BF16, F16, F32
 * that there is; of a repository without GGUF files the configuration, the tokenizer and the safetensors. All parts of a split
 * file. Each file is verified by size and, where the server gives one, SHA-256, before it appears. Fails with WEFT_NOT_FOUND,
 * WEFT_ARGUMENT (name, environment), WEFT_LIMIT (disk space), WEFT_IO (network, refused access), WEFT_FORMAT (an answer that is
 * refused), WEFT_UNSUPPORTED, WEFT_CANCELLED. */
WEFT_API weft_status weft_pull(const char *name, const weft_pull_params *params, weft_pull_result *result, weft_error *err);
/* The path that MODEL stands for: `name` itself when there is such a file or folder, else where the pulled model of that name lies
 * (of several quantizations the first in the order above). Fails with WEFT_NOT_FOUND, WEFT_LIMIT when it does not fit. */
WEFT_API weft_status weft_resolve_model(const char *name, char *path, size_t capacity, weft_error *err);

typedef struct weft_pulled {
    const char *name; /* OWNER/NAME:FILE, or OWNER/NAME for a folder; valid during the call, like path */
    const char *path;
    uint64_t n_bytes; /* on the disk */
    int32_t n_files;
    int32_t complete; /* 0: weft_pull has not finished it */
} weft_pulled;

typedef void (*weft_pulled_fn)(void *arg, const weft_pulled *model);
/* Calls `each` for every model in the cache, sorted by owner and name. */
WEFT_API weft_status weft_pulled_each(weft_pulled_fn each, void *arg, weft_error *err);
/* Removes OWNER/NAME with all its files, or the file of OWNER/NAME:WHAT. Never touches anything outside the cache. *n_bytes
 * receives the bytes that were freed. Fails with WEFT_NOT_FOUND, WEFT_STATE (it is being pulled), WEFT_ARGUMENT, WEFT_IO. */
WEFT_API weft_status weft_pulled_remove(const char *name, uint64_t *n_bytes, weft_error *err);

/* ---- providers ---- */

/* Opens provider `name` for a moment and describes it. `out->size` set by the caller. */
WEFT_API weft_status weft_provider_describe(const char *name, weft_backend_info *out, weft_error *err);
/* Names of the linked-in providers, NULL-terminated. */
WEFT_API const char *const *weft_provider_list(void);

#ifdef __cplusplus
}
#endif
#endif
