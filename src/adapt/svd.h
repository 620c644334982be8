// SPDX-License-Identifier: Apache-2.0
/* svd.h: the singular values and vectors of a product of two thin matrices, in double.
 *
 * C = B A with B [n, R], A [R, k] of few columns: QR of B and of A transposed (Householder), then the singular values
 * of the small matrix between (one-sided Jacobi, Hestenes 1958), so that C itself is never there. By Eckart and Young
 * (1936) its first r terms are the matrix of rank r that is nearest to C. Invariant: a function of the values alone, on
 * any machine. Reentrant. */
#ifndef WEFT_ADAPT_SVD_H
#define WEFT_ADAPT_SVD_H

#include <stdint.h>

#include "weft/error.h"

/* Zero-initialise. C is the sum over i of s[i] u[i] v[i]. */
typedef struct weft__adapt_svd {
    int32_t rank; /* singular values that rounding tells from 0 */
    double *s;    /* [rank] falling */
    double *u;    /* [rank, n] of length 1, at right angles */
    double *v;    /* [rank, k] likewise */
} weft__adapt_svd;

/* C = scale * B A, b [n, R], a [R, k], by rows; all finite. WEFT_NO_MEMORY; WEFT_LIMIT: the values differ by so much in
 * size that they cannot be told apart. */
weft_status weft__adapt_svd_of(const float *b, const float *a, int64_t n, int64_t k, int32_t rank, double scale,
                               weft__adapt_svd *out, weft_error *err);
void weft__adapt_svd_free(weft__adapt_svd *s);

#endif
