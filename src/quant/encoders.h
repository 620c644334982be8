// SPDX-License-Identifier: Apache-2.0
/* encoders.h: the encoders of each family; for the files of this room.
 * Each writes the n / block blocks of one row. x is finite; w [n] is finite, positive and about 1 on average. */
#ifndef WEFT_QUANT_ENCODERS_H
#define WEFT_QUANT_ENCODERS_H

#include <stdint.h>

typedef void (*weft__encode_fn)(const float *x, const float *w, void *dst, int64_t n);

#define WEFT__QUANT_ENCODERS(X)                                                                                        \
    X(q4_0) X(q4_1) X(q5_0) X(q5_1) X(q8_0) X(q2_k) X(q3_k) X(q4_k) X(q5_k) X(q6_k) X(iq4_nl) X(iq4_xs)
#define WEFT__QUANT_DECLARE(name) void weft__encode_##name(const float *x, const float *w, void *dst, int64_t n);
WEFT__QUANT_ENCODERS(WEFT__QUANT_DECLARE)
#undef WEFT__QUANT_DECLARE

#endif
