// SPDX-License-Identifier: Apache-2.0
/* tail.h: the last layer's ffn_down, moved once by its exact gradient, from what one pass left behind.
 *
 * Behind that matrix stand an addition, a norm and the output matrix, and nothing else. So from the inputs x that it
 * had, what the norm read, and the logits, of the rows with a target, follow the gradient g of its outputs
 * (p - onehot, back through the output matrix and the norm), that of the matrix (the sum of g x^T over the rows), and
 * the loss along any change of it: no layer is passed again. No key and no value depends on that matrix: those of a
 * prompt stay valid, bit for bit. Letters: T rows with a target, K inputs and D outputs of the matrix, V vocabulary,
 * r rank. One thread, which is the trainer's. */
#ifndef WEFT_TRAIN_TAIL_H
#define WEFT_TRAIN_TAIL_H

#include "train/train.h"

/* What rows with a target left; the caller's, weft__train_tail_free. */
typedef struct weft__train_tail {
    int32_t n;       /* T */
    int64_t k, d, v; /* K, D, V */
    float *x;        /* [T, K] inputs of the matrix */
    float *h;        /* [T, D] inputs of the norm */
    float *logits;   /* [T, V] */
    int32_t *target; /* [T] */
    float *weight;   /* [T] */
} weft__train_tail;

/* The targets by which a trainer has that matrix as one that learns, "ffn_down@5", of a model with so many layers. */
void weft__train_tail_target(int32_t n_layers, char out[32]);

/* Passes the batch forward once, and keeps what its rows with a target leave; likelihood's weights. WEFT_UNSUPPORTED:
 * something else stands behind the matrix (a norm of its own), or the trainer keeps no values (recompute); WEFT_STATE:
 * the matrix is none of those that learn; WEFT_LIMIT: more rows with a target than the head takes at a time, or a loss
 * that is not finite; WEFT_NO_MEMORY, and as weft__trainer_loss does. */
weft_status weft__train_tail_keep(weft__trainer *t, const weft__train_batch *batch, weft__train_tail *out,
                                  weft_error *err);
void weft__train_tail_free(weft__train_tail *s);

/* The gradient of the loss (sum of weight * -log p of the targets) with respect to the matrix's outputs, g [T, D].
 * *loss: the loss. WEFT_NO_MEMORY, and WEFT_STATE as above. */
weft_status weft__train_tail_gradient(weft__trainer *t, const weft__train_tail *s, float *g, double *loss,
                                      weft_error *err);

/* The matrix of rank r nearest to the sum over n rows of g x^T, as B A: b [D, r] has orthonormal columns, or zeros
 * where the rank is smaller; a [r, K]. Exact where n <= r; else the leading singular vectors, by orthogonal iteration
 * on the rows' Gram matrices. 0: no memory. */
int weft__train_low_rank(const float *g, const float *x, int32_t n, int64_t d, int64_t k, int32_t r, float *b,
                         float *a);

typedef struct weft__train_tail_options {
    int32_t rank;  /* of the change, 1 or more; the trainer's must be so much larger than that of what it began with */
    float hold_at; /* log p of every target at which it is enough; 0: the least loss along the line */
} weft__train_tail_options;

typedef struct weft__train_tail_step {
    double before, after; /* the loss */
    double length;        /* of the step: the matrix moves by -length * B A */
    int32_t n_tried;      /* losses along the line that were looked at */
    int holds;            /* every target is the likeliest, with hold_at at least */
} weft__train_tail_step;

/* Moves the trainer's pair of that matrix: its last `rank` rows of A and columns of B, which computed nothing before,
 * become the step. How far is found along the line: the least loss (golden section), or where it comes first the
 * shortest step, to 1/32, at which every target holds; the change's norm stays within the trainer's norm_cap. Fails as
 * the above. */
weft_status weft__train_tail_move(weft__trainer *t, const weft__train_tail *s, const weft__train_tail_options *o,
                                  weft__train_tail_step *out, weft_error *err);

#endif
