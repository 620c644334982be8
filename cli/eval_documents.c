// SPDX-License-Identifier: Apache-2.0
/* eval_documents.c: weft eval documents: how well a model predicts documents, each alone and from its first token, as
 * it was trained on them; texts of documents, each with its number, and all of them together. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapters.h"
#include "eval.h"
#include "options.h"
#include "prompt.h"
#include "provider.h"
#include "quality.h"
#include "rope.h"
#include "terminal.h"

enum { USUAL_CTX = 512 };

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
    quality_sums sums;
    int32_t n_documents, n_cut;
};

/* Everything one run needs; released by reading_free. */
struct eval_documents_reading {
    const struct documents_options *o;
    weft_model *model;
    weft_session *session;
    int32_t n_vocab, n_ctx;
    int lost;      /* the model's numbers are none */
    float *logits; /* [n_ctx, n_vocab] */
    struct documents_scored all, texts[LIST_MAX];
};

static void reading_free(struct eval_documents_reading *r)
{
    free(r->logits);
    weft_session_free(&r->session);
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

static weft_status eval_documents_prepare(struct eval_documents_reading *r, const char *path, weft_error *err)
{
    weft_model_params mp;
    weft_session_params sp;
    weft_model_info info = {.size = sizeof info};
    weft_status st = check_texts(r->o, err);
    weft_model_params_default(&mp);
    mp.renew_plan = 1;
    mp.n_threads = r->o->threads;
    mp.provider = provider_given;
    mp.rope = r->o->rope.params;
    if (st || (st = weft_model_open(path, &mp, &r->model, err)) || (st = weft_model_describe(r->model, &info, err)))
        return st;
    if (!weft_model_tokenizer(r->model)) return weft_fail(err, WEFT_UNSUPPORTED, "the model has no tokenizer");
    r->n_vocab = info.n_vocab;
    r->n_ctx = r->o->n_ctx ? r->o->n_ctx : info.n_ctx_max < USUAL_CTX ? info.n_ctx_max : USUAL_CTX;
    r->logits = calloc((size_t)r->n_ctx, (size_t)r->n_vocab * sizeof *r->logits);
    if (!r->logits) return weft_fail(err, WEFT_NO_MEMORY, "no memory for the logits of %d tokens", r->n_ctx);
    weft_session_params_default(&sp);
    sp.n_ctx = r->n_ctx;
    if ((st = weft_session_new(r->model, &sp, &r->session, err))) return st;
    return adapter_options_apply(r->o->adapter, r->o->adapters.n, r->model, r->session, err);
}

static void add_scored(struct documents_scored *all, const struct documents_scored *one)
{
    all->sums.n += one->sums.n;
    all->sums.nll += one->sums.nll;
    all->sums.nll2 += one->sums.nll2;
    all->n_documents += one->n_documents;
    all->n_cut += one->n_cut;
}

/* text[0..n) ends with the separator, or with the file. */
static weft_status score_document(struct eval_documents_reading *r, struct documents_scored *d, const char *text,
                                  size_t n, weft_error *err)
{
    int32_t *ids = NULL;
    size_t n_ids = 0, room = (size_t)r->n_ctx + 1;
    weft_status st = tokenize_text(weft_model_tokenizer(r->model), text, n, WEFT_TOKENIZE_BOS | WEFT_TOKENIZE_SPECIAL,
                                   &ids, &n_ids, err);
    if (!st && n_ids > 1) {
        if (n_ids > room) d->n_cut++;
        n_ids = n_ids < room ? n_ids : room;
        weft_session_trim(r->session, 0);
        st = weft_session_eval(r->session, ids, (int32_t)n_ids - 1, 1, r->logits, err);
        for (size_t i = 0; !st && i + 1 < n_ids; i++) {
            quality_add(&d->sums, quality_nll(r->logits + i * (size_t)r->n_vocab, r->n_vocab, ids[i + 1], NULL));
            r->lost = !quality_is_known(&d->sums);
            if (r->lost) st = weft_fail(err, WEFT_FORMAT, QUALITY_LOST, (long long)d->sums.n);
        }
        d->n_documents++;
    }
    free(ids);
    return st;
}

static int is_break(char c)
{
    return c == '\n' || c == '\r';
}

/* Those of one text, which is part `part` of `parts` for the bar. */
static weft_status score_text(struct eval_documents_reading *r, int part, progress *bar, weft_error *err)
{
    const char *path = r->o->texts.items[part];
    struct documents_scored *d = &r->texts[part];
    char *all = NULL;
    size_t n_all = 0, n_separator = strlen(r->o->separator);
    weft_status st = read_text(path, &all, &n_all, err);
    for (size_t at = 0, end; !st && at < n_all; at = end) {
        const char *stop = n_separator ? strstr(all + at, r->o->separator) : NULL;
        end = stop ? (size_t)(stop - all) + n_separator : n_all;
        while (at < end && is_break(all[at])) at++; /* line breaks beside a separator do not count */
        size_t n = end - at;
        while (!stop && n && is_break(all[at + n - 1])) n--;
        if (n > (stop ? n_separator : 0)) st = score_document(r, d, all + at, n, err);
        progress_update(bar, "documents", (part + (double)end / (double)n_all) / r->o->texts.n);
    }
    free(all);
    if (!st && !d->sums.n) st = weft_fail(err, WEFT_ARGUMENT, "%s: no document of two tokens or more", path);
    add_scored(&r->all, d);
    return st;
}

static weft_status score_all(struct eval_documents_reading *r, weft_error *err)
{
    progress bar = {0};
    weft_status st = WEFT_OK;
    for (int i = 0; i < r->o->texts.n && !st; i++) st = score_text(r, i, &bar, err);
    progress_end(&bar);
    return st;
}

static void print_texts(const struct eval_documents_reading *r)
{
    for (int i = 0; i < r->o->texts.n && r->o->texts.n > 1; i++) {
        const quality_estimate e = quality_perplexity(&r->texts[i].sums);
        print_clean(stdout, r->o->texts.items[i], strlen(r->o->texts.items[i]), 32);
        printf(" %6d documents, %8lld tokens: PPL = %.4lf +/- %.5lf\n", r->texts[i].n_documents,
               (long long)r->texts[i].sums.n, e.value, e.error);
    }
    quality_print_final(&r->all.sums);
}

/* The whole as ever; where there are several texts, each of them under "texts". */
static weft_status print_texts_json(const struct eval_documents_reading *r, weft_error *err)
{
    weft__strbuf t = {0};
    weft__strbuf_puts(&t, "{");
    quality_put_documents(&t, &r->all.sums, r->all.n_documents, r->all.n_cut);
    for (int i = 0; i < r->o->texts.n && r->o->texts.n > 1; i++) {
        const struct documents_scored *d = &r->texts[i];
        weft__strbuf_puts(&t, i ? ", {\"file\": " : ", \"texts\": [{\"file\": ");
        weft__json_write_string(&t, r->o->texts.items[i], strlen(r->o->texts.items[i]));
        weft__strbuf_puts(&t, ", ");
        quality_put_documents(&t, &d->sums, d->n_documents, d->n_cut);
        weft__strbuf_puts(&t, "}");
    }
    weft__strbuf_puts(&t, r->o->texts.n > 1 ? "]}\n" : "}\n");
    return print_whole(&t, err);
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
        {"adapter", 0, OPT_LIST, &o.adapters, "A", "NAME=PATH[:SCALE], a GGUF adapter or PEFT folder; may be repeated",
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
    weft_status st = eval_documents_prepare(&r, argv[first], &err);
    if (!st) st = score_all(&r, &err);
    const weft_status printed = o.json && (!st || r.lost) ? print_texts_json(&r, st ? NULL : &err) : WEFT_OK;
    if (!o.json && !st) print_texts(&r);
    if (!st) st = printed;
    reading_free(&r);
    return st ? report("eval documents", &err) : EXIT_DONE;
}
