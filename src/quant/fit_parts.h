// SPDX-License-Identifier: Apache-2.0
/* fit_parts.h: weft__fit_each by the width of registers; all give the same bits. For fit*.c and its test. */
#ifndef WEFT_QUANT_FIT_PARTS_H
#define WEFT_QUANT_FIT_PARTS_H

#include "base/cpu.h"
#include "quant/fit.h"

typedef void weft__fit_each_fn(const weft__fit_levels *lv, const weft__fit_span *s, int n, const float *d,
                               const float *m, weft__fit *out);
weft__fit_each_fn weft__fit_each_of4, weft__fit_each_avx2, weft__fit_each_avx512;

/* Those that this build has, the widest first; the last one wants nothing. */
typedef struct weft__fit_width {
    weft__tier tier;
    weft__fit_each_fn *each;
} weft__fit_width;
extern const weft__fit_width weft__fit_widths[];
extern const int weft__fit_n_widths;

#endif
