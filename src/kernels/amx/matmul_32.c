// SPDX-License-Identifier: Apache-2.0
/* matmul_32.c: products with weights in blocks of 32, by AMX (matmul.h). Reentrant. */
#include "kernels/amx/matmul.h"

MM_QUANT_32(KERNEL)
