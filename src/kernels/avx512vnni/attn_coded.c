// SPDX-License-Identifier: Apache-2.0
/* attn_coded.c: attention over coded pages in AVX-512 with VPDPWSSD; the loops are in simd/attn_coded.h. */
#include "kernels/avx512/coded.h"

#define TIER(name) name##_avx512vnni

/* The query's words are read by the instruction itself: of the intrinsic, GCC makes copies of the sums.
 * (tests/emulated compiles this without the instruction.) */
static inline vi coded_dot(vi sum, const coded_key *k, const int32_t *q)
{
#ifdef __AVX512VNNI__
    __asm__("vpdpwssd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(k->even), "m"(q[0]));
    __asm__("vpdpwssd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(k->odd), "m"(q[1]));
    return sum;
#else
    sum = _mm512_add_epi32(sum, _mm512_madd_epi16(k->even, _mm512_set1_epi32(q[0])));
    return _mm512_add_epi32(sum, _mm512_madd_epi16(k->odd, _mm512_set1_epi32(q[1])));
#endif
}

#include "kernels/simd/attn_coded.h"
