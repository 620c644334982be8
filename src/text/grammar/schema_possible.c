// SPDX-License-Identifier: Apache-2.0
/* schema_possible.c: types of which no value fits a schema without combinations, as far as its bounds, counts and
 * required members tell: they are left out where several schemas are put together. Stateless. */
#include <math.h>

#include "text/grammar/schema_parts.h"

static int is_above(const weft__json *flat, const char *least, const char *most)
{
    int64_t x, y;
    return weft__json_int(weft__json_get(flat, least), &x) && weft__json_int(weft__json_get(flat, most), &y) && x > y;
}

/* 1 when no number lies between the bounds. */
static int has_no_number(const weft__json *flat, int whole)
{
    long double low = -INFINITY, high = INFINITY, x;
    int open = 0;
    for (int exclusive = 0; exclusive < 2; exclusive++) {
        if (weft__gram_schema_exactly(weft__gram_schema_bound(flat, 1, exclusive), &x) && x >= low) {
            open |= exclusive;
            low = whole ? (exclusive && x == floorl(x) ? x + 1 : ceill(x)) : x;
        }
        if (weft__gram_schema_exactly(weft__gram_schema_bound(flat, 0, exclusive), &x) && x <= high) {
            open |= exclusive;
            high = whole ? (exclusive && x == floorl(x) ? x - 1 : floorl(x)) : x;
        }
    }
    if (fabsl(low) > 0x1p63L || fabsl(high) > 0x1p63L) return low > high && !whole; /* perhaps rounded */
    return low > high || (low == high && open && !whole);
}

/* How many of the names that are required are not listed before. */
static size_t count_names(const weft__json *required)
{
    enum { MOST = 64 };
    size_t n = 0, count = weft__json_size(required);
    for (size_t i = 0; i < count && count <= MOST; i++) {
        size_t k = 0;
        while (k < i && !weft__json_equal(weft__json_at(required, k), weft__json_at(required, i))) k++;
        n += k == i;
    }
    return n;
}

/* 1 when there are more members than there may be, or fewer than there must be. */
static int has_no_count(const weft__json *flat, int closed)
{
    int64_t most, least;
    size_t n = 0;
    weft__json_member m = {0};
    while (weft__json_next(weft__json_get(flat, "properties"), &m)) n += !weft__gram_schema_is_false(m.value);
    if (closed && weft__json_int(weft__json_get(flat, "minProperties"), &least) && least > (int64_t)n) return 1;
    return weft__json_int(weft__json_get(flat, "maxProperties"), &most) &&
           most < (int64_t)count_names(weft__json_get(flat, "required"));
}

/* 1 when a member is required that may not be there. */
static int has_no_object(const weft__json *flat)
{
    const weft__json *required = weft__json_get(flat, "required"), *properties = weft__json_get(flat, "properties");
    const int closed = weft__gram_schema_is_false(weft__json_get(flat, "additionalProperties")) &&
                       !weft__json_size(weft__json_get(flat, "patternProperties"));
    for (size_t i = 0; i < weft__json_size(required); i++) {
        const char *name;
        size_t n;
        if (!weft__json_string(weft__json_at(required, i), &name, &n)) continue;
        const weft__json *own = weft__json_get(properties, name);
        if (own ? weft__gram_schema_is_false(own) : closed) return 1;
    }
    return has_no_count(flat, closed) || is_above(flat, "minProperties", "maxProperties");
}

int weft__gram_schema_keep_possible(weft__gram_schema *c, weft__json *flat, const char *at)
{
    const unsigned before = weft__gram_schema_own_types(c, flat, at);
    unsigned types = before;
    if (types & WEFT__GRAM_OBJECT_TYPE && has_no_object(flat)) types &= ~(unsigned)WEFT__GRAM_OBJECT_TYPE;
    if (is_above(flat, "minLength", "maxLength")) types &= ~(unsigned)WEFT__GRAM_STRING_TYPE;
    if (is_above(flat, "minItems", "maxItems")) types &= ~(unsigned)WEFT__GRAM_ARRAY_TYPE;
    if (has_no_number(flat, 0)) types &= ~(unsigned)(WEFT__GRAM_NUMBER_TYPE | WEFT__GRAM_INTEGER_TYPE);
    if (!(types & WEFT__GRAM_NUMBER_TYPE) && has_no_number(flat, 1)) types &= ~(unsigned)WEFT__GRAM_INTEGER_TYPE;
    if (types && types != before) weft__gram_schema_set_types(c, flat, types);
    return types != 0;
}
