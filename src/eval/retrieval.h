// SPDX-License-Identifier: Apache-2.0
/* retrieval.h: does a model's embedding of a query stand nearest to those of the texts that belong to it? Queries,
 * texts and which belong together come from records as `weft adapter train --loss infonce` learns them, or from the
 * three files of a BEIR task. Measured as BEIR does (Thakur et al. 2021), by cosines, over all texts of the set; a text
 * that does not belong and is as near as one that does stands before it, so that embeddings that are all alike find
 * nothing. One thread calls; the engine has its own. */
#ifndef WEFT_EVAL_RETRIEVAL_H
#define WEFT_EVAL_RETRIEVAL_H

#include "base/text.h"
#include "eval/stats.h"
#include "weft/weft.h"

typedef struct weft__eval_retrieval_text {
    char *text; /* weft__free() */
    size_t n;
} weft__eval_retrieval_text;

/* Text `text` belongs to query `query`, so much: above 0. */
typedef struct weft__eval_retrieval_link {
    uint32_t query, text;
    double grade;
} weft__eval_retrieval_link;

/* Zero-initialise. */
typedef struct weft__eval_retrieval_set {
    weft__eval_retrieval_text *queries, *texts; /* each once */
    weft__eval_retrieval_link *links;           /* in the order of their queries */
    size_t n_queries, n_texts, n_links;
    size_t queries_room, texts_room, links_room;
} weft__eval_retrieval_set;

/* Adds the records {"query", "positive", "negatives"} of a file (also "anchor" and "negative"): the positives and
 * negatives of all of them are the texts. Fails with WEFT_FORMAT (file and line), WEFT_IO, WEFT_NO_MEMORY. */
weft_status weft__eval_retrieval_add(weft__eval_retrieval_set *s, const char *path, weft_error *err);
/* A BEIR task: lines {"_id", "title", "text"}, lines {"_id", "text"}, and lines of query, text and grade with tabs
 * between, a heading before them. Queries without a text are left out. Fails so, too. */
weft_status weft__eval_retrieval_beir(weft__eval_retrieval_set *s, const char *texts, const char *queries,
                                      const char *grades, weft_error *err);
/* The same of bytes in memory, for fuzzing, too; BEIR's files in that order. After a failure the set is to be freed. */
typedef struct weft__eval_retrieval_file {
    const char *name, *text; /* name: for messages */
    size_t n;
} weft__eval_retrieval_file;
weft_status weft__eval_retrieval_parse(weft__eval_retrieval_set *s, const char *name, const char *text, size_t n,
                                       weft_error *err);
weft_status weft__eval_retrieval_beir_parse(weft__eval_retrieval_set *s, const weft__eval_retrieval_file files[3],
                                            weft_error *err);
void weft__eval_retrieval_free(weft__eval_retrieval_set *s);

typedef struct weft__eval_retrieval_params {
    weft_model *model;
    weft_engine *engine;
    const weft_request_adapter *adapters; /* [n_adapters] of the engine */
    int32_t n_adapters, n_ctx;
    const char *query_prefix, *text_prefix; /* or NULL */
    weft_pooling pooling;                   /* WEFT_POOLING_NONE: the model's */
    weft_progress_fn progress;
    void *progress_arg;
} weft__eval_retrieval_params;

/* Means over queries. */
typedef struct weft__eval_retrieval_scores {
    weft__eval_sums ndcg, mrr; /* of the first ten; gain is the grade */
    weft__eval_sums recall[3]; /* share of what belongs among the first 1, 10, 100 */
    int64_t n_hits;            /* queries whose first text belongs to them */
    int64_t n_cut;             /* texts that were longer than the context */
    int64_t n_tokens;
} weft__eval_retrieval_scores;

/* Fails with WEFT_UNSUPPORTED (no tokenizer), what the engine fails with, WEFT_CANCELLED, WEFT_NO_MEMORY. */
weft_status weft__eval_retrieval_run(const weft__eval_retrieval_set *s, const weft__eval_retrieval_params *p,
                                     weft__eval_retrieval_scores *out, weft_error *err);

/* Adds the scores of embeddings: queries [n_queries, width] and texts [n_texts, width], of length 1. near: [n_texts]
 * scratch. */
void weft__eval_retrieval_score(const weft__eval_retrieval_set *s, const float *queries, const float *texts,
                                int32_t width, double *near, weft__eval_retrieval_scores *out);

#endif
