// SPDX-License-Identifier: Apache-2.0
/* cmd_compare.c: weft compare: one prompt under several adapters, all in one batch. Answers are printed when all are
 * there, in the order of the adapters, the base's own first. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters.h"
#include "base/json.h"
#include "commands.h"
#include "options.h"
#include "prompt.h"
#include "provider.h"
#include "shown.h"
#include "rope.h"
#include "sample/defaults.h"
#include "terminal.h"

enum { MOST = LIST_MAX + 1 };

struct compare_options {
    struct text_list adapters;
    struct adapter_option adapter[LIST_MAX];
    int raw, json;
    int32_t n, n_ctx, threads;
    weft_sampler_params sampler;
    rope_options rope;
};

#define BASE "base" /* names the answer without an adapter, and no adapter */

/* One answer; written by the engine's thread until it is done. */
struct compare_answer {
    struct comparison *c;
    const char *name; /* BASE, or the adapter's */
    int32_t *tokens;
    int32_t n;
    weft_status failed;
    char message[WEFT_ERROR_TEXT];
};

struct comparison {
    const struct compare_options *o;
    weft_model *model;
    weft_engine *engine;
    int32_t *prompt;
    size_t n_prompt;
    struct compare_answer answers[MOST];
    int n_answers;
    pthread_mutex_t lock;
    pthread_cond_t done;
    int n_done;
};

/* ---- the prompt ---- */

static weft_status chat_prompt(struct comparison *c, const char *text, size_t n, weft_error *err)
{
    weft_chat *chat = NULL;
    weft_chat_prompt *rendered = NULL;
    weft__strbuf messages = {0};
    size_t length;
    weft__strbuf_puts(&messages, "[{\"role\": \"user\", \"content\": ");
    weft__json_write_string(&messages, text, n);
    weft__strbuf_puts(&messages, "}]");
    weft_status st = messages.failed ? weft_fail(err, WEFT_NO_MEMORY, "no memory for the prompt")
                                     : weft_chat_open(c->model, NULL, 0, &chat, err);
    if (!st) st = weft_chat_render(chat, messages.data, NULL, NULL, 1, &rendered, err);
    if (!st) {
        weft_chat_prompt_text(rendered, &length);
        size_t room = length + 2; /* a token has a byte at least; BOS may come in front */
        c->prompt = malloc(room * sizeof *c->prompt);
        if (!c->prompt) st = weft_fail(err, WEFT_NO_MEMORY, "no memory for the prompt");
        else st = weft_chat_prompt_tokenize(rendered, 0, c->prompt, room, &c->n_prompt, err);
    }
    weft_chat_prompt_free(&rendered);
    weft_chat_close(&chat);
    weft__strbuf_free(&messages);
    return st;
}

static weft_status read_prompt(struct comparison *c, const char *text, size_t n, weft_error *err)
{
    if (!c->o->raw) return chat_prompt(c, text, n, err);
    return tokenize_text(weft_model_tokenizer(c->model), text, n, WEFT_TOKENIZE_BOS | WEFT_TOKENIZE_SPECIAL, &c->prompt,
                         &c->n_prompt, err);
}

/* ---- the batch ---- */

static int on_event(void *arg, const weft_event *e)
{
    struct compare_answer *a = arg;
    if (e->kind == WEFT_EVENT_TOKEN) a->tokens[a->n++] = e->token;
    if (e->kind != WEFT_EVENT_FINISHED) return 0;
    if (e->finish == WEFT_FINISH_FAILED) a->failed = e->status ? e->status : WEFT_INTERNAL;
    if (a->failed) snprintf(a->message, sizeof a->message, "%s", e->message ? e->message : "failed");
    pthread_mutex_lock(&a->c->lock);
    a->c->n_done++;
    pthread_cond_signal(&a->c->done);
    pthread_mutex_unlock(&a->c->lock);
    return 0;
}

static weft_status submit(struct comparison *c, int i, weft_error *err)
{
    struct compare_answer *a = &c->answers[i];
    const weft_request_adapter use = {a->name, NAN, 0};
    weft_request_params p;
    uint64_t id;
    weft_request_params_default(&p);
    p.tokens = c->prompt;
    p.n_tokens = (int32_t)c->n_prompt;
    p.max_tokens = c->o->n;
    p.sampler = c->o->sampler;
    p.event = on_event;
    p.arg = a;
    p.adapters = i ? &use : NULL;
    p.n_adapters = i > 0;
    a->tokens = malloc((size_t)c->o->n * sizeof *a->tokens);
    if (!a->tokens) return weft_fail(err, WEFT_NO_MEMORY, "no memory for an answer");
    return weft_engine_submit(c->engine, &p, &id, NULL, err);
}

static weft_status open_engine(struct comparison *c, weft_error *err)
{
    const struct compare_options *o = c->o;
    weft_engine_params p;
    weft_engine_params_default(&p);
    p.n_ctx = o->n_ctx;
    p.n_slots = o->adapters.n + 1;
    weft_status st = weft_engine_new(c->model, &p, &c->engine, err);
    for (int i = 0; !st && i < o->adapters.n; i++)
        st = weft_engine_adapter_add(c->engine, o->adapter[i].name, o->adapter[i].path, o->adapter[i].scale, 0, err);
    return st;
}

/* Waits for those that were accepted. */
static void wait_for(struct comparison *c, int n)
{
    pthread_mutex_lock(&c->lock);
    while (c->n_done < n) pthread_cond_wait(&c->done, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

static weft_status answer_all(struct comparison *c, weft_error *err)
{
    weft_status st = WEFT_OK;
    int n = 0;
    c->n_answers = c->o->adapters.n + 1;
    for (int i = 0; i < c->n_answers; i++)
        c->answers[i] = (struct compare_answer){.c = c, .name = i ? c->o->adapter[i - 1].name : BASE};
    for (; !st && n < c->n_answers; n += !st) st = submit(c, n, err);
    wait_for(c, n);
    for (int i = 0; !st && i < n; i++)
        if (c->answers[i].failed)
            st = weft_fail(err, c->answers[i].failed, "%s: %s", c->answers[i].name, c->answers[i].message);
    return st;
}

/* ---- printing ---- */

static weft_status text_of(const struct comparison *c, const struct compare_answer *a, weft__strbuf *out,
                           weft_error *err)
{
    weft_detok *d = NULL;
    const char *text;
    size_t n;
    weft_status st = weft_detok_new(weft_model_tokenizer(c->model), c->o->raw ? WEFT_DETOK_CONTINUE : 0, &d, err);
    for (int32_t i = 0; !st && i < a->n; i++)
        if (!(st = weft_detok_push(d, a->tokens[i], &text, &n, err))) weft__strbuf_put(out, text, n);
    if (!st && !(st = weft_detok_finish(d, &text, &n, err))) weft__strbuf_put(out, text, n);
    weft_detok_free(&d);
    if (!st && out->failed) st = weft_fail(err, WEFT_NO_MEMORY, "no memory for an answer");
    return st;
}

static void print_answer(int i, const char *name, const char *text, size_t n)
{
    shown s;
    fputs(i ? "\n== " : "== ", stdout);
    print_clean(stdout, name, strlen(name), 0);
    fputs(" ==\n", stdout);
    shown_begin(&s, stdout);
    shown_put(&s, text, n);
    shown_end(&s);
    putchar('\n');
}

static weft_status print_all(const struct comparison *c, weft_error *err)
{
    weft__strbuf json = {0};
    weft_status st = WEFT_OK;
    for (int i = 0; !st && i < c->n_answers; i++) {
        weft__strbuf text = {0};
        st = text_of(c, &c->answers[i], &text, err);
        if (!st && c->o->json) {
            weft__strbuf_puts(&json, i ? ", {\"adapter\": " : "[{\"adapter\": ");
            weft__json_write_string(&json, c->answers[i].name, strlen(c->answers[i].name));
            weft__strbuf_puts(&json, ", \"text\": ");
            weft__json_write_string(&json, text.data ? text.data : "", text.len);
            weft__strbuf_printf(&json, ", \"tokens\": %d}", c->answers[i].n);
        } else if (!st) {
            print_answer(i, c->answers[i].name, text.data ? text.data : "", text.len);
        }
        weft__strbuf_free(&text);
    }
    if (!st && json.failed) st = weft_fail(err, WEFT_NO_MEMORY, "no memory for the answers as JSON");
    if (!st && c->o->json) printf("%s]\n", json.data ? json.data : "[");
    weft__strbuf_free(&json);
    return st;
}

static void print_statistics(const struct comparison *c, double seconds)
{
    weft_engine_stats s = {.size = sizeof s};
    weft_engine_get_stats(c->engine, &s);
    int64_t n = 0;
    for (int i = 0; i < c->n_answers; i++) n += c->answers[i].n;
    fprintf(stderr, "\n%d answers in one batch: %lld tokens in %llu steps, %.2f s, %.0f tokens/s together\n",
            c->n_answers, (long long)n, (unsigned long long)s.n_steps, seconds, (double)n / seconds);
}

static weft_status compare(struct comparison *c, const char *path, const char *argument, weft_error *err)
{
    weft_model_params mp;
    char *text = NULL;
    size_t n = strlen(argument);
    weft_status st = strcmp(argument, "-") ? WEFT_OK : read_text("-", &text, &n, err);
    weft_model_params_default(&mp);
    mp.renew_plan = 1;
    mp.n_threads = c->o->threads;
    mp.provider = provider_given;
    mp.n_ctx = c->o->n_ctx;
    mp.rope = c->o->rope.params;
    if (!st) st = weft_model_open(path, &mp, &c->model, err);
    if (!st && !weft_model_tokenizer(c->model)) st = weft_fail(err, WEFT_UNSUPPORTED, "the model has no tokenizer");
    if (!st) st = read_prompt(c, text ? text : argument, n, err);
    if (!st) st = open_engine(c, err);
    uint64_t start = now_ns();
    if (!st) st = answer_all(c, err);
    double seconds = (double)(now_ns() - start) / 1e9;
    if (!st) st = print_all(c, err);
    if (!st && !c->o->json) print_statistics(c, seconds);
    weft_engine_free(&c->engine);
    weft_model_close(&c->model);
    for (int i = 0; i < c->n_answers; i++) free(c->answers[i].tokens);
    free(c->prompt);
    free(text);
    return st;
}

static int spares_base(const struct compare_options *o)
{
    for (int i = 0; i < o->adapters.n; i++) {
        if (strcmp(o->adapter[i].name, BASE)) continue;
        fprintf(stderr,
                "weft compare: --adapter " BASE "=%s: '" BASE
                "' names the answer without an adapter; give it another name\n",
                o->adapter[i].path);
        return 0;
    }
    return 1;
}

int cmd_compare(int argc, char **argv)
{
    static struct compare_options o = {.n = 200};
    static struct comparison c = {.o = &o, .lock = PTHREAD_MUTEX_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};
    int first;
    weft_sampler_params_default(&o.sampler);
    const option_spec options[] = {
        {"adapter", 'a', OPT_LIST, &o.adapters, "A",
         "[NAME=]PATH[:SCALE], a GGUF file or PEFT folder; may be given several times", 0, 0, NULL},
        {"raw", 0, OPT_FLAG, &o.raw, NULL, "the prompt is a text to continue, not a message", 0, 0, NULL},
        {"n-predict", 'n', OPT_INT, &o.n, "N", "most tokens of an answer (200)", 1, 1 << 20, NULL},
        {"ctx", 'c', OPT_INT, &o.n_ctx, "CTX", "context of each answer in tokens (the model's, at most 4096)", 1,
         1 << 24, NULL},
        PROVIDER_OPTION,
        ROPE_OPTIONS(&o.rope),
        {"threads", 't', OPT_INT, &o.threads, "THREADS", "threads (one per core)", 1, WEFT_THREADS_MAX, NULL},
        {"temp", 0, OPT_FLOAT, &o.sampler.temperature, "T",
         "temperature, 0: always the likeliest token (" WEFT__SAMPLE_TEXT(TEMPERATURE) ")", 0, 100, NULL},
        {"seed", 0, OPT_SEED, &o.sampler.seed, "S", "makes the result repeatable (random)", 0, 0,
         &o.sampler.seed_given},
        {"json", 0, OPT_FLAG, &o.json, NULL, "one JSON list: adapter, text, tokens", 0, 0, NULL},
        {0},
    };
    const command_spec spec = {
        "compare",
        "MODEL PROMPT --adapter A... [options]",
        "Answers PROMPT with the base alone and under each adapter, all in one batch over one model: each answer is "
        "what that\n"
        "adapter would give by itself, bit for bit. The base's answer is called " BASE ".",
        "  weft compare model.gguf \"Tell me a story.\" --adapter pirate=pirate.gguf --adapter poem=poem.gguf\n",
        options,
        2,
        2};
    int rc = options_parse(&spec, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    if (!rope_options_check("compare", &o.rope)) return EXIT_USAGE;
    if (!o.adapters.n && !o.json) { /* a program's list may be of the base alone */
        fprintf(stderr, "weft compare: --adapter is missing: what is the base compared with? "
                        "--adapter [NAME=]PATH, once for each; --json alone lists the base's answer\n");
        return EXIT_USAGE;
    }
    if (!adapter_options_parse("compare", &o.adapters, o.adapter) || !spares_base(&o)) return EXIT_USAGE;
    weft_error err = {0};
    return compare(&c, argv[first], argv[first + 1], &err) ? report("compare", &err) : EXIT_DONE;
}
