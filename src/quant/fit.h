// SPDX-License-Identifier: Apache-2.0
/* fit.h: the search for the scale d and the offset m that make x[i] ~ d * level(q[i]) + m with the least weighted
 * squared error.
 *
 * Levels are whole numbers lo..hi, or the sixteen of a table. Every candidate (d, m) is judged by its true error, each
 * x taking the nearest level; a candidate is improved by alternating least squares: with q fixed, the best d and m
 * solve the normal equations. n is a multiple of 4 and at most WEFT__QUANT_QK_K; sums are taken in one order, by four
 * lanes. For the files of this room. */
#ifndef WEFT_QUANT_FIT_H
#define WEFT_QUANT_FIT_H

#include <stdint.h>

/* The levels of a format, and where to look: a first guess of d is (largest magnitude, or range) / t, for n_t values of
 * t evenly spaced over t_first..t_last. */
typedef struct weft__fit_levels {
    float lo, hi;
    const int8_t *table; /* 16 rising levels; NULL: lo, lo + 1 ... hi */
    float t_first, t_last;
    int n_t;
} weft__fit_levels;

/* Values and their weights, with what every fit of them needs. */
typedef struct weft__fit_span {
    const float *x, *w; /* [n] */
    int n;
    float sw, swx, swxx; /* sums of w, w * x, w * x^2 */
    float min, max;      /* of x */
} weft__fit_span;

/* A fit and its sums over the span; l is the level taken. */
typedef struct weft__fit {
    float d, m;
    float err;             /* sum of w * (x - d * l - m)^2 */
    float swl, swll, swxl; /* sums of w * l, w * l^2, w * x * l */
} weft__fit;

weft__fit_span weft__fit_span_of(const float *x, const float *w, int n);

/* 1 / d; 0 where d is so small that every value would be far beyond the levels, or 0 itself. */
static inline float weft__fit_inverse(float d)
{
    return __builtin_fabsf(d) < 1e-36f ? 0.f : 1.f / d;
}

/* The fit of given d and m. */
weft__fit weft__fit_at(const weft__fit_levels *lv, const weft__fit_span *s, float d, float m);
/* The same of n pairs, several at once as wide as registers are, with the same bits. */
void weft__fit_each(const weft__fit_levels *lv, const weft__fit_span *s, int n, const float *d, const float *m,
                    weft__fit *out);

/* Searches d of either sign with m = 0. */
weft__fit weft__fit_scale(const weft__fit_levels *lv, const weft__fit_span *s);

/* Searches d >= 0 and m, for whole levels from 0; max_m is the largest m allowed (0 for formats that subtract a
 * minimum, else INFINITY). */
weft__fit weft__fit_affine(const weft__fit_levels *lv, const weft__fit_span *s, float max_m);

/* The codes of a fit: whole levels, or indices into the table. */
void weft__fit_codes(const weft__fit_levels *lv, const float *x, int n, float d, float m, int8_t *q);

/* An error of this part of the sum of w * x^2 is no more than what rounding d to f16 costs: the levels fit by
 * themselves. */
#define WEFT__FIT_EXACT 1e-6f

#endif
