// SPDX-License-Identifier: Apache-2.0
/* eval_task.c: weft eval task: a model's scores on a task: options to src/eval, which does the work. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "adapters.h"
#include "eval.h"
#include "eval/eval.h"
#include "eval/tokens.h"
#include "format/out_file.h"
#include "kv_type.h"
#include "options.h"
#include "outputs.h"
#include "provider.h"
#include "rope.h"
#include "spec.h"
#include "terminal.h"

enum { SLOTS = 32, QUEUE = 512, ROOM = 4096 }; /* ROOM: tokens of a prompt and its answer, where nothing else is said */

struct task_options {
    const char *form, *samples, *baseline, *svg, *predictions, *system, *kv_type, *spec;
    struct text_list data, adapters;
    struct adapter_option adapter[LIST_MAX];
    int32_t n_fewshot, limit, repeats, max_tokens, threads, n_ctx, slots, show;
    int given_fewshot, given_temperature, chat, multiturn, no_bos, json;
    uint64_t seed, fewshot_seed;
    float temperature;
    rope_options rope;
};

/* Everything one run needs; released by task_asked_free. */
struct task_asked {
    const struct task_options *o;
    weft__eval_task *task;
    weft_model *model;
    weft_engine *engine;
    weft_chat *chat;
    weft__eval_report report;
    weft_request_adapter adapters[LIST_MAX];
    weft__strbuf adapters_id;
    weft_model_info info;
};

static void task_asked_free(struct task_asked *a)
{
    weft__eval_report_free(&a->report);
    weft_chat_close(&a->chat);
    weft_engine_free(&a->engine);
    weft_model_close(&a->model);
    weft__eval_task_free(&a->task);
    weft__strbuf_free(&a->adapters_id);
}

static weft_status open_task(struct task_asked *a, const char *path, weft_error *err)
{
    const struct task_options *o = a->o;
    const weft__eval_task_options to = {.form = o->form,
                                        .data = o->data.items,
                                        .n_data = o->data.n,
                                        .n_fewshot = o->given_fewshot ? o->n_fewshot : -1,
                                        .repeats = o->repeats,
                                        .max_tokens = o->max_tokens,
                                        .temperature = o->given_temperature ? (double)o->temperature : -1};
    weft_status st = weft__eval_task_open(path, &to, &a->task, err);
    if (!st && a->task->predictions && !o->predictions && !o->show)
        return weft_fail(err, WEFT_ARGUMENT, "the answers are judged elsewhere: --predictions FILE is where they go");
    if (!st && !a->task->predictions && o->predictions)
        return weft_fail(err, WEFT_ARGUMENT, "--predictions is for --form humaneval and swebench");
    return st;
}

static weft_status open_engine(struct task_asked *a, weft_error *err)
{
    const struct task_options *o = a->o;
    weft_engine_params p;
    weft_engine_params_default(&p);
    p.kv_dtype = kv_type_of(o->kv_type);
    p.n_slots = o->slots ? o->slots : SLOTS;
    p.n_ctx = o->n_ctx ? o->n_ctx : a->info.n_ctx_max < ROOM ? a->info.n_ctx_max : ROOM;
    p.max_queue = QUEUE;
    p.spec = spec_of(o->spec);
    weft_status st = weft_engine_new(a->model, &p, &a->engine, err);
    for (int i = 0; i < o->adapters.n && !st; i++) {
        const struct adapter_option *one = &o->adapter[i];
        weft_engine_adapter is = {.size = sizeof is};
        st = weft_engine_adapter_add(a->engine, one->name, one->path, one->scale, 0, err);
        if (!st) st = weft_engine_adapter_find(a->engine, one->name, &is, err);
        a->adapters[i] = (weft_request_adapter){.name = one->name, .scale = one->scale};
        weft__strbuf_printf(&a->adapters_id, "%s%s:%.9g", i ? "," : "", is.id, (double)one->scale);
    }
    if (!st && o->chat) st = weft_chat_open(a->model, NULL, 0, &a->chat, err);
    return st;
}

static weft_status open_all(struct task_asked *a, const char *model, const char *task, weft_error *err)
{
    a->info.size = sizeof a->info;
    weft_status st = open_task(a, task, err);
    if (!st) st = open_shown(model, a->o->threads, a->o->n_ctx, &a->o->rope.params, &a->model, err);
    if (!st) st = weft_model_describe(a->model, &a->info, err);
    if (!st) st = open_engine(a, err);
    return st ? st : weft__eval_report_begin(&a->report, a->task, err);
}

static weft__eval_params params_of(struct task_asked *a, progress *bar)
{
    const struct task_options *o = a->o;
    weft__eval_params p;
    weft__eval_params_default(&p);
    p.model = a->model;
    p.engine = a->engine;
    p.adapters = a->adapters;
    p.n_adapters = o->adapters.n;
    p.adapters_id = a->adapters_id.data ? a->adapters_id.data : "";
    p.style = (weft__eval_style){a->chat, o->multiturn, o->system};
    p.no_bos = o->no_bos;
    p.limit = (size_t)o->limit;
    p.seed = o->seed;
    p.fewshot_seed = o->fewshot_seed;
    p.samples = o->samples;
    p.predictions = o->predictions;
    p.label = a->info.name;
    p.progress = progress_update;
    p.progress_arg = bar;
    return p;
}

static void print_lines(const weft__strbuf *t)
{
    for (size_t at = 0, end; at < t->len; at = end + 1) {
        const char *stop = memchr(t->data + at, '\n', t->len - at);
        end = stop ? (size_t)(stop - t->data) : t->len;
        print_clean(stdout, t->data + at, end - at, 0);
        if (stop) printf("\n");
    }
}

/* The first prompts as the model gets them, with their tokens' count. */
static weft_status show(struct task_asked *a, const weft__eval_params *p, weft_error *err)
{
    weft__eval_shots shots;
    weft__eval_tokens tokens;
    weft_engine_stats stats = {.size = sizeof stats};
    weft_engine_get_stats(a->engine, &stats);
    weft_status st = weft__eval_tokens_begin(&tokens, a->model, stats.n_ctx, p->no_bos, err);
    if (!st) st = weft__eval_shots_begin(&shots, a->task, p->fewshot_seed, err);
    if (st) return st;
    for (size_t i = 0; !st && i < a->task->docs.n && i < (size_t)a->o->show; i++) {
        weft__eval_asks asks = {0};
        weft__eval_passes passes = {0};
        st = weft__eval_shots_next(&shots, i, err);
        if (!st) st = weft__eval_ask_make(&shots, &p->style, i, &asks, err);
        if (!st) st = weft__eval_tokens_of(&tokens, a->task, &asks, &passes, err);
        for (size_t k = 0; !st && k < passes.n; k++) {
            const weft__eval_ask *ask = &asks.items[passes.items[k].ask];
            printf("--- document %zu, %d tokens, %d scored\n", i + 1, passes.items[k].n,
                   passes.items[k].to - passes.items[k].from);
            print_lines(&ask->context);
            if (ask->continuation.len) printf("\n--- scored:");
            print_lines(&ask->continuation);
            printf("\n");
        }
        weft__eval_passes_free(&passes);
        weft__eval_asks_free(&asks);
    }
    weft__eval_shots_free(&shots);
    return st;
}

static weft_status run(struct task_asked *a, weft_error *err)
{
    progress bar = {0};
    weft__eval_params p = params_of(a, &bar);
    weft__strbuf out = {0}, picture = {0};
    if (a->o->show) return show(a, &p, err);
    a->report.model = a->info.name;
    a->report.style = a->o->chat ? a->o->multiturn ? "turns of a chat" : "a chat" : "text";
    progress_stops_on_signals();
    weft_status st = weft__eval_run(a->task, &p, &a->report, err);
    progress_end(&bar);
    if (!st && a->o->baseline) st = weft__eval_report_baseline(&a->report, a->o->baseline, err);
    if (!st && a->o->svg) {
        weft__eval_report_svg(&a->report, &picture);
        st = picture.failed ? weft_fail(err, WEFT_NO_MEMORY, "no memory to draw the picture")
                            : weft__out_file_put(a->o->svg, picture.data, picture.len, err);
    }
    weft__strbuf_free(&picture);
    if (st) return st;
    if (a->o->json) weft__eval_report_json(&a->report, &out);
    else weft__eval_report_text(&a->report, &out);
    return print_whole(&out, err);
}

/* EXIT_USAGE after a message. */
static int options_agree(struct task_options *o, const char *model, const char *task)
{
    const char *const outs[] = {o->samples, o->svg, o->predictions};
    if (o->multiturn && !o->chat) {
        fprintf(stderr, "weft eval task: --multiturn is about --chat, which is not given\n");
        return EXIT_USAGE;
    }
    if (!rope_options_check("eval task", &o->rope) || !adapter_options_parse("eval task", &o->adapters, o->adapter))
        return EXIT_USAGE;
    for (int i = 0; i < 3; i++) {
        struct stat is;
        if (!outs[i]) continue;
        if (i == 0 && !stat(outs[i], &is) && S_ISREG(is.st_mode)) continue; /* its first line tells whose it is */
        if (output_refused("eval task", outs[i]) || output_is_input("eval task", outs[i], model) ||
            output_is_input("eval task", outs[i], task) || output_is_input("eval task", outs[i], o->baseline))
            return EXIT_FAILED;
    }
    return 0;
}

static const command_spec SPEC = {
    "eval task",
    "MODEL TASK [options]",
    "Scores of a model on a task: a task file of lm-evaluation-harness (YAML, with local JSONL), plain JSONL\n"
    "({\"prompt\", \"answer\"}, {\"prompt\", \"choices\", \"answer\"} or {\"text\"}), or a file that "
    "llama-perplexity\n"
    "reads. Nothing that the model writes is executed; scripts/run-samples does that, in a sandbox.",
    "  weft eval task model.gguf gsm8k.yaml --data test=gsm8k.jsonl --data train=train.jsonl --fewshot 5\n"
    "  weft eval task model.gguf questions.jsonl --chat --samples new.jsonl --baseline old.jsonl --svg scores.svg\n"
    "  weft eval task model.gguf hellaswag_val_full.txt --form hellaswag --limit 400\n"
    "  weft eval task model.gguf HumanEval.jsonl --form humaneval --predictions out.jsonl --repeats 10 --temp "
    "0.8\n",
    NULL,
    2,
    2};

int eval_task_command(int argc, char **argv)
{
    static struct task_options o = {.kv_type = "f16", .spec = "auto", .seed = 1234, .fewshot_seed = 1234};
    const option_spec options[] = {
        {"form", 0, OPT_TEXT, &o.form, "FORM",
         "what TASK is: yaml, jsonl, hellaswag, winogrande, multiple-choice, humaneval, swebench (by its name)", 0, 0,
         NULL, "yaml jsonl hellaswag winogrande multiple-choice humaneval swebench"},
        {"data", 0, OPT_LIST, &o.data, "[SPLIT=]FILE",
         "JSONL in place of what a task file names; may be repeated, for splits", 0, 0, NULL},
        {"fewshot", 0, OPT_INT, &o.n_fewshot, "N", "examples before each question (the task's)", 0, 1000,
         &o.given_fewshot},
        {"fewshot-seed", 0, OPT_SEED, &o.fewshot_seed, "S", "which examples are drawn (1234)", 0, 0, NULL},
        {"limit", 0, OPT_INT, &o.limit, "N", "only the first N documents", 1, 1 << 30, NULL},
        {"repeats", 0, OPT_INT, &o.repeats, "N", "answers to each question (the task's)", 1, 10000, NULL},
        {"max-tokens", 'n', OPT_INT, &o.max_tokens, "N", "tokens of an answer at most (the task's, or 256)", 1, 1 << 24,
         NULL},
        {"temp", 0, OPT_FLOAT, &o.temperature, "T",
         "temperature of answers, 0: the likeliest tokens (the task's, or 0)", 0, 100, &o.given_temperature},
        {"seed", 0, OPT_SEED, &o.seed, "S", "of sampled answers (1234)", 0, 0, NULL},
        {"chat", 0, OPT_FLAG, &o.chat, NULL, "prompts are messages in the model's chat template", 0, 0, NULL},
        {"multiturn", 0, OPT_FLAG, &o.multiturn, NULL, "with --chat: examples are turns of their own", 0, 0, NULL},
        {"system", 0, OPT_TEXT, &o.system, "TEXT", "stands before the task's description", 0, 0, NULL},
        {"no-bos", 0, OPT_FLAG, &o.no_bos, NULL, "no BOS before texts, whatever the model's file says", 0, 0, NULL},
        {"samples", 0, OPT_TEXT, &o.samples, "FILE",
         "a line of JSON per document; a run that was stopped goes on from it", 0, 0, NULL},
        {"baseline", 0, OPT_TEXT, &o.baseline, "FILE", "samples of another run to compare with, pair by pair", 0, 0,
         NULL},
        {"predictions", 0, OPT_TEXT, &o.predictions, "FILE", "answers for a judge elsewhere (humaneval, swebench)", 0,
         0, NULL},
        {"svg", 0, OPT_TEXT, &o.svg, "FILE", "a picture of the scores", 0, 0, NULL},
        {"show", 0, OPT_INT, &o.show, "N", "print the first N prompts, and do nothing else", 1, 1 << 30, NULL},
        {"adapter", 0, OPT_LIST, &o.adapters, "A", "NAME=PATH[:SCALE], a GGUF adapter or PEFT folder; may be repeated",
         0, 0, NULL},
        {"ctx", 'c', OPT_INT, &o.n_ctx, "N", "tokens of a prompt with its answer at most (the model's, at most 4096)",
         16, WEFT_CTX_MAX, NULL},
        {"slots", 0, OPT_INT, &o.slots, "N", "requests that run at once (32)", 1, WEFT_SLOTS_MAX, NULL},
        KV_TYPE_OPTION(&o.kv_type, "f16"),
        SPEC_OPTION(&o.spec),
        ROPE_OPTIONS(&o.rope),
        PROVIDER_OPTION,
        {"threads", 't', OPT_INT, &o.threads, "THREADS", "threads (one per core)", 1, WEFT_THREADS_MAX, NULL},
        {"json", 0, OPT_FLAG, &o.json, NULL, "one JSON object", 0, 0, NULL},
        {0},
    };
    command_spec spec = SPEC;
    spec.options = options;
    int first;
    int rc = options_parse(&spec, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    if ((rc = options_agree(&o, argv[first], argv[first + 1]))) return rc;
    static struct task_asked a = {.o = &o};
    weft_error err = {0};
    weft_status st = open_all(&a, argv[first], argv[first + 1], &err);
    if (!st) st = run(&a, &err);
    task_asked_free(&a);
    return st ? report("eval task", &err) : EXIT_DONE;
}
