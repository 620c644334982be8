// SPDX-License-Identifier: Apache-2.0
/* answer.c: what the writers of both dialects use (answer.h). */
#include <math.h>

#include "api/answer.h"
#include "text/stop.h"

size_t weft__api_entries_shown(const weft__api_choice *c)
{
    size_t n = c->n_entries;
    if (c->stop->found >= 0)
        for (n = 0; n < c->n_entries && c->entries[n].begin < c->text.len;) n++;
    return n;
}

void weft__api_put_floats(weft__strbuf *out, const float *v, int32_t n)
{
    weft__strbuf_putc(out, '[');
    for (int32_t i = 0; i < n; i++)
        weft__strbuf_printf(out, isfinite(v[i]) ? "%s%.9g" : "%snull", i ? "," : "", (double)v[i]);
    weft__strbuf_putc(out, ']');
}
