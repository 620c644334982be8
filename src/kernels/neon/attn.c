// SPDX-License-Identifier: Apache-2.0
/* attn.c: attention in NEON; the loops are in simd/attn.h. */
#include "kernels/neon/vec.h"

#define TIER(name) name##_neon
/* 32 registers, two for a vector: 4 x 2 sums, 2 loads, a query. */
#define TILE_QUERIES 4
#define TILE_VECTORS 2
#define SOFTMAX_QUERIES 2
#include "kernels/simd/attn.h"
