// SPDX-License-Identifier: Apache-2.0
/* matmul.h: the 8-bit activations of this tier. */
#ifndef WEFT_KERNELS_AVX2_MATMUL_H
#define WEFT_KERNELS_AVX2_MATMUL_H

#define MM_TWO 1
#define MM_CHUNK_BYTES WEFT__ACT_CHUNK_BYTES_AVX2
#include "kernels/simd/matmul_pack.h"
#include "kernels/avx2/matmul_vec.h"
#include "kernels/list.h"
#include "kernels/simd/matmul_quant.h"

extern const weft__act weft__act_q8_avx2;

#define KERNEL(format, name) MM_KERNEL(format, name, avx2, AVX2, weft__matmul_pack_##name, weft__act_q8_avx2)

#endif
