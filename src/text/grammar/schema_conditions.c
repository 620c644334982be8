// SPDX-License-Identifier: Apache-2.0
/* schema_conditions.c: not, if, then, else and what depends on members, as alternatives put together with what stands
 * beside them. One thread. */
#include <string.h>

#include "text/grammar/schema_parts.h"

static void append_all(weft__gram_schema *c, weft__json *list, weft__json *more)
{
    for (size_t i = 0; i < weft__json_size(more); i++)
        weft__gram_schema_append(c, list, weft__json_copy(weft__json_at(more, i)));
    weft__json_free(&more);
}

/* A schema's own alternatives. */
static weft__json *alone(weft__gram_schema *c, const weft__json *schema, const char *at, int depth)
{
    return weft__gram_schema_beside(c, NULL, schema, at, depth);
}

/* What `first` asks together with each of `second`; takes that. */
static weft__json *asked_with(weft__gram_schema *c, const weft__json *first, weft__json *second, const char *at,
                              int depth)
{
    return first ? weft__gram_schema_each(c, second, alone(c, first, at, depth), at) : second;
}

/* Values that fit `if` and `then`, and those that do not fit `if`, but `else`. */
static weft__json *conditional(weft__gram_schema *c, const weft__json *schema, const char *at, int depth)
{
    const weft__json *when = weft__json_get(schema, "if");
    weft__json *list = asked_with(c, weft__json_get(schema, "then"), alone(c, when, at, depth), at, depth);
    weft__json *lacked = weft__gram_schema_failed(c) ? NULL : weft__gram_schema_negated(c, when, at, "if");
    for (size_t i = 0; i < weft__json_size(lacked) && !weft__gram_schema_failed(c); i++)
        append_all(
            c, list,
            asked_with(c, weft__json_get(schema, "else"), alone(c, weft__json_at(lacked, i), at, depth), at, depth));
    weft__json_free(&lacked);
    return list;
}

/* Objects without a member, and what the other ones are asked: a list of names, or a schema. */
static weft__json *dependent(weft__gram_schema *c, const weft__json_member *m, const char *key, const char *at,
                             int depth)
{
    weft__json *without = weft__json_new_object(), *none = weft__json_new_object(), *with = weft__json_new_object(),
               *names = weft__json_new_array();
    if (!strcmp(key, "dependentRequired") && weft__json_kind_of(m->value) != WEFT__JSON_ARRAY)
        weft__gram_schema_fail(c, WEFT_ARGUMENT, at, key, "must have lists of names");
    weft__gram_schema_append(c, names, weft__json_new_string(m->key, m->key_len));
    for (size_t i = 0; i < weft__json_size(m->value) && weft__json_kind_of(m->value) == WEFT__JSON_ARRAY; i++) {
        if (weft__json_kind_of(weft__json_at(m->value, i)) != WEFT__JSON_STRING)
            weft__gram_schema_fail(c, WEFT_ARGUMENT, at, key, "must have lists of names");
        weft__gram_schema_append(c, names, weft__json_copy(weft__json_at(m->value, i)));
    }
    weft__gram_schema_set(c, none, m->key, weft__json_new_bool(0));
    weft__gram_schema_set(c, without, "properties", none);
    weft__gram_schema_set(c, with, "required", names);
    weft__gram_schema_set_types(c, with, WEFT__GRAM_OBJECT_TYPE);
    weft__json *list = weft__json_new_array();
    weft__gram_schema_append(c, list, with);
    if (weft__json_kind_of(m->value) != WEFT__JSON_ARRAY && !weft__gram_schema_failed(c))
        list = asked_with(c, m->value, list, at, depth);
    weft__gram_schema_append(c, list, without);
    return list;
}

weft__json *weft__gram_schema_conditions(weft__gram_schema *c, weft__json *list, const weft__json *schema,
                                         const char *at, int depth)
{
    static const char *const keys[] = {"dependentRequired", "dependentSchemas", "dependencies"};
    const weft__json *lacked = weft__json_get(schema, "not");
    if (lacked && !weft__gram_schema_failed(c)) {
        weft__json *some = weft__gram_schema_negated(c, lacked, at, "not"), *flat = weft__json_new_array();
        for (size_t i = 0; i < weft__json_size(some) && !weft__gram_schema_failed(c); i++)
            append_all(c, flat, alone(c, weft__json_at(some, i), at, depth));
        weft__json_free(&some);
        list = weft__gram_schema_each(c, list, flat, at);
    }
    if (weft__json_get(schema, "if") && (weft__json_get(schema, "then") || weft__json_get(schema, "else")) &&
        !weft__gram_schema_failed(c))
        list = weft__gram_schema_each(c, list, conditional(c, schema, at, depth), at);
    for (size_t i = 0; i < 3; i++) {
        const weft__json *names = weft__json_get(schema, keys[i]);
        weft__json_member m = {0};
        if (names && weft__json_kind_of(names) != WEFT__JSON_OBJECT)
            weft__gram_schema_fail(c, WEFT_ARGUMENT, at, keys[i], "must be an object");
        while (weft__json_next(names, &m) && !weft__gram_schema_failed(c))
            list = weft__gram_schema_each(c, list, dependent(c, &m, keys[i], at, depth), at);
    }
    return list;
}
