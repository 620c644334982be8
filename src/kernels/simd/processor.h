/* processor.h: on which processors products are taken otherwise than their tier alone would say. */
#ifndef WEFT_KERNELS_SIMD_PROCESSOR_H
#define WEFT_KERNELS_SIMD_PROCESSOR_H

#include "kernels/simd/matmul_layout.h"

/* A Zen 4's units and its own prefetching differ from those of others. (A Zen 3 is of the same family, without AVX-512.) */
MM_INLINE int mm_is_zen4(void)
{
    return __builtin_cpu_is("amdfam19h") && (MM_DOT32 || __builtin_cpu_supports("avx512f"));
}

#endif
