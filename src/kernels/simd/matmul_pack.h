// SPDX-License-Identifier: Apache-2.0
/* matmul_pack.h: packing into panels (matmul_layout.h), plain C that all tiers of vectors share; it is built with AVX2
 * (avx2/matmul_pack.c). */
#ifndef WEFT_KERNELS_SIMD_MATMUL_PACK_H
#define WEFT_KERNELS_SIMD_MATMUL_PACK_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/simd/matmul_layout.h"

/* As weft__matmul.pack (kernels.h). */
#define MM_PACK_DECLARE(dtype, name)                                                                                   \
    void weft__matmul_pack_##name(const uint8_t *rows, size_t row_bytes, int n_rows, int64_t k, void *panel);
MM_QUANT_32(MM_PACK_DECLARE)
MM_QUANT_256(MM_PACK_DECLARE)
#undef MM_PACK_DECLARE

#endif
