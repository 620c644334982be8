// SPDX-License-Identifier: Apache-2.0
/* attn_coded.c: attention over coded pages in AVX-512 with VPDPBUSD; the loops are in simd/attn_coded.h. */
#include "kernels/avx512/vec.h"

#include <string.h>

#define TIER(name) name##_avx512vnni
/* 32 registers: 8 x 2 sums, a key. The query's word comes as a broadcast operand. */
#define TILE_QUERIES 8
#define TILE_VECTORS 2
#define SOFTMAX_QUERIES 4

typedef __m512i vi;

#define CODED_WORDS 1
typedef vi coded_key;

static inline vi vi_set(int32_t x)
{
    return _mm512_set1_epi32(x);
}

static inline vf vi_to_float(vi a)
{
    return _mm512_cvtepi32_ps(a);
}

static inline void coded_query(const int8_t *codes, int32_t *words)
{
    memcpy(words, codes, sizeof *words);
}

static inline coded_key coded_load(const uint8_t *p)
{
    return _mm512_loadu_si512(p);
}

/* The query's word is read by the instruction itself: of the intrinsic, GCC makes copies of the sums. (tests/emulated
 * compiles this without the instruction.) */
static inline vi coded_dot(vi sum, const coded_key *k, const int32_t *q)
{
#ifdef __AVX512VNNI__
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(*k), "m"(*q));
    return sum;
#else
    return _mm512_dpbusd_epi32(sum, *k, _mm512_set1_epi32(*q));
#endif
}

#include "kernels/simd/attn_coded.h"
