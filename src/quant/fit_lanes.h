// SPDX-License-Identifier: Apache-2.0
/* fit_lanes.h: weft__fit_each of FIT_LANES floats, for the file that includes it: FIT_LANES / 4 candidates side by
 * side, each in four lanes of its own, whose sums are taken in the order in which four lanes alone take them. So every
 * width gives the same bits. Who defines FIT_LANES has lanes_of4(p), four floats again and again, and lanes_max(a, b),
 * lanes_min(a, b), of which b stays where the operands are equal; else FIT_LANES is 4. */
#ifndef WEFT_QUANT_FIT_LANES_H
#define WEFT_QUANT_FIT_LANES_H

#include <math.h>
#include <string.h>

#include "quant/fit.h"

#ifdef FIT_LANES
#define FIT_WIDE
#else
#define FIT_LANES 4
#endif

enum { FIT_AT_ONCE = FIT_LANES / 4, FIT_BYTES = 4 * FIT_LANES };
typedef float fit_lanes __attribute__((vector_size(FIT_BYTES)));
typedef int32_t fit_mask __attribute__((vector_size(FIT_BYTES)));

#ifndef FIT_WIDE
static fit_lanes lanes_of4(const float *p)
{
    fit_lanes v;
    memcpy(&v, p, sizeof v);
    return v;
}

static fit_lanes lanes_select(fit_mask mask, fit_lanes yes, fit_lanes no)
{
    return (fit_lanes)((mask & (fit_mask)yes) | (~mask & (fit_mask)no));
}

static fit_lanes lanes_max(fit_lanes a, fit_lanes b)
{
    return lanes_select(a > b, a, b);
}

static fit_lanes lanes_min(fit_lanes a, fit_lanes b)
{
    return lanes_select(a < b, a, b);
}
#endif

/* Adding and subtracting 1.5 * 2^23 rounds to the nearest whole number (ties to even). */
static const float ROUNDER = 12582912.f;

/* Candidate k's value in its four lanes. */
static fit_lanes lanes_each(const float *value)
{
    float all[FIT_LANES];
    fit_lanes v;
    for (int i = 0; i < FIT_LANES; i++) all[i] = value[i / 4];
    memcpy(&v, all, sizeof v);
    return v;
}

static fit_lanes lanes_all(float x)
{
    return (fit_lanes){0} + x;
}

/* A table's levels as steps: crossing[k] lies halfway between levels k and k + 1, step[k] is their distance. */
struct fit_steps {
    float first, crossing[15], step[15];
};

static void steps_of(const int8_t *table, struct fit_steps *st)
{
    st->first = table[0];
    for (int k = 0; k < 15; k++) {
        st->crossing[k] = 0.5f * (float)(table[k] + table[k + 1]);
        st->step[k] = (float)(table[k + 1] - table[k]);
    }
}

static fit_lanes step_at(const struct fit_steps *st, int k, fit_lanes v)
{
    return (fit_lanes)((fit_mask)(v > lanes_all(st->crossing[k])) & (fit_mask)lanes_all(st->step[k]));
}

/* The level nearest to v: each crossing that v passes adds its step. Levels are whole numbers, so the sums are
 * exact. */
static fit_lanes nearest_of_table(const struct fit_steps *st, fit_lanes v)
{
    fit_lanes even = lanes_all(st->first), odd = {0};
    for (int k = 0; k < 14; k += 2) {
        even += step_at(st, k, v);
        odd += step_at(st, k + 1, v);
    }
    return even + odd + step_at(st, 14, v);
}

/* The whole number from lo to hi that is nearest to v. */
static fit_lanes nearest_whole(fit_lanes v, float lo, float hi)
{
    v = lanes_max(lanes_all(lo), v);
    v = lanes_min(lanes_all(hi), v);
    return (v + ROUNDER) - ROUNDER;
}

static float lanes_sum(const fit_lanes *v, int k)
{
    float x[4];
    memcpy(x, (const char *)v + 16 * k, sizeof x);
    return (x[0] + x[2]) + (x[1] + x[3]);
}

/* FIT_AT_ONCE candidates. */
static void fit_some(const weft__fit_levels *lv, const struct fit_steps *st, const weft__fit_span *s, const float *d,
                     const float *m, weft__fit *out)
{
    float inverse[FIT_AT_ONCE];
    for (int k = 0; k < FIT_AT_ONCE; k++) inverse[k] = weft__fit_inverse(d[k]);
    const fit_lanes dv = lanes_each(d), mv = lanes_each(m), id = lanes_each(inverse);
    fit_lanes err = {0}, wl = {0}, wll = {0}, wxl = {0};
    for (int i = 0; i < s->n; i += 4) {
        const fit_lanes x = lanes_of4(s->x + i), w = lanes_of4(s->w + i), v = (x - mv) * id;
        const fit_lanes l = lv->table ? nearest_of_table(st, v) : nearest_whole(v, lv->lo, lv->hi);
        const fit_lanes rest = x - (dv * l + mv), weighted = w * l;
        err += w * rest * rest;
        wl += weighted;
        wll += weighted * l;
        wxl += weighted * x;
    }
    for (int k = 0; k < FIT_AT_ONCE; k++)
        out[k] = (weft__fit){d[k], m[k], lanes_sum(&err, k), lanes_sum(&wl, k), lanes_sum(&wll, k), lanes_sum(&wxl, k)};
}

static void fit_each(const weft__fit_levels *lv, const weft__fit_span *s, int n, const float *d, const float *m,
                     weft__fit *out)
{
    struct fit_steps st = {0};
    float last_d[FIT_AT_ONCE], last_m[FIT_AT_ONCE];
    weft__fit last[FIT_AT_ONCE];
    int i = 0;
    if (lv->table) steps_of(lv->table, &st);
    for (; i + FIT_AT_ONCE <= n; i += FIT_AT_ONCE) fit_some(lv, &st, s, d + i, m + i, out + i);
    if (i >= n) return;
    for (int k = 0; k < FIT_AT_ONCE; k++) {
        last_d[k] = i + k < n ? d[i + k] : d[i];
        last_m[k] = i + k < n ? m[i + k] : m[i];
    }
    fit_some(lv, &st, s, last_d, last_m, last);
    for (int k = 0; k < FIT_AT_ONCE && i + k < n; k++) out[i + k] = last[k];
}

#endif
