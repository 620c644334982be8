/* matmul_pack.h: packing into panels (simd/matmul_layout.h), for AVX2 and all tiers above it. */
#ifndef WEFT_KERNELS_AVX2_MATMUL_PACK_H
#define WEFT_KERNELS_AVX2_MATMUL_PACK_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/simd/matmul_layout.h"

/* As weft__matmul.pack (kernels.h). */
#define MM_PACK_DECLARE(dtype, name)                                                                                             \
    void weft__matmul_pack_##name(const uint8_t *rows, size_t row_bytes, int n_rows, int64_t k, void *panel);
MM_QUANT_32(MM_PACK_DECLARE)
MM_QUANT_256(MM_PACK_DECLARE)
#undef MM_PACK_DECLARE

#endif
