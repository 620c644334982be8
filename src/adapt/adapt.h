// SPDX-License-Identifier: Apache-2.0
/* adapt.h: adapters: low-rank changes of a model's matrices, read from GGUF files and PEFT folders into one form,
 * checked against a base model, woven into what a program runs, written, merged.
 *
 * Letters: k inputs, n outputs, E experts of a matrix (1: no experts), r rank.
 * A pair changes the matrix W [n, k] (rows of outputs) of GGUF tensor `name` to  W + scale * B A,  A [r, k], B [n, r]
 * (LoRA: Hu et al. 2021, scale = alpha / r; rank-stabilised: Kalajdzievski 2023, alpha / sqrt(r)). With magnitudes m
 * [n] (DoRA: Liu et al. 2024) it becomes g . (W + scale * B A), g = m / ||W + scale * B A||, norms of rows. The
 * embedding, whose rows are its outputs, has m [k] and norms of columns, as PEFT has them. Rows of q and k stand as
 * GGUF has them. "token_embd.weight" changes the embedding only, also where the output head is tied to it: the head's
 * pair is "output.weight". Invariant: what a reader hands out is finite and consistent in itself, and has a content id:
 * two adapters with one id compute the same. Thread safety: an adapter is immutable once it was read; any thread may
 * use it. */
#ifndef WEFT_ADAPT_ADAPT_H
#define WEFT_ADAPT_ADAPT_H

#include <string.h>

#include "format/arena.h"
#include "format/gguf_write.h"
#include "weft/graph.h"

enum { WEFT__ADAPT_RANK_MAX = WEFT_ADAPTER_RANK_MAX, WEFT__ADAPT_PAIRS_MAX = 1 << 16 };

typedef struct weft__adapt_pair {
    char name[WEFT_NAME_MAX]; /* "blk.0.attn_q.weight" */
    int64_t k, n, n_experts;
    int32_t rank;
    float scale;
    uint32_t a_dtype, b_dtype; /* as they were stored, for writers */
    const float *a;            /* [E, r, k] */
    const float *b;            /* [E, n, r] */
    /* [E, n], of the embedding [k], or NULL: no DoRA. All 0 of an expert, as are its A and B then: it is not changed */
    const float *magnitude;
} weft__adapt_pair;

/* The embedding's pair, or its matrix? */
static inline int weft__adapt_is_table(const char *name)
{
    return !strcmp(name, "token_embd.weight");
}

/* Is none of n values another than 0? */
static inline int weft__adapt_all_zero(const float *x, int64_t n)
{
    int64_t i = 0;
    while (i < n && x[i] == 0) i++;
    return i == n;
}

/* DoRA leaves this expert as it is. */
static inline int weft__adapt_is_identity(const weft__adapt_pair *p, int64_t expert)
{
    return p->n_experts > 1 && weft__adapt_all_zero(p->magnitude + expert * p->n, p->n);
}

static inline int64_t weft__adapt_n_magnitudes(const weft__adapt_pair *p)
{
    return !p->magnitude ? 0 : weft__adapt_is_table(p->name) ? p->k : p->n_experts * p->n;
}

/* A matrix of the base that a folder holds beside its change: some of its n rows, evenly spread, to be held against the
 * base's. */
enum { WEFT__ADAPT_BASE_CHECKS = 2 /* the embedding and the output head */, WEFT__ADAPT_BASE_CHECK_ROWS = 64 };

typedef struct weft__adapt_base_check {
    char name[WEFT_NAME_MAX];
    int64_t k, n;
    int32_t n_rows;    /* row i is row i * n / n_rows */
    const float *rows; /* [n_rows, k] */
} weft__adapt_base_check;

/* What computes the same has the same id (SHA-256 of names, shapes, scales and values, cut). */
typedef struct weft__adapt_id {
    uint64_t word[2];
} weft__adapt_id;

typedef struct weft__adapt {
    char *label;               /* its path, for messages */
    char arch[64];             /* general.architecture of its base; "" where it does not say */
    int peft;                  /* read from a folder */
    int from_disk;             /* some of its bytes were in no memory when it was read, as far as the system tells */
    uint64_t base_fingerprint; /* weft__adapt_fingerprint of its base; 0: it does not say */
    int32_t n_pairs;
    weft__adapt_pair *pairs; /* sorted by name */
    int32_t n_checks;
    /* not of the id: they change nothing that is computed; nor are they written */
    weft__adapt_base_check checks[WEFT__ADAPT_BASE_CHECKS];
    weft__adapt_id id;
    uint64_t n_bytes, max_bytes; /* of values in float32; at most so many may be read */
    weft__arena arena;
} weft__adapt;

/* Where a module of a Hugging Face model is in GGUF. */
typedef struct weft__adapt_place {
    char name[WEFT_NAME_MAX];
    int32_t expert, n_experts; /* -1 and 1: none */
    int32_t heads;             /* > 0: its rows are those of so many heads, in halves, which GGUF has in pairs */
} weft__adapt_place;

/* Rows of a matrix whose heads' halves GGUF pairs: row r of GGUF is this row of a folder. */
static inline int64_t weft__adapt_folder_row(int64_t r, int64_t rows_per_head)
{
    int64_t head = r / rows_per_head, i = r % rows_per_head;
    return head * rows_per_head + i % 2 * (rows_per_head / 2) + i / 2;
}

/* How the rooms above translate names; for PEFT folders. */
typedef struct weft__adapt_names {
    const void *arg;
    const char *arch;
    /* "model.layers.0.self_attn.q_proj" to its place; 0: there is no such module. */
    int (*place)(const void *arg, const char *module, weft__adapt_place *out);
    /* And back: the module of a tensor (of one expert). */
    int (*module)(const void *arg, const char *tensor, int32_t expert, char *out, size_t size,
                  weft__adapt_place *place);
} weft__adapt_names;

/* "adapter x", or "adapters x, y", as far as there is room; n >= 1. */
void weft__adapt_name_all(const char *const *names, int32_t n, char *out, size_t size);

/* ---- reading and writing ---- */

/* A GGUF file or a PEFT folder. names: for folders; NULL refuses them. max_bytes: of its values in float32, with the
 * experts that it has nothing for; beside them there are the bytes of the file, which may be so many and 64 MiB, and
 * are read when its header is in order. Fails with WEFT_NOT_FOUND, WEFT_IO, WEFT_FORMAT (malformed, halves missing,
 * shapes that do not fit each other, NaN or infinity), WEFT_UNSUPPORTED (naming what this engine does not compute),
 * WEFT_LIMIT (rank, max_bytes) or WEFT_NO_MEMORY; the message names the file and the tensor. *out is NULL then. */
weft_status weft__adapt_open(const char *path, const weft__adapt_names *names, uint64_t max_bytes, weft__adapt **out,
                             weft_error *err);
void weft__adapt_close(weft__adapt **a);
/* Asks the system to have the file, or those of the folder, in its page cache when it is opened as above; returns
 * without waiting for what is read, though opening a file may take a while. 0: there is none such. */
int weft__adapt_ask_ahead(const char *path, uint64_t max_bytes);

/* Writers; what is read back has the same id. GGUF: with general.architecture `arch` and the base's fingerprint; alpha
 * for all, and scales of their own for those that differ (NAME.lora_scale). A folder is made where there is none;
 * WEFT_UNSUPPORTED where it cannot say what the adapter means. Fail as weft__out_file_write does. */
weft_status weft__adapt_write_gguf(const weft__adapt *a, const char *arch, const char *path, weft_error *err);
weft_status weft__adapt_write_peft(const weft__adapt *a, const weft__adapt_names *names, const char *folder,
                                   weft_error *err);

/* For writers of adapters as GGUF, before weft__gguf_begin: the key that says the base's fingerprint, where it is
 * known. 16 hexadecimal digits. */
#define WEFT__ADAPT_FINGERPRINT_KEY "weft.adapter.base_mark"
weft_status weft__adapt_put_fingerprint(weft__gguf_writer *w, uint64_t fingerprint, weft_error *err);

/* ---- adapters with each other ---- */

typedef struct weft__adapt_use {
    const weft__adapt *adapter;
    float scale; /* weight in the stack */
} weft__adapt_use;

typedef enum weft__adapt_method {
    /* Sum of weight_i * scale_i * B_i A_i, exactly: the ranks side by side. */
    WEFT__ADAPT_CAT,
    /* The others mix A and B by themselves, as PEFT does, each with sqrt(|weight * scale|) of its adapter (a negative
     * weight's sign goes to B); a matrix that one lacks counts as zeros. Where ranks differ (PEFT refuses that), the
     * smaller count as the largest, with rows of zeros in A and columns of zeros in B: the product is the same, and so
     * is what a method does of two equal ranks; components meet by their order. LINEAR: sums. */
    WEFT__ADAPT_LINEAR,
    /* Of two, between their directions, at t = weight_2 / (weight_1 + weight_2) (Shoemake 1985); nearly parallel or
     * zero ones linearly. The weights give t alone: each counts with sqrt(|scale|). */
    WEFT__ADAPT_SLERP,
    /* Yadav et al. 2023: of each, the largest `density` of its own values; by sign of their sum; the mean of the
     * weighted ones of that sign. */
    WEFT__ADAPT_TIES,
    /* Yu et al. 2024: each value is kept with probability `density` and divided by it; sums. */
    WEFT__ADAPT_DARE
} weft__adapt_method;

typedef struct weft__adapt_mix {
    weft__adapt_method method;
    double density; /* (0, 1] */
    uint64_t seed;
} weft__adapt_mix;

/* WEFT_ARGUMENT (number, weights, shapes that differ, density; values that are not finite), WEFT_UNSUPPORTED (DoRA: a
 * sum of changes that scale the base's rows is no low-rank one, and magnitudes by themselves, which begin as the
 * base's, are not to be summed without it), WEFT_LIMIT (rank of CAT), WEFT_NO_MEMORY. */
weft_status weft__adapt_merge(const weft__adapt_use *uses, int32_t n, const weft__adapt_mix *mix, weft__adapt **out,
                              weft_error *err);

/* ---- an adapter at a smaller rank ---- */

typedef struct weft__adapt_cut {
    int32_t rank; /* that a matrix has at most; 0: as it had */
    double keep;  /* (0, 1] share of ||B A||^2 that it keeps at least, as far as `rank` allows; 1: all of it */
} weft__adapt_cut;

/* What it cost a matrix. */
typedef struct weft__adapt_lost {
    int32_t rank_before, rank;
    double error; /* ||before - after|| / ||before||, Frobenius's norm, of all experts together; 0 of no change */
} weft__adapt_lost;

/* Each change as the nearest of its rank (svd.h), with a scale of 1; ranks are as small as `cut` lets them be, and no
 * larger than the change's own, 1 at least; of experts, that of the one that needs most. lost (or NULL): [n_pairs].
 * Several adapters: merged by CAT before. WEFT_ARGUMENT (cut; NaN and infinity; values beyond float32's),
 * WEFT_UNSUPPORTED (DoRA), WEFT_LIMIT as weft__adapt_svd_of, WEFT_NO_MEMORY; *out is NULL then. */
weft_status weft__adapt_compress(const weft__adapt *a, const weft__adapt_cut *cut, weft__adapt **out,
                                 weft__adapt_lost *lost, weft_error *err);

/* ---- what a program runs ---- */

/* A matrix of the base, or a range of its rows, as adapters see it. */
typedef struct weft__adapt_target {
    char name[WEFT_NAME_MAX]; /* of the pairs that change it; "": no pair may */
    int64_t k, n, n_experts;
    int64_t first, n_total; /* it is rows first .. first + n - 1 of n_total */
    int32_t heads;          /* > 0: its rows are in halves of so many heads (a folder of Llama's kin), not in pairs */
    uint32_t dtype;
    const void *data; /* its first row; NULL: its bytes are not there (a compiled plan) */
    uint64_t row_bytes;
} weft__adapt_target;

/* Tells bases of the same shapes apart, whatever their formats: a checksum of the weights of the last norm
 * ("output_norm.weight", n values), which training moves, and which no quantization and no adapter that is merged in
 * changes. They are rounded to bfloat16 first, as some bases keep them. 0, unknown: data is NULL, or not of F32, F16 or
 * BF16. */
uint64_t weft__adapt_fingerprint(const void *data, uint32_t dtype, int64_t n);
/* That of a file's tensors; 0 where the norm is not among them. */
uint64_t weft__adapt_fingerprint_of_tensors(const weft__tensor_set *set);
/* That of a graph's weights; 0 where their bytes are not there (a compiled plan). */
uint64_t weft__adapt_fingerprint_of_graph(const weft_graph *graph);

typedef struct weft__adapt_base {
    const char *arch, *label; /* borrowed */
    uint64_t fingerprint;
    int32_t n;
    weft__adapt_target *targets; /* [n] of a graph: one per weight */
} weft__adapt_base;

/* The weights of a graph as its architecture built it, borrowed. q_heads, k_heads: > 0 where rows of attn_q and attn_k
 * are in halves. */
weft_status weft__adapt_base_of_graph(const weft_graph *graph, const char *arch, const char *label, int32_t q_heads,
                                      int32_t k_heads, weft__adapt_base *out, weft_error *err);
void weft__adapt_base_free(weft__adapt_base *base);

/* WEFT_ARGUMENT when a pair fits no matrix of the base, naming both, when the adapter is another architecture's, when
 * both fingerprints are known and differ, or when a copy is not what the base has there, as far as its bytes are
 * there. */
weft_status weft__adapt_check(const weft__adapt *a, const weft__adapt_base *base, weft_error *err);

/* Can steps compute with its values at that weight in a stack, whatever type they are kept in? WEFT_FORMAT: at no
 * weight (not even at 1); WEFT_ARGUMENT: not at this one. The message names the tensor, not the adapter. */
weft_status weft__adapt_check_values(const weft__adapt *a, float weight, weft_error *err);

/* A weighted stack as one change per target: y = gain . (W x) + scale * B (A x) + bias, with the ranks of the stack
 * side by side, all scales but a single pair's and DoRA's factors folded into B (the embedding's into A), and gain = 1
 * + sum of weight_i (g_i - 1). A target that is a row range of a tensor gets its rows. Borrows from the stack's
 * adapters. */
typedef struct weft__adapt_woven {
    int32_t n;
    weft_lora *lora; /* [n], float32 */
    weft__arena arena;
} weft__adapt_woven;

/* Every adapter was checked against the base. Reads base weights where there are magnitudes: WEFT_UNSUPPORTED where
 * their bytes are not there. WEFT_LIMIT: the ranks are more than WEFT_ADAPTER_RANK_MAX together. */
weft_status weft__adapt_weave(const weft__adapt_use *uses, int32_t n, const weft__adapt_base *base,
                              weft__adapt_woven *out, weft_error *err);
void weft__adapt_woven_free(weft__adapt_woven *w);

#endif
