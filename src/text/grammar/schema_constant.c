// SPDX-License-Identifier: Apache-2.0
/* schema_constant.c: values of enum and const as texts, with white space where JSON has it. One thread. */
#include <string.h>

#include "base/alloc.h"
#include "text/grammar/build.h"
#include "text/grammar/schema_parts.h"

static void constant_no_memory(weft__gram_schema *c)
{
    weft__gram_fail(c->g, WEFT_NO_MEMORY, "no memory for a grammar");
}

void weft__gram_schema_write(const weft__gram_schema *c, weft__strbuf *out, const char *s, size_t n)
{
    weft__strbuf whole = {0};
    weft__json_write_string(&whole, s, n);
    const char *at = whole.data, *end = at ? at + whole.len : NULL, *mark;
    const size_t length = c->mark ? strlen(c->mark) : 0;
    while (length && at && (mark = memmem(at, (size_t)(end - at), c->mark, length))) {
        weft__strbuf_put(out, at, (size_t)(mark - at));
        weft__strbuf_printf(out, "\\u%04x",
                            (unsigned char)*mark); /* marks begin with ASCII, or have no values behind */
        at = mark + 1;
    }
    if (at) weft__strbuf_put(out, at, (size_t)(end - at));
    out->failed |= whole.failed;
    weft__strbuf_free(&whole);
}

static void put_constant(weft__gram_schema *c, const weft__json *v, weft__strbuf *text, int32_t **items, size_t *n,
                         size_t *capacity);

/* Ends the text so far with a place for white space: the rule `ws`, or `gap` behind a colon. */
static void put_blank(weft__gram_schema *c, weft__strbuf *text, int32_t **items, size_t *n, size_t *capacity)
{
    weft__gram *g = c->g;
    if (weft__gram_schema_failed(c)) return;
    if (!weft__grow(items, capacity, *n + 2, sizeof **items) || text->failed) {
        constant_no_memory(c);
        return;
    }
    const int colon = text->len && text->data[text->len - 1] == ':';
    (*items)[(*n)++] = weft__gram_text(g, text->data ? text->data : "", text->len);
    (*items)[(*n)++] = colon ? GRAM_REF(GRAM_RULE("gap")) : GRAM_REF(GRAM_RULE("ws"));
    text->len = 0;
}

static void put_list(weft__gram_schema *c, const weft__json *v, weft__strbuf *text, int32_t **items, size_t *n,
                     size_t *capacity)
{
    weft__json_member m = {0};
    int object = weft__json_kind_of(v) == WEFT__JSON_OBJECT;
    weft__strbuf_putc(text, object ? '{' : '[');
    put_blank(c, text, items, n, capacity);
    for (size_t i = 0; i < weft__json_size(v) && !weft__gram_schema_failed(c); i++) {
        const weft__json *value = weft__json_at(v, i);
        if (i) {
            weft__strbuf_putc(text, ',');
            put_blank(c, text, items, n, capacity);
        }
        if (object && weft__json_next(v, &m)) {
            weft__gram_schema_write(c, text, m.key, m.key_len);
            weft__strbuf_putc(text, ':');
            put_blank(c, text, items, n, capacity);
            value = m.value;
        }
        put_constant(c, value, text, items, n, capacity);
    }
    if (weft__json_size(v)) put_blank(c, text, items, n, capacity);
    weft__strbuf_putc(text, object ? '}' : ']');
}

static void put_constant_string(weft__gram_schema *c, const weft__json *v, weft__strbuf *text)
{
    const char *s = "";
    size_t n = 0;
    weft__json_string(v, &s, &n);
    weft__gram_schema_write(c, text, s, n);
}

/* The nesting of v is bounded by the reader of JSON. */
static void put_constant(weft__gram_schema *c, const weft__json *v, weft__strbuf *text, int32_t **items, size_t *n,
                         size_t *capacity)
{
    int kind = weft__json_kind_of(v);
    if (kind == WEFT__JSON_OBJECT || kind == WEFT__JSON_ARRAY) put_list(c, v, text, items, n, capacity);
    else if (kind == WEFT__JSON_STRING) put_constant_string(c, v, text);
    else weft__json_write(text, v, WEFT__JSON_COMPACT);
}

static int32_t constant(weft__gram_schema *c, const weft__json *v)
{
    weft__strbuf text = {0};
    int32_t *items = NULL, node = -1;
    size_t n = 0, capacity = 0;
    put_constant(c, v, &text, &items, &n, &capacity);
    if (text.failed || !weft__grow(&items, &capacity, n + 1, sizeof *items)) constant_no_memory(c);
    if (!weft__gram_schema_failed(c)) {
        items[n++] = weft__gram_text(c->g, text.data ? text.data : "", text.len);
        node = weft__gram_seq(c->g, items, n);
    }
    weft__free(items);
    weft__strbuf_free(&text);
    return node;
}

/* enum and const: those of the values that are valid under what stands beside them. */
int32_t weft__gram_schema_constants(weft__gram_schema *c, const weft__json *schema, const char *at)
{
    const weft__json *list = weft__json_get(schema, "enum"), *one = list ? NULL : weft__json_get(schema, "const");
    int32_t *items = NULL, node = -1;
    size_t n = 0, capacity = 0, count = one ? 1 : weft__json_size(list);
    if (!one && (weft__json_kind_of(list) != WEFT__JSON_ARRAY || !count))
        return weft__gram_schema_fail(c, WEFT_ARGUMENT, at, "enum", "must be a list with at least one value");
    for (size_t i = 0; i < count && !weft__gram_schema_failed(c); i++) {
        const weft__json *v = one ? one : weft__json_at(list, i);
        if (!weft__gram_schema_allows(c, schema, v, at)) continue;
        if (!weft__grow(&items, &capacity, n + 2, sizeof *items)) constant_no_memory(c);
        else items[n++] = constant(c, v);
    }
    if (weft__gram_schema_is_nullable(schema) && n && !weft__gram_schema_failed(c))
        items[n++] = weft__gram_text(c->g, "null", 4);
    if (!n)
        weft__gram_schema_fail(c, WEFT_ARGUMENT, at, one ? "const" : "enum", "no value is one that the others allow");
    if (!weft__gram_schema_failed(c)) node = weft__gram_alt(c->g, items, n);
    weft__free(items);
    return node;
}
