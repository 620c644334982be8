// SPDX-License-Identifier: Apache-2.0
/* list.h: prototypes of all kernels, made from kernels.def. Every file that defines a kernel includes it, so that a
 * definition which does not match its slot is a compile error. */
#ifndef WEFT_KERNELS_LIST_H
#define WEFT_KERNELS_LIST_H

#include "kernels/kernels.h"

#define KERNEL_MATMUL(format, tile, tier, symbol, tolerance) extern const weft__matmul symbol;
#define KERNEL_GEMM(format, tile, tier, symbol, tolerance) extern const weft__gemm symbol;
#define KERNEL_EXPAND(format, tile, tier, symbol, tolerance) extern const weft__expand symbol;
#define KERNEL_ROW(slot, format, tile, tier, function, tolerance)                                                      \
    extern __typeof__(*((weft__kernels *)0)->slot) function;
#define KERNEL_PEAK(slot, tier, function) extern __typeof__(*((weft__peak_kernels *)0)->slot) function;
#include "kernels/kernels.def"

#endif
