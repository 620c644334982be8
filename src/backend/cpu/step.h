// SPDX-License-Identifier: Apache-2.0
/* step.h: what the steps of a program hold: the data of each kind, what a run has for them, and what
 * a thread has of its own while it walks them. */
#ifndef WEFT_BACKEND_CPU_STEP_H
#define WEFT_BACKEND_CPU_STEP_H

#include "backend/cpu/matrix.h"

typedef struct weft__cpu_direct weft__cpu_direct;

typedef struct weft__cpu_linear {
    weft__cpu_input input;
    const weft__cpu_direct *from, *to; /* how x may come prepared, and what is made may go; or NULL */
    int n_mat;
    weft__cpu_matrix m[WEFT_LINEAR_MAX];
    const float *norm; /* [k] or NULL: no norm in front */
    float eps;
    int activation;
    weft_tensor_id x, residual, out[WEFT_LINEAR_MAX];
    int n_columns;        /* of a split: each matrix has one, but outputs of gate and up are split together */
    const int64_t *split; /* [n_threads + 1][n_columns]: the first output of every thread of the backend */
    size_t split_at;      /* of a run's, in weft_run.split: of the threads that it has */
} weft__cpu_linear;

typedef struct weft__cpu_moe {
    weft_attr_moe attr;
    weft__cpu_input in_x, in_h;
    weft__cpu_matrix gate, up, down;
    weft_tensor_id x, route, out, out_hidden; /* the last: WEFT_NONE unless asked for */
    const int64_t *split; /* [2][n_threads + 1]: of the F hidden values, and of the D outputs; as of weft__cpu_linear */
    size_t split_at;
    size_t act_x, hidden, act_h, y;                   /* offsets in the shared scratch */
    size_t x_offset[WEFT_LINEAR_MAX], tile_x, tile_h; /* where each form of x begins in act_x; bytes of a tile */
} weft__cpu_moe;

/* Rows that go to one expert together, and where their prepared form lies, counted in tiles. */
typedef struct weft__cpu_block {
    int32_t expert, slot, n, tile_x, tile_h;
} weft__cpu_block;

/* ---- positions ---- */

typedef struct weft__cpu_rope {
    weft_attr_rope attr; /* n_heads is not part of the identity */
    weft_weight_id factors;
    const double *freq; /* [n_rot / 2] radians per position */
    size_t cs_at;       /* in weft_run.cs: [max_rows][n_rot / 2][2] */
} weft__cpu_rope;

/* Rows [row, row + n) of one sequence that are attended to together. */
typedef struct weft__cpu_tile {
    int32_t row, n, seq, first_split, n_splits;
    int32_t pair;  /* splits of all tiles before this one */
    int64_t state; /* (query, split) pairs of all tiles before this one, of one key/value head */
    uint64_t cost; /* query-position pairs of all tiles before this one, of one key/value head */
} weft__cpu_tile;

/* How the rows of steps are tiled, for all layers with the same window and number of heads per key/value head. */
typedef struct weft__cpu_tiling {
    int32_t window, tile_rows, heads, n_kv_heads; /* heads per key/value head */
    int32_t if_wanted;                            /* rows that are not wanted are left out, where they are moved */
    int32_t index;                                /* in weft_run.tiles */
} weft__cpu_tiling;

/* The rows of a step, tiled so. */
typedef struct weft__cpu_tiles {
    weft__cpu_tile *list; /* [max_rows + 1]; one behind the last holds the sums */
    int32_t n, n_pairs;
    int32_t shared; /* splits are shared between threads, and combined behind a barrier */
} weft__cpu_tiles;

typedef struct weft__cpu_attention {
    weft_attr_attention attr;
    const weft_kv_group *group;
    const weft__cpu_tiling *tiling;
    weft_tensor_id q, out;
    const weft__cpu_direct *to; /* as of weft__cpu_linear */
} weft__cpu_attention;

typedef struct weft__cpu_kv {
    const weft__cpu_rope *rope; /* NULL: k comes rotated */
    int32_t n_heads;            /* of q; 0 where there is no rope */
    weft_attr_kv kv;
    const weft_kv_group *group;
    weft_tensor_id q, k, v, q_out;
} weft__cpu_kv;

typedef struct weft__cpu_norm {
    const float *w, *b; /* [group] or NULL */
    int64_t group;
} weft__cpu_norm;

/* ---- adapters: adapter.h ---- */

/* Rows of a step that have one adapter: of a list of rows, those from `first` on. */
typedef struct weft__cpu_group {
    const weft_adapter *adapter;
    int32_t first, n;
} weft__cpu_group;

/* All of a step's rows that have one, in order of adapter, rising within one. */
typedef struct weft__cpu_groups {
    weft__cpu_group *list; /* [n] */
    int32_t *rows;
    int32_t n;
} weft__cpu_groups;

typedef struct weft__cpu_delta weft__cpu_delta; /* adapter.h */

/* ---- steps ---- */

/* What a thread prefetches while it multiplies (prefetch.c): the rest of the A's that it will read, over how many
 * products they are spread, and the list that the product at hand is given. */
typedef struct weft__cpu_prefetch {
    weft__range a[WEFT__CPU_PREFETCH];
    int n, next;    /* of them; the first that was not prefetched whole */
    size_t n_bytes; /* of theirs that are left */
    int n_products;
    weft__kernel_prefetch list;
    weft__range range[1 + 2 * WEFT__CPU_PREFETCH];
} weft__cpu_prefetch;

/* One thread's scratch; each pointer has the room that the largest step needs. */
typedef struct weft__cpu_thread {
    float *row;                  /* normed rows of a tile, heads */
    uint8_t *act;                /* prepared rows of its own */
    float *glu, *gate;           /* [WEFT__CPU_GLU_FLOATS] each */
    float *attn;                 /* of the attention kernel */
    float *state;                /* [WEFT__CPU_MAX_SPLITS][queries][2 + V] */
    int32_t *range;              /* [2][queries] begin and end of each query */
    int32_t *slot_row, *slot_of; /* [max_slots] row of a slot; slot of (row, rank) */
    int32_t *expert_n;           /* [n_experts + 1] */
    weft__cpu_block *blocks;
    uint8_t *gathered;            /* forms of a few rows of one adapter */
    float *h;                     /* their A x */
    weft__cpu_group *slot_groups; /* [max_slots] of a block's slots */
    weft__cpu_prefetch ahead;
    uint32_t n_shrunk;   /* what weft_run.n_shrunk is when all threads have made as many shares as this one */
    int claims;          /* which list the next product takes */
    size_t n_claimed[2]; /* chunks that a list was last used for */
} weft__cpu_thread;

/* What a run has: bytes that the largest step needs of each; chunks of rows; floats and integers of weft_run.cs and
 * split. */
typedef struct weft__cpu_needs {
    size_t row, act, glu, gate, attn, state, range, slots, experts, blocks, gathered, h, slot_groups, shared, chunks;
    size_t cs, split;
} weft__cpu_needs;

typedef struct weft__cpu_step weft__cpu_step;
typedef void (*weft__cpu_step_fn)(weft_run *run, const weft__cpu_step *s, int thread);

enum { WEFT__CPU_NO_ROWS = 0 /* as a step's rows: nothing is to be done */ };

struct weft__cpu_step {
    weft__cpu_step_fn run;
    const weft_node *node;
    const void *data;           /* the step's own: weft__cpu_linear ... */
    int64_t rows;               /* WEFT_ROWS, WEFT_WANTED or WEFT__CPU_NO_ROWS; of this step: weft__cpu_row_kind */
    int if_wanted;              /* WEFT_WANTED instead where wanted rows are moved together (compact.c) */
    int barrier;                /* others read what this step wrote */
    const weft__cpu_step *next; /* the next product behind it, or NULL */
};

/* Rows of the tensor between two steps that go from one to the other prepared (direct.c). */
struct weft__cpu_direct {
    const weft__cpu_step *by, *at;
    const weft__cpu_linear *to; /* of step `at` */
    int moves;                  /* the step that moves wanted rows stands in between */
    int32_t index;              /* in weft_run.direct_rows */
};

#endif
