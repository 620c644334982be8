// SPDX-License-Identifier: Apache-2.0
/* kv_svg.c: the picture of weft eval kv (kv_quality.h): over the depth, above the divergence from F16 (mean and 99.9 %)
 * on a logarithmic scale, below how much is found again, F16 in grey beside the type. Stateless. */
#include <math.h>
#include <stdio.h>

#include "base/svg.h"
#include "format/out_file.h"
#include "kv_quality.h"

enum { WIDTH = 860, HEIGHT = 560, LEFT = 72, RIGHT = 20, TOP = 52, SPLIT = 290, LOWER = 330, BOTTOM = 48 };

/* Depths are drawn by their logarithm. */
static double x_of(const kv_quality *q, double depth)
{
    const double first = log2(KV_FIRST_DEPTH / 2.0), last = fmax(log2((double)q->n_ctx), first + 1);
    const double at = (log2(fmax(depth, KV_FIRST_DEPTH / 2.0)) - first) / (last - first);
    return LEFT + (WIDTH - LEFT - RIGHT) * fmin(at, 1);
}

static double between(double low, double high, double v, double top, double bottom)
{
    const double at = (v - low) / (high - low);
    return bottom - (bottom - top) * (at < 0 ? 0 : at > 1 ? 1 : at);
}

/* Divergences of nothing at all have no logarithm: they lie on the floor. */
typedef struct powers {
    int low, high;
} powers;

static double y_of(powers p, double kld)
{
    return between(p.low, p.high, kld > 0 ? log10(kld) : p.low, TOP, SPLIT);
}

static powers powers_of(kv_quality *q)
{
    double low = q->max_kld > 0 ? q->max_kld : 0.01, high = low;
    for (int i = 0; i < KV_DEPTHS; i++) {
        if (!q->by_depth[i].n) continue;
        const kv_figures f = kv_figures_of(&q->by_depth[i]);
        if (f.kld > 0) low = fmin(low, f.kld);
        high = fmax(high, fmax(f.kld, f.p999));
    }
    powers p = {(int)floor(log10(fmax(low, 1e-9))), (int)ceil(log10(fmax(high, 1e-8)))};
    if (p.high <= p.low) p.high = p.low + 1;
    return p;
}

static void draw_axes(weft__strbuf *t, const kv_quality *q, powers p)
{
    char label[32];
    for (int v = p.low; v <= p.high; v++) {
        const double y = between(p.low, p.high, v, TOP, SPLIT);
        weft__strbuf_printf(t, "<path class=\"g\" d=\"M%d %.1fH%d\"/>\n", LEFT, y, WIDTH - RIGHT);
        snprintf(label, sizeof label, "1e%d", v);
        weft__svg_label(t, LEFT - 8, y + 4, "end", label);
    }
    for (int percent = 0; percent <= 100; percent += 25) {
        const double y = between(0, 100, percent, LOWER, HEIGHT - BOTTOM);
        weft__strbuf_printf(t, "<path class=\"g\" d=\"M%d %.1fH%d\"/>\n", LEFT, y, WIDTH - RIGHT);
        snprintf(label, sizeof label, "%d %%", percent);
        weft__svg_label(t, LEFT - 8, y + 4, "end", label);
    }
    for (int64_t depth = KV_FIRST_DEPTH; depth <= q->n_ctx; depth *= 2) {
        snprintf(label, sizeof label, "%lld", (long long)depth);
        weft__svg_label(t, x_of(q, (double)depth), HEIGHT - BOTTOM + 20, "middle", label);
    }
    weft__svg_label(t, (LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 10, "middle", "depth in tokens");
}

/* By ranges of depths; p999: the 99.9 %, else the mean. */
static void draw_divergence(weft__strbuf *t, kv_quality *q, powers p, int p999)
{
    int begun = 0;
    weft__strbuf_printf(t, "<path class=\"%s\" d=\"", p999 ? "r" : "m");
    for (int i = 0; i < KV_DEPTHS; i++) {
        if (!q->by_depth[i].n) continue;
        const kv_figures f = kv_figures_of(&q->by_depth[i]);
        const double middle = sqrt(fmax(kv_depth_begin(i), KV_FIRST_DEPTH / 2.0) * (double)kv_depth_begin(i + 1));
        weft__strbuf_printf(t, "%c%.1f %.1f", begun++ ? 'L' : 'M', x_of(q, middle), y_of(p, p999 ? f.p999 : f.kld));
    }
    weft__strbuf_puts(t, "\"/>\n");
}

static void draw_rates(weft__strbuf *t, const kv_quality *q, const kv_rate *rates, int n, int which, const char *class)
{
    if (!n) return;
    weft__strbuf_printf(t, "<path class=\"%s\" d=\"", class);
    for (int i = 0; i < n; i++)
        weft__strbuf_printf(t, "%c%.1f %.1f", i ? 'L' : 'M', x_of(q, rates[i].depth),
                            between(0, 1, (double)rates[i].hits[which] / rates[i].n, LOWER, HEIGHT - BOTTOM));
    weft__strbuf_puts(t, "\"/>\n");
}

static void draw_key(weft__strbuf *t, double x, double y, const char *class, const char *text)
{
    weft__strbuf_printf(t, "<path class=\"%s\" d=\"M%.1f %.1fh24\"/>\n", class, x, y - 4);
    weft__svg_label(t, x + 30, y, "start", text);
}

static void draw_all(weft__strbuf *t, kv_quality *q)
{
    const powers p = powers_of(q);
    char title[256];
    weft__svg_begin(t, WIDTH, HEIGHT,
                    "path{fill:none;stroke-width:2}.g{stroke:#ddd;stroke-width:1}.m{stroke:#1f5fa8}.r{stroke:#c0392b}"
                    ".b,.bc{stroke:#999}.c,.bc{stroke-dasharray:5 4}.c{stroke:#1f5fa8}"
                    ".l{stroke:#2e8b57;stroke-dasharray:2 3}");
    snprintf(title, sizeof title, "%s: keys and values in %s against f16", q->model, q->type);
    weft__strbuf_puts(t, "<g font-size=\"15\">");
    weft__svg_label(t, LEFT, 22, "start", title);
    weft__strbuf_puts(t, "</g>\n");
    draw_axes(t, q, p);
    draw_key(t, LEFT + 10, TOP - 8, "m", "mean KL divergence");
    draw_key(t, LEFT + 180, TOP - 8, "r", "99.9 %");
    draw_key(t, LEFT + 270, TOP - 8, "l", "the gate of the mean");
    weft__strbuf_printf(t, "<path class=\"l\" d=\"M%d %.1fH%d\"/>\n", LEFT, y_of(p, q->max_kld), WIDTH - RIGHT);
    draw_divergence(t, q, p, 1);
    draw_divergence(t, q, p, 0);
    draw_key(t, LEFT + 10, LOWER - 8, "m", "pass keys found");
    draw_key(t, LEFT + 180, LOWER - 8, "c", "tokens copied");
    draw_key(t, LEFT + 330, LOWER - 8, "b", "the same of f16");
    draw_rates(t, q, q->passkey, q->n_passkey, KV_BASE, "b");
    draw_rates(t, q, q->copy, q->n_copy, KV_BASE, "bc");
    draw_rates(t, q, q->passkey, q->n_passkey, KV_TYPE, "m");
    draw_rates(t, q, q->copy, q->n_copy, KV_TYPE, "c");
    weft__strbuf_puts(t, "</svg>\n");
}

weft_status kv_draw(kv_quality *q, const char *path, weft_error *err)
{
    weft__strbuf t = {0};
    draw_all(&t, q);
    weft_status st = t.failed ? weft_fail(err, WEFT_NO_MEMORY, "no memory to draw the picture")
                              : weft__out_file_put(path, t.data, t.len, err);
    weft__strbuf_free(&t);
    return st;
}
