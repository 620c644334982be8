/* matmul.h: the 8-bit activations of this tier and packing (simd/matmul_layout.h). */
#ifndef WEFT_KERNELS_AVX2_MATMUL_H
#define WEFT_KERNELS_AVX2_MATMUL_H

#define MM_TWO 1
#define MM_CHUNK_BYTES WEFT__ACT_CHUNK_BYTES_AVX2
#include "kernels/avx2/matmul_vec.h"
#include "kernels/list.h"
#include "kernels/simd/matmul_pack.h"
#include "kernels/simd/matmul_quant.h"

extern const weft__act weft__act_q8_avx2;

#define KERNEL(format, name)                                                                                                     \
    static void name##_pack(const uint8_t *rows, size_t row_bytes, int n_rows, int64_t k, void *panel)                           \
    {                                                                                                                            \
        mm_pack(WEFT_##format, rows, row_bytes, n_rows, k, panel);                                                               \
    }                                                                                                                            \
    MM_KERNEL(format, name, avx2, AVX2, name##_pack, weft__act_q8_avx2)

#endif
