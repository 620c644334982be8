// SPDX-License-Identifier: Apache-2.0
/* families.h: the decoders of each family; for the files of this room. */
#ifndef WEFT_QUANT_FAMILIES_H
#define WEFT_QUANT_FAMILIES_H

#include "quant/blocks.h"
#include "quant/half.h"
#include "quant/quant.h"

#define WEFT__QUANT_DECODERS(X)                                                                                        \
    X(f32)                                                                                                             \
    X(f16) X(bf16) X(q4_0) X(q4_1) X(q5_0) X(q5_1) X(q8_0) X(q2_k) X(q3_k) X(q4_k) X(q5_k) X(q6_k) X(iq4_nl) X(iq4_xs)
#define WEFT__QUANT_DECLARE(name) void weft__decode_##name(const void *src, float *dst, int64_t n);
WEFT__QUANT_DECODERS(WEFT__QUANT_DECLARE)
#undef WEFT__QUANT_DECLARE

#endif
