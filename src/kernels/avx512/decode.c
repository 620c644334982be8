// SPDX-License-Identifier: Apache-2.0
/* decode.c: rows of weights to floats in AVX512; the loops are in simd/decode.h. */
#include "kernels/avx512/vec.h"

#define TIER(name) name##_avx512
#include "kernels/simd/decode.h"
