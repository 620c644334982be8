// SPDX-License-Identifier: Apache-2.0
/* score.h: what came back for a document, filtered, judged, and written as a line of samples. Pure, but that `scratch`
 * belongs to one thread. */
#ifndef WEFT_EVAL_SCORE_H
#define WEFT_EVAL_SCORE_H

#include "eval/prompt.h"
#include "eval/task.h"

/* Of one question: the answers to it (repeats of them), or its log-probability. */
typedef struct weft__eval_response {
    weft__strbuf text; /* of what was generated */
    double logprob;    /* of what was scored, summed over its tokens */
    int32_t n_scored;  /* tokens */
    int is_greedy;     /* each of them was the likeliest */
} weft__eval_response;

typedef struct weft__eval_answers {
    size_t doc; /* from 0 */
    const weft__eval_asks *asks;
    const weft__eval_response *items; /* [n] by question; of what is generated, by repeat */
    size_t n;
    int64_t n_cut, n_tokens, n_unended;
} weft__eval_answers;

/* One line: {"doc_id", "doc_hash", "prompt", "target", "resps", "filtered", "scores": {FILTER: {METRIC: value or
 * [value, weight]}}, "n_cut", "n_tokens", "n_unended"}, without its newline; appended. Fails with the document's
 * number. */
weft_status weft__eval_judge(const weft__eval_task *t, const weft__eval_answers *a, weft__regex_scratch *scratch,
                             weft__strbuf *line, weft_error *err);
/* A hash of a document's text, 16 digits. */
void weft__eval_doc_hash(const weft__json *doc, char out[17]);

/* One filter over answers: *out gets what is left of them, texts or None (NULL), to be freed by weft__eval_texts_free;
 * is_one: a single answer was taken. */
typedef struct weft__eval_texts {
    weft__strbuf *items;
    int *is_none;
    size_t n;
    int is_one;
} weft__eval_texts;
weft_status weft__eval_filter_apply(const weft__eval_filter *f, const weft__json *golds, weft__regex_scratch *scratch,
                                    weft__eval_texts *texts, weft_error *err);
void weft__eval_texts_free(weft__eval_texts *t);

#endif
