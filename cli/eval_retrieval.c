// SPDX-License-Identifier: Apache-2.0
/* eval_retrieval.c: weft eval retrieval: whether a model's embeddings, with adapters or without, bring texts to their
 * queries; src/eval does the work. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "eval.h"
#include "eval/retrieval.h"
#include "eval_engine.h"
#include "options.h"
#include "outputs.h"
#include "terminal.h"

enum { SLOTS = 16, QUEUE = 64, ROOM = 512 }; /* ROOM: tokens of a text, where nothing else is said */

struct retrieval_options {
    const char *corpus, *queries, *qrels, *query_prefix, *text_prefix, *pooling;
    struct text_list files;
    int json;
    eval_engine_options engine;
};

/* Everything one run needs; released by retrieving_free. */
struct retrieving {
    const struct retrieval_options *o;
    weft__eval_retrieval_set set;
    weft__eval_retrieval_scores scores;
    eval_engine engine;
};

static void retrieving_free(struct retrieving *r)
{
    eval_engine_free(&r->engine);
    weft__eval_retrieval_free(&r->set);
}

static weft_status read_set(struct retrieving *r, weft_error *err)
{
    const struct retrieval_options *o = r->o;
    weft_status st = WEFT_OK;
    if (o->corpus) return weft__eval_retrieval_beir(&r->set, o->corpus, o->queries, o->qrels, err);
    for (int i = 0; i < o->files.n && !st; i++) st = weft__eval_retrieval_add(&r->set, o->files.items[i], err);
    return st;
}

static weft_status retrieval_open(struct retrieving *r, const char *path, weft_error *err)
{
    weft_status st = read_set(r, err);
    return st ? st : eval_engine_open(&r->engine, &r->o->engine, path, err);
}

static weft_pooling pooling_of(const struct retrieval_options *o)
{
    return !o->pooling ? WEFT_POOLING_MODEL : !strcmp(o->pooling, "mean") ? WEFT_POOLING_MEAN : WEFT_POOLING_LAST;
}

static weft_status retrieve(struct retrieving *r, weft_error *err)
{
    progress bar = {0};
    const weft__eval_retrieval_params p = {.model = r->engine.model,
                                           .engine = r->engine.engine,
                                           .adapters = r->engine.adapters,
                                           .n_adapters = r->o->engine.adapters.n,
                                           .n_ctx = r->engine.n_ctx,
                                           .query_prefix = r->o->query_prefix,
                                           .text_prefix = r->o->text_prefix,
                                           .pooling = pooling_of(r->o),
                                           .progress = progress_update,
                                           .progress_arg = &bar};
    progress_stops_on_signals();
    weft_status st = weft__eval_retrieval_run(&r->set, &p, &r->scores, err);
    progress_end(&bar);
    return st;
}

/* ---- what is told ---- */

/* A mean with its interval: Wilson's of the rate of hits, normal of the others. */
struct told {
    const char *name;
    double value, low, high;
};

static struct told mean_of(const char *name, const weft__eval_sums *s)
{
    const double mean = weft__eval_sums_mean(s), error = WEFT__EVAL_Z95 * weft__eval_sums_error(s);
    /* a share is none below 0, nor above 1, whatever the normal distribution says */
    return (struct told){name, mean, fmax(0, mean - error), fmin(1, mean + error)};
}

static int tell_all(const weft__eval_retrieval_scores *s, struct told out[6])
{
    const double n = (double)s->ndcg.n, k = (double)s->n_hits;
    const weft__eval_interval w = weft__eval_wilson(k, n, WEFT__EVAL_Z95);
    out[0] = (struct told){"hit@1", n > 0 ? k / n : NAN, w.low, w.high};
    out[1] = mean_of("ndcg@10", &s->ndcg);
    out[2] = mean_of("mrr@10", &s->mrr);
    out[3] = mean_of("recall@1", &s->recall[0]);
    out[4] = mean_of("recall@10", &s->recall[1]);
    out[5] = mean_of("recall@100", &s->recall[2]);
    return 6;
}

static void put_json(const struct retrieving *r, weft__strbuf *t)
{
    struct told all[6];
    const int n = tell_all(&r->scores, all);
    weft__strbuf_printf(t, "{\"queries\": %zu, \"texts\": %zu, \"n_cut\": %lld, \"n_tokens\": %lld, \"results\": [",
                        r->set.n_queries, r->set.n_texts, (long long)r->scores.n_cut, (long long)r->scores.n_tokens);
    for (int i = 0; i < n; i++) {
        weft__strbuf_printf(t, "%s{\"metric\": \"%s\", \"value\": ", i ? ", " : "", all[i].name);
        weft__json_write_double(t, all[i].value);
        weft__strbuf_puts(t, ", \"low\": ");
        weft__json_write_double(t, all[i].low);
        weft__strbuf_puts(t, ", \"high\": ");
        weft__json_write_double(t, all[i].high);
        weft__strbuf_puts(t, "}");
    }
    weft__strbuf_puts(t, "]}\n");
}

static void put_table(const struct retrieving *r, weft__strbuf *t)
{
    struct told all[6];
    const int n = tell_all(&r->scores, all);
    weft__strbuf_printf(t, "%zu queries, %zu texts\n  %-12s %8s   95 %%\n", r->set.n_queries, r->set.n_texts, "metric",
                        "value");
    for (int i = 0; i < n; i++) {
        weft__strbuf_printf(t, "  %-12s %8.4f", all[i].name, all[i].value);
        if (isfinite(all[i].low)) weft__strbuf_printf(t, "   [%8.4f,%8.4f ]", all[i].low, all[i].high);
        weft__strbuf_puts(t, "\n");
    }
    if (r->scores.n_cut)
        weft__strbuf_printf(t, "  %lld texts were longer than %d tokens and lost their end (--ctx)\n",
                            (long long)r->scores.n_cut, r->engine.n_ctx);
}

/* 1 after a message. */
static int agree(struct retrieval_options *o)
{
    const int beir = (o->corpus != NULL) + (o->queries != NULL) + (o->qrels != NULL);
    const char *what = beir && beir < 3       ? "--corpus, --queries and --qrels go together"
                       : beir && o->files.n   ? "-f FILE holds queries and texts; give it, or --corpus and the others"
                       : !beir && !o->files.n ? "-f FILE is missing (or --corpus, --queries and --qrels)"
                                              : NULL;
    if (what) fprintf(stderr, "weft eval retrieval: %s\n", what);
    return what || !eval_engine_check("eval retrieval", &o->engine);
}

static const command_spec SPEC = {
    "eval retrieval",
    "MODEL -f RECORDS [options]",
    "Whether the embedding of a query stands nearest to those of the texts that belong to it, by cosine: embeddings "
    "as\n"
    "/v1/embeddings gives them. RECORDS are lines {\"query\", \"positive\", \"negatives\"}, as 'weft adapter train\n"
    "--loss infonce' learns them: all their positives and negatives are searched for each query. Or the three files\n"
    "of a BEIR task.",
    "  weft eval retrieval model.gguf -f test.jsonl --adapter a=adapter.gguf\n"
    "  weft eval retrieval model.gguf --corpus corpus.jsonl --queries queries.jsonl --qrels qrels/test.tsv\n",
    NULL,
    1,
    1};

int eval_retrieval_command(int argc, char **argv)
{
    static struct retrieval_options o = {
        .engine = {.kv_type = "f16", .usual_slots = SLOTS, .usual_ctx = ROOM, .queue = QUEUE}};
    const option_spec options[] = {
        {"file", 'f', OPT_LIST, &o.files, "RECORDS", "JSONL of queries and texts; may be repeated", 0, 0, NULL},
        {"corpus", 0, OPT_TEXT, &o.corpus, "FILE", "BEIR: lines {\"_id\", \"title\", \"text\"}", 0, 0, NULL},
        {"queries", 0, OPT_TEXT, &o.queries, "FILE", "BEIR: lines {\"_id\", \"text\"}", 0, 0, NULL},
        {"qrels", 0, OPT_TEXT, &o.qrels, "FILE",
         "BEIR: a heading, then query, text and grade with tabs between; only its queries are asked", 0, 0, NULL},
        {"query-prefix", 0, OPT_TEXT, &o.query_prefix, "TEXT", "stands before each query, as the model was trained", 0,
         0, NULL},
        {"pooling", 0, OPT_TEXT, &o.pooling, "HOW",
         "mean of all tokens' states, or the last token's: mean, last (as the model's file says, else mean)", 0, 0,
         NULL, "mean last"},
        {"text-prefix", 0, OPT_TEXT, &o.text_prefix, "TEXT", "stands before each text", 0, 0, NULL},
        EVAL_ENGINE_OPTIONS(&o.engine, "tokens of a text; the rest is left out (the model's, at most 512)", 1,
                            "texts that are computed at once (16)"),
        {"json", 0, OPT_FLAG, &o.json, NULL, "one JSON object", 0, 0, NULL},
        {0},
    };
    command_spec spec = SPEC;
    spec.options = options;
    int first;
    int rc = options_parse(&spec, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    if (agree(&o)) return EXIT_USAGE;
    static struct retrieving r = {.o = &o};
    weft_error err = {0};
    weft__strbuf out = {0};
    weft_status st = retrieval_open(&r, argv[first], &err);
    if (!st) st = retrieve(&r, &err);
    if (!st && o.json) put_json(&r, &out);
    else if (!st) put_table(&r, &out);
    if (!st) st = print_whole(&out, &err);
    retrieving_free(&r);
    return st ? report("eval retrieval", &err) : EXIT_DONE;
}
