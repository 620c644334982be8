// SPDX-License-Identifier: Apache-2.0
/* matrix.h: weights as the provider's kernels read them, and the forms of their input. For what builds products, and
 * what runs them. */
#ifndef WEFT_BACKEND_CPU_MATRIX_H
#define WEFT_BACKEND_CPU_MATRIX_H

#include <stddef.h>

#include "kernels/kernels.h"
#include "weft/backend.h"

enum {
    WEFT__CPU_LINE = 64,             /* bytes; scratch is aligned to it */
    WEFT__CPU_MAX_SPLITS = 1024,     /* splits of one query's context: a million tokens */
    WEFT__CPU_SHARED_STATES = 32768, /* (query, split) states when splits are shared between threads */
    WEFT__CPU_GLU_FLOATS = 32768,    /* a thread's block of `up` outputs before they meet their gates */
    WEFT__CPU_PREFETCH = 64,         /* A's, and B's, that are prefetched */
    WEFT__CPU_UNIT = 16              /* outputs are split between threads at multiples of it: a cache line of floats */
};

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
    int tile;      /* up to so many rows lie together: a multiple of every act's tile */
    int64_t chunk; /* rows that run together, a multiple of tile: their prepared form fits the cache */
    size_t tile_offset[WEFT_LINEAR_MAX];  /* of each form in the bytes of one tile */
    size_t chunk_offset[WEFT_LINEAR_MAX]; /* ... of one chunk */
    size_t tile_bytes, chunk_bytes;
} weft__cpu_input;

/* Describes weight id as a matrix; its panels lie in p->packed (reserved here, filled by weft__cpu_pack) or where they
 * are. */
weft_status weft__cpu_matrix_init(weft_program *p, weft__cpu_matrix *m, weft_weight_id id, weft_error *err);
/* Accepts an image whose layout is ours, before the weights are looked at. */
weft_status weft__cpu_take_image(weft_program *p, const weft_image *image, weft_error *err);
/* Where the image has the n_bytes of weight id, which it must have. */
weft_status weft__cpu_panels_of_image(const weft_program *p, weft_weight_id id, uint64_t n_bytes, uint8_t **out,
                                      weft_error *err);
/* Bytes that all weights of the segment need when packed. */
weft_status weft__cpu_packed_bytes(weft_program *p, uint64_t *n, weft_error *err);
/* Which forms the n matrices (the first n_mat of them) read; sets each one's `act`. */
void weft__cpu_input_init(weft__cpu_input *in, weft__cpu_matrix **m, int n_mat, int64_t max_rows);
/* Splits the outputs of n_mat matrices evenly by bytes, at multiples of `unit`; `together`: all matrices at the same
 * outputs. split as weft__cpu_linear. */
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
/* Rows whose forms were prepared together: rows [row, row + n) of the step, at acts, and each form at its offset. */
typedef struct weft__cpu_prepared {
    const uint8_t *acts;
    const size_t *offset;
    int64_t row, n;
} weft__cpu_prepared;

/* Outputs [first, last) of matrix m (of `expert`) for all rows of `at`: out[i * ldo + j - first]. ahead: of
 * weft__cpu_prefetch_of, or NULL. */
static inline void weft__cpu_multiply(const weft__cpu_matrix *m, int32_t expert, int64_t first, int64_t last,
                                      const weft__cpu_prepared *at, float *out, int64_t ldo,
                                      weft__kernel_prefetch *ahead)
{
    const weft__product p = {.panels = weft__cpu_panels(m, expert, first),
                             .stride = m->stride,
                             .n_out = last - first,
                             .k = m->k,
                             .act = at->acts + at->offset[m->act],
                             .m = at->n,
                             .out = out,
                             .ldo = ldo};
    weft__matmul_run(m->mm, &p, ahead);
}

#endif
