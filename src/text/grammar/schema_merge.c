// SPDX-License-Identifier: Apache-2.0
/* schema_merge.c: what several schemas ask of one value, as schemas without combinations: $ref is followed, allOf put
 * together, what anyOf and oneOf offer put together with what stands beside them. Types are a list then, `const` is an
 * enum, several patterns and formats are lists. What is within properties and items is put together when its turn
 * comes, as allOf. One thread. */
#include <stdio.h>
#include <string.h>

#include "text/grammar/schema_parts.h"

enum { MAX_FOLLOWED = 32, MAX_ALTERNATIVES = 250 };

void weft__gram_schema_set(weft__gram_schema *c, weft__json *object, const char *key, weft__json *value)
{
    if (!weft__json_set(object, key, value))
        weft__gram_fail(weft__gram_schema_rules(c), WEFT_NO_MEMORY, "no memory for a grammar");
}

void weft__gram_schema_append(weft__gram_schema *c, weft__json *array, weft__json *value)
{
    if (!weft__json_append(array, value))
        weft__gram_fail(weft__gram_schema_rules(c), WEFT_NO_MEMORY, "no memory for a grammar");
}

static int says_nothing(const weft__json *schema)
{
    int yes = 0;
    return !schema || (weft__json_bool(schema, &yes) && yes) ||
           (weft__json_kind_of(schema) == WEFT__JSON_OBJECT && !weft__json_size(schema));
}

/* A schema of what both ask; a NULL one asks nothing. */
static weft__json *both(weft__gram_schema *c, const weft__json *a, const weft__json *b)
{
    if (says_nothing(a) && says_nothing(b)) return weft__json_new_bool(1);
    if (says_nothing(b) || weft__gram_schema_is_false(a) || weft__json_equal(a, b)) return weft__json_copy(a);
    if (says_nothing(a) || weft__gram_schema_is_false(b)) return weft__json_copy(b);
    weft__json *list = weft__json_new_array(), *schema = weft__json_new_object();
    const weft__json *several = weft__json_size(a) == 1 ? weft__json_get(a, "allOf") : NULL;
    for (size_t i = 0; i < weft__json_size(several); i++)
        weft__gram_schema_append(c, list, weft__json_copy(weft__json_at(several, i)));
    if (!several) weft__gram_schema_append(c, list, weft__json_copy(a));
    weft__gram_schema_append(c, list, weft__json_copy(b));
    weft__gram_schema_set(c, schema, "allOf", list);
    return schema;
}

void weft__gram_schema_set_types(weft__gram_schema *c, weft__json *flat, unsigned types)
{
    weft__json *list = weft__json_new_array();
    for (unsigned i = 0; i < 7; i++)
        if (types & 1u << i) {
            const char *name = weft__gram_schema_type_name(i);
            weft__gram_schema_append(c, list, weft__json_new_string(name, strlen(name)));
        }
    weft__gram_schema_set(c, flat, "type", list);
}

/* A keyword as it is put together with others: bounds of draft 4 as newer ones have them. */
static const weft__json *own_value(const weft__json *schema, const weft__json_member *m)
{
    const int up = !strcmp(m->key, "minimum") || !strcmp(m->key, "exclusiveMinimum");
    const int exclusive = !strncmp(m->key, "exclusive", 9);
    if (!up && strcmp(m->key, "maximum") && strcmp(m->key, "exclusiveMaximum")) return m->value;
    return weft__gram_schema_bound(schema, up, exclusive);
}

/* What a schema says itself. */
static weft__json *own_limits(weft__gram_schema *c, const weft__json *schema, const char *at)
{
    weft__json *flat = weft__json_new_object();
    weft__json_member m = {0};
    if (!flat) weft__gram_schema_set(c, NULL, "", NULL);
    while (weft__json_next(schema, &m) && !weft__gram_schema_failed(c)) {
        if (!weft__gram_schema_limits(&m) || !strcmp(m.key, "nullable") || !strcmp(m.key, "const")) continue;
        const weft__json *own = own_value(schema, &m);
        if (!own) continue;
        if (strcmp(m.key, "type") != 0) weft__gram_schema_set(c, flat, m.key, weft__json_copy(own));
        else weft__gram_schema_set_types(c, flat, weft__gram_schema_own_types(c, schema, at));
    }
    const weft__json *one = weft__json_get(schema, "const"), *list = weft__json_get(schema, "enum");
    int listed = !list;
    for (size_t i = 0; one && i < weft__json_size(list); i++)
        listed |= weft__gram_schema_same(weft__json_at(list, i), one);
    if (one && !weft__gram_schema_failed(c)) {
        weft__json *values = weft__json_new_array();
        if (listed) weft__gram_schema_append(c, values, weft__json_copy(one));
        weft__gram_schema_set(c, flat, "enum", values);
    }
    return flat;
}

/* ---- keyword by keyword ---- */

/* The larger or the smaller number; NULL when a value is no number, which is refused where it is used. */
static const weft__json *stricter(const weft__json *a, const weft__json *b, int larger)
{
    long double x = 0, y = 0;
    if (!weft__gram_schema_exactly(a, &x)) return a;
    if (!weft__gram_schema_exactly(b, &y)) return b;
    return (x < y) == larger ? b : a;
}

static void merge_multiples(weft__gram_schema *c, weft__json *flat, const weft__json *a, const weft__json *b,
                            const char *at)
{
    int64_t x, y;
    if (weft__json_equal(a, b)) return;
    if (!weft__json_int(a, &x) || !weft__json_int(b, &y) || x < 1 || y < 1 || x > 1000000000 || y > 1000000000) {
        weft__gram_schema_fail(c, WEFT_UNSUPPORTED, at, "multipleOf", "two that are not whole numbers up to 1e9");
        return;
    }
    int64_t p = x, q = y;
    while (q) {
        int64_t rest = p % q;
        p = q;
        q = rest;
    }
    weft__gram_schema_set(c, flat, "multipleOf", weft__json_new_int(x / p * y));
}

/* Strings of which all hold: one, or a list. */
static void merge_strings(weft__gram_schema *c, weft__json *flat, const char *key, const weft__json *a,
                          const weft__json *b)
{
    const weft__json *sides[2] = {a, b};
    weft__json *list = weft__json_new_array();
    for (size_t i = 0; i < 2; i++) {
        size_t n = weft__json_kind_of(sides[i]) == WEFT__JSON_ARRAY ? weft__json_size(sides[i]) : 1;
        for (size_t k = 0; k < n; k++) {
            const weft__json *one =
                weft__json_kind_of(sides[i]) == WEFT__JSON_ARRAY ? weft__json_at(sides[i], k) : sides[i];
            int known = 0;
            for (size_t m = 0; m < weft__json_size(list); m++) known |= weft__json_equal(weft__json_at(list, m), one);
            if (!known) weft__gram_schema_append(c, list, weft__json_copy(one));
        }
    }
    if (weft__json_size(list) > 1) {
        weft__gram_schema_set(c, flat, key, list);
    } else {
        weft__gram_schema_set(c, flat, key, weft__json_copy(weft__json_at(list, 0)));
        weft__json_free(&list);
    }
}

/* Values that both name. 0: there is none. */
static int merge_values(weft__gram_schema *c, weft__json *flat, const weft__json *a, const weft__json *b,
                        const char *at)
{
    weft__json *list = weft__json_new_array();
    for (size_t i = 0; i < weft__json_size(a) && !weft__gram_schema_failed(c); i++)
        for (size_t k = 0; k < weft__json_size(b) && weft__gram_schema_step(c, at); k++)
            if (weft__gram_schema_same(weft__json_at(a, i), weft__json_at(b, k))) {
                weft__gram_schema_append(c, list, weft__json_copy(weft__json_at(a, i)));
                break;
            }
    int some = weft__json_size(list) > 0;
    weft__gram_schema_set(c, flat, "enum", list);
    return some;
}

static int is_one_of(const char *key, const char *const *names)
{
    while (*names && strcmp(key, *names) != 0) names++;
    return *names != NULL;
}

/* Adds a keyword of `b` to flat, which may have it already. 0: nothing fits both. */
static int merge_keyword(weft__gram_schema *c, weft__json *flat, const weft__json_member *m, const char *at)
{
    static const char *const lows[] = {"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", NULL};
    static const char *const highs[] = {"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", NULL};
    static const char *const whole[] = {"properties", "patternProperties", "additionalProperties",
                                        "items",      "prefixItems",       "additionalItems",
                                        NULL}; /* see below */
    const weft__json *known = weft__json_get(flat, m->key);
    int yes = 0;
    if (is_one_of(m->key, whole)) return 1;
    if (!known) {
        weft__gram_schema_set(c, flat, m->key, weft__json_copy(m->value));
    } else if (!strcmp(m->key, "type")) {
        unsigned x = weft__gram_schema_own_types(c, flat, at), y = 0;
        weft__json *other = weft__json_new_object();
        weft__gram_schema_set(c, other, "type", weft__json_copy(m->value));
        y = weft__gram_schema_own_types(c, other, at);
        weft__json_free(&other);
        if (x & WEFT__GRAM_NUMBER_TYPE) x |= WEFT__GRAM_INTEGER_TYPE;
        if (y & WEFT__GRAM_NUMBER_TYPE) y |= WEFT__GRAM_INTEGER_TYPE;
        if (!(x & y)) return 0;
        weft__gram_schema_set_types(
            c, flat, x & y & WEFT__GRAM_NUMBER_TYPE ? x & y & ~(unsigned)WEFT__GRAM_INTEGER_TYPE : x & y);
    } else if (!strcmp(m->key, "enum")) {
        return merge_values(c, flat, known, m->value, at);
    } else if (is_one_of(m->key, lows) || is_one_of(m->key, highs)) {
        const weft__json *which = stricter(known, m->value, is_one_of(m->key, lows));
        if (which != known) weft__gram_schema_set(c, flat, m->key, weft__json_copy(which));
    } else if (!strcmp(m->key, "multipleOf")) {
        merge_multiples(c, flat, known, m->value, at);
    } else if (!strcmp(m->key, "pattern") || !strcmp(m->key, "format")) {
        merge_strings(c, flat, m->key, known, m->value);
    } else if (!strcmp(m->key, "required")) {
        weft__json *list = weft__json_copy(known);
        for (size_t i = 0; i < weft__json_size(m->value); i++)
            weft__gram_schema_append(c, list, weft__json_copy(weft__json_at(m->value, i)));
        weft__gram_schema_set(c, flat, m->key, list);
    } else if (!strcmp(m->key, "propertyNames")) {
        weft__gram_schema_set(c, flat, m->key, both(c, known, m->value));
    } else if (weft__json_bool(m->value, &yes) && yes) { /* uniqueItems */
        weft__gram_schema_set(c, flat, m->key, weft__json_new_bool(1));
    }
    return 1;
}

/* ---- what is within ---- */

/* 1 when no value fits both, where one of them names values or asks for what is not: such that say it at once. */
static int surely_apart(weft__gram_schema *c, const weft__json *a, const weft__json *b, const char *at)
{
    static const char *const keys[] = {"const", "enum"};
    for (size_t i = 0; a && b && i < 2; i++)
        if (weft__json_get(a, keys[i]) || weft__json_get(b, keys[i])) return weft__gram_schema_disjoint(c, a, b, at, 0);
    if (!weft__json_get(a, "type") || !weft__json_get(b, "type")) return 0;
    unsigned x = weft__gram_schema_types(c, a, at), y = weft__gram_schema_types(c, b, at);
    if (x & WEFT__GRAM_NUMBER_TYPE) x |= WEFT__GRAM_INTEGER_TYPE;
    if (y & WEFT__GRAM_NUMBER_TYPE) y |= WEFT__GRAM_INTEGER_TYPE;
    return !(x & y);
}

/* What a schema asks of a member that its properties do not name; NULL: nothing. */
static const weft__json *of_others(weft__gram_schema *c, const weft__json *a, const char *at)
{
    const weft__json *more = weft__json_get(a, "additionalProperties");
    if (says_nothing(more)) return NULL;
    if (weft__json_size(weft__json_get(a, "patternProperties")))
        weft__gram_schema_fail(c, WEFT_UNSUPPORTED, at, "patternProperties",
                               "with additionalProperties, it is not put together with other schemas");
    return more;
}

/* 1 when there are no members but those that its properties name. */
static int closes(const weft__json *a)
{
    return weft__gram_schema_is_false(weft__json_get(a, "additionalProperties")) &&
           !weft__json_size(weft__json_get(a, "patternProperties"));
}

static weft__json *flatten(weft__gram_schema *c, const weft__json *schema, const char *at, int depth);

/* 1 when it is one schema, which has no lists of words. */
static int is_plain(const weft__json *flat)
{
    const weft__json *one = weft__json_at(flat, 0);
    return weft__json_size(flat) == 1 && weft__json_kind_of(weft__json_get(one, "pattern")) != WEFT__JSON_ARRAY &&
           weft__json_kind_of(weft__json_get(one, "format")) != WEFT__JSON_ARRAY;
}

/* What both ask of a member. Where a condition asks for what the schema itself has not, there is none. */
static weft__json *both_of_member(weft__gram_schema *c, const weft__json *a, const weft__json *b, const char *at,
                                  const char *name)
{
    enum { DEEP = 2, FOLLOWED = 16 };
    if (surely_apart(c, a, b, at)) return weft__json_new_bool(0);
    weft__json *out = both(c, a, b), *flat;
    weft__strbuf place = {0};
    if (!c->conditional || c->probing >= DEEP || says_nothing(a) || says_nothing(b) || weft__json_equal(a, b))
        return out;
    weft__strbuf_puts(&place, at);
    weft__gram_schema_put_key(&place, "properties");
    weft__gram_schema_put_key(&place, name);
    weft__strbuf_putc(&place, 0);
    c->probing++;
    flat = place.failed ? NULL : flatten(c, out, place.data, FOLLOWED);
    c->probing--;
    if (flat && !weft__gram_schema_failed(c) && (!weft__json_size(flat) || is_plain(flat))) {
        weft__json_free(&out);
        out = weft__json_size(flat) ? weft__json_copy(weft__json_at(flat, 0)) : weft__json_new_bool(0);
    }
    weft__json_free(&flat);
    weft__strbuf_free(&place);
    return out;
}

/* Members of `key` in a, each put together with the one in b, or with what b asks of others. */
static void merge_members(weft__gram_schema *c, weft__json *out, const weft__json *a, const weft__json *b,
                          const char *key, const char *at)
{
    weft__json_member m = {0};
    while (weft__json_next(weft__json_get(a, key), &m) && !weft__gram_schema_failed(c)) {
        if (weft__json_get(out, m.key)) continue;
        const weft__json *other = weft__json_get(weft__json_get(b, key), m.key);
        if (!other) other = of_others(c, b, at);
        weft__gram_schema_set(c, out, m.key, both_of_member(c, m.value, other, at, m.key));
    }
}

/* Whether the pattern is to ask it of the member itself, as other names that it matches cannot be told apart. */
static int asks_member(weft__gram_schema *c, const weft__json_member *pattern, const char *name, size_t n,
                       const char *at)
{
    static const char key[] = "patternProperties";
    weft__json *s = weft__json_new_string(pattern->key, pattern->key_len);
    if (!s) weft__gram_fail(weft__gram_schema_rules(c), WEFT_NO_MEMORY, "no memory for a grammar");
    const int surely = s && weft__gram_schema_matches(c, at, key, s, name, n, 0),
              perhaps = s && weft__gram_schema_matches(c, at, key, s, name, n, 1);
    if (surely != perhaps)
        weft__gram_schema_fail(c, WEFT_UNSUPPORTED, at, key, "readers differ about whether '%.64s' matches '%.64s'",
                               name, pattern->key);
    weft__json_free(&s);
    return surely;
}

/* What patterns of a ask of the properties in `out`, where b allows no others or asks something of those: then they
 * are not asked of the same names as b's. */
static void ask_members(weft__gram_schema *c, weft__json *out, const weft__json *a, const weft__json *b, const char *at)
{
    const weft__json *others = weft__json_get(b, "additionalProperties");
    weft__json_member p = {0};
    while (!says_nothing(others) && weft__json_next(weft__json_get(a, "patternProperties"), &p)) {
        weft__json *before = weft__json_copy(out);
        weft__json_member m = {0};
        while (weft__json_next(before, &m) && !weft__gram_schema_failed(c)) {
            if (!asks_member(c, &p, m.key, m.key_len, at)) continue;
            if (weft__gram_schema_is_false(others))
                weft__gram_schema_set(c, out, m.key, both_of_member(c, m.value, p.value, at, m.key));
            else
                weft__gram_schema_fail(c, WEFT_UNSUPPORTED, at, "patternProperties",
                                       "with additionalProperties, it is not put together with other schemas");
        }
        weft__json_free(&before);
    }
}

static void merge_objects(weft__gram_schema *c, weft__json *flat, const weft__json *a, const weft__json *b,
                          const char *at)
{
    static const char *const keys[] = {"properties", "patternProperties"};
    for (size_t i = 0; i < 2; i++) {
        if (!weft__json_get(a, keys[i]) && !weft__json_get(b, keys[i])) continue;
        weft__json *out = weft__json_new_object();
        if (!i || !closes(b)) merge_members(c, out, a, b, keys[i], at);
        if (!i || !closes(a)) merge_members(c, out, b, a, keys[i], at);
        if (!i) ask_members(c, out, a, b, at);
        if (!i) ask_members(c, out, b, a, at);
        weft__gram_schema_set(c, flat, keys[i], out);
    }
    const weft__json *x = weft__json_get(a, "additionalProperties"), *y = weft__json_get(b, "additionalProperties");
    if (x || y) weft__gram_schema_set(c, flat, "additionalProperties", both(c, x, y));
}

static const weft__json *element_of(const weft__json *a, size_t i)
{
    const weft__gram_schema_elements e = weft__gram_schema_elements_of(a);
    const weft__json *one = weft__json_at(e.first, i);
    return one ? one : e.others;
}

static void merge_elements(weft__gram_schema *c, weft__json *flat, const weft__json *a, const weft__json *b)
{
    const weft__gram_schema_elements x = weft__gram_schema_elements_of(a), y = weft__gram_schema_elements_of(b);
    size_t n = weft__json_size(x.first), m = weft__json_size(y.first);
    if (n < m) n = m;
    if (n) {
        weft__json *list = weft__json_new_array();
        for (size_t i = 0; i < n; i++) weft__gram_schema_append(c, list, both(c, element_of(a, i), element_of(b, i)));
        weft__gram_schema_set(c, flat, "prefixItems", list);
    }
    if (x.others || y.others || n) weft__gram_schema_set(c, flat, "items", both(c, x.others, y.others));
}

/* Keeps those of the named values that what stands beside them allows. 0: there is none. */
static int keep_fitting(weft__gram_schema *c, weft__json *flat, const char *at)
{
    const weft__json *values = weft__json_get(flat, "enum");
    if (weft__json_size(flat) < 2 || weft__json_kind_of(values) != WEFT__JSON_ARRAY) return 1;
    weft__json *list = weft__json_new_array();
    for (size_t i = 0; i < weft__json_size(values); i++)
        if (weft__gram_schema_allows(c, flat, weft__json_at(values, i), at))
            weft__gram_schema_append(c, list, weft__json_copy(weft__json_at(values, i)));
    int some = weft__json_size(list) > 0;
    weft__gram_schema_set(c, flat, "enum", list);
    return some;
}

/* A new schema of what both ask; NULL when no value fits, or after a failure. */
static weft__json *merge(weft__gram_schema *c, const weft__json *a, const weft__json *b, const char *at)
{
    weft__json *flat = weft__json_copy(a);
    weft__json_member m = {0};
    int fits = flat != NULL;
    if (!flat) weft__gram_schema_set(c, NULL, "", NULL);
    while (fits && !weft__gram_schema_failed(c) && weft__json_next(b, &m)) fits = merge_keyword(c, flat, &m, at);
    if (fits && weft__json_size(b)) merge_objects(c, flat, a, b, at);
    if (fits && weft__json_size(b)) merge_elements(c, flat, a, b);
    if (fits && weft__json_size(a) && weft__json_size(b))
        fits = weft__gram_schema_keep_possible(c, flat, at) && keep_fitting(c, flat, at);
    if (!fits || weft__gram_schema_failed(c)) weft__json_free(&flat);
    return flat;
}

/* ---- combinations ---- */

static int is_listed(const weft__json *list, const weft__json *schema)
{
    for (size_t i = 0; i < weft__json_size(list); i++)
        if (weft__json_equal(weft__json_at(list, i), schema)) return 1;
    return 0;
}

weft__json *weft__gram_schema_each(weft__gram_schema *c, weft__json *list, weft__json *more, const char *at)
{
    weft__json *out = weft__json_new_array();
    for (size_t i = 0; i < weft__json_size(list) && !weft__gram_schema_failed(c); i++)
        for (size_t k = 0; k < weft__json_size(more) && !weft__gram_schema_failed(c); k++) {
            weft__gram_schema_account(c, weft__json_at(list, i), at);
            weft__gram_schema_account(c, weft__json_at(more, k), at);
            weft__json *one = merge(c, weft__json_at(list, i), weft__json_at(more, k), at);
            if (one && c->conditional && is_listed(out, one)) weft__json_free(&one);
            if (!one) continue;
            weft__gram_schema_append(c, out, one);
            if (weft__json_size(out) > MAX_ALTERNATIVES)
                weft__gram_schema_fail(c, WEFT_LIMIT, at, NULL, "more than %d alternatives when put together",
                                       MAX_ALTERNATIVES);
        }
    weft__json_free(&more);
    weft__json_free(&list);
    return out;
}

static void append_all(weft__gram_schema *c, weft__json *list, weft__json *more)
{
    for (size_t i = 0; i < weft__json_size(more); i++)
        weft__gram_schema_append(c, list, weft__json_copy(weft__json_at(more, i)));
    weft__json_free(&more);
}

/* anyOf or oneOf, put together with `list`, which is taken. */
static weft__json *with_alternatives(weft__gram_schema *c, weft__json *list, const weft__json *schema, const char *key,
                                     const char *at, int depth)
{
    const weft__json *choices = weft__json_get(schema, key);
    weft__json *out = weft__json_new_array();
    size_t n = weft__json_size(choices);
    if (weft__json_kind_of(choices) != WEFT__JSON_ARRAY || !n)
        weft__gram_schema_fail(c, WEFT_ARGUMENT, at, key, "must be a list with at least one schema");
    if (n > MAX_ALTERNATIVES)
        weft__gram_schema_fail(c, WEFT_LIMIT, at, key, "at most %d alternatives", MAX_ALTERNATIVES);
    if (!strcmp(key, "oneOf") && !weft__gram_schema_failed(c))
        choices = weft__gram_schema_exclusive(c, schema, at, list, depth);
    for (size_t i = 0; i < n && !weft__gram_schema_failed(c); i++)
        append_all(c, out, weft__gram_schema_beside(c, list, weft__json_at(choices, i), at, depth));
    if (weft__json_size(out) > MAX_ALTERNATIVES)
        weft__gram_schema_fail(c, WEFT_LIMIT, at, key, "more than %d alternatives when put together", MAX_ALTERNATIVES);
    weft__json_free(&list);
    return out;
}

static weft__json *just(weft__gram_schema *c, weft__json *schema)
{
    weft__json *list = weft__json_new_array();
    weft__gram_schema_append(c, list, schema);
    return list;
}

weft__json *weft__gram_schema_beside(weft__gram_schema *c, const weft__json *list, const weft__json *schema,
                                     const char *at, int depth)
{
    weft__json *before = list ? weft__json_copy(list) : just(c, weft__json_new_object());
    if (!before) weft__gram_schema_set(c, NULL, "", NULL);
    return weft__gram_schema_each(c, before, flatten(c, schema, at, depth + 1), at);
}

/* Those of allOf, without conditions or such alone, put together with `list`, which is taken. Conditions come last:
 * what else is asked leaves few of their alternatives. */
static weft__json *with_all(weft__gram_schema *c, weft__json *list, const weft__json *all, int conditions,
                            const char *at, int depth)
{
    for (size_t i = 0; i < weft__json_size(all) && !weft__gram_schema_failed(c); i++) {
        const weft__json *one = weft__json_at(all, i);
        if (conditions == (weft__json_get(one, "if") || weft__json_get(one, "not")))
            list = weft__gram_schema_each(c, list, flatten(c, one, at, depth + 1), at);
    }
    return list;
}

/* The alternatives of what a schema asks. */
static weft__json *flatten(weft__gram_schema *c, const weft__json *schema, const char *at, int depth)
{
    const weft__json *ref = weft__json_get(schema, "$ref"), *all = weft__json_get(schema, "allOf");
    int n[4], yes = 0;
    if (depth > MAX_FOLLOWED)
        weft__gram_schema_fail(c, WEFT_UNSUPPORTED, at, NULL,
                               "it leads to itself before any value, or is nested too deep");
    if (weft__gram_schema_failed(c)) return NULL;
    if (weft__gram_schema_is_false(schema)) return weft__json_new_array();
    if (weft__json_bool(schema, &yes)) return just(c, weft__json_new_object());
    if (weft__json_kind_of(schema) != WEFT__JSON_OBJECT) {
        weft__gram_schema_fail(c, WEFT_ARGUMENT, at, NULL, "a schema is an object, true or false");
        return NULL;
    }
    weft__gram_schema_account(c, schema, at);
    if (!weft__gram_schema_check_keywords(c, schema, at, n)) return NULL;
    c->conditional |= weft__json_get(schema, "not") || weft__json_get(schema, "if");
    weft__json *list = just(c, weft__json_new_object());
    if (ref)
        list = weft__gram_schema_each(c, list, flatten(c, weft__gram_schema_follow(c, ref, at), at, depth + 1), at);
    if (all && (weft__json_kind_of(all) != WEFT__JSON_ARRAY || !weft__json_size(all)))
        weft__gram_schema_fail(c, WEFT_ARGUMENT, at, "allOf", "must be a list with at least one schema");
    list = with_all(c, list, all, 0, at, depth);
    list = weft__gram_schema_each(c, list, just(c, own_limits(c, schema, at)), at);
    list = with_all(c, list, all, 1, at, depth);
    list = weft__gram_schema_conditions(c, list, schema, at, depth);
    if (weft__json_get(schema, "anyOf")) list = with_alternatives(c, list, schema, "anyOf", at, depth);
    if (weft__json_get(schema, "oneOf")) list = with_alternatives(c, list, schema, "oneOf", at, depth);
    if (weft__json_bool(weft__json_get(schema, "nullable"), &yes) && yes) {
        weft__json *null = weft__json_new_object();
        weft__gram_schema_set_types(c, null, WEFT__GRAM_NULL_TYPE);
        weft__gram_schema_append(c, list, null);
    }
    return list;
}

weft__json *weft__gram_schema_flatten(weft__gram_schema *c, const weft__json *schema, const char *at)
{
    weft__json *list = flatten(c, schema, at, 0);
    if (!weft__gram_schema_failed(c) && !weft__json_size(list))
        weft__gram_schema_fail(c, WEFT_ARGUMENT, at, NULL, "no value fits what it asks together");
    if (weft__gram_schema_failed(c)) weft__json_free(&list);
    return list;
}
