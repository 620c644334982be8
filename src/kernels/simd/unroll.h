// SPDX-License-Identifier: Apache-2.0
/* unroll.h: UNROLL before a loop of few and constant turns makes straight code of it, so that its arrays become
 * registers. SIMD_REGISTER is where asm finds a vector. (tests/emulated, whose vectors are in memory, has defined it
 * before.) */
#ifndef WEFT_KERNELS_SIMD_UNROLL_H
#define WEFT_KERNELS_SIMD_UNROLL_H

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#ifndef SIMD_REGISTER
#define SIMD_REGISTER "+v"
#endif

#endif
