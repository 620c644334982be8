// SPDX-License-Identifier: Apache-2.0
/* matmul_256.c: products with weights in blocks of 256, by AMX (matmul.h). Reentrant. */
#include "kernels/amx/matmul.h"

MM_QUANT_256(KERNEL)
