// SPDX-License-Identifier: Apache-2.0
/* served.h: products with the rows of a frozen, quantized matrix as serving computes them, bit for bit: activations in
 * 8 bits, by the kernels of kernels.def (weft__matmul). Weights stay as they are in the file: a thread packs a group of
 * panels at a time, multiplies all rows by it, and packs the next into its place. */
#ifndef WEFT_TRAIN_SERVED_H
#define WEFT_TRAIN_SERVED_H

#include "train/product.h"

/* The kernel that serves the product, or NULL: there is none that is faster than products in f32. */
const weft__matmul *weft__train_served_by(const weft__train_product *p, uint32_t tiers);

/* Raises the room for served products of m rows by a matrix of such a format and k inputs. */
void weft__train_served_room(weft__train_room *room, uint32_t dtype, uint32_t tiers, int64_t m, int64_t k);

/* Thread's share of the rows of A, prepared into `rows`; then of the product, for which all rows are there. */
void weft__train_served_prepare(const weft__matmul *mm, const weft__train_product *p, int thread, int n_threads,
                                uint8_t *rows);
void weft__train_served_run(const weft__matmul *mm, const weft__train_product *p, int thread, int n_threads,
                            const uint8_t *rows, uint8_t *group);

#endif
