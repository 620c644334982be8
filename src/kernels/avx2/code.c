// SPDX-License-Identifier: Apache-2.0
/* code.c: keys and values as whole numbers in AVX2; the loops are in simd/code.h. */
#include "kernels/avx2/vec.h"

#define TIER(name) name##_avx2
#include "kernels/simd/code_put.h"
