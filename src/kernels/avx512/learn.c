// SPDX-License-Identifier: Apache-2.0
/* learn.c: the backward operations on rows in AVX512; the loops are in simd/learn.h. */
#include "kernels/avx512/vec.h"

#define TIER(name) name##_avx512
#include "kernels/simd/learn.h"
