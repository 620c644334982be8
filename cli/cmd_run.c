// SPDX-License-Identifier: Apache-2.0
/* cmd_run.c: weft run: continues a text. The text streams to stdout, statistics go to stderr. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapters.h"
#include "answer_form.h"
#include "base/json.h"
#include "commands.h"
#include "draft.h"
#include "generate.h"
#include "kv_type.h"
#include "prompt.h"
#include "pull.h"
#include "provider.h"
#include "shown.h"
#include "spec.h"
#include "rope.h"
#include "terminal.h"
#include "threads.h"

struct run_options {
    int32_t n, threads, n_ctx;
    weft_sampler_params sampler;
    int ignore_end, json, quiet;
    answer_form form;
    struct text_list stop, bias, adapters;
    struct adapter_option adapter[LIST_MAX];
    rope_options rope;
    overflow_options overflow;
    const char *kv_type, *spec, *draft;
};

/* "ID=VALUE" each; -inf forbids. Returns 0 after a message. */
static int parse_bias(const struct text_list *list, weft_logit_bias *out)
{
    for (int i = 0; i < list->n; i++) {
        char *end;
        long id = strtol(list->items[i], &end, 10);
        if (end == list->items[i] || *end != '=' || id < 0 || id > INT32_MAX) goto bad;
        const char *value = end + 1;
        out[i] = (weft_logit_bias){(int32_t)id, strtof(value, &end)};
        if (end == value || *end || isnan(out[i].bias) || out[i].bias == INFINITY) goto bad;
        continue;
    bad:
        fprintf(stderr, "weft run: --logit-bias %s: must be TOKEN=BIAS, as in 13=-inf or 13=2.5\n", list->items[i]);
        return 0;
    }
    return 1;
}

static double per_second(double n, double ms)
{
    return ms > 0 ? n * 1000 / ms : 0;
}

static weft_status print_json(const generate_request *q, const generate_result *r, const weft_model_info *info,
                              weft_error *err)
{
    weft__strbuf t = {0};
    weft__strbuf_printf(&t, "{\"prompt_tokens\": %d, \"tokens\": [", q->n_prompt);
    for (int32_t i = 0; i < r->n_tokens; i++) weft__strbuf_printf(&t, "%s%d", i ? ", " : "", r->tokens[i]);
    weft__strbuf_puts(&t, "], \"text\": ");
    weft__json_write_string(&t, r->text, r->n_text);
    weft__strbuf_printf(&t, ", \"finish_reason\": \"%s\", \"dropped_tokens\": %d, \"seed\": %llu, \"timings\": {",
                        r->finish_reason, r->n_dropped, (unsigned long long)weft_sampler_seed(q->sampler));
    weft__strbuf_printf(&t, "\"load_ms\": %.3f, \"prefill_ms\": %.3f, \"prefill_tokens_per_second\": %.3f, ",
                        info->load_ms, r->prefill_ms, per_second(q->n_prompt, r->prefill_ms));
    weft__strbuf_printf(&t, "\"decode_ms\": %.3f, \"decode_tokens_per_second\": %.3f, ", r->decode_ms,
                        per_second(r->n_tokens, r->decode_ms));
    weft__strbuf_printf(&t, "\"draft_n\": %d, \"draft_n_accepted\": %d}}\n", r->n_drafted, r->n_accepted);
    return print_whole(&t, err);
}

static void print_statistics(const generate_request *q, const generate_result *r, const weft_model_info *info)
{
    putc('\n', stderr);
    print_clean(stderr, info->name, strlen(info->name), 0);
    fprintf(
        stderr,
        " %s, %d threads | load %.0f ms | prefill %d tokens, %.1f t/s | decode %d tokens, %.1f t/s | %s, seed %llu\n",
        info->type, info->n_threads, info->load_ms, q->n_prompt, per_second(q->n_prompt, r->prefill_ms), r->n_tokens,
        per_second(r->n_tokens, r->decode_ms), r->finish_reason, (unsigned long long)weft_sampler_seed(q->sampler));
    if (r->n_drafted)
        fprintf(stderr, "guessed ahead: %d of %d tokens right (%.0f %%)\n", r->n_accepted, r->n_drafted,
                100.0 * r->n_accepted / r->n_drafted);
    if (r->n_dropped)
        fprintf(stderr, "the context of %d tokens was full: %d of the text were left out (--overflow shift)\n",
                weft_session_n_ctx(q->session), r->n_dropped);
}

/* The prompt's ids; a model without any token to begin with needs a text. */
static weft_status prompt_ids(const weft_model *model, const char *text, size_t n, int32_t **ids, int32_t *n_ids,
                              weft_error *err)
{
    size_t count;
    weft_status st = tokenize_text(weft_model_tokenizer(model), text, n, WEFT_TOKENIZE_BOS | WEFT_TOKENIZE_SPECIAL, ids,
                                   &count, err);
    if (st) return st;
    if (count == 0 || count > INT32_MAX) {
        free(*ids);
        *ids = NULL;
        return weft_fail(err, WEFT_ARGUMENT,
                         count ? "the prompt is too long"
                               : "the prompt is empty and the model has no BOS token; give a prompt");
    }
    *n_ids = (int32_t)count;
    return WEFT_OK;
}

/* A matcher for what the text is held to; none where it is not. */
static weft_status open_matcher(const struct run_options *o, const weft_model *model, weft_matcher **out,
                                weft_error *err)
{
    answer_form_source source = {0};
    weft_grammar *grammar = NULL;
    weft_status st = answer_form_read(&o->form, &source, err);
    if (!st) st = answer_form_compile(&source, weft_model_tokenizer(model), NULL, &grammar, err);
    if (!st && grammar) st = weft_matcher_new(grammar, out, err);
    weft_grammar_free(&grammar);
    answer_form_source_free(&source);
    return st;
}

static weft_status run_with(const struct run_options *o, weft_model *model, weft_model *draft, const char *prompt,
                            size_t n, weft_error *err)
{
    weft_model_info info = {.size = sizeof info};
    weft_session_params params;
    weft_session *session = NULL;
    weft_sampler *sampler = NULL;
    int32_t *ids = NULL;
    generate_result result = {0};
    shown out;
    generate_request q = {.model = model,
                          .n_max = o->n,
                          .ignore_end = o->ignore_end,
                          .shift = overflow_shifts(&o->overflow),
                          .n_keep = o->overflow.n_keep,
                          .stop = &o->stop,
                          .sink = o->json ? NULL : shown_put,
                          .sink_arg = &out,
                          .continues = n > 0};
    weft_status st;
    weft_session_params_default(&params);
    params.n_ctx = o->n_ctx;
    params.kv_dtype = kv_type_of(o->kv_type);
    params.draft = draft;
    if (!weft_model_tokenizer(model))
        return weft_fail(err, WEFT_UNSUPPORTED, "the model has no tokenizer; 'weft eval logits' takes token ids");
    if ((st = weft_model_describe(model, &info, err)) || (st = prompt_ids(model, prompt, n, &ids, &q.n_prompt, err)) ||
        (st = open_matcher(o, model, &q.matcher, err)) || (st = weft_session_new(model, &params, &session, err)) ||
        (st = adapter_options_apply(o->adapter, o->adapters.n, model, session, err)) ||
        (st = weft_sampler_for(model, &o->sampler, &sampler, err)))
        goto done;
    q.prompt = ids;
    q.session = session;
    q.sampler = sampler;
    q.spec = draft_spec(spec_of(o->spec), draft);
    shown_begin(&out, stdout);
    generate_cancel_on_interrupt(session);
    st = generate(&q, &result, err);
    generate_cancel_on_interrupt(NULL);
    shown_end(&out);
    if (st) goto done;
    if (o->json) {
        if ((st = print_json(&q, &result, &info, err))) goto done;
    } else {
        putchar('\n');
        fflush(stdout);
        if (!o->quiet) print_statistics(&q, &result, &info);
    }
    if (result.broken_off) st = answer_form_broken_off(&o->form, "text", &result, err);
done:
    generate_result_free(&result);
    weft_sampler_free(&sampler);
    weft_session_free(&session);
    weft_matcher_free(&q.matcher);
    free(ids);
    return st;
}

static weft_status run_model(struct run_options *o, const char *path, const char *prompt, size_t n, weft_error *err)
{
    weft_model *model = NULL, *draft = NULL;
    weft_model_params p;
    weft_model_params_default(&p);
    p.n_threads = threads_to_use(o->threads);
    p.n_ctx = o->n_ctx;
    p.provider = provider_given;
    p.rope = o->rope.params;
    p.share_threads = o->draft != NULL;
    weft_status st = pull_if_missing(path, err);
    if (!st) st = open_shown_with(path, &p, &model, err);
    if (!st) st = draft_open("run", o->draft, model, &p, &draft, err);
    if (!st) st = run_with(o, model, draft, prompt, n, err);
    weft_model_close(&draft);
    weft_model_close(&model);
    return st;
}

/* args: the model, and the prompt where there are two. */
static int run_as_told(struct run_options *o, char **args, int n_args)
{
    if (!answer_form_check("run", &o->form)) return EXIT_USAGE;
    if (!rope_options_check("run", &o->rope) || !draft_check("run", o->draft, o->spec)) return EXIT_USAGE;
    weft_logit_bias bias[LIST_MAX];
    if (!parse_bias(&o->bias, bias) || !adapter_options_parse("run", &o->adapters, o->adapter)) return EXIT_USAGE;
    o->sampler.bias = bias;
    o->sampler.n_bias = o->bias.n;
    weft_error err = {0};
    const char *prompt = n_args == 2 ? args[1] : isatty(STDIN_FILENO) ? "" : "-";
    char *text = NULL;
    size_t n = strlen(prompt);
    if (!strcmp(prompt, "-") && read_text("-", &text, &n, &err)) return report("run", &err);
    weft_status st = run_model(o, args[0], text ? text : prompt, n, &err);
    free(text);
    return st ? report("run", &err) : EXIT_DONE;
}

int cmd_run(int argc, char **argv)
{
    static struct run_options o = {.n = 256, .kv_type = "f16", .spec = "auto"};
    weft_sampler_params *s = &o.sampler;
    weft_sampler_params_default(s);
    const option_spec options[] = {
        {"n-predict", 'n', OPT_INT, &o.n, "N",
         "tokens to generate, -1: until the context is full, or for ever where it shifts (256)", -1, 1 << 30, NULL},
        {"ctx", 'c', OPT_INT, &o.n_ctx, "CTX", "context in tokens (the model's, at most 4096)", 1, 1 << 28, NULL},
        PULL_OPTION,
        PROVIDER_OPTION,
        OVERFLOW_OPTIONS(&o.overflow),
        ROPE_OPTIONS(&o.rope),
        {"threads", 't', OPT_INT, &o.threads, "THREADS", "threads (one per core)", 1, WEFT_THREADS_MAX, NULL},
        SAMPLER_OPTIONS(s),
        {"logit-bias", 0, OPT_LIST, &o.bias, "ID=B", "adds B to a token's logit, -inf forbids it; may be repeated", 0,
         0, NULL},
        {"ignore-eos", 0, OPT_FLAG, &o.ignore_end, NULL, "go on after the end token", 0, 0, NULL},
        {"stop", 0, OPT_LIST, &o.stop, "TEXT", "stop before this text; may be repeated", 0, 0, NULL},
        ANSWER_FORM_OPTIONS(&o.form, "the text is"),
        {"adapter", 0, OPT_LIST, &o.adapters, "A", "[NAME=]PATH[:SCALE], a GGUF file or PEFT folder; may be repeated",
         0, 0, NULL},
        KV_TYPE_OPTION(&o.kv_type, "f16"),
        SPEC_OPTION(&o.spec),
        DRAFT_OPTION(&o.draft),
        {"json", 0, OPT_FLAG, &o.json, NULL, "one JSON object instead of text", 0, 0, NULL},
        {"quiet", 'q', OPT_FLAG, &o.quiet, NULL, "no statistics on stderr", 0, 0, NULL},
        {0},
    };
    const command_spec spec = {
        "run",
        "MODEL [PROMPT] [options]",
        "Continues PROMPT with the model and streams the text to stdout. Without PROMPT, or with '-', the\n"
        "prompt is read from standard input where that is no terminal. Ctrl-C stops with the text so far. A text\n"
        "that breaks off before what it is held to is complete is an error: exit status 1.",
        "  weft run model.gguf \"Once upon a time\" -n 100 --temp 0\n"
        "  weft run model.gguf --json --seed 7 < prompt.txt\n"
        "  weft run model.gguf \"The first three primes as JSON:\" --json-object\n"
        "  weft run model.gguf \"Is the sky blue? \" --choices yes,no\n",
        options,
        1,
        2};
    int first;
    int rc = options_parse(&spec, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    return run_as_told(&o, argv + first, argc - first);
}
