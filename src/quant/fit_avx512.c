// SPDX-License-Identifier: Apache-2.0
/* fit_avx512.c: four candidates at once. */
#include <immintrin.h>

#define FIT_LANES 16
#define lanes_of4(p) ((fit_lanes)_mm512_broadcast_f32x4(_mm_loadu_ps(p)))
#define lanes_max(a, b) ((fit_lanes)_mm512_max_ps((__m512)(a), (__m512)(b)))
#define lanes_min(a, b) ((fit_lanes)_mm512_min_ps((__m512)(a), (__m512)(b)))
#include "quant/fit_lanes.h"

void weft__fit_each_avx512(const weft__fit_levels *lv, const weft__fit_span *s, int n, const float *d, const float *m,
                           weft__fit *out)
{
    fit_each(lv, s, n, d, m, out);
}
