/* matmul_pack.h: packing into panels of 16 rows (simd/matmul_layout.h), shared by the tiers of AVX-512. */
#ifndef WEFT_KERNELS_AVX512_MATMUL_PACK_H
#define WEFT_KERNELS_AVX512_MATMUL_PACK_H

#include <stddef.h>
#include <stdint.h>

/* X(dtype, name) for every quantized format. */
#define MM_QUANT_LIST(X)                                                                                                         \
    X(Q4_0, q4_0)                                                                                                                \
    X(Q4_1, q4_1)                                                                                                                \
    X(Q5_0, q5_0)                                                                                                                \
    X(Q5_1, q5_1)                                                                                                                \
    X(Q8_0, q8_0)                                                                                                                \
    X(Q2_K, q2_k)                                                                                                                \
    X(Q3_K, q3_k)                                                                                                                \
    X(Q4_K, q4_k)                                                                                                                \
    X(Q5_K, q5_k)                                                                                                                \
    X(Q6_K, q6_k)                                                                                                                \
    X(IQ4_NL, iq4_nl)                                                                                                            \
    X(IQ4_XS, iq4_xs)

/* As weft__matmul.pack (kernels.h). */
#define MM_PACK_DECLARE(dtype, name)                                                                                             \
    void weft__matmul_pack16_##name(const uint8_t *rows, size_t row_bytes, int n_rows, int64_t k, void *panel);
MM_QUANT_LIST(MM_PACK_DECLARE)
#undef MM_PACK_DECLARE

#endif
