// SPDX-License-Identifier: Apache-2.0
/* peak.c: what AVX-512 reaches on registers, and when reading (kernels.h). Reentrant. */
#include <immintrin.h>

#include "kernels/list.h"
#include "kernels/simd/unroll.h"

/* As in AVX2 (avx2/peak.c, which says why). */
static __m512i int8_step(__m512i acc)
{
    __m512i w = _mm512_set1_epi8(1);
    __asm__ volatile("" : SIMD_REGISTER(w));
    return _mm512_add_epi16(acc, _mm512_maddubs_epi16(w, w));
}

#define PEAK_VEC __m512i
#define PEAK_ZERO _mm512_setzero_si512()
#define PEAK_STEP(acc) int8_step(acc)
#define peak_spin int8_spin
#include "kernels/simd/peak.h"
#undef PEAK_VEC
#undef PEAK_ZERO
#undef PEAK_STEP
#undef peak_spin

double weft__peak_int8_dot_avx512(int ms)
{
    return int8_spin(ms, 128);
}

#define PEAK_VEC __m512
#define PEAK_ZERO _mm512_setzero_ps()
#define PEAK_STEP(acc) _mm512_fmadd_ps(_mm512_set1_ps(0.5f), _mm512_set1_ps(0.5f), acc)
#define peak_spin f32_spin
#include "kernels/simd/peak.h"

double weft__peak_f32_fma_avx512(int ms)
{
    return f32_spin(ms, 32);
}

uint64_t weft__peak_read_avx512(const void *p, size_t n_bytes)
{
    enum { AHEAD = 3072 }; /* bytes, into the second level */
    const char *at = p;
    __m512i x[8];
    for (int i = 0; i < 8; i++) x[i] = _mm512_setzero_si512();
    for (; n_bytes >= 512; n_bytes -= 512, at += 512) {
        for (int i = 0; i < 8; i++) {
            _mm_prefetch(at + AHEAD + 64 * i, _MM_HINT_T1);
            x[i] = _mm512_xor_si512(x[i], _mm512_load_si512((const __m512i *)at + i));
        }
    }
    for (int i = 1; i < 8; i++) x[0] = _mm512_xor_si512(x[0], x[i]);
    uint64_t words[8], y = 0;
    _mm512_storeu_si512(words, x[0]);
    for (int i = 0; i < 8; i++) y ^= words[i];
    for (; n_bytes; n_bytes--) y ^= (unsigned char)*at++;
    return y;
}
