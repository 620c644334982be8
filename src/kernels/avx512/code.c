// SPDX-License-Identifier: Apache-2.0
/* code.c: keys and values as whole numbers in AVX-512; the loops are in simd/code.h. */
#include "kernels/avx512/vec.h"

#define TIER(name) name##_avx512
#include "kernels/simd/code_put.h"
