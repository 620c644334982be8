// SPDX-License-Identifier: Apache-2.0
/* report.h: samples added up: each metric behind each filter, how sure it is, and against another run. One thread per
 * object. */
#ifndef WEFT_EVAL_REPORT_H
#define WEFT_EVAL_REPORT_H

#include "eval/stats.h"
#include "eval/task.h"

/* A value of one document, or a pair with its weight. */
typedef struct weft__eval_score {
    double value, weight;
} weft__eval_score;

typedef struct weft__eval_row {
    const char *filter;
    const weft__eval_metric *metric;
    weft__eval_score *scores; /* [n] in the order of the documents */
    size_t n, capacity;
    weft__eval_score *base; /* [n_base] of the baseline */
    size_t n_base, base_capacity;
} weft__eval_row;

/* Zero-initialise. */
typedef struct weft__eval_report {
    const weft__eval_task *task;
    weft__eval_row *rows; /* [n_rows]: filters times metrics */
    size_t n_rows, n, n_base;
    int64_t n_cut, n_tokens;   /* documents whose context lost its beginning; tokens computed or generated */
    int64_t n_unended;         /* answers that max_tokens ended */
    size_t n_resumed;          /* samples that a file had already */
    const char *model, *style; /* for people; "chat" or "text" */
} weft__eval_report;

/* What is made of a row. low and high: 95 %. */
typedef struct weft__eval_figures {
    double value, low, high, error;
    int is_rate; /* of right and wrong: low and high are Wilson's */
} weft__eval_figures;

/* Paired with the baseline, document by document. */
typedef struct weft__eval_paired {
    double base, difference, error, p;
    int64_t only_this, only_base; /* right in one alone, of a rate */
    int is_rate;                  /* p is McNemar's, exact; else of the normal distribution */
} weft__eval_paired;

weft_status weft__eval_report_begin(weft__eval_report *r, const weft__eval_task *task, weft_error *err);
void weft__eval_report_free(weft__eval_report *r);
/* A line of samples (score.h); of_base: of the baseline. WEFT_FORMAT where it lacks a row's score. */
weft_status weft__eval_report_add(weft__eval_report *r, const weft__json *sample, int of_base, weft_error *err);
weft__eval_figures weft__eval_report_figures(const weft__eval_row *row, int of_base);
/* 0: there is no baseline. */
int weft__eval_report_paired(const weft__eval_row *row, weft__eval_paired *out);
/* The file of samples of another run over the same documents; more of them than this has are left out. Fails with
 * WEFT_FORMAT for other documents, or fewer. */
weft_status weft__eval_report_baseline(weft__eval_report *r, const char *path, weft_error *err);

/* For people; as one JSON object; a picture (SVG). Appended. */
void weft__eval_report_text(const weft__eval_report *r, weft__strbuf *out);
void weft__eval_report_json(const weft__eval_report *r, weft__strbuf *out);
void weft__eval_report_svg(const weft__eval_report *r, weft__strbuf *out);

#endif
