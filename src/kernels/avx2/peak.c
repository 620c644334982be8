// SPDX-License-Identifier: Apache-2.0
/* peak.c: what AVX2 reaches on registers, and when reading (kernels.h). Reentrant. */
#include <immintrin.h>

#include "kernels/list.h"

/* Products of unsigned and signed bytes, two of which come as a sum of 16 bits, take two instructions here, and
 * widening one sum of a few. w may be anything: it is only kept from being a constant, whose product would be made
 * once. */
static __m256i int8_step(__m256i acc)
{
    __m256i w = _mm256_set1_epi8(1);
    __asm__ volatile("" : "+x"(w));
    return _mm256_add_epi16(acc, _mm256_maddubs_epi16(w, w));
}

#define PEAK_VEC __m256i
#define PEAK_ZERO _mm256_setzero_si256()
#define PEAK_STEP(acc) int8_step(acc)
#define peak_spin int8_spin
#include "kernels/simd/peak.h"
#undef PEAK_VEC
#undef PEAK_ZERO
#undef PEAK_STEP
#undef peak_spin

double weft__peak_int8_dot_avx2(int ms)
{
    return int8_spin(ms, 64);
}

#define PEAK_VEC __m256
#define PEAK_ZERO _mm256_setzero_ps()
#define PEAK_STEP(acc) _mm256_fmadd_ps(_mm256_set1_ps(0.5f), _mm256_set1_ps(0.5f), acc)
#define peak_spin f32_spin
#include "kernels/simd/peak.h"

double weft__peak_f32_fma_avx2(int ms)
{
    return f32_spin(ms, 16);
}

uint64_t weft__peak_read_avx2(const void *p, size_t n_bytes)
{
    enum { AHEAD = 3072 }; /* bytes, into the second level */
    const char *at = p;
    __m256i x[8];
    for (int i = 0; i < 8; i++) x[i] = _mm256_setzero_si256();
    for (; n_bytes >= 256; n_bytes -= 256, at += 256) {
        for (int i = 0; i < 4; i++) _mm_prefetch(at + AHEAD + 64 * i, _MM_HINT_T1);
        for (int i = 0; i < 8; i++) x[i] = _mm256_xor_si256(x[i], _mm256_load_si256((const __m256i *)at + i));
    }
    for (int i = 1; i < 8; i++) x[0] = _mm256_xor_si256(x[0], x[i]);
    uint64_t y = (uint64_t)(_mm256_extract_epi64(x[0], 0) ^ _mm256_extract_epi64(x[0], 1) ^
                            _mm256_extract_epi64(x[0], 2) ^ _mm256_extract_epi64(x[0], 3));
    for (; n_bytes; n_bytes--) y ^= (unsigned char)*at++;
    return y;
}
