// SPDX-License-Identifier: Apache-2.0
/* small.h: fitting a block of 32 whose scale (and offset) are f16 numbers of its own. For the files of this room. */
#ifndef WEFT_QUANT_SMALL_H
#define WEFT_QUANT_SMALL_H

#include "quant/super.h"

typedef struct weft__quant_small_fit {
    uint16_t d, m;
    int8_t q[WEFT__QUANT_QK]; /* codes as weft__fit_codes gives them */
} weft__quant_small_fit;

/* Fits 32 values with levels of *lv, with or without an offset m. What is too small for any f16 gives d = m = 0 and the
 * codes of 0. */
void weft__quant_small_encode(const weft__fit_levels *lv, int affine, const float *x, const float *w,
                              weft__quant_small_fit *out);

#endif
