// SPDX-License-Identifier: Apache-2.0
/* task_yaml.c: a task file of lm-evaluation-harness as a task (task.h). What changes scores and cannot be done is
 * refused by its key; what changes nothing (descriptions for people, tags) is passed over. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "config/reader.h"
#include "eval/task.h"
#include "eval/task_parts.h"

typedef struct yaml_task {
    weft__eval_task *task;
    const weft__config_node *output_type, *metadata, *dataset_path, *dataset_kwargs, *filters, *metrics, *generation,
        *fewshot, *text, *target, *choice, *prefix, *description;
    const char *name, *test_split, *validation_split, *training_split, *fewshot_split;
    const weft__config_node *n_fewshot, *repeats, *target_delimiter, *fewshot_delimiter, *ignored;
} yaml_task;

/* ---- readers of keys ---- */

static void refused(weft__config_reader *r, const weft__config_node *v, void *into)
{
    (void)into;
    if (v->kind == WEFT__CONFIG_NONE || (v->kind == WEFT__CONFIG_BOOL && (*v->text == 'f' || *v->text == 'F'))) return;
    weft__config_say_key(r, v, "is not supported: it needs Python, pictures, or prompts from elsewhere");
}

static void group(weft__config_reader *r, const weft__config_node *v, void *into)
{
    (void)into;
    weft__config_say_key(r, v, "a group of tasks; give the file of one");
}

/* A word, or nothing. */
static void word(weft__config_reader *r, const weft__config_node *v, void *into)
{
    if (v->kind == WEFT__CONFIG_NONE) return;
    weft__config_text(r, v, into);
}

#define KEEP(key, member)                                                                                              \
    {                                                                                                                  \
        key, weft__config_keep, offsetof(yaml_task, member), 0                                                         \
    }
#define WORD(key, member)                                                                                              \
    {                                                                                                                  \
        key, word, offsetof(yaml_task, member), 0                                                                      \
    }
#define NOT(key)                                                                                                       \
    {                                                                                                                  \
        key, refused, 0, 0                                                                                             \
    }
static const weft__config_field KEYS[] = {
    WORD("task", name),
    KEEP("task_alias", ignored),
    KEEP("tag", ignored),
    KEEP("include", ignored),
    {"group", group, 0, 0},
    KEEP("dataset_path", dataset_path),
    KEEP("dataset_name", ignored),
    KEEP("dataset_kwargs", dataset_kwargs),
    WORD("training_split", training_split),
    WORD("validation_split", validation_split),
    WORD("test_split", test_split),
    WORD("fewshot_split", fewshot_split),
    NOT("custom_dataset"),
    NOT("process_docs"),
    NOT("process_results"),
    NOT("use_prompt"),
    NOT("doc_to_image"),
    NOT("doc_to_audio"),
    NOT("unsafe_code"),
    KEEP("doc_to_text", text),
    KEEP("doc_to_target", target),
    KEEP("doc_to_choice", choice),
    KEEP("gen_prefix", prefix),
    KEEP("description", description),
    KEEP("target_delimiter", target_delimiter),
    KEEP("fewshot_delimiter", fewshot_delimiter),
    KEEP("fewshot_config", fewshot),
    KEEP("num_fewshot", n_fewshot),
    KEEP("output_type", output_type),
    KEEP("generation_kwargs", generation),
    KEEP("repeats", repeats),
    KEEP("filter_list", filters),
    KEEP("metric_list", metrics),
    KEEP("should_decontaminate", ignored),
    KEEP("doc_to_decontamination_query", ignored),
    KEEP("metadata", metadata),
    {0},
};

/* ---- values ---- */

static int64_t whole(weft__config_reader *r, const char *key, const weft__config_node *v, int64_t least, int64_t usual)
{
    if (!v || v->kind == WEFT__CONFIG_NONE) return usual;
    const long long n = v->kind == WEFT__CONFIG_INT && strlen(v->text) < 12 ? strtoll(v->text, NULL, 10) : -1;
    if (n >= least) return n;
    weft__config_say(r, v, "%s: must be a whole number from %lld, not %.40s", key, (long long)least,
                     v->text && *v->text ? v->text : weft__config_kind_text(v));
    return usual;
}

/* A text, which may be empty; usual where there is none. */
static const char *yaml_text_of(weft__config_reader *r, const char *key, const weft__config_node *v, const char *usual)
{
    if (!v || v->kind == WEFT__CONFIG_NONE) return v && v->text && !*v->text ? "" : usual;
    if (v->text) return v->text;
    weft__config_say(r, v, "%s: must be a text, not %s", key, weft__config_kind_text(v));
    return usual;
}

/* A list, or the values of a map, or one number, as JSON; owned by the task. */
static const weft__json *constant(weft__config_reader *r, weft__eval_task *t, const weft__config_node *v)
{
    weft__json *out = weft__json_new_array();
    if (v->kind == WEFT__CONFIG_INT) {
        weft__json_free(&out);
        out = weft__json_new_int(strtoll(v->text, NULL, 10));
    } else {
        for (const weft__config_node *m = v->first; m; m = m->next) {
            if (!m->text) weft__config_say(r, m, "must be a text, not %s", weft__config_kind_text(m));
            else if (!weft__json_append(out, weft__json_new_string(m->text, strlen(m->text)))) r->no_memory = 1;
        }
    }
    if (!out || !weft__grow(&t->owned, &t->owned_capacity, t->n_owned + 1, sizeof *t->owned)) {
        r->no_memory = 1;
        weft__json_free(&out);
        return NULL;
    }
    return t->owned[t->n_owned++] = out;
}

static void field(weft__config_reader *r, weft__eval_task *t, const char *key, const weft__config_node *v,
                  weft__eval_field *out)
{
    weft_error why = {0};
    if (!v || v->kind == WEFT__CONFIG_NONE) return;
    if (v->kind == WEFT__CONFIG_LIST || v->kind == WEFT__CONFIG_MAP || v->kind == WEFT__CONFIG_INT)
        out->constant = constant(r, t, v);
    else if (weft__eval_field_set(out, v->text, &why)) weft__config_say(r, v, "%s: %s", key, why.message);
}

/* ---- splits ---- */

/* The file of a split; NULL after telling. */
static const char *file_of(weft__config_reader *r, const weft__config_node *files, const char *split)
{
    const weft__config_node *v = NULL;
    if (files->kind == WEFT__CONFIG_MAP) {
        for (const weft__config_node *m = files->first; m; m = m->next)
            if (!strcmp(m->key, split)) v = m;
        if (!v) weft__config_say(r, files, "dataset_kwargs.data_files: no file for the split '%s'", split);
    } else if (strcmp(split, "train")) {
        weft__config_say(r, files,
                         "dataset_kwargs.data_files: a file without a split is 'train', and '%s' is asked for", split);
    } else {
        v = files;
    }
    if (v && v->kind == WEFT__CONFIG_LIST && v->n == 1) v = v->first;
    if (v && !v->text) weft__config_say(r, v, "dataset_kwargs.data_files: must be one path");
    return v ? v->text : NULL;
}

/* The one that --data gave: for the split, or, for the documents, without one. */
static const char *given_file(const weft__eval_task_options *o, const char *split, int is_test)
{
    const size_t n = strlen(split);
    for (int i = 0; i < o->n_data; i++)
        if (!strncmp(o->data[i], split, n) && o->data[i][n] == '=') return o->data[i] + n + 1;
    for (int i = 0; i < o->n_data; i++)
        if (is_test && !strchr(o->data[i], '=')) return o->data[i];
    return NULL;
}

static const char *split_place_of(weft__config_reader *r, const yaml_task *y, const weft__eval_task_options *o,
                                  const char *split, int is_test)
{
    const char *given = given_file(o, split, is_test);
    const weft__config_node *files = NULL;
    if (given) return given;
    if (!y->dataset_path || !y->dataset_path->text || strcmp(y->dataset_path->text, "json")) {
        weft__config_say(r, y->dataset_path, "dataset_path: '%.60s' is no local file; give it with --data %s=FILE",
                         y->dataset_path && y->dataset_path->text ? y->dataset_path->text : "", split);
        return NULL;
    }
    for (const weft__config_node *m = y->dataset_kwargs ? y->dataset_kwargs->first : NULL; m; m = m->next)
        if (m->key && !strcmp(m->key, "data_files")) files = m;
    if (files) return file_of(r, files, split);
    weft__config_say(r, y->dataset_kwargs, "dataset_kwargs.data_files is missing; or give --data %s=FILE", split);
    return NULL;
}

static void places_of(weft__config_reader *r, const yaml_task *y, const weft__eval_task_options *o,
                      weft__eval_places *out)
{
    const char *test = y->test_split ? y->test_split : y->validation_split;
    const char *shots = y->fewshot_split      ? y->fewshot_split
                        : y->training_split   ? y->training_split
                        : y->validation_split ? y->validation_split
                                              : test;
    const int64_t n_fewshot = o->n_fewshot >= 0 ? o->n_fewshot : y->task->n_fewshot;
    if (!test) {
        weft__config_say(r, NULL, "'test_split' is missing");
        return;
    }
    out->test = split_place_of(r, y, o, test, 1);
    if (n_fewshot > 0 && out->test && strcmp(shots, test)) out->shots = split_place_of(r, y, o, shots, 0);
}

/* ---- the whole ---- */

static const struct output_name {
    const char *name;
    weft__eval_output output;
} OUTPUTS[] = {
    {"generate_until", WEFT__EVAL_GENERATE},
    {"loglikelihood", WEFT__EVAL_LOGLIKELIHOOD},
    {"loglikelihood_rolling", WEFT__EVAL_ROLLING},
    {"multiple_choice", WEFT__EVAL_CHOICE},
};

static void output_of(weft__config_reader *r, const weft__config_node *v, weft__eval_task *t)
{
    if (!v) return; /* generate_until */
    for (size_t i = 0; v->text && i < sizeof OUTPUTS / sizeof *OUTPUTS; i++) {
        if (strcmp(v->text, OUTPUTS[i].name)) continue;
        t->output = OUTPUTS[i].output;
        return;
    }
    weft__config_say(r, v,
                     "output_type: must be generate_until, loglikelihood, loglikelihood_rolling or "
                     "multiple_choice");
}

static void sampler_of(weft__config_reader *r, const weft__config_node *v, weft__eval_task *t)
{
    if (!v || v->kind == WEFT__CONFIG_NONE) return;
    for (const weft__config_node *m = v->first; m; m = m->next) {
        const int is_sampler = m->key && !strcmp(m->key, "sampler") && m->text;
        if (is_sampler && !strcmp(m->text, "first_n")) t->fewshot_first = 1;
        else if (!is_sampler || strcmp(m->text, "default"))
            weft__config_say_key(r, m, "fewshot_config: only `sampler: first_n` or `default` is read");
    }
}

static void version_of(weft__config_reader *r, const weft__config_node *v, weft__eval_task *t)
{
    for (const weft__config_node *m = v ? v->first : NULL; m; m = m->next)
        if (m->key && !strcmp(m->key, "version")) t->version = yaml_text_of(r, "metadata.version", m, "");
}

static void build(weft__config_reader *r, yaml_task *y)
{
    weft__eval_task *t = y->task;
    t->name = y->name ? y->name : "task";
    output_of(r, y->output_type, t);
    version_of(r, y->metadata, t);
    field(r, t, "doc_to_text", y->text, &t->text);
    field(r, t, "doc_to_target", y->target, &t->target);
    field(r, t, "doc_to_choice", y->choice, &t->choice);
    field(r, t, "gen_prefix", y->prefix, &t->prefix);
    if (y->description && *yaml_text_of(r, "description", y->description, ""))
        field(r, t, "description", y->description, &t->description);
    t->target_delimiter = yaml_text_of(r, "target_delimiter", y->target_delimiter, " ");
    t->fewshot_delimiter = yaml_text_of(r, "fewshot_delimiter", y->fewshot_delimiter, "\n\n");
    t->n_fewshot = whole(r, "num_fewshot", y->n_fewshot, 0, 0);
    t->repeats = whole(r, "repeats", y->repeats, 1, 1);
    sampler_of(r, y->fewshot, t);
    weft__eval_read_generation(r, y->generation, t);
    weft__eval_read_filters(r, y->filters, t);
    weft__eval_read_metrics(r, y->metrics, t);
    if (!t->target.source && !t->target.constant) weft__config_say(r, NULL, "'doc_to_target' is missing");
    if (!t->text.source && !t->text.constant && t->output != WEFT__EVAL_ROLLING)
        weft__config_say(r, NULL, "'doc_to_text' is missing");
    if (t->output == WEFT__EVAL_CHOICE && !t->choice.source && !t->choice.constant)
        weft__config_say(r, NULL, "'doc_to_choice' is missing");
}

/* Members of `from` that `into` lacks come behind its own. */
static void inherit(weft__config_node *into, weft__config_node *from)
{
    weft__config_node **end = &into->first;
    while (*end) end = &(*end)->next;
    for (weft__config_node *m = from->first, *next; m; m = next) {
        int has = 0;
        next = m->next;
        for (const weft__config_node *own = into->first; own; own = own->next) has |= !strcmp(own->key, m->key);
        if (has) continue;
        m->next = NULL;
        *end = m;
        end = &m->next;
        into->n++;
    }
}

enum { INCLUDES = 8 };

/* The tree of a text, with what it includes, from beside it. */
static weft_status tree_of(weft__config_reader *r, const char *path, const char *text, size_t n, int depth,
                           weft__config_node **root, weft_error *err)
{
    weft_status st = weft__config_yaml(text, n, &r->config->arena, r->faults, root, err);
    if (st || !*root || (*root)->kind != WEFT__CONFIG_MAP) return st;
    for (const weft__config_node *m = (*root)->first; m; m = m->next) {
        weft__config_node *more = NULL;
        weft__strbuf beside = {0};
        char *included = NULL;
        size_t n_included = 0;
        const char *slash = strrchr(path, '/');
        if (strcmp(m->key, "include") || !m->text) continue;
        if (depth == INCLUDES) {
            weft__config_say(r, m, "include: nested too deep");
            return WEFT_OK;
        }
        if (slash && *m->text != '/') weft__strbuf_put(&beside, path, (size_t)(slash - path) + 1);
        weft__strbuf_puts(&beside, m->text);
        st = beside.failed ? weft_fail(err, WEFT_NO_MEMORY, "no memory for a task")
                           : weft__eval_read_file(beside.data, &included, &n_included, err);
        if (!st) st = tree_of(r, beside.data, included, n_included, depth + 1, &more, err);
        if (!st && more && more->kind == WEFT__CONFIG_MAP) inherit(*root, more);
        weft__free(included);
        weft__strbuf_free(&beside);
        return st;
    }
    return WEFT_OK;
}

static weft_status tell_faults(const char *path, weft__config_faults *faults, weft_error *err)
{
    weft__strbuf all = {0};
    weft__config_faults_sort(faults);
    weft__config_faults_write(faults, path, &all);
    while (all.len && all.data[all.len - 1] == '\n') all.data[--all.len] = 0;
    weft_status st = all.failed || faults->failed ? weft_fail(err, WEFT_NO_MEMORY, "no memory for a task")
                                                  : weft_fail(err, WEFT_FORMAT, "%s", all.data ? all.data : path);
    weft__strbuf_free(&all);
    return st;
}

weft_status weft__eval_task_parse(const char *path, const char *text, size_t n, const weft__eval_task_options *options,
                                  weft__eval_task *task, weft__eval_places *places, weft_error *err)
{
    weft__config holder = {.arena = task->arena};
    weft__config_faults faults = {0};
    weft__config_reader r = {.config = &holder, .faults = &faults};
    weft__config_node *root = NULL;
    yaml_task y = {.task = task};
    weft_status st = tree_of(&r, path, text, n, 0, &root, err);
    task->arena = holder.arena;
    if (!st && !faults.n && !root) weft__config_say(&r, NULL, "empty; a task is a map");
    if (!st && root && !faults.n) weft__config_fields(&r, root, KEYS, &y);
    if (!st && root && !faults.n) build(&r, &y);
    if (!st && root && !faults.n) places_of(&r, &y, options, places);
    task->arena = holder.arena;
    if (!st && r.no_memory) st = weft_fail(err, WEFT_NO_MEMORY, "no memory for a task");
    if (!st && (faults.n || faults.failed)) st = tell_faults(path, &faults, err);
    weft__config_faults_free(&faults);
    return st;
}
