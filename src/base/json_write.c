// SPDX-License-Identifier: Apache-2.0
/* json_write.c: JSON values to text (json.h). No state. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

void weft__json_write_string(weft__strbuf *out, const char *s, size_t n)
{
    static const char hex[] = "0123456789abcdef";
    static const char raw[] = "\"\\\b\f\n\r\t", letter[] = "\"\\bfnrt"; /* what has a short escape, and its letter */
    weft__strbuf_putc(out, '"');
    size_t plain = 0; /* s[plain..i) needs no escape and is copied at once */
    for (size_t i = 0; i < n;) {
        unsigned char c = (unsigned char)s[i];
        uint32_t cp = c;
        int bad = 0;
        size_t used = c < 0x80 ? 1 : weft__utf8_decode(s + i, n - i, &cp, &bad);
        if (c >= 0x20 && c != '"' && c != '\\' && c != 0x7f && !bad) {
            i += used;
            continue;
        }
        weft__strbuf_put(out, s + plain, i - plain);
        i += used;
        plain = i;
        const char *at = c ? strchr(raw, c) : NULL;
        if (bad) {
            weft__strbuf_put_utf8(out, cp);
        } else if (at) {
            char pair[2] = {'\\', letter[at - raw]};
            weft__strbuf_put(out, pair, 2);
        } else {
            char code[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
            weft__strbuf_put(out, code, 6);
        }
    }
    weft__strbuf_put(out, s + plain, n - plain);
    weft__strbuf_putc(out, '"');
}

void weft__json_write_double(weft__strbuf *out, double value)
{
    if (!isfinite(value)) {
        weft__strbuf_puts(out, "null");
        return;
    }
    char digits[40];
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value) break;
    }
    /* A program that set a locale may have given us its decimal comma. */
    char *comma = strchr(digits, ',');
    if (comma) *comma = '.';
    weft__strbuf_puts(out, digits);
    if (!strpbrk(digits, ".e")) weft__strbuf_puts(out, ".0");
}

static void write_value(weft__strbuf *out, const weft__json *v, weft__json_style style, int depth);

static void new_line(weft__strbuf *out, weft__json_style style, int depth)
{
    if (style != WEFT__JSON_INDENTED) return;
    weft__strbuf_putc(out, '\n');
    for (int i = 0; i < depth; i++) weft__strbuf_puts(out, "  ");
}

/* Before element i: the comma and what the style puts around it. */
static void separate(weft__strbuf *out, size_t i, weft__json_style style, int depth)
{
    if (i > 0) weft__strbuf_puts(out, style == WEFT__JSON_SPACED ? ", " : ",");
    new_line(out, style, depth);
}

static void write_array(weft__strbuf *out, const weft__json *v, weft__json_style style, int depth)
{
    size_t n = weft__json_size(v);
    weft__strbuf_putc(out, '[');
    for (size_t i = 0; i < n; i++) {
        separate(out, i, style, depth + 1);
        write_value(out, weft__json_at(v, i), style, depth + 1);
    }
    if (n > 0) new_line(out, style, depth);
    weft__strbuf_putc(out, ']');
}

static void write_object(weft__strbuf *out, const weft__json *v, weft__json_style style, int depth)
{
    weft__json_member m = {0};
    weft__strbuf_putc(out, '{');
    for (size_t i = 0; weft__json_next(v, &m); i++) {
        separate(out, i, style, depth + 1);
        weft__json_write_string(out, m.key, m.key_len);
        weft__strbuf_puts(out, style == WEFT__JSON_COMPACT ? ":" : ": ");
        write_value(out, m.value, style, depth + 1);
    }
    if (weft__json_size(v) > 0) new_line(out, style, depth);
    weft__strbuf_putc(out, '}');
}

/* Recursion ends: a parsed tree is at most WEFT__JSON_MAX_DEPTH deep, and a built one as deep as our code nests it. */
static void write_value(weft__strbuf *out, const weft__json *v, weft__json_style style, int depth)
{
    const char *s;
    size_t n;
    int64_t i;
    double d;
    int b = 0;
    switch (weft__json_kind_of(v)) {
    case WEFT__JSON_BOOL:
        weft__json_bool(v, &b);
        weft__strbuf_puts(out, b ? "true" : "false");
        break;
    case WEFT__JSON_INT:
        if (weft__json_int(v, &i)) weft__strbuf_printf(out, "%lld", (long long)i);
        break;
    case WEFT__JSON_DOUBLE:
        if (weft__json_double(v, &d)) weft__json_write_double(out, d);
        break;
    case WEFT__JSON_STRING:
        if (weft__json_string(v, &s, &n)) weft__json_write_string(out, s, n);
        break;
    case WEFT__JSON_ARRAY: write_array(out, v, style, depth); break;
    case WEFT__JSON_OBJECT: write_object(out, v, style, depth); break;
    default: weft__strbuf_puts(out, "null");
    }
}

void weft__json_write(weft__strbuf *out, const weft__json *v, weft__json_style style)
{
    write_value(out, v, style, 0);
}
