// SPDX-License-Identifier: Apache-2.0
/* loose.c: see loose.h. */
#include "text/answer/loose.h"

#include <string.h>

#include "base/json.h"
#include "text/answer/json.h"

#define QUOTE "<|\"|>" /* Gemma's */
#define QUOTE_BYTES (sizeof QUOTE - 1)
/* Nested values; white space behind a quote that is looked through. */
enum { DEPTH_MAX = 100, LOOKAHEAD = 256 };

/* Whether s[0..n) begins with a quote, and which. 2: it may, once there is more. */
static int is_quote(const char *s, size_t n, char *kind)
{
    *kind = *s;
    if (*s == '"' || *s == '\'') return 1;
    size_t most = n < QUOTE_BYTES ? n : QUOTE_BYTES;
    *kind = '|';
    return memcmp(s, QUOTE, most) ? 0 : most == QUOTE_BYTES ? 1 : 2;
}

/* Whether a string that was begun with `quote` ends at s[0], with n bytes to look at, of which the text has no more
 * when `whole`. 2: there must be more to say so. */
static int ends_string(char quote, const char *s, size_t n, int whole)
{
    if (quote == '|') {
        char kind;
        return *s == '<' ? is_quote(s, n, &kind) : 0;
    }
    if (*s != quote) return 0;
    for (size_t i = 1; i < n; i++)
        if (!weft__answer_is_space(s[i]) || i == LOOKAHEAD) return strchr(",)]}:", s[i]) && s[i];
    return whole ? 1 : 2;
}

/* A character that is in no string. */
static int outside(weft__answer_loose *p, const char *s, size_t n)
{
    const char c = s[p->at];
    char kind;
    int quote = is_quote(s + p->at, n - p->at, &kind);
    if (quote == 2) return 0;
    if (quote) {
        p->quote = kind;
        p->at += kind == '|' ? QUOTE_BYTES : 1;
        return 1;
    }
    p->at++;
    if (c == '(' || c == '[' || c == '{') p->depth++;
    if (c == ')' || c == ']' || c == '}') p->depth--;
    return p->depth > DEPTH_MAX ? -1 : 1;
}

/* And one that is. */
static int inside(weft__answer_loose *p, const char *s, size_t n)
{
    if (s[p->at] == '\\' && p->quote != '|') {
        if (p->at + 1 == n) return 0;
        p->at += 2;
        return 1;
    }
    int end = ends_string(p->quote, s + p->at, n - p->at, 0);
    if (end == 2) return 0;
    p->at += end && p->quote == '|' ? QUOTE_BYTES : 1;
    if (end) p->quote = 0;
    return 1;
}

int weft__answer_loose_extent(weft__answer_loose *p, const char *s, size_t n)
{
    while (p->at < n) {
        int on = p->quote ? inside(p, s, n) : outside(p, s, n);
        if (on <= 0) return on;
        if (!p->depth) return p->quote ? -1 : 1;
    }
    return 0;
}

/* ---- to JSON ---- */

typedef struct loose_reader {
    const char *s;
    size_t n, at;
    int depth;
    weft__strbuf *out;
} loose_reader;

static int put_value(loose_reader *r);

static void skip_space(loose_reader *r)
{
    while (r->at < r->n && weft__answer_is_space(r->s[r->at])) r->at++;
}

static int take(loose_reader *r, char c)
{
    if (r->at == r->n || r->s[r->at] != c) return 0;
    r->at++;
    return 1;
}

/* The n hexadecimal digits at s, or -1. */
static int hex(const char *s, size_t n, size_t digits)
{
    int value = 0;
    if (n < digits) return -1;
    for (size_t i = 0; i < digits; i++) {
        const char *all = "0123456789abcdef", *at = s[i] ? strchr(all, s[i] | 0x20) : NULL;
        if (!at) return -1;
        value = value * 16 + (int)(at - all);
    }
    return value;
}

/* What stands behind a backslash, as Python has it; of pairs of surrogates, as JSON has them. Unknown ones stay. */
static void put_escape(loose_reader *r, weft__strbuf *text)
{
    static const char from[] = "ntrbfv0", to[] = "\n\t\r\b\f\v";
    const char *s = r->s + r->at;
    const size_t n = r->n - r->at;
    const char c = *s, *known = c ? strchr(from, c) : NULL;
    const int value = c == 'u' ? hex(s + 1, n - 1, 4) : c == 'x' ? hex(s + 1, n - 1, 2) : -1;
    r->at++;
    if (known) {
        weft__strbuf_putc(text, to[known - from]);
    } else if (value >= 0) {
        int low = value >> 10 == 0x36 && n > 6 && s[5] == '\\' && s[6] == 'u' ? hex(s + 7, n - 7, 4) : -1;
        r->at += c == 'u' ? 4 : 2;
        if (low >> 10 == 0x37) r->at += 6;
        weft__strbuf_put_utf8(text, low >> 10 == 0x37
                                        ? 0x10000 + ((uint32_t)(value & 0x3ff) << 10 | (uint32_t)(low & 0x3ff))
                                        : (uint32_t)value);
    } else {
        if (c != '\\' && c != '\'' && c != '"') weft__strbuf_putc(text, '\\');
        weft__strbuf_putc(text, c);
    }
}

/* A string whose first quote was taken. */
static int put_string(loose_reader *r, char quote)
{
    weft__strbuf text = {0};
    int ended = 0;
    while (r->at < r->n && !ended) {
        if (r->s[r->at] == '\\' && quote != '|' && r->at + 1 < r->n) {
            r->at++;
            put_escape(r, &text);
            continue;
        }
        ended = ends_string(quote, r->s + r->at, r->n - r->at, 1) == 1;
        if (!ended) weft__strbuf_putc(&text, r->s[r->at]);
        r->at += ended && quote == '|' ? QUOTE_BYTES : 1;
    }
    if (ended) weft__json_write_string(r->out, text.data ? text.data : "", text.len);
    r->out->failed |= text.failed;
    weft__strbuf_free(&text);
    return ended;
}

/* A run of characters of words. */
static size_t word(const loose_reader *r)
{
    size_t n = 0;
    while (r->at + n < r->n && !weft__answer_is_space(r->s[r->at + n]) && r->s[r->at + n] &&
           !strchr("\"'()[]{},:=<", r->s[r->at + n]))
        n++;
    return n;
}

static int word_is(const loose_reader *r, size_t n, const char *text)
{
    return n == strlen(text) && !memcmp(r->s + r->at, text, n);
}

/* A number, or a word for a value. */
static int put_word(loose_reader *r)
{
    static const char *const words[][2] = {{"True", "true"}, {"False", "false"}, {"None", "null"},
                                           {"true", "true"}, {"false", "false"}, {"null", "null"}};
    size_t n = word(r);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!word_is(r, n, words[i][0])) continue;
        weft__strbuf_puts(r->out, words[i][1]);
        r->at += n;
        return 1;
    }
    for (size_t i = 0; i < n; i++)
        if (!strchr("+-.0123456789eE", r->s[r->at + i])) return 0;
    weft__strbuf_put(r->out, r->s + r->at, n);
    r->at += n;
    return n > 0;
}

static int put_list(loose_reader *r, char end)
{
    weft__strbuf_putc(r->out, '[');
    for (int first = 1;; first = 0) {
        skip_space(r);
        if (take(r, end)) break;
        if (!first) weft__strbuf_putc(r->out, ',');
        if (!put_value(r)) return 0;
        skip_space(r);
        if (take(r, ',')) continue;
        if (!take(r, end)) return 0;
        break;
    }
    weft__strbuf_putc(r->out, ']');
    return 1;
}

/* A key without quotes is all up to `between`. */
static int put_key(loose_reader *r, char between)
{
    const size_t at = r->at;
    char quote;
    if (at < r->n && is_quote(r->s + at, r->n - at, &quote) == 1) {
        r->at += quote == '|' ? QUOTE_BYTES : 1;
        return put_string(r, quote);
    }
    while (r->at < r->n && r->s[r->at] != between && r->s[r->at] && !strchr("\"'()[]{},\n", r->s[r->at])) r->at++;
    size_t n = r->at - at;
    while (n && weft__answer_is_space(r->s[at + n - 1])) n--;
    weft__json_write_string(r->out, r->s + at, n);
    return n > 0;
}

/* `between`: what stands between key and value. */
static int put_members(loose_reader *r, char between, char end)
{
    weft__strbuf_putc(r->out, '{');
    for (int first = 1;; first = 0) {
        skip_space(r);
        if (take(r, end)) break;
        if (!first) weft__strbuf_putc(r->out, ',');
        if (!put_key(r, between)) return 0;
        skip_space(r);
        if (!take(r, between)) return 0;
        weft__strbuf_putc(r->out, ':');
        if (!put_value(r)) return 0;
        skip_space(r);
        if (take(r, ',')) continue;
        if (!take(r, end)) return 0;
        break;
    }
    weft__strbuf_putc(r->out, '}');
    return 1;
}

static int put_value(loose_reader *r)
{
    char quote;
    int ok;
    skip_space(r);
    if (r->at == r->n || r->depth == DEPTH_MAX) return 0;
    if (is_quote(r->s + r->at, r->n - r->at, &quote) == 1) {
        r->at += quote == '|' ? QUOTE_BYTES : 1;
        return put_string(r, quote);
    }
    r->depth++;
    if (take(r, '[')) ok = put_list(r, ']');
    else if (take(r, '(')) ok = put_list(r, ')');
    else if (take(r, '{')) ok = put_members(r, ':', '}');
    else ok = put_word(r);
    r->depth--;
    return ok;
}

static int at_end(loose_reader *r)
{
    skip_space(r);
    return r->at == r->n;
}

int weft__answer_loose_value(weft__strbuf *out, const char *s, size_t n)
{
    loose_reader r = {.s = s, .n = n, .out = out};
    return put_value(&r) && at_end(&r);
}

int weft__answer_loose_members(weft__strbuf *out, const char *s, size_t n)
{
    loose_reader r = {.s = s, .n = n, .out = out};
    if (take(&r, '(')) return put_members(&r, '=', ')') && at_end(&r);
    return take(&r, '{') && put_members(&r, ':', '}') && at_end(&r);
}
