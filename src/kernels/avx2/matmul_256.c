// SPDX-License-Identifier: Apache-2.0
/* matmul_256.c: products with weights in blocks of 256, by VPMADDUBSW (simd/matmul_quant.h). Reentrant. */
#include "kernels/avx2/matmul.h"

MM_QUANT_256(KERNEL)
