// SPDX-License-Identifier: Apache-2.0
/* schema_array.c: arrays of a JSON Schema as rules: their elements and how many there are. One thread. */
#include <stdio.h>

#include "text/grammar/build.h"
#include "text/grammar/schema_parts.h"

enum { MAX_PREFIX = 24 };

weft__gram_schema_elements weft__gram_schema_elements_of(const weft__json *schema)
{
    const weft__json *items = weft__json_get(schema, "items"), *prefix = weft__json_get(schema, "prefixItems");
    if (weft__json_kind_of(items) == WEFT__JSON_ARRAY)
        return (weft__gram_schema_elements){items, weft__json_get(schema, "additionalItems"), "items",
                                            "additionalItems"};
    if (weft__json_kind_of(prefix) == WEFT__JSON_OBJECT) /* llama.cpp takes it as `items` */
        return (weft__gram_schema_elements){NULL, items ? items : prefix, "prefixItems",
                                            items ? "items" : "prefixItems"};
    return (weft__gram_schema_elements){prefix, items, "prefixItems", "items"};
}

typedef struct array_parts {
    weft__gram_schema *c;
    weft__gram *g;
    const char *at;
    weft__gram_schema_elements e;
    size_t n_prefix;
} array_parts;

static int32_t element(const array_parts *a, size_t i)
{
    weft__gram *g = a->g;
    char number[24];
    snprintf(number, sizeof number, "%zu", i);
    if (i < a->n_prefix)
        return weft__gram_schema_use(a->c, weft__json_at(a->e.first, i), a->at, a->e.first_key, number);
    return a->e.others ? weft__gram_schema_use(a->c, a->e.others, a->at, a->e.others_key, NULL)
                       : GRAM_REF(GRAM_RULE("value"));
}

static int32_t separated(const array_parts *a, size_t i)
{
    weft__gram *g = a->g;
    int32_t sign = GRAM_TEXT(","), blank = GRAM_REF(GRAM_RULE("ws"));
    return GRAM_SEQ(sign, blank, element(a, i));
}

/* Elements from i on, all of them behind others. */
static int32_t elements_from(const array_parts *a, size_t i, uint32_t min, uint32_t max)
{
    weft__gram *g = a->g;
    if (weft__gram_schema_failed(a->c)) return -1;
    if (i >= max) return GRAM_TEXT("");
    if (i >= a->n_prefix)
        return GRAM_REPEAT(min > i ? min - (uint32_t)i : 0, max == UINT32_MAX ? max : max - (uint32_t)i,
                           separated(a, i));
    int32_t first = separated(a, i), rest = elements_from(a, i + 1, min, max);
    return i < min ? GRAM_SEQ(first, rest) : GRAM_OPTIONAL(GRAM_SEQ(first, rest));
}

int32_t weft__gram_schema_array(weft__gram_schema *c, const weft__json *schema, const char *at)
{
    weft__gram *g = weft__gram_schema_rules(c);
    array_parts a = {c, g, at, weft__gram_schema_elements_of(schema), 0};
    uint32_t min = 0, max = UINT32_MAX;
    int open = 1;
    weft__gram_schema_count(c, schema, at, "minItems", &min);
    weft__gram_schema_count(c, schema, at, "maxItems", &max);
    if (weft__gram_schema_failed(c)) return -1;
    if (a.e.first && weft__json_kind_of(a.e.first) != WEFT__JSON_ARRAY)
        return weft__gram_schema_fail(c, WEFT_ARGUMENT, at, "prefixItems", "must be a list of schemas");
    a.n_prefix = weft__json_size(a.e.first);
    if (a.n_prefix > MAX_PREFIX)
        return weft__gram_schema_fail(c, WEFT_LIMIT, at, a.e.first_key, "at most %d", MAX_PREFIX);
    if (weft__gram_schema_is_false(a.e.others) && max > a.n_prefix) max = (uint32_t)a.n_prefix;
    if (min > max) return weft__gram_schema_fail(c, WEFT_ARGUMENT, at, "minItems", "is above what there may be");
    if (weft__json_get(schema, "uniqueItems") && weft__json_bool(weft__json_get(schema, "uniqueItems"), &open) &&
        open && max > 1)
        return weft__gram_schema_fail(c, WEFT_UNSUPPORTED, at, "uniqueItems", "true is not supported");
    int32_t begin = GRAM_TEXT("["), blank = GRAM_REF(GRAM_RULE("ws")), end = GRAM_TEXT("]");
    if (max == 0) return GRAM_SEQ(begin, blank, end);
    int32_t first = element(&a, 0), rest = elements_from(&a, 1, min, max), last = GRAM_REF(GRAM_RULE("ws"));
    int32_t inside = GRAM_SEQ(first, rest, last);
    return GRAM_SEQ(begin, blank, min ? inside : GRAM_OPTIONAL(inside), end);
}
