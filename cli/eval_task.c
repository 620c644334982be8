// SPDX-License-Identifier: Apache-2.0
/* eval_task.c: weft eval task: a model's scores on a task: options to weft_eval_task, which does the work. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "eval.h"
#include "eval_engine.h"
#include "format/out_file.h"
#include "options.h"
#include "outputs.h"
#include "spec.h"
#include "terminal.h"
#include "weft/eval.h"

enum { SLOTS = 32, QUEUE = 512, ROOM = 4096 }; /* ROOM: tokens of a prompt and its answer, where nothing else is said */

struct task_options {
    const char *form, *samples, *baseline, *svg, *predictions, *system, *spec;
    struct text_list data;
    int32_t n_fewshot, limit, repeats, max_tokens, show;
    int given_fewshot, given_temperature, chat, multiturn, no_bos, json;
    uint64_t seed, fewshot_seed;
    float temperature;
    eval_engine_options engine;
};

/* Everything one run needs; released by task_asked_free. */
struct task_asked {
    const struct task_options *o;
    weft_task *task;
    eval_engine engine;
    weft_scores *scores;
};

static void task_asked_free(struct task_asked *a)
{
    weft_scores_free(&a->scores);
    eval_engine_free(&a->engine);
    weft_task_close(&a->task);
}

static weft_status open_task(struct task_asked *a, const char *path, weft_error *err)
{
    const struct task_options *o = a->o;
    const char *data[LIST_MAX + 1] = {0};
    weft_task_params p;
    weft_task_info info = {.size = sizeof info};
    weft_task_params_default(&p);
    for (int i = 0; i < o->data.n; i++) data[i] = o->data.items[i];
    p.form = o->form;
    p.data = data;
    p.repeats = o->repeats;
    p.max_tokens = o->max_tokens;
    if (o->given_fewshot) p.n_fewshot = o->n_fewshot;
    if (o->given_temperature) p.temperature = (double)o->temperature;
    weft_status st = weft_task_open(path, &p, &a->task, err);
    if (!st) st = weft_task_describe(a->task, &info, err);
    if (!st && info.judged_elsewhere && !o->predictions && !o->show)
        return weft_fail(err, WEFT_ARGUMENT, "the answers are judged elsewhere: --predictions FILE is where they go");
    if (!st && !info.judged_elsewhere && o->predictions)
        return weft_fail(err, WEFT_ARGUMENT, "--predictions is for --form humaneval and swebench");
    return st;
}

static weft_eval_params params_of(const struct task_asked *a, progress *bar)
{
    const struct task_options *o = a->o;
    weft_eval_params p;
    weft_eval_params_default(&p);
    p.adapters = a->engine.adapters;
    p.n_adapters = o->engine.adapters.n;
    p.chat = o->chat;
    p.multiturn = o->multiturn;
    p.system = o->system;
    p.no_bos = o->no_bos;
    p.limit = o->limit;
    p.seed = o->seed;
    p.fewshot_seed = o->fewshot_seed;
    p.samples = o->samples;
    p.predictions = o->show ? NULL : o->predictions;
    p.progress = progress_update;
    p.progress_arg = bar;
    return p;
}

static void print_lines(const char *text, size_t n)
{
    for (size_t at = 0, end; at < n; at = end + 1) {
        const char *stop = memchr(text + at, '\n', n - at);
        end = stop ? (size_t)(stop - text) : n;
        print_clean(stdout, text + at, end - at, 0);
        if (stop) printf("\n");
    }
}

/* A weft_eval_show_fn. */
static int show(void *arg, const weft_eval_shown *prompt)
{
    (void)arg;
    printf("--- document %lld, %d tokens, %d scored\n", (long long)prompt->document + 1, prompt->n_tokens,
           prompt->n_scored);
    print_lines(prompt->context, prompt->n_context);
    if (prompt->n_continuation) printf("\n--- scored:");
    print_lines(prompt->continuation, prompt->n_continuation);
    printf("\n");
    return 0;
}

static weft_status draw_scores(struct task_asked *a, weft_error *err)
{
    const char *text = NULL;
    size_t n = 0;
    weft_status st = weft_scores_write(a->scores, WEFT_SCORES_SVG, &text, &n, err);
    return st ? st : weft__out_file_put(a->o->svg, text, n, err);
}

static weft_status run(struct task_asked *a, weft_error *err)
{
    const struct task_options *o = a->o;
    progress bar = {0};
    const weft_eval_params p = params_of(a, &bar);
    const char *text = NULL;
    size_t n = 0;
    if (o->show) return weft_eval_show(a->engine.engine, a->task, &p, o->show, show, NULL, err);
    progress_stops_on_signals();
    weft_status st = weft_eval_task(a->engine.engine, a->task, &p, &a->scores, err);
    progress_end(&bar);
    if (!st && o->baseline) st = weft_scores_compare(a->scores, o->baseline, err);
    if (!st && o->svg) st = draw_scores(a, err);
    if (!st) st = weft_scores_write(a->scores, o->json ? WEFT_SCORES_JSON : WEFT_SCORES_TABLE, &text, &n, err);
    if (!st) fwrite(text, 1, n, stdout);
    return st;
}

/* EXIT_USAGE after a message. */
static int options_agree(struct task_options *o, const char *model, const char *task)
{
    const char *const outs[] = {o->samples, o->svg, o->predictions};
    if (o->multiturn && !o->chat) {
        fprintf(stderr, "weft eval task: --multiturn is about --chat, which is not given\n");
        return EXIT_USAGE;
    }
    if (!eval_engine_check("eval task", &o->engine)) return EXIT_USAGE;
    o->engine.spec = spec_of(o->spec);
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
    static struct task_options o = {
        .spec = "auto",
        .seed = 1234,
        .fewshot_seed = 1234,
        .engine = {.kv_type = "f16", .usual_slots = SLOTS, .usual_ctx = ROOM, .queue = QUEUE}};
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
        EVAL_ENGINE_OPTIONS(&o.engine, "tokens of a prompt with its answer at most (the model's, at most 4096)", 16,
                            "requests that run at once (32)"),
        SPEC_OPTION(&o.spec),
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
    weft_status st = open_task(&a, argv[first + 1], &err);
    if (!st) st = eval_engine_open(&a.engine, &o.engine, argv[first], &err);
    if (!st) st = run(&a, &err);
    task_asked_free(&a);
    return st ? report("eval task", &err) : EXIT_DONE;
}
