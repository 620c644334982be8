// SPDX-License-Identifier: Apache-2.0
/* schema.c: JSON Schema (a subset of draft 2020-12) to rules. Each schema becomes a rule of its own, named by its place
 * and compiled from a list of work: so that schemas nest and recurse without the machine's stack. Equal schemas share a
 * rule. Invariant: what the rules allow is valid; what cannot be held so is refused by its place. Where a keyword names
 * several types, each type is a language of its own. Belongs to one thread. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "text/grammar/build.h"
#include "text/grammar/parts.h"
#include "text/grammar/schema_parts.h"

enum {
    MAX_PLACE = 4096, /* bytes of a JSON pointer */
    MAX_CHOICES = 250,
    MAX_NAMED = 200,       /* bytes of it in the name of a rule */
    MAX_CONTENT = 1 << 23, /* bytes of schemas that are compared or put together */
};

weft__gram *weft__gram_schema_rules(const weft__gram_schema *c)
{
    return c->g;
}

int weft__gram_schema_failed(const weft__gram_schema *c)
{
    return weft__gram_failed(c->g) != WEFT_OK;
}

static int32_t schema_no_memory(weft__gram_schema *c)
{
    weft__gram_fail(c->g, WEFT_NO_MEMORY, "no memory for a grammar");
    return -1;
}

/* ---- types and counts ---- */

const char *weft__gram_schema_type_name(unsigned bit)
{
    static const char *const names[] = {"null", "boolean", "integer", "number", "string", "array", "object"};
    return names[bit];
}

static unsigned type_of_name(const weft__json *v)
{
    for (unsigned i = 0; i < 7; i++)
        if (weft__json_is(v, weft__gram_schema_type_name(i))) return 1u << i;
    return 0;
}

unsigned weft__gram_schema_own_types(weft__gram_schema *c, const weft__json *schema, const char *at)
{
    const weft__json *type = weft__json_get(schema, "type");
    unsigned types = type_of_name(type);
    if (!type) return WEFT__GRAM_ALL_TYPES;
    for (size_t i = 0; i < weft__json_size(type); i++) {
        unsigned one = type_of_name(weft__json_at(type, i));
        types |= one;
        if (!one) types = 0;
        if (!one) break;
    }
    if (!types)
        weft__gram_schema_fail(c, WEFT_ARGUMENT, at, "type",
                               "must be null, boolean, integer, number, string, array, object, or a list of these");
    return types;
}

int weft__gram_schema_is_nullable(const weft__json *schema)
{
    int yes = 0;
    return weft__json_bool(weft__json_get(schema, "nullable"), &yes) && yes;
}

unsigned weft__gram_schema_types(weft__gram_schema *c, const weft__json *schema, const char *at)
{
    unsigned types = weft__gram_schema_own_types(c, schema, at);
    return types && weft__gram_schema_is_nullable(schema) ? types | WEFT__GRAM_NULL_TYPE : types;
}

int weft__gram_schema_count(weft__gram_schema *c, const weft__json *schema, const char *at, const char *key,
                            uint32_t *out)
{
    const weft__json *v = weft__json_get(schema, key);
    int64_t n;
    if (!v) return 0;
    if (!weft__json_int(v, &n) || n < 0) weft__gram_schema_fail(c, WEFT_ARGUMENT, at, key, "must be a count");
    else if (n > WEFT__GRAM_MAX_STATES)
        weft__gram_schema_fail(c, WEFT_LIMIT, at, key, "at most %d", WEFT__GRAM_MAX_STATES);
    else *out = (uint32_t)n;
    return 1;
}

void weft__gram_schema_account(weft__gram_schema *c, const weft__json *schema, const char *at)
{
    weft__strbuf text = {0};
    weft__json_write(&text, schema, WEFT__JSON_COMPACT);
    if (text.failed) weft__gram_fail(c->g, WEFT_NO_MEMORY, "no memory for a grammar");
    else if ((c->n_bytes += text.len + 64) > MAX_CONTENT)
        weft__gram_schema_fail(c, WEFT_LIMIT, at, NULL, "the schema is too large");
    weft__strbuf_free(&text);
}

int weft__gram_schema_step(weft__gram_schema *c, const char *at)
{
    return weft__gram_schema_steps(c, 1, at);
}

int weft__gram_schema_steps(weft__gram_schema *c, size_t n, const char *at)
{
    if (c->budget->n_steps >= n) c->budget->n_steps -= n;
    else weft__gram_schema_fail(c, WEFT_LIMIT, at, NULL, "its parts take too many steps to compare");
    return !weft__gram_schema_failed(c);
}

const weft__json *weft__gram_schema_keep(weft__gram_schema *c, weft__json *schema)
{
    if (!schema || weft__gram_schema_failed(c) ||
        !weft__grow(&c->owned, &c->owned_capacity, c->n_owned + 1, sizeof *c->owned)) {
        schema_no_memory(c); /* unless something failed before */
        weft__json_free(&schema);
        return NULL;
    }
    return c->owned[c->n_owned++] = schema;
}

/* ---- rules of schemas ---- */

/* What decides which values are valid: so that schemas which differ by their description have one rule. */
static void write_content(weft__strbuf *out, const weft__json *schema)
{
    weft__json_member m = {0};
    if (weft__json_kind_of(schema) != WEFT__JSON_OBJECT) {
        weft__json_write(out, schema, WEFT__JSON_COMPACT);
        return;
    }
    while (weft__json_next(schema, &m)) {
        if (weft__gram_schema_says_nothing(&m)) continue;
        weft__json_write_string(out, m.key, m.key_len);
        weft__json_write(out, m.value, WEFT__JSON_COMPACT);
    }
    weft__strbuf_putc(out, '}'); /* what no other kind of value looks like */
}

/* The rule of a schema: that of an equal one, or a new one with a task. */
static int32_t rule_of_schema(weft__gram_schema *c, const weft__json *schema, char *at)
{
    weft__strbuf text = {0};
    char name[MAX_NAMED + 32];
    if (!at) return schema_no_memory(c);
    write_content(&text, schema);
    if (text.failed || (c->n_bytes += text.len) > MAX_CONTENT) {
        int32_t none = text.failed ? schema_no_memory(c)
                                   : weft__gram_schema_fail(c, WEFT_LIMIT, at, NULL, "the schema is too large");
        weft__strbuf_free(&text);
        weft__free(at);
        return none;
    }
    int32_t known = weft__strings_find(&c->contents, text.data, text.len);
    if (known >= 0) {
        weft__strbuf_free(&text);
        weft__free(at);
        return c->rules[known];
    }
    size_t n = strlen(at);
    if (n <= MAX_NAMED) snprintf(name, sizeof name, "%s", at);
    else snprintf(name, sizeof name, "%.*s...%c%zu", MAX_NAMED, at, WEFT__GRAM_SAME_PLACE, c->n_rules);
    size_t known_rules = weft__gram_n_rules(c->g);
    int32_t rule = weft__gram_rule(c->g, name, strlen(name));
    if (rule >= 0 && weft__gram_n_rules(c->g) == known_rules) { /* of another schema, put together at the same place */
        snprintf(name + strlen(name), 24, "%c%zu", WEFT__GRAM_SAME_PLACE, known_rules);
        rule = weft__gram_rule(c->g, name, strlen(name));
    }
    int ok = rule >= 0 && weft__grow(&c->rules, &c->rules_capacity, c->n_rules + 1, sizeof *c->rules) &&
             weft__grow(&c->tasks, &c->tasks_capacity, c->n_tasks + 1, sizeof *c->tasks) &&
             weft__strings_add(&c->contents, text.data, text.len, 1);
    weft__strbuf_free(&text);
    if (!ok) {
        weft__free(at);
        return schema_no_memory(c);
    }
    c->rules[c->n_rules++] = rule;
    c->tasks[c->n_tasks++] = (weft__gram_schema_task){rule, schema, at};
    return rule;
}

int32_t weft__gram_schema_use(weft__gram_schema *c, const weft__json *schema, const char *at, const char *key,
                              const char *name)
{
    weft__gram *g = c->g;
    weft__strbuf place = {0};
    if (weft__gram_schema_failed(c)) return -1;
    weft__strbuf_puts(&place, at);
    if (key) weft__gram_schema_put_key(&place, key);
    if (name) weft__gram_schema_put_key(&place, name);
    if (place.failed || place.len > MAX_PLACE) {
        int failed = place.failed;
        weft__strbuf_free(&place);
        return failed ? schema_no_memory(c) : weft__gram_schema_fail(c, WEFT_LIMIT, at, key, "nested too deep");
    }
    weft__strbuf_putc(&place, 0);
    char *copy = place.failed ? NULL : weft__strdup(place.data);
    weft__strbuf_free(&place);
    int32_t rule = rule_of_schema(c, schema, copy);
    return rule < 0 ? -1 : GRAM_REF(rule);
}

/* ---- combinations ---- */

void weft__gram_schema_overlap(weft__gram_schema *c, const char *at, size_t a, size_t b)
{
    weft__gram_schema_fail(c, WEFT_UNSUPPORTED, at, "oneOf",
                           "alternatives %zu and %zu may both fit a value; write anyOf, or tell them "
                           "apart by type, pattern, bounds or a required constant",
                           a, b);
}

/* Whether none of the values that a schema names is one that what stands beside them allows. */
static int has_no_value(weft__gram_schema *c, const weft__json *schema, const char *at)
{
    const weft__json *list = weft__json_get(schema, "enum"), *one = list ? NULL : weft__json_get(schema, "const");
    size_t n = one ? 1 : weft__json_kind_of(list) == WEFT__JSON_ARRAY ? weft__json_size(list) : 0;
    for (size_t i = 0; i < n; i++)
        if (weft__gram_schema_allows(c, schema, one ? one : weft__json_at(list, i), at)) return 0;
    return n > 0;
}

/* anyOf or oneOf, with nothing beside it. */
static int32_t alternatives(weft__gram_schema *c, const weft__json *schema, const char *at, const char *key)
{
    const weft__json *list = weft__json_get(schema, key);
    size_t count = weft__json_size(list), n = 0;
    int32_t items[256];
    if (weft__json_kind_of(list) != WEFT__JSON_ARRAY || !count)
        return weft__gram_schema_fail(c, WEFT_ARGUMENT, at, key, "must be a list with at least one schema");
    if (count > MAX_CHOICES)
        return weft__gram_schema_fail(c, WEFT_LIMIT, at, key, "at most %d alternatives", MAX_CHOICES);
    if (!strcmp(key, "oneOf")) list = weft__gram_schema_exclusive(c, schema, at, NULL, 0);
    for (size_t i = 0; i < count && !weft__gram_schema_failed(c); i++) {
        char number[24];
        snprintf(number, sizeof number, "%zu", i);
        if (weft__gram_schema_is_false(weft__json_at(list, i)) || has_no_value(c, weft__json_at(list, i), at)) continue;
        items[n++] = weft__gram_schema_use(c, weft__json_at(list, i), at, key, number);
    }
    if (weft__gram_schema_failed(c)) return -1;
    if (!n) return weft__gram_schema_fail(c, WEFT_ARGUMENT, at, key, "no alternative can be satisfied");
    if (weft__gram_schema_is_nullable(schema)) items[n++] = weft__gram_text(c->g, "null", 4);
    return weft__gram_alt(c->g, items, n);
}

/* A schema put together with what stands beside it. */
static int32_t together(weft__gram_schema *c, const weft__json *schema, const char *at)
{
    int32_t items[256];
    const weft__json *list = weft__gram_schema_keep(c, weft__gram_schema_flatten(c, schema, at));
    size_t n = weft__json_size(list);
    for (size_t i = 0; i < n && i < 256; i++) items[i] = weft__gram_schema_flat(c, weft__json_at(list, i), at);
    return weft__gram_schema_failed(c) ? -1 : weft__gram_alt(c->g, items, n);
}

/* Keywords that lead to other schemas. One alone keeps its schemas as rules, which recursion needs. */
static int32_t combination(weft__gram_schema *c, const weft__json *schema, const char *at, const int n[4])
{
    static const char *const choices[] = {"anyOf", "oneOf"};
    const weft__json *ref = weft__json_get(schema, "$ref"), *all = weft__json_get(schema, "allOf");
    const int nullable = weft__json_get(schema, "nullable") != NULL;
    const int leads = ref || all || weft__json_get(schema, "anyOf") || weft__json_get(schema, "oneOf");
    if (!leads || n[WEFT__GRAM_COMBINES] != 1 || n[WEFT__GRAM_CHOOSES] || n[WEFT__GRAM_LIMITS] > nullable ||
        (all && (weft__json_kind_of(all) != WEFT__JSON_ARRAY || weft__json_size(all) != 1)))
        return together(c, schema, at);
    int32_t node;
    if (ref) {
        const weft__json *target = weft__gram_schema_follow(c, ref, at);
        const char *s = "#";
        size_t length;
        weft__json_string(ref, &s, &length);
        s = strchr(s, '#');
        node = target ? weft__gram_schema_use(c, target, s ? s : "#", NULL, NULL) : -1;
    } else if (all) {
        node = weft__gram_schema_use(c, weft__json_at(all, 0), at, "allOf", "0");
    } else {
        return alternatives(c, schema, at, choices[weft__json_get(schema, "oneOf") != NULL]);
    }
    if (!weft__gram_schema_is_nullable(schema) || weft__gram_schema_failed(c)) return node;
    int32_t items[2] = {node, weft__gram_text(c->g, "null", 4)};
    return weft__gram_alt(c->g, items, 2);
}

int32_t weft__gram_schema_flat(weft__gram_schema *c, const weft__json *schema, const char *at)
{
    weft__gram *g = c->g;
    int32_t items[7];
    size_t k = 0;
    if (weft__gram_schema_failed(c)) return -1;
    if (!weft__json_size(schema)) return GRAM_REF(GRAM_RULE("value"));
    if (weft__json_get(schema, "enum") || weft__json_get(schema, "const"))
        return weft__gram_schema_constants(c, schema, at);
    unsigned types = weft__gram_schema_types(c, schema, at);
    if (types & WEFT__GRAM_OBJECT_TYPE) items[k++] = weft__gram_schema_object(c, schema, at);
    if (types & WEFT__GRAM_ARRAY_TYPE) items[k++] = weft__gram_schema_array(c, schema, at);
    if (types & WEFT__GRAM_STRING_TYPE) items[k++] = weft__gram_schema_string(c, schema, at);
    if (types & WEFT__GRAM_NUMBER_TYPE) items[k++] = weft__gram_schema_number(c, schema, at);
    else if (types & WEFT__GRAM_INTEGER_TYPE) items[k++] = weft__gram_schema_integer(c, schema, at);
    if (types & WEFT__GRAM_BOOLEAN_TYPE) items[k++] = GRAM_ALT(GRAM_TEXT("true"), GRAM_TEXT("false"));
    if (types & WEFT__GRAM_NULL_TYPE) items[k++] = GRAM_TEXT("null");
    return weft__gram_schema_failed(c) ? -1 : weft__gram_alt(g, items, k);
}

static int32_t schema_body(weft__gram_schema *c, const weft__json *schema, const char *at)
{
    weft__gram *g = c->g;
    int n[4], yes = 0;
    if (weft__gram_schema_is_false(schema))
        return weft__gram_schema_fail(c, WEFT_ARGUMENT, at, NULL, "no value fits false");
    if (weft__json_bool(schema, &yes)) return GRAM_REF(GRAM_RULE("value"));
    if (weft__json_kind_of(schema) != WEFT__JSON_OBJECT)
        return weft__gram_schema_fail(c, WEFT_ARGUMENT, at, NULL, "a schema is an object, true or false");
    if (!weft__gram_schema_check_keywords(c, schema, at, n)) return -1;
    if (n[WEFT__GRAM_COMBINES]) return combination(c, schema, at, n);
    return n[WEFT__GRAM_LIMITS] || n[WEFT__GRAM_CHOOSES] ? weft__gram_schema_flat(c, schema, at)
                                                         : GRAM_REF(GRAM_RULE("value"));
}

static void compile_tasks(weft__gram_schema *c)
{
    char place[300];
    for (size_t i = 0; i < c->n_tasks && !weft__gram_schema_failed(c); i++) {
        weft__gram_schema_task t = c->tasks[i];
        int32_t body = schema_body(c, t.schema, t.at);
        weft__gram_define(c->g, t.rule, body);
        weft__gram_within(c->g, "schema: ", weft__utf8_show(place, sizeof place, t.at, strlen(t.at)));
    }
}

weft__gram_schema *weft__gram_schema_open(weft__gram *g, const weft__json *root, int closed, const char *mark,
                                          weft__gram_schema_budget *budget)
{
    weft__gram_schema *c = weft__alloc_zero(1, sizeof *c);
    if (c) {
        *c = (weft__gram_schema){.g = g, .root = root, .budget = budget, .closed = closed};
        for (c->mark = mark; mark && *mark; mark++) /* no string has these in it as they are */
            if ((unsigned char)*mark < ' ' || *mark == '"' || *mark == '\\') c->mark = NULL;
    }
    if (!c) weft__gram_fail(g, WEFT_NO_MEMORY, "no memory for a grammar");
    else if (!weft__gram_schema_read_order(c)) weft__gram_schema_close(&c);
    return c;
}

void weft__gram_schema_close(weft__gram_schema **p)
{
    weft__gram_schema *c = *p;
    if (!c) return;
    compile_tasks(c);
    for (size_t i = 0; i < c->n_tasks; i++) weft__free(c->tasks[i].at);
    for (size_t i = 0; i < c->n_owned; i++) weft__json_free(&c->owned[i]);
    for (size_t i = 0; i < c->language_names.n; i++) weft__gram_automaton_destroy(&c->languages[i]);
    weft__gram_automaton_destroy(&c->characters);
    weft__gram_automaton_destroy(&c->marked);
    weft__free(c->languages);
    weft__strings_free(&c->language_names);
    weft__strings_free(&c->annotations);
    weft__strings_free(&c->looked_for);
    weft__free(c->found);
    weft__free(c->owned);
    weft__free(c->tasks);
    weft__free(c->rules);
    weft__strings_free(&c->contents);
    weft__free(c);
    *p = NULL;
}

int32_t weft__gram_read_schema(weft__gram *g, const char *source, size_t n)
{
    weft__json *root = NULL;
    weft_error err = {0};
    int32_t start = -1;
    if (n > WEFT__GRAM_MAX_SOURCE) {
        weft__gram_fail(g, WEFT_LIMIT, "schema: %zu bytes of text; at most %d", n, WEFT__GRAM_MAX_SOURCE);
        return -1;
    }
    weft_status st = weft__json_parse_bounds(source, n, &root, &err);
    if (st) {
        weft__gram_fail(g, st == WEFT_FORMAT ? WEFT_ARGUMENT : st, "schema: %s", err.message);
        return -1;
    }
    weft__gram_json_parts(g);
    weft__gram_schema_budget budget = WEFT__GRAM_SCHEMA_BUDGET;
    weft__gram_schema *c = weft__gram_schema_open(g, root, 0, NULL, &budget);
    if (c) c->unsigned_too = 1;
    if (c) start = rule_of_schema(c, root, weft__strdup("#"));
    weft__gram_schema_close(&c);
    weft__json_free(&root);
    return start;
}
