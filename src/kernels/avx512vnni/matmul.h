// SPDX-License-Identifier: Apache-2.0
/* matmul.h: the 8-bit activations of this tier (simd/matmul_layout.h), one form for every quantized format. */
#ifndef WEFT_KERNELS_AVX512VNNI_MATMUL_H
#define WEFT_KERNELS_AVX512VNNI_MATMUL_H

#include "kernels/avx512vnni/matmul_vec.h" /* first: the layout depends on it */

#include "kernels/simd/matmul_pack.h"
#include "kernels/list.h"
#include "kernels/simd/matmul_quant.h"

extern const weft__act weft__act_q8_avx512vnni;

#define KERNEL(format, name)                                                                                           \
    MM_KERNEL(format, name, avx512vnni, AVX512VNNI, weft__matmul_pack_##name, weft__act_q8_avx512vnni)

#endif
