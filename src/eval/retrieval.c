// SPDX-License-Identifier: Apache-2.0
/* retrieval.c: texts to embeddings by the engine, embeddings to scores (retrieval.h). */
#include "eval/retrieval.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

/* ---- scores ---- */

static double dot(const float *a, const float *b, int32_t n)
{
    double sum = 0;
    for (int32_t i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

static int belongs(const weft__eval_retrieval_link *links, size_t n, size_t text)
{
    for (size_t i = 0; i < n; i++)
        if (links[i].text == text) return 1;
    return 0;
}

/* Where the text of links[i] stands, from 1: behind all that are nearer, and all as near that do not belong. */
static size_t rank_of(const weft__eval_retrieval_set *s, const weft__eval_retrieval_link *links, size_t n, size_t i,
                      const double *near)
{
    const uint32_t text = links[i].text;
    size_t rank = 1;
    for (size_t t = 0; t < s->n_texts; t++) {
        if (near[t] < near[text] || t == text) continue;
        if (near[t] > near[text] || !belongs(links, n, t)) rank++;
        else rank += t < text;
    }
    return rank;
}

/* The largest gain that the first ten can have. */
static double ideal_gain(const weft__eval_retrieval_link *links, size_t n)
{
    double top[10] = {0}, sum = 0;
    for (size_t i = 0; i < n; i++) {
        double v = links[i].grade;
        for (int k = 0; k < 10; k++) {
            if (v <= top[k]) continue;
            const double was = top[k];
            top[k] = v;
            v = was;
        }
    }
    for (int k = 0; k < 10; k++) sum += top[k] / log2(k + 2.0);
    return sum;
}

static void score_query(const weft__eval_retrieval_set *s, const weft__eval_retrieval_link *links, size_t n,
                        const double *near, weft__eval_retrieval_scores *out)
{
    static const size_t depths[] = {1, 10, 100};
    size_t first = SIZE_MAX, found[3] = {0};
    double gain = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t rank = rank_of(s, links, n, i, near);
        if (rank < first) first = rank;
        if (rank <= 10) gain += links[i].grade / log2((double)rank + 1);
        for (int k = 0; k < 3; k++) found[k] += rank <= depths[k];
    }
    weft__eval_sums_add(&out->ndcg, gain / ideal_gain(links, n));
    weft__eval_sums_add(&out->mrr, first <= 10 ? 1 / (double)first : 0);
    for (int k = 0; k < 3; k++) weft__eval_sums_add(&out->recall[k], (double)found[k] / (double)n);
    out->n_hits += first == 1;
}

void weft__eval_retrieval_score(const weft__eval_retrieval_set *s, const float *queries, const float *texts,
                                int32_t width, double *near, weft__eval_retrieval_scores *out)
{
    for (size_t i = 0, n; i < s->n_links; i += n) {
        const size_t query = s->links[i].query;
        for (n = 0; i + n < s->n_links && s->links[i + n].query == query; n++) continue;
        for (size_t t = 0; t < s->n_texts; t++)
            near[t] = dot(queries + query * (size_t)width, texts + t * (size_t)width, width);
        score_query(s, s->links + i, n, near, out);
    }
}

/* ---- embeddings ---- */

/* Texts with the engine: those from `taken` to `given` are computed. */
struct embedding {
    const weft__eval_retrieval_params *p;
    const weft__eval_retrieval_set *s;
    weft_inbox *inbox;
    float *vectors; /* [queries, then texts][width] */
    size_t n, given, finished;
    int32_t width;
    int32_t *ids;
    size_t ids_room;
    weft__strbuf text;
    weft__eval_retrieval_scores *out;
};

/* Text i, with what stands before it, as the server reads the input of /v1/embeddings. */
static weft_status tokens_of(struct embedding *e, size_t i, size_t *n, weft_error *err)
{
    const int is_query = i < e->s->n_queries;
    const weft__eval_retrieval_text *t = is_query ? &e->s->queries[i] : &e->s->texts[i - e->s->n_queries];
    const char *prefix = is_query ? e->p->query_prefix : e->p->text_prefix;
    e->text.len = 0;
    weft__strbuf_puts(&e->text, prefix ? prefix : "");
    weft__strbuf_put(&e->text, t->text, t->n);
    if (e->text.failed || !weft__grow(&e->ids, &e->ids_room, e->text.len + 8, sizeof *e->ids))
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for a text's tokens");
    weft_status st = weft_tokenize(weft_model_tokenizer(e->p->model), e->text.data, e->text.len, WEFT_TOKENIZE_BOS,
                                   e->ids, e->ids_room, n, err);
    if (!st && *n > (size_t)e->p->n_ctx) {
        *n = (size_t)e->p->n_ctx;
        e->out->n_cut++;
    }
    return st;
}

/* Gives the engine the next text. WEFT_BUSY: later. */
static weft_status submit_next(struct embedding *e, weft_error *err)
{
    weft_request_params r;
    uint64_t request;
    size_t n = 0;
    const int64_t n_cut = e->out->n_cut;
    weft_status st = tokens_of(e, e->given, &n, err);
    if (st) return st;
    weft_request_params_default(&r);
    r.tokens = e->ids;
    r.n_tokens = (int32_t)n;
    r.embedding = e->p->pooling ? e->p->pooling : WEFT_POOLING_MODEL;
    r.n_top = -1;
    r.adapters = e->p->adapters;
    r.n_adapters = e->p->n_adapters;
    st = weft_inbox_submit(e->inbox, &r, e->vectors + e->given * (size_t)e->width, &request, NULL, err);
    if (st) e->out->n_cut = n_cut;
    else e->given++, e->out->n_tokens += (int64_t)n;
    return st;
}

static weft_status take_event(struct embedding *e, weft_error *err)
{
    const weft_event *v = weft_inbox_take(e->inbox, 1000);
    if (!v || v->kind != WEFT_EVENT_FINISHED) return WEFT_OK;
    if (v->finish == WEFT_FINISH_FAILED)
        return weft_fail(err, v->status, "%s", v->message ? v->message : "an embedding failed");
    if (v->finish == WEFT_FINISH_CANCELLED) return weft_fail(err, WEFT_CANCELLED, "cancelled");
    e->finished++;
    return WEFT_OK;
}

static weft_status embed_all(struct embedding *e, weft_error *err)
{
    weft_error later = {0};
    weft_status st = WEFT_OK;
    while (!st && e->finished < e->n) {
        while (!st && e->given < e->n) st = submit_next(e, &later);
        if (st && st != WEFT_BUSY) return weft_fail(err, st, "%s", later.message);
        st = take_event(e, err);
        if (!st && e->p->progress && e->p->progress(e->p->progress_arg, "texts", (double)e->finished / (double)e->n))
            st = weft_fail(err, WEFT_CANCELLED, "cancelled");
    }
    return st;
}

weft_status weft__eval_retrieval_run(const weft__eval_retrieval_set *s, const weft__eval_retrieval_params *p,
                                     weft__eval_retrieval_scores *out, weft_error *err)
{
    struct embedding e = {.p = p, .s = s, .n = s->n_queries + s->n_texts, .out = out};
    weft_model_info info = {.size = sizeof info};
    *out = (weft__eval_retrieval_scores){0};
    if (!weft_model_tokenizer(p->model)) return weft_fail(err, WEFT_UNSUPPORTED, "the model has no tokenizer");
    weft_status st = weft_model_describe(p->model, &info, err);
    e.width = info.d_model;
    e.vectors = st ? NULL : weft__alloc_zero(e.n * (size_t)e.width + 1, sizeof *e.vectors);
    double *near = weft__alloc_array(s->n_texts + 1, sizeof *near);
    if (!st && (!e.vectors || !near)) st = weft_fail(err, WEFT_NO_MEMORY, "no memory for embeddings");
    if (!st) st = weft_inbox_new(p->engine, &e.inbox, err);
    if (!st) st = embed_all(&e, err);
    weft_inbox_free(&e.inbox); /* before the vectors: requests that run write there */
    if (!st) weft__eval_retrieval_score(s, e.vectors, e.vectors + s->n_queries * (size_t)e.width, e.width, near, out);
    weft__free(near);
    weft__strbuf_free(&e.text);
    weft__free(e.ids);
    weft__free(e.vectors);
    return st;
}
