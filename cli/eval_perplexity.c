// SPDX-License-Identifier: Apache-2.0
/* eval_perplexity.c: weft eval perplexity: how well a model predicts a text, and how far its probabilities are from
 * another's: options to weft_perplexity, which does the work. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters.h"
#include "eval.h"
#include "kv_type.h"
#include "options.h"
#include "outputs.h"
#include "perplexity_print.h"
#include "prompt.h"
#include "provider.h"
#include "rope.h"
#include "terminal.h"

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
    char *text;
    size_t n_text;
    weft_adapter_file *files[LIST_MAX];
    weft_adapter_use uses[LIST_MAX];
    weft_perplexity_result result;
    progress bar;
};

static void scoring_free(struct scoring *s)
{
    for (int i = 0; i < LIST_MAX; i++) weft_adapter_file_close(&s->files[i]);
    free(s->text);
    weft_model_close(&s->model);
}

/* Is there a divergence to tell of? */
static int is_against(const struct scoring *s)
{
    return s->o->kl_against || s->o->against_alone;
}

/* A weft_perplexity_fn. */
static int told(void *arg, const weft_perplexity_event *e)
{
    struct scoring *s = arg;
    if (!is_against(s) || s->o->json) return progress_update(&s->bar, "perplexity", e->fraction);
    perplexity_print_chunk(e->so_far);
    return 0;
}

static weft_status read_and_score(struct scoring *s, const char *path, weft_error *err)
{
    const struct perplexity_options *o = s->o;
    weft_perplexity_params p;
    weft_perplexity_params_default(&p);
    weft_status st = open_shown(path, o->threads, 0, &o->rope.params, &s->model, err);
    if (!st && o->text) st = read_text(o->text, &s->text, &s->n_text, err);
    if (!st) st = adapter_options_open(o->adapter, o->adapters.n, s->model, s->files, s->uses, err);
    if (st) return st;
    p.kv_dtype = kv_type_of(o->kv_type);
    p.n_ctx = o->n_ctx;
    p.n_chunks = o->n_chunks;
    p.adapters = s->uses;
    p.n_adapters = o->adapters.n;
    p.base = o->against_alone ? s->model : NULL;
    p.base_file = o->kl_against;
    p.save_base = o->kl_base;
    p.report = told;
    p.arg = s;
    if (is_against(s) && !o->json) perplexity_print_chunk_header();
    const weft_perplexity_text text = {.text = s->text, .n = s->n_text};
    s->result.size = sizeof s->result;
    st = weft_perplexity(s->model, &text, o->text != NULL, &p, &s->result, err);
    progress_end(&s->bar);
    return st;
}

static void print_result(const struct scoring *s)
{
    if (s->o->json) perplexity_print_json(&s->result, is_against(s));
    else if (is_against(s)) perplexity_print_summary(&s->result);
    else perplexity_print_final(s->result.perplexity);
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
        {"adapter", 0, OPT_LIST, &o.adapters, "A", "[NAME=]PATH[:SCALE], a GGUF file or PEFT folder; may be repeated",
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
    static struct scoring s = {.o = &o};
    weft_error err = {0};
    weft_status st = read_and_score(&s, argv[first], &err);
    /* Of a model whose numbers are none, scripts get the object nevertheless. */
    if (!st || (o.json && s.result.n_scored && !isfinite(s.result.perplexity.value))) print_result(&s);
    scoring_free(&s);
    return st ? report("eval perplexity", &err) : EXIT_DONE;
}
