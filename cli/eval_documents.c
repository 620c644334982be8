// SPDX-License-Identifier: Apache-2.0
/* eval_documents.c: weft eval documents: how well a model predicts documents, each alone and from its first token, as
 * it was trained on them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eval.h"
#include "options.h"
#include "prompt.h"
#include "provider.h"
#include "quality.h"
#include "rope.h"
#include "terminal.h"

enum { USUAL_CTX = 512 };

struct documents_options {
    const char *text, *separator;
    int32_t n_ctx, threads;
    int json;
    rope_options rope;
};

/* Everything one run needs; released by reading_free. */
struct eval_documents_reading {
    const struct documents_options *o;
    weft_model *model;
    weft_session *session;
    int32_t n_vocab, n_ctx, n_documents, n_cut;
    int lost; /* the model's numbers are none */
    char *text;
    size_t n_text;
    float *logits; /* [n_ctx, n_vocab] */
    quality_sums sums;
};

static void reading_free(struct eval_documents_reading *r)
{
    quality_free(&r->sums);
    free(r->logits);
    free(r->text);
    weft_session_free(&r->session);
    weft_model_close(&r->model);
}

static weft_status eval_documents_prepare(struct eval_documents_reading *r, const char *path, weft_error *err)
{
    weft_model_params mp;
    weft_session_params sp;
    weft_model_info info = {.size = sizeof info};
    weft_status st = read_text(r->o->text, &r->text, &r->n_text, err);
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
    return weft_session_new(r->model, &sp, &r->session, err);
}

/* text[0..n) ends with the separator, or with the file. */
static weft_status score_document(struct eval_documents_reading *r, const char *text, size_t n, weft_error *err)
{
    int32_t *ids = NULL;
    size_t n_ids = 0, room = (size_t)r->n_ctx + 1;
    weft_status st = tokenize_text(weft_model_tokenizer(r->model), text, n, WEFT_TOKENIZE_BOS | WEFT_TOKENIZE_SPECIAL,
                                   &ids, &n_ids, err);
    if (!st && n_ids > 1) {
        if (n_ids > room) r->n_cut++;
        n_ids = n_ids < room ? n_ids : room;
        weft_session_trim(r->session, 0);
        st = weft_session_eval(r->session, ids, (int32_t)n_ids - 1, 1, r->logits, err);
        for (size_t i = 0; !st && i + 1 < n_ids; i++) {
            quality_add(&r->sums, quality_nll(r->logits + i * (size_t)r->n_vocab, r->n_vocab, ids[i + 1], NULL));
            r->lost = !quality_is_known(&r->sums);
            if (r->lost) st = weft_fail(err, WEFT_FORMAT, QUALITY_LOST, (long long)r->sums.n);
        }
        r->n_documents++;
    }
    free(ids);
    return st;
}

static int is_break(char c)
{
    return c == '\n' || c == '\r';
}

static weft_status score_all(struct eval_documents_reading *r, weft_error *err)
{
    progress bar = {0};
    size_t n_separator = strlen(r->o->separator);
    weft_status st = WEFT_OK;
    for (size_t at = 0, end; !st && at < r->n_text; at = end) {
        const char *stop = n_separator ? strstr(r->text + at, r->o->separator) : NULL;
        end = stop ? (size_t)(stop - r->text) + n_separator : r->n_text;
        while (at < end && is_break(r->text[at])) at++; /* line breaks beside a separator do not count */
        size_t n = end - at;
        while (!stop && n && is_break(r->text[at + n - 1])) n--;
        if (n > (stop ? n_separator : 0)) st = score_document(r, r->text + at, n, err);
        progress_update(&bar, "documents", (double)end / (double)r->n_text);
    }
    progress_end(&bar);
    if (!st && !r->sums.n) st = weft_fail(err, WEFT_ARGUMENT, "%s: no document of two tokens or more", r->o->text);
    return st;
}

int eval_documents_command(int argc, char **argv)
{
    struct documents_options o = {.separator = "<|endoftext|>"};
    const option_spec options[] = {
        {"file", 'f', OPT_TEXT, &o.text, "TEXT", "the documents", 0, 0, NULL},
        {"separator", 0, OPT_TEXT, &o.separator, "S", "what ends a document, and is part of it (<|endoftext|>)", 0, 0,
         NULL},
        {"ctx", 'c', OPT_INT, &o.n_ctx, "N",
         "tokens of a document at most; the rest is left out (512, or the model's context)", 1, 1 << 20, NULL},
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
        "  weft eval documents model-q4.gguf -f heldout.txt\n",
        options,
        1,
        1};
    int first;
    int rc = options_parse(&spec, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    if (!o.text) {
        fprintf(stderr, "weft eval documents: -f TEXT is missing\n");
        return EXIT_USAGE;
    }
    if (!rope_options_check("eval documents", &o.rope)) return EXIT_USAGE;
    struct eval_documents_reading r = {.o = &o};
    weft_error err = {0};
    weft_status st = eval_documents_prepare(&r, argv[first], &err);
    if (!st) st = score_all(&r, &err);
    if (o.json && (!st || r.lost)) quality_print_documents_json(&r.sums, r.n_documents, r.n_cut);
    else if (!st) quality_print_final(&r.sums);
    reading_free(&r);
    return st ? report("eval documents", &err) : EXIT_DONE;
}
