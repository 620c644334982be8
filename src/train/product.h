// SPDX-License-Identifier: Apache-2.0
/* product.h: products of matrices of which the right one may be quantized: decoded panel by panel, multiplied in f32.
 *
 * C[M,N] = A[M,K] B[K,N], or added to C. An element is one chain per 256 of k, and these are added in order: its bits
 * depend on its row of A and its column of B, not on M, N, the number of threads or how the work is divided.
 *
 * A product whose B is frozen may be rounded, where the processor has units for that and the multiplier is not exact:
 *  - rows of a quantized B times rows of A are multiplied as serving multiplies them (served.h);
 *  - else both are rounded to BF16, two inputs at a time, and an element is one chain per 512 of k.
 * Everything said above holds for these, too. */
#ifndef WEFT_TRAIN_PRODUCT_H
#define WEFT_TRAIN_PRODUCT_H

#include "base/pool.h"
#include "kernels/kernels.h"
#include "quant/quant.h"

/* The first of n items that thread i of n_threads has. */
static inline int64_t weft__train_share(int64_t n, int i, int n_threads)
{
    return n * i / n_threads;
}

/* A matrix of any format, row after row. */
typedef struct weft__train_rows_of {
    const uint8_t *data;
    uint64_t row_bytes;
    uint32_t dtype;
} weft__train_rows_of;

static inline weft__train_rows_of weft__train_rows_of_floats(const float *data, int64_t width)
{
    return (weft__train_rows_of){(const uint8_t *)data, (uint64_t)width * sizeof *data, WEFT_F32};
}

typedef struct weft__train_product {
    int64_t m, n, k;
    const float *a;
    int64_t lda;
    int a_across; /* 0: element (i, p) of A is a[i * lda + p]; 1: a[p * lda + i] */
    weft__train_rows_of b;
    int b_across; /* 0: row j of b is column j of B, k long; 1: row p of b is row p of B, n long */
    float *c;
    int64_t ldc;
    int add;
    int rounded;     /* B is frozen: the product may be rounded */
    uint64_t a_mark; /* products of a multiplier with the same mark, not 0, have the same A, m and k */
} weft__train_product;

typedef struct weft__train_multiplier weft__train_multiplier;

/* What a multiplier needs room for; zero-initialise. */
typedef struct weft__train_room {
    int64_t left, alone;  /* the most (m + WEFT__GEMM_MAX_MR) * k of products with all threads, and alone */
    size_t rows, n_group; /* of served products: bytes of prepared rows, and of a thread's packed panels (served.h) */
} weft__train_room;

/* pool: borrowed. exact: nothing is rounded. */
weft_status weft__train_multiplier_create(weft__pool *pool, uint32_t tiers, int exact, const weft__train_room *room,
                                          weft__train_multiplier **out, weft_error *err);
void weft__train_multiplier_destroy(weft__train_multiplier **x);
uint64_t weft__train_multiplier_bytes(const weft__train_multiplier *x);

/* With all threads of the pool. */
void weft__train_multiplier_run(weft__train_multiplier *x, const weft__train_product *p);
/* Within a job of the pool, by `thread` alone; b is F32, and nothing is rounded. */
void weft__train_multiplier_run_alone(weft__train_multiplier *x, int thread, const weft__train_product *p);

#endif
