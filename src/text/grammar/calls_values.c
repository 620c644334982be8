// SPDX-License-Identifier: Apache-2.0
/* calls_values.c: values of parameters that stand as plain text between markers (calls_parts.h). The parser tells
 * strings from other values by the schema's types, and by what can be read as JSON: a string that could be read as a
 * value that the schema does not allow is none here. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "text/answer/loose.h"
#include "text/answer/values.h"
#include "text/grammar/build.h"
#include "text/grammar/calls_parts.h"

enum { MAX_WAYS = 250, MAX_FOLLOWED = 16, PLACE = 512 };

typedef struct value_constant {
    const char *s;
    size_t n;
} value_constant;

typedef struct value_parts {
    weft__gram_function *f;
    const char *mark;
    int typed;
    unsigned read, open; /* types that a text may be read as, and those of which all values fit; 1 << weft__json_kind */
    int any, any_text;   /* any value, any string */
    value_constant constants[MAX_WAYS];
    int32_t texts[MAX_WAYS], others[MAX_WAYS];
    size_t n_constants, n_texts, n_others;
} value_parts;

static void too_many(value_parts *v, const char *at)
{
    weft__gram_schema_fail(v->f->schema, WEFT_LIMIT, at, NULL, "more than %d alternatives", MAX_WAYS);
}

static void add_node(value_parts *v, int32_t *nodes, size_t *n, int32_t node, const char *at)
{
    if (*n == MAX_WAYS) too_many(v, at);
    else nodes[(*n)++] = node;
}

/* The same schema for values of some types alone. */
static const weft__json *of_types(value_parts *v, const weft__json *schema, unsigned types)
{
    static const char *const names[] = {"null", "boolean", "integer", "number", "string", "array", "object"};
    weft__json *copy = weft__json_new_object(), *list = weft__json_new_array();
    weft__json_member m = {0};
    int ok = copy && list;
    while (ok && weft__json_next(schema, &m))
        if (strcmp(m.key, "type") && strcmp(m.key, "nullable"))
            ok = weft__json_set(copy, m.key, weft__json_copy(m.value));
    for (unsigned i = 0; ok && i < sizeof names / sizeof *names; i++)
        if (types >> i & 1) ok = weft__json_append(list, weft__json_new_string(names[i], strlen(names[i])));
    if (ok) ok = weft__json_set(copy, "type", list);
    else weft__json_free(&list);
    if (!ok) weft__json_free(&copy);
    return weft__gram_schema_keep(v->f->schema, copy);
}

/* A schema of one value. */
static const weft__json *constant_schema(value_parts *v, const weft__json *value)
{
    weft__json *schema = weft__json_new_object();
    if (schema && !weft__json_set(schema, "const", weft__json_copy(value))) weft__json_free(&schema);
    return weft__gram_schema_keep(v->f->schema, schema);
}

static void add_json(value_parts *v, const weft__json *schema, const char *at)
{
    if (schema) add_node(v, v->others, &v->n_others, weft__gram_schema_use(v->f->schema, schema, at, NULL, NULL), at);
}

static void collect_constants(value_parts *v, const weft__json *schema, const char *at)
{
    const weft__json *one = weft__json_get(schema, "const"), *list = weft__json_get(schema, "enum");
    unsigned types = weft__gram_schema_types(v->f->schema, schema, at);
    size_t n = one ? 1 : weft__json_size(list);
    for (size_t i = 0; i < n && !weft__gram_schema_failed(v->f->schema); i++) {
        const weft__json *value = one ? one : weft__json_at(list, i);
        value_constant c;
        if (!weft__gram_schema_allows(v->f->schema, schema, value, at)) continue;
        if (!weft__json_string(value, &c.s, &c.n)) {
            if (types != WEFT__GRAM_STRING_TYPE) add_json(v, constant_schema(v, value), at);
        } else if (types & WEFT__GRAM_STRING_TYPE) {
            if (v->n_constants == MAX_WAYS) too_many(v, at);
            else v->constants[v->n_constants++] = c;
        }
    }
}

static void collect_types(value_parts *v, const weft__json *schema, const char *at)
{
    static const unsigned kinds[] = {1 << WEFT__JSON_NULL,
                                     1 << WEFT__JSON_BOOL,
                                     1 << WEFT__JSON_INT,
                                     1 << WEFT__JSON_INT | 1 << WEFT__JSON_DOUBLE,
                                     0,
                                     1 << WEFT__JSON_ARRAY,
                                     1 << WEFT__JSON_OBJECT};
    unsigned types = weft__gram_schema_types(v->f->schema, schema, at),
             others = types & ~(unsigned)WEFT__GRAM_STRING_TYPE;
    size_t n_limits = weft__gram_schema_n_limits(schema) - (weft__json_get(schema, "type") != NULL) -
                      (weft__json_get(schema, "nullable") != NULL);
    for (size_t i = 0; !n_limits && i < sizeof kinds / sizeof *kinds; i++)
        if (others >> i & 1) v->open |= kinds[i];
    if (others && types != others) schema = of_types(v, schema, others);
    if (others) add_json(v, schema, at);
}

static void collect(value_parts *v, const weft__json *schema, const char *at, int depth);

static void collect_choices(value_parts *v, const weft__json *list, const char *at, const char *key, int depth)
{
    char place[PLACE];
    for (size_t i = 0; i < weft__json_size(list); i++) {
        snprintf(place, sizeof place, "%.450s/%s/%zu", at, key, i);
        collect(v, weft__json_at(list, i), place, depth + 1);
    }
}

static void collect_string(value_parts *v, const weft__json *schema, const char *at)
{
    if (!(weft__gram_schema_types(v->f->schema, schema, at) & WEFT__GRAM_STRING_TYPE)) return;
    int32_t text = weft__gram_schema_text(v->f->schema, schema, at);
    if (text == -2) v->any_text = 1;
    else add_node(v, v->texts, &v->n_texts, text, at);
}

static int has_condition(const weft__json *schema)
{
    static const char *const keys[] = {"not", "if", "dependentRequired", "dependentSchemas", "dependencies"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (weft__json_get(schema, keys[i])) return 1;
    return 0;
}

static void collect(value_parts *v, const weft__json *schema, const char *at, int depth)
{
    weft__gram_schema *c = v->f->schema;
    const weft__json *ref = weft__json_get(schema, "$ref"), *all = weft__json_get(schema, "allOf"),
                     *any = weft__json_get(schema, "anyOf"), *one = weft__json_get(schema, "oneOf");
    const char *s;
    size_t n, n_limits = weft__gram_schema_n_limits(schema);
    int yes = 1;
    if (weft__gram_schema_failed(c)) return;
    if (depth > MAX_FOLLOWED) {
        weft__gram_schema_fail(c, WEFT_LIMIT, at, NULL, "nested too deep");
    } else if (weft__json_bool(schema, &yes) || !n_limits) {
        v->any |= yes;
    } else if (ref || all || any || one || has_condition(schema)) {
        if (n_limits > 1 || has_condition(schema) || (all && weft__json_size(all) != 1)) {
            weft__gram_schema_fail(
                c, WEFT_UNSUPPORTED, at, NULL,
                "conditions, and other constraints beside $ref, anyOf, oneOf, allOf, are not supported for a parameter "
                "that is plain text");
        } else if (ref) {
            const weft__json *target = weft__gram_schema_follow(c, ref, at);
            if (target && weft__json_string(ref, &s, &n)) collect(v, target, s, depth + 1);
        } else {
            if (one) one = weft__gram_schema_exclusive(c, schema, at, NULL, 0);
            collect_choices(v, all ? all : any ? any : one, at, all ? "allOf" : any ? "anyOf" : "oneOf", depth);
        }
    } else if (weft__json_get(schema, "enum") || weft__json_get(schema, "const")) {
        collect_constants(v, schema, at);
    } else {
        collect_string(v, schema, at);
        collect_types(v, schema, at);
    }
}

/* Whether the parser would read this string as another value, which may not fit. */
static int reads_otherwise(const value_parts *v, const value_constant *c, unsigned forbidden)
{
    weft__json *value = NULL;
    weft__strbuf loose = {0};
    int is = !weft__json_parse(c->s, c->n, &value, NULL);
    if (!is && v->f->format->values & WEFT__ANSWER_PYTHON && weft__answer_loose_value(&loose, c->s, c->n))
        is = !weft__json_parse(loose.data, loose.len, &value, NULL);
    is = is && forbidden >> weft__json_kind_of(value) & 1;
    weft__strbuf_free(&loose);
    weft__json_free(&value);
    return is;
}

/* Any string that ends at the marker, but for those that begin as values of forbidden types do. */
static int32_t free_text(const value_parts *v, unsigned forbidden)
{
    weft__gram *g = v->f->g;
    weft__gram_range first[24] = {{0, ' '}};
    size_t n = 1, length = strlen(v->mark);
    int bad = 0;
    int32_t rest = weft__gram_without(g, v->mark, length);
    if (!forbidden) return rest;
    weft__utf8_decode(v->mark, length, &first[n].lo, &bad);
    first[n].hi = first[n].lo;
    n++;
    for (const char *s = "tfnTFN\"'([{-.<"; *s; s++)
        first[n++] = (weft__gram_range){(unsigned char)*s, (unsigned char)*s};
    first[n++] = (weft__gram_range){'0', '9'};
    int32_t begin = weft__gram_class(g, first, n, 1);
    return GRAM_OPTIONAL(GRAM_SEQ(begin, rest));
}

/* The strings of the value; -1: there are none. */
static int32_t text_of(value_parts *v, const char *at)
{
    weft__gram *g = v->f->g;
    const unsigned forbidden = v->typed || v->any ? 0 : v->read & ~v->open;
    int32_t items[MAX_WAYS * 2 + 1];
    size_t n = 0, n_marked = 0;
    int bad = 0;
    uint32_t stop = 0;
    weft__utf8_decode(v->mark, strlen(v->mark), &stop, &bad);
    if (v->any || v->any_text) return free_text(v, forbidden);
    for (size_t i = 0; i < v->n_constants; i++) {
        const value_constant *c = &v->constants[i];
        const int marked = memmem(c->s, c->n, v->mark, strlen(v->mark)) != NULL;
        n_marked += marked;
        if (marked || (forbidden && reads_otherwise(v, c, forbidden))) continue;
        items[n++] = weft__gram_text(g, c->s, c->n);
    }
    if (v->n_texts && forbidden)
        return weft__gram_schema_fail(v->f->schema, WEFT_UNSUPPORTED, at, NULL,
                                      "strings with constraints beside values of other types are not supported for a "
                                      "parameter that is plain text");
    for (size_t i = 0; i < v->n_texts; i++) {
        char name[48];
        snprintf(name, sizeof name, "text %zu of %zu", i, weft__gram_n_rules(g));
        int32_t rule = weft__gram_rule(g, name, strlen(name));
        weft__gram_define(g, rule, v->texts[i]);
        weft__gram_exclude(g, rule, stop);
        items[n++] = GRAM_REF(rule);
    }
    if (!n && n_marked)
        return weft__gram_schema_fail(v->f->schema, WEFT_UNSUPPORTED, at, NULL,
                                      "each of its constants has '%s' in it, which ends a parameter", v->mark);
    return n ? weft__gram_alt(g, items, n) : -1;
}

weft__gram_value weft__gram_value_of(weft__gram_function *f, const weft__json *schema, const char *at, const char *mark,
                                     int typed)
{
    weft__gram *g = f->g;
    weft__gram_value out = {-1, -1, 0};
    value_parts *v = weft__alloc_zero(1, sizeof *v);
    if (!v) {
        weft__gram_fail(g, WEFT_NO_MEMORY, "no memory for a grammar");
        return out;
    }
    v->f = f;
    v->mark = mark;
    v->typed = typed;
    v->read = weft__answer_types(schema) & ~(1u << WEFT__JSON_STRING);
    if (schema) collect(v, schema, at, 0);
    else v->any = 1;
    if (v->any && typed) /* any value that is no string */
        add_node(v, v->others, &v->n_others,
                 GRAM_ALT(GRAM_REF(GRAM_RULE("number")), GRAM_REF(GRAM_RULE("nested")), GRAM_TEXT("true"),
                          GRAM_TEXT("false"), GRAM_TEXT("null")),
                 at);
    out.text = weft__gram_failed(g) ? -1 : text_of(v, at);
    out.any_text = v->any || v->any_text;
    if (v->n_others && !weft__gram_failed(g)) out.json = weft__gram_alt(g, v->others, v->n_others);
    if (out.text < 0 && out.json < 0 && !weft__gram_failed(g))
        weft__gram_schema_fail(f->schema, WEFT_UNSUPPORTED, at, NULL, "no value can be written as a parameter");
    weft__free(v);
    return out;
}
