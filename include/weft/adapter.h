// SPDX-License-Identifier: Apache-2.0
/* adapter.h: low-rank changes of a model (LoRA, rsLoRA, DoRA) as files. */
#ifndef WEFT_ADAPTER_H
#define WEFT_ADAPTER_H

#include "weft/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- adapters: low-rank changes of a model's matrices (LoRA, rsLoRA, DoRA) ----
 * Files are GGUF adapters or PEFT folders (adapter_config.json and adapter_model.safetensors). What an adapter asks
 * for and this engine does not compute is refused by name; so are halves that are missing or do not fit, NaN and
 * infinity. */
typedef struct weft_adapter_file weft_adapter_file; /* immutable: threads may share it */

typedef struct weft_adapter_use {
    const weft_adapter_file *file;
    float scale; /* its weight in the stack; 1: as it was trained */
} weft_adapter_use;

/* base: the model file that it changes, whose names, heads and shapes it is checked against; NULL: a GGUF adapter
 * alone. The base may be closed afterwards. Fails with WEFT_NOT_FOUND, WEFT_IO, WEFT_FORMAT, WEFT_UNSUPPORTED,
 * WEFT_LIMIT (rank), WEFT_ARGUMENT (another base). */
WEFT_API weft_status weft_adapter_file_open(const char *path, const weft_file *base, weft_adapter_file **out,
                                            weft_error *err);
/* Sessions that were given it keep what they need of it. */
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
    /* of what weft_adapter_file_compress made, ||before - after|| / ||before|| of the change (Frobenius's norm, all
     * experts together), and its rank before; of others 0, and its rank */
    double error;
    int32_t rank_before, reserved;
} weft_adapter_matrix;

/* out->size set by the caller. */
WEFT_API weft_status weft_adapter_file_describe(const weft_adapter_file *file, weft_adapter_info *out, weft_error *err);
/* Matrix `index`, 0 to n_matrices - 1. WEFT_ARGUMENT where there is none of that index. */
WEFT_API weft_status weft_adapter_file_matrix(const weft_adapter_file *file, int32_t index, weft_adapter_matrix *out,
                                              weft_error *err);

/* Writes it as a GGUF adapter (path ends in ".gguf") or a PEFT folder; base as above, needed for folders and where
 * the adapter does not name its architecture. What is read back has the same id. Fails with WEFT_UNSUPPORTED where
 * the format cannot say what it means, WEFT_IO. */
WEFT_API weft_status weft_adapter_file_save(const weft_adapter_file *file, const weft_file *base, const char *path,
                                            weft_error *err);

enum weft_merge_method {
    WEFT_MERGE_CAT = 0, /* the exact sum: ranks side by side */
    /* these four mix the matrices A and B by themselves, as PEFT does, smaller ranks with zeros up to the largest */
    WEFT_MERGE_LINEAR,
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
/* Fills in the defaults. The macro tells the library how large the program's struct is. */
WEFT_API void weft_merge_params_default(weft_merge_params *params);
WEFT_API void weft_merge_params_init(weft_merge_params *params, uint32_t size);
#define weft_merge_params_default(params) weft_merge_params_init(params, sizeof *(params))
/* Several adapters of one base as one, by their weights. WEFT_ARGUMENT (number, weights, shapes), WEFT_UNSUPPORTED
 * (DoRA), WEFT_LIMIT. */
WEFT_API weft_status weft_adapter_file_merge(const weft_adapter_use *uses, int32_t n, const weft_merge_params *params,
                                             weft_adapter_file **out, weft_error *err);

/* The same adapter at a smaller rank: each matrix's change becomes the nearest to it of that rank (its largest singular
 * values), so that `file` may have been several, merged by WEFT_MERGE_CAT. rank: that a matrix has at most; 0: any.
 * keep: in (0, 1], the share of ||B A||^2 that a matrix keeps at least, as far as `rank` allows, by as small a rank as
 * does; 1: all of it. Who asks for a matrix (weft_adapter_file_matrix) is told what it lost. WEFT_ARGUMENT (rank, keep,
 * values too large or no numbers), WEFT_UNSUPPORTED (DoRA), WEFT_LIMIT (values whose decomposition does not come to
 * rest), WEFT_NO_MEMORY. Thread-safe; *out is the caller's, NULL on failure. */
WEFT_API weft_status weft_adapter_file_compress(const weft_adapter_file *file, int32_t rank, double keep,
                                                weft_adapter_file **out, weft_error *err);

#ifdef __cplusplus
}
#endif
#endif
