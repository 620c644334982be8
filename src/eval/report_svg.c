// SPDX-License-Identifier: Apache-2.0
/* report_svg.c: the picture of a report (report.h): a bar per filter and metric with its 95 %, the baseline's in grey
 * above it, and what the pair's test says. Rates share one scale; other figures have each their own. Stateless. */
#include <math.h>
#include <stdio.h>

#include "base/svg.h"
#include "eval/report.h"

enum { WIDTH = 860, LEFT = 260, RIGHT = 190, TOP = 56, ROW = 44 };

static double x_of(double v, double most)
{
    const double share = isfinite(v) && most > 0 ? fmin(fmax(v / most, 0), 1) : 0;
    return LEFT + share * (WIDTH - LEFT - RIGHT);
}

static void put_bar(weft__strbuf *t, const weft__eval_figures *f, double most, double y, double height,
                    const char *class)
{
    weft__strbuf_printf(t, "<rect class=\"%s\" x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n", class, LEFT, y,
                        x_of(f->value, most) - LEFT, height);
    if (!isfinite(f->low) || !isfinite(f->high)) return;
    const double low = x_of(f->low, most), high = x_of(f->high, most), middle = y + height / 2;
    weft__strbuf_printf(t, "<path d=\"M%.1f %.1fH%.1fM%.1f %.1fv8M%.1f %.1fv8\"/>\n", low, middle, high, low,
                        middle - 4, high, middle - 4);
}

static void put_row(weft__strbuf *t, const weft__eval_row *row, double y)
{
    const weft__eval_figures f = weft__eval_report_figures(row, 0);
    weft__eval_figures base = {0};
    weft__eval_paired p;
    char text[96];
    const int paired = weft__eval_report_paired(row, &p);
    if (paired) base = weft__eval_report_figures(row, 1);
    const int in_share = row->metric->aggregation == WEFT__EVAL_MEAN && f.value <= 1 && (!paired || base.value <= 1);
    const double most = in_share ? 1 : 1.15 * fmax(fmax(f.value, f.high), paired ? fmax(base.value, base.high) : 0);
    snprintf(text, sizeof text, "%.40s · %.24s", row->filter, row->metric->name);
    weft__svg_label(t, LEFT - 10, y + 22, "end", text);
    if (paired) put_bar(t, &base, most, y + 2, 10, "b");
    put_bar(t, &f, most, y + 13, 16, "m");
    if (paired) snprintf(text, sizeof text, "%.4g (was %.4g, p %.2g)", f.value, base.value, p.p);
    else snprintf(text, sizeof text, "%.4g [%.4g, %.4g]", f.value, f.low, f.high);
    weft__svg_label(t, WIDTH - RIGHT + 8, y + 25, "start", text);
}

void weft__eval_report_svg(const weft__eval_report *r, weft__strbuf *t)
{
    const int height = TOP + ROW * (int)(r->n_rows ? r->n_rows : 1) + 20;
    char title[300];
    weft__svg_begin(t, WIDTH, height, "path{stroke:#222;fill:none}.m{fill:#1f5fa8}.b{fill:#bbb}");
    snprintf(title, sizeof title, "%.100s: %.100s, %zu documents, %lld examples", r->model, r->task->name, r->n,
             (long long)r->task->n_fewshot);
    weft__strbuf_puts(t, "<g font-size=\"15\">");
    weft__svg_label(t, 16, 26, "start", title);
    weft__strbuf_puts(t, "</g>\n");
    for (size_t i = 0; i < r->n_rows; i++) put_row(t, &r->rows[i], TOP + ROW * (double)i);
    weft__strbuf_puts(t, "</svg>\n");
}
