// SPDX-License-Identifier: Apache-2.0
/* schema_constant.c: a value of a JSON Schema (const, enum) as the texts that spell it, with white space where JSON has
 * some. */
#include "base/alloc.h"
#include "base/text.h"
#include "text/grammar/build.h"
#include "text/grammar/schema_parts.h"

static void constant_no_memory(weft__gram_schema *c)
{
    weft__gram_fail(weft__gram_schema_rules(c), WEFT_NO_MEMORY, "no memory for a grammar");
}

static void put_constant(weft__gram_schema *c, const weft__json *v, weft__strbuf *text, int32_t **items, size_t *n,
                         size_t *capacity);

/* Ends the text so far with a place for white space. */
static void put_blank(weft__gram_schema *c, weft__strbuf *text, int32_t **items, size_t *n, size_t *capacity)
{
    weft__gram *g = weft__gram_schema_rules(c);
    if (weft__gram_schema_failed(c)) return;
    if (!weft__grow(items, capacity, *n + 2, sizeof **items) || text->failed) {
        constant_no_memory(c);
        return;
    }
    (*items)[(*n)++] = weft__gram_text(g, text->data ? text->data : "", text->len);
    (*items)[(*n)++] = GRAM_REF(GRAM_RULE("ws"));
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
            weft__json_write_string(text, m.key, m.key_len);
            weft__strbuf_putc(text, ':');
            put_blank(c, text, items, n, capacity);
            value = m.value;
        }
        put_constant(c, value, text, items, n, capacity);
    }
    if (weft__json_size(v)) put_blank(c, text, items, n, capacity);
    weft__strbuf_putc(text, object ? '}' : ']');
}

/* The nesting of v is bounded by the reader of JSON. */
static void put_constant(weft__gram_schema *c, const weft__json *v, weft__strbuf *text, int32_t **items, size_t *n,
                         size_t *capacity)
{
    int kind = weft__json_kind_of(v);
    if (kind == WEFT__JSON_OBJECT || kind == WEFT__JSON_ARRAY) put_list(c, v, text, items, n, capacity);
    else weft__json_write(text, v, WEFT__JSON_COMPACT);
}

int32_t weft__gram_schema_constant(weft__gram_schema *c, const weft__json *v)
{
    weft__strbuf text = {0};
    int32_t *items = NULL, node = -1;
    size_t n = 0, capacity = 0;
    put_constant(c, v, &text, &items, &n, &capacity);
    if (text.failed || !weft__grow(&items, &capacity, n + 1, sizeof *items)) constant_no_memory(c);
    if (!weft__gram_schema_failed(c)) {
        items[n++] = weft__gram_text(weft__gram_schema_rules(c), text.data ? text.data : "", text.len);
        node = weft__gram_seq(weft__gram_schema_rules(c), items, n);
    }
    weft__free(items);
    weft__strbuf_free(&text);
    return node;
}
