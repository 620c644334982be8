/* matmul_pack.c: packing of quantized weights for AVX-512. Reentrant. */
#include "kernels/avx512/matmul_pack.h"

#include "kernels/simd/matmul_pack.h"

#define MM_PACK_DEFINE(dtype, name)                                                                                              \
    void weft__matmul_pack16_##name(const uint8_t *rows, size_t row_bytes, int n_rows, int64_t k, void *panel)                   \
    {                                                                                                                            \
        mm_pack(WEFT_##dtype, rows, row_bytes, n_rows, k, panel);                                                                \
    }
MM_QUANT_32(MM_PACK_DEFINE)
MM_QUANT_256(MM_PACK_DEFINE)
