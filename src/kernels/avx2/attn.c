// SPDX-License-Identifier: Apache-2.0
/* attn.c: attention in AVX2; the loops are in simd/attn.h. */
#include "kernels/avx2/vec.h"

#define TIER(name) name##_avx2
/* 16 registers: 4 x 2 sums, 2 loads, a query. */
#define TILE_QUERIES 4
#define TILE_VECTORS 2
#define SOFTMAX_QUERIES 2
#include "kernels/simd/attn.h"
