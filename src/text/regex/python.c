// SPDX-License-Identifier: Apache-2.0
/* python.c: from the dialect of Python's `re` to PCRE2's (regex.h). They differ in little: \Z is the very end, \v is
 * U+000B, \uHHHH and \UHHHHHHHH are spelled otherwise, {,n} counts from 0; and escapes that re does not know are
 * errors there, while some of them mean something to PCRE2. Owns nothing; one call, one translation. */
#include <string.h>

#include "text/regex/regex.h"

static size_t hex_digits(const char *p, size_t n)
{
    size_t i = 0;
    while (i < n && ((p[i] >= '0' && p[i] <= '9') || ((p[i] | 0x20) >= 'a' && (p[i] | 0x20) <= 'f'))) i++;
    return i;
}

/* At the backslash: *used bytes of it became out's. */
static weft_status escape(const char *p, size_t n, int in_class, weft__strbuf *out, size_t *used, weft_error *err)
{
    const char c = n > 1 ? p[1] : 0;
    const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    const int is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (n < 2) return weft_fail(err, WEFT_FORMAT, "regular expression: a backslash at its end");
    *used = 2 + digits;
    if (digits) {
        if (n < *used || hex_digits(p + 2, digits) < digits)
            return weft_fail(err, WEFT_FORMAT, "regular expression: \\%c needs %zu hexadecimal digits", c, digits);
        weft__strbuf_printf(out, "\\x{%.*s}", (int)digits, p + 2);
        return WEFT_OK;
    }
    if (c == 'v') {
        weft__strbuf_puts(out, "\\x{b}");
        return WEFT_OK;
    }
    if (is_letter && !strchr(in_class ? "abdDsSwWfnrt" : "abABdDsSwWZfnrt", c))
        return weft_fail(err, WEFT_UNSUPPORTED, "regular expression: the escape \\%c%s", c,
                         in_class ? " within brackets" : "");
    if (c == 'Z') weft__strbuf_puts(out, "\\z");
    else weft__strbuf_put(out, p, 1 + (size_t)weft__utf8_length((unsigned char)c));
    *used = c == 'Z' ? 2 : 1 + (size_t)weft__utf8_length((unsigned char)c);
    return WEFT_OK;
}

weft_status weft__regex_translate_python(const char *pattern, size_t n, weft__strbuf *out, weft_error *err)
{
    size_t class = 0; /* where the open bracket's content begins; 0: none is open */
    if (n > WEFT__REGEX_MAX_BYTES) return weft_fail(err, WEFT_LIMIT, "regular expression: %zu bytes are too many", n);
    if (!weft__utf8_valid(pattern, n)) return weft_fail(err, WEFT_FORMAT, "regular expression: not UTF-8");
    for (size_t i = 0, used; i < n; i += used) {
        const char *p = pattern + i;
        used = 1;
        if (*p == '\\') {
            weft_status st = escape(p, n - i, class != 0, out, &used, err);
            if (st) return st;
            continue;
        }
        if (class && *p == '[' && i + 1 < n && strchr(":.=", p[1]))
            return weft_fail(err, WEFT_UNSUPPORTED, "regular expression: [%c within brackets; write \\[", p[1]);
        if (!class && *p == '[') class = i + 1 + (i + 1 < n && p[1] == '^');
        else if (class && *p == ']' && i > class) class = 0;
        else if (!class && *p == '{' && n - i > 1 && p[1] == ',') {
            weft__strbuf_puts(out, "{0");
            continue;
        }
        weft__strbuf_put(out, p, used);
    }
    return out->failed ? weft_fail(err, WEFT_NO_MEMORY, "regular expression: out of memory") : WEFT_OK;
}
