/* cpu.h: the inside of the CPU provider.
 *
 * A program is a flat list of steps. weft_backend_api.run enters the thread pool once; every thread then walks all steps and does
 * its share of each, and a barrier stands behind every step whose result others read. The share of a thread is a contiguous range
 * of panels, rows, heads or attention units, chosen from the shapes alone; of products, whoever is done takes over blocks of outputs from
 * the others (linear.c). No reduction is ever split between threads, so their number, and who computes what, changes
 * nothing but time.
 * Invariant: everything a step writes is either its output, the thread's own scratch, or the shared scratch, which one step uses
 * from its beginning to the barrier at its end; the step that moves wanted rows together (compact.c) writes what was made before it. An
 * output that only the next step reads may be there in the form that this multiplies (direct.c). Nothing is allocated after compile.
 * Owner: compile and run belong to one thread, the pool's thread 0. */
#ifndef WEFT_BACKEND_CPU_H
#define WEFT_BACKEND_CPU_H

#include <stdatomic.h>
#include <stddef.h>

#include "base/pool.h"
#include "kernels/kernels.h"
#include "weft/backend.h"

struct weft_backend {
    weft__pool *pool;
    int n_threads;
    uint32_t tiers;
    const weft__kernels *k;
    int exact;            /* products in f32 from activations as they are */
    weft_buffer *to_read; /* NULL until the limits are measured: measure.c */
    uint8_t *product;     /* likewise */
};

enum {
    WEFT__CPU_LINE = 64,             /* bytes; scratch is aligned to it */
    WEFT__CPU_MAX_SPLITS = 1024,     /* splits of one query's context: a million tokens */
    WEFT__CPU_SHARED_STATES = 32768, /* (query, split) states when splits are shared between threads */
    WEFT__CPU_GLU_FLOATS = 32768,    /* a thread's block of `up` outputs before they meet their gates */
    WEFT__CPU_AHEAD = 64,            /* A's, and B's, that are asked for early */
    WEFT__CPU_UNIT = 16              /* outputs are split between threads at multiples of it: a cache line of floats */
};

/* ---- matrices ---- */

/* One weight matrix (or the stack of all experts') in the form that its kernel reads. */
typedef struct weft__cpu_matrix {
    const weft__matmul *mm;
    const weft_weight *w;
    weft_weight_id id;
    const uint8_t *panels;
    size_t stride;        /* bytes from panel to panel */
    size_t expert_stride; /* bytes from one expert's panels to the next one's */
    int64_t n, k;
    const float *bias; /* [n] or NULL */
    int act;           /* index among the prepared forms of the input */
    int pack_here;     /* the first use of this weight: packs it */
} weft__cpu_matrix;

/* The forms in which the matrices of a node want their common input. */
typedef struct weft__cpu_input {
    int64_t k;
    int n_acts;
    const weft__act *act[WEFT_LINEAR_MAX];
    int tile;                             /* up to so many rows lie together: a multiple of every act's tile */
    int64_t chunk;                        /* rows that run together, a multiple of tile: their prepared form fits the cache */
    size_t tile_offset[WEFT_LINEAR_MAX];  /* of each form in the bytes of one tile */
    size_t chunk_offset[WEFT_LINEAR_MAX]; /* ... of one chunk */
    size_t tile_bytes, chunk_bytes;
} weft__cpu_input;

typedef struct weft__cpu_handing weft__cpu_handing;

typedef struct weft__cpu_linear {
    weft__cpu_input input;
    const weft__cpu_handing *from, *to; /* how x may come prepared, and what is made may go; or NULL */
    int n_mat;
    weft__cpu_matrix m[WEFT_LINEAR_MAX];
    const float *norm; /* [k] or NULL: no norm in front */
    float eps;
    int activation;
    weft_tensor_id x, residual, out[WEFT_LINEAR_MAX];
    int64_t *split; /* [n_threads + 1][n_mat]: the first output of every thread */
} weft__cpu_linear;

typedef struct weft__cpu_moe {
    weft_attr_moe attr;
    weft__cpu_input in_x, in_h;
    weft__cpu_matrix gate, up, down;
    weft_tensor_id x, route, out, out_hidden;         /* the last: WEFT_NONE unless asked for */
    int64_t *split_f, *split_d;                       /* [n_threads + 1]: of the F hidden values, and of the D outputs */
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
    float *cs;          /* [max_rows][n_rot / 2][2] of this step */
} weft__cpu_rope;

/* Rows [row, row + n) of one sequence that are attended to together. */
typedef struct weft__cpu_tile {
    int32_t row, n, seq, first_split, n_splits;
    int32_t pair;  /* splits of all tiles before this one */
    int64_t state; /* (query, split) pairs of all tiles before this one, of one key/value head */
    uint64_t cost; /* query-position pairs of all tiles before this one, of one key/value head */
} weft__cpu_tile;

/* How the rows of a step are tiled, for all layers with the same window and number of heads per key/value head. */
typedef struct weft__cpu_tiling {
    int32_t window, tile_rows, heads, n_kv_heads; /* heads per key/value head */
    int32_t if_wanted;                            /* rows that are not wanted are left out, where p->moved */
    int32_t n_tiles, n_pairs;
    weft__cpu_tile *tiles; /* [max_rows + 1]; one behind the last holds the sums */
    int32_t shared;        /* this step: splits are shared between threads, and combined behind a barrier */
} weft__cpu_tiling;

typedef struct weft__cpu_attention {
    weft_attr_attention attr;
    const weft_kv_group *group;
    weft__cpu_tiling *tiling;
    weft_tensor_id q, out;
    const weft__cpu_handing *to; /* as of weft__cpu_linear */
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

/* ---- programs ---- */

/* What a thread asks for while it multiplies (prefetch.c): the rest of the A's that it will read, over how many products they are spread, and the
 * list that the product at hand is given. */
typedef struct weft__cpu_ahead {
    weft__range a[WEFT__CPU_AHEAD];
    int n, next;    /* of them; the first that was not all asked for */
    size_t n_bytes; /* of theirs that are left */
    int n_products;
    weft__ahead list;
    weft__range range[1 + 2 * WEFT__CPU_AHEAD];
} weft__cpu_ahead;

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
    uint8_t *taken;               /* forms of a few rows of one adapter */
    float *h;                     /* their A x */
    weft__cpu_group *slot_groups; /* [max_slots] of a block's slots */
    weft__cpu_ahead ahead;
    uint32_t n_shrunk;   /* what p->n_shrunk is when all threads have made as many shares as this one */
    int claims;          /* which list the next product takes */
    size_t n_claimed[2]; /* chunks that a list was last used for */
} weft__cpu_thread;

/* How many blocks of a thread's outputs, for one chunk of rows, have been taken, by itself or by others. */
typedef struct weft__cpu_claim {
    _Alignas(WEFT__CPU_LINE) atomic_int next;
} weft__cpu_claim;

/* Bytes that the largest step needs of each; chunks of rows. */
typedef struct weft__cpu_needs {
    size_t row, act, glu, gate, attn, state, range, slots, experts, blocks, taken, h, slot_groups, shared, chunks;
} weft__cpu_needs;

typedef struct weft__cpu_step weft__cpu_step;
typedef void (*weft__cpu_step_fn)(weft_program *p, const weft__cpu_step *s, int thread);

enum { WEFT__CPU_NO_ROWS = 0 /* as a step's rows: nothing is to be done */ };

struct weft__cpu_step {
    weft__cpu_step_fn run;
    const weft_node *node;
    void *data;    /* the step's own: weft__cpu_linear ... */
    int64_t rows;  /* WEFT_ROWS, WEFT_WANTED or WEFT__CPU_NO_ROWS */
    int if_wanted; /* `rows` is WEFT_WANTED in steps for which compact.c chooses so */
    int barrier;   /* others read what this step wrote */
};

/* Rows of the tensor between two steps that go from one to the other prepared (direct.c). */
struct weft__cpu_handing {
    const weft__cpu_step *by, *at;
    const weft__cpu_linear *to; /* of step `at` */
    int moves;                  /* the step that moves wanted rows stands in between */
    int64_t n_rows;             /* of this step; 0: they are floats in this one */
};

struct weft_program {
    weft_backend *backend;
    const weft__kernels *k;
    const weft_graph *graph;
    const weft_segment *segment;
    int n_threads; /* of this step: backend->n_threads, or fewer while cores are taken away by others */
    weft__cpu_step *steps;
    int32_t n_steps;
    weft__cpu_step *gather; /* of them: it moves wanted rows together; NULL: there is none */
    float **data;           /* [n_tensors] */
    weft_buffer *arena, *packed, *shared, *h_buffer;
    uint8_t *h;                /* [rows or slots][WEFT__CPU_H_MATS][WEFT__CPU_H_BYTES] what adapters' A make of a row */
    const weft_image *image;   /* while compiling: weights that are packed already, in `packed`; else NULL */
    weft_buffer **scratch;     /* [backend->n_threads] */
    weft__cpu_thread *threads; /* [backend->n_threads] */
    weft__cpu_claim *claims;   /* [2][needs.chunks][backend->n_threads] of products in turns */
    weft__cpu_handing *handings;
    int32_t n_handings;
    weft__cpu_needs needs;
    void *owned;             /* head of a list of blocks that live as long as the program */
    uint8_t **weight_panels; /* [n_weights] where a packed weight lies, or NULL */
    uint64_t n_packed;       /* bytes given out of `packed` */
    float **vector;          /* [n_weights] the weight as floats, or NULL */
    weft__cpu_rope *ropes;   /* [n_nodes] room */
    weft__cpu_tiling *tilings;
    int32_t n_ropes, n_tilings;
    uint8_t *uses_group;   /* [n_kv_groups] bits: 1 written, 2 read */
    int32_t *group_window; /* [n_kv_groups] widest window that is read, 0 all */
    int64_t vocab;         /* rows of the smallest embedding table, 0: no EMBED here */
    char *text;            /* program_describe */
    /* this step */
    const weft_rows *rows;
    const weft_kv_binding *kv;
    int32_t *wanted;    /* [max_wanted] */
    int moved;          /* behind step `gather` wanted row i is row i */
    uint32_t *seq_seen; /* [max_rows] number of the step in which a sequence was seen */
    uint32_t step_number;
    weft__cpu_groups groups[2]; /* rows with adapters: of all, of those that are wanted */
    int32_t *group_start;       /* [max_rows + 1] */
    atomic_uint n_adapters;     /* that were made, ever */
    atomic_uint n_shrunk;       /* shares of h that were made in this step, by all threads */
    weft_profile_log *profile;  /* NULL: steps are not timed */
};

/* n * size bytes, zeroed and aligned to 64, that are freed with the program; NULL when memory runs out. */
void *weft__cpu_own(weft_program *p, size_t n, size_t size);
/* The weight as floats, decoded on first use; *failed becomes 1 when memory runs out. NULL for WEFT_NONE. */
const float *weft__cpu_vector(weft_program *p, weft_weight_id w, int *failed);
/* Rows of this step for a step of the program. */
static inline int64_t weft__cpu_rows(const weft_program *p, const weft__cpu_step *s)
{
    return s->rows == WEFT_WANTED ? p->rows->n_wanted : s->rows == WEFT_ROWS ? p->rows->n_rows : 0;
}
/* The first of n items that thread t of n_threads owns; its last one is before the first of t + 1. */
static inline int64_t weft__cpu_share(int64_t n, int t, int n_threads)
{
    return n / n_threads * t + n % n_threads * t / n_threads;
}
static inline size_t weft__cpu_round(size_t n)
{
    return (n + WEFT__CPU_LINE - 1) & ~(size_t)(WEFT__CPU_LINE - 1);
}
static inline void weft__cpu_need(size_t *need, size_t n)
{
    if (n > *need) *need = n;
}

/* Each builds step *s for s->node: sets run and data, and raises p->needs. */
weft_status weft__cpu_build_rows(weft_program *p, weft__cpu_step *s, weft_error *err);      /* rows.c */
weft_status weft__cpu_build_linear(weft_program *p, weft__cpu_step *s, weft_error *err);    /* linear.c */
weft_status weft__cpu_build_positions(weft_program *p, weft__cpu_step *s, weft_error *err); /* rope.c: rope, kv_write, rope_kv */
weft_status weft__cpu_build_attention(weft_program *p, weft__cpu_step *s, weft_error *err); /* attention.c */
weft_status weft__cpu_build_moe(weft_program *p, weft__cpu_step *s, weft_error *err);       /* moe.c */

/* Divide the outputs of the step's matrices over p->n_threads. */
void weft__cpu_split_linear(const weft_program *p, const weft__cpu_linear *l);
void weft__cpu_split_moe(const weft_program *p, const weft__cpu_moe *m);
/* No block is claimed; between steps, when p->n_threads changes. */
void weft__cpu_forget_claims(weft_program *p);

/* The program's end is what is there for wanted rows alone (compact.c): the first of the segment's nodes that belongs to it; n_nodes when
 * there is none, or when another segment would see it. */
int32_t weft__cpu_end_begins(const weft_program *p);
/* May the step of node i of the segment, where the end begins with node `first`, leave rows out that are not wanted? */
int weft__cpu_is_if_wanted(const weft_program *p, int32_t i, int32_t first);
/* The step in front of that end. WEFT_NO_MEMORY. */
weft_status weft__cpu_build_gather(weft_program *p, weft__cpu_step *s, int32_t first, weft_error *err);
/* Which rows the end has in this step. */
void weft__cpu_choose_rows(weft_program *p, const weft_rows *rows);

/* ---- rows that come prepared: direct.c ---- */

/* Finds out which steps do so, when all are built. WEFT_NO_MEMORY. */
weft_status weft__cpu_find_handings(weft_program *p, weft_error *err);
/* Which of them do so in this step; rows, adapters and wanted rows are known. */
void weft__cpu_choose_handings(weft_program *p);
/* Do they in this step? */
static inline int weft__cpu_is_handed(const weft__cpu_handing *h)
{
    return h && h->n_rows > 0;
}
/* Values [from, to), multiples of WEFT__ACT_PART, of rows [row, row + n) of the step; rows of x are ldx apart. */
void weft__cpu_hand(const weft_program *p, const weft__cpu_handing *h, const float *x, int64_t ldx, int64_t row, int64_t n,
                    int64_t from, int64_t to);

/* The first step of a program that rotates: cos and sin of this step's positions. */
void weft__cpu_rope_tables(weft_program *p, const weft__cpu_step *s, int thread);
/* Tiles this step's rows; before the pool is entered. WEFT_LIMIT when a context is too long. */
weft_status weft__cpu_tile_rows(weft_program *p, weft_error *err);

/* ---- matrices: matrix.c ---- */

/* Describes weight id as a matrix; its panels lie in p->packed (reserved here, filled by weft__cpu_pack) or where they are. */
weft_status weft__cpu_matrix_init(weft_program *p, weft__cpu_matrix *m, weft_weight_id id, weft_error *err);
/* Accepts an image whose layout is ours, before the weights are looked at. */
weft_status weft__cpu_take_image(weft_program *p, const weft_image *image, weft_error *err);
/* Where the image has the n_bytes of weight id, which it must have. */
weft_status weft__cpu_panels_of_image(const weft_program *p, weft_weight_id id, uint64_t n_bytes, uint8_t **out, weft_error *err);
/* Bytes that all weights of the segment need when packed. */
weft_status weft__cpu_packed_bytes(weft_program *p, uint64_t *n, weft_error *err);
/* Which forms the n matrices (the first n_mat of them) read; sets each one's `act`. */
void weft__cpu_input_init(weft__cpu_input *in, weft__cpu_matrix **m, int n_mat, int64_t max_rows);
/* Splits the outputs of n_mat matrices evenly by bytes, at multiples of `unit`; `together`: all matrices at the same outputs. split as
 * weft__cpu_linear. */
void weft__cpu_split_outputs(const weft__cpu_matrix *const *m, int n_mat, int together, int64_t unit, int n_threads,
                             int64_t *split);
/* Packs the outputs [first, last) of every expert. */
void weft__cpu_pack(const weft__cpu_matrix *m, int64_t first, int64_t last);
/* Prepares a part, of rows that lie together at `acts`, in every form. offset: tile_offset or chunk_offset. */
static inline void weft__cpu_put(const weft__cpu_input *in, const size_t *offset, const float *x, int64_t ldx,
                                 weft__act_part part, uint8_t *acts)
{
    for (int a = 0; a < in->n_acts; a++) in->act[a]->put(x, ldx, &part, acts + offset[a]);
}
/* The same of all rows of a step: at most a tile of them lie together, more lie chunk by chunk. */
void weft__cpu_prepare(const weft__cpu_input *in, const float *x, int64_t ldx, weft__act_part part, uint8_t *acts);
/* Where the weights of outputs from `first` on lie. */
static inline const uint8_t *weft__cpu_panels(const weft__cpu_matrix *m, int32_t expert, int64_t first)
{
    return m->panels + (size_t)expert * m->expert_stride + (size_t)(first / m->mm->panel_rows) * m->stride;
}
/* Outputs [first, last) of matrix m (of `expert`) for n rows: out[i * ldo + j - first]. ahead: of weft__cpu_ahead_of, or NULL. */
static inline void weft__cpu_multiply(const weft__cpu_matrix *m, int32_t expert, int64_t first, int64_t last, const uint8_t *acts,
                                      const size_t *offset, int64_t n, float *out, int64_t ldo, weft__ahead *ahead)
{
    weft__matmul_run(m->mm, weft__cpu_panels(m, expert, first), m->stride, last - first, m->k, acts + offset[m->act], n, out, ldo,
                     ahead);
}
/* The input row of a linear node's product, normed if there is a norm; valid until the thread's next call. x is not handed. */
const float *weft__cpu_linear_row(weft_program *p, const weft__cpu_linear *l, weft__cpu_thread *th, int64_t row);
/* act(gate) * up for outputs [first, last) of n rows: out[i * ldo + j - first], or, where `to` is handed, to that. Biases included, and
 * what adapters add. */
void weft__cpu_gated(weft_program *p, weft__cpu_thread *th, const weft__cpu_matrix *gate, const weft__cpu_matrix *up,
                     int activation, int32_t expert, int64_t first, int64_t last, const uint8_t *acts, const size_t *offset,
                     int64_t n, const weft__cpu_delta *delta, const weft__cpu_handing *to, float *out, int64_t ldo);

/* ---- whole provider ---- */

/* Is everything that the step points to in range? Fills p->rows, p->kv, p->wanted and the bound tensors. */
weft_status weft__cpu_accept(weft_program *p, const weft_rows *rows, const weft_bindings *b, weft_error *err);

int weft__cpu_supports(weft_backend *b, const weft_graph *g, const weft_node *n);
weft_status weft__cpu_compile(weft_backend *b, const weft_graph *g, const weft_segment *s, const weft_compile_options *o,
                              weft_program **out, weft_error *err);
void weft__cpu_program_free(weft_program **p);
const char *weft__cpu_program_describe(weft_program *p);
weft_status weft__cpu_run(weft_program *p, const weft_rows *rows, const weft_bindings *b, weft_error *err);
void weft__cpu_profile(weft_program *p, weft_profile_log *log);
weft_status weft__cpu_image(weft_program *p, weft_image *out, weft_error *err);
weft_status weft__cpu_measure(weft_backend *b, weft_peaks *out, weft_error *err);

#endif
