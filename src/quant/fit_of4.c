// SPDX-License-Identifier: Apache-2.0
/* fit_of4.c: one candidate at a time, on any processor; and the codes of a fit. */
#include "quant/fit_lanes.h"
#include "quant/fit_parts.h"

void weft__fit_each_of4(const weft__fit_levels *lv, const weft__fit_span *s, int n, const float *d, const float *m,
                        weft__fit *out)
{
    fit_each(lv, s, n, d, m, out);
}

weft__fit weft__fit_at(const weft__fit_levels *lv, const weft__fit_span *s, float d, float m)
{
    weft__fit f;
    fit_each(lv, s, 1, &d, &m, &f);
    return f;
}

static int index_of(const int8_t *table, int8_t level)
{
    int i = 0;
    while (i < 15 && table[i] != level) i++;
    return i;
}

void weft__fit_codes(const weft__fit_levels *lv, const float *x, int n, float d, float m, int8_t *q)
{
    const float inverse = weft__fit_inverse(d);
    struct fit_steps st = {0};
    if (lv->table) steps_of(lv->table, &st);
    for (int i = 0; i < n; i += 4) {
        const fit_lanes v = (lanes_of4(x + i) - m) * inverse;
        const fit_lanes l = lv->table ? nearest_of_table(&st, v) : nearest_whole(v, lv->lo, lv->hi);
        for (int k = 0; k < 4; k++) q[i + k] = lv->table ? (int8_t)index_of(lv->table, (int8_t)l[k]) : (int8_t)l[k];
    }
}
