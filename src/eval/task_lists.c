// SPDX-License-Identifier: Apache-2.0
/* task_lists.c: generation_kwargs, filter_list and metric_list (task_parts.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eval/task_parts.h"

static const weft__config_node *member(const weft__config_node *v, const char *key)
{
    for (const weft__config_node *m = v && v->kind == WEFT__CONFIG_MAP ? v->first : NULL; m; m = m->next)
        if (!strcmp(m->key, key)) return m;
    return NULL;
}

static int task_lists_has(const char *word, const char *const *words)
{
    while (*words && strcmp(*words, word)) words++;
    return *words != NULL;
}

/* Tells of members that are none of `words`. */
static void only(weft__config_reader *r, const weft__config_node *v, const char *what, const char *const *words)
{
    for (const weft__config_node *m = v->kind == WEFT__CONFIG_MAP ? v->first : NULL; m; m = m->next)
        if (!task_lists_has(m->key, words)) weft__config_say_key(r, m, "%s: '%.60s' is not supported", what, m->key);
}

static int64_t whole(weft__config_reader *r, const weft__config_node *v, int64_t least, int64_t usual)
{
    if (!v || v->kind == WEFT__CONFIG_NONE) return usual;
    const long long n = v->kind == WEFT__CONFIG_INT && strlen(v->text) < 10 ? strtoll(v->text, NULL, 10) : least - 1;
    if (n < least)
        weft__config_say(r, v, "%s: must be a whole number from %lld", v->key ? v->key : "", (long long)least);
    return n < least ? usual : n;
}

static int truth(weft__config_reader *r, const weft__config_node *v)
{
    int is = 0;
    if (v && v->kind != WEFT__CONFIG_NONE) weft__config_bool(r, v, &is);
    return is;
}

/* One text, or a list of them, none of them empty. */
static const char *const *texts(weft__config_reader *r, const weft__config_node *v, size_t *n)
{
    const int is_list = v->kind == WEFT__CONFIG_LIST;
    const char **out = weft__config_take(r, is_list ? v->n : 1, sizeof *out);
    *n = 0;
    for (const weft__config_node *m = !out ? NULL : is_list ? v->first : v; m; m = is_list ? m->next : NULL) {
        if (m->text && *m->text) out[(*n)++] = m->text;
        else weft__config_say(r, m, "must be a text, not %s", m->text ? "an empty one" : weft__config_kind_text(m));
    }
    return out;
}

/* ---- generation_kwargs ---- */

static double task_lists_number(weft__config_reader *r, const weft__config_node *v, double usual)
{
    double x = usual;
    if (v && v->kind != WEFT__CONFIG_NONE && (!weft__config_double(v, &x) || x < 0))
        weft__config_say(r, v, "%s: must be a number from 0", v->key ? v->key : "");
    return x < 0 ? usual : x;
}

void weft__eval_read_generation(weft__config_reader *r, const weft__config_node *v, weft__eval_task *t)
{
    static const char *const known[] = {"until", "do_sample",    "temperature", "top_p",          "top_k",
                                        "min_p", "max_gen_toks", "max_tokens",  "max_new_tokens", NULL};
    weft__eval_generation *g = &t->generation;
    const weft__config_node *until = member(v, "until"), *most = member(v, "max_gen_toks");
    const char **usual = weft__config_take(r, 1, sizeof *usual);
    if (usual && *t->fewshot_delimiter) {
        *usual = t->fewshot_delimiter;
        g->until = usual;
        g->n_until = 1;
    }
    if (!v || v->kind == WEFT__CONFIG_NONE) return;
    only(r, v, "generation_kwargs", known);
    if (!most) most = member(v, "max_tokens");
    if (!most) most = member(v, "max_new_tokens");
    if (until && until->kind != WEFT__CONFIG_NONE) g->until = texts(r, until, &g->n_until);
    g->max_tokens = whole(r, most, 1, g->max_tokens);
    g->temperature = task_lists_number(r, member(v, "temperature"), 0);
    g->top_p = task_lists_number(r, member(v, "top_p"), 1);
    g->min_p = task_lists_number(r, member(v, "min_p"), 0);
    g->top_k = whole(r, member(v, "top_k"), 0, 0);
}

/* ---- filter_list ---- */

static const struct step_name {
    const char *name;
    weft__eval_step_kind kind;
} STEPS[] = {
    {"regex", WEFT__EVAL_REGEX},
    {"take_first", WEFT__EVAL_TAKE_FIRST},
    {"take_first_k", WEFT__EVAL_TAKE_FIRST_K},
    {"majority_vote", WEFT__EVAL_MAJORITY},
    {"lowercase", WEFT__EVAL_LOWER},
    {"uppercase", WEFT__EVAL_UPPER},
    {"remove_whitespace", WEFT__EVAL_STRIP},
    {"map", WEFT__EVAL_MAP},
    {"flexible", WEFT__EVAL_FLEXIBLE},
};

static void map_step(weft__config_reader *r, const weft__config_node *v, weft__eval_step *s)
{
    const weft__config_node *from = member(v, "mapping_dict"), *otherwise = member(v, "default_value");
    if (!from || from->kind != WEFT__CONFIG_MAP) {
        weft__config_say(r, v, "a map step needs mapping_dict, a map");
        return;
    }
    const char **keys = weft__config_take(r, from->n, sizeof *keys),
               **values = weft__config_take(r, from->n, sizeof *values);
    for (const weft__config_node *m = keys && values ? from->first : NULL; m; m = m->next) {
        keys[s->n_map] = m->key;
        values[s->n_map++] = m->kind == WEFT__CONFIG_NONE ? NULL : m->text;
    }
    s->from = keys;
    s->to = values;
    s->fallback = otherwise && otherwise->kind != WEFT__CONFIG_NONE ? otherwise->text : NULL;
}

static void regex_step(weft__config_reader *r, const weft__config_node *v, weft__eval_step *s)
{
    const weft__config_node *pattern = member(v, "regex_pattern"), *fallback = member(v, "fallback");
    const char *source = pattern && pattern->text ? pattern->text : "#### (\\-?[0-9\\.\\,]+)";
    weft_error why = {0};
    s->fallback = fallback && fallback->text ? fallback->text : "[invalid]";
    const weft__config_node *select = member(v, "group_select");
    s->number = select && select->kind == WEFT__CONFIG_INT ? strtol(select->text, NULL, 10) : 0;
    if (weft__regex_compile_python(source, strlen(source), &s->regex, &why))
        weft__config_say(r, pattern ? pattern : v, "%s", why.message);
}

static void one_step(weft__config_reader *r, const weft__config_node *v, void *into)
{
    static const char *const known[] = {"function", "regex_pattern", "group_select",  "fallback",
                                        "k",        "mapping_dict",  "default_value", NULL};
    const weft__config_node *name = member(v, "function");
    weft__eval_step *s = into;
    size_t i = 0;
    while (name && name->text && i < sizeof STEPS / sizeof *STEPS && strcmp(STEPS[i].name, name->text)) i++;
    if (!name || !name->text || i == sizeof STEPS / sizeof *STEPS) {
        weft__config_say(r, name ? name : v,
                         "no filter function that is read: regex, take_first, take_first_k, majority_vote, lowercase, "
                         "uppercase, remove_whitespace, map");
        return;
    }
    only(r, v, "a filter step", known);
    s->kind = STEPS[i].kind;
    if (s->kind == WEFT__EVAL_REGEX) regex_step(r, v, s);
    else if (s->kind == WEFT__EVAL_MAP) map_step(r, v, s);
    else if (s->kind == WEFT__EVAL_TAKE_FIRST_K) s->number = whole(r, member(v, "k"), 1, 1);
}

static void one_filter(weft__config_reader *r, const weft__config_node *v, void *into)
{
    weft__eval_filter *f = into;
    const weft__config_node *name = member(v, "name"), *steps = member(v, "filter");
    f->name = name && name->text && *name->text ? name->text : "";
    if (!*f->name) weft__config_say(r, v, "a filter needs a name");
    if (!steps) weft__config_say(r, v, "a filter needs its steps: filter, a list");
    else f->steps = weft__config_each(r, steps, WEFT__CONFIG_LIST, sizeof *f->steps, &f->n_steps, one_step);
}

void weft__eval_read_filters(weft__config_reader *r, const weft__config_node *v, weft__eval_task *t)
{
    if (!v || v->kind == WEFT__CONFIG_NONE) return;
    t->filters = weft__config_each(r, v, WEFT__CONFIG_LIST, sizeof *t->filters, &t->n_filters, one_filter);
    for (size_t i = 0; i < t->n_filters; i++)
        for (size_t k = 0; k < i; k++)
            if (t->filters[i].name && t->filters[k].name && !strcmp(t->filters[i].name, t->filters[k].name))
                weft__config_say(r, v, "filter_list: two filters are called '%.60s'", t->filters[i].name);
}

/* ---- metric_list ---- */

static const struct aggregation_name {
    const char *name;
    weft__eval_aggregation aggregation;
    int of_pairs;
} AGGREGATIONS[] = {
    {"mean", WEFT__EVAL_MEAN, 0},
    {"nanmean", WEFT__EVAL_MEAN, 0},
    {"brier_score", WEFT__EVAL_MEAN, 0},
    {"perplexity", WEFT__EVAL_EXP, 0},
    {"weighted_perplexity", WEFT__EVAL_WEIGHTED_EXP, 1},
    {"bits_per_byte", WEFT__EVAL_BITS, 1},
};

static void aggregation(weft__config_reader *r, const weft__config_node *v, weft__eval_metric *m)
{
    const int of_pairs = m->aggregation == WEFT__EVAL_WEIGHTED_EXP || m->aggregation == WEFT__EVAL_BITS;
    if (!v || v->kind == WEFT__CONFIG_NONE) return;
    for (size_t i = 0; v->text && i < sizeof AGGREGATIONS / sizeof *AGGREGATIONS; i++) {
        if (strcmp(AGGREGATIONS[i].name, v->text) || AGGREGATIONS[i].of_pairs != of_pairs) continue;
        m->aggregation = AGGREGATIONS[i].aggregation;
        return;
    }
    weft__config_say(r, v, "aggregation: '%.60s' is not read for %s", v->text ? v->text : "", m->name);
}

static void ignored(weft__config_reader *r, const weft__config_node *v, weft__eval_metric *m)
{
    size_t n = 0;
    if (!v || v->kind == WEFT__CONFIG_NONE) return;
    const char *const *sources = texts(r, v, &n);
    m->ignore = weft__config_take(r, n, sizeof *m->ignore);
    for (size_t i = 0; m->ignore && i < n; i++) {
        weft_error why = {0};
        if (weft__regex_compile_python(sources[i], strlen(sources[i]), &m->ignore[m->n_ignore], &why))
            weft__config_say(r, v, "regexes_to_ignore: %s", why.message);
        else m->n_ignore++;
    }
}

static void one_metric(weft__config_reader *r, const weft__config_node *v, weft__eval_task *t, weft__eval_metric *m)
{
    static const char *const known[] = {"metric",
                                        "aggregation",
                                        "higher_is_better",
                                        "ignore_case",
                                        "ignore_punctuation",
                                        "ignore_numbers",
                                        "regexes_to_ignore",
                                        "k",
                                        NULL};
    const weft__config_node *name = member(v, "metric"), *higher = member(v, "higher_is_better");
    if (!name || !name->text || !weft__eval_metric_named(name->text, t->output, m)) {
        weft__config_say(r, name ? name : v, "metric: '%.60s' is not read for this output_type",
                         name && name->text ? name->text : "");
        return;
    }
    only(r, v, "a metric", known);
    aggregation(r, member(v, "aggregation"), m);
    if (higher && higher->kind != WEFT__CONFIG_NONE) m->higher_is_better = truth(r, higher);
    m->ignore_case = truth(r, member(v, "ignore_case"));
    m->ignore_punctuation = truth(r, member(v, "ignore_punctuation"));
    m->ignore_numbers = truth(r, member(v, "ignore_numbers"));
    ignored(r, member(v, "regexes_to_ignore"), m);
    m->k = 1;
}

static weft__eval_metric *add_metric(weft__config_reader *r, weft__eval_task *t)
{
    weft__eval_metric *grown = weft__eval_more(&r->config->arena, t->metrics, t->n_metrics, sizeof *grown);
    if (!grown) {
        r->no_memory = 1;
        return NULL;
    }
    t->metrics = grown;
    return &grown[t->n_metrics++];
}

/* `k: [1, 10]` are two metrics. */
static void each_k(weft__config_reader *r, const weft__config_node *k, weft__eval_task *t, size_t at)
{
    const int is_list = k && k->kind == WEFT__CONFIG_LIST;
    for (const weft__config_node *m = is_list ? k->first : k; m; m = is_list ? m->next : NULL) {
        weft__eval_metric *one = m == (is_list ? k->first : k) ? &t->metrics[at] : add_metric(r, t);
        if (!one) return;
        if (one != &t->metrics[at]) *one = t->metrics[at], one->ignore = NULL, one->n_ignore = 0;
        one->k = whole(r, m, 1, 1);
    }
}

void weft__eval_read_metrics(weft__config_reader *r, const weft__config_node *v, weft__eval_task *t)
{
    if (!v || v->kind == WEFT__CONFIG_NONE || !weft__config_is(r, v, WEFT__CONFIG_LIST)) return;
    for (const weft__config_node *m = v->first; m; m = m->next) {
        weft__eval_metric *one = add_metric(r, t);
        const size_t at = t->n_metrics - 1;
        if (!one) return;
        one_metric(r, m, t, one);
        if (one->kind != WEFT__EVAL_PASS_AT_K) continue;
        each_k(r, member(m, "k"), t, at);
        for (size_t i = at; i < t->n_metrics; i++)
            snprintf(t->metrics[i].name, sizeof t->metrics[i].name, "pass@%lld", (long long)t->metrics[i].k);
    }
}
