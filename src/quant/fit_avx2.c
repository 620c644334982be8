// SPDX-License-Identifier: Apache-2.0
/* fit_avx2.c: two candidates at once. */
#include <immintrin.h>

#define FIT_LANES 8
#define lanes_of4(p) ((fit_lanes)_mm256_broadcast_ps((const __m128 *)(const void *)(p)))
#define lanes_max(a, b) ((fit_lanes)_mm256_max_ps((__m256)(a), (__m256)(b)))
#define lanes_min(a, b) ((fit_lanes)_mm256_min_ps((__m256)(a), (__m256)(b)))
#include "quant/fit_lanes.h"

void weft__fit_each_avx2(const weft__fit_levels *lv, const weft__fit_span *s, int n, const float *d, const float *m,
                         weft__fit *out)
{
    fit_each(lv, s, n, d, m, out);
}
