// SPDX-License-Identifier: Apache-2.0
/* matmul_32.c: products with weights in blocks of 32, by VPMADDUBSW (simd/matmul_quant.h). Reentrant. */
#include "kernels/avx512/matmul.h"

MM_QUANT_32(KERNEL)
