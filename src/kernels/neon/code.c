// SPDX-License-Identifier: Apache-2.0
/* code.c: keys and values as whole numbers in NEON; the loops are in simd/code.h. */
#include "kernels/neon/vec.h"

#define TIER(name) name##_neon
#include "kernels/simd/code_put.h"
