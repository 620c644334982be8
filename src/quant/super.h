// SPDX-License-Identifier: Apache-2.0
/* super.h: fitting a super-block of 256: sub-blocks whose scales (and minima) are whole multiples of a common f16.
 *
 * Values are first brought to a largest magnitude of 1 to 4 by a power of two, so that squares neither overflow nor
 * vanish; only the f16 numbers know the true magnitude. For the files of this room. */
#ifndef WEFT_QUANT_SUPER_H
#define WEFT_QUANT_SUPER_H

#include "quant/blocks.h"
#include "quant/fit.h"

/* A block or super-block brought to magnitude 1: true value = x * up. */
typedef struct weft__quant_scaled {
    float x[WEFT__QUANT_QK_K];
    const float *w; /* [n], the caller's */
    int n;
    float up, down; /* powers of two; up * down = 1 */
} weft__quant_scaled;

/* Returns 0, with nothing filled in, when the values are all zero or so small that no format has a scale for them. */
int weft__quant_scaled_from(weft__quant_scaled *s, const float *x, const float *w, int n);

/* The f16 nearest to v * up (v * up beyond its range: the largest finite one); *back is its value, scaled down
 * again. */
uint16_t weft__quant_scaled_half(const weft__quant_scaled *s, float v, float *back);
/* The value of f16 number h, scaled down. */
float weft__quant_scaled_back(const weft__quant_scaled *s, uint16_t h);

#define WEFT__QUANT_SUBS_MAX 16

/* x = d * scale * level - dmin * min, in sub-blocks of `sub` values. */
typedef struct weft__quant_super {
    weft__fit_levels levels;
    int sub;                /* values in a sub-block */
    int scale_lo, scale_hi; /* whole numbers that a scale may be */
    int min_hi;             /* 0: no minima */
} weft__quant_super;

typedef struct weft__quant_super_fit {
    uint16_t d, dmin;
    int scale[WEFT__QUANT_SUBS_MAX], min[WEFT__QUANT_SUBS_MAX];
    int8_t q[WEFT__QUANT_QK_K]; /* codes as weft__fit_codes gives them */
} weft__quant_super_fit;

/* Fits 256 values. What is too small for any scale gives zeros throughout. */
void weft__quant_super_encode(const weft__quant_super *form, const float *x, const float *w,
                              weft__quant_super_fit *out);

#endif
