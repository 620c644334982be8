// SPDX-License-Identifier: Apache-2.0
/* rows.c: the operations on rows in AVX512; the loops are in simd/rows.h. */
#include "kernels/avx512/vec.h"

#define TIER(name) name##_avx512
#include "kernels/simd/rows.h"
