// SPDX-License-Identifier: Apache-2.0
/* rows.c: the operations on rows in AVX2; the loops are in simd/rows.h. */
#include "kernels/avx2/vec.h"

#define TIER(name) name##_avx2
#include "kernels/simd/rows.h"
