/* unroll.h: UNROLL before a loop of few and constant turns makes straight code of it, so that its arrays become registers. */
#ifndef WEFT_KERNELS_SIMD_UNROLL_H
#define WEFT_KERNELS_SIMD_UNROLL_H

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#endif
