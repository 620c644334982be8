// SPDX-License-Identifier: Apache-2.0
/* schema_fits.c: whether a value is valid under a schema, for values that a schema names. One thread. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "text/grammar/build.h"
#include "text/grammar/schema_parts.h"

enum { MAX_FITTED = 64 };

int weft__gram_schema_same(const weft__json *a, const weft__json *b)
{
    double x = 0, y = 0;
    int64_t i, k;
    weft__json_member m = {0};
    if (weft__json_double(a, &x) && weft__json_double(b, &y))
        return weft__json_int(a, &i) && weft__json_int(b, &k) ? i == k : x == y;
    if (weft__json_kind_of(a) != weft__json_kind_of(b) || weft__json_size(a) != weft__json_size(b)) return 0;
    if (weft__json_kind_of(a) == WEFT__JSON_ARRAY) {
        for (size_t n = 0; n < weft__json_size(a); n++)
            if (!weft__gram_schema_same(weft__json_at(a, n), weft__json_at(b, n))) return 0;
        return 1;
    }
    if (weft__json_kind_of(a) != WEFT__JSON_OBJECT) return weft__json_equal(a, b);
    while (weft__json_next(a, &m)) {
        const weft__json *other = weft__json_get(b, m.key);
        if (!other || !weft__gram_schema_same(m.value, other)) return 0;
    }
    return 1;
}

static unsigned type_of_value(const weft__json *v)
{
    double d;
    switch (weft__json_kind_of(v)) {
    case WEFT__JSON_NULL: return WEFT__GRAM_NULL_TYPE;
    case WEFT__JSON_BOOL: return WEFT__GRAM_BOOLEAN_TYPE;
    case WEFT__JSON_INT: return WEFT__GRAM_INTEGER_TYPE | WEFT__GRAM_NUMBER_TYPE;
    case WEFT__JSON_DOUBLE:
        return WEFT__GRAM_NUMBER_TYPE |
               (weft__json_double(v, &d) && floor(d) == d ? (unsigned)WEFT__GRAM_INTEGER_TYPE : 0u);
    case WEFT__JSON_STRING: return WEFT__GRAM_STRING_TYPE;
    case WEFT__JSON_ARRAY: return WEFT__GRAM_ARRAY_TYPE;
    default: return WEFT__GRAM_OBJECT_TYPE;
    }
}

/* ---- one value ---- */

typedef struct fitting {
    weft__gram_schema *c;
    const char *at;
    int depth;
    int named; /* 1: the value is one of the first schema's enum */
    int wide;  /* 1: for any reader of patterns, not all */
} fitting;

static int fits(fitting *f, const weft__json *schema, const weft__json *v);

int weft__gram_schema_exactly(const weft__json *v, long double *out)
{
    int64_t whole;
    double d;
    if (weft__json_int(v, &whole)) return *out = (long double)whole, 1;
    return weft__json_double(v, &d) ? (*out = d, 1) : 0;
}

/* As jsonschema has it: by the remainder of whole numbers, by the quotient of others. */
static int is_multiple(long double x, long double m)
{
    if (!(m > 0)) return 0;
    if (m == floorl(m)) return fmodl(x, m) == 0;
    const double quotient = (double)x / (double)m;
    return fabs(quotient) < 0x1p53 && floor(quotient) == quotient;
}

static int number_fits(const weft__json *schema, const weft__json *v)
{
    long double x, bound[4], m;
    int has[4];
    if (!weft__gram_schema_exactly(v, &x)) return 1;
    for (int i = 0; i < 4; i++)
        has[i] = weft__gram_schema_exactly(weft__gram_schema_bound(schema, !(i & 1), i >> 1), &bound[i]);
    if ((has[0] && x < bound[0]) || (has[1] && x > bound[1]) || (has[2] && x <= bound[2]) || (has[3] && x >= bound[3]))
        return 0;
    return !weft__gram_schema_exactly(weft__json_get(schema, "multipleOf"), &m) || is_multiple(x, m);
}

static int count_fits(const weft__json *schema, const char *least, const char *most, size_t n)
{
    int64_t bound;
    return (!weft__json_int(weft__json_get(schema, least), &bound) || (int64_t)n >= bound) &&
           (!weft__json_int(weft__json_get(schema, most), &bound) || (int64_t)n <= bound);
}

static int matches_each(fitting *f, const weft__json *schema, const char *key, const char *s, size_t n)
{
    const weft__json *all = weft__json_get(schema, key);
    size_t count = weft__json_kind_of(all) == WEFT__JSON_ARRAY ? weft__json_size(all) : all != NULL;
    for (size_t i = 0; i < count; i++) {
        const weft__json *one = weft__json_kind_of(all) == WEFT__JSON_ARRAY ? weft__json_at(all, i) : all;
        if (!weft__gram_schema_matches(f->c, f->at, key, one, s, n, f->wide)) return 0;
    }
    return 1;
}

static int string_fits(fitting *f, const weft__json *schema, const weft__json *v)
{
    const char *s;
    size_t n, characters = 0;
    if (!weft__json_string(v, &s, &n)) return 1;
    for (size_t i = 0; i < n; i++) characters += ((unsigned char)s[i] & 0xC0) != 0x80;
    return count_fits(schema, "minLength", "maxLength", characters) && matches_each(f, schema, "pattern", s, n) &&
           matches_each(f, schema, "format", s, n);
}

static int array_fits(fitting *f, const weft__json *schema, const weft__json *v)
{
    const weft__gram_schema_elements e = weft__gram_schema_elements_of(schema);
    size_t n = weft__json_size(v);
    int unique = 0;
    if (weft__json_kind_of(v) != WEFT__JSON_ARRAY) return 1;
    if (!count_fits(schema, "minItems", "maxItems", n)) return 0;
    weft__json_bool(weft__json_get(schema, "uniqueItems"), &unique);
    for (size_t i = 0; i < n; i++) {
        const weft__json *one = weft__json_at(e.first, i) ? weft__json_at(e.first, i) : e.others;
        if (one && !fits(f, one, weft__json_at(v, i))) return 0;
        for (size_t k = 0; unique && k < i; k++)
            if (weft__gram_schema_same(weft__json_at(v, i), weft__json_at(v, k))) return 0;
    }
    return 1;
}

static int member_fits(fitting *f, const weft__json *schema, const weft__json_member *m)
{
    const weft__json *own = weft__json_get(weft__json_get(schema, "properties"), m->key),
                     *more = weft__json_get(schema, "additionalProperties"),
                     *names = weft__json_get(schema, "propertyNames");
    weft__json_member p = {0};
    int known = own != NULL, ok = !own || fits(f, own, m->value);
    while (ok && weft__json_next(weft__json_get(schema, "patternProperties"), &p)) {
        weft__json *pattern = weft__json_new_string(p.key, p.key_len);
        int matches = weft__gram_schema_matches(f->c, f->at, "patternProperties", pattern, m->key, m->key_len, f->wide);
        weft__json_free(&pattern);
        known |= matches;
        ok = !matches || fits(f, p.value, m->value);
    }
    if (ok && names) {
        weft__json *name = weft__json_new_string(m->key, m->key_len);
        ok = fits(f, names, name);
        weft__json_free(&name);
    }
    return ok && (known || !more || fits(f, more, m->value));
}

static int object_fits(fitting *f, const weft__json *schema, const weft__json *v)
{
    const weft__json *required = weft__json_get(schema, "required");
    weft__json_member m = {0};
    const char *name;
    size_t n;
    if (weft__json_kind_of(v) != WEFT__JSON_OBJECT) return 1;
    if (!count_fits(schema, "minProperties", "maxProperties", weft__json_size(v))) return 0;
    for (size_t i = 0; i < weft__json_size(required); i++)
        if (!weft__json_string(weft__json_at(required, i), &name, &n) || !weft__json_get(v, name)) return 0;
    while (weft__json_next(v, &m))
        if (!member_fits(f, schema, &m)) return 0;
    return 1;
}

/* How many schemas of a list fit; all of them without the list. */
static size_t count_fitting(fitting *f, const weft__json *list, const weft__json *v)
{
    size_t n = 0;
    for (size_t i = 0; i < weft__json_size(list); i++) n += (size_t)fits(f, weft__json_at(list, i), v);
    return n;
}

/* 1 when the value does not fit: for no reader of patterns where it is to be valid for all, else for some. */
static int lacks(fitting *f, const weft__json *schema, const weft__json *v)
{
    f->wide = !f->wide;
    const int yes = fits(f, schema, v);
    f->wide = !f->wide;
    return !yes && !weft__gram_schema_failed(f->c);
}

/* Where readers differ about `if`, both parts hold for a value that is to be valid for all. */
static int conditions_fit(fitting *f, const weft__json *schema, const weft__json *v)
{
    const weft__json *lacked = weft__json_get(schema, "not"), *when = weft__json_get(schema, "if"),
                     *then = weft__json_get(schema, "then"), *other = weft__json_get(schema, "else");
    if (lacked && !lacks(f, lacked, v)) return 0;
    if (!when || (!then && !other)) return 1;
    const int surely = f->wide ? !lacks(f, when, v) : fits(f, when, v),
              perhaps = f->wide ? fits(f, when, v) : !lacks(f, when, v);
    const int first = !then || fits(f, then, v), second = !other || fits(f, other, v);
    if (f->wide) return (perhaps && first) || (!surely && second);
    return (!perhaps || first) && (surely || second);
}

/* What a member's being there asks of the object. */
static int dependents_fit(fitting *f, const weft__json *schema, const char *key, const weft__json *v)
{
    weft__json_member m = {0};
    const char *name;
    size_t n;
    if (weft__json_kind_of(v) != WEFT__JSON_OBJECT) return 1;
    while (weft__json_next(weft__json_get(schema, key), &m)) {
        if (!weft__json_get(v, m.key)) continue;
        if (weft__json_kind_of(m.value) != WEFT__JSON_ARRAY && !fits(f, m.value, v)) return 0;
        for (size_t i = 0; i < weft__json_size(m.value) && weft__json_kind_of(m.value) == WEFT__JSON_ARRAY; i++)
            if (!weft__json_string(weft__json_at(m.value, i), &name, &n) || !weft__json_get(v, name)) return 0;
    }
    return 1;
}

static int combinations_fit(fitting *f, const weft__json *schema, const weft__json *v)
{
    const weft__json *ref = weft__json_get(schema, "$ref"), *all = weft__json_get(schema, "allOf"),
                     *any = weft__json_get(schema, "anyOf"), *one = weft__json_get(schema, "oneOf");
    return (!ref || fits(f, weft__gram_schema_follow(f->c, ref, f->at), v)) &&
           (!all || count_fitting(f, all, v) == weft__json_size(all)) && (!any || count_fitting(f, any, v)) &&
           (!one || count_fitting(f, one, v) == 1) && conditions_fit(f, schema, v) &&
           dependents_fit(f, schema, "dependentRequired", v) && dependents_fit(f, schema, "dependentSchemas", v) &&
           dependents_fit(f, schema, "dependencies", v);
}

static int is_named(fitting *f, const weft__json *schema, const weft__json *v)
{
    const weft__json *one = weft__json_get(schema, "const"), *list = weft__json_get(schema, "enum");
    int listed = !list || f->named;
    f->named = 0;
    if (!listed && !weft__gram_schema_steps(f->c, weft__json_size(list) / 8, f->at)) return 0;
    for (size_t i = 0; i < weft__json_size(list) && !listed; i++)
        listed = weft__gram_schema_same(weft__json_at(list, i), v);
    return listed && (!one || weft__gram_schema_same(one, v));
}

static int fits(fitting *f, const weft__json *schema, const weft__json *v)
{
    int yes = 0, n[4], ok = 0;
    if (!weft__gram_schema_step(f->c, f->at)) return 0;
    if (weft__gram_schema_is_false(schema)) return 0;
    if (weft__json_bool(schema, &yes)) return yes;
    if (weft__json_bool(weft__json_get(schema, "nullable"), &yes) && yes && weft__json_is_null(v)) return 1;
    if (f->depth > MAX_FITTED) {
        weft__gram_schema_fail(f->c, WEFT_UNSUPPORTED, f->at, NULL, "whether a value fits leads too deep");
        return 0;
    }
    if (!weft__gram_schema_count_keywords(f->c, schema, f->at, n)) return 0;
    f->depth++;
    ok = weft__gram_schema_own_types(f->c, schema, f->at) & type_of_value(v) && is_named(f, schema, v) &&
         number_fits(schema, v) && string_fits(f, schema, v) && array_fits(f, schema, v) && object_fits(f, schema, v) &&
         combinations_fit(f, schema, v);
    f->depth--;
    return ok && !weft__gram_schema_failed(f->c);
}

int weft__gram_schema_fits(weft__gram_schema *c, const weft__json *schema, const weft__json *v, const char *at)
{
    fitting f = {.c = c, .at = at};
    return fits(&f, schema, v);
}

int weft__gram_schema_allows(weft__gram_schema *c, const weft__json *schema, const weft__json *v, const char *at)
{
    fitting f = {.c = c, .at = at, .named = 1};
    return fits(&f, schema, v);
}

int weft__gram_schema_may_fit(weft__gram_schema *c, const weft__json *schema, const weft__json *v, const char *at)
{
    fitting f = {.c = c, .at = at, .wide = 1};
    return fits(&f, schema, v);
}
