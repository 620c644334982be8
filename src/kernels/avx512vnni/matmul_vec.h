/* matmul_vec.h: AVX-512 with VPDPBUSD for the matrix products (simd/matmul_quant.h). */
#ifndef WEFT_KERNELS_AVX512VNNI_MATMUL_VEC_H
#define WEFT_KERNELS_AVX512VNNI_MATMUL_VEC_H

#define MM_DOT32 1
#include "kernels/avx512/matmul_vec.h"

typedef int mm_word32 __attribute__((may_alias));

/* acc + four products of unsigned w and signed a; a is one word of memory, used by the instruction itself: the compiler would
 * spend an instruction and a register on it. */
MM_INLINE vi mm_dot_word(vi acc, vi w, const void *a)
{
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(acc) : "v"(w), "m"(*(const mm_word32 *)a));
    return acc;
}

/* The same of four codes in a register. */
MM_INLINE vi mm_dot_reg(vi acc, vi w, vi a)
{
    return _mm512_dpbusd_epi32(acc, w, a);
}

#endif
