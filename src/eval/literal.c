// SPDX-License-Identifier: Apache-2.0
/* literal.c: Python literals to JSON values (literal.h). */
#include "eval/literal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 32, DIGITS = 64 };

typedef struct literal {
    const char *s;
    size_t n, at;
    weft_error *err;
} literal;

static weft_status literal_refuse(const literal *l, const char *what)
{
    return weft_fail(l->err, WEFT_FORMAT, "no Python value: %s at byte %zu", what, l->at);
}

static weft_status made(const literal *l, const weft__json *v)
{
    return v ? WEFT_OK : weft_fail(l->err, WEFT_NO_MEMORY, "no memory for a Python value");
}

static int peek(const literal *l)
{
    return l->at < l->n ? (unsigned char)l->s[l->at] : -1;
}

static void literal_skip_space(literal *l)
{
    while (l->at < l->n && strchr(" \t\r\n\f", l->s[l->at]) && l->s[l->at]) l->at++;
}

static int takes_word(literal *l, const char *word)
{
    const size_t n = strlen(word);
    if (n > l->n - l->at || memcmp(l->s + l->at, word, n)) return 0;
    l->at += n;
    return 1;
}

/* ---- texts ---- */

static int hex_value(int c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;
}

/* n digits after \x, \u, \U */
static weft_status code_point(literal *l, int n, weft__strbuf *out)
{
    uint32_t cp = 0;
    for (int i = 0; i < n; i++, l->at++) {
        const int digit = hex_value(peek(l));
        if (digit < 0) return literal_refuse(l, "an escape without its digits");
        cp = cp << 4 | (uint32_t)digit;
    }
    if (cp > 0x10ffff || (cp >= 0xd800 && cp < 0xe000)) return literal_refuse(l, "an escape of no character");
    weft__strbuf_put_utf8(out, cp);
    return WEFT_OK;
}

/* Behind a backslash. */
static weft_status escape(literal *l, weft__strbuf *out)
{
    static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
    const int c = peek(l);
    const char *simple = c > 0 ? memchr(from, c, sizeof from - 1) : NULL;
    if (c < 0) return literal_refuse(l, "a text without its end");
    l->at++;
    if (simple) {
        weft__strbuf_putc(out, to[simple - from]);
        return WEFT_OK;
    }
    if (c == 'x' || c == 'u' || c == 'U') return code_point(l, c == 'x' ? 2 : c == 'u' ? 4 : 8, out);
    if (c == '\n') return WEFT_OK;
    if (c == 'N' || (c >= '0' && c <= '7')) return literal_refuse(l, "an escape that is not read");
    weft__strbuf_putc(out, '\\');
    weft__strbuf_putc(out, (char)c);
    return WEFT_OK;
}

static weft_status text(literal *l, weft__json **out)
{
    const int quote = peek(l);
    weft__strbuf t = {0};
    weft_status st = WEFT_OK;
    l->at++;
    while (!st && peek(l) != quote) {
        const int c = peek(l);
        if (c < 0 || c == '\n') st = literal_refuse(l, "a text without its end");
        else if (c == '\\') l->at++, st = escape(l, &t);
        else weft__strbuf_putc(&t, l->s[l->at++]);
    }
    l->at++;
    if (!st) st = made(l, *out = t.failed ? NULL : weft__json_new_string(t.data ? t.data : "", t.len));
    weft__strbuf_free(&t);
    return st;
}

/* ---- values ---- */

static weft_status literal_number(literal *l, weft__json **out)
{
    char digits[DIGITS], *end;
    size_t n = 0;
    while (l->at + n < l->n && n + 1 < sizeof digits && l->s[l->at + n] && strchr("+-.0123456789eE", l->s[l->at + n]))
        n++;
    memcpy(digits, l->s + l->at, n);
    digits[n] = 0;
    errno = 0;
    const long long whole = strtoll(digits, &end, 10);
    if (n && !*end && !errno) {
        *out = weft__json_new_int(whole);
    } else {
        const double v = strtod(digits, &end);
        if (!n || *end || !(v >= -1e308 && v <= 1e308)) return literal_refuse(l, "what is no value");
        *out = weft__json_new_double(v);
    }
    l->at += n;
    return made(l, *out);
}

static weft_status value(literal *l, int depth, weft__json **out);

static weft_status list(literal *l, int close, int depth, weft__json **out)
{
    weft_status st = made(l, *out = weft__json_new_array());
    l->at++;
    while (!st) {
        weft__json *item = NULL;
        literal_skip_space(l);
        if (peek(l) == close) break;
        st = value(l, depth + 1, &item);
        if (!st && !weft__json_append(*out, item)) st = made(l, NULL);
        literal_skip_space(l);
        if (!st && peek(l) != ',' && peek(l) != close) st = literal_refuse(l, "a list without its end");
        if (!st && peek(l) == ',') l->at++;
    }
    l->at++;
    if (st) weft__json_free(out);
    return st;
}

static weft_status value(literal *l, int depth, weft__json **out)
{
    literal_skip_space(l);
    if (depth == DEPTH) return weft_fail(l->err, WEFT_LIMIT, "a Python value nested deeper than %d", DEPTH);
    switch (peek(l)) {
    case '[': return list(l, ']', depth, out);
    case '(': return list(l, ')', depth, out);
    case '\'':
    case '"': return text(l, out);
    default:
        if (takes_word(l, "None")) return made(l, *out = weft__json_new_null());
        if (takes_word(l, "True")) return made(l, *out = weft__json_new_bool(1));
        if (takes_word(l, "False")) return made(l, *out = weft__json_new_bool(0));
        return literal_number(l, out);
    }
}

weft_status weft__eval_literal(const char *s, size_t n, weft__json **out, weft_error *err)
{
    literal l = {s, n, 0, err};
    *out = NULL;
    weft_status st = value(&l, 0, out);
    literal_skip_space(&l);
    if (!st && l.at < n) st = literal_refuse(&l, "something behind it");
    if (st) weft__json_free(out);
    return st;
}
