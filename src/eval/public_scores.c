// SPDX-License-Identifier: Apache-2.0
/* public_scores.c: scores as programs have them (weft/eval.h); report.c adds them up. */
#include "eval/public_scores.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/params.h"

weft_status weft__eval_scores_new(const weft_task *task, const char *model, const weft_eval_params *params,
                                  weft_scores **out, weft_error *err)
{
    weft_scores *s = weft__alloc_zero(1, sizeof *s);
    *out = s;
    if (!s) return weft_fail(err, WEFT_NO_MEMORY, "no memory for scores");
    snprintf(s->model, sizeof s->model, "%s", model);
    s->report.model = s->model;
    s->report.style = params->chat ? params->multiturn ? "turns of a chat" : "a chat" : "text";
    return weft__eval_report_begin(&s->report, task, err);
}

void weft_scores_free(weft_scores **scores)
{
    if (!scores || !*scores) return;
    weft__eval_report_free(&(*scores)->report);
    weft__strbuf_free(&(*scores)->text);
    weft__free(*scores);
    *scores = NULL;
}

weft_status weft_scores_describe(const weft_scores *scores, weft_scores_info *out, weft_error *err)
{
    const weft__eval_report *r = &scores->report;
    const weft_scores_info own = {.size = sizeof own,
                                  .n_scores = (int32_t)r->n_rows,
                                  .n_documents = (int64_t)r->n,
                                  .n_cut = r->n_cut,
                                  .n_unended = r->n_unended,
                                  .n_tokens = r->n_tokens,
                                  .n_resumed = (int64_t)r->n_resumed,
                                  .n_baseline = (int64_t)r->n_base};
    return weft__params_write(WEFT__PARAMS_TYPE(weft_scores_info), out, &own, err);
}

weft_status weft_scores_get(const weft_scores *scores, int32_t index, weft_score *out, weft_error *err)
{
    const weft__eval_report *r = &scores->report;
    if (index < 0 || (size_t)index >= r->n_rows)
        return weft_fail(err, WEFT_ARGUMENT, "there is no score of index %d, but %zu", index, r->n_rows);
    const weft__eval_row *row = &r->rows[index];
    const weft__eval_figures f = weft__eval_report_figures(row, 0);
    weft__eval_paired p;
    weft_score own = {.size = sizeof own,
                      .higher_is_better = row->metric->higher_is_better,
                      .filter = row->filter,
                      .metric = row->metric->name,
                      .value = f.value,
                      .low = f.low,
                      .high = f.high,
                      .error = f.error,
                      .is_rate = f.is_rate};
    own.has_baseline = weft__eval_report_paired(row, &p);
    if (own.has_baseline) {
        own.baseline = p.base;
        own.difference = p.difference;
        own.p = p.p;
        own.only_here = p.only_this;
        own.only_there = p.only_base;
        own.is_exact = p.is_rate;
    }
    return weft__params_write(WEFT__PARAMS_TYPE(weft_score), out, &own, err);
}

weft_status weft_scores_compare(weft_scores *scores, const char *samples, weft_error *err)
{
    weft__eval_report *r = &scores->report;
    if (r->n_base) return weft_fail(err, WEFT_STATE, "the scores have a baseline already");
    weft_status st = weft__eval_report_baseline(r, samples, err);
    if (!st) return WEFT_OK;
    for (size_t i = 0; i < r->n_rows; i++) r->rows[i].n_base = 0;
    r->n_base = 0;
    return st;
}

weft_status weft_scores_write(weft_scores *scores, int32_t form, const char **text, size_t *length, weft_error *err)
{
    static void (*const writers[])(const weft__eval_report *,
                                   weft__strbuf *) = {[WEFT_SCORES_TABLE] = weft__eval_report_text,
                                                      [WEFT_SCORES_JSON] = weft__eval_report_json,
                                                      [WEFT_SCORES_SVG] = weft__eval_report_svg};
    if (form < 0 || form > WEFT_SCORES_SVG)
        return weft_fail(err, WEFT_ARGUMENT, "form %d is none of weft_scores_form", form);
    weft__strbuf_free(&scores->text);
    writers[form](&scores->report, &scores->text);
    if (scores->text.failed || !scores->text.data) return weft_fail(err, WEFT_NO_MEMORY, "no memory for scores");
    *text = scores->text.data;
    *length = scores->text.len;
    return WEFT_OK;
}
