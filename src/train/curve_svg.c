// SPDX-License-Identifier: Apache-2.0
/* curve_svg.c: the picture of a loss curve (curve.h): every step in a light line, their running mean in a dark one,
 * held-out losses as dots. Stateless. */
#include <math.h>

#include "base/svg.h"
#include "format/out_file.h"
#include "train/curve.h"

enum { WIDTH = 860, HEIGHT = 420, LEFT = 64, RIGHT = 20, TOP = 44, BOTTOM = 48, MAX_POINTS = 2000, TICKS = 6 };

typedef struct scale {
    double step0, step1, low, high;
} scale;

static double x_of(const scale *s, double step)
{
    return LEFT + (WIDTH - LEFT - RIGHT) * (step - s->step0) / (s->step1 - s->step0);
}

static double y_of(const scale *s, double loss)
{
    return TOP + (HEIGHT - TOP - BOTTOM) * (s->high - loss) / (s->high - s->low);
}

static void widen(scale *s, double v)
{
    if (!isfinite(v)) return;
    if (v < s->low) s->low = v;
    if (v > s->high) s->high = v;
}

static scale scale_of(const weft__curve *c)
{
    scale s = {0, 1, INFINITY, -INFINITY};
    for (size_t i = 0; i < c->n; i++) {
        widen(&s, c->points[i].loss);
        widen(&s, c->points[i].heldout);
    }
    if (c->n) {
        s.step0 = (double)c->points[0].step;
        s.step1 = fmax((double)c->points[c->n - 1].step, s.step0 + 1);
    }
    if (!(s.low <= s.high)) s.low = 0, s.high = 1;
    if (s.high - s.low < 1e-9) s.high = s.low + 1;
    double margin = 0.04 * (s.high - s.low);
    s.low -= margin;
    s.high += margin;
    return s;
}

static void put_text(weft__strbuf *t, double x, double y, const char *anchor, const char *format, double v)
{
    weft__strbuf_printf(t, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    weft__strbuf_printf(t, format, v);
    weft__strbuf_puts(t, "</text>\n");
}

/* 1, 2 or 5 times a power of ten: about TICKS of them in the range. */
static double tick_of(double range)
{
    double rough = range / TICKS, power = pow(10, floor(log10(rough))), m = rough / power;
    return power * (m < 1.5 ? 1 : m < 3.5 ? 2 : m < 7.5 ? 5 : 10);
}

static void draw_axes(weft__strbuf *t, const scale *s)
{
    double tick = tick_of(s->high - s->low);
    for (double v = ceil(s->low / tick) * tick; v <= s->high; v += tick) {
        weft__strbuf_printf(t, "<path class=\"g\" d=\"M%d %.1fH%d\"/>\n", LEFT, y_of(s, v), WIDTH - RIGHT);
        put_text(t, LEFT - 8, y_of(s, v) + 4, "end", tick < 0.1 ? "%.3f" : "%.2f", v);
    }
    tick = fmax(1, tick_of(s->step1 - s->step0));
    for (double v = ceil(s->step0 / tick) * tick; v <= s->step1; v += tick)
        put_text(t, x_of(s, v), HEIGHT - BOTTOM + 20, "middle", "%.0f", v);
    weft__strbuf_printf(t, "<path class=\"a\" d=\"M%d %dV%dH%d\"/>\n", LEFT, TOP, HEIGHT - BOTTOM, WIDTH - RIGHT);
    weft__strbuf_printf(t, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">step</text>\n", (LEFT + WIDTH - RIGHT) / 2,
                        HEIGHT - 10);
}

/* A line through the losses; with `mean`, through their running mean. At most MAX_POINTS of them are drawn. */
static void draw_line(weft__strbuf *t, const weft__curve *c, const scale *s, int mean)
{
    size_t stride = c->n / MAX_POINTS + 1;
    double keep = 1 - 1 / (1 + (double)c->n / 50), sum = 0, weight = 0;
    int begun = 0;
    weft__strbuf_printf(t, "<path class=\"%s\" d=\"", mean ? "m" : "l");
    for (size_t i = 0; i < c->n; i++) {
        double v = c->points[i].loss;
        if (!isfinite(v)) continue;
        sum = keep * sum + v;
        weight = keep * weight + 1;
        if (i % stride && i + 1 < c->n) continue;
        weft__strbuf_printf(t, "%c%.1f %.1f", begun ? 'L' : 'M', x_of(s, (double)c->points[i].step),
                            y_of(s, mean ? sum / weight : v));
        begun = 1;
    }
    weft__strbuf_puts(t, "\"/>\n");
}

static void draw_heldout(weft__strbuf *t, const weft__curve *c, const scale *s)
{
    int n = 0;
    for (size_t i = 0; i < c->n; i++) {
        if (!isfinite(c->points[i].heldout)) continue;
        weft__strbuf_printf(t, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"/>\n", x_of(s, (double)c->points[i].step),
                            y_of(s, c->points[i].heldout));
        n++;
    }
    if (n)
        weft__strbuf_printf(t, "<circle cx=\"%d\" cy=\"%d\" r=\"3.5\"/><text x=\"%d\" y=\"%d\">held out</text>\n",
                            WIDTH - 110, TOP - 18, WIDTH - 100, TOP - 14);
}

static void draw(weft__strbuf *t, const weft__curve *c)
{
    scale s = scale_of(c);
    weft__svg_begin(t, WIDTH, HEIGHT,
                    "path{fill:none}.g{stroke:#ddd}.a{stroke:#333}.l{stroke:#a9c4e6}.m{stroke:#1f5fa8;stroke-width:2}"
                    "circle{fill:#c0392b}");
    weft__strbuf_printf(t, "<text x=\"%d\" y=\"24\" font-size=\"15\">", LEFT);
    weft__svg_text(t, c->title);
    weft__strbuf_puts(t, "</text>\n");
    draw_axes(t, &s);
    draw_line(t, c, &s, 0);
    draw_line(t, c, &s, 1);
    draw_heldout(t, c, &s);
    weft__strbuf_puts(t, "</svg>\n");
}

weft_status weft__curve_draw(const weft__curve *c, weft_error *err)
{
    weft__strbuf t = {0};
    draw(&t, c);
    weft_status st = t.failed ? weft_fail(err, WEFT_NO_MEMORY, "no memory to draw the loss curve")
                              : weft__out_file_put(c->picture_path, t.data, t.len, err);
    weft__strbuf_free(&t);
    return st;
}
