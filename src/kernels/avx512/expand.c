// SPDX-License-Identifier: Apache-2.0
/* expand.c: adding B h to outputs in AVX512; the loops are in simd/expand.h. Reentrant. */
#include "kernels/avx512/matmul_vec.h"

#include "kernels/list.h"
#include "kernels/simd/expand.h"

EX_KERNEL(ex, F32, f32, avx512, AVX512)
EX_KERNEL(ex, BF16, bf16, avx512, AVX512)
EX_KERNEL(ex, Q8_0, q8_0, avx512, AVX512)
EX_KERNEL(ex, Q4_0, q4_0, avx512, AVX512)
