// SPDX-License-Identifier: Apache-2.0
/* attn.c: attention in AVX512; the loops are in simd/attn.h. */
#include "kernels/avx512/vec.h"

#define TIER(name) name##_avx512
/* 32 registers: 8 x 2 sums, 2 loads. The query comes as a broadcast operand. */
#define TILE_QUERIES 8
#define TILE_VECTORS 2
#define SOFTMAX_QUERIES 4
#include "kernels/simd/attn.h"
