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

/* Tries scale d with the offsets about the best one for it. */
static void try_half(const weft__fit_levels *lv, int affine, const weft__quant_scaled *s, const weft__fit_span *span,
                     const weft__fit *free, uint16_t d, struct rounded *best)
{
    float d_value = weft__quant_scaled_back(s, d), m_value = 0;
    uint16_t m = affine ? weft__quant_scaled_half(s, (span->swx - d_value * free->swl) / span->sw, &m_value) : 0;
    for (int step = affine ? -1 : 0; step <= (affine ? 1 : 0); step++) {
        uint16_t beside = half_beside(m, step);
        weft__fit f = weft__fit_at(lv, span, d_value, weft__quant_scaled_back(s, beside));
        if (f.err < best->fit.err) *best = (struct rounded){f, d, beside};
    }
}

/* For blocks that the levels fit exactly (a few values, evenly spaced): the rounding of d is then all the error, and
 * another number of steps over the same values may have none. */
static void try_steps(const weft__fit_levels *lv, int affine, const weft__quant_scaled *s, const weft__fit_span *span,
                      const weft__fit *free, struct rounded *best)
{
    float whole = affine ? span->max - span->min : fmaxf(fabsf(span->min), fabsf(span->max)), ignored;
    for (int n_steps = 1; (float)n_steps <= lv->hi; n_steps++) {
        weft__fit other = weft__fit_at(lv, span, whole / (float)n_steps, affine ? span->min : 0);
        if (!(other.err <= WEFT__FIT_EXACT * span->swxx)) continue;
        try_half(lv, affine, s, span, &other, weft__quant_scaled_half(s, other.d, &ignored), best);
        if (!affine) try_half(lv, affine, s, span, free, weft__quant_scaled_half(s, -other.d, &ignored), best);
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
    for (int step = -1; step <= 1; step++) try_half(lv, affine, &s, &span, &free, half_beside(d, step), &best);
    if (!lv->table && best.fit.err <= WEFT__FIT_EXACT * span.swxx) try_steps(lv, affine, &s, &span, &free, &best);
    out->d = best.d;
    out->m = best.m;
    weft__fit_codes(lv, s.x, WEFT__QUANT_QK, best.fit.d, best.fit.m, out->q);
}
