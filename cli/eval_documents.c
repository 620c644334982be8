// SPDX-License-Identifier: Apache-2.0
/* eval_documents.c: weft eval documents: how well a model predicts documents, each alone and from its first token, as
 * it was trained on them; texts of documents, each with its number, and all of them together. weft_perplexity does the
 * work. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapters.h"
#include "base/alloc.h"
#include "base/json.h"
#include "eval.h"
#include "options.h"
#include "perplexity_print.h"
#include "prompt.h"
#include "provider.h"
#include "rope.h"
#include "terminal.h"

struct documents_options {
    struct text_list texts;
    const char *separator;
    int32_t n_ctx, threads;
    int json;
    struct text_list adapters;
    struct adapter_option adapter[LIST_MAX];
    rope_options rope;
};

/* Of one text, or of all. */
struct documents_scored {
    int64_t n_tokens;
    double nll, nll2; /* sums of -log p, and of its squares */
    int32_t n_documents, n_cut;
};

/* Everything one run needs; released by reading_free. */
struct eval_documents_reading {
    const struct documents_options *o;
    weft_model *model;
    char *texts[LIST_MAX];
    weft_perplexity_text *documents; /* weft__free() */
    int32_t *text_of;                /* the text that a document is of; weft__free() */
    size_t n_documents, room, text_of_room;
    weft_adapter_file *files[LIST_MAX];
    weft_adapter_use uses[LIST_MAX];
    weft_perplexity_result result;
    struct documents_scored all, each[LIST_MAX];
    progress bar;
};

static void reading_free(struct eval_documents_reading *r)
{
    for (int i = 0; i < LIST_MAX; i++) {
        weft_adapter_file_close(&r->files[i]);
        free(r->texts[i]);
    }
    weft__free(r->documents);
    weft__free(r->text_of);
    weft_model_close(&r->model);
}

/* Before the model is read. */
static weft_status check_texts(const struct documents_options *o, weft_error *err)
{
    for (int i = 0; i < o->texts.n; i++)
        if (strcmp(o->texts.items[i], "-") && access(o->texts.items[i], R_OK))
            return weft_fail(err, errno == ENOENT ? WEFT_NOT_FOUND : WEFT_IO, "%s: %s", o->texts.items[i],
                             strerror(errno));
    return WEFT_OK;
}

/* ---- texts as documents ---- */

static weft_status add_document(struct eval_documents_reading *r, int32_t text, const char *at, size_t n,
                                weft_error *err)
{
    if (!weft__grow(&r->documents, &r->room, r->n_documents + 1, sizeof *r->documents) ||
        !weft__grow(&r->text_of, &r->text_of_room, r->n_documents + 1, sizeof *r->text_of))
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for documents");
    if (r->n_documents == INT32_MAX) return weft_fail(err, WEFT_LIMIT, "there are too many documents");
    r->documents[r->n_documents] = (weft_perplexity_text){.text = at, .n = n};
    r->text_of[r->n_documents++] = text;
    return WEFT_OK;
}

static int is_break(char c)
{
    return c == '\n' || c == '\r';
}

/* Each ends with the separator, or with the file. */
static weft_status cut_text(struct eval_documents_reading *r, int32_t which, weft_error *err)
{
    size_t n_all = 0, n_separator = strlen(r->o->separator);
    weft_status st = read_text(r->o->texts.items[which], &r->texts[which], &n_all, err);
    const char *all = r->texts[which];
    for (size_t at = 0, end; !st && at < n_all; at = end) {
        const char *stop = n_separator ? strstr(all + at, r->o->separator) : NULL;
        end = stop ? (size_t)(stop - all) + n_separator : n_all;
        while (at < end && is_break(all[at])) at++; /* line breaks beside a separator do not count */
        size_t n = end - at;
        while (!stop && n && is_break(all[at + n - 1])) n--;
        if (n > (stop ? n_separator : 0)) st = add_document(r, which, all + at, n, err);
    }
    return st;
}

/* ---- scoring ---- */

static void add_scored(struct documents_scored *to, const weft_perplexity_event *e)
{
    to->n_tokens += e->n_scored;
    to->nll += e->nll_sum;
    to->nll2 += e->nll_squares;
    to->n_documents += e->n_scored > 0;
    to->n_cut += (int32_t)e->n_cut;
}

/* A weft_perplexity_fn. */
static int told(void *arg, const weft_perplexity_event *e)
{
    struct eval_documents_reading *r = arg;
    add_scored(&r->all, e);
    add_scored(&r->each[r->text_of[e->text]], e);
    return progress_update(&r->bar, "documents", e->fraction);
}

static weft_status open_model(struct eval_documents_reading *r, const char *path, weft_error *err)
{
    weft_model_params mp;
    weft_model_params_default(&mp);
    mp.renew_plan = 1;
    mp.n_threads = r->o->threads;
    mp.provider = provider_given;
    mp.rope = r->o->rope.params;
    weft_status st = weft_model_open(path, &mp, &r->model, err);
    return st ? st : adapter_options_open(r->o->adapter, r->o->adapters.n, r->model, r->files, r->uses, err);
}

static weft_status score(struct eval_documents_reading *r, const char *path, weft_error *err)
{
    weft_perplexity_params p;
    weft_perplexity_params_default(&p);
    r->result.size = sizeof r->result;
    weft_status st = check_texts(r->o, err);
    if (!st) st = open_model(r, path, err);
    for (int i = 0; i < r->o->texts.n && !st; i++) st = cut_text(r, i, err);
    if (st) return st;
    p.form = WEFT_PERPLEXITY_TEXTS;
    p.n_ctx = r->o->n_ctx;
    p.tokenize = WEFT_TOKENIZE_BOS | WEFT_TOKENIZE_SPECIAL;
    p.adapters = r->uses;
    p.n_adapters = r->o->adapters.n;
    p.report = told;
    p.arg = r;
    st = weft_perplexity(r->model, r->documents, (int32_t)r->n_documents, &p, &r->result, err);
    progress_end(&r->bar);
    return st;
}

/* ---- what is told ---- */

/* exp of the mean, and its standard error. */
static weft_estimate perplexity_of(const struct documents_scored *d)
{
    const double n = (double)d->n_tokens, mean = d->nll / n, variance = d->nll2 / n - mean * mean;
    const double error = n > 1 && variance > 0 ? sqrt(variance / (n - 1)) : 0;
    return (weft_estimate){exp(mean), exp(mean) * error};
}

static void print_texts(const struct eval_documents_reading *r)
{
    for (int i = 0; i < r->o->texts.n && r->o->texts.n > 1; i++) {
        const weft_estimate e = perplexity_of(&r->each[i]);
        print_clean(stdout, r->o->texts.items[i], strlen(r->o->texts.items[i]), 32);
        printf(" %6d documents, %8lld tokens: PPL = %.4lf +/- %.5lf\n", r->each[i].n_documents,
               (long long)r->each[i].n_tokens, e.value, e.error);
    }
    perplexity_print_final(r->result.perplexity);
}

static void put_figures(weft__strbuf *t, const struct documents_scored *d, weft_estimate e)
{
    weft__strbuf_printf(t, "\"tokens\": %lld, \"documents\": %d, \"cut\": %d", (long long)d->n_tokens, d->n_documents,
                        d->n_cut);
    perplexity_put_member(t, "ppl", e.value);
    perplexity_put_member(t, "ppl_error", e.error);
    perplexity_put_member(t, "nll", log(e.value));
}

/* The whole as ever; where there are several texts, each of them under "texts". */
static weft_status print_texts_json(const struct eval_documents_reading *r, weft_error *err)
{
    weft__strbuf t = {0};
    weft__strbuf_puts(&t, "{");
    put_figures(&t, &r->all, r->result.perplexity);
    for (int i = 0; i < r->o->texts.n && r->o->texts.n > 1; i++) {
        weft__strbuf_puts(&t, i ? ", {\"file\": " : ", \"texts\": [{\"file\": ");
        weft__json_write_string(&t, r->o->texts.items[i], strlen(r->o->texts.items[i]));
        weft__strbuf_puts(&t, ", ");
        put_figures(&t, &r->each[i], perplexity_of(&r->each[i]));
        weft__strbuf_puts(&t, "}");
    }
    weft__strbuf_puts(&t, r->o->texts.n > 1 ? "]}\n" : "}\n");
    return print_whole(&t, err);
}

/* A text of which nothing was scored is named. */
static weft_status check_scored(const struct eval_documents_reading *r, weft_error *err)
{
    for (int i = 0; i < r->o->texts.n; i++)
        if (!r->each[i].n_tokens)
            return weft_fail(err, WEFT_ARGUMENT, "%s: no document of two tokens or more", r->o->texts.items[i]);
    return WEFT_OK;
}

int eval_documents_command(int argc, char **argv)
{
    static struct documents_options o = {.separator = "<|endoftext|>"};
    const option_spec options[] = {
        {"file", 'f', OPT_LIST, &o.texts, "TEXT", "the documents; may be repeated: each text gets a number", 0, 0,
         NULL},
        {"separator", 0, OPT_TEXT, &o.separator, "S", "what ends a document, and is part of it (<|endoftext|>)", 0, 0,
         NULL},
        {"ctx", 'c', OPT_INT, &o.n_ctx, "N",
         "tokens of a document at most; the rest is left out (512, or the model's context)", 1, 1 << 20, NULL},
        {"adapter", 0, OPT_LIST, &o.adapters, "A", "[NAME=]PATH[:SCALE], a GGUF file or PEFT folder; may be repeated",
         0, 0, NULL},
        ROPE_OPTIONS(&o.rope),
        PROVIDER_OPTION,
        {"threads", 't', OPT_INT, &o.threads, "THREADS", "threads (one per core)", 1, WEFT_THREADS_MAX, NULL},
        {"json", 0, OPT_FLAG, &o.json, NULL, "one JSON object", 0, 0, NULL},
        {0},
    };
    const command_spec spec = {
        "eval documents",
        "MODEL -f TEXT [options]",
        "Perplexity of documents, each from an empty context and with every token scored: what 'weft train' calls the\n"
        "held-out loss is its logarithm. ('weft eval perplexity' scores one running text, as llama-perplexity does.)",
        "  weft eval documents model-q4.gguf -f heldout.txt\n"
        "  weft eval documents model.gguf -f old.txt -f new.txt --adapter a=adapter.gguf\n",
        options,
        1,
        1};
    int first;
    int rc = options_parse(&spec, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    if (!o.texts.n) {
        fprintf(stderr, "weft eval documents: -f TEXT is missing\n");
        return EXIT_USAGE;
    }
    if (!rope_options_check("eval documents", &o.rope)) return EXIT_USAGE;
    if (!adapter_options_parse("eval documents", &o.adapters, o.adapter)) return EXIT_USAGE;
    static struct eval_documents_reading r = {.o = &o};
    weft_error err = {0};
    weft_status st = score(&r, argv[first], &err);
    /* Of a model whose numbers are none, scripts get the object nevertheless. */
    const int lost = st && r.result.n_scored && !isfinite(r.result.perplexity.value);
    if (!st) st = check_scored(&r, &err);
    const weft_status printed = o.json && (!st || lost) ? print_texts_json(&r, st ? NULL : &err) : WEFT_OK;
    if (!o.json && !st) print_texts(&r);
    if (!st) st = printed;
    reading_free(&r);
    return st ? report("eval documents", &err) : EXIT_DONE;
}
