// SPDX-License-Identifier: Apache-2.0
/* eval_perplexity.c: weft eval perplexity: how well a model predicts a text, and how far its probabilities are from
 * another's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters.h"
#include "eval.h"
#include "format/out_file.h"
#include "kl_base.h"
#include "kv_type.h"
#include "options.h"
#include "outputs.h"
#include "prompt.h"
#include "provider.h"
#include "quality.h"
#include "rope.h"
#include "terminal.h"

enum { PIECE = 64, USUAL_CTX = 512 }; /* scored tokens whose logits are held at once; tokens of a chunk */

struct perplexity_options {
    const char *text, *kl_base, *kl_against, *kv_type;
    int32_t n_ctx, n_chunks, threads;
    int json, against_alone;
    struct text_list adapters;
    struct adapter_option adapter[LIST_MAX];
    rope_options rope;
};

/* Everything one run needs; released by scoring_free. */
struct scoring {
    const struct perplexity_options *o;
    weft_model *model;
    weft_session *session, *alone;                    /* alone: without the adapters, for --against-alone */
    int32_t n_vocab, n_ctx, n_ctx_max, n_chunks, bos; /* bos -1: none */
    int32_t *tokens;                                  /* [n_chunks * n_ctx] */
    float *logits, *base_logits;                      /* [PIECE, n_vocab]; base: of `alone` */
    uint16_t *record;
    kl_base against;     /* --kl-against */
    weft__out_file base; /* --kl-base */
    int base_open, lost; /* lost: the model's numbers are none */
    quality_sums sums;
};

static void scoring_free(struct scoring *s)
{
    if (s->base_open) weft__out_file_close(&s->base);
    kl_base_close(&s->against);
    quality_free(&s->sums);
    free(s->record);
    free(s->base_logits);
    free(s->logits);
    free(s->tokens);
    weft_session_free(&s->alone);
    weft_session_free(&s->session);
    weft_model_close(&s->model);
}

/* Text and chunk size come from the base file. */
static weft_status open_against(struct scoring *s, weft_error *err)
{
    weft_status st = kl_base_open(&s->against, s->o->kl_against, s->n_vocab, err);
    if (st) return st;
    s->n_ctx = s->against.n_ctx;
    s->n_chunks = s->against.n_chunks;
    s->tokens = s->against.tokens;
    s->against.tokens = NULL;
    if (s->o->n_chunks > 0 && s->o->n_chunks < s->n_chunks) s->n_chunks = s->o->n_chunks;
    return WEFT_OK;
}

static weft_status read_tokens(struct scoring *s, weft_error *err)
{
    char *text = NULL;
    size_t n = 0, n_ids = 0;
    s->n_ctx = s->o->n_ctx ? s->o->n_ctx : s->n_ctx_max < USUAL_CTX ? s->n_ctx_max : USUAL_CTX;
    weft_status st = read_text(s->o->text, &text, &n, err);
    if (!st) st = tokenize_text(weft_model_tokenizer(s->model), text, n, WEFT_TOKENIZE_BOS, &s->tokens, &n_ids, err);
    free(text);
    if (st) return st;
    if (n_ids < 2 * (size_t)s->n_ctx)
        return weft_fail(err, WEFT_ARGUMENT,
                         "%s: %zu tokens; at least two chunks of %d are needed (use a longer text or a smaller -c)",
                         s->o->text, n_ids, s->n_ctx);
    s->n_chunks = (int32_t)(n_ids / (size_t)s->n_ctx);
    if (s->o->n_chunks > 0 && s->o->n_chunks < s->n_chunks) s->n_chunks = s->o->n_chunks;
    return WEFT_OK;
}

static weft_status begin_base(struct scoring *s, weft_error *err)
{
    int32_t head[3] = {s->n_ctx, s->n_vocab, s->n_chunks};
    size_t n = (size_t)s->n_ctx * (size_t)s->n_chunks;
    weft_status st = weft__out_file_open(&s->base, s->o->kl_base, err);
    if (st) return st;
    s->base_open = 1;
    if ((st = weft__out_file_write(&s->base, KL_BASE_MAGIC, sizeof KL_BASE_MAGIC, err)) ||
        (st = weft__out_file_write(&s->base, head, sizeof head, err)))
        return st;
    return weft__out_file_write(&s->base, s->tokens, n * sizeof *s->tokens, err);
}

/* Of row i of those whose logits are held. */
static weft_status score(struct scoring *s, int32_t i, int32_t next, weft_error *err)
{
    const size_t at = (size_t)i * (size_t)s->n_vocab, n = (size_t)quality_record(s->n_vocab);
    const float *logits = s->logits + at;
    weft_status st = s->o->kl_against ? kl_base_next(&s->against, s->record, err) : WEFT_OK;
    if (st) return st;
    if (s->o->kl_against || s->alone) {
        const quality_sample q = s->alone ? quality_between(logits, s->base_logits + at, s->n_vocab, next)
                                          : quality_against(logits, s->n_vocab, next, s->record);
        if (!quality_add_sample(&s->sums, &q)) return weft_fail(err, WEFT_NO_MEMORY, "no memory for samples");
    } else {
        quality_add(&s->sums, quality_nll(logits, s->n_vocab, next, s->o->kl_base ? s->record : NULL));
    }
    if (!quality_is_known(&s->sums)) {
        s->lost = 1;
        return weft_fail(err, WEFT_FORMAT, QUALITY_LOST, (long long)s->sums.n);
    }
    return s->o->kl_base ? weft__out_file_write(&s->base, s->record, n * sizeof *s->record, err) : WEFT_OK;
}

/* row[0, n) in both sessions, where there are two. */
static weft_status evaluate(struct scoring *s, const int32_t *row, int32_t n, int all_logits, weft_error *err)
{
    weft_status st = weft_session_eval(s->session, row, n, all_logits, all_logits ? s->logits : NULL, err);
    if (st || !s->alone) return st;
    return weft_session_eval(s->alone, row, n, all_logits, all_logits ? s->base_logits : NULL, err);
}

static weft_status score_chunk(struct scoring *s, const int32_t *chunk, int32_t *row, weft_error *err)
{
    int32_t first = s->n_ctx / 2;
    weft_status st;
    memcpy(row, chunk, (size_t)s->n_ctx * sizeof *row);
    if (s->bos >= 0) row[0] = s->bos;
    weft_session_trim(s->session, 0);
    if (s->alone) weft_session_trim(s->alone, 0);
    if ((st = evaluate(s, row, first, 0, err))) return st;
    for (int32_t at = first, n; at < s->n_ctx - 1; at += n) {
        n = s->n_ctx - 1 - at < PIECE ? s->n_ctx - 1 - at : PIECE;
        if ((st = evaluate(s, row + at, n, 1, err))) return st;
        for (int32_t i = 0; i < n; i++)
            if ((st = score(s, i, chunk[at + i + 1], err))) return st;
    }
    return WEFT_OK;
}

/* Is there a divergence to tell of? */
static int is_against(const struct scoring *s)
{
    return s->o->kl_against || s->o->against_alone;
}

static weft_status score_all(struct scoring *s, weft_error *err)
{
    progress bar = {0};
    int32_t *row = malloc((size_t)s->n_ctx * sizeof *row);
    weft_status st = row ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no memory for a chunk");
    if (is_against(s) && !s->o->json) quality_print_chunk_header();
    for (int32_t i = 0; i < s->n_chunks && !st; i++) {
        st = score_chunk(s, s->tokens + (size_t)i * (size_t)s->n_ctx, row, err);
        if (st) break;
        if (is_against(s) && !s->o->json) quality_print_chunk(i + 1, &s->sums);
        else progress_update(&bar, "perplexity", (i + 1.0) / s->n_chunks);
    }
    progress_end(&bar);
    free(row);
    return st;
}

static weft_status open_sessions(struct scoring *s, weft_error *err)
{
    const struct perplexity_options *o = s->o;
    const size_t n = (size_t)PIECE * (size_t)s->n_vocab;
    weft_session_params sp;
    s->logits = malloc(n * sizeof *s->logits);
    s->record = malloc((size_t)quality_record(s->n_vocab) * sizeof *s->record);
    if (o->against_alone) s->base_logits = malloc(n * sizeof *s->base_logits);
    if (!s->logits || !s->record || (o->against_alone && !s->base_logits))
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for logits");
    weft_session_params_default(&sp);
    sp.kv_dtype = kv_type_of(o->kv_type);
    sp.n_ctx = s->n_ctx;
    weft_status st = weft_session_new(s->model, &sp, &s->session, err);
    if (!st && o->against_alone) st = weft_session_new(s->model, &sp, &s->alone, err);
    return st ? st : adapter_options_apply(o->adapter, o->adapters.n, s->model, s->session, err);
}

static weft_status eval_perplexity_prepare(struct scoring *s, const char *path, weft_error *err)
{
    const struct perplexity_options *o = s->o;
    weft_model_info info = {.size = sizeof info};
    size_t n_ids;
    int32_t *ids = NULL;
    weft_status st = open_shown(path, o->threads, 0, &o->rope.params, &s->model, err);
    if (st || (st = weft_model_describe(s->model, &info, err))) return st;
    if (!weft_model_tokenizer(s->model)) return weft_fail(err, WEFT_UNSUPPORTED, "the model has no tokenizer");
    s->n_vocab = info.n_vocab;
    s->n_ctx_max = info.n_ctx_max;
    /* What the model puts before an empty text is its BOS. */
    if ((st = tokenize_text(weft_model_tokenizer(s->model), "", 0, WEFT_TOKENIZE_BOS, &ids, &n_ids, err))) return st;
    s->bos = n_ids > 0 ? ids[0] : -1;
    free(ids);
    if ((st = o->kl_against ? open_against(s, err) : read_tokens(s, err))) return st;
    if ((st = open_sessions(s, err))) return st;
    return o->kl_base ? begin_base(s, err) : WEFT_OK;
}

static weft_status finish(struct scoring *s, weft_error *err)
{
    weft_status st = s->o->kl_base ? weft__out_file_commit(&s->base, err) : WEFT_OK;
    if (st) return st;
    if (s->o->json) quality_print_json(&s->sums, s->n_ctx, s->n_chunks, is_against(s));
    else if (is_against(s)) quality_print_summary(&s->sums);
    else quality_print_final(&s->sums);
    return WEFT_OK;
}

/* 0 after a message. */
static int options_agree(struct perplexity_options *o)
{
    const char *wrong = !o->text == !o->kl_against    ? "give either -f TEXT or --kl-against F"
                        : o->kl_base && o->kl_against ? "--kl-base and --kl-against exclude each other"
                        : o->against_alone && (o->kl_base || o->kl_against)
                            ? "--against-alone, --kl-base and --kl-against exclude each other"
                        : o->against_alone && !o->adapters.n
                            ? "--against-alone compares with --adapter, and none is given"
                            : NULL;
    if (wrong) {
        fprintf(stderr, "weft eval perplexity: %s\n", wrong);
        return 0;
    }
    return rope_options_check("eval perplexity", &o->rope) &&
           adapter_options_parse("eval perplexity", &o->adapters, o->adapter);
}

int eval_perplexity_command(int argc, char **argv)
{
    static struct perplexity_options o = {.kv_type = "f16"};
    const option_spec options[] = {
        {"file", 'f', OPT_TEXT, &o.text, "TEXT", "the text; not needed with --kl-against", 0, 0, NULL},
        {"ctx", 'c', OPT_INT, &o.n_ctx, "N", "tokens per chunk (512, or the model's context)", 4, 1 << 24, NULL},
        ROPE_OPTIONS(&o.rope),
        {"chunks", 0, OPT_INT, &o.n_chunks, "N", "only the first N chunks", 1, 1 << 30, NULL},
        {"kl-base", 0, OPT_TEXT, &o.kl_base, "F", "write this model's probabilities to F", 0, 0, NULL},
        {"kl-against", 0, OPT_TEXT, &o.kl_against, "F", "compare with the probabilities in F", 0, 0, NULL},
        {"adapter", 0, OPT_LIST, &o.adapters, "A", "NAME=PATH[:SCALE], a GGUF adapter or PEFT folder; may be repeated",
         0, 0, NULL},
        {"against-alone", 0, OPT_FLAG, &o.against_alone, NULL,
         "compare with the model without the adapters: what they make it forget", 0, 0, NULL},
        KV_TYPE_OPTION(&o.kv_type, "f16"),
        PROVIDER_OPTION,
        {"threads", 't', OPT_INT, &o.threads, "THREADS", "threads (one per core)", 1, WEFT_THREADS_MAX, NULL},
        {"json", 0, OPT_FLAG, &o.json, NULL, "one JSON object", 0, 0, NULL},
        {0},
    };
    const command_spec spec = {
        "eval perplexity",
        "MODEL -f TEXT [options]",
        "Perplexity of a text, as llama-perplexity defines it, and the Kullback-Leibler divergence from another\n"
        "model's probabilities; base files can be exchanged with llama-perplexity.\n" OUTPUT_RULE("The F of --kl-base"),
        "  weft eval perplexity model.gguf -f wiki.txt --kl-base model.klbase\n"
        "  weft eval perplexity model-q4.gguf --kl-against model.klbase\n"
        "  weft eval perplexity model.gguf -f wiki.txt --adapter a=adapter.gguf --against-alone\n",
        options,
        1,
        1};
    int first;
    int rc = options_parse(&spec, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    if (!options_agree(&o)) return EXIT_USAGE;
    if (o.kl_base &&
        (output_refused("eval perplexity", o.kl_base) || output_is_input("eval perplexity", o.kl_base, argv[first]) ||
         output_is_input("eval perplexity", o.kl_base, o.text)))
        return EXIT_FAILED;
    struct scoring s = {.o = &o};
    weft_error err = {0};
    weft_status st = eval_perplexity_prepare(&s, argv[first], &err);
    if (!st) st = score_all(&s, &err);
    if (!st) st = finish(&s, &err);
    else if (s.lost && o.json) quality_print_json(&s.sums, s.n_ctx, s.n_chunks, is_against(&s));
    scoring_free(&s);
    return st ? report("eval perplexity", &err) : EXIT_DONE;
}
