// SPDX-License-Identifier: Apache-2.0
/* learn.c: the backward operations on rows in AVX2; the loops are in simd/learn.h. */
#include "kernels/avx2/vec.h"

#define TIER(name) name##_avx2
#include "kernels/simd/learn.h"
