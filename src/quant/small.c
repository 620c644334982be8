// SPDX-License-Identifier: Apache-2.0
/* small.c: blocks of 32. The search knows nothing of f16; the rounded numbers nearest to its result are then
 * compared. */
#include "quant/small.h"

#include <math.h>
#include <string.h>

#include "quant/half.h"

/* The f16 number `step` (-1, 0, 1) places further from zero than h, whose sign it keeps; h itself where there is
 * none. */
static uint16_t half_beside(uint16_t h, int step)
{
    int magnitude = (h & 0x7fff) + step;
    return magnitude < 0 || magnitude > 0x7bff ? h : (uint16_t)((h & 0x8000) | magnitude);
}

struct rounded {
    weft__fit fit;
    uint16_t d, m;
};

enum { HALVES = 3, OFFSETS = 3, STEPS_AT_ONCE = 16 };

/* Tries n <= HALVES scales with the offsets about the best one for each. */
static void try_halves(const weft__fit_levels *lv, int affine, const weft__quant_scaled *s, const weft__fit_span *span,
                       const weft__fit *free, int n, const uint16_t *half, struct rounded *best)
{
    struct rounded all[HALVES * OFFSETS];
    weft__fit fit[HALVES * OFFSETS];
    float d[HALVES * OFFSETS] = {0}, m[HALVES * OFFSETS] = {0}, ignored;
    int n_all = 0;
    for (int i = 0; i < n; i++) {
        const float value = weft__quant_scaled_back(s, half[i]);
        uint16_t middle = affine ? weft__quant_scaled_half(s, (span->swx - value * free->swl) / span->sw, &ignored) : 0;
        for (int step = affine ? -1 : 0; step <= (affine ? 1 : 0); step++, n_all++) {
            all[n_all] = (struct rounded){.d = half[i], .m = half_beside(middle, step)};
            d[n_all] = value;
            m[n_all] = weft__quant_scaled_back(s, all[n_all].m);
        }
    }
    weft__fit_each(lv, span, n_all, d, m, fit);
    for (int i = 0; i < n_all; i++)
        if (fit[i].err < best->fit.err) *best = (struct rounded){fit[i], all[i].d, all[i].m};
}

/* For blocks that the levels fit exactly (a few values, evenly spaced): the rounding of d is then all the error, and
 * another number of steps over the same values may have none. */
static void try_steps(const weft__fit_levels *lv, int affine, const weft__quant_scaled *s, const weft__fit_span *span,
                      const weft__fit *free, struct rounded *best)
{
    const float whole = affine ? span->max - span->min : fmaxf(fabsf(span->min), fabsf(span->max));
    float ignored, d[STEPS_AT_ONCE], m[STEPS_AT_ONCE];
    weft__fit other[STEPS_AT_ONCE];
    for (int first = 1, n = 0; (float)first <= lv->hi; first += n) {
        for (n = 0; n < STEPS_AT_ONCE && (float)(first + n) <= lv->hi; n++) {
            d[n] = whole / (float)(first + n);
            m[n] = affine ? span->min : 0;
        }
        weft__fit_each(lv, span, n, d, m, other);
        for (int i = 0; i < n; i++) {
            if (!(other[i].err <= WEFT__FIT_EXACT * span->swxx)) continue;
            uint16_t half = weft__quant_scaled_half(s, other[i].d, &ignored);
            try_halves(lv, affine, s, span, &other[i], 1, &half, best);
            half = weft__quant_scaled_half(s, -other[i].d, &ignored);
            if (!affine) try_halves(lv, affine, s, span, free, 1, &half, best);
        }
    }
}

void weft__quant_small_encode(const weft__fit_levels *lv, int affine, const float *x, const float *w,
                              weft__quant_small_fit *out)
{
    weft__quant_scaled s;
    struct rounded best = {.fit.err = INFINITY};
    float ignored;
    memset(out, 0, sizeof *out);
    if (!weft__quant_scaled_from(&s, x, w, WEFT__QUANT_QK)) {
        weft__fit_codes(lv, x, WEFT__QUANT_QK, 0, 0, out->q);
        return;
    }
    weft__fit_span span = weft__fit_span_of(s.x, w, WEFT__QUANT_QK);
    weft__fit free = affine ? weft__fit_affine(lv, &span, INFINITY) : weft__fit_scale(lv, &span);
    uint16_t d = weft__quant_scaled_half(&s, free.d, &ignored);
    const uint16_t halves[HALVES] = {half_beside(d, -1), d, half_beside(d, 1)};
    try_halves(lv, affine, &s, &span, &free, HALVES, halves, &best);
    if (!lv->table && best.fit.err <= WEFT__FIT_EXACT * span.swxx) try_steps(lv, affine, &s, &span, &free, &best);
    out->d = best.d;
    out->m = best.m;
    weft__fit_codes(lv, s.x, WEFT__QUANT_QK, best.fit.d, best.fit.m, out->q);
}
