// SPDX-License-Identifier: Apache-2.0
/* head.c: see head.h. */
#include "hub/head.h"

#include <string.h>

enum { MAX_DIMS = 4, MAX_NESTING = 8 };
enum { GGUF_STRING = 8, GGUF_ARRAY = 9, GGUF_TYPES = 13 };

/* What is left of the bytes. `short_`: they end too early; `wrong`: they are no head. */
typedef struct head_reader {
    const uint8_t *p;
    size_t n, at;
    int is_short, is_wrong;
} head_reader;

static void skip(head_reader *r, uint64_t n)
{
    if (n > r->n - r->at) {
        r->is_short = 1;
        r->at = r->n;
    } else {
        r->at += (size_t)n;
    }
}

/* A little-endian number of n bytes; 0 where there are not as many. */
static uint64_t take(head_reader *r, size_t n)
{
    uint64_t v = 0;
    const size_t at = r->at;
    skip(r, n);
    for (size_t i = 0; !r->is_short && i < n; i++) v |= (uint64_t)r->p[at + i] << (8 * i);
    return v;
}

static void skip_string(head_reader *r)
{
    const uint64_t n = take(r, 8);
    skip(r, n);
}

static int goes_on(const head_reader *r)
{
    return !r->is_short && !r->is_wrong;
}

/* A value of that type; arrays may hold arrays. Each element has a byte at least, so no loop is longer than the
 * bytes. */
static void skip_value(head_reader *r, uint64_t type, int depth)
{
    static const uint8_t sizes[GGUF_TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (type >= GGUF_TYPES || depth > MAX_NESTING) {
        r->is_wrong = 1;
    } else if (type == GGUF_STRING) {
        skip_string(r);
    } else if (type == GGUF_ARRAY) {
        const uint64_t element = take(r, 4), count = take(r, 8);
        if (!goes_on(r)) return;
        if (element < GGUF_TYPES && sizes[element]) {
            if (count > UINT64_MAX / 8) r->is_wrong = 1;
            else skip(r, count * sizes[element]);
            return;
        }
        for (uint64_t i = 0; i < count && goes_on(r); i++) skip_value(r, element, depth + 1);
    } else {
        skip(r, sizes[type]);
    }
}

weft__hub_head_found weft__hub_head_gguf(const uint8_t *p, size_t n, size_t *end)
{
    head_reader r = {.p = p, .n = n};
    *end = 0;
    if (n && memcmp(p, "GGUF", n < 4 ? n : 4)) return WEFT__HUB_HEAD_NONE;
    skip(&r, 4);
    const uint64_t version = take(&r, 4), n_tensors = take(&r, 8), n_meta = take(&r, 8);
    if (n >= 8 && (version < 2 || version > 3)) return WEFT__HUB_HEAD_NONE;
    for (uint64_t i = 0; i < n_meta && goes_on(&r); i++) {
        skip_string(&r);
        const uint64_t type = take(&r, 4);
        if (goes_on(&r)) skip_value(&r, type, 0);
    }
    for (uint64_t i = 0; i < n_tensors && goes_on(&r); i++) {
        skip_string(&r);
        const uint64_t dims = take(&r, 4);
        if (dims > MAX_DIMS) r.is_wrong = 1;
        else skip(&r, 8 * dims + 4 + 8); /* sizes, type, offset */
    }
    *end = r.at;
    return r.is_wrong ? WEFT__HUB_HEAD_NONE : r.is_short ? WEFT__HUB_HEAD_MORE : WEFT__HUB_HEAD_WHOLE;
}

weft__hub_head_found weft__hub_head_safetensors(const uint8_t *p, size_t n, size_t *end)
{
    head_reader r = {.p = p, .n = n};
    const uint64_t length = take(&r, 8);
    if (!r.is_short && (length > WEFT__HUB_HEAD_MAX || length < 2)) return WEFT__HUB_HEAD_NONE;
    skip(&r, length);
    *end = r.at;
    return r.is_short ? WEFT__HUB_HEAD_MORE : WEFT__HUB_HEAD_WHOLE;
}
