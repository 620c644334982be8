// SPDX-License-Identifier: Apache-2.0
/* code_q4.h: a block of WEFT_KV_Q4 (kernels.h: kv_code_k), for the vectors of the file that includes it. Every element
 * is computed by the operations that ref has, and sums are taken in its order, so the bits are ref's. */
#ifndef WEFT_KERNELS_SIMD_CODE_Q4_H
#define WEFT_KERNELS_SIMD_CODE_Q4_H

#include "kernels/simd/code.h"
#include "quant/blocks.h"
#include "quant/half.h"

enum { Q4_BLOCK = WEFT__ATTN_Q4_BLOCK, Q4_VECTORS = Q4_BLOCK / VF_N };

/* Half-way between one of the sixteen values and the next. */
#define Q4_HALF_WAY                                                                                                    \
    {                                                                                                                  \
        -115.5f, -93.5f, -74, -57, -42, -28.5f, -16, -4.5f, 7, 19, 31.5f, 45.5f, 61, 79, 101                           \
    }

/* The nearest of the sixteen values; *code: which. */
static inline vf q4_nearest(vf x, vf *code)
{
    static const float half_way[15] = Q4_HALF_WAY;
    vf value = vf_set(weft__block_iq4_values[0]), n = vf_zero();
    for (int i = 0; i < 15; i++) {
        const vm above = vf_less(vf_set(half_way[i]), x);
        value = vf_select(above, vf_set(weft__block_iq4_values[i + 1]), value);
        if (code) n = vf_select(above, vf_set((float)(i + 1)), n);
    }
    if (code) *code = n;
    return value;
}

/* Every lane has the sum of the block, taken in halves. */
static inline vf q4_sum(const vf x[Q4_VECTORS])
{
#if VF_N > 8
    vf s = vf_add(x[0], x[1]);
    s = vf_add(s, vf_swap_halves(s));
#else
    vf s = vf_add(vf_add(x[0], x[2]), vf_add(x[1], x[3]));
#endif
    s = vf_add(s, vf_swap_eights(s));
    s = vf_add(s, vf_swap_fours(s));
    return vf_add(s, vf_swap_pairs(s));
}

/* The codes of a block of n <= 32 finite elements, 0 behind them; returns its scale. */
static inline uint16_t q4_block(const float *x, int n, uint8_t codes[Q4_BLOCK])
{
    static const float places[] = {WEFT__ATTN_Q4_PLACES};
    vf v[Q4_VECTORS], most = vf_zero(), best = vf_zero(), scale = vf_zero();
    vm there[Q4_VECTORS];
    for (int j = 0; j < Q4_VECTORS; j++) {
        const int left = n - j * VF_N < 0 ? 0 : n - j * VF_N < VF_N ? n - j * VF_N : VF_N;
        v[j] = left ? vf_get(x + j * VF_N, left) : vf_zero();
        there[j] = vm_range(0, left);
        most = vf_max(vf_abs(v[j]), most);
    }
    const float largest = vf_most(most);
    if (largest < WEFT__ATTN_CODED_LEAST) {
        memset(codes, 0, Q4_BLOCK);
        return 0;
    }
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const vf factor = vf_set(places[i] / largest);
        vf products[Q4_VECTORS], squares[Q4_VECTORS];
        for (int j = 0; j < Q4_VECTORS; j++) {
            const vf y = vf_mul(v[j], factor), value = vf_select(there[j], q4_nearest(y, NULL), vf_zero());
            products[j] = vf_mul(y, value);
            squares[j] = vf_mul(value, value);
        }
        const vf product = vf_mul(q4_sum(products), vf_set(1 / places[i])), s = vf_div(product, q4_sum(squares));
        const vf gain = vf_mul(product, s);
        const vm better = vf_less(best, gain);
        best = vf_select(better, gain, best);
        scale = vf_select(better, s, scale);
    }
    const uint16_t bits = weft__bf16_from_f32(vf_most(scale) * largest); /* all lanes have the same */
    const vf inverse = vf_set(1 / weft__bf16_to_f32(bits));
    for (int j = 0; j < Q4_VECTORS; j++) {
        vf code;
        int8_t whole[VF_N];
        (void)q4_nearest(vf_mul(v[j], inverse), &code);
        vf_store_i8(whole, vf_select(there[j], code, vf_zero()));
        memcpy(codes + j * VF_N, whole, sizeof whole);
    }
    return bits;
}

#endif
