// SPDX-License-Identifier: Apache-2.0
/* schema_apart.c: whether two schemas exclude each other, as far as types, constants, bounds, patterns, formats,
 * lengths and required members tell. One thread. */
#include <stdio.h>
#include <string.h>

#include "text/grammar/schema_parts.h"

enum { MAX_FOLLOWED = 8, MAX_LOOKED = 8 };

/* The values that a schema names; NULL: it does not. */
static const weft__json *named_values(const weft__json *s, size_t *n)
{
    const weft__json *one = weft__json_get(s, "const"), *list = weft__json_get(s, "enum");
    *n = one ? 1 : weft__json_size(list);
    return one ? one : list;
}

/* 1 when b fits none of the values that a names. */
static int none_fits(weft__gram_schema *c, const weft__json *a, const weft__json *b, const char *at)
{
    size_t n;
    const weft__json *values = named_values(a, &n);
    if (!values || !n || n > 256) return 0;
    for (size_t i = 0; i < n; i++)
        if (weft__gram_schema_may_fit(c, b, weft__json_get(a, "const") ? values : weft__json_at(values, i), at))
            return 0;
    return !weft__gram_schema_failed(c);
}

static int values_apart(weft__gram_schema *c, const weft__json *a, const weft__json *b, const char *at)
{
    size_t n, m;
    const weft__json *x = named_values(a, &n), *y = named_values(b, &m);
    if (!x || !y || n > 256 || m > 256) return 0;
    for (size_t i = 0; i < n; i++) {
        if (!weft__gram_schema_steps(c, 1 + m / 8, at)) return 0;
        for (size_t k = 0; k < m; k++) {
            const weft__json *p = weft__json_get(a, "const") ? x : weft__json_at(x, i),
                             *q = weft__json_get(b, "const") ? y : weft__json_at(y, k);
            if (weft__gram_schema_same(p, q)) return 0;
        }
    }
    return n && m;
}

/* 1 when all numbers of a are below those of b. */
static int is_below(const weft__json *a, const weft__json *b)
{
    long double high = 0, low = 0;
    int open = 0, is_high = weft__gram_schema_exactly(weft__gram_schema_bound(a, 0, 0), &high),
        is_low = weft__gram_schema_exactly(weft__gram_schema_bound(b, 1, 0), &low);
    long double other;
    if (weft__gram_schema_exactly(weft__gram_schema_bound(a, 0, 1), &other) && (!is_high || other <= high)) {
        high = other;
        is_high = open = 1;
    }
    if (weft__gram_schema_exactly(weft__gram_schema_bound(b, 1, 1), &other) && (!is_low || other >= low)) {
        low = other;
        is_low = open = 1;
    }
    return is_high && is_low && (high < low || (open && high <= low));
}

/* 1 when all strings of a are shorter than those of b. */
static int is_shorter(const weft__json *a, const weft__json *b)
{
    int64_t most, least;
    return weft__json_int(weft__json_get(a, "maxLength"), &most) &&
           weft__json_int(weft__json_get(b, "minLength"), &least) && most < least;
}

/* The i-th pattern or format of a schema, which stands at *key; NULL: there are fewer. */
static const weft__json *held(const weft__json *schema, size_t i, const char **key)
{
    static const char *const keys[] = {"pattern", "format"};
    for (size_t k = 0; k < 2; k++) {
        const weft__json *v = weft__json_get(schema, keys[k]);
        const int list = weft__json_kind_of(v) == WEFT__JSON_ARRAY;
        const size_t n = list ? weft__json_size(v) : v != NULL;
        *key = keys[k];
        if (i < n) return list ? weft__json_at(v, i) : v;
        i -= n;
    }
    return NULL;
}

/* 1 when no string follows both expressions, for any reader of one of them. */
static int expressions_apart(weft__gram_schema *c, const weft__json *p, const char *p_key, const weft__json *q,
                             const char *q_key, const char *at)
{
    const char *s, *t;
    size_t n, m;
    if (!weft__gram_schema_step(c, at) || !weft__gram_schema_expression(c, at, p_key, p, &s, &n) ||
        !weft__gram_schema_expression(c, at, q_key, q, &t, &m))
        return 0;
    /* Of look-ahead the rest alone, which matches more. */
    weft__gram_held p_held[MAX_LOOKED], q_held[MAX_LOOKED];
    if (!weft__gram_schema_lookaheads(c, s, n, p_held, MAX_LOOKED) ||
        !weft__gram_schema_lookaheads(c, t, m, q_held, MAX_LOOKED))
        return 0;
    for (int wide = 0; wide < 2; wide++) {
        const weft__gram_automaton *x = weft__gram_schema_pattern(c, at, p_key, p_held[0].s, p_held[0].n, UINT32_MAX,
                                                                  wide),
                                   *y = weft__gram_schema_pattern(c, at, q_key, q_held[0].s, q_held[0].n, UINT32_MAX,
                                                                  !wide);
        if (!x || !y || !weft__gram_schema_nothing_common(c, at, x, y)) return 0;
    }
    return 1;
}

static int strings_apart(weft__gram_schema *c, const weft__json *a, const weft__json *b, const char *at)
{
    const weft__json *p, *q;
    const char *p_key, *q_key;
    if (is_shorter(a, b) || is_shorter(b, a)) return 1;
    for (size_t i = 0; (p = held(a, i, &p_key)); i++)
        for (size_t k = 0; (q = held(b, k, &q_key)); k++)
            if (expressions_apart(c, p, p_key, q, q_key, at)) return 1;
    return 0;
}

/* 1 when no object that b fits has that member. */
static int is_forbidden(const weft__json *b, const char *name)
{
    const weft__json *own = weft__json_get(weft__json_get(b, "properties"), name);
    if (own) return weft__gram_schema_is_false(own);
    return weft__gram_schema_is_false(weft__json_get(b, "additionalProperties")) &&
           !weft__json_size(weft__json_get(b, "patternProperties"));
}

/* A member that a requires, of which the schemas exclude each other; or which b forbids. */
static int members_apart(weft__gram_schema *c, const weft__json *a, const weft__json *b, const char *at, int depth)
{
    const weft__json *required = weft__json_get(a, "required");
    const weft__json *p = weft__json_get(a, "properties"), *q = weft__json_get(b, "properties");
    for (size_t i = 0; i < weft__json_size(required) && i < 64; i++) {
        const char *name;
        size_t n;
        if (!weft__json_string(weft__json_at(required, i), &name, &n)) continue;
        if (is_forbidden(b, name)) return 1;
        const weft__json *x = weft__json_get(p, name), *y = weft__json_get(q, name);
        if (x && y && weft__gram_schema_disjoint(c, x, y, at, depth + 1)) return 1;
    }
    return 0;
}

/* 1 when one of the schemas that `a` puts together excludes b, or each that it offers does. */
static int part_apart(weft__gram_schema *c, const weft__json *a, const weft__json *b, const char *at, int depth)
{
    static const char *const keys[] = {"anyOf", "oneOf"};
    const weft__json *all = weft__json_get(a, "allOf");
    for (size_t i = 0; i < weft__json_size(all) && i < 16; i++)
        if (weft__gram_schema_disjoint(c, weft__json_at(all, i), b, at, depth + 1)) return 1;
    for (size_t k = 0; k < 2; k++) {
        const weft__json *some = weft__json_get(a, keys[k]);
        size_t i = 0, n = weft__json_size(some);
        while (i < n && n <= 16 && weft__gram_schema_disjoint(c, weft__json_at(some, i), b, at, depth + 1)) i++;
        if (n && i == n) return 1;
    }
    return 0;
}

int weft__gram_schema_disjoint(weft__gram_schema *c, const weft__json *a, const weft__json *b, const char *at,
                               int depth)
{
    if (depth > 4 || !weft__gram_schema_step(c, at)) return 0;
    for (int i = 0; a && i < MAX_FOLLOWED && weft__json_get(a, "$ref"); i++)
        a = weft__gram_schema_follow(c, weft__json_get(a, "$ref"), at);
    for (int i = 0; b && i < MAX_FOLLOWED && weft__json_get(b, "$ref"); i++)
        b = weft__gram_schema_follow(c, weft__json_get(b, "$ref"), at);
    if (!a || !b) return 0;
    unsigned x = weft__gram_schema_types(c, a, at), y = weft__gram_schema_types(c, b, at);
    if (x & WEFT__GRAM_NUMBER_TYPE) x |= WEFT__GRAM_INTEGER_TYPE;
    if (y & WEFT__GRAM_NUMBER_TYPE) y |= WEFT__GRAM_INTEGER_TYPE;
    if (!(x & y) || values_apart(c, a, b, at) || none_fits(c, a, b, at) || none_fits(c, b, a, at)) return 1;
    if (part_apart(c, a, b, at, depth) || part_apart(c, b, a, at, depth)) return 1;
    if (!(x & y & ~(unsigned)(WEFT__GRAM_NUMBER_TYPE | WEFT__GRAM_INTEGER_TYPE)))
        return is_below(a, b) || is_below(b, a);
    if ((x & y) == WEFT__GRAM_STRING_TYPE) return strings_apart(c, a, b, at);
    return (x & y) == WEFT__GRAM_OBJECT_TYPE && depth <= 2 &&
           (members_apart(c, a, b, at, depth) || members_apart(c, b, a, at, depth));
}
