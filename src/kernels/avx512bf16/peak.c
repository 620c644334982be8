// SPDX-License-Identifier: Apache-2.0
/* peak.c: what VDPBF16PS reaches on registers (kernels.h). Reentrant. */
#include <immintrin.h>

#include "kernels/list.h"

#define PEAK_VEC __m512
#define PEAK_ZERO _mm512_setzero_ps()
#define PEAK_STEP(acc) _mm512_dpbf16_ps(acc, (__m512bh)_mm512_set1_epi16(0x3F00), (__m512bh)_mm512_set1_epi16(0x3F00))
#include "kernels/simd/peak.h"

double weft__peak_bf16_dot_avx512bf16(int ms)
{
    return peak_spin(ms, 64);
}
