// SPDX-License-Identifier: Apache-2.0
/* quant.h: rows of weights in block formats: sizes, decoding, random rows.
 * A row is n elements, n a multiple of the format's block; rows may lie at any alignment. Everything is reentrant. */
#ifndef WEFT_QUANT_QUANT_H
#define WEFT_QUANT_QUANT_H

#include "base/random.h"
#include "weft/buffer.h"

/* Decodes n elements. */
typedef void (*weft__quant_decode_fn)(const void *src, float *dst, int64_t n);

/* The decoder of a type; NULL for integers, F64 and unknown ids. */
weft__quant_decode_fn weft__quant_decoder(uint32_t dtype);
/* The same, by a look-up each time; a type without a decoder leaves dst alone and returns 0. */
int weft__quant_decode_row(uint32_t dtype, const void *src, float *dst, int64_t n);

/* Bytes of a row of n elements; 0 when n is negative, no multiple of the block, or the product overflows. */
uint64_t weft__quant_row_bytes(uint32_t dtype, int64_t n);

/* Fills a row with valid random blocks whose values are spread roughly as N(0, 0.02²): for benchmarks. */
void weft__quant_random_row(uint32_t dtype, weft__rng *rng, void *dst, int64_t n);

#endif
