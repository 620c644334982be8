// SPDX-License-Identifier: Apache-2.0
/* content.c: see content.h. */
#include "text/chat/content.h"

/* What a part says; NULL: it is of another type. */
static const char *text_member(const weft__json *type)
{
    return weft__json_is(type, "text") ? "text" : weft__json_is(type, "refusal") ? "refusal" : NULL;
}

static weft__chat_content_error check_part(const weft__json *part)
{
    const weft__json *type = weft__json_get(part, "type");
    if (weft__json_kind_of(type) != WEFT__JSON_STRING) return WEFT__CHAT_CONTENT_NO_TYPE;
    const char *member = text_member(type);
    if (!member) return WEFT__CHAT_CONTENT_OTHER;
    return weft__json_kind_of(weft__json_get(part, member)) == WEFT__JSON_STRING ? WEFT__CHAT_CONTENT_FINE
                                                                                 : WEFT__CHAT_CONTENT_NO_TEXT;
}

weft__chat_content_error weft__chat_content_check(const weft__json *content, size_t *part)
{
    weft__chat_content_error fault = WEFT__CHAT_CONTENT_FINE;
    int kind = weft__json_kind_of(content);
    if (!content || kind == WEFT__JSON_NULL || kind == WEFT__JSON_STRING) return WEFT__CHAT_CONTENT_FINE;
    if (kind != WEFT__JSON_ARRAY) return WEFT__CHAT_CONTENT_KIND;
    for (size_t i = 0; !fault && i < weft__json_size(content); i++) {
        if (part) *part = i;
        fault = check_part(weft__json_at(content, i));
    }
    return fault;
}

weft__chat_content_error weft__chat_content_flat(const weft__json *content, weft__json **out, size_t *part)
{
    weft__strbuf text = {0};
    const char *s;
    size_t n;
    weft__chat_content_error fault = weft__chat_content_check(content, part);
    *out = NULL;
    if (fault) return fault;
    if (weft__json_kind_of(content) == WEFT__JSON_STRING) *out = weft__json_copy(content);
    else {
        for (size_t i = 0; i < weft__json_size(content); i++) {
            const weft__json *part_i = weft__json_at(content, i);
            if (text.len) weft__strbuf_putc(&text, '\n');
            if (weft__json_string(weft__json_get(part_i, text_member(weft__json_get(part_i, "type"))), &s, &n))
                weft__strbuf_put(&text, s, n);
        }
        if (!text.failed) *out = weft__json_new_string(text.data ? text.data : "", text.len);
    }
    weft__strbuf_free(&text);
    return *out ? WEFT__CHAT_CONTENT_FINE : WEFT__CHAT_CONTENT_NO_MEMORY;
}
