// SPDX-License-Identifier: Apache-2.0
/* top_print.c: see top_print.h. */
#include "top_print.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cells.h"
#include "weft/engine.h"

enum { WHO_SHOWN = 64 };

static double rate(double now, double before, const top_view *v)
{
    const double s = (double)(v->now.at_ns - v->before.at_ns) / 1e9;
    return s > 0 && now > before ? (now - before) / s : 0;
}

static void print_rates(const top_view *v, weft__strbuf *out)
{
    const top_sample *now = &v->now, *before = &v->before;
    if (before->at_ns)
        weft__strbuf_printf(out, "now      %.1f generated t/s, %.1f prompt t/s, %.1f steps/s\n",
                            rate(now->generated_tokens, before->generated_tokens, v),
                            rate(now->prompt_tokens, before->prompt_tokens, v), rate(now->steps, before->steps, v));
    weft__strbuf_printf(out, "total    %.0f generated, %.0f of prompts, %.1f %% of them cached, %.0f steps\n",
                        now->generated_tokens, now->prompt_tokens,
                        now->prompt_tokens > 0 ? 100 * now->cached_tokens / now->prompt_tokens : 0.0, now->steps);
}

/* ---- keys and adapters ---- */

/* Appends a text in so many columns, cut where it is longer. */
static void put_cell(weft__strbuf *out, const char *text, int width)
{
    char room[16];
    const char *shown;
    int used = 0;
    for (size_t n = strlen(text), length, n_shown; n > 0; n -= length, text += length) {
        length = cell_cluster(text, n);
        const int columns = cell_shown(text, length, room, &shown, &n_shown);
        if (used + columns > width) break;
        weft__strbuf_put(out, shown, n_shown);
        used += columns;
    }
    weft__strbuf_printf(out, "%*s  ", width - used, "");
}

struct line {
    const top_who *who;
    double generated, prompt; /* per second */
};

static int by_rate(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    if (x->generated != y->generated) return x->generated < y->generated ? 1 : -1;
    if (x->who->generated != y->who->generated) return x->who->generated < y->who->generated ? 1 : -1;
    return x->who < y->who ? -1 : x->who > y->who;
}

static void print_who(const top_view *v, weft__strbuf *out)
{
    struct line lines[TOP_WHO_MAX];
    const int n = v->now.n_who, live = v->before.at_ns != 0;
    if (!n) return;
    for (int i = 0; i < n; i++) {
        const top_who *w = &v->now.who[i], *b = top_find(&v->before, w);
        lines[i] = (struct line){w, rate(w->generated, b ? b->generated : 0, v), rate(w->prompt, b ? b->prompt : 0, v)};
    }
    qsort(lines, (size_t)n, sizeof *lines, by_rate);
    weft__strbuf_printf(out, "%-16s  %-16s  generated t/s  prompt t/s  generated    prompts  requests\n", "key",
                        "adapter");
    for (int i = 0; i < n && i < WHO_SHOWN; i++) {
        const top_who *w = lines[i].who;
        put_cell(out, w->key, 16);
        put_cell(out, w->adapter, 16);
        if (live) weft__strbuf_printf(out, "%13.1f  %10.1f  ", lines[i].generated, lines[i].prompt);
        else weft__strbuf_printf(out, "%13s  %10s  ", "-", "-");
        weft__strbuf_printf(out, "%9.0f  %9.0f  %8.0f\n", w->generated, w->prompt, w->requests);
    }
    if (n > WHO_SHOWN) weft__strbuf_printf(out, "and %d more\n", n - WHO_SHOWN);
    weft__strbuf_putc(out, '\n');
}

/* ---- slots ---- */

static void print_slots_of(const struct top_slots_of *of, weft__strbuf *out)
{
    weft__json *all = NULL;
    if (weft__json_parse(of->text, strlen(of->text), &all, NULL)) return;
    const size_t n = weft__json_size(all);
    if (*of->model) {
        put_cell(out, of->model, 64);
        weft__strbuf_putc(out, '\n');
    }
    weft__strbuf_puts(out, "slot  state    prompt  generated  of tokens\n");
    for (size_t i = 0; i < n; i++) {
        const weft__json *s = weft__json_at(all, i), *next = weft__json_at(weft__json_get(s, "next_token"), 0);
        int64_t id = 0, prompt = 0, decoded = 0, n_ctx = 0;
        int busy = 0;
        weft__json_int(weft__json_get(s, "id"), &id);
        weft__json_int(weft__json_get(s, "n_prompt_tokens"), &prompt);
        weft__json_int(weft__json_get(next, "n_decoded"), &decoded);
        weft__json_int(weft__json_get(s, "n_ctx"), &n_ctx);
        weft__json_bool(weft__json_get(s, "is_processing"), &busy);
        weft__strbuf_printf(out, "%4lld  %-7s  %6lld  %9lld  %9lld\n", (long long)id, busy ? "runs" : "idle",
                            (long long)prompt, (long long)decoded, (long long)n_ctx);
    }
    weft__json_free(&all);
}

static void print_slots(const top_slots *slots, weft__strbuf *out)
{
    for (int i = 0; i < slots->n; i++) {
        if (i > 0) weft__strbuf_putc(out, '\n');
        print_slots_of(&slots->of[i], out);
    }
    if (!slots->n && slots->n_models) weft__strbuf_puts(out, "no model is loaded\n");
}

/* Tokens that were guessed, and by whom. */
static void print_guesses(const char *m, weft__strbuf *out)
{
    static const char tried[] = "weft_draft_tokens_total", accepted[] = "weft_draft_accepted_tokens_total";
    const double all = top_metric(m, tried), right = top_metric(m, accepted);
    if (all <= 0) return;
    weft__strbuf_printf(out, "guesses       %.0f of %.0f tokens right (%.0f %%)", right, all, 100 * right / all);
    for (int d = 0; d < WEFT_DRAFTERS; d++) {
        const char *name = weft_drafter_name(d);
        const double of_it = top_metric_of(m, tried, "drafter", name);
        if (of_it > 0)
            weft__strbuf_printf(out, ", %s %.0f of %.0f", name, top_metric_of(m, accepted, "drafter", name), of_it);
    }
    weft__strbuf_puts(out, "\n");
}

void top_print(const char *address, const top_view *v, weft__strbuf *out)
{
    const char *m = v->metrics;
    weft__strbuf_printf(out, "%s  |  %.0f run of %.0f, %.0f wait  |  %.0f connections\n", address,
                        top_metric(m, "weft_running"), top_metric(m, "weft_slots"), top_metric(m, "weft_waiting"),
                        top_metric(m, "weft_http_connections"));
    print_rates(v, out);
    weft__strbuf_printf(out, "first token   half within %.0f ms, 99 %% within %.0f ms\n",
                        top_quantile(m, "weft_time_to_first_token_seconds", 0.5),
                        top_quantile(m, "weft_time_to_first_token_seconds", 0.99));
    weft__strbuf_printf(out, "between them  half within %.0f ms, 99 %% within %.0f ms\n",
                        top_quantile(m, "weft_time_between_tokens_seconds", 0.5),
                        top_quantile(m, "weft_time_between_tokens_seconds", 0.99));
    weft__strbuf_printf(out, "KV pages      %.0f of %.0f in use, %.0f hold prefixes\n",
                        top_metric(m, "weft_kv_pages_used"), top_metric(m, "weft_kv_pages"),
                        top_metric(m, "weft_kv_pages_cached"));
    print_guesses(m, out);
    weft__strbuf_printf(
        out, "trouble       %.0f refused, %.0f preempted, %.0f failed, %.0f cut for not reading, %.0f gone\n\n",
        top_metric(m, "weft_refused_total"), top_metric(m, "weft_preempted_total"),
        top_metric_of(m, "weft_requests_total", "finish", "failed"), top_metric(m, "weft_http_cut_slow_total"),
        top_metric(m, "weft_http_gone_total"));
    print_who(v, out);
    print_slots(&v->slots, out);
}

/* ---- the window ---- */

/* One line, cut at the last column. */
static void fit_line(const char *line, size_t n, int columns, weft__strbuf *out)
{
    char room[16];
    const char *shown;
    int used = 0;
    for (size_t i = 0, length, n_shown; i < n; i += length) {
        length = cell_cluster(line + i, n - i);
        used += cell_shown(line + i, length, room, &shown, &n_shown);
        if (used > columns) return;
        weft__strbuf_put(out, shown, n_shown);
    }
}

void top_fit(const weft__strbuf *lines, int columns, int rows, weft__strbuf *out)
{
    const char *line = lines->data, *end;
    int n = 0, all = 0;
    for (const char *p = lines->data; p && (p = strchr(p, '\n')); p++) all++;
    for (; line && (end = strchr(line, '\n')); line = end + 1, n++) {
        if (n > 0) weft__strbuf_putc(out, '\n'); /* none behind the last, which would roll the window up */
        if (rows > 0 && all > rows && n == rows - 1) {
            weft__strbuf_printf(out, "... %d more", all - n);
            return;
        }
        fit_line(line, (size_t)(end - line), columns, out);
    }
}
