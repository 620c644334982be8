// SPDX-License-Identifier: Apache-2.0
/* program.h: a program of the CPU provider, its runs, and what builds and executes them.
 *
 * A program is a flat list of steps, constant once it is compiled; what they write belongs to a run (weft_run). To run
 * one is to enter the thread pool once; every thread then walks all steps and does its share of each, and a barrier
 * stands behind every step whose result others read. The share of a thread is a contiguous range of panels, rows, heads
 * or attention units, chosen from the shapes alone; of products, a thread that is done steals blocks of outputs from
 * the others (run/steal.c). No reduction is ever split between threads, so their number, and which computes what,
 * changes nothing but time. Invariant: everything a step writes is either its output, the thread's own scratch, or the
 * run's shared scratch, which one step uses from its beginning to the barrier at its end; the step that moves wanted
 * rows together (compact.c) writes what was made before it. An output that only the next step reads may be there in
 * the form that this multiplies (direct.c). Nothing is allocated after a run was made. Owner: a program is compiled by
 * one thread, then read by any; a run belongs to one thread at a time, which is the pool's thread 0 while a step
 * runs. */
#ifndef WEFT_BACKEND_CPU_PROGRAM_H
#define WEFT_BACKEND_CPU_PROGRAM_H

#include <stdatomic.h>

#include "backend/cpu/run/steal.h"
#include "backend/cpu/step.h"
#include "base/pool.h"

struct weft_backend {
    weft__pool *pool;
    int n_threads;
    uint32_t tiers;
    uint32_t named; /* these, and AMX where it would give the same bits, slower (choice.h) */
    const weft__kernels *k;
    int exact;              /* products in f32 from activations as they are */
    weft_buffer *to_read;   /* NULL until the limits are measured: measure.c */
    uint8_t *product;       /* likewise */
    atomic_uint n_adapters; /* that were made, ever */
};

struct weft_program {
    weft_backend *backend;
    const weft__kernels *k;
    const weft_graph *graph;
    const weft_segment *segment;
    const weft__cpu_step *steps;
    int32_t n_steps;
    const weft__cpu_step *gather; /* of them: it moves wanted rows together; NULL: there is none */
    weft_buffer *packed;
    const weft_image *image; /* while compiling: weights that are packed already, in `packed`; else NULL */
    const weft__cpu_direct *direct;
    int32_t n_direct;
    weft__cpu_needs needs;   /* of a run */
    void *owned;             /* head of a list of blocks that live as long as the program */
    uint8_t **weight_panels; /* [n_weights] where a packed weight lies, or NULL */
    uint64_t n_packed;       /* bytes given out of `packed` */
    const float **vector;    /* [n_weights] the weight as floats, or NULL */
    weft__cpu_rope *ropes;   /* [n_nodes] room */
    weft__cpu_tiling *tilings;
    int32_t n_ropes, n_tilings;
    uint8_t *uses_group;   /* [n_kv_groups] bits: 1 written, 2 read */
    int32_t *group_window; /* [n_kv_groups] widest window that is read, 0 all */
    int64_t vocab;         /* rows of the smallest embedding table, 0: no EMBED here */
    char *text;            /* program_describe */
    struct {
        char *layout;     /* NULL: no matrix is multiplied by */
        uint64_t *offset; /* [n_weights] */
        uint8_t *own;     /* [n_weights] */
    } described;          /* what weft_image says of `packed` */
};

/* What the steps of a program write, for one caller: made with room for the largest step, then used for one after the
 * other. Members behind `owned` are of the step that runs. */
struct weft_run {
    const weft_program *program;
    const weft__kernels *k; /* the program's */
    weft_buffer *arena, *shared, *h_buffer;
    uint8_t *h;                /* [rows or slots][WEFT__CPU_H_MATS][WEFT__CPU_H_BYTES] what adapters' A make of a row */
    weft_buffer **scratch;     /* [backend->n_threads] */
    weft__cpu_thread *threads; /* [backend->n_threads] */
    weft__cpu_claim *claims;   /* [2][needs.chunks][backend->n_threads] of products in turns */
    int64_t *split;            /* [needs.split] the first output of every thread, each product's at its split_at */
    uint32_t *seq_seen;        /* [max_rows] number of the step in which a sequence was seen */
    uint32_t step_number;
    int n_threads; /* for which `split` holds: backend->n_threads, or fewer while cores are taken away by others */
    void *owned;   /* head of a list of blocks that live as long as the run */

    const weft_rows *rows;
    const weft_kv_binding *kv;   /* [pools][n_kv_groups] */
    const int32_t *pool;         /* [n_seqs] of a sequence; NULL: there is one */
    weft_profile_log *profile;   /* NULL: steps are not timed */
    int32_t first_node, n_nodes; /* of the step, as weft_step has them */
    int32_t counted_from;        /* the index of the step's first event; WEFT_NONE: threads count nothing */
    float **data;                /* [n_tensors] */
    int32_t *wanted;             /* [max_wanted] */
    int moved;                   /* behind step `gather` wanted row i is row i */
    float *cs;                   /* [needs.cs] cos and sin of the rows' positions, each rope's at its cs_at */
    weft__cpu_tiles *tiles;      /* [n_tilings] */
    int64_t *direct_rows;        /* [n_direct] rows that go to the next product prepared; 0: they are floats */
    weft__cpu_groups groups[2];  /* rows with adapters: of all, of those that are wanted */
    int32_t *group_start;        /* [max_rows + 1] */
    atomic_uint n_shrunk;        /* shares of h that were made in this step, by all threads */
};

/* n * size bytes, zeroed and aligned to 64, in the list `owned` of a program or a run; NULL when memory runs out. */
void *weft__cpu_own(void **owned, size_t n, size_t size);
void weft__cpu_free_owned(void **owned);
/* Bytes at a place of their own, with the flags of weft_buffer_spec. WEFT_NO_MEMORY. */
weft_status weft__cpu_buffer(uint64_t n_bytes, uint32_t flags, weft_buffer **out, weft_error *err);
/* The weight as floats, decoded on first use; *failed becomes 1 when memory runs out. NULL for WEFT_NONE. */
const float *weft__cpu_vector(weft_program *p, weft_weight_id w, int *failed);
/* Which rows a step of the program has in this step: WEFT_ROWS, WEFT_WANTED or WEFT__CPU_NO_ROWS. */
static inline int64_t weft__cpu_row_kind(const weft_run *run, const weft__cpu_step *s)
{
    return s->if_wanted && run->moved ? WEFT_WANTED : s->rows;
}
/* How many they are. */
static inline int64_t weft__cpu_rows(const weft_run *run, const weft__cpu_step *s)
{
    const int64_t kind = weft__cpu_row_kind(run, s);
    return kind == WEFT_WANTED ? run->rows->n_wanted : kind == WEFT_ROWS ? run->rows->n_rows : 0;
}
/* The pages of a group that sequence `seq` of the step has some of. */
static inline const weft_kv_binding *weft__cpu_pages(const weft_run *run, int32_t group, int32_t seq)
{
    return &run->kv[(run->pool ? run->pool[seq] * run->program->graph->n_kv_groups : 0) + group];
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

/* ---- build/ ---- */

/* Each builds step *s for s->node: sets run and data, and raises p->needs. */
weft_status weft__cpu_build_rows(weft_program *p, weft__cpu_step *s, weft_error *err);   /* rows.c */
weft_status weft__cpu_build_linear(weft_program *p, weft__cpu_step *s, weft_error *err); /* linear.c */
weft_status weft__cpu_build_positions(weft_program *p, weft__cpu_step *s,
                                      weft_error *err); /* rope.c: rope, kv_write, rope_kv */
weft_status weft__cpu_build_attention(weft_program *p, weft__cpu_step *s, weft_error *err); /* attention.c */
weft_status weft__cpu_build_moe(weft_program *p, weft__cpu_step *s, weft_error *err);       /* moe.c */

/* The program's end is what is there for wanted rows alone (compact.c): the first of the segment's nodes that belongs
 * to it; n_nodes when there is none, or when another segment would see it. */
int32_t weft__cpu_end_begins(const weft_program *p);
/* May the step of node i of the segment, where the end begins with node `first`, leave rows out that are not wanted? */
int weft__cpu_is_if_wanted(const weft_program *p, int32_t i, int32_t first);
/* The step in front of that end. WEFT_NO_MEMORY. */
weft_status weft__cpu_build_gather(weft_program *p, weft__cpu_step *s, int32_t first, weft_error *err);

/* Finds out which rows go to the next product prepared, when all n steps are built. WEFT_NO_MEMORY. */
weft_status weft__cpu_find_direct(weft_program *p, weft__cpu_step *steps, int32_t n, weft_error *err);

/* ---- run/ ---- */

/* The steps that follow are done by n threads. Their number changes which computes an output, never how. */
void weft__cpu_use_threads(weft_run *run, int n);
/* Divide the outputs of the step's matrices over n_threads: split as of weft__cpu_linear and weft__cpu_moe. */
void weft__cpu_split_linear(const weft__cpu_linear *l, int n_threads, int64_t *split);
void weft__cpu_split_moe(const weft__cpu_moe *m, int n_threads, int64_t *split);
/* The first step of a program that rotates: cos and sin of this step's positions. */
void weft__cpu_rope_tables(weft_run *run, const weft__cpu_step *s, int thread);
/* Tiles this step's rows; before the pool is entered. WEFT_LIMIT when a context is too long. */
weft_status weft__cpu_tile_rows(weft_run *run, weft_error *err);
/* Which rows the end has in this step. */
void weft__cpu_choose_rows(weft_run *run, const weft_rows *rows);
/* Which rows go to the next product prepared in this step; rows, adapters and wanted rows are known. */
void weft__cpu_choose_direct(weft_run *run);
/* Do those of h (NULL: none)? */
static inline int weft__cpu_is_direct(const weft_run *run, const weft__cpu_direct *h)
{
    return h && run->direct_rows[h->index] > 0;
}
/* Values [from, to), multiples of WEFT__ACT_PART, of rows [row, row + n) of the step; rows of x are ldx apart. */
void weft__cpu_direct_pack(const weft_run *run, const weft__cpu_direct *h, const float *x, int64_t ldx, int64_t row,
                           int64_t n, int64_t from, int64_t to);

/* The input row of a linear node's product, normed if there is a norm; valid until the thread's next call. x does not
 * come packed. */
const float *weft__cpu_linear_row(const weft_run *run, const weft__cpu_linear *l, weft__cpu_thread *th, int64_t row);
/* act(gate) * up, of two matrices with the same input and as many outputs. */
typedef struct weft__cpu_glu {
    const weft__cpu_matrix *gate, *up;
    int activation;
    const weft__cpu_direct *to; /* where it may go packed, or NULL */
} weft__cpu_glu;

/* It for outputs [first, last) of all rows of `at`, and the expert, of `delta`: out[i * ldo + j - first], or, where
 * g->to is direct in this step, packed for it. Biases included, and what adapters add. */
void weft__cpu_gated(const weft_run *run, weft__cpu_thread *th, const weft__cpu_glu *g, const weft__cpu_prepared *at,
                     const weft__cpu_delta *delta, int64_t first, int64_t last, float *out, int64_t ldo);

/* Is everything that the step points to in range? Fills the run: rows, kv, wanted, the bound tensors. */
weft_status weft__cpu_accept(weft_run *run, const weft_step *step, weft_error *err);

/* ---- the provider's table ---- */

int weft__cpu_supports(weft_backend *b, const weft_graph *g, const weft_node *n);
weft_status weft__cpu_compile(weft_backend *b, const weft_graph *g, const weft_segment *s,
                              const weft_compile_options *o, weft_program **out, weft_error *err);
void weft__cpu_program_free(weft_program **p);
const char *weft__cpu_program_describe(const weft_program *p);
weft_status weft__cpu_program_bytes(const weft_program *p, weft_program_bytes *out, weft_error *err);
weft_status weft__cpu_run_new(const weft_program *p, weft_run **out, weft_error *err);
/* Bytes of the buffers of a run. */
uint64_t weft__cpu_run_bytes(const weft_program *p);
void weft__cpu_run_free(weft_run **run);
weft_status weft__cpu_run(weft_run *run, const weft_step *step, weft_error *err);
/* What weft__cpu_image will say; once, when all is packed. WEFT_NO_MEMORY. */
weft_status weft__cpu_describe_image(weft_program *p, weft_error *err);
weft_status weft__cpu_image(const weft_program *p, weft_image *out, weft_error *err);
weft_status weft__cpu_measure(weft_backend *b, weft_peaks *out, weft_error *err);

#endif
