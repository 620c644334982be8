// SPDX-License-Identifier: Apache-2.0
/* decode.c: rows of weights to floats in AVX2; the loops are in simd/decode.h. */
#include "kernels/avx2/vec.h"

#define TIER(name) name##_avx2
#include "kernels/simd/decode.h"
