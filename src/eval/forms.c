// SPDX-License-Identifier: Apache-2.0
/* forms.c: tasks that are no task files (task.h): plain records, the files that llama-perplexity reads, HumanEval's
 * problems and SWE-bench's. Each becomes documents and the fields that a task file would have had. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "eval/task.h"

typedef weft_status form_fn(const char *name, const char *text, size_t n, weft__eval_task *t, weft_error *err);

static weft_status no_memory(const char *name, weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "%s: no memory for its documents", name);
}

/* Takes doc, also on failure. */
static weft_status add(const char *name, weft__eval_task *t, weft__json *doc, int ok, weft_error *err)
{
    if (!doc || !ok || !weft__grow(&t->docs.items, &t->docs.capacity, t->docs.n + 1, sizeof *t->docs.items)) {
        weft__json_free(&doc);
        return no_memory(name, err);
    }
    t->docs.items[t->docs.n++] = doc;
    return WEFT_OK;
}

static weft_status fields(weft__eval_task *t, const char *text, const char *target, const char *choice, weft_error *err)
{
    weft_status st = text ? weft__eval_field_set(&t->text, text, err) : WEFT_OK;
    if (!st && target) st = weft__eval_field_set(&t->target, target, err);
    if (!st && choice) st = weft__eval_field_set(&t->choice, choice, err);
    return st;
}

static weft_status one_metric(weft__eval_task *t, const char *name, const char *shown, weft_error *err)
{
    t->metrics = weft__eval_more(&t->arena, NULL, 0, sizeof *t->metrics);
    if (!t->metrics) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a task");
    weft__eval_metric_named(name, t->output, &t->metrics[t->n_metrics++]);
    strcpy(t->metrics[0].name, shown);
    return WEFT_OK;
}

/* ---- plain records ---- */

/* The first of these that the document has. */
static const char *first_key_of(const weft__json *doc, const char *const *keys)
{
    for (; *keys; keys++)
        if (weft__json_get(doc, *keys)) return *keys;
    return NULL;
}

static weft_status strict_and_flexible(weft__eval_task *t, weft_error *err)
{
    static const weft__eval_step_kind kinds[] = {WEFT__EVAL_STRIP, WEFT__EVAL_FLEXIBLE};
    static const char *const names[] = {"strict", "flexible"};
    t->filters = weft__arena_array(&t->arena, 2, sizeof *t->filters);
    for (size_t i = 0; i < 2 && t->filters; i++) {
        weft__eval_step *steps = weft__arena_array(&t->arena, 2, sizeof *steps);
        if (!steps) break;
        memset(steps, 0, 2 * sizeof *steps);
        steps[0].kind = kinds[i];
        steps[1].kind = WEFT__EVAL_TAKE_FIRST;
        t->filters[t->n_filters++] = (weft__eval_filter){names[i], steps, 2};
    }
    return t->n_filters == 2 ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no memory for a task");
}

static weft_status plain(const char *name, const char *text, size_t n, weft__eval_task *t, weft_error *err)
{
    static const char *const prompts[] = {"prompt", "question", "query", "input", "context", NULL};
    static const char *const answers[] = {"answer", "target", "label", "gold", "output", "completion", NULL};
    static const char *const choices[] = {"choices", "endings", "options", NULL};
    weft_status st = weft__eval_docs_parse(name, text, n, &t->docs, err);
    if (st) return st;
    const weft__json *doc = t->docs.items[0];
    const char *prompt = first_key_of(doc, prompts), *answer = first_key_of(doc, answers),
               *choice = first_key_of(doc, choices);
    if (prompt && answer && choice) {
        t->output = WEFT__EVAL_CHOICE;
        return fields(t, prompt, answer, choice, err);
    }
    if (prompt && answer) {
        static const char *const until[] = {"\n\n"};
        t->generation.until = until;
        t->generation.n_until = 1;
        st = fields(t, prompt, answer, NULL, err);
        return st ? st : strict_and_flexible(t, err);
    }
    if (weft__json_get(doc, "text")) {
        t->output = WEFT__EVAL_ROLLING;
        return fields(t, NULL, "text", NULL, err);
    }
    return weft_fail(err, WEFT_FORMAT,
                     "%s: its first record has neither prompt and answer, nor prompt, choices and answer, nor text; "
                     "other names need a task file (YAML)",
                     name);
}

/* ---- llama-perplexity ---- */

/* The next line, without its end; 0: there is none. */
static int next_line(const char *text, size_t n, size_t *at, const char **line, size_t *n_line)
{
    if (*at >= n) return 0;
    const char *stop = memchr(text + *at, '\n', n - *at);
    const size_t end = stop ? (size_t)(stop - text) : n;
    *line = text + *at;
    *n_line = end - *at;
    if (*n_line && (*line)[*n_line - 1] == '\r') --*n_line;
    *at = end + 1;
    return 1;
}

/* A label of one digit below `most`; -1. */
static int label_of(const char *s, size_t n, int least, int most)
{
    while (n && (*s == ' ' || *s == '\t')) s++, n--;
    while (n && (s[n - 1] == ' ' || s[n - 1] == '\t')) n--;
    return n == 1 && *s >= '0' + least && *s <= '0' + most ? *s - '0' - least : -1;
}

static weft_status choices_of_lines(const char *name, weft__eval_task *t, weft_error *err)
{
    t->output = WEFT__EVAL_CHOICE;
    t->span = WEFT__EVAL_COMMON;
    weft_status st = fields(t, "context", "label", "choices", err);
    if (!st) st = one_metric(t, "acc", "acc_norm", err);
    return st || t->docs.n ? st : weft_fail(err, WEFT_FORMAT, "%s: no tasks in it", name);
}

/* Six lines each: context, number of the right ending, four endings. */
static weft_status hellaswag(const char *name, const char *text, size_t n, weft__eval_task *t, weft_error *err)
{
    const char *line[6];
    size_t n_line[6], at = 0, number = 0;
    for (weft_status st = WEFT_OK; !st;) {
        int k = 0;
        while (k < 6 && next_line(text, n, &at, &line[k], &n_line[k])) k++;
        if (!k || (k == 1 && !n_line[0])) break;
        const int label = k == 6 ? label_of(line[1], n_line[1], 0, 3) : -1;
        if (label < 0)
            return weft_fail(err, WEFT_FORMAT, "%s:%zu: a task is six lines: context, 0 to 3, four endings", name,
                             number * 6 + 1);
        number++;
        weft__json *doc = weft__json_new_object(), *endings = weft__json_new_array();
        int ok = weft__json_set(doc, "context", weft__json_new_string(line[0], n_line[0]));
        for (int i = 2; i < 6; i++) ok &= weft__json_append(endings, weft__json_new_string(line[i], n_line[i]));
        ok &= weft__json_set(doc, "choices", endings) & weft__json_set(doc, "label", weft__json_new_int(label));
        if ((st = add(name, t, doc, ok, err))) return st;
    }
    return choices_of_lines(name, t, err);
}

/* The next field of a line of CSV, quotes undone; 0: there is none. */
static int csv_field(const char *s, size_t n, size_t *at, weft__strbuf *out)
{
    if (*at > n) return 0;
    const int quoted = *at < n && s[*at] == '"';
    out->len = 0;
    for (*at += (size_t)quoted; *at < n; ++*at) {
        if (quoted && s[*at] == '"' && (*at + 1 >= n || s[*at + 1] != '"')) break;
        if (!quoted && s[*at] == ',') break;
        *at += quoted && s[*at] == '"';
        weft__strbuf_putc(out, s[*at]);
    }
    *at += (size_t)quoted;
    const int ends_well = *at >= n || s[*at] == ',';
    ++*at;
    weft__strbuf_put(out, "", 0);
    return ends_well;
}

/* A line of index, sentence with _, two choices, the right one (1 or 2). */
static weft_status one_winogrande(const char *where, const char *line, size_t n, weft__eval_task *t, weft_error *err)
{
    weft__strbuf f[5] = {{0}};
    size_t at = 0;
    int ok = 1, label = -1;
    for (int i = 0; i < 5 && ok; i++) ok = csv_field(line, n, &at, &f[i]) && !f[i].failed;
    const char *blank = ok && f[1].data ? memchr(f[1].data, '_', f[1].len) : NULL;
    if (ok) label = label_of(f[4].data ? f[4].data : "", f[4].len, 1, 2);
    weft_status st = WEFT_OK;
    if (!ok || !blank || label < 0) {
        st = weft_fail(err, WEFT_FORMAT, "%s: must be index,sentence with a _,choice,choice,1 or 2", where);
    } else {
        weft__json *doc = weft__json_new_object(), *choices = weft__json_new_array();
        const size_t before = (size_t)(blank - f[1].data);
        for (int i = 2; i < 4; i++)
            ok &= weft__json_append(choices, weft__json_new_string(f[i].data ? f[i].data : "", f[i].len));
        ok &= weft__json_set(doc, "context", weft__json_new_string(f[1].data, before));
        ok &= weft__json_set(doc, "rest", weft__json_new_string(blank + 1, f[1].len - before - 1));
        ok &= weft__json_set(doc, "choices", choices) & weft__json_set(doc, "label", weft__json_new_int(label));
        st = add(where, t, doc, ok, err);
    }
    for (int i = 0; i < 5; i++) weft__strbuf_free(&f[i]);
    return st;
}

static weft_status winogrande(const char *name, const char *text, size_t n, weft__eval_task *t, weft_error *err)
{
    const char *line;
    size_t n_line, at = 0, number = 0;
    char where[400];
    weft_status st = WEFT_OK;
    while (!st && next_line(text, n, &at, &line, &n_line)) {
        number++;
        snprintf(where, sizeof where, "%.300s:%zu", name, number);
        if (n_line) st = one_winogrande(where, line, n_line, t, err);
    }
    if (!st) st = choices_of_lines(name, t, err);
    t->span = WEFT__EVAL_BLANK;
    if (!st) strcpy(t->metrics[0].name, "acc");
    return st;
}

/* ---- multiple choice: a count, that many positions, then tasks of little-endian numbers and counted texts ---- */

typedef struct binary {
    const unsigned char *p;
    size_t n, at;
} binary;

static int take_u32(binary *b, uint32_t *v)
{
    if (b->n - b->at < 4) return 0;
    const unsigned char *p = b->p + b->at;
    *v = p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    b->at += 4;
    return 1;
}

static int take_text(binary *b, const char **s, size_t *n)
{
    uint32_t length;
    if (!take_u32(b, &length) || length > b->n - b->at) return 0;
    *s = (const char *)b->p + b->at;
    *n = length;
    b->at += length;
    return 1;
}

/* Answers with their labels; *right: the one that is labelled. Into `answers` where that is not NULL. 0: malformed. */
static int take_answers(binary *b, weft__json *answers, int *right, int *ok)
{
    uint32_t n, label;
    const char *s;
    size_t n_s;
    if (!take_u32(b, &n) || n > 100) return 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!take_text(b, &s, &n_s)) return 0;
        if (answers) *ok &= weft__json_append(answers, weft__json_new_string(s, n_s));
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!take_u32(b, &label)) return 0;
        if (label && *right < 0) *right = (int)i;
    }
    return 1;
}

static weft_status multiple_choice(const char *name, const char *text, size_t n, weft__eval_task *t, weft_error *err)
{
    binary b = {(const unsigned char *)text, n, 0};
    uint32_t n_tasks = 0;
    weft_status st = WEFT_OK;
    if (!take_u32(&b, &n_tasks) || !n_tasks || n_tasks > (n - b.at) / 4)
        return weft_fail(err, WEFT_FORMAT, "%s: no tasks as llama-perplexity --multiple-choice reads them", name);
    b.at += (size_t)n_tasks * 4;
    for (uint32_t i = 0; i < n_tasks && !st; i++) {
        const char *question;
        size_t n_question;
        int right = -1, other = -1, ok = 1;
        weft__json *doc = weft__json_new_object(), *answers = weft__json_new_array();
        int whole = take_text(&b, &question, &n_question) && take_answers(&b, answers, &right, &ok) &&
                    take_answers(&b, NULL, &other, &ok);
        if (whole) ok &= weft__json_set(doc, "context", weft__json_new_string(question, n_question));
        ok &= weft__json_set(doc, "choices", answers) & weft__json_set(doc, "label", weft__json_new_int(right));
        if (!whole || right < 0) {
            weft__json_free(&doc);
            return weft_fail(err, WEFT_FORMAT, "%s: task %u of %u is cut off, malformed, or has no right answer", name,
                             i + 1, n_tasks);
        }
        st = add(name, t, doc, ok, err);
    }
    return st ? st : choices_of_lines(name, t, err);
}

/* ---- answers that others judge ---- */

static weft_status needs(const char *name, const weft__eval_task *t, const char *key, weft_error *err)
{
    for (size_t i = 0; i < t->docs.n; i++)
        if (weft__json_kind_of(weft__json_get(t->docs.items[i], key)) != WEFT__JSON_STRING)
            return weft_fail(err, WEFT_FORMAT, "%s: record %zu has no text '%s'", name, i + 1, key);
    return WEFT_OK;
}

static weft_status humaneval(const char *name, const char *text, size_t n, weft__eval_task *t, weft_error *err)
{
    static const char *const until[] = {"\nclass", "\ndef", "\n#", "\nif", "\nprint", "\n@", "\n```"};
    weft_status st = weft__eval_docs_parse(name, text, n, &t->docs, err);
    if (!st) st = needs(name, t, "task_id", err);
    if (!st) st = needs(name, t, "prompt", err);
    t->predictions = WEFT__EVAL_COMPLETIONS;
    t->generation.until = until;
    t->generation.n_until = sizeof until / sizeof *until;
    t->generation.max_tokens = 512;
    return st ? st : fields(t, "prompt", NULL, NULL, err);
}

static weft_status swebench(const char *name, const char *text, size_t n, weft__eval_task *t, weft_error *err)
{
    weft_status st = weft__eval_docs_parse(name, text, n, &t->docs, err);
    if (!st) st = needs(name, t, "instance_id", err);
    const char *key = !st && weft__json_get(t->docs.items[0], "text") ? "text" : "problem_statement";
    if (!st) st = needs(name, t, key, err);
    t->predictions = WEFT__EVAL_PATCHES;
    t->generation.max_tokens = 2048;
    return st ? st : fields(t, key, NULL, NULL, err);
}

static const struct form {
    const char *name;
    form_fn *read;
} FORMS[] = {
    {"jsonl", plain},           {"hellaswag", hellaswag},
    {"winogrande", winogrande}, {"multiple-choice", multiple_choice},
    {"humaneval", humaneval},   {"swebench", swebench},
};

static const struct form *find(const char *form)
{
    for (size_t i = 0; i < sizeof FORMS / sizeof *FORMS; i++)
        if (!strcmp(FORMS[i].name, form)) return &FORMS[i];
    return NULL;
}

int weft__eval_form_known(const char *form)
{
    return find(form) != NULL;
}

weft_status weft__eval_form_parse(const char *form, const char *name, const char *text, size_t n, weft__eval_task *t,
                                  weft_error *err)
{
    size_t n_name;
    const char *last = weft__path_last(name, &n_name);
    t->name = weft__arena_string(&t->arena, last, n_name);
    return t->name ? find(form)->read(name, text, n, t, err) : weft_fail(err, WEFT_NO_MEMORY, "no memory for a task");
}
