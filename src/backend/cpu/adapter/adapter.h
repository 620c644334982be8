// SPDX-License-Identifier: Apache-2.0
/* adapter.h: adapters inside the CPU provider: how they are kept (pack.c), how a step applies them (apply.c), and what
 * it prefetches (prefetch.c).
 *
 * A product with an adapter is gain . (W x) + B h, h = A x (weft_lora; its scale is part of B). A is a matrix like any
 * other and runs on the kernels of matrices, before the barrier behind which the outputs are computed; each thread then
 * adds B h to the outputs that it has just computed, before their bias, gate or residual. Rows of a step are grouped by
 * adapter, so A and B are read once for a group. Invariant: what a row gets depends on that row and its adapter only.
 * Owner: a step's groups are thread 0's until the pool is entered, then no thread writes them; a packed adapter is
 * immutable. */
#ifndef WEFT_BACKEND_CPU_ADAPTER_H
#define WEFT_BACKEND_CPU_ADAPTER_H

#include "backend/cpu/program.h"

enum {
    WEFT__CPU_H_MATS = WEFT_LINEAR_MAX, /* matrices of a node that have an h: also an expert's gate, up and down */
    WEFT__CPU_H_BYTES = 64 + 4 * WEFT_ADAPTER_RANK_MAX, /* of one */
    WEFT__CPU_FEW = 16,                                 /* rows of a group that are taken together */
    WEFT__CPU_PREFETCH_ROWS = 64 /* at most, for which kernels ask for what adapters need (prefetch.c) */
};

/* What an adapter changes about one weight. */
typedef struct weft__cpu_pair {
    int32_t rank;                        /* 0: no A and B */
    const weft__matmul *mm;              /* that runs A */
    const uint8_t *a, *b;                /* expert after expert; NULL where the weight is only looked up */
    size_t a_stride, a_expert, b_expert; /* bytes from panel to panel, from expert to expert */
    const float *gain;                   /* [n_gain] or NULL */
    int64_t n_gain;                      /* outputs, expert after expert, or an embedding's columns */
    const uint8_t *rows;                 /* of an embedding: B, row by row; NULL where it is none */
    size_t row_bytes;
    const uint8_t *columns; /* ... and A, transposed and packed as a B */
} weft__cpu_pair;

struct weft_adapter {
    const weft_program *program;
    const weft__expand *expand;
    uint32_t row_dtype; /* of embeddings' rows */
    weft_buffer *memory;
    uint64_t n_bytes;
    weft__cpu_pair pair[]; /* [n_weights] */
};

weft_status weft__cpu_adapter_new(const weft_program *p, const weft_adapter_spec *spec, weft_adapter **out,
                                  weft_error *err);
void weft__cpu_adapter_free(weft_adapter **adapter);
uint64_t weft__cpu_adapter_bytes(const weft_adapter *adapter);

/* ---- in a step ---- */

/* Rows of k inputs will be taken. */
void weft__cpu_need_gathered(weft_program *p, int64_t k);
/* Checks the step's adapters and groups its rows. run->wanted is known. */
weft_status weft__cpu_group_rows(weft_run *run, const weft_rows *rows, weft_error *err);

/* The groups of a step of the program: of all rows, or of the wanted ones. */
static inline const weft__cpu_groups *weft__cpu_groups_of(const weft_run *run, int64_t rows)
{
    return &run->groups[rows == WEFT_WANTED];
}

/* The adapter of row r of a step of the program (of the wanted rows, if that is what the step has), or NULL. */
const weft_adapter *weft__cpu_adapter_of(const weft_run *run, int64_t rows, int64_t r);
/* Does an adapter that rows of this step have, have an A and B for one of the matrices m[0, n_mat)? */
int weft__cpu_has_delta(const weft_run *run, const weft__cpu_step *s, const weft__cpu_matrix *m, int n_mat);

/* Where h of a row (or slot) lies. */
static inline uint8_t *weft__cpu_h(const weft_run *run, int64_t row, int mat)
{
    return run->h + ((size_t)row * WEFT__CPU_H_MATS + (size_t)mat) * WEFT__CPU_H_BYTES;
}

/* The rows of n, of more than a tile, that a thread prepares, and makes h of: [first, last). */
static inline void weft__cpu_prepares(const weft_run *run, const weft__cpu_linear *l, int64_t n, int thread,
                                      int64_t *first, int64_t *last)
{
    const int64_t tile = l->input.tile, n_tiles = (n + tile - 1) / tile;
    *first = weft__cpu_share(n_tiles, thread, run->n_threads) * tile;
    *last = weft__cpu_share(n_tiles, thread + 1, run->n_threads) * tile;
    if (*last > n) *last = n;
}

/* h of the rows [first, last), which lie within `at`, for the matrices of a linear node. split: this thread's part of
 * the matrices and groups, instead of all. then: what the thread reads behind the last A, or NULL. */
void weft__cpu_shrink_linear(weft_run *run, const weft__cpu_step *s, int thread, weft__cpu_prepared at, int64_t first,
                             int64_t last, int split, const uint8_t *then);
/* Where adapters act in the step, prefetches what weft__cpu_shrink_linear will read first of its part, else what is
 * read then. */
void weft__cpu_fetch_linear(const weft_run *run, const weft__cpu_step *s, int thread, const uint8_t *then);
/* h of one row x [k] that no group is made of: row `h_row`, matrix `mat` of `expert`. */
void weft__cpu_shrink_row(weft_run *run, int thread, const weft_adapter *a, const weft__cpu_matrix *m, int32_t expert,
                          const float *x, int64_t h_row, int mat);

/* Whose B is added to which rows of a block of outputs. */
struct weft__cpu_delta {
    const weft__cpu_group *group;
    int32_t n_groups;
    const int32_t *rows; /* of the groups; NULL: a group's rows are first, first + 1, ... */
    int64_t row, n;      /* the block has rows [row, row + n) */
    int32_t expert;
    weft__cpu_prefetch *ahead; /* the thread's, or NULL */
    uint32_t after;            /* h is there when so many shares of it were made (weft__cpu_await) */
};

/* This thread's share of h is made. Returns what to wait for: by then it most likely has happened. */
uint32_t weft__cpu_arrive(weft_run *run, int thread);

/* The groups of all rows of step s; rows [row, row + n) of them. */
weft__cpu_delta weft__cpu_delta_of(const weft_run *run, int64_t rows, int64_t row, int64_t n);
/* Where the B of outputs from `first` on lies. */
static inline const uint8_t *weft__cpu_b(const weft_adapter *a, const weft__cpu_pair *pair, int32_t expert,
                                         int64_t first)
{
    return pair->b + (size_t)expert * pair->b_expert +
           (size_t)(first / WEFT__EXPAND_ROWS) * a->expand->panel_bytes(pair->rank);
}

/* What the thread prefetches while it computes its outputs of step s, in so many products as the caller sets n_products
 * to (0: no A is). NULL, for every thread, where that is of no use. */
weft__cpu_prefetch *weft__cpu_prefetch_begin(weft_run *run, const weft__cpu_step *s, int thread);
/* The list for one of them: outputs [first, last) of matrix m; valid until the next is asked for. next: what is read
 * right behind the matrix, or NULL. NULL: nothing, or the matrix's kernel prefetches nothing. */
weft__kernel_prefetch *weft__cpu_prefetch_of(const weft__cpu_delta *d, const weft__cpu_matrix *m, int64_t first,
                                             int64_t last, const uint8_t *next);
/* The B that is read first, of groups [g, ...), for outputs of matrix m from `first` on; `then` where there is none. */
const uint8_t *weft__cpu_first_b(const weft__cpu_delta *d, int32_t g, const weft__cpu_matrix *m, int64_t first,
                                 const uint8_t *then);
/* gain . y + B h for outputs [first, last) of matrix m, number `mat` of its node: out[(r - row) * ldo + j - first].
 * then: what is read behind the last B, or NULL. */
void weft__cpu_expand(const weft_run *run, const weft__cpu_delta *d, const weft__cpu_matrix *m, int mat, int64_t first,
                      int64_t last, float *out, int64_t ldo, const uint8_t *then);
/* y [D] += what the row's adapter changes about row `token` of embedding w. */
void weft__cpu_expand_embedding(weft_run *run, int thread, const weft_adapter *a, weft_weight_id w, int64_t token,
                                int64_t d, float *y);

#endif
