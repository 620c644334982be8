// SPDX-License-Identifier: Apache-2.0
/* hub.h: models pulled from a Hugging Face server. */
#ifndef WEFT_HUB_H
#define WEFT_HUB_H

#include <stddef.h>

#include "weft/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- pulled models ----
 * Models from a Hugging Face server (HF_ENDPOINT, by default https://huggingface.co; HF_TOKEN for those that want
 * one), kept in $WEFT_CACHE, $XDG_CACHE_HOME/weft or ~/.cache/weft. A name is OWNER/NAME or OWNER/NAME:WHAT, where
 * WHAT is a file of the repository or a quantization ("Q4_K_M"). In a library that was configured without this
 * (-DWEFT_HUB=OFF) each function answers WEFT_UNSUPPORTED; weft_resolve_model does for what is no file or folder. */

typedef struct weft_pull_state {
    /* "listing", "waiting" (another process pulls it), "checking" (what an earlier run left), "fetching" */
    const char *what;
    const char *file;       /* its path in the repository; NULL before the first */
    int32_t index, n_files; /* n_files 0: not known yet */
    uint64_t done, bytes;   /* of all files, with what was there before; bytes 0: not known */
} weft_pull_state;

/* Called by the thread that pulls, at least once a second; non-zero cancels. What was fetched stays for the next
 * run. */
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

/* Fills in the defaults. The macro tells the library how large the program's struct is. */
WEFT_API void weft_pull_params_default(weft_pull_params *params);
WEFT_API void weft_pull_params_init(weft_pull_params *params, uint32_t size);
#define weft_pull_params_default(params) weft_pull_params_init(params, sizeof *(params))
/* Fetches what is missing of a model; params NULL: the defaults. Without WHAT: the GGUF file of the first
 * quantization in the order Q4_K_M, Q4_K_S, Q4_0, IQ4_XS, IQ4_NL, Q4_1, Q5_K_M, Q5_K_S, Q5_0, Q5_1, Q6_K, Q8_0,
 * Q3_K_M, Q3_K_L, Q3_K_S, Q2_K, BF16, F16, F32 that there is; of a repository without GGUF files the configuration,
 * the tokenizer and the safetensors. All parts of a split file. Each file is verified by size and, where the server
 * gives one, SHA-256, before it appears. Fails with WEFT_NOT_FOUND, WEFT_ARGUMENT (name, environment), WEFT_LIMIT
 * (disk space), WEFT_IO (network, refused access), WEFT_FORMAT (an answer that is refused), WEFT_UNSUPPORTED,
 * WEFT_CANCELLED. */
WEFT_API weft_status weft_pull(const char *name, const weft_pull_params *params, weft_pull_result *result,
                               weft_error *err);
/* ---- pushing ----
 * Files go to a repository of the server in one commit of its branch main, as its commit API has it: small ones within
 * it, large ones by Git LFS before. HF_TOKEN must be one that may write. */

typedef struct weft_push_params {
    uint32_t size;
    int32_t create, is_private; /* create: make the repository where there is none; private then: not for everyone */
    int32_t reserved;
    const char *message;   /* of the commit; NULL: "Upload with weft" */
    weft_pull_fn progress; /* "hashing", "sending", "committing" */
    void *progress_arg;
} weft_push_params;

/* A file, and what it is called in the repository. */
typedef struct weft_push_file {
    const char *path; /* on this machine; NULL: `text` is its content */
    const char *name;
    const char *text;
} weft_push_file;

typedef struct weft_push_result {
    uint64_t n_bytes, n_sent; /* of all files; of those that the server did not have yet */
    char url[1024];           /* of the repository */
} weft_push_result;

/* Fills in the defaults. The macro tells the library how large the program's struct is. */
WEFT_API void weft_push_params_default(weft_push_params *params);
WEFT_API void weft_push_params_init(weft_push_params *params, uint32_t size);
#define weft_push_params_default(params) weft_push_params_init(params, sizeof *(params))
/* Sends files[n] to OWNER/NAME. Nothing of the repository changes but by the commit, which has all of them. Fails with
 * WEFT_ARGUMENT (name, token, a file's name), WEFT_NOT_FOUND, WEFT_IO (network, refused), WEFT_LIMIT (a file that the
 * server wants in the commit and is larger than 16 MB), WEFT_FORMAT (an answer that is none), WEFT_CANCELLED. */
WEFT_API weft_status weft_push(const char *name, const weft_push_file *files, int32_t n, const weft_push_params *params,
                               weft_push_result *result, weft_error *err);

/* ---- what a repository has, before it is pulled ---- */

typedef struct weft_hub_repo weft_hub_repo;

/* One of its models: a GGUF file, all parts of a split one together, or the folder. */
typedef struct weft_hub_model {
    uint32_t size;
    int32_t n_files;
    const char *what; /* for OWNER/NAME:WHAT; "": the folder. Lives with the repository, like type */
    const char *type; /* quantization in its name ("Q4_K_M"); "": none that is known */
    uint64_t n_bytes; /* of all its files */
} weft_hub_model;

/* Lists OWNER/NAME; of OWNER/NAME:WHAT the models are the one that is called so. Progress as weft_pull. The caller
 * closes *out. Fails as weft_pull does. */
WEFT_API weft_status weft_hub_open(const char *name, const weft_pull_params *params, weft_hub_repo **out,
                                   weft_error *err);
/* With the files of its outlines. */
WEFT_API void weft_hub_close(weft_hub_repo **repo);
/* How many it has; a set of parts counts as one. */
WEFT_API int32_t weft_hub_n_models(const weft_hub_repo *repo);
/* Model `index`, the smallest first. WEFT_ARGUMENT where there is none of that index. out->size set by the caller. */
WEFT_API weft_status weft_hub_model_at(const weft_hub_repo *repo, int32_t index, weft_hub_model *out, weft_error *err);
/* Fetches the heads of its files alone, some megabytes, and makes files of the whole size of them that are holes
 * otherwise: *path, of `capacity` bytes, is what weft_model_open opens as an outline until the repository is closed.
 * One thread. */
WEFT_API weft_status weft_hub_outline(weft_hub_repo *repo, int32_t index, char *path, size_t capacity, weft_error *err);

/* The path that MODEL stands for: `name` itself when there is such a file or folder, else where the pulled model of
 * that name lies (of several quantizations the first in the order above). Fails with WEFT_NOT_FOUND, WEFT_LIMIT when
 * it does not fit. */
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
/* Removes OWNER/NAME with all its files, or the file of OWNER/NAME:WHAT. Never touches anything outside the cache.
 * *n_bytes receives the bytes that were freed. Fails with WEFT_NOT_FOUND, WEFT_STATE (it is being pulled),
 * WEFT_ARGUMENT, WEFT_IO. */
WEFT_API weft_status weft_pulled_remove(const char *name, uint64_t *n_bytes, weft_error *err);

#ifdef __cplusplus
}
#endif
#endif
