// SPDX-License-Identifier: Apache-2.0
/* attn_coded.c: attention over coded pages in AVX-512; the loops are in simd/attn_coded.h. */
#include "kernels/avx512/coded.h"

#define TIER(name) name##_avx512

static inline vi coded_dot(vi sum, const coded_key *k, const int32_t *q)
{
    sum = _mm512_add_epi32(sum, _mm512_madd_epi16(k->even, _mm512_set1_epi32(q[0])));
    return _mm512_add_epi32(sum, _mm512_madd_epi16(k->odd, _mm512_set1_epi32(q[1])));
}

#include "kernels/simd/attn_coded.h"
