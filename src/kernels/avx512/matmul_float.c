// SPDX-License-Identifier: Apache-2.0
/* matmul_float.c: products with F32, F16 and BF16 weights by fused multiply-add in f32 (simd/matmul_float.h).
 * Reentrant. */
#include "kernels/avx512/matmul_vec.h"

#include "kernels/list.h"
#include "kernels/simd/matmul_float.h"

static const weft__act act_form = {"f32_tiles", MM_FLOAT_TILE, mm_float_act_bytes, mm_float_act_put, mm_float_act_take};

MM_FLOAT_KERNEL(F32, f32, avx512, AVX512, act_form)
MM_FLOAT_KERNEL(F16, f16, avx512, AVX512, act_form)
MM_FLOAT_KERNEL(BF16, bf16, avx512, AVX512, act_form)
