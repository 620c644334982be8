// SPDX-License-Identifier: Apache-2.0
/* calls.c: the steps of a format's calls (text/answer/format.h) as rules (calls.h). Each form of a call becomes a
 * choice between the functions, each with its own arguments. Belongs to one thread. */
#include "text/grammar/calls.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "text/answer/values.h"
#include "text/grammar/build.h"
#include "text/grammar/calls_parts.h"
#include "text/grammar/parts.h"
#include "text/tokenizer/parts.h"

enum { MAX_FORMS = 8, MAX_STEPS = 40, TELLING = 5 /* bytes of a mark that tell a call from a text */ };

typedef struct calls_maker {
    weft__gram *g;
    const weft__gram_calls_spec *spec;
    const weft__answer_format *format;
    int32_t *ways[MAX_FORMS]; /* [n_tools] of each form its calls, by function */
    size_t n_ways;
    weft__gram_schema_budget budget; /* of all functions */
    const char *mark;                /* ends values that are plain text, or NULL */
    int ended;                       /* a call's last mark ends the answer: nothing follows */
} calls_maker;

/* ---- functions ---- */

/* 0 after a failure. */
static int read_function(calls_maker *m, size_t i, weft__gram_function *f, int *strict)
{
    const weft__json *tool = weft__json_at(m->spec->tools, i), *function = weft__json_get(tool, "function");
    if (!function) function = tool;
    *f = (weft__gram_function){.g = m->g, .format = m->format, .number = i};
    *strict = 0;
    weft__json_bool(weft__json_get(function, "strict"), strict);
    if (weft__json_string(weft__json_get(function, "name"), &f->name, &f->n_name) && f->n_name) {
        f->parameters = weft__json_get(function, "parameters");
        if (weft__json_is_null(f->parameters)) f->parameters = NULL;
        return 1;
    }
    weft__gram_fail(m->g, WEFT_ARGUMENT, "tools[%zu]: must be a function with a 'name'", i);
    return 0;
}

/* A function's schema, as one of an object. */
static int open_schema(calls_maker *m, weft__gram_function *f, int strict)
{
    const weft__json *given = f->parameters;
    const unsigned object = 1u << WEFT__JSON_OBJECT;
    if (!(f->schema = weft__gram_schema_open(m->g, given, 1, m->mark, &m->budget))) return 0;
    if (m->spec->lenient && !strict) {
        f->parameters = NULL;
        return 1;
    }
    if (given && (weft__json_kind_of(given) != WEFT__JSON_OBJECT || !(weft__answer_types(given) & object))) {
        weft__gram_schema_fail(f->schema, WEFT_ARGUMENT, "#", NULL, "must be the schema of an object");
        return 0;
    }
    if (given && (weft__json_is(weft__json_get(given, "type"), "object") || weft__json_get(given, "$ref"))) return 1;
    weft__json *copy = given ? weft__json_copy(given) : weft__json_new_object();
    int ok = copy && weft__json_set(copy, "type", weft__json_new_string("object", 6));
    if (ok && !given) ok = weft__json_set(copy, "additionalProperties", weft__json_new_bool(0));
    if (!ok) weft__json_free(&copy);
    f->parameters = weft__gram_schema_keep(f->schema, copy);
    return f->parameters != NULL;
}

/* ---- steps ---- */

/* The text of a name within JSON. */
static int32_t json_name(weft__gram *g, const char *s, size_t n, const char *behind)
{
    weft__strbuf text = {0};
    weft__json_write_string(&text, s, n);
    weft__strbuf_puts(&text, behind);
    if (text.failed) weft__gram_fail(g, WEFT_NO_MEMORY, "no memory for a grammar");
    int32_t node = weft__gram_text(g, text.data ? text.data : "", text.len);
    weft__strbuf_free(&text);
    return node;
}

static int32_t json_arguments(weft__gram_function *f)
{
    weft__gram *g = f->g;
    return f->parameters ? weft__gram_schema_use(f->schema, f->parameters, "#", NULL, NULL)
                         : GRAM_REF(GRAM_RULE("object"));
}

static int32_t blank(weft__gram *g)
{
    return GRAM_REF(GRAM_RULE("ws"));
}

static int32_t gap(weft__gram *g)
{
    return GRAM_REF(GRAM_RULE("gap"));
}

/* "id": "...", where calls may have one. */
static int32_t json_id(weft__gram *g, const char *key)
{
    int32_t name = json_name(g, key, strlen(key), ":"), space = gap(g), open = GRAM_TEXT("\"");
    int32_t id = GRAM_REPEAT(1, 40, GRAM_CLASS({'0', '9'}, {'A', 'Z'}, {'a', 'z'}, {'_', '_'}, {'-', '-'}));
    return GRAM_OPTIONAL(GRAM_SEQ(name, space, open, id, GRAM_TEXT("\","), blank(g)));
}

/* A call that is a JSON object, up to the function's name. */
static int32_t json_call_begin(weft__gram *g, const weft__answer_keys *keys)
{
    int32_t open = GRAM_TEXT("{"), space = blank(g);
    if (!keys->name) return GRAM_SEQ(open, space);
    int32_t id = keys->id ? json_id(g, keys->id) : GRAM_TEXT("");
    return GRAM_SEQ(open, space, id, json_name(g, keys->name, strlen(keys->name), ":"), gap(g));
}

static int32_t json_call(weft__gram_function *f)
{
    weft__gram *g = f->g;
    const weft__answer_keys *keys = &f->format->keys;
    int32_t begin = json_call_begin(g, keys), name = json_name(g, f->name, f->n_name, keys->name ? "," : ":");
    int32_t space = keys->name ? blank(g) : gap(g), key = GRAM_TEXT("");
    if (keys->name) key = GRAM_SEQ(json_name(g, keys->arguments, strlen(keys->arguments), ":"), gap(g));
    int32_t arguments = json_arguments(f), end = blank(g);
    return GRAM_SEQ(begin, name, space, key, arguments, end, GRAM_TEXT("}"));
}

/* A mark; the last one of a call without the token that ends the answer. */
static int32_t mark_node(calls_maker *m, const char *text, int last)
{
    size_t n = strlen(text), length;
    for (size_t at = 0; last && at < n; at++) {
        int32_t id = weft__gram_control_at(m->g, text + at, n - at, &length);
        if (id < 0 || at + length < n || !weft__tok_is_end(m->g->tok, id)) continue;
        n = at;
        m->ended = 1;
    }
    return weft__gram_marker(m->g, text, n);
}

static int is_run(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] <= ' ' || strchr("\"'<>()[]{},;=|", s[i])) return 0;
    return n <= 256;
}

static int32_t run_node(weft__gram_function *f, const weft__answer_step *s)
{
    weft__gram *g = f->g;
    const weft__answer_op op = s->op;
    int32_t name = -1, named = op == WEFT__ANSWER_SKIP && s->text && !strcmp(s->text, "%");
    if (op == WEFT__ANSWER_SKIP && !s->text) return GRAM_DIGITS(1, 3);
    if (op == WEFT__ANSWER_SKIP && !named) return weft__gram_text(g, s->text, strlen(s->text));
    if (op != WEFT__ANSWER_ID) {
        if (!is_run(f->name, f->n_name))
            weft__gram_fail(g, WEFT_UNSUPPORTED, "this model's calls cannot have a function of that name");
        name = weft__gram_text(g, f->name, f->n_name);
    }
    if (op == WEFT__ANSWER_NAME || named) return name;
    if (op == WEFT__ANSWER_ID) return GRAM_REPEAT(1, 32, GRAM_CLASS({'0', '9'}, {'A', 'Z'}, {'a', 'z'}, {'_', '_'}));
    int32_t before = GRAM_TEXT("functions."), colon = GRAM_TEXT(":");
    return GRAM_SEQ(before, name, colon, GRAM_DIGITS(1, 3));
}

static int32_t step_node(calls_maker *m, weft__gram_function *f, const weft__answer_step *s, const char *space,
                         int last)
{
    switch (s->op) {
    case WEFT__ANSWER_MARK: return mark_node(m, s->text, last);
    case WEFT__ANSWER_MAYBE:
    case WEFT__ANSWER_SPACE: return weft__gram_marker(m->g, s->text, strlen(s->text));
    case WEFT__ANSWER_NAME:
    case WEFT__ANSWER_ID:
    case WEFT__ANSWER_NAMED_ID:
    case WEFT__ANSWER_SKIP: return run_node(f, s);
    case WEFT__ANSWER_ARGUMENTS: return json_arguments(f);
    case WEFT__ANSWER_CALL: return json_call(f);
    default: return weft__gram_members(f, s->op, space);
    }
}

/* A list of steps; f NULL: of those around calls. */
static int32_t steps_node(calls_maker *m, weft__gram_function *f, const weft__answer_step *steps, int last)
{
    int32_t items[MAX_STEPS];
    const char *space = "";
    size_t n = 0;
    for (const weft__answer_step *s = steps; s && s->op && n < MAX_STEPS; s++) {
        items[n++] = step_node(m, f, s, space, last && !s[1].op);
        space = s->op == WEFT__ANSWER_SPACE ? s->text : "";
    }
    return weft__gram_seq(m->g, items, n);
}

/* ---- forms ---- */

/* Adds the function's call in each form. */
static void add_function(calls_maker *m, weft__gram_function *f)
{
    for (size_t k = 0; k < m->format->n_forms; k++) {
        const weft__answer_form *form = &m->format->forms[k];
        m->ways[k][m->n_ways] = steps_node(m, f, form->call, !form->open);
    }
    m->n_ways++;
}

static void add_functions(calls_maker *m)
{
    size_t n = weft__json_size(m->spec->tools);
    if (weft__json_kind_of(m->spec->tools) != WEFT__JSON_ARRAY || !n)
        weft__gram_fail(m->g, WEFT_ARGUMENT, "tools: must be an array with at least one function");
    if (n > WEFT__GRAM_MAX_TOOLS) weft__gram_fail(m->g, WEFT_LIMIT, "tools: at most %d", WEFT__GRAM_MAX_TOOLS);
    for (size_t i = 0; i < n && !weft__gram_failed(m->g); i++) {
        weft__gram_function f;
        char place[64];
        int strict;
        if (!read_function(m, i, &f, &strict)) return;
        snprintf(place, sizeof place, "tools[%zu].function.parameters", i);
        if (m->spec->name && (strlen(m->spec->name) != f.n_name || memcmp(m->spec->name, f.name, f.n_name))) continue;
        weft__gram_origin(m->g, place);
        if (open_schema(m, &f, strict)) add_function(m, &f);
        weft__gram_schema_close(&f.schema);
        weft__gram_origin(m->g, NULL);
        weft__gram_within(m->g, "tools", place + strlen("tools"));
    }
    if (!m->n_ways && !weft__gram_failed(m->g))
        weft__gram_fail(m->g, WEFT_ARGUMENT, "tools: there is no function '%.64s'", m->spec->name);
}

/* All calls of a form: within a section as many as there may be, otherwise one. */
static int32_t form_node(calls_maker *m, size_t k)
{
    weft__gram *g = m->g;
    const weft__answer_form *form = &m->format->forms[k];
    char name[32];
    snprintf(name, sizeof name, "call %zu", k);
    int32_t rule = weft__gram_rule(g, name, strlen(name));
    weft__gram_define(g, rule, weft__gram_alt(g, m->ways[k], m->n_ways));
    if (!form->open) return GRAM_REF(rule);
    int32_t open = steps_node(m, NULL, form->open, 0), first = GRAM_REF(rule), more = GRAM_TEXT("");
    if (m->spec->parallel) {
        int32_t between = steps_node(m, NULL, form->between, 0);
        more = GRAM_ANY_NUMBER(GRAM_SEQ(between, GRAM_REF(rule)));
    }
    return GRAM_SEQ(open, first, more, steps_node(m, NULL, form->close, 1));
}

static int has_mark(const weft__answer_form *form)
{
    return (form->open ? form->open : form->call)->op == WEFT__ANSWER_MARK;
}

static int32_t all_forms(calls_maker *m)
{
    weft__gram *g = m->g;
    int32_t firsts[MAX_FORMS], others[MAX_FORMS];
    size_t n_others = 0;
    for (size_t k = 0; k < m->format->n_forms; k++) firsts[k] = form_node(m, k);
    int32_t first = weft__gram_alt(g, firsts, m->format->n_forms);
    if (!m->spec->parallel || m->ended) return first;
    for (size_t k = 0; k < m->format->n_forms && !weft__gram_failed(g); k++) {
        char name[32];
        const weft__answer_form *form = &m->format->forms[k];
        if (form->open || form->first || !has_mark(form)) continue;
        snprintf(name, sizeof name, "call %zu", k);
        others[n_others++] = GRAM_REF(weft__gram_rule(g, name, strlen(name)));
    }
    if (!n_others) return first;
    int32_t space = GRAM_OPTIONAL(GRAM_TEXT("\n"));
    return GRAM_SEQ(first, GRAM_ANY_NUMBER(GRAM_SEQ(space, weft__gram_alt(g, others, n_others))));
}

/* How strings are spelled so that the parser reads the same: no marker begins in one, and nothing that Python escapes
 * otherwise. */
static void adapt_strings(calls_maker *m)
{
    weft__gram *g = m->g;
    const char *mark = m->format->tag;
    uint32_t stop = 0;
    int bad = 0, loose = 0;
    for (const weft__answer_step *s = m->format->parameter; s && s->op; s++)
        if (s->op == WEFT__ANSWER_VALUE) mark = s[1].text;
    for (size_t k = 0; k < m->format->n_forms; k++)
        for (const weft__answer_step *s = m->format->forms[k].call; s->op; s++)
            loose |= s->op == WEFT__ANSWER_KEYWORDS || s->op == WEFT__ANSWER_PAIRS;
    m->mark = mark;
    if (mark) {
        weft__utf8_decode(mark, strlen(mark), &stop, &bad);
        weft__gram_exclude(g, GRAM_RULE("plain"), stop);
    }
    if (loose) weft__gram_exclude(g, GRAM_RULE("escaped"), '/');
}

int32_t weft__gram_calls(weft__gram *g, const weft__gram_calls_spec *spec)
{
    calls_maker m = {.g = g, .spec = spec, .format = spec->style.format, .budget = WEFT__GRAM_SCHEMA_BUDGET};
    int32_t root = GRAM_RULE("root"), body = -1;
    size_t n = weft__json_size(spec->tools);
    weft__gram_json_parts(g);
    adapt_strings(&m);
    for (size_t k = 0; k < m.format->n_forms && k < MAX_FORMS; k++)
        if (!(m.ways[k] = weft__alloc_array(n + 1, sizeof *m.ways[k])))
            weft__gram_fail(g, WEFT_NO_MEMORY, "no memory for a grammar");
    if (m.format->n_forms > MAX_FORMS) weft__gram_fail(g, WEFT_INTERNAL, "grammar: a format of too many forms");
    if (!weft__gram_failed(g)) add_functions(&m);
    if (!weft__gram_failed(g)) body = all_forms(&m);
    if (!weft__gram_failed(g) && spec->form) body = GRAM_ALT(body, weft__gram_led(g, &spec->style, spec->form - 1));
    if (!weft__gram_failed(g) && spec->thinking && spec->style.reasoning) {
        int32_t thoughts = weft__gram_thoughts(g, &spec->style, spec->thinking);
        body = GRAM_SEQ(thoughts, body);
    }
    weft__gram_define(g, root, body);
    for (size_t k = 0; k < MAX_FORMS; k++) weft__free(m.ways[k]);
    return root;
}

/* ---- beginnings ---- */

static int32_t names_node(weft__gram *g, const weft__json *tools)
{
    size_t n = 0;
    int32_t *nodes = weft__alloc_array(weft__json_size(tools) + 1, sizeof *nodes), node = -1;
    for (size_t i = 0; nodes && i < weft__json_size(tools); i++) {
        const weft__json *tool = weft__json_at(tools, i), *function = weft__json_get(tool, "function");
        const char *s;
        size_t length;
        if (weft__json_string(weft__json_get(function ? function : tool, "name"), &s, &length))
            nodes[n++] = weft__gram_text(g, s, length);
    }
    if (nodes) node = n ? weft__gram_alt(g, nodes, n) : GRAM_TEXT("\n");
    else weft__gram_fail(g, WEFT_NO_MEMORY, "no memory for a grammar");
    weft__free(nodes);
    return node;
}

static int is_strict(const weft__json *tool)
{
    const weft__json *function = weft__json_get(tool, "function");
    int strict = 0;
    return weft__json_bool(weft__json_get(function ? function : tool, "strict"), &strict) && strict;
}

/* Whether a form tells a call from a text: JSON alone may be either, and where no function is strict it is left so. */
static int tells(const weft__gram_calls_spec *spec, const weft__answer_form *form)
{
    const weft__answer_step *step = form->open ? form->open : form->call;
    if (!form->first || (step->op == WEFT__ANSWER_MARK && !strchr("[{", *step->text))) return 1;
    for (size_t i = 0; i < weft__json_size(spec->tools); i++)
        if (is_strict(weft__json_at(spec->tools, i))) return 1;
    return 0;
}

int weft__gram_calls_tell(const weft__gram_calls_spec *spec)
{
    const weft__answer_format *f = spec->style.format;
    for (size_t k = 0; k < f->n_forms; k++)
        if (tells(spec, &f->forms[k])) return 1;
    return 0;
}

/* The steps of a form up to what no other text would have. */
static int32_t beginning(weft__gram *g, const weft__gram_calls_spec *spec, const weft__answer_form *form)
{
    const weft__answer_step *lists[] = {form->open, form->call};
    int32_t items[MAX_STEPS];
    size_t n = 0;
    for (size_t i = 0; i < 2; i++) {
        for (const weft__answer_step *s = lists[i]; s && s->op && n < MAX_STEPS - 2; s++) {
            if (s->op == WEFT__ANSWER_CALL) {
                items[n++] = json_call_begin(g, &spec->style.format->keys);
                return weft__gram_seq(g, items, n);
            }
            int named = s->op == WEFT__ANSWER_NAME || (s->op == WEFT__ANSWER_SKIP && s->text && !strcmp(s->text, "%"));
            items[n++] = named     ? names_node(g, spec->tools)
                         : s->text ? weft__gram_marker(g, s->text, strlen(s->text))
                                   : GRAM_TEXT("");
            if (s->text && strlen(s->text) >= TELLING) return weft__gram_seq(g, items, n);
        }
    }
    return weft__gram_seq(g, items, n);
}

int32_t weft__gram_calls_begin(weft__gram *g, const weft__gram_calls_spec *spec)
{
    const weft__answer_format *f = spec->style.format;
    int32_t root = GRAM_RULE("beginning"), items[MAX_FORMS];
    size_t n = 0;
    weft__gram_json_parts(g);
    for (size_t k = 0; k < f->n_forms && k < MAX_FORMS; k++)
        if (tells(spec, &f->forms[k])) items[n++] = beginning(g, spec, &f->forms[k]);
    weft__gram_define(g, root, weft__gram_alt(g, items, n));
    return root;
}
