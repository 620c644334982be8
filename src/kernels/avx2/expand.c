/* expand.c: adding B h to outputs in AVX2; the loops are in simd/expand.h. Reentrant. */
#include "kernels/avx2/matmul_vec.h"

#include "kernels/list.h"
#include "kernels/simd/expand.h"

EX_KERNEL(F32, f32, avx2, AVX2)
EX_KERNEL(BF16, bf16, avx2, AVX2)
EX_KERNEL(Q8_0, q8_0, avx2, AVX2)
EX_KERNEL(Q4_0, q4_0, avx2, AVX2)
