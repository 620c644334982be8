// SPDX-License-Identifier: Apache-2.0
/* tools.h: models converted, packed, quantized, synthesized and measured. */
#ifndef WEFT_TOOLS_H
#define WEFT_TOOLS_H

#include "weft/adapter.h"
#include "weft/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- converting ---- */

typedef struct weft_convert_params {
    uint32_t size;
    int32_t dtype; /* weft_dtype of the matrices; -1: as they are stored */
    /* GGUF's name of the pre-tokenizer, where it cannot be recognized; NULL: none given */
    const char *pre_tokenizer;
    weft_progress_fn progress;
    void *progress_arg;
    int32_t saturate; /* as weft_quantize_params */
    int32_t reserved;
} weft_convert_params;

/* Fills in the defaults. The macro tells the library how large the program's struct is. */
WEFT_API void weft_convert_params_default(weft_convert_params *params);
WEFT_API void weft_convert_params_init(weft_convert_params *params, uint32_t size);
#define weft_convert_params_default(params) weft_convert_params_init(params, sizeof *(params))
/* Writes the Hugging Face folder `in` as a GGUF file, which appears only when it is complete. Vectors and routers
 * are F32; a matrix whose rows are no multiple of the type's block keeps its stored type. The file's tokenizer is
 * the folder's: what GGUF's usual keys cannot say stands in keys tokenizer.weft.*, and what no key can say is
 * refused with WEFT_UNSUPPORTED. Weights that are not finite: WEFT_ARGUMENT, with their place. */
WEFT_API weft_status weft_convert(const char *in, const char *out, const weft_convert_params *params, weft_error *err);

/* ---- compiled plans ----
 * A model whose matrices are packed for one provider on one tier of processors. It is opened as any model is; its
 * pages are mapped, not packed, and shared by the processes that use it. On another tier, or by another version with
 * other layouts, it is refused with WEFT_UNSUPPORTED, or made again (weft_model_params.renew_plan). It names the model
 * that it was made of, by its absolute path. */

typedef struct weft_plan_params {
    uint32_t size;
    int32_t n_threads;         /* 0: as weft_model_params */
    const char *provider;      /* NULL: cpu */
    const char *pre_tokenizer; /* as weft_convert_params; for folders */
    weft_progress_fn progress;
    void *progress_arg;
    /* 1: the matrices as they were, too, which DoRA adapters read when they are loaded */
    int32_t keep_weights;
    int32_t reserved;
} weft_plan_params;

typedef struct weft_plan_result {
    uint64_t bytes_before; /* of the model's tensors */
    uint64_t bytes_after;  /* of the file */
} weft_plan_result;

/* Fills in the defaults. The macro tells the library how large the program's struct is. */
WEFT_API void weft_plan_params_default(weft_plan_params *params);
WEFT_API void weft_plan_params_init(weft_plan_params *params, uint32_t size);
#define weft_plan_params_default(params) weft_plan_params_init(params, sizeof *(params))
/* Packs model `in` and writes it to `out`, which appears when it is complete. Fails with WEFT_LIMIT when the disk
 * has no room, WEFT_UNSUPPORTED when the provider cannot hand out packed weights, WEFT_ARGUMENT for weights that are
 * not finite, and as weft_model_open does. */
WEFT_API weft_status weft_plan_write(const char *in, const char *out, const weft_plan_params *params,
                                     weft_plan_result *result, weft_error *err);

/* ---- quantizing ---- */

typedef struct weft_quantize_params {
    uint32_t size;
    int32_t n_threads; /* 0: one per core */
    int32_t pure;      /* 1: every matrix in the one type, no mix */
    /* 1: values beyond what their type can hold become the nearest that it has; 0: they are an error */
    int32_t saturate;
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
    uint64_t bytes_before, bytes_after; /* of tensors */
    /* fallback: another type, because a row is no multiple of the block */
    int32_t n_tensors, n_quantized, n_fallback;
    /* which, in the order of the file; behind the last, n_tensors is 0 */
    weft_quantize_fallback fallbacks[16];
    int32_t n_important; /* matrices that were encoded by their importance */
    uint64_t n_beyond;   /* values beyond what their type can hold */
} weft_quantize_result;

/* Fills in the defaults. The macro tells the library how large the program's struct is. */
WEFT_API void weft_quantize_params_default(weft_quantize_params *params);
WEFT_API void weft_quantize_params_init(weft_quantize_params *params, uint32_t size);
#define weft_quantize_params_default(params) weft_quantize_params_init(params, sizeof *(params))
/* Writes GGUF file `in` to `out` with its matrices in `type` ("Q4_K_M", "q8_0"; weft_quantize_types lists them).
 * Vectors and routers stay as they are. `out` appears only when it is complete. Fails with WEFT_ARGUMENT where a
 * weight is NaN or infinite, which it names, where the importance matrix is of no matrix that is encoded, and where
 * values are beyond what F16 (or the F16 scales of blocks) can hold, of which it tells the number and the first
 * tensor, unless they are to be saturated. */
WEFT_API weft_status weft_quantize(const char *in, const char *out, const char *type,
                                   const weft_quantize_params *params, weft_quantize_result *result, weft_error *err);
/* The same with a weighted stack of adapters merged into the matrices, in float32, before they are encoded. type
 * NULL: each tensor keeps its own. Where the output head is tied to the embedding and an adapter changes one of
 * them, `out` has both. WEFT_ARGUMENT: an adapter fits no tensor of `in`. */
WEFT_API weft_status weft_adapter_apply(const char *in, const char *out, const weft_adapter_use *uses, int32_t n,
                                        const char *type, const weft_quantize_params *params,
                                        weft_quantize_result *result, weft_error *err);
/* "F16, BF16, Q8_0, ..." */
WEFT_API const char *weft_quantize_types(void);

/* ---- importance matrices ---- */

typedef struct weft_imatrix_params {
    uint32_t size;
    /* tokens per chunk, each from an empty context; 0: 512, or the model's context where that is less */
    int32_t chunk;
    int32_t max_chunks; /* 0: all */
    int32_t reserved;
    const char *dataset; /* name of the text, recorded in the file */
    weft_progress_fn progress;
    void *progress_arg;
} weft_imatrix_params;

/* Fills in the defaults. The macro tells the library how large the program's struct is. */
WEFT_API void weft_imatrix_params_default(weft_imatrix_params *params);
WEFT_API void weft_imatrix_params_init(weft_imatrix_params *params, uint32_t size);
#define weft_imatrix_params_default(params) weft_imatrix_params_init(params, sizeof *(params))
/* Runs the model over tokens[n] and writes the mean square of every input of every matrix to `out`, in
 * llama-imatrix's GGUF form. Each chunk's first token becomes BOS where the vocabulary puts one before texts.
 * *n_chunks receives the chunks used. Fails with WEFT_FORMAT where what flows into a matrix is not finite, which it
 * names; WEFT_LIMIT where a chunk is longer than n_ctx_max. */
WEFT_API weft_status weft_imatrix_collect(weft_model *model, const int32_t *tokens, int64_t n,
                                          const weft_imatrix_params *params, const char *out, int32_t *n_chunks,
                                          weft_error *err);

/* ---- synthetic models ---- */

/* A model of a known shape ("tinyllama-1.1b") with random weights of one type, in memory; without a tokenizer. For
 * benchmarks. */
WEFT_API weft_status weft_model_synthetic(const char *shape, uint32_t dtype, const weft_model_params *params,
                                          weft_model **out, weft_error *err);
/* Writes the same model as a GGUF file, with a vocabulary of made-up words, so that other programs can measure it
 * too. */
WEFT_API weft_status weft_synthetic_write(const char *shape, uint32_t dtype, const char *path,
                                          weft_progress_fn progress, void *arg, weft_error *err);

/* ---- limits and costs ---- */

/* The limits of the hardware, measured now on the model's provider. */
WEFT_API weft_status weft_model_measure(weft_model *model, weft_peaks *out, weft_error *err);

/* The same without a model, n times on n_threads threads (0: as many as a model would get), each briefly
 * (weft_peaks.brief): the differences are those of the machine. Takes 0.5 GB of memory meanwhile. WEFT_ARGUMENT,
 * WEFT_NO_MEMORY. */
WEFT_API weft_status weft_machine_measure(int32_t n_threads, int32_t n, weft_peaks *out, weft_error *err);

typedef struct weft_cache {
    int32_t level, n_cpus; /* n_cpus: that share one */
    char type[16];         /* "Data", "Instruction", "Unified" */
    uint64_t bytes;
} weft_cache;

#define WEFT_CACHES_MAX 8

/* The machine, as this process may use it. What is not known is 0 or "". */
typedef struct weft_machine {
    uint32_t size;
    int32_t n_cpus, n_cores, n_fast_cores,
        n_nodes;           /* logical processors, cores, those of the fastest kind, NUMA nodes */
    int32_t n_threads;     /* that a model gets: one per core of the fastest kind */
    int32_t n_threads_smt; /* with every logical processor of these cores; 0: they have one each, or cores differ */
    int32_t n_caches;
    double quota_cpus;        /* processor time per time that the control group grants; 0: no quota */
    uint64_t memory_bytes;    /* in all */
    uint64_t group_bytes;     /* that the control group may have; 0: no limit */
    uint64_t available_bytes; /* that can be had now, without swapping and within the group's limit */
    uint64_t swap_bytes, hugetlb_bytes;
    uint64_t memlock_bytes; /* that may be kept in memory (RLIMIT_MEMLOCK); UINT64_MAX: no limit */
    int32_t numa_balancing, reserved;
    weft_cache caches[WEFT_CACHES_MAX];
    char processor[96];
    char tiers_found[96], tiers_used[96]; /* best first: "avx512vnni, avx512, avx2, ref" */
    char tuned_for[32];                   /* microarchitecture */
    char huge_pages[32];                  /* transparent ones: "always", "madvise", "never" */
    char huge_defrag[32], governor[32], perf_paranoid[32];
    /* 10^9 multiplications and additions per second of quantized products by AMX and by the tier below it, whose name
     * follows: the faster one is used. That is measured when the CPU is first opened, and kept; 0, 0 and "": it was not
     * yet, or there is no AMX, or WEFT_CPU names a tier. */
    double amx_gops, below_amx_gops;
    char below_amx[32];
} weft_machine;

/* out->size set by the caller. WEFT_ARGUMENT: WEFT_CPU names no tier. */
WEFT_API weft_status weft_machine_describe(weft_machine *out, weft_error *err);

/* What a step must move and multiply at least. */
typedef struct weft_step_cost {
    uint32_t size, reserved;
    double weight_bytes; /* of the matrices, each read once */
    double kv_bytes;     /* of the keys and values attended to, each read once per sequence */
    /* multiplications and additions of matrix products, by the unit for the weights' type */
    double int8_ops, bf16_ops, f32_ops;
    double attention_ops; /* the same of attention */
} weft_step_cost;

/* Of a step with n_rows new tokens for each of n_seqs sequences that hold n_past tokens; n_wanted rows of all get
 * logits; kv_dtype: of keys and values (weft_kv_format). out->size set by the caller. */
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

/* One op, as the thread that leads the step saw it: from begin to done it did its own share, until end it waited for
 * the others. */
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

/* Records every op of the steps that follow, from an empty record; stop ends recording and keeps the record. Steps that
 * are recorded follow each other, whichever threads ask for them. Fails with WEFT_UNSUPPORTED where the model's
 * provider cannot. Start, stop and what reads the record are called by one thread, which reads while nothing is
 * recorded. */
WEFT_API weft_status weft_model_profile_start(weft_model *model, weft_error *err);
/* The same, and every step is counted: weft_model_profile_count. Each op then takes some microseconds more, outside its
 * own time. What cannot be counted is absent there; it is no error. */
WEFT_API weft_status weft_model_profile_start_counting(weft_model *model, weft_error *err);
/* Ends recording, after the step that is being recorded; the record stays until the next start. */
WEFT_API void weft_model_profile_stop(weft_model *model);
/* Steps in the record. */
WEFT_API int32_t weft_model_profile_n_steps(const weft_model *model);
/* Step `index`, and op `index` counted over all steps. out->size set by the caller. */
WEFT_API weft_status weft_model_profile_step(const weft_model *model, int32_t index, weft_profile_step *out,
                                             weft_error *err);
/* As above. Both: WEFT_NOT_FOUND where there is none of that index. Strings in *out live with the model. */
WEFT_API weft_status weft_model_profile_op(const weft_model *model, int32_t index, weft_profile_op *out,
                                           weft_error *err);

/* What all threads that worked on an op counted during their own shares, without the time in which they waited:
 * "cycles", "instructions", "branch_misses", "llc_misses" (of the last level of cache), "l1d_misses" and "dtlb_misses"
 * (of reads) by the processor's counters, in user space; "task_ns" (processor time), "page_faults" and
 * "context_switches" by the system's. */
typedef struct weft_profile_count {
    uint32_t size, reserved;
    const char *name;
    const char *absent; /* NULL, or why there is no such counter here, and what helps */
    uint64_t n;         /* 0 where it is absent */
    /* Where counters take turns, n was counted in running_ns of the threads' enabled_ns: over many ops the sum of n,
     * times that of enabled_ns, by that of running_ns, is an estimate of the whole. Equal otherwise. */
    uint64_t enabled_ns, running_ns;
} weft_profile_count;

/* Counter `index` of op `op`, counted over all steps. WEFT_NOT_FOUND where there is none of that index: behind the last
 * counter, and of a record that was not counted. Strings are static. */
WEFT_API weft_status weft_model_profile_count(const weft_model *model, int32_t op, int32_t index,
                                              weft_profile_count *out, weft_error *err);

#ifdef __cplusplus
}
#endif
#endif
