// SPDX-License-Identifier: Apache-2.0
/* fit.c: candidates for scale and offset, judged by their true error and improved by least squares. */
#include "quant/fit.h"

#include <math.h>

#include "quant/fit_parts.h"

enum {
    BEST = 5, /* how many candidates are improved, and how often at most */
    ROUNDS = 6,
    CANDIDATES = 64 /* of one search, at most */
};

weft__fit_span weft__fit_span_of(const float *x, const float *w, int n)
{
    weft__fit_span s = {.x = x, .w = w, .n = n, .min = x[0], .max = x[0]};
    for (int i = 0; i < n; i++) {
        s.sw += w[i];
        s.swx += w[i] * x[i];
        s.swxx += w[i] * x[i] * x[i];
        s.min = x[i] < s.min ? x[i] : s.min;
        s.max = x[i] > s.max ? x[i] : s.max;
    }
    return s;
}

const weft__fit_width weft__fit_widths[] = {
#if defined(WEFT_FIT_AVX512)
    {WEFT__TIER_AVX512, weft__fit_each_avx512},
#endif
#if defined(__x86_64__)
    {WEFT__TIER_AVX2, weft__fit_each_avx2},
#endif
    {WEFT__TIER_REF, weft__fit_each_of4}};
const int weft__fit_n_widths = sizeof weft__fit_widths / sizeof *weft__fit_widths;

void weft__fit_each(const weft__fit_levels *lv, const weft__fit_span *s, int n, const float *d, const float *m,
                    weft__fit *out)
{
    const uint32_t tiers = weft__tier_mask();
    const weft__fit_width *width = weft__fit_widths;
    while (!(tiers >> width->tier & 1)) width++;
    width->each(lv, s, n, d, m, out);
}

/* Keeps the BEST candidates of those offered, best first; err INFINITY marks a free place. */
static void offer(weft__fit *best, weft__fit f)
{
    for (int i = 0; i < BEST; i++) {
        if (f.err < best[i].err) {
            weft__fit t = best[i];
            best[i] = f;
            f = t;
        }
    }
}

static void offer_each(const weft__fit_levels *lv, const weft__fit_span *s, int n, const float *d, const float *m,
                       weft__fit *best)
{
    weft__fit f[CANDIDATES];
    weft__fit_each(lv, s, n, d, m, f);
    for (int i = 0; i < BEST; i++) best[i].err = INFINITY;
    for (int i = 0; i < n; i++) offer(best, f[i]);
}

/* One step of least squares from the levels of *f; 0: there is none. */
static int least_squares(const weft__fit_span *s, int affine, float max_m, const weft__fit *f, float *d, float *m)
{
    *m = 0;
    if (!(f->swll > 0)) return 0;
    *d = f->swxl / f->swll;
    if (affine) {
        float det = s->sw * f->swll - f->swl * f->swl;
        if (det > 1e-6f * s->sw * f->swll) {
            float d2 = (s->sw * f->swxl - s->swx * f->swl) / det, m2 = (s->swx - d2 * f->swl) / s->sw;
            if (m2 <= max_m) *d = d2, *m = m2;
        }
        if (!(*d > 0)) return 0;
    }
    return 1;
}

/* Each of the best goes on for as long as a step makes it better. */
static weft__fit improve(const weft__fit_levels *lv, const weft__fit_span *s, int affine, float max_m, weft__fit *best)
{
    int at[BEST], n = 0;
    while (n < BEST && best[n].err < INFINITY) at[n] = n, n++;
    for (int round = 0; n && round < ROUNDS; round++) {
        float d[BEST], m[BEST];
        weft__fit next[BEST];
        int n_steps = 0, n_better = 0;
        for (int i = 0; i < n; i++)
            if (least_squares(s, affine, max_m, &best[at[i]], &d[n_steps], &m[n_steps])) at[n_steps++] = at[i];
        weft__fit_each(lv, s, n_steps, d, m, next);
        for (int i = 0; i < n_steps; i++) {
            if (!(next[i].err < best[at[i]].err)) continue;
            best[at[i]] = next[i];
            at[n_better++] = at[i];
        }
        n = n_better;
    }
    for (int i = 1; i < BEST; i++)
        if (best[i].err < best[0].err) best[0] = best[i];
    return best[0];
}

static float guess(const weft__fit_levels *lv, int i)
{
    return lv->t_first + (lv->t_last - lv->t_first) * (float)i / (float)(lv->n_t - 1);
}

weft__fit weft__fit_scale(const weft__fit_levels *lv, const weft__fit_span *s)
{
    float biggest = fmaxf(fabsf(s->min), fabsf(s->max)), d[CANDIDATES], m[CANDIDATES] = {0};
    weft__fit best[BEST];
    int n = 0;
    if (!(biggest > 0)) return weft__fit_at(lv, s, 0, 0);
    for (int i = 0; i < lv->n_t; i++) {
        d[n++] = biggest / guess(lv, i);
        if (lv->lo + lv->hi != 0) d[n] = -d[n - 1], n++;
    }
    offer_each(lv, s, n, d, m, best);
    return improve(lv, s, 0, 0, best);
}

weft__fit weft__fit_affine(const weft__fit_levels *lv, const weft__fit_span *s, float max_m)
{
    float lo = s->min < max_m ? s->min : max_m, range = s->max - lo, d[CANDIDATES], m[CANDIDATES];
    weft__fit best[BEST];
    int n = 0;
    if (!(range > 0)) return weft__fit_at(lv, s, 0, lo);
    for (int i = 0; i < lv->n_t; i++) {
        float scale = range / guess(lv, i), centred = 0.5f * (lo + s->max - scale * lv->hi);
        for (int phase = -1; phase <= 1; phase++) {
            float offset = centred + (float)phase * scale / 3;
            d[n] = scale;
            m[n++] = offset < max_m ? offset : max_m;
        }
    }
    offer_each(lv, s, n, d, m, best);
    return improve(lv, s, 1, max_m, best);
}
