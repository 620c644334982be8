// SPDX-License-Identifier: Apache-2.0
/* print.c: values as text, the way Python prints them (value.h).
 * A container that holds any of the user's text is the user's as a whole once printed: its brackets and quotes come
 * from the user's structure as much as from us. Owned by the rendering. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/text.h"
#include "text/jinja/value.h"

size_t weft__jinja_print_double(double value, char out[32])
{
    if (isnan(value)) return (size_t)snprintf(out, 32, "nan");
    if (isinf(value)) return (size_t)snprintf(out, 32, value < 0 ? "-inf" : "inf");
    char text[40], digits[24];
    for (int precision = 0; precision <= 16; precision++) {
        snprintf(text, sizeof text, "%.*e", precision, fabs(value));
        if (strtod(text, NULL) == fabs(value)) break;
    }
    int n = 0, exponent = atoi(strchr(text, 'e') + 1);
    for (const char *p = text; *p != 'e'; p++) {
        if (*p >= '0' && *p <= '9') digits[n++] = *p; /* the decimal point depends on the locale */
    }
    while (n > 1 && digits[n - 1] == '0') n--;
    const char *sign = signbit(value) ? "-" : "";
    if (exponent < -4 || exponent >= 16) {
        return (size_t)snprintf(out, 32, "%s%c%s%.*se%c%02d", sign, digits[0], n > 1 ? "." : "", n - 1, digits + 1,
                                exponent < 0 ? '-' : '+', abs(exponent));
    }
    if (exponent < 0) return (size_t)snprintf(out, 32, "%s0.%.*s%.*s", sign, -exponent - 1, "0000", n, digits);
    if (n <= exponent + 1) {
        return (size_t)snprintf(out, 32, "%s%.*s%.*s.0", sign, n, digits, exponent + 1 - n, "0000000000000000");
    }
    return (size_t)snprintf(out, 32, "%s%.*s.%.*s", sign, exponent + 1, digits, n - exponent - 1,
                            digits + exponent + 1);
}

/* Python's str.isprintable for one character. */
static int is_printable(uint32_t cp)
{
    switch (utf8proc_category((utf8proc_int32_t)cp)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return 0;
    case UTF8PROC_CATEGORY_ZS: return cp == ' ';
    default: return 1;
    }
}

/* How repr writes one character; returns NULL when it stands for itself. */
static const char *repr_escape(uint32_t cp, char quote, char room[16])
{
    if (cp == '\n') return "\\n";
    if (cp == '\r') return "\\r";
    if (cp == '\t') return "\\t";
    if (cp == '\\') return "\\\\";
    if (cp == (unsigned char)quote) return quote == '"' ? "\\\"" : "\\'";
    if (is_printable(cp)) return NULL;
    snprintf(room, 16, cp < 0x100 ? "\\x%02x" : cp < 0x10000 ? "\\u%04x" : "\\U%08x", cp);
    return room;
}

static weft_status put_repr_str(weft__jinja_ctx *c, weft__jinja_buf *b, const weft__jinja_str *s)
{
    char quote = '\'';
    if (memchr(s->data, '\'', s->len) && !memchr(s->data, '"', s->len)) quote = '"';
    if (s->markup) WEFT__JINJA_TRY(weft__jinja_puts(c, b, "Markup("));
    WEFT__JINJA_TRY(weft__jinja_spend(c, s->len / 16));
    WEFT__JINJA_TRY(weft__jinja_put(c, b, &quote, 1, 0));
    uint32_t hint = 0;
    size_t from = 0;
    for (size_t at = 0, n; at < s->len; at += n) {
        uint32_t cp;
        char room[16];
        n = weft__utf8_decode(s->data + at, s->len - at, &cp, NULL);
        const char *escape = repr_escape(cp, quote, room);
        if (!escape) continue;
        WEFT__JINJA_TRY(weft__jinja_put_slice(c, b, s, from, at));
        WEFT__JINJA_TRY(weft__jinja_put(c, b, escape, strlen(escape), weft__jinja_user_at(s, at, &hint)));
        from = at + n;
    }
    WEFT__JINJA_TRY(weft__jinja_put_slice(c, b, s, from, s->len));
    WEFT__JINJA_TRY(weft__jinja_put(c, b, &quote, 1, 0));
    return s->markup ? weft__jinja_puts(c, b, ")") : WEFT_OK;
}

static weft_status put_items(weft__jinja_ctx *c, weft__jinja_buf *b, const weft__jinja_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        if (i) WEFT__JINJA_TRY(weft__jinja_puts(c, b, ", "));
        WEFT__JINJA_TRY(weft__jinja_put_repr(c, b, list->items[i]));
    }
    return WEFT_OK;
}

static weft_status put_entries(weft__jinja_ctx *c, weft__jinja_buf *b, weft__jinja_val v)
{
    for (size_t i = 0; i < v.u.dict->n; i++) {
        const weft__jinja_entry *e = &v.u.dict->entries[i];
        int is_view = v.type == WEFT__JINJA_VIEW, items = is_view && v.aux == WEFT__JINJA_ITEMS;
        if (i) WEFT__JINJA_TRY(weft__jinja_puts(c, b, ", "));
        if (items) WEFT__JINJA_TRY(weft__jinja_puts(c, b, "("));
        if (!is_view || v.aux != WEFT__JINJA_VALUES) WEFT__JINJA_TRY(weft__jinja_put_repr(c, b, e->key));
        if (!is_view || items) WEFT__JINJA_TRY(weft__jinja_puts(c, b, items ? ", " : ": "));
        if (!is_view || v.aux != WEFT__JINJA_KEYS) WEFT__JINJA_TRY(weft__jinja_put_repr(c, b, e->value));
        if (items) WEFT__JINJA_TRY(weft__jinja_puts(c, b, ")"));
    }
    return WEFT_OK;
}

static weft_status put_container(weft__jinja_ctx *c, weft__jinja_buf *b, weft__jinja_val v)
{
    static const char *const views[] = {"dict_keys([", "dict_values([", "dict_items(["};
    switch (v.type) {
    case WEFT__JINJA_LIST:
        WEFT__JINJA_TRY(weft__jinja_puts(c, b, "["));
        WEFT__JINJA_TRY(put_items(c, b, v.u.list));
        return weft__jinja_puts(c, b, "]");
    case WEFT__JINJA_TUPLE:
        WEFT__JINJA_TRY(weft__jinja_puts(c, b, "("));
        WEFT__JINJA_TRY(put_items(c, b, v.u.list));
        return weft__jinja_puts(c, b, v.u.list->n == 1 ? ",)" : ")");
    case WEFT__JINJA_VIEW:
        WEFT__JINJA_TRY(weft__jinja_puts(c, b, views[v.aux]));
        WEFT__JINJA_TRY(put_entries(c, b, v));
        return weft__jinja_puts(c, b, "])");
    default:
        WEFT__JINJA_TRY(weft__jinja_puts(c, b, v.type == WEFT__JINJA_NAMESPACE ? "<Namespace {" : "{"));
        WEFT__JINJA_TRY(put_entries(c, b, v));
        return weft__jinja_puts(c, b, v.type == WEFT__JINJA_NAMESPACE ? "}>" : "}");
    }
}

static int is_container(weft__jinja_val v)
{
    return v.type == WEFT__JINJA_LIST || v.type == WEFT__JINJA_TUPLE || v.type == WEFT__JINJA_DICT ||
           v.type == WEFT__JINJA_VIEW || v.type == WEFT__JINJA_NAMESPACE;
}

static weft_status put_range(weft__jinja_ctx *c, weft__jinja_buf *b, const weft__jinja_range *r)
{
    char text[96];
    long long start = r->start, stop = r->stop, step = r->step;
    int n = step == 1 ? snprintf(text, sizeof text, "range(%lld, %lld)", start, stop)
                      : snprintf(text, sizeof text, "range(%lld, %lld, %lld)", start, stop, step);
    return weft__jinja_put(c, b, text, (size_t)n, 0);
}

static weft_status put_scalar(weft__jinja_ctx *c, weft__jinja_buf *b, weft__jinja_val v)
{
    char text[64];
    switch (v.type) {
    case WEFT__JINJA_NONE: return weft__jinja_puts(c, b, "None");
    case WEFT__JINJA_BOOL: return weft__jinja_puts(c, b, v.u.i ? "True" : "False");
    case WEFT__JINJA_INT:
        return weft__jinja_put(c, b, text, (size_t)snprintf(text, sizeof text, "%lld", (long long)v.u.i), 0);
    case WEFT__JINJA_FLOAT: return weft__jinja_put(c, b, text, weft__jinja_print_double(v.u.f, text), 0);
    case WEFT__JINJA_RANGE: return put_range(c, b, v.u.range);
    case WEFT__JINJA_FUNCTION: snprintf(text, sizeof text, "<function %.40s>", v.u.function->name); break;
    case WEFT__JINJA_METHOD: snprintf(text, sizeof text, "<method %.40s>", v.u.method->function->name); break;
    default: snprintf(text, sizeof text, "<%s>", weft__jinja_type_name(v)); break;
    }
    return weft__jinja_puts(c, b, text);
}

weft_status weft__jinja_put_repr(weft__jinja_ctx *c, weft__jinja_buf *b, weft__jinja_val v)
{
    WEFT__JINJA_TRY(weft__jinja_spend(c, 1));
    if (v.type == WEFT__JINJA_STRING) return put_repr_str(c, b, v.u.s);
    if (v.type == WEFT__JINJA_UNDEFINED) return weft__jinja_puts(c, b, "Undefined");
    if (!is_container(v)) return put_scalar(c, b, v);
    WEFT__JINJA_TRY(weft__jinja_enter(c));
    weft_status status = put_container(c, b, v);
    weft__jinja_leave(c);
    return status;
}

weft_status weft__jinja_put_value(weft__jinja_ctx *c, weft__jinja_buf *b, weft__jinja_val v)
{
    if (v.type == WEFT__JINJA_STRING) return weft__jinja_put_str(c, b, v.u.s);
    if (v.type == WEFT__JINJA_UNDEFINED) return c->plain ? weft__jinja_fail_undefined(c, v) : WEFT_OK;
    if (!is_container(v)) return put_scalar(c, b, v);
    weft__jinja_buf whole = {0};
    WEFT__JINJA_TRY(weft__jinja_put_repr(c, &whole, v));
    int user = 0;
    for (size_t i = 0; i < whole.n_runs; i++) user |= whole.runs[i].from_user;
    return weft__jinja_put(c, b, whole.data, whole.len, user);
}

weft_status weft__jinja_to_str(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_str **out)
{
    if (v.type != WEFT__JINJA_STRING) {
        weft__jinja_buf b = {0};
        WEFT__JINJA_TRY(weft__jinja_put_value(c, &b, v));
        WEFT__JINJA_TRY(weft__jinja_buf_finish(c, &b, &v));
    }
    *out = v.u.s;
    return WEFT_OK;
}
