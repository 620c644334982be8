// SPDX-License-Identifier: Apache-2.0
/* parts.h: what the files of this room share: the model as a list of ops with what each keeps, and the trainer's state.
 *
 * Ops stand in the graph's order: first those over all rows of a batch (the body), then those over the rows that have a
 * target (the head), which pass in chunks so that logits need little memory. A segment is a run of body ops of one
 * layer; with recomputation, tensors that do not leave their segment share memory with those of other segments, and are
 * made again on the way back. */
#ifndef WEFT_TRAIN_PARTS_H
#define WEFT_TRAIN_PARTS_H

#include "base/pool.h"
#include "graph/graph.h"
#include "model/build.h"
#include "train/loss.h"
#include "train/product.h"
#include "train/train.h"

/* A tensor that learns. */
struct weft__trainer_weight {
    char name[WEFT_NAME_MAX + 16];
    uint32_t n_dims;
    int64_t d[2], n;            /* d[0] contiguous */
    int decay;                  /* weight decay is for matrices */
    float *data, *grad, *m, *v; /* parts of the trainer's arrays; m and v as the optimizer needs them */
};

/* A LoRA pair of one tensor of the file; rows of it that are weights of their own share A, and have their rows of B. */
struct weft__train_lora {
    int32_t a, b; /* parameters */
};

struct weft__train_op {
    const weft_node *node;
    int32_t segment;
    int32_t in[3], n_in, out;    /* tensors; of attention: rotated q, k, and v */
    uint8_t wants[3];            /* the gradient of that input is needed */
    uint8_t add[3];              /* ... and is added to what is there */
    int learns;                  /* it has parameters, or wants: it must be gone back through */
    int same_in;                 /* the op before is a product with the same input */
    weft__train_rows_of w;       /* matrix of EMBED and LINEAR */
    const float *vector;         /* weight of NORM, bias of LINEAR, or NULL */
    float *w_grad, *vector_grad; /* or NULL: frozen */
    int32_t pair;                /* of LINEAR, or -1 */
    int64_t pair_row;            /* of B, where the op's outputs begin */
    float *shrunk;               /* [R, r] scale * A x */
    float *lse;                  /* [R, heads] of attention: log of the sum of exponentials */
    int32_t rope;                /* table */
};

/* Cosines and sines of every position of a segment; `back` turns the other way. */
struct weft__train_rope {
    weft_attr_rope attr;
    weft_weight_id factors;
    float *forth, *back; /* [n_ctx][n_rot] */
};

struct weft__train_segment {
    int32_t first, last; /* body ops */
};

/* How much each output and input of the pairs' matrices matters to what was shown. */
struct weft__train_fisher {
    double *out, *in; /* sums over rows of squares: [N] of the gradient behind the matrix, [K] of what it reads */
    int64_t (*at)[2]; /* [pairs] where each pair's begin */
    double *grams;    /* per thread two of [r, r] */
    double n_targets, n_rows;
    int sees; /* the pass in work is looked at */
};

/* One thread's scratch. */
struct weft__train_thread {
    float *row;   /* [2 * widest] */
    float *score; /* three of [QUERY_ROWS, max_rows] */
};

enum { WEFT__TRAIN_QUERY_ROWS = 96, WEFT__TRAIN_SQUARES_PART = 4096 /* floats of one sum of squares */ };

struct weft__trainer {
    weft__train_options o;
    int stopped;   /* o.stop said so in this batch */
    char *targets; /* the trainer's copy */
    weft__source src;
    weft__hparams hp;
    weft_graph *graph;
    weft__pool *pool;
    const weft__kernels *k;
    weft__train_multiplier *x;
    int32_t n_threads, n_ctx, max_rows, chunk; /* rows of the head at a time */
    float lora_scale;

    struct weft__train_op *ops;
    int32_t n_ops, n_body;
    struct weft__train_segment *segments;
    int32_t n_segments;
    struct weft__train_rope *ropes;
    int32_t n_ropes;
    struct weft__train_lora *pairs; /* by their parameters' names in order */
    int32_t n_pairs;
    weft_tensor_id hidden, logits; /* what the head begins with, and what the loss sees */

    struct weft__trainer_weight *params;
    int32_t n_params;
    int64_t n_floats;    /* of all parameters */
    weft_buffer *values; /* arrays: data, grad, m, v (not SGD's) */
    float *data, *grad, *m, *v;
    float
        *start;  /* [n_floats] where it began, or NULL: neither L2-SP nor an adapter that it goes on with asks for it */
    int goes_on; /* with an adapter: what losses call the base has it */
    float *muon; /* two matrices and two squares, of the largest that are Muon's */
    int64_t muon_matrix, muon_square;
    struct weft__train_fisher *fisher; /* fisher.c; NULL: nothing was shown */
    double *cap, *cap_squares;         /* [pairs] the largest norm; per thread [r, r]; NULL: none */
    float *aside;                      /* [n_floats] where parameters are put aside; NULL: they never were */
    int has_aside;

    weft_buffer *arena;        /* activations and gradients */
    float **value, **gradient; /* [tensors] or NULL */
    void **blocks;             /* small allocations, freed together */
    size_t n_blocks, blocks_room;
    struct weft__train_thread *threads;
    uint64_t n_bytes, n_frozen;

    /* the batch in work */
    const weft__train_batch *batch;
    int adapter_on, counting; /* counting: flops are counted */
    int32_t *begin;           /* [n_segs + 1] first rows of segments */
    int32_t n_segs;
    int32_t *pos;                            /* [R] */
    double *inverse;                         /* [R, most groups] 1 / sqrt(mean + eps) of the norm in work */
    float *shrunk_grad;                      /* [R, r] */
    uint64_t a_mark;                         /* of the left factor of products (product.h) */
    int32_t *wanted;                         /* [W] rows with a target */
    int32_t n_wanted, first_wanted, n_chunk; /* the chunk: wanted[first_wanted ...] */
    float *weight, *logp, *slope;            /* [W] of the batch; log p; d loss / d (-log p), as loss.h has it */
    double *told, *anchored;                 /* [W] the row's loss, without its anchor and that alone */
    const weft__train_objective *objective;
    /* What the frozen base says, where a loss asks it: [W] log p; [R, width], [chunk, V] and per thread [V] */
    float *base_logp, *base_hidden, *base_logits, *base_exps;
    weft__loss_pair *pair_sums; /* [pairs] */
    int32_t *likeliest;         /* [W] tokens */
    void *
        embedded; /* embed.c: embeddings of a batch's texts and what belongs to them; NULL until a loss asks for them */
    size_t embedded_room;
    double flops;

    /* since the last step */
    double total_weight;
    int64_t n_added;
    int kind; /* 0 nothing, 1 rows, 2 pairs, 3 texts */
    int64_t step;
    double *partial; /* sums of squares of parts of the gradients */
};

/* Zeroed memory that lives as long as the trainer; NULL without memory. */
void *weft__train_own(weft__trainer *t, size_t n, size_t size);

/* layout.c: ops, segments, which gradients are needed, memory. */
weft_status weft__train_layout(weft__trainer *t, weft_error *err);
/* params.c: what learns; room for where it began; and that it begins here. */
weft_status weft__train_params(weft__trainer *t, weft_error *err);
weft_status weft__train_start_room(weft__trainer *t, weft_error *err);
void weft__train_keep_start(weft__trainer *t);

/* Rows that op runs over: all of the batch, or the head's chunk. */
static inline int64_t weft__train_rows(const weft__trainer *t, const struct weft__train_op *op)
{
    return op->segment < 0 ? t->n_chunk : t->batch->n_rows;
}
static inline int64_t weft__train_width(const weft__trainer *t, weft_tensor_id id)
{
    return t->graph->tensors[id].shape.d[0];
}

/* trainer.c: the scale of B A. */
float weft__train_lora_scale(const weft__train_options *o);
/* files.c: query or key heads, when p is B of their matrix and the base has its rows in halves (a folder of Llama's
 * kin), which GGUF pairs; else 0. */
int32_t weft__train_heads_in_halves(const weft__trainer *t, const struct weft__trainer_weight *p);
/* step.c: nothing is added yet; gradients are the caller's to clear. */
void weft__train_begin_step(weft__trainer *t);
/* steer.c: room to put parameters aside, unless it is there. */
weft_status weft__train_aside_room(weft__trainer *t, weft_error *err);
/* steer.c: from now on the ops compute what the trainer began with (the base, or the adapter that it goes on with); 0:
 * what it has learned. */
void weft__train_as_it_began(weft__trainer *t, int on);
/* forward.c, backward.c: ops [first, last) in order; and back again, last first. */
/* loss.c: is the batch given up? What follows is left out then, until the next batch. */
int weft__train_stopped(weft__trainer *t);
void weft__train_forward(weft__trainer *t, int32_t first, int32_t last);
void weft__train_backward(weft__trainer *t, int32_t first, int32_t last);
/* attention.c */
void weft__train_attend(weft__trainer *t, const struct weft__train_op *op);
void weft__train_attend_back(weft__trainer *t, const struct weft__train_op *op);
/* fisher.c: what op's pair shows on the way back, where it is looked at; the gradient of the penalty, of a step that
 * divides by `weight`. */
void weft__train_fisher_see(weft__trainer *t, const struct weft__train_op *op);
void weft__train_fisher_hold(weft__trainer *t, double weight);
/* The product, and its count. */
void weft__train_multiply(weft__trainer *t, const weft__train_product *p);

#endif
