/* print.c: values as text, the way Python prints them (value.h).
 * A container that holds any of the user's text is the user's as a whole once printed: its brackets and quotes come from the
 * user's structure as much as from us. Owned by the rendering. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/text.h"
#include "text/jinja/value.h"

size_t weft__j_print_double(double value, char out[32])
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
    return (size_t)snprintf(out, 32, "%s%.*s.%.*s", sign, exponent + 1, digits, n - exponent - 1, digits + exponent + 1);
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

static weft_status put_repr_str(weft__jctx *c, weft__jbuf *b, const weft__jstr *s)
{
    char quote = '\'';
    if (memchr(s->data, '\'', s->len) && !memchr(s->data, '"', s->len)) quote = '"';
    if (s->markup) WEFT__J_TRY(weft__j_puts(c, b, "Markup("));
    WEFT__J_TRY(weft__j_spend(c, s->len / 16));
    WEFT__J_TRY(weft__j_put(c, b, &quote, 1, 0));
    uint32_t hint = 0;
    size_t from = 0;
    for (size_t at = 0, n; at < s->len; at += n) {
        uint32_t cp;
        char room[16];
        n = weft__utf8_decode(s->data + at, s->len - at, &cp, NULL);
        const char *escape = repr_escape(cp, quote, room);
        if (!escape) continue;
        WEFT__J_TRY(weft__j_put_slice(c, b, s, from, at));
        WEFT__J_TRY(weft__j_put(c, b, escape, strlen(escape), weft__j_user_at(s, at, &hint)));
        from = at + n;
    }
    WEFT__J_TRY(weft__j_put_slice(c, b, s, from, s->len));
    WEFT__J_TRY(weft__j_put(c, b, &quote, 1, 0));
    return s->markup ? weft__j_puts(c, b, ")") : WEFT_OK;
}

static weft_status put_items(weft__jctx *c, weft__jbuf *b, const weft__jlist *list)
{
    for (size_t i = 0; i < list->n; i++) {
        if (i) WEFT__J_TRY(weft__j_puts(c, b, ", "));
        WEFT__J_TRY(weft__j_put_repr(c, b, list->items[i]));
    }
    return WEFT_OK;
}

static weft_status put_entries(weft__jctx *c, weft__jbuf *b, weft__jval v)
{
    for (size_t i = 0; i < v.u.dict->n; i++) {
        const weft__jentry *e = &v.u.dict->entries[i];
        int is_view = v.type == WEFT__J_VIEW, items = is_view && v.aux == WEFT__J_ITEMS;
        if (i) WEFT__J_TRY(weft__j_puts(c, b, ", "));
        if (items) WEFT__J_TRY(weft__j_puts(c, b, "("));
        if (!is_view || v.aux != WEFT__J_VALUES) WEFT__J_TRY(weft__j_put_repr(c, b, e->key));
        if (!is_view || items) WEFT__J_TRY(weft__j_puts(c, b, items ? ", " : ": "));
        if (!is_view || v.aux != WEFT__J_KEYS) WEFT__J_TRY(weft__j_put_repr(c, b, e->value));
        if (items) WEFT__J_TRY(weft__j_puts(c, b, ")"));
    }
    return WEFT_OK;
}

static weft_status put_container(weft__jctx *c, weft__jbuf *b, weft__jval v)
{
    static const char *const views[] = {"dict_keys([", "dict_values([", "dict_items(["};
    switch (v.type) {
    case WEFT__J_LIST:
        WEFT__J_TRY(weft__j_puts(c, b, "["));
        WEFT__J_TRY(put_items(c, b, v.u.list));
        return weft__j_puts(c, b, "]");
    case WEFT__J_TUPLE:
        WEFT__J_TRY(weft__j_puts(c, b, "("));
        WEFT__J_TRY(put_items(c, b, v.u.list));
        return weft__j_puts(c, b, v.u.list->n == 1 ? ",)" : ")");
    case WEFT__J_VIEW:
        WEFT__J_TRY(weft__j_puts(c, b, views[v.aux]));
        WEFT__J_TRY(put_entries(c, b, v));
        return weft__j_puts(c, b, "])");
    default:
        WEFT__J_TRY(weft__j_puts(c, b, v.type == WEFT__J_NAMESPACE ? "<Namespace {" : "{"));
        WEFT__J_TRY(put_entries(c, b, v));
        return weft__j_puts(c, b, v.type == WEFT__J_NAMESPACE ? "}>" : "}");
    }
}

static int is_container(weft__jval v)
{
    return v.type == WEFT__J_LIST || v.type == WEFT__J_TUPLE || v.type == WEFT__J_DICT || v.type == WEFT__J_VIEW ||
           v.type == WEFT__J_NAMESPACE;
}

static weft_status put_range(weft__jctx *c, weft__jbuf *b, const weft__jrange *r)
{
    char text[96];
    long long start = r->start, stop = r->stop, step = r->step;
    int n = step == 1 ? snprintf(text, sizeof text, "range(%lld, %lld)", start, stop)
                      : snprintf(text, sizeof text, "range(%lld, %lld, %lld)", start, stop, step);
    return weft__j_put(c, b, text, (size_t)n, 0);
}

static weft_status put_scalar(weft__jctx *c, weft__jbuf *b, weft__jval v)
{
    char text[64];
    switch (v.type) {
    case WEFT__J_NONE: return weft__j_puts(c, b, "None");
    case WEFT__J_BOOL: return weft__j_puts(c, b, v.u.i ? "True" : "False");
    case WEFT__J_INT: return weft__j_put(c, b, text, (size_t)snprintf(text, sizeof text, "%lld", (long long)v.u.i), 0);
    case WEFT__J_FLOAT: return weft__j_put(c, b, text, weft__j_print_double(v.u.f, text), 0);
    case WEFT__J_RANGE: return put_range(c, b, v.u.range);
    case WEFT__J_FUNCTION: snprintf(text, sizeof text, "<function %.40s>", v.u.function->name); break;
    case WEFT__J_METHOD: snprintf(text, sizeof text, "<method %.40s>", v.u.method->function->name); break;
    default: snprintf(text, sizeof text, "<%s>", weft__j_type_name(v)); break;
    }
    return weft__j_puts(c, b, text);
}

weft_status weft__j_put_repr(weft__jctx *c, weft__jbuf *b, weft__jval v)
{
    WEFT__J_TRY(weft__j_spend(c, 1));
    if (v.type == WEFT__J_STRING) return put_repr_str(c, b, v.u.s);
    if (v.type == WEFT__J_UNDEFINED) return weft__j_puts(c, b, "Undefined");
    if (!is_container(v)) return put_scalar(c, b, v);
    WEFT__J_TRY(weft__j_enter(c));
    weft_status status = put_container(c, b, v);
    weft__j_leave(c);
    return status;
}

weft_status weft__j_put_value(weft__jctx *c, weft__jbuf *b, weft__jval v)
{
    if (v.type == WEFT__J_STRING) return weft__j_put_str(c, b, v.u.s);
    if (v.type == WEFT__J_UNDEFINED) return WEFT_OK;
    if (!is_container(v)) return put_scalar(c, b, v);
    weft__jbuf whole = {0};
    WEFT__J_TRY(weft__j_put_repr(c, &whole, v));
    int user = 0;
    for (size_t i = 0; i < whole.n_runs; i++) user |= whole.runs[i].from_user;
    return weft__j_put(c, b, whole.data, whole.len, user);
}

weft_status weft__j_to_str(weft__jctx *c, weft__jval v, const weft__jstr **out)
{
    if (v.type != WEFT__J_STRING) {
        weft__jbuf b = {0};
        WEFT__J_TRY(weft__j_put_value(c, &b, v));
        WEFT__J_TRY(weft__j_buf_finish(c, &b, &v));
    }
    *out = v.u.s;
    return WEFT_OK;
}
