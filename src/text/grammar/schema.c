// SPDX-License-Identifier: Apache-2.0
/* schema.c: JSON Schema (a subset of draft 2020-12) to rules. Each schema becomes a rule of its own, named by its place
 * and compiled from a list of work: so that schemas nest and recurse without the machine's stack. Equal schemas share a
 * rule. Invariant: what the rules allow is valid; what cannot be held so is refused by its place. Where a keyword names
 * several types, each type is a language of its own. Belongs to one thread. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "text/grammar/build.h"
#include "text/grammar/schema_parts.h"
#include "text/strings.h"

enum {
    MAX_PLACE = 4096,      /* bytes of a JSON pointer */
    MAX_NAMED = 200,       /* bytes of it in the name of a rule */
    MAX_CONTENT = 1 << 23, /* bytes of schemas that are compared or put together */
};

typedef struct schema_task {
    int32_t rule;
    const weft__json *schema;
    char *at;
} schema_task;

struct weft__gram_schema {
    weft__gram *g;
    const weft__json *root;
    weft__strings contents; /* of schemas that have a rule */
    int32_t *rules;         /* [n_rules] of contents */
    size_t n_rules, rules_capacity, n_bytes;
    schema_task *tasks;
    size_t n_tasks, tasks_capacity;
    int closed;         /* objects that name properties have no others, unless they say so */
    weft__json **owned; /* merged schemas */
    size_t n_owned, owned_capacity;
};

weft__gram *weft__gram_schema_rules(const weft__gram_schema *c)
{
    return c->g;
}

int weft__gram_schema_failed(const weft__gram_schema *c)
{
    return weft__gram_failed(c->g) != WEFT_OK;
}

int weft__gram_schema_is_closed(const weft__gram_schema *c)
{
    return c->closed;
}

/* ---- places ---- */

static void put_key(weft__strbuf *t, const char *key)
{
    weft__strbuf_putc(t, '/');
    for (; *key; key++) {
        if (*key == '~') weft__strbuf_puts(t, "~0");
        else if (*key == '/') weft__strbuf_puts(t, "~1");
        else weft__strbuf_putc(t, *key);
    }
}

static const char *show_place(char out[300], const char *at)
{
    return weft__utf8_show(out, 300, at, strlen(at));
}

int32_t weft__gram_schema_fail(weft__gram_schema *c, weft_status status, const char *at, const char *key,
                               const char *format, ...)
{
    char text[WEFT_ERROR_TEXT], place[300];
    weft__strbuf whole = {0};
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    weft__strbuf_puts(&whole, at);
    if (key) put_key(&whole, key);
    weft__gram_fail(c->g, status, "schema: %s: %s", show_place(place, whole.data ? whole.data : at), text);
    weft__strbuf_free(&whole);
    return -1;
}

static int32_t schema_no_memory(weft__gram_schema *c)
{
    weft__gram_fail(c->g, WEFT_NO_MEMORY, "no memory for a grammar");
    return -1;
}

/* ---- keywords ---- */

typedef enum keyword_kind { SAYS_NOTHING, COMBINES, CHOOSES, LIMITS } keyword_kind;
static const struct {
    const char *name;
    keyword_kind kind;
} keywords[] = {
    {"title", SAYS_NOTHING},
    {"description", SAYS_NOTHING},
    {"default", SAYS_NOTHING},
    {"examples", SAYS_NOTHING},
    {"$schema", SAYS_NOTHING},
    {"$id", SAYS_NOTHING},
    {"$comment", SAYS_NOTHING},
    {"$defs", SAYS_NOTHING},
    {"definitions", SAYS_NOTHING},
    {"deprecated", SAYS_NOTHING},
    {"readOnly", SAYS_NOTHING},
    {"writeOnly", SAYS_NOTHING},
    {"example", SAYS_NOTHING},
    {"discriminator", SAYS_NOTHING},
    {"$ref", COMBINES},
    {"anyOf", COMBINES},
    {"oneOf", COMBINES},
    {"allOf", COMBINES},
    {"enum", CHOOSES},
    {"const", CHOOSES},
    {"type", LIMITS},
    {"nullable", LIMITS},
    {"properties", LIMITS},
    {"required", LIMITS},
    {"additionalProperties", LIMITS},
    {"patternProperties", LIMITS},
    {"propertyNames", LIMITS},
    {"pattern", LIMITS},
    {"format", LIMITS},
    {"minLength", LIMITS},
    {"maxLength", LIMITS},
    {"items", LIMITS},
    {"prefixItems", LIMITS},
    {"minItems", LIMITS},
    {"maxItems", LIMITS},
    {"uniqueItems", LIMITS},
    {"minimum", LIMITS},
    {"maximum", LIMITS},
    {"exclusiveMinimum", LIMITS},
    {"exclusiveMaximum", LIMITS},
    {"multipleOf", LIMITS},
};

static int kind_of_keyword(const weft__json_member *m)
{
    int unique = 1;
    if (!strcmp(m->key, "uniqueItems") && weft__json_bool(m->value, &unique) && !unique) return SAYS_NOTHING;
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (!strcmp(m->key, keywords[i].name)) return (int)keywords[i].kind;
    return -1;
}

/* How many keywords of each kind there are; refuses unknown ones. */
static int count_keywords(weft__gram_schema *c, const weft__json *schema, const char *at, int n[4])
{
    weft__json_member m = {0};
    memset(n, 0, 4 * sizeof *n);
    while (weft__json_next(schema, &m)) {
        int kind = kind_of_keyword(&m);
        if (kind < 0) {
            weft__gram_schema_fail(c, WEFT_UNSUPPORTED, at, m.key, "this keyword is not supported");
            return 0;
        }
        n[kind]++;
    }
    return 1;
}

static unsigned type_of_name(const weft__json *v)
{
    static const char *const names[] = {"null", "boolean", "integer", "number", "string", "array", "object"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (weft__json_is(v, names[i])) return 1u << i;
    return 0;
}

unsigned weft__gram_schema_types(weft__gram_schema *c, const weft__json *schema, const char *at)
{
    const weft__json *type = weft__json_get(schema, "type");
    unsigned types = type_of_name(type);
    int nullable = 0;
    if (!type) return WEFT__GRAM_ALL_TYPES;
    for (size_t i = 0; i < weft__json_size(type); i++) {
        unsigned one = type_of_name(weft__json_at(type, i));
        types |= one;
        if (!one) types = 0;
        if (!one) break;
    }
    if (!types) {
        weft__gram_schema_fail(c, WEFT_ARGUMENT, at, "type",
                               "must be null, boolean, integer, number, string, array, object, or a list of these");
        return 0;
    }
    if (weft__json_bool(weft__json_get(schema, "nullable"), &nullable) && nullable) types |= WEFT__GRAM_NULL_TYPE;
    return types;
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

/* ---- rules of schemas ---- */

/* The rule of a schema: that of an equal one, or a new one with a task. */
static int32_t rule_of_schema(weft__gram_schema *c, const weft__json *schema, char *at)
{
    weft__strbuf text = {0};
    char name[MAX_NAMED + 32];
    if (!at) return schema_no_memory(c);
    weft__json_write(&text, schema, WEFT__JSON_COMPACT);
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
    else snprintf(name, sizeof name, "%.*s... (%zu)", MAX_NAMED, at, c->n_rules);
    size_t known_rules = weft__gram_n_rules(c->g);
    int32_t rule = weft__gram_rule(c->g, name, strlen(name));
    if (rule >= 0 && weft__gram_n_rules(c->g) == known_rules) { /* of another schema, put together at the same place */
        snprintf(name + strlen(name), 24, " (%zu)", known_rules);
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
    c->tasks[c->n_tasks++] = (schema_task){rule, schema, at};
    return rule;
}

int32_t weft__gram_schema_use(weft__gram_schema *c, const weft__json *schema, const char *at, const char *key,
                              const char *name)
{
    weft__gram *g = c->g;
    weft__strbuf place = {0};
    if (weft__gram_schema_failed(c)) return -1;
    weft__strbuf_puts(&place, at);
    if (key) put_key(&place, key);
    if (name) put_key(&place, name);
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

/* ---- constants ---- */

static unsigned type_of_value(const weft__json *v)
{
    double d;
    switch (weft__json_kind_of(v)) {
    case WEFT__JSON_NULL: return WEFT__GRAM_NULL_TYPE;
    case WEFT__JSON_BOOL: return WEFT__GRAM_BOOLEAN_TYPE;
    case WEFT__JSON_INT: return WEFT__GRAM_INTEGER_TYPE | WEFT__GRAM_NUMBER_TYPE;
    case WEFT__JSON_DOUBLE:
        return WEFT__GRAM_NUMBER_TYPE |
               (weft__json_double(v, &d) && d < 1e15 && d > -1e15 && (double)(int64_t)d == d ? WEFT__GRAM_INTEGER_TYPE
                                                                                             : 0u);
    case WEFT__JSON_STRING: return WEFT__GRAM_STRING_TYPE;
    case WEFT__JSON_ARRAY: return WEFT__GRAM_ARRAY_TYPE;
    default: return WEFT__GRAM_OBJECT_TYPE;
    }
}

/* enum or const, with `type` at most beside it. */
static int32_t constants(weft__gram_schema *c, const weft__json *schema, const char *at)
{
    const weft__json *list = weft__json_get(schema, "enum"), *one = weft__json_get(schema, "const");
    unsigned types = weft__gram_schema_types(c, schema, at);
    int32_t *items = NULL, node = -1;
    size_t n = 0, capacity = 0, count = one ? 1 : weft__json_size(list);
    weft__json_member m = {0};
    while (weft__json_next(schema, &m)) {
        int kind = kind_of_keyword(&m);
        if (kind == COMBINES || (kind == LIMITS && strcmp(m.key, "type") && strcmp(m.key, "nullable")))
            return weft__gram_schema_fail(c, WEFT_UNSUPPORTED, at, m.key, "is not supported beside enum or const");
    }
    if (one && list) return weft__gram_schema_fail(c, WEFT_UNSUPPORTED, at, "const", "is not supported beside enum");
    if (!one && (weft__json_kind_of(list) != WEFT__JSON_ARRAY || !count))
        return weft__gram_schema_fail(c, WEFT_ARGUMENT, at, "enum", "must be a list with at least one value");
    for (size_t i = 0; i < count && !weft__gram_schema_failed(c); i++) {
        const weft__json *v = one ? one : weft__json_at(list, i);
        if (!(type_of_value(v) & types)) continue;
        if (!weft__grow(&items, &capacity, n + 2, sizeof *items)) schema_no_memory(c);
        else items[n++] = weft__gram_schema_constant(c, v);
    }
    int nullable = 0;
    if (weft__json_bool(weft__json_get(schema, "nullable"), &nullable) && nullable && n)
        items[n++] = weft__gram_text(c->g, "null", 4);
    if (!n) weft__gram_schema_fail(c, WEFT_ARGUMENT, at, one ? "const" : "enum", "no value is of the type");
    if (!weft__gram_schema_failed(c)) node = weft__gram_alt(c->g, items, n);
    weft__free(items);
    return node;
}

/* ---- combinations ---- */

const weft__json *weft__gram_schema_follow(weft__gram_schema *c, const weft__json *ref, const char *at)
{
    const char *s;
    size_t n;
    const weft__json *v = c->root;
    if (!weft__json_string(ref, &s, &n) || n == 0 || s[0] != '#' || (n > 1 && s[1] != '/') || strlen(s) != n) {
        weft__gram_schema_fail(c, WEFT_UNSUPPORTED, at, "$ref", "must be a place in this schema, as #/$defs/NAME");
        return NULL;
    }
    for (s++; *s && v;) {
        weft__strbuf key = {0};
        for (s++; *s && *s != '/'; s++) {
            char byte = *s;
            unsigned code;
            if (byte == '~' && (s[1] == '0' || s[1] == '1')) byte = *++s == '0' ? '~' : '/';
            else if (byte == '%' && s[1] && s[2] && sscanf(s + 1, "%2x", &code) == 1 && code) {
                byte = (char)code;
                s += 2;
            }
            weft__strbuf_putc(&key, byte);
        }
        weft__strbuf_putc(&key, 0);
        unsigned long i = 0;
        int used = 0;
        if (key.failed) schema_no_memory(c);
        if (key.failed) v = NULL;
        else if (weft__json_kind_of(v) == WEFT__JSON_ARRAY)
            v = sscanf(key.data, "%7lu%n", &i, &used) == 1 && !key.data[used] ? weft__json_at(v, i) : NULL;
        else v = weft__json_get(v, key.data);
        weft__strbuf_free(&key);
    }
    if (!v) weft__gram_schema_fail(c, WEFT_ARGUMENT, at, "$ref", "leads nowhere");
    return v;
}

static int is_false(const weft__json *v)
{
    int value = 1;
    return weft__json_bool(v, &value) && !value;
}

static int32_t alternatives(weft__gram_schema *c, const weft__json *schema, const char *at, const char *key)
{
    const weft__json *list = weft__json_get(schema, key);
    int one_of = !strcmp(key, "oneOf");
    size_t count = weft__json_size(list), n = 0;
    int32_t items[256];
    if (weft__json_kind_of(list) != WEFT__JSON_ARRAY || !count)
        return weft__gram_schema_fail(c, WEFT_ARGUMENT, at, key, "must be a list with at least one schema");
    if (count > 250) return weft__gram_schema_fail(c, WEFT_LIMIT, at, key, "at most 250 alternatives");
    for (size_t i = 0; i < count && !weft__gram_schema_failed(c); i++) {
        char number[24];
        snprintf(number, sizeof number, "%zu", i);
        if (is_false(weft__json_at(list, i))) continue;
        for (size_t k = 0; one_of && k < i; k++)
            if (!weft__gram_schema_disjoint(c, weft__json_at(list, i), weft__json_at(list, k), at, 0))
                return weft__gram_schema_fail(
                    c, WEFT_UNSUPPORTED, at, key,
                    "alternatives %zu and %zu may both fit a value; write anyOf, or tell them "
                    "apart by type or by a required constant",
                    k, i);
        items[n++] = weft__gram_schema_use(c, weft__json_at(list, i), at, key, number);
    }
    if (!n) return weft__gram_schema_fail(c, WEFT_ARGUMENT, at, key, "no alternative can be satisfied");
    int nullable = 0;
    if (weft__json_bool(weft__json_get(schema, "nullable"), &nullable) && nullable)
        items[n++] = weft__gram_text(c->g, "null", 4);
    return weft__gram_alt(c->g, items, n);
}

/* Keywords that lead to other schemas: one of them, and nothing beside it but for allOf. */
static int32_t combination(weft__gram_schema *c, const weft__json *schema, const char *at, const int n[4])
{
    static const char *const choices[] = {"anyOf", "oneOf"};
    const weft__json *ref = weft__json_get(schema, "$ref"), *all = weft__json_get(schema, "allOf");
    if (all) {
        if (n[COMBINES] == 1 && !n[LIMITS] && weft__json_size(all) == 1)
            return weft__gram_schema_use(c, weft__json_at(all, 0), at, "allOf", "0");
        weft__json *merged = weft__gram_schema_merge(c, schema, at);
        if (!merged || !weft__gram_schema_own(c, merged)) return -1;
        weft__strbuf text = {0};
        weft__json_write(&text, merged, WEFT__JSON_COMPACT);
        c->n_bytes += text.len;
        weft__strbuf_free(&text);
        if (c->n_bytes > MAX_CONTENT)
            return weft__gram_schema_fail(c, WEFT_LIMIT, at, "allOf", "the schema is too large");
        return weft__gram_schema_object(c, merged, at);
    }
    int nullable = weft__json_get(schema, "nullable") != NULL;
    if (n[COMBINES] != 1 || n[LIMITS] > (ref ? 0 : nullable))
        return weft__gram_schema_fail(
            c, WEFT_UNSUPPORTED, at,
            ref                               ? "$ref"
            : weft__json_get(schema, "anyOf") ? "anyOf"
                                              : "oneOf",
            "other constraints beside it are not supported; write them into each alternative");
    if (!ref) return alternatives(c, schema, at, choices[weft__json_get(schema, "oneOf") != NULL]);
    const char *s = NULL;
    size_t length;
    const weft__json *target = weft__gram_schema_follow(c, ref, at);
    weft__json_string(ref, &s, &length);
    return target ? weft__gram_schema_use(c, target, s, NULL, NULL) : -1;
}

static int32_t schema_body(weft__gram_schema *c, const weft__json *schema, const char *at)
{
    weft__gram *g = c->g;
    int n[4], yes = 0;
    if (weft__json_bool(schema, &yes))
        return yes ? GRAM_REF(GRAM_RULE("value"))
                   : weft__gram_schema_fail(c, WEFT_ARGUMENT, at, NULL, "no value fits false");
    if (weft__json_kind_of(schema) != WEFT__JSON_OBJECT)
        return weft__gram_schema_fail(c, WEFT_ARGUMENT, at, NULL, "a schema is an object, true or false");
    if (!count_keywords(c, schema, at, n)) return -1;
    if (n[CHOOSES]) return constants(c, schema, at);
    if (n[COMBINES]) return combination(c, schema, at, n);
    if (!n[LIMITS]) return GRAM_REF(GRAM_RULE("value"));
    unsigned types = weft__gram_schema_types(c, schema, at);
    int32_t items[7];
    size_t k = 0;
    if (types & WEFT__GRAM_OBJECT_TYPE) items[k++] = weft__gram_schema_object(c, schema, at);
    if (types & WEFT__GRAM_ARRAY_TYPE) items[k++] = weft__gram_schema_array(c, schema, at);
    if (types & WEFT__GRAM_STRING_TYPE) items[k++] = weft__gram_schema_string(c, schema, at);
    if (types & WEFT__GRAM_NUMBER_TYPE) items[k++] = weft__gram_schema_number(c, schema, at);
    else if (types & WEFT__GRAM_INTEGER_TYPE) items[k++] = weft__gram_schema_integer(c, schema, at);
    if (types & WEFT__GRAM_BOOLEAN_TYPE) items[k++] = GRAM_ALT(GRAM_TEXT("true"), GRAM_TEXT("false"));
    if (types & WEFT__GRAM_NULL_TYPE) items[k++] = GRAM_TEXT("null");
    return weft__gram_schema_failed(c) ? -1 : weft__gram_alt(g, items, k);
}

static void compile_tasks(weft__gram_schema *c)
{
    char place[300];
    for (size_t i = 0; i < c->n_tasks && !weft__gram_schema_failed(c); i++) {
        schema_task t = c->tasks[i];
        int32_t body = schema_body(c, t.schema, t.at);
        weft__gram_define(c->g, t.rule, body);
        weft__gram_within(c->g, "schema: ", show_place(place, t.at));
    }
}

void weft__gram_schema_base(weft__gram *g)
{
    int32_t ws = GRAM_RULE("ws"), newline = GRAM_TEXT("\n");
    int32_t indent = GRAM_REPEAT(0, 32, GRAM_CLASS({'\t', '\t'}, {' ', ' '}));
    weft__gram_define(g, ws, GRAM_OPTIONAL(GRAM_ALT(GRAM_TEXT(" "), GRAM_SEQ(newline, indent))));
    weft__gram_json_parts(g);
}

weft__gram_schema *weft__gram_schema_open(weft__gram *g, const weft__json *root, int closed)
{
    weft__gram_schema *c = weft__alloc_zero(1, sizeof *c);
    if (c) *c = (weft__gram_schema){.g = g, .root = root, .closed = closed};
    else weft__gram_fail(g, WEFT_NO_MEMORY, "no memory for a grammar");
    return c;
}

const weft__json *weft__gram_schema_own(weft__gram_schema *c, weft__json *v)
{
    if (v && weft__grow(&c->owned, &c->owned_capacity, c->n_owned + 1, sizeof *c->owned)) {
        c->owned[c->n_owned++] = v;
        return v;
    }
    weft__json_free(&v);
    schema_no_memory(c);
    return NULL;
}

void weft__gram_schema_close(weft__gram_schema **p)
{
    weft__gram_schema *c = *p;
    if (!c) return;
    compile_tasks(c);
    for (size_t i = 0; i < c->n_tasks; i++) weft__free(c->tasks[i].at);
    for (size_t i = 0; i < c->n_owned; i++) weft__json_free(&c->owned[i]);
    weft__free(c->owned);
    weft__free(c->tasks);
    weft__free(c->rules);
    weft__strings_free(&c->contents);
    weft__free(c);
    *p = NULL;
}

size_t weft__gram_schema_n_limits(const weft__json *schema)
{
    weft__json_member m = {0};
    size_t n = 0;
    while (weft__json_kind_of(schema) == WEFT__JSON_OBJECT && weft__json_next(schema, &m))
        n += kind_of_keyword(&m) != SAYS_NOTHING;
    return n;
}

int32_t weft__gram_read_schema(weft__gram *g, const char *source, size_t n)
{
    weft_error err = {0};
    weft__json *root = NULL;
    int32_t start = -1;
    if (n > WEFT__GRAM_MAX_SOURCE) {
        weft__gram_fail(g, WEFT_LIMIT, "schema: %zu bytes of text; at most %d", n, WEFT__GRAM_MAX_SOURCE);
        return -1;
    }
    weft_status st = weft__json_parse(source, n, &root, &err);
    if (st) {
        weft__gram_fail(g, st == WEFT_FORMAT ? WEFT_ARGUMENT : st, "schema: %s", err.message);
        return -1;
    }
    weft__gram_schema_base(g);
    weft__gram_schema *c = weft__gram_schema_open(g, root, 0);
    if (c) start = rule_of_schema(c, root, weft__strdup("#"));
    weft__gram_schema_close(&c);
    weft__json_free(&root);
    return start;
}
