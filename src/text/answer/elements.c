// SPDX-License-Identifier: Apache-2.0
/* elements.c: calls whose arguments are elements within elements: TAG<key>value TAG</key>. What of an object's members
 * are all called "item" is a list, unless the schema says otherwise. Stateless. */
#include <string.h>

#include "text/answer/call.h"
#include "text/answer/values.h"

enum { DEPTH_MAX = 64 };

typedef struct element_reader {
    const char *s, *tag;
    size_t n, at, n_tag;
} element_reader;

/* The name in TAG<name> at `at`, and where that ends; close: in TAG</name>. 0: there is none. */
static int take_tag(const element_reader *r, size_t at, int close, weft__answer_slice *name, size_t *end)
{
    size_t begin = at + r->n_tag + 1 + (size_t)close;
    if (begin > r->n || memcmp(r->s + at, r->tag, r->n_tag) || r->s[at + r->n_tag] != '<' ||
        (close && r->s[begin - 1] != '/'))
        return 0;
    const char *to = memchr(r->s + begin, '>', r->n - begin);
    size_t n = to ? (size_t)(to - r->s) - begin : 0;
    if (!n || n > WEFT__ANSWER_MAX_NAME || r->s[begin] == '/') return 0;
    *name = (weft__answer_slice){begin, n};
    *end = begin + n + 1;
    return 1;
}

static size_t skip_space(const element_reader *r, size_t at)
{
    while (at < r->n && weft__answer_is_space(r->s[at])) at++;
    return at;
}

static int put_element(element_reader *r, weft__strbuf *out, const weft__json *schema, int depth);

/* Elements up to the end of what they stand in. */
static int put_children(element_reader *r, weft__strbuf *out, const weft__json *schema, int depth)
{
    weft__answer_slice name;
    size_t end, at = skip_space(r, r->at);
    int list = take_tag(r, at, 0, &name, &end) && name.n == 4 && !memcmp(r->s + name.at, "item", 4) &&
               weft__answer_types(schema) & 1u << WEFT__JSON_ARRAY && depth;
    weft__strbuf_putc(out, list ? '[' : '{');
    for (int first = 1; take_tag(r, at, 0, &name, &end); first = 0) {
        const weft__json *of =
            list ? weft__answer_schema_items(schema) : weft__answer_schema_of(schema, r->s + name.at, name.n);
        if (!first) weft__strbuf_putc(out, ',');
        if (!list) {
            weft__json_write_string(out, r->s + name.at, name.n);
            weft__strbuf_putc(out, ':');
        }
        r->at = end;
        if (!put_element(r, out, of, depth + 1)) return 0;
        weft__answer_slice closed;
        if (!take_tag(r, r->at, 1, &closed, &end) || closed.n != name.n ||
            memcmp(r->s + name.at, r->s + closed.at, name.n))
            return 0;
        at = r->at = end;
        at = skip_space(r, at);
    }
    weft__strbuf_putc(out, list ? ']' : '}');
    if (!depth) r->at = at;
    return 1;
}

/* What stands between the tags of an element: elements, or a value. */
static int put_element(element_reader *r, weft__strbuf *out, const weft__json *schema, int depth)
{
    weft__answer_slice name;
    size_t end;
    const unsigned types = weft__answer_types(schema), array = 1u << WEFT__JSON_ARRAY, object = 1u << WEFT__JSON_OBJECT;
    if (depth > DEPTH_MAX) return 0;
    if (take_tag(r, skip_space(r, r->at), 0, &name, &end)) {
        if (!put_children(r, out, schema, depth)) return 0;
        r->at = skip_space(r, r->at);
        return 1;
    }
    const char *to = memmem(r->s + r->at, r->n - r->at, r->tag, r->n_tag);
    if (!to) return 0;
    size_t n = (size_t)(to - r->s) - r->at;
    if (!n && !(types & ~(array | object))) weft__strbuf_puts(out, types & array ? "[]" : "{}");
    else weft__answer_put_value(out, r->s + r->at, n, schema, 0);
    r->at += n;
    return 1;
}

int weft__answer_put_elements(weft__strbuf *out, const char *tag, const char *s, size_t n, const weft__json *schema)
{
    element_reader r = {.s = s, .n = n, .tag = tag, .n_tag = strlen(tag)};
    return put_children(&r, out, schema, 0) && r.at == n;
}
