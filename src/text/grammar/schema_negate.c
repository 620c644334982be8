// SPDX-License-Identifier: Apache-2.0
/* schema_negate.c: the values that a schema does not fit, as schemas: keyword by keyword, each put the other way round
 * where that can be said. Of a type or a property that is so because another keyword of the schema is broken the others
 * say nothing: the alternatives may overlap. One thread. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "text/grammar/schema_parts.h"

enum { MAX_DEPTH = 16, MAX_NUMBERS = 64, MAX_PARTS = 2000 };

typedef struct negation {
    weft__gram_schema *c;
    const char *at;
    const char *why; /* a keyword that cannot be put the other way round; NULL: none so far */
    weft__json *out; /* alternatives */
    size_t n_parts;  /* schemas that were looked at */
} negation;

static void negate(negation *n, const weft__json *schema, int depth);

/* ---- building ---- */

static weft__json *text(const char *s)
{
    return weft__json_new_string(s, strlen(s));
}

/* A new alternative, values of one type. */
static weft__json *of_type(negation *n, const char *type)
{
    weft__json *out = weft__json_new_object();
    weft__gram_schema_set(n->c, out, "type", text(type));
    return out;
}

/* One of a type that a keyword bounds. */
static void put_bounded(negation *n, const char *type, const char *key, weft__json *value)
{
    weft__json *one = of_type(n, type);
    weft__gram_schema_set(n->c, one, key, value);
    weft__gram_schema_append(n->c, n->out, one);
}

static void negation_fail(negation *n, const char *why)
{
    if (!n->why) n->why = why;
}

/* ---- types and values ---- */

static void put_types(negation *n, unsigned types)
{
    weft__json *list = weft__json_new_array(), *one = weft__json_new_object();
    for (unsigned i = 0; i < 7; i++)
        if (types >> i & 1) weft__gram_schema_append(n->c, list, text(weft__gram_schema_type_name(i)));
    weft__gram_schema_set(n->c, one, "type", list);
    if (types) weft__gram_schema_append(n->c, n->out, one);
    else weft__json_free(&one);
}

/* Values of other types. Numbers with a fraction, which are no integers, are said of no schema: none of them is
 * written, and where schemas are compared any number is. */
static void negate_types(negation *n, unsigned types)
{
    unsigned others = WEFT__GRAM_ALL_TYPES & ~types;
    if (types & WEFT__GRAM_NUMBER_TYPE) others &= ~(unsigned)WEFT__GRAM_INTEGER_TYPE;
    if (types & WEFT__GRAM_INTEGER_TYPE && !(types & WEFT__GRAM_NUMBER_TYPE) && !n->c->superset)
        others &= ~(unsigned)WEFT__GRAM_NUMBER_TYPE;
    put_types(n, others);
}

static int by_value(const void *a, const void *b)
{
    const weft__json *const *x = a, *const *y = b;
    long double p = 0, q = 0;
    weft__gram_schema_exactly(*x, &p);
    weft__gram_schema_exactly(*y, &q);
    return (p > q) - (p < q);
}

/* Numbers but for some. */
static void negate_numbers(negation *n, const weft__json **numbers, size_t count)
{
    qsort(numbers, count, sizeof *numbers, by_value);
    for (size_t i = 0; i <= count; i++) {
        if (i && i < count && weft__gram_schema_same(numbers[i - 1], numbers[i])) continue;
        weft__json *one = of_type(n, "number");
        if (i) weft__gram_schema_set(n->c, one, "exclusiveMinimum", weft__json_copy(numbers[i - 1]));
        if (i < count) weft__gram_schema_set(n->c, one, "exclusiveMaximum", weft__json_copy(numbers[i]));
        weft__gram_schema_append(n->c, n->out, one);
    }
}

/* Appends a text as an expression of it alone. */
static void put_literal(weft__strbuf *out, const char *s, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (s[i] > 0 && strchr("^$\\.*+?()[]{}|/-", s[i])) weft__strbuf_putc(out, '\\');
        if (s[i] >= 0 && s[i] < ' ') weft__strbuf_printf(out, "\\x%02x", (unsigned)s[i]);
        else weft__strbuf_putc(out, s[i]);
    }
}

/* Strings that do not begin with what the expressions in `bodies` match. */
static void put_lacking(negation *n, weft__strbuf *bodies)
{
    weft__strbuf whole = {0};
    weft__strbuf_puts(&whole, "^(?!");
    weft__strbuf_put(&whole, bodies->data ? bodies->data : "", bodies->len);
    weft__strbuf_putc(&whole, ')');
    whole.failed |= bodies->failed;
    put_bounded(n, "string", "pattern", whole.failed ? NULL : weft__json_new_string(whole.data, whole.len));
    weft__strbuf_free(&whole);
}

/* Values of the types that are named, but for those. */
static void negate_values(negation *n, const weft__json *list, const weft__json *one)
{
    const weft__json *numbers[MAX_NUMBERS];
    weft__strbuf strings = {0};
    size_t n_numbers = 0, length, count = one ? 1 : weft__json_size(list);
    unsigned types = 0, seen = 0; /* bits of booleans */
    double d;
    for (size_t i = 0; i < count; i++) {
        const weft__json *v = one ? one : weft__json_at(list, i);
        const char *s;
        int yes;
        if (weft__json_is_null(v)) {
            types |= WEFT__GRAM_NULL_TYPE;
        } else if (weft__json_bool(v, &yes)) {
            types |= WEFT__GRAM_BOOLEAN_TYPE;
            seen |= 1u << yes;
        } else if (weft__json_string(v, &s, &length)) {
            if (types & WEFT__GRAM_STRING_TYPE) weft__strbuf_putc(&strings, '|');
            types |= WEFT__GRAM_STRING_TYPE;
            put_literal(&strings, s, length);
            weft__strbuf_putc(&strings, '$');
        } else if (weft__json_double(v, &d) && n_numbers < MAX_NUMBERS) {
            types |= WEFT__GRAM_NUMBER_TYPE;
            numbers[n_numbers++] = v;
        } else {
            negation_fail(n, one ? "const" : "enum");
        }
    }
    negate_types(n, types);
    if (seen == 1 || seen == 2) put_bounded(n, "boolean", "const", weft__json_new_bool(seen == 1));
    if (n_numbers) negate_numbers(n, numbers, n_numbers);
    if (types & WEFT__GRAM_STRING_TYPE) put_lacking(n, &strings);
    weft__strbuf_free(&strings);
}

/* ---- strings ---- */

/* Behind one alternative of an expression. */
static const char *end_of_branch(const char *s, const char *end)
{
    int depth = 0, in_class = 0;
    for (; s < end && (depth || in_class || *s != '|'); s++) {
        if (*s == '\\') s += s + 1 < end;
        else if (in_class) in_class = *s != ']';
        else if (*s == '[') in_class = 1;
        else depth += (*s == '(') - (*s == ')' && depth);
    }
    return s;
}

/* What is not anchored may have anything before it. */
static void negate_pattern(negation *n, const weft__json *pattern)
{
    weft__strbuf out = {0};
    const char *s;
    size_t length;
    if (!weft__json_string(pattern, &s, &length) || memmem(s, length, "(?=", 3) || memmem(s, length, "(?!", 3)) {
        negation_fail(n, "pattern");
        return;
    }
    for (const char *end = s + length; s <= end; s++) {
        const char *behind = end_of_branch(s, end);
        if (out.len) weft__strbuf_putc(&out, '|');
        if (s == end || *s != '^') weft__strbuf_puts(&out, "[^]*");
        weft__strbuf_put(&out, s, (size_t)(behind - s));
        s = behind;
    }
    put_lacking(n, &out);
    weft__strbuf_free(&out);
}

/* ---- bounds ---- */

/* Less than `least`, more than `most`. */
static void negate_counts(negation *n, const weft__json *schema, const char *type, const char *least, const char *most)
{
    int64_t x;
    if (weft__json_int(weft__json_get(schema, least), &x) && x > 0)
        put_bounded(n, type, most, weft__json_new_int(x - 1));
    if (weft__json_int(weft__json_get(schema, most), &x) && x < WEFT__GRAM_MAX_STATES)
        put_bounded(n, type, least, weft__json_new_int(x + 1));
}

static void negate_bounds(negation *n, const weft__json *schema)
{
    static const char *const beyond[2][2] = {{"exclusiveMinimum", "minimum"}, {"exclusiveMaximum", "maximum"}};
    for (int up = 0; up < 2; up++)
        for (int open = 0; open < 2; open++) {
            const weft__json *bound = weft__gram_schema_bound(schema, up, open);
            if (bound) put_bounded(n, "number", beyond[up][open], weft__json_copy(bound));
        }
}

/* ---- members ---- */

static void negate_required(negation *n, const weft__json *required)
{
    for (size_t i = 0; i < weft__json_size(required); i++) {
        const char *name;
        size_t length;
        if (!weft__json_string(weft__json_at(required, i), &name, &length)) negation_fail(n, "required");
        if (n->why) return;
        weft__json *none = weft__json_new_object();
        weft__gram_schema_set(n->c, none, name, weft__json_new_bool(0));
        put_bounded(n, "object", "properties", none);
    }
}

/* The alternatives of a part, in n->out's place. NULL where there is none, or it cannot be said. */
static weft__json *negated_part(negation *n, const weft__json *part, int depth)
{
    weft__json *before = n->out;
    n->out = weft__json_new_array();
    negate(n, part, depth + 1);
    weft__json *list = n->out, *all = NULL;
    n->out = before;
    if (n->why || !weft__json_size(list)) {
        weft__json_free(&list);
        return NULL;
    }
    if (weft__json_size(list) == 1) {
        all = weft__json_copy(weft__json_at(list, 0));
        weft__json_free(&list);
        return all;
    }
    all = weft__json_new_object();
    weft__gram_schema_set(n->c, all, "anyOf", list);
    return all;
}

static void negate_properties(negation *n, const weft__json *properties, int depth)
{
    weft__json_member m = {0};
    while (weft__json_next(properties, &m) && !n->why && !weft__gram_schema_failed(n->c)) {
        weft__json *value = negated_part(n, m.value, depth);
        if (!value) continue;
        weft__json *one = of_type(n, "object"), *required = weft__json_new_array(), *some = weft__json_new_object();
        weft__gram_schema_append(n->c, required, weft__json_new_string(m.key, m.key_len));
        weft__gram_schema_set(n->c, some, m.key, value);
        weft__gram_schema_set(n->c, one, "required", required);
        weft__gram_schema_set(n->c, one, "properties", some);
        weft__gram_schema_append(n->c, n->out, one);
    }
}

/* ---- combinations ---- */

/* None of several fits. */
static void negate_any(negation *n, const weft__json *list, int depth)
{
    weft__json *all = weft__json_new_array(), *one = weft__json_new_object();
    int possible = 1;
    for (size_t i = 0; i < weft__json_size(list) && possible && !n->why; i++) {
        weft__json *part = negated_part(n, weft__json_at(list, i), depth);
        possible = part != NULL;
        if (part) weft__gram_schema_append(n->c, all, part);
    }
    weft__gram_schema_set(n->c, one, "allOf", all);
    if (possible && !n->why) weft__gram_schema_append(n->c, n->out, one);
    else weft__json_free(&one);
}

static void negate_combinations(negation *n, const weft__json *schema, int depth)
{
    const weft__json *ref = weft__json_get(schema, "$ref"), *all = weft__json_get(schema, "allOf"),
                     *lacked = weft__json_get(schema, "not");
    if (ref) {
        const weft__json *target = weft__gram_schema_follow(n->c, ref, n->at);
        if (target) negate(n, target, depth + 1);
    }
    for (size_t i = 0; i < weft__json_size(all) && !n->why; i++) negate(n, weft__json_at(all, i), depth + 1);
    if (weft__json_get(schema, "anyOf")) negate_any(n, weft__json_get(schema, "anyOf"), depth);
    if (lacked) weft__gram_schema_append(n->c, n->out, weft__json_copy(lacked));
}

/* Keywords that are not put the other way round. */
static void refuse_others(negation *n, const weft__json *schema)
{
    static const char *const none[] = {"oneOf",
                                       "if",
                                       "dependentRequired",
                                       "dependentSchemas",
                                       "dependencies",
                                       "nullable",
                                       "patternProperties",
                                       "additionalProperties",
                                       "propertyNames",
                                       "items",
                                       "prefixItems",
                                       "additionalItems",
                                       "uniqueItems",
                                       "multipleOf",
                                       "format"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        const weft__json *v = weft__json_get(schema, none[i]);
        int yes = 0;
        const int is_flag = !strcmp(none[i], "uniqueItems") || !strcmp(none[i], "nullable");
        const int is_empty = weft__json_kind_of(v) == WEFT__JSON_OBJECT && !weft__json_size(v);
        const int asks = !strcmp(none[i], "if")     ? weft__json_get(schema, "then") || weft__json_get(schema, "else")
                         : weft__json_bool(v, &yes) ? yes == is_flag
                                                    : v && !is_empty;
        if (asks) negation_fail(n, none[i]);
    }
}

static void negate(negation *n, const weft__json *schema, int depth)
{
    int yes = 0, counts[4];
    if (n->why || !weft__gram_schema_step(n->c, n->at)) return;
    if (weft__gram_schema_is_false(schema)) {
        weft__gram_schema_append(n->c, n->out, weft__json_new_object());
        return;
    }
    if (weft__json_bool(schema, &yes)) return;
    if (depth > MAX_DEPTH || n->n_parts++ > MAX_PARTS) negation_fail(n, "$ref");
    if (n->why || !weft__gram_schema_check_keywords(n->c, schema, n->at, counts)) return;
    refuse_others(n, schema);
    const unsigned types = weft__gram_schema_own_types(n->c, schema, n->at);
    if (n->why || weft__gram_schema_failed(n->c)) return;
    const weft__json *one = weft__json_get(schema, "const"), *list = weft__json_get(schema, "enum");
    if (types != WEFT__GRAM_ALL_TYPES) negate_types(n, types);
    if (one) negate_values(n, NULL, one);
    if (list) negate_values(n, list, NULL);
    if (types & WEFT__GRAM_STRING_TYPE) {
        if (weft__json_get(schema, "pattern")) negate_pattern(n, weft__json_get(schema, "pattern"));
        negate_counts(n, schema, "string", "minLength", "maxLength");
    }
    if (types & (WEFT__GRAM_NUMBER_TYPE | WEFT__GRAM_INTEGER_TYPE)) negate_bounds(n, schema);
    if (types & WEFT__GRAM_ARRAY_TYPE) negate_counts(n, schema, "array", "minItems", "maxItems");
    if (types & WEFT__GRAM_OBJECT_TYPE) {
        negate_counts(n, schema, "object", "minProperties", "maxProperties");
        negate_required(n, weft__json_get(schema, "required"));
        negate_properties(n, weft__json_get(schema, "properties"), depth);
    }
    negate_combinations(n, schema, depth);
}

weft__json *weft__gram_schema_negated(weft__gram_schema *c, const weft__json *schema, const char *at, const char *key)
{
    negation n = {.c = c, .at = at, .out = weft__json_new_array()};
    if (!n.out) weft__gram_fail(weft__gram_schema_rules(c), WEFT_NO_MEMORY, "no memory for a grammar");
    negate(&n, schema, 0);
    if (n.why && c->superset) { /* any value may be one */
        weft__json_free(&n.out);
        n.out = weft__json_new_array();
        weft__gram_schema_append(c, n.out, weft__json_new_object());
    } else if (n.why && key) {
        weft__gram_schema_fail(c, WEFT_UNSUPPORTED, at, key, "what does not fit '%s' cannot be written; say what does",
                               n.why);
    }
    if (weft__gram_schema_failed(c) || (n.why && !c->superset)) weft__json_free(&n.out);
    return n.out;
}
