// SPDX-License-Identifier: Apache-2.0
/* report_print.c: a report for people and for scripts (report.h). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "eval/report.h"

static const char *output_name(weft__eval_output o)
{
    static const char *const names[] = {"generate_until", "loglikelihood", "loglikelihood_rolling", "multiple_choice"};
    return names[o];
}

/* "0.412" or "-", in seven columns. */
static void put_figure(weft__strbuf *out, double v)
{
    if (!isfinite(v)) weft__strbuf_printf(out, "%8s", "-");
    else weft__strbuf_printf(out, fabs(v) < 100 ? "%8.4f" : "%8.1f", v);
}

static void put_row(weft__strbuf *out, const weft__eval_row *row)
{
    const weft__eval_figures f = weft__eval_report_figures(row, 0);
    weft__eval_paired p;
    weft__strbuf_printf(out, "  %-20.20s %-16.16s", row->filter, row->metric->name);
    put_figure(out, f.value);
    weft__strbuf_puts(out, "   [");
    put_figure(out, f.low);
    weft__strbuf_puts(out, ",");
    put_figure(out, f.high);
    weft__strbuf_puts(out, " ]");
    if (weft__eval_report_paired(row, &p)) {
        put_figure(out, p.base);
        weft__strbuf_printf(out, " %+8.4f", p.difference);
        if (p.is_rate) weft__strbuf_printf(out, " %6lld %6lld", (long long)p.only_this, (long long)p.only_base);
        else weft__strbuf_printf(out, " %6s %6s", "", "");
        if (isfinite(p.p)) weft__strbuf_printf(out, "  %.2g", p.p);
        else weft__strbuf_puts(out, "  -");
    }
    weft__strbuf_puts(out, "\n");
}

void weft__eval_report_text(const weft__eval_report *r, weft__strbuf *out)
{
    const weft__eval_task *t = r->task;
    weft__strbuf_printf(out, "%s%s%s: %zu documents, %lld examples, %s, as %s\n", t->name,
                        *t->version ? " version " : "", t->version, r->n, (long long)t->n_fewshot,
                        output_name(t->output), r->style);
    if (r->n_rows)
        weft__strbuf_printf(out, "  %-20s %-16s%8s   %-20s%s\n", "filter", "metric", "value", "95 %",
                            r->n_base ? "baseline   change   only   only  p" : "");
    if (r->n_base && r->n_rows)
        weft__strbuf_printf(out, "  %-20s %-16s%8s   %-20s%s\n", "", "", "", "", "                     here  there");
    for (size_t i = 0; i < r->n_rows; i++) put_row(out, &r->rows[i]);
    if (r->n_cut)
        weft__strbuf_printf(out, "  %lld documents did not fit: their prompts lost their beginning (--ctx)\n",
                            (long long)r->n_cut);
    if (r->n_unended)
        weft__strbuf_printf(out, "  %lld answers had not ended after %lld tokens (--max-tokens)\n",
                            (long long)r->n_unended, (long long)t->generation.max_tokens);
    if (r->n_resumed) weft__strbuf_printf(out, "  %zu of them stood in the file of samples already\n", r->n_resumed);
}

static void put_figure_member(weft__strbuf *out, const char *key, double v)
{
    weft__strbuf_printf(out, ", \"%s\": ", key);
    weft__json_write_double(out, v);
}

void weft__eval_report_json(const weft__eval_report *r, weft__strbuf *out)
{
    const weft__eval_task *t = r->task;
    weft__strbuf_puts(out, "{\"task\": ");
    weft__json_write_string(out, t->name, strlen(t->name));
    weft__strbuf_puts(out, ", \"version\": ");
    weft__json_write_string(out, t->version, strlen(t->version));
    weft__strbuf_printf(out, ", \"output_type\": \"%s\", \"model\": ", output_name(t->output));
    weft__json_write_string(out, r->model, strlen(r->model));
    weft__strbuf_printf(out,
                        ", \"prompts\": \"%s\", \"num_fewshot\": %lld, \"repeats\": %lld, \"n\": %zu, \"n_cut\": %lld, "
                        "\"n_unended\": %lld, \"n_tokens\": %lld, \"n_resumed\": %zu, \"results\": [",
                        r->style, (long long)t->n_fewshot, (long long)t->repeats, r->n, (long long)r->n_cut,
                        (long long)r->n_unended, (long long)r->n_tokens, r->n_resumed);
    for (size_t i = 0; i < r->n_rows; i++) {
        const weft__eval_row *row = &r->rows[i];
        const weft__eval_figures f = weft__eval_report_figures(row, 0);
        weft__eval_paired p;
        weft__strbuf_puts(out, i ? ", {\"filter\": " : "{\"filter\": ");
        weft__json_write_string(out, row->filter, strlen(row->filter));
        weft__strbuf_printf(out, ", \"metric\": \"%s\", \"higher_is_better\": %s", row->metric->name,
                            row->metric->higher_is_better ? "true" : "false");
        put_figure_member(out, "value", f.value);
        put_figure_member(out, "low", f.low);
        put_figure_member(out, "high", f.high);
        put_figure_member(out, "stderr", f.error);
        weft__strbuf_printf(out, ", \"interval\": \"%s\"", f.is_rate ? "wilson" : "normal");
        if (weft__eval_report_paired(row, &p)) {
            put_figure_member(out, "baseline", p.base);
            put_figure_member(out, "difference", p.difference);
            put_figure_member(out, "p", p.p);
            weft__strbuf_printf(out, ", \"test\": \"%s\"", p.is_rate ? "mcnemar" : "paired");
            if (p.is_rate)
                weft__strbuf_printf(out, ", \"only_here\": %lld, \"only_there\": %lld", (long long)p.only_this,
                                    (long long)p.only_base);
        }
        weft__strbuf_puts(out, "}");
    }
    weft__strbuf_puts(out, "]}\n");
}
