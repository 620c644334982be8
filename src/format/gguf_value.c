// SPDX-License-Identifier: Apache-2.0
/* gguf_value.c: encoded metadata values: their types, the check of a value from outside, and lists for walking arrays.
 *
 * Source: the GGUF specification: strings are a u64 length and bytes; arrays are a u32 element type, a u64 count and
 * the elements; a bool is one byte, 0 or 1. Stateless. */
#include "base/check.h"
#include "base/text.h"
#include "format/gguf_parts.h"

static const struct {
    const char *text;
    uint32_t bytes;
} types[WEFT__GGUF_TYPE_COUNT] = {
#define TYPE_ROW(name, value, bytes, text) [value] = {text, bytes},
    WEFT__GGUF_TYPE_LIST(TYPE_ROW)
#undef TYPE_ROW
};

const char *weft__gguf_type_name(uint32_t type)
{
    return type < WEFT__GGUF_TYPE_COUNT ? types[type].text : NULL;
}

uint32_t weft__gguf_type_bytes(uint32_t type)
{
    return type < WEFT__GGUF_TYPE_COUNT ? types[type].bytes : 0;
}

/* The fewest bytes that a value of a known type takes. */
static uint64_t least_bytes(uint32_t type)
{
    if (type == WEFT__GGUF_STRING) return 8;
    return type == WEFT__GGUF_ARRAY ? 12 : types[type].bytes;
}

static weft_status skip_string(weft__gguf_cursor *c, weft_error *err)
{
    uint64_t len;
    if (!weft__gguf_take_u64(c, &len)) return weft_fail(err, WEFT_FORMAT, "the file ends inside a string's length");
    if (!weft__gguf_take(c, len))
        return weft_fail(err, WEFT_FORMAT, "a string of %llu bytes is longer than the %llu bytes left in the file",
                         (unsigned long long)len, (unsigned long long)weft__gguf_left(c));
    return WEFT_OK;
}

static weft_status skip_fixed(weft__gguf_cursor *c, uint32_t type, uint64_t n, weft_error *err)
{
    uint64_t bytes;
    const unsigned char *p = weft__checked_mul(n, types[type].bytes, &bytes) ? weft__gguf_take(c, bytes) : NULL;
    if (!p) return weft_fail(err, WEFT_FORMAT, "the file ends inside a value of type %s", types[type].text);
    if (type == WEFT__GGUF_BOOL)
        for (uint64_t i = 0; i < n; i++)
            if (p[i] > 1) return weft_fail(err, WEFT_FORMAT, "a bool is stored as %u, which is neither 0 nor 1", p[i]);
    return WEFT_OK;
}

static weft_status skip(weft__gguf_cursor *c, uint32_t type, int depth, weft_error *err);

static weft_status skip_array(weft__gguf_cursor *c, int depth, weft_error *err)
{
    uint32_t type;
    uint64_t n;
    if (depth > WEFT__GGUF_DEPTH)
        return weft_fail(err, WEFT_FORMAT, "arrays are nested more than %d deep", WEFT__GGUF_DEPTH);
    if (!weft__gguf_take_u32(c, &type) || !weft__gguf_take_u64(c, &n))
        return weft_fail(err, WEFT_FORMAT, "the file ends inside an array's type and length");
    if (!weft__gguf_type_name(type)) return weft_fail(err, WEFT_FORMAT, "an array has unknown element type %u", type);
    if (n > weft__gguf_left(c) / least_bytes(type))
        return weft_fail(err, WEFT_FORMAT,
                         "an array of %llu values of type %s cannot fit into the %llu bytes left in the file",
                         (unsigned long long)n, types[type].text, (unsigned long long)weft__gguf_left(c));
    if (types[type].bytes) return skip_fixed(c, type, n, err);
    for (uint64_t i = 0; i < n; i++) {
        weft_status status = skip(c, type, depth + 1, err);
        if (status != WEFT_OK) return status;
    }
    return WEFT_OK;
}

static weft_status skip(weft__gguf_cursor *c, uint32_t type, int depth, weft_error *err)
{
    if (type == WEFT__GGUF_STRING) return skip_string(c, err);
    if (type == WEFT__GGUF_ARRAY) return skip_array(c, depth, err);
    return skip_fixed(c, type, 1, err);
}

weft_status weft__gguf_skip_value(weft__gguf_cursor *c, uint32_t type, weft_error *err)
{
    if (!weft__gguf_type_name(type)) return weft_fail(err, WEFT_FORMAT, "it has unknown value type %u", type);
    return skip(c, type, 1, err);
}

weft_status weft__gguf_take_name(weft__gguf_cursor *c, uint64_t limit, weft__gguf_str *out, weft_error *err)
{
    uint64_t len;
    if (!weft__gguf_take_u64(c, &len)) return weft_fail(err, WEFT_FORMAT, "the file ends inside its name's length");
    if (len == 0) return weft_fail(err, WEFT_FORMAT, "its name is empty");
    if (len > limit)
        return weft_fail(err, WEFT_FORMAT, "its name of %llu bytes exceeds the limit of %llu", (unsigned long long)len,
                         (unsigned long long)limit);
    const char *s = (const char *)weft__gguf_take(c, len);
    if (!s) return weft_fail(err, WEFT_FORMAT, "the file ends inside its name of %llu bytes", (unsigned long long)len);
    if (memchr(s, 0, (size_t)len)) return weft_fail(err, WEFT_FORMAT, "its name contains a NUL byte");
    if (!weft__utf8_valid(s, (size_t)len)) return weft_fail(err, WEFT_FORMAT, "its name is not valid UTF-8");
    *out = (weft__gguf_str){s, (size_t)len};
    return WEFT_OK;
}

/* Fills in *list for the accepted array at p. Returns the first byte behind it, or NULL without memory. The depth of
 * the recursion is that of the check. */
static const unsigned char *gguf_value_build(weft__arena *arena, const unsigned char *p, weft__gguf_list *list)
{
    uint64_t len;
    *list = (weft__gguf_list){0};
    memcpy(&list->type, p, 4);
    memcpy(&list->n, p + 4, 8);
    list->data = p += 12;
    list->elem_bytes = types[list->type].bytes;
    if (list->elem_bytes) return p + list->n * list->elem_bytes;
    if (list->type == WEFT__GGUF_STRING) {
        uint64_t *offsets = weft__arena_array(arena, (size_t)list->n, sizeof *offsets);
        if (!offsets) return NULL;
        list->offsets = offsets;
        for (uint64_t i = 0; i < list->n; i++, p += 8 + len) {
            offsets[i] = (uint64_t)(p - list->data);
            memcpy(&len, p, 8);
        }
        return p;
    }
    weft__gguf_list *inner = weft__arena_array(arena, (size_t)list->n, sizeof *inner);
    list->list = inner;
    if (!inner) return NULL;
    for (uint64_t i = 0; i < list->n && p; i++) p = gguf_value_build(arena, p, &inner[i]);
    return p;
}

const weft__gguf_list *weft__gguf_list_build(weft__arena *arena, const unsigned char *raw)
{
    weft__gguf_list *list = weft__arena_take(arena, sizeof *list);
    return list && gguf_value_build(arena, raw, list) ? list : NULL;
}
