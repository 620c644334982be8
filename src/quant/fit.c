// SPDX-License-Identifier: Apache-2.0
/* fit.c: candidates for scale and offset, judged by their true error and improved by least squares. */
#include "quant/fit.h"

#include <math.h>
#include <string.h>

typedef float v4 __attribute__((vector_size(16)));
typedef int32_t i4 __attribute__((vector_size(16)));

enum { BEST = 5, ROUNDS = 6 }; /* how many candidates are improved, and how often at most */

/* Adding and subtracting 1.5 * 2^23 rounds to the nearest whole number (ties to even). */
static const float ROUNDER = 12582912.f;

static v4 load4(const float *p)
{
    v4 v;
    memcpy(&v, p, sizeof v);
    return v;
}

static v4 all4(float x)
{
    return (v4){x, x, x, x};
}

static v4 select4(i4 mask, v4 yes, v4 no)
{
    return (v4)((mask & (i4)yes) | (~mask & (i4)no));
}

static float sum4(v4 v)
{
    return (v[0] + v[2]) + (v[1] + v[3]);
}

/* The whole number from lo to hi that is nearest to v. */
static v4 nearest_whole(v4 v, v4 lo, v4 hi)
{
    v = select4(v < lo, lo, v);
    v = select4(v > hi, hi, v);
    return (v + ROUNDER) - ROUNDER;
}

/* A table's levels as steps: crossing[k] lies halfway between levels k and k + 1, step[k] is their distance. */
struct fit_steps {
    v4 first, crossing[15], step[15];
};

static void steps_of(const int8_t *table, struct fit_steps *st)
{
    st->first = all4(table[0]);
    for (int k = 0; k < 15; k++) {
        st->crossing[k] = all4(0.5f * (float)(table[k] + table[k + 1]));
        st->step[k] = all4((float)(table[k + 1] - table[k]));
    }
}

/* The level nearest to v: each crossing that v passes adds its step. Levels are whole numbers, so the sums are
 * exact. */
static v4 nearest_of_table(const struct fit_steps *st, v4 v)
{
    v4 even = st->first, odd = {0};
    for (int k = 0; k < 14; k += 2) {
        even += (v4)((v > st->crossing[k]) & (i4)st->step[k]);
        odd += (v4)((v > st->crossing[k + 1]) & (i4)st->step[k + 1]);
    }
    return even + odd + (v4)((v > st->crossing[14]) & (i4)st->step[14]);
}

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

/* 1 / d; 0 where d is so small that every value would be far beyond the levels, or 0 itself. */
static float inverse(float d)
{
    return fabsf(d) < 1e-36f ? 0.f : 1.f / d;
}

/* Sums over a span, lane by lane. */
struct fit_sums {
    v4 err, wl, wll, wxl;
};

static void add_to(struct fit_sums *s, v4 x, v4 w, v4 l, v4 d, v4 m)
{
    v4 rest = x - (d * l + m), weighted = w * l;
    s->err += w * rest * rest;
    s->wl += weighted;
    s->wll += weighted * l;
    s->wxl += weighted * x;
}

weft__fit weft__fit_at(const weft__fit_levels *lv, const weft__fit_span *s, float d, float m)
{
    struct fit_sums sums = {0};
    const v4 id = all4(inverse(d)), d4 = all4(d), m4 = all4(m), lo = all4(lv->lo), hi = all4(lv->hi);
    if (lv->table) {
        struct fit_steps st;
        steps_of(lv->table, &st);
        for (int i = 0; i < s->n; i += 4) {
            v4 x = load4(s->x + i);
            add_to(&sums, x, load4(s->w + i), nearest_of_table(&st, (x - m4) * id), d4, m4);
        }
    } else {
        for (int i = 0; i < s->n; i += 4) {
            v4 x = load4(s->x + i);
            add_to(&sums, x, load4(s->w + i), nearest_whole((x - m4) * id, lo, hi), d4, m4);
        }
    }
    return (weft__fit){d, m, sum4(sums.err), sum4(sums.wl), sum4(sums.wll), sum4(sums.wxl)};
}

static int index_of(const int8_t *table, int8_t level)
{
    int i = 0;
    while (i < 15 && table[i] != level) i++;
    return i;
}

void weft__fit_codes(const weft__fit_levels *lv, const float *x, int n, float d, float m, int8_t *q)
{
    const v4 id = all4(inverse(d)), lo = all4(lv->lo), hi = all4(lv->hi);
    struct fit_steps st = {0};
    if (lv->table) steps_of(lv->table, &st);
    for (int i = 0; i < n; i += 4) {
        v4 v = (load4(x + i) - all4(m)) * id;
        v4 l = lv->table ? nearest_of_table(&st, v) : nearest_whole(v, lo, hi);
        for (int k = 0; k < 4; k++) q[i + k] = lv->table ? (int8_t)index_of(lv->table, (int8_t)l[k]) : (int8_t)l[k];
    }
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

/* One step of least squares from the levels of *f; returns 0 when it gives nothing new. */
static int refit(const weft__fit_levels *lv, const weft__fit_span *s, int affine, float max_m, weft__fit *f)
{
    float d, m = 0;
    if (!(f->swll > 0)) return 0;
    d = f->swxl / f->swll;
    if (affine) {
        float det = s->sw * f->swll - f->swl * f->swl;
        if (det > 1e-6f * s->sw * f->swll) {
            float d2 = (s->sw * f->swxl - s->swx * f->swl) / det, m2 = (s->swx - d2 * f->swl) / s->sw;
            if (m2 <= max_m) d = d2, m = m2;
        }
        if (!(d > 0)) return 0;
    }
    weft__fit next = weft__fit_at(lv, s, d, m);
    if (!(next.err < f->err)) return 0;
    *f = next;
    return 1;
}

static weft__fit improve(const weft__fit_levels *lv, const weft__fit_span *s, int affine, float max_m, weft__fit *best)
{
    for (int i = 0; i < BEST; i++)
        for (int k = 0; k < ROUNDS && best[i].err < INFINITY && refit(lv, s, affine, max_m, &best[i]);) k++;
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
    float biggest = fmaxf(fabsf(s->min), fabsf(s->max));
    weft__fit best[BEST];
    if (!(biggest > 0)) return weft__fit_at(lv, s, 0, 0);
    for (int i = 0; i < BEST; i++) best[i].err = INFINITY;
    for (int i = 0; i < lv->n_t; i++) {
        float d = biggest / guess(lv, i);
        offer(best, weft__fit_at(lv, s, d, 0));
        if (lv->lo + lv->hi != 0) offer(best, weft__fit_at(lv, s, -d, 0));
    }
    return improve(lv, s, 0, 0, best);
}

weft__fit weft__fit_affine(const weft__fit_levels *lv, const weft__fit_span *s, float max_m)
{
    float lo = s->min < max_m ? s->min : max_m, range = s->max - lo;
    weft__fit best[BEST];
    if (!(range > 0)) return weft__fit_at(lv, s, 0, lo);
    for (int i = 0; i < BEST; i++) best[i].err = INFINITY;
    for (int i = 0; i < lv->n_t; i++) {
        float d = range / guess(lv, i), centred = 0.5f * (lo + s->max - d * lv->hi);
        for (int phase = -1; phase <= 1; phase++) {
            float m = centred + (float)phase * d / 3;
            offer(best, weft__fit_at(lv, s, d, m < max_m ? m : max_m));
        }
    }
    return improve(lv, s, 1, max_m, best);
}
