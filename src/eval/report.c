// SPDX-License-Identifier: Apache-2.0
/* report.c: samples added up (report.h). */
#include "eval/report.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "eval/score.h"

weft_status weft__eval_report_begin(weft__eval_report *r, const weft__eval_task *task, weft_error *err)
{
    r->task = task;
    r->rows = weft__alloc_zero(task->n_filters * task->n_metrics + 1, sizeof *r->rows);
    if (!r->rows) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a report");
    for (size_t i = 0; i < task->n_filters; i++)
        for (size_t k = 0; k < task->n_metrics; k++)
            r->rows[r->n_rows++] = (weft__eval_row){.filter = task->filters[i].name, .metric = &task->metrics[k]};
    return WEFT_OK;
}

void weft__eval_report_free(weft__eval_report *r)
{
    for (size_t i = 0; i < r->n_rows; i++) {
        weft__free(r->rows[i].scores);
        weft__free(r->rows[i].base);
    }
    weft__free(r->rows);
    *r = (weft__eval_report){0};
}

static int score_of(const weft__json *v, weft__eval_score *out)
{
    out->weight = 1;
    if (weft__json_kind_of(v) != WEFT__JSON_ARRAY) return weft__json_double(v, &out->value);
    return weft__json_size(v) == 2 && weft__json_double(weft__json_at(v, 0), &out->value) &&
           weft__json_double(weft__json_at(v, 1), &out->weight);
}

static void count(const weft__json *sample, const char *key, int any, int64_t *into)
{
    int64_t n = 0;
    if (weft__json_int(weft__json_get(sample, key), &n)) *into += any ? n > 0 : n;
}

weft_status weft__eval_report_add(weft__eval_report *r, const weft__json *sample, int of_base, weft_error *err)
{
    const weft__json *scores = weft__json_get(sample, "scores");
    for (size_t i = 0; i < r->n_rows; i++) {
        weft__eval_row *row = &r->rows[i];
        weft__eval_score one;
        if (!score_of(weft__json_get(weft__json_get(scores, row->filter), row->metric->name), &one))
            return weft_fail(err, WEFT_FORMAT, "it has no score '%s' behind the filter '%s'", row->metric->name,
                             row->filter);
        weft__eval_score **items = of_base ? &row->base : &row->scores;
        size_t *n = of_base ? &row->n_base : &row->n;
        if (!weft__grow(items, of_base ? &row->base_capacity : &row->capacity, *n + 1, sizeof one))
            return weft_fail(err, WEFT_NO_MEMORY, "no memory for a report");
        (*items)[(*n)++] = one;
    }
    if (of_base) {
        r->n_base++;
        return WEFT_OK;
    }
    r->n++;
    count(sample, "n_cut", 1, &r->n_cut);
    count(sample, "n_tokens", 0, &r->n_tokens);
    count(sample, "n_unended", 0, &r->n_unended);
    return WEFT_OK;
}

weft_status weft__eval_report_baseline(weft__eval_report *r, const char *path, weft_error *err)
{
    char *text = NULL;
    size_t n = 0, line = 1;
    weft_status st = weft__eval_read_file(path, &text, &n, err);
    const char *at = st ? NULL : memchr(text, '\n', n), *end;
    if (!st && (!at || strncmp(text, "{\"weft\": \"samples 1\"", 20)))
        st = weft_fail(err, WEFT_FORMAT, "%s: no file that --samples has written", path);
    for (; !st && r->n_base < r->n && (end = memchr(at + 1, '\n', n - (size_t)(at + 1 - text))); at = end) {
        weft__json *sample = NULL;
        weft_error why = {0};
        char hash[17];
        weft__eval_doc_hash(r->task->docs.items[r->n_base], hash);
        line++;
        st = weft__json_parse(at + 1, (size_t)(end - at - 1), &sample, &why);
        if (!st && !weft__json_is(weft__json_get(sample, "doc_hash"), hash))
            st = weft_fail(&why, WEFT_FORMAT, "it is of another document; a baseline answers the same ones");
        if (!st) st = weft__eval_report_add(r, sample, 1, &why);
        weft__json_free(&sample);
        if (st) weft_fail(err, st, "%s:%zu: %s", path, line, why.message);
    }
    if (!st && r->n_base < r->n)
        st = weft_fail(err, WEFT_FORMAT, "%s: has %zu of the %zu documents; finish that run, or give --limit %zu", path,
                       r->n_base, r->n, r->n_base);
    weft__free(text);
    return st;
}

/* ---- figures ---- */

static int is_rate(const weft__eval_score *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (s[i].value != 0 && s[i].value != 1) return 0;
    return n > 0;
}

/* Of a sum over a sum: x is -log-likelihood per unit. */
static weft__eval_figures of_pairs(const weft__eval_row *row, const weft__eval_score *s, size_t n)
{
    weft__eval_figures f = {NAN, NAN, NAN, NAN, 0};
    double *a = weft__alloc_array(n + 1, sizeof *a), *w = weft__alloc_array(n + 1, sizeof *w), sum_a = 0, sum_w = 0;
    for (size_t i = 0; a && w && i < n; i++) {
        a[i] = -s[i].value, w[i] = s[i].weight;
        sum_a += a[i], sum_w += w[i];
    }
    if (a && w && sum_w > 0) {
        const double x = sum_a / sum_w, half = WEFT__EVAL_Z95 * weft__eval_ratio_error(a, w, n);
        const int bits = row->metric->aggregation == WEFT__EVAL_BITS;
        f.value = bits ? x / log(2) : exp(x);
        f.low = bits ? (x - half) / log(2) : exp(x - half);
        f.high = bits ? (x + half) / log(2) : exp(x + half);
        f.error = (bits ? 1 / log(2) : f.value) * half / WEFT__EVAL_Z95;
    }
    weft__free(a);
    weft__free(w);
    return f;
}

weft__eval_figures weft__eval_report_figures(const weft__eval_row *row, int of_base)
{
    const weft__eval_score *s = of_base ? row->base : row->scores;
    const size_t n = of_base ? row->n_base : row->n;
    const weft__eval_aggregation how = row->metric->aggregation;
    weft__eval_sums sums = {0};
    weft__eval_figures f = {0};
    if (how == WEFT__EVAL_BITS || how == WEFT__EVAL_WEIGHTED_EXP) return of_pairs(row, s, n);
    for (size_t i = 0; i < n; i++) weft__eval_sums_add(&sums, s[i].value);
    f.value = weft__eval_sums_mean(&sums);
    f.error = weft__eval_sums_error(&sums);
    f.low = f.value - WEFT__EVAL_Z95 * f.error;
    f.high = f.value + WEFT__EVAL_Z95 * f.error;
    if (how == WEFT__EVAL_EXP) {
        const double low = exp(-f.high);
        f.high = exp(-f.low), f.low = low;
        f.value = exp(-f.value), f.error *= f.value;
    } else if (is_rate(s, n)) {
        const weft__eval_interval i = weft__eval_wilson(sums.sum, (double)n, WEFT__EVAL_Z95);
        f.low = i.low, f.high = i.high, f.is_rate = 1;
    }
    return f;
}

int weft__eval_report_paired(const weft__eval_row *row, weft__eval_paired *out)
{
    weft__eval_sums sums = {0};
    *out = (weft__eval_paired){0};
    if (!row->n_base || row->n_base != row->n) return 0;
    for (size_t i = 0; i < row->n; i++) {
        const double a = row->scores[i].value / row->scores[i].weight, b = row->base[i].value / row->base[i].weight;
        weft__eval_sums_add(&sums, a - b);
        out->only_this += a > b;
        out->only_base += a < b;
    }
    out->base = weft__eval_report_figures(row, 1).value;
    out->is_rate =
        is_rate(row->scores, row->n) && is_rate(row->base, row->n) && row->metric->aggregation == WEFT__EVAL_MEAN;
    out->difference = weft__eval_report_figures(row, 0).value - out->base;
    out->error = weft__eval_sums_error(&sums);
    const double mean = weft__eval_sums_mean(&sums);
    out->p = out->is_rate     ? weft__eval_mcnemar(out->only_this, out->only_base)
             : out->error > 0 ? weft__eval_normal_p(mean / out->error)
             : mean == 0      ? 1
                              : NAN;
    return 1;
}
