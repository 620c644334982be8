// SPDX-License-Identifier: Apache-2.0
/* learn_svg.c: see learn_svg.h. Counts are drawn as steps, one up for each; the KL from version to version. */
#include "learn_svg.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/svg.h"
#include "format/out_file.h"
#include "learn_tenants.h"

enum {
    WIDTH = 860,
    LEFT = 64,
    RIGHT = 200,
    HEAD = 34,
    PANEL = 128,
    GAP = 34,
    FOOT = 30,
    LINES = 16,
    PLOT = WIDTH - LEFT - RIGHT
};

/* What happened, in the order of time. */
typedef struct learn_line {
    char name[40];
    int64_t *time;
    double *value; /* NULL: each counts one */
    size_t n, room, room_value;
} learn_line;

/* Lines over one another; those beyond LINES are left. */
typedef struct learn_panel {
    const char *title;
    learn_line line[LINES];
    int n;
} learn_panel;

enum { ANSWERS, FEEDBACK, VERSIONS, KL, PANELS };
typedef struct learn_picture {
    learn_panel panel[PANELS];
    int64_t first, last; /* of time */
    int failed;          /* memory ran out */
} learn_picture;

/* ---- what is drawn ---- */

static void note_at(learn_picture *p, int panel, const char *name, int64_t time_ms, const double *value)
{
    learn_panel *all = &p->panel[panel];
    int i = 0;
    while (i < all->n && strcmp(all->line[i].name, name)) i++;
    if (i == LINES) return;
    learn_line *l = &all->line[i];
    if (i == all->n) snprintf(all->line[all->n++].name, sizeof l->name, "%s", name);
    if (!weft__grow(&l->time, &l->room, l->n + 1, sizeof *l->time) ||
        (value && !weft__grow(&l->value, &l->room_value, l->n + 1, sizeof *l->value))) {
        p->failed = 1;
        return;
    }
    if (value) l->value[l->n] = *value;
    l->time[l->n++] = time_ms;
    if (!p->last || time_ms < p->first) p->first = time_ms;
    if (!p->last || time_ms > p->last) p->last = time_ms;
}

static int note_answer(void *arg, const weft__learn_record *r)
{
    learn_picture *p = arg;
    note_at(p, ANSWERS, "answers", r->time_ms, NULL);
    return p->failed;
}

static int note_event(void *arg, const weft__learn_event *e)
{
    learn_picture *p = arg;
    note_at(p, FEEDBACK, weft__learn_kind_name(e->kind), e->time_ms, NULL);
    return p->failed;
}

/* By what became of it and, of what the gate refused, why. */
static int note_version(void *arg, const weft__learn_version *v)
{
    learn_picture *p = arg;
    weft__json *report = NULL;
    const char *reason = "";
    size_t n = 0;
    double kl = NAN;
    char name[40];
    const int64_t time_ms = v->time_ms ? v->time_ms : p->last; /* stores of before did not keep it */
    weft__json_parse(v->report, strlen(v->report), &report, NULL);
    weft__json_string(weft__json_get(report, "reason"), &reason, &n);
    snprintf(name, sizeof name, "%.15s%s%.20s", v->what, n ? ": " : "", n ? reason : "");
    note_at(p, VERSIONS, name, time_ms, NULL);
    if (!strcmp(v->what, "published") && weft__json_double(weft__json_get(report, "kl"), &kl) && isfinite(kl))
        note_at(p, KL, "published", time_ms, &kl);
    weft__json_free(&report);
    return p->failed;
}

static weft_status read_tenant(weft__learn_store *s, const char *tenant, learn_picture *p, weft_error *err)
{
    weft_status st = weft__learn_records(s, tenant, 1, 0, 0, note_answer, p, err);
    if (!st) st = weft__learn_events(s, tenant, 0, NULL, note_event, p, err);
    if (!st) st = weft__learn_versions(s, tenant, NULL, note_version, p, err);
    if (!st && p->failed) st = weft_fail(err, WEFT_NO_MEMORY, "no memory to draw the picture");
    return st;
}

static void picture_end(learn_picture *p)
{
    for (int k = 0; k < PANELS; k++)
        for (int i = 0; i < p->panel[k].n; i++) {
            weft__free(p->panel[k].line[i].time);
            weft__free(p->panel[k].line[i].value);
        }
}

/* ---- how ---- */

static double x_of(const learn_picture *p, int64_t time_ms)
{
    const double span = (double)(p->last - p->first);
    return LEFT + (span > 0 ? (double)(time_ms - p->first) / span : 0.5) * PLOT;
}

/* 1, 2 or 5 times a power of ten: not below `most`. */
static double top_of(const learn_panel *panel)
{
    double most = 0;
    for (int i = 0; i < panel->n; i++)
        for (size_t k = 0; k < panel->line[i].n; k++)
            most = fmax(most, panel->line[i].value ? panel->line[i].value[k] : (double)k + 1);
    if (!(most > 0)) return 1;
    const double power = pow(10, floor(log10(most)));
    return power * (most <= power * 1.001 ? 1 : most <= 2.001 * power ? 2 : most <= 5.001 * power ? 5 : 10);
}

static double y_of(double top, double y, double v)
{
    return y + PANEL - (v / top) * PANEL;
}

/* Steps that a column of the picture cannot tell apart are one. */
static void draw_line(weft__strbuf *t, const learn_picture *p, const learn_line *l, int which, double top, double y)
{
    double last = -1;
    weft__strbuf_printf(t, "<path class=\"c%d\" d=\"M", which);
    if (!l->value) weft__strbuf_printf(t, "%d %.1f", LEFT, y_of(top, y, 0));
    for (size_t i = 0; i < l->n; i++) {
        const double x = x_of(p, l->time[i]), v = l->value ? l->value[i] : (double)i + 1;
        if (i + 1 < l->n && x - last < 0.4) continue;
        if (l->value) weft__strbuf_printf(t, "%s%.1f %.1f", i ? "L" : "", x, y_of(top, y, v));
        else weft__strbuf_printf(t, "H%.1fV%.1f", x, y_of(top, y, v));
        last = x;
    }
    if (!l->value) weft__strbuf_printf(t, "H%d", LEFT + PLOT);
    weft__strbuf_puts(t, "\"/>\n");
    for (size_t i = 0; l->value && i < l->n; i++)
        weft__strbuf_printf(t, "<circle class=\"c%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>\n", which, x_of(p, l->time[i]),
                            y_of(top, y, l->value[i]));
}

static void draw_panel(weft__strbuf *t, const learn_picture *p, const learn_panel *panel, double y)
{
    char text[80];
    const double top = top_of(panel);
    weft__svg_label(t, LEFT, y - 8, "start", panel->title);
    for (int k = 0; k <= 2; k++) {
        const double v = top * k / 2;
        weft__strbuf_printf(t, "<path class=\"g\" d=\"M%d %.1fh%d\"/>\n", LEFT, y_of(top, y, v), PLOT);
        snprintf(text, sizeof text, "%.4g", v);
        if (k != 1 || top >= 2 || panel->line[0].value) weft__svg_label(t, LEFT - 8, y_of(top, y, v) + 4, "end", text);
    }
    for (int i = 0; i < panel->n; i++) {
        const learn_line *l = &panel->line[i];
        const double at = y + 10 + 15 * i;
        draw_line(t, p, l, i % 8, top, y);
        weft__strbuf_printf(t, "<path class=\"c%d\" d=\"M%d %.1fh16\"/>\n", i % 8, LEFT + PLOT + 12, at - 4);
        if (l->value) snprintf(text, sizeof text, "%s, last %.3g", l->name, l->value[l->n - 1]);
        else snprintf(text, sizeof text, "%s %zu", l->name, l->n);
        weft__svg_label(t, LEFT + PLOT + 34, at, "start", text);
    }
}

static double panel_height(const learn_panel *panel)
{
    return !panel->n ? 0 : GAP + fmax(PANEL, 15 * panel->n);
}

static void put_date(weft__strbuf *t, double x, double y, const char *anchor, int64_t ms)
{
    const time_t at = (time_t)(ms / 1000);
    struct tm tm;
    char text[32];
    if (gmtime_r(&at, &tm) && strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &tm))
        weft__svg_label(t, x, y, anchor, text);
}

/* The block of a tenant from y on; how high it is comes back. */
static double draw_tenant(weft__strbuf *t, const learn_picture *p, const char *name, double y)
{
    double at = y + HEAD;
    weft__strbuf_puts(t, "<g font-size=\"15\">");
    weft__svg_label(t, LEFT, y + 20, "start", *name ? name : LEARN_NO_KEY);
    weft__strbuf_puts(t, "</g>\n");
    for (int k = 0; k < PANELS; k++) {
        if (!p->panel[k].n) continue;
        draw_panel(t, p, &p->panel[k], at + GAP);
        at += panel_height(&p->panel[k]);
    }
    if (p->last) put_date(t, LEFT, at + 18, "start", p->first);
    if (p->last > p->first) put_date(t, LEFT + PLOT, at + 18, "end", p->last);
    return at + FOOT - y;
}

weft_status learn_draw(weft__learn_store *store, const char (*names)[WEFT__LEARN_TENANT], size_t n, const char *path,
                       weft_error *err)
{
    weft_status st = WEFT_OK;
    weft__strbuf blocks = {0}, all = {0};
    double y = 10;
    for (size_t i = 0; !st && i < n && i < LEARN_SVG_MOST; i++) {
        learn_picture p = {.panel = {[ANSWERS] = {.title = "answers"},
                                     [FEEDBACK] = {.title = "what was said of them"},
                                     [VERSIONS] = {.title = "versions of the adapter"},
                                     [KL] = {.title = "KL to the base, nats a token"}}};
        st = read_tenant(store, names[i], &p, err);
        if (!st) y += draw_tenant(&blocks, &p, names[i], y);
        picture_end(&p);
    }
    if (n > LEARN_SVG_MOST) {
        char text[64];
        snprintf(text, sizeof text, "and %zu more: --tenant NAME", n - LEARN_SVG_MOST);
        weft__svg_label(&blocks, LEFT, y + 14, "start", text);
        y += FOOT;
    }
    weft__svg_begin(&all, WIDTH, (int)y + 10,
                    "path{fill:none;stroke-width:2}.g{stroke:#ddd;stroke-width:1}circle{stroke:none}"
                    ".c0{stroke:#1f5fa8}.c1{stroke:#c0392b}.c2{stroke:#2e8b57}.c3{stroke:#b4690e}.c4{stroke:#7a3e9d}"
                    ".c5{stroke:#555}.c6{stroke:#0d8a8a}.c7{stroke:#c2418b}circle.c0{fill:#1f5fa8}");
    weft__strbuf_put(&all, blocks.data, blocks.len);
    weft__strbuf_puts(&all, "</svg>\n");
    if (!st && (blocks.failed || all.failed)) st = weft_fail(err, WEFT_NO_MEMORY, "no memory to draw the picture");
    if (!st) st = weft__out_file_put(path, all.data, all.len, err);
    weft__strbuf_free(&blocks);
    weft__strbuf_free(&all);
    return st;
}
