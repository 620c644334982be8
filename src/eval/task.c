// SPDX-License-Identifier: Apache-2.0
/* task.c: a task with its documents (task.h): finds the form and the files. */
#include "eval/task.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"

void *weft__eval_more(weft__arena *arena, const void *items, size_t n, size_t size)
{
    char *grown = weft__arena_array(arena, n + 1, size);
    if (!grown) return NULL;
    if (n) memcpy(grown, items, n * size);
    memset(grown + n * size, 0, size);
    return grown;
}

weft_status weft__eval_field_set(weft__eval_field *f, const char *source, weft_error *err)
{
    f->source = source;
    return weft__jinja_compile_plain(source, strlen(source), &f->jinja, err);
}

static void free_filters(weft__eval_task *t)
{
    for (size_t i = 0; i < t->n_filters; i++)
        for (size_t k = 0; k < t->filters[i].n_steps; k++) weft__regex_free(&t->filters[i].steps[k].regex);
    for (size_t i = 0; i < t->n_metrics; i++)
        for (size_t k = 0; k < t->metrics[i].n_ignore; k++) weft__regex_free(&t->metrics[i].ignore[k]);
}

void weft__eval_task_free(weft__eval_task **task)
{
    weft__eval_task *t = *task;
    if (!t) return;
    weft__eval_field *const fields[] = {&t->text, &t->target, &t->choice, &t->prefix, &t->description};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i]->jinja) weft__jinja_destroy(&fields[i]->jinja);
    free_filters(t);
    weft__eval_docs_free(&t->docs);
    weft__eval_docs_free(&t->shots);
    for (size_t i = 0; i < t->n_owned; i++) weft__json_free(&t->owned[i]);
    weft__free(t->owned);
    weft__arena_free(&t->arena);
    weft__free(t);
    *task = NULL;
}

/* ---- what a task does not say ---- */

static const struct known_metric {
    const char *name;
    weft__eval_metric_kind kind;
    weft__eval_aggregation aggregation;
    int higher_is_better;
    unsigned outputs; /* 1 << output */
} METRICS[] = {
    {"acc", WEFT__EVAL_ACC, WEFT__EVAL_MEAN, 1, 1 << WEFT__EVAL_LOGLIKELIHOOD | 1 << WEFT__EVAL_CHOICE},
    {"acc_norm", WEFT__EVAL_ACC_NORM, WEFT__EVAL_MEAN, 1, 1 << WEFT__EVAL_CHOICE},
    {"acc_bytes", WEFT__EVAL_ACC_BYTES, WEFT__EVAL_MEAN, 1, 1 << WEFT__EVAL_CHOICE},
    {"exact_match", WEFT__EVAL_EXACT_MATCH, WEFT__EVAL_MEAN, 1, 1 << WEFT__EVAL_GENERATE | 1 << WEFT__EVAL_CHOICE},
    {"json_match", WEFT__EVAL_JSON_MATCH, WEFT__EVAL_MEAN, 1, 1 << WEFT__EVAL_GENERATE},
    {"perplexity", WEFT__EVAL_PERPLEXITY, WEFT__EVAL_EXP, 0, 1 << WEFT__EVAL_LOGLIKELIHOOD},
    {"word_perplexity", WEFT__EVAL_WORD_PERPLEXITY, WEFT__EVAL_WEIGHTED_EXP, 0, 1 << WEFT__EVAL_ROLLING},
    {"byte_perplexity", WEFT__EVAL_BYTE_PERPLEXITY, WEFT__EVAL_WEIGHTED_EXP, 0, 1 << WEFT__EVAL_ROLLING},
    {"bits_per_byte", WEFT__EVAL_BITS_PER_BYTE, WEFT__EVAL_BITS, 0, 1 << WEFT__EVAL_ROLLING},
    {"brier_score", WEFT__EVAL_BRIER, WEFT__EVAL_MEAN, 0, 1 << WEFT__EVAL_CHOICE},
    {"pass_at_k", WEFT__EVAL_PASS_AT_K, WEFT__EVAL_MEAN, 1, 1 << WEFT__EVAL_GENERATE},
};

int weft__eval_metric_named(const char *name, weft__eval_output output, weft__eval_metric *m)
{
    for (size_t i = 0; i < sizeof METRICS / sizeof *METRICS; i++) {
        const struct known_metric *k = &METRICS[i];
        if (strcmp(k->name, name) || !(k->outputs & 1u << output)) continue;
        *m = (weft__eval_metric){
            .kind = k->kind, .aggregation = k->aggregation, .higher_is_better = k->higher_is_better};
        snprintf(m->name, sizeof m->name, "%s", k->name);
        return 1;
    }
    return 0;
}

weft_status weft__eval_task_defaults(weft__eval_task *t, weft_error *err)
{
    static const char *const usual[][3] = {
        [WEFT__EVAL_GENERATE] = {"exact_match"},
        [WEFT__EVAL_LOGLIKELIHOOD] = {"perplexity", "acc"},
        [WEFT__EVAL_ROLLING] = {"word_perplexity", "byte_perplexity", "bits_per_byte"},
        [WEFT__EVAL_CHOICE] = {"acc", "acc_norm"}};
    for (int i = 0, none = !t->n_metrics; none && i < 3 && usual[t->output][i]; i++) {
        weft__eval_metric *grown = weft__eval_more(&t->arena, t->metrics, t->n_metrics, sizeof *grown);
        if (!grown) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a task");
        t->metrics = grown;
        weft__eval_metric_named(usual[t->output][i], t->output, &grown[t->n_metrics++]);
    }
    if (t->n_filters) return WEFT_OK;
    t->filters = weft__eval_more(&t->arena, NULL, 0, sizeof *t->filters);
    weft__eval_step *step = weft__eval_more(&t->arena, NULL, 0, sizeof *step);
    if (!t->filters || !step) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a task");
    step->kind = WEFT__EVAL_TAKE_FIRST;
    t->filters[t->n_filters++] = (weft__eval_filter){"none", step, 1};
    return WEFT_OK;
}

/* ---- files ---- */

static const char *form_of(const char *path, const weft__eval_task_options *o)
{
    const char *dot = strrchr(path, '.');
    if (o->form) return o->form;
    if (dot && (!strcasecmp(dot, ".yaml") || !strcasecmp(dot, ".yml"))) return "yaml";
    return "jsonl";
}

/* As it stands, or else beside the task. */
static weft_status read_beside(const char *task, const char *path, char **out, size_t *n, weft_error *err)
{
    const char *slash = strrchr(task, '/');
    weft__strbuf beside = {0};
    if (slash && *path != '/' && access(path, R_OK)) {
        weft__strbuf_put(&beside, task, (size_t)(slash - task) + 1);
        weft__strbuf_puts(&beside, path);
    }
    weft_status st =
        beside.failed
            ? weft_fail(err, WEFT_NO_MEMORY, "no memory for a path")
            : weft__eval_read_file(beside.data && !access(beside.data, R_OK) ? beside.data : path, out, n, err);
    weft__strbuf_free(&beside);
    return st;
}

static weft_status read_docs(const char *task, const char *path, weft__eval_docs *docs, weft__hash_state *hash,
                             weft_error *err)
{
    char *text = NULL;
    size_t n = 0;
    weft_status st = read_beside(task, path, &text, &n, err);
    if (!st) weft__hash_add(hash, text, n);
    if (!st) st = weft__eval_docs_parse(path, text, n, docs, err);
    weft__free(text);
    return st;
}

static weft_status read_places(const char *path, weft__eval_task *t, const weft__eval_places *places,
                               weft__hash_state *hash, weft_error *err)
{
    weft_status st = read_docs(path, places->test, &t->docs, hash, err);
    t->shots_are_docs = !places->shots || !strcmp(places->shots, places->test);
    if (!st && !t->shots_are_docs && t->n_fewshot) st = read_docs(path, places->shots, &t->shots, hash, err);
    return st;
}

static weft_status check_shots(const weft__eval_task *t, weft_error *err)
{
    const size_t n = t->shots_are_docs ? t->docs.n - 1 : t->shots.n;
    if ((size_t)t->n_fewshot <= n) return WEFT_OK;
    return weft_fail(err, WEFT_ARGUMENT, "%lld examples are wanted, and there are %zu to take them from",
                     (long long)t->n_fewshot, n);
}

static void override(weft__eval_task *t, const weft__eval_task_options *o)
{
    if (o->n_fewshot >= 0) t->n_fewshot = o->n_fewshot;
    if (o->repeats > 0) t->repeats = o->repeats;
    if (o->max_tokens > 0) t->generation.max_tokens = o->max_tokens;
    if (o->temperature >= 0) t->generation.temperature = o->temperature;
}

weft_status weft__eval_task_open(const char *path, const weft__eval_task_options *options, weft__eval_task **out,
                                 weft_error *err)
{
    const weft__eval_task_options none = {.n_fewshot = -1, .temperature = -1}, *o = options ? options : &none;
    const char *form = form_of(path, o);
    weft__hash_state hash;
    weft__eval_places places = {0};
    char *text = NULL;
    size_t n = 0;
    *out = NULL;
    if (strcmp(form, "yaml") && !weft__eval_form_known(form))
        return weft_fail(err, WEFT_ARGUMENT, "there is no form '%s'", form);
    weft__eval_task *t = weft__alloc_zero(1, sizeof *t);
    if (!t) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a task");
    t->target_delimiter = " ";
    t->fewshot_delimiter = "\n\n";
    t->version = "";
    t->repeats = 1;
    t->generation = (weft__eval_generation){.max_tokens = 256, .top_p = 1};
    weft__hash_begin(&hash);
    weft_status st = weft__eval_read_file(path, &text, &n, err);
    if (!st) weft__hash_add(&hash, text, n);
    if (!st && !strcmp(form, "yaml")) {
        st = weft__eval_task_parse(path, text, n, o, t, &places, err);
        if (!st) override(t, o);
        if (!st) st = read_places(path, t, &places, &hash, err);
    } else if (!st) {
        st = weft__eval_form_parse(form, path, text, n, t, err);
        t->shots_are_docs = 1;
        override(t, o);
    }
    weft__free(text);
    if (!st) st = weft__eval_task_defaults(t, err);
    if (!st) st = check_shots(t, err);
    snprintf(t->data_hash, sizeof t->data_hash, "%016llx", (unsigned long long)weft__hash_end(&hash));
    if (st) weft__eval_task_free(&t);
    *out = t;
    return st;
}
