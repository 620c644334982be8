// SPDX-License-Identifier: Apache-2.0
/* tuned.h: the rows of tune.def that belong to the including tier (MM_TIER) and a constant format. */
#ifndef WEFT_KERNELS_SIMD_TUNED_H
#define WEFT_KERNELS_SIMD_TUNED_H

#include "kernels/simd/matmul_layout.h"
#include "kernels/tune.h"

/* The field of the row in force. */
#define MM_TUNED(f, field) WEFT__KERNEL_TUNED(MM_TIER, weft__kernel_class_of(f), field)

/* The row of a microarchitecture, for code of which there is a piece for each. */
#define MM_TUNE_OF(uarch, f) (&WEFT__KERNEL_TUNE(uarch, MM_TIER, weft__kernel_class_of(f)))

#endif
