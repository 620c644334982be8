// SPDX-License-Identifier: Apache-2.0
/* matmul_float.c: products with BF16 weights by VDPBF16PS: activations are rounded to bf16, sums of products are f32,
 * and subnormal numbers count as zero (simd/matmul_float.h). WEFT_CPU=avx512vnni keeps f32 activations instead.
 * Reentrant. */
#include "kernels/avx512bf16/matmul_vec.h"

#include "kernels/list.h"
#include "kernels/simd/matmul_float.h"

static const weft__act act_form = {"bf16_tiles", MM_FLOAT_TILE, mm_float_act_bytes, mm_float_act_put,
                                   mm_float_act_take};

MM_FLOAT_KERNEL(BF16, bf16, avx512bf16, AVX512BF16, act_form)
