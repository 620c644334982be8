// SPDX-License-Identifier: Apache-2.0
/* peak.c: what VPDPBUSD reaches on registers (kernels.h). Reentrant. */
#include <immintrin.h>

#include "kernels/list.h"

#define PEAK_VEC __m512i
#define PEAK_ZERO _mm512_setzero_si512()
#define PEAK_STEP(acc) _mm512_dpbusd_epi32(acc, _mm512_set1_epi8(1), _mm512_set1_epi8(1))
#include "kernels/simd/peak.h"

double weft__peak_int8_dot_avx512vnni(int ms)
{
    return peak_spin(ms, 128);
}
