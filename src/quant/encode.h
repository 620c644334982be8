// SPDX-License-Identifier: Apache-2.0
/* encode.h: rows of weights into block formats, with the smallest error that a bounded search finds.
 *
 * What is minimised, in each block (or super-block) by itself, is the sum of importance[column] * (x - decoded x)^2.
 * No importance means 1 everywhere, so that without it the plain RMS error is what is small.
 * The result depends on the input alone: the same bytes on every machine, compiler and number of threads. */
#ifndef WEFT_QUANT_ENCODE_H
#define WEFT_QUANT_ENCODE_H

#include "quant/quant.h"

/* Encodes src [n_rows][n_per_row] into dst, n_rows * weft__quant_row_bytes(dtype, n_per_row) bytes, at any alignment.
 * `importance` is [n_per_row] of finite numbers >= 0 that go with the columns, or NULL; it may have any unit. A column
 * of importance 0 counts for a millionth of the row's mean; all zeros mean 1 everywhere. F32, F16 and BF16 ignore it. A
 * finite value beyond the format's range becomes the nearest that the format has, never infinity. Fails with
 * WEFT_ARGUMENT (NaN or infinity: the message names row and column; a bad importance; n_per_row not a multiple of the
 * block, or a negative count) or WEFT_UNSUPPORTED (a type that has no encoder); dst is then unspecified. Allocates
 * nothing; reentrant. */
weft_status weft__quant_encode_rows(uint32_t dtype, const float *src, void *dst, int64_t n_rows, int64_t n_per_row,
                                    const float *importance, weft_error *err);

/* Values that a format cannot reach: how many, and where the first one stands. Zero-initialise. */
typedef struct weft__quant_beyond {
    int64_t n, row, column;
    float value;
} weft__quant_beyond;

/* One row of them, which messages call `row`. Adds to *beyond (NULL: not asked for) what is finite and beyond the
 * format's range: F16's largest number is 65504, and the scales of blocks are F16 too. Otherwise as above. */
weft_status weft__quant_encode_row(uint32_t dtype, const float *src, void *dst, int64_t row, int64_t n,
                                   const float *importance, weft__quant_beyond *beyond, weft_error *err);
/* Adds the later of two counts to the earlier. */
void weft__quant_beyond_add(weft__quant_beyond *sum, const weft__quant_beyond *later);

/* Q8_0 without a search, for a caller that others wait for (docs/tuning.md): each block's scale is the smallest of the
 * format that reaches its largest magnitude, each value becomes the nearest code. Of the energy of normally distributed
 * values, 2.7e-5 is lost; the search saves a quarter of that. src [n] finite, whole blocks. What is beyond the format
 * becomes the nearest that it has. Reentrant. */
void weft__quant_nearest_q8_0(const float *src, void *dst, int64_t n);

#endif
