// SPDX-License-Identifier: Apache-2.0
/* dialect.c: from Oniguruma's dialect (as Ruby reads it) to PCRE2's (regex.h).
 *
 * What differs, and is translated: X{n,m}+ repeats the group there and is possessive here; X{n}? makes the group
 * optional there and is lazy here; {,m}; \s excludes U+180E there; \w and \b follow Alphabetic, marks, decimal numbers
 * and connectors; \h is a hexadecimal digit; \v is U+000B; \uHHHH; [A&&[B]] intersects classes. What remains is refused
 * by name rather than guessed. Owns nothing; one call, one translation. */
#include <stdint.h>
#include <string.h>

#include "text/regex/regex.h"

/* Unicode's White_Space, for use inside brackets; and its complement. */
#define SPACES "\\t-\\r \\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
#define NO_SPACES                                                                                                      \
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}!-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}"       \
    "\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{10ffff}"
#define WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}"
#define HEX "0-9A-Fa-f"

#define MAX_GROUPS 100
#define NO_ATOM SIZE_MAX

typedef struct dialect {
    const char *p;
    size_t n, i;
    weft__strbuf *out;
    weft_error *err;
    size_t groups[MAX_GROUPS]; /* where the open groups began in out */
    int n_groups;
    size_t atom; /* where what a quantifier would repeat began in out */
} dialect;

static weft_status dialect_refuse(dialect *d, const char *what)
{
    return weft_fail(d->err, WEFT_UNSUPPORTED, "regular expression: %s at byte %zu is not supported", what, d->i);
}

static weft_status malformed(dialect *d, const char *what)
{
    return weft_fail(d->err, WEFT_FORMAT, "regular expression: %s at byte %zu", what, d->i);
}

static int peek(const dialect *d, size_t ahead)
{
    return d->i + ahead < d->n ? (unsigned char)d->p[d->i + ahead] : -1;
}

static int is_hex(int c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static void copy(dialect *d, size_t n)
{
    weft__strbuf_put(d->out, d->p + d->i, n);
    d->i += n;
}

/* \p{...}, \P{...} or \pL, at the backslash. */
static weft_status property(dialect *d)
{
    size_t n = 3;
    if (peek(d, 2) < 0) return malformed(d, "an unfinished \\p");
    if (peek(d, 2) >= 0x80) return malformed(d, "a \\p of no property"); /* of which one byte must not be taken alone */
    if (peek(d, 2) == '{') {
        while (peek(d, n) >= 0 && peek(d, n) != '}') n++;
        if (peek(d, n) < 0) return malformed(d, "an unfinished \\p{");
        n++;
    }
    copy(d, n);
    return WEFT_OK;
}

/* \xHH, \x{...} or \uHHHH, at the backslash. */
static weft_status code_point(dialect *d)
{
    if (peek(d, 1) == 'x' && peek(d, 2) == '{') {
        size_t n = 3;
        while (is_hex(peek(d, n))) n++;
        if (n == 3 || peek(d, n) != '}') return malformed(d, "a malformed \\x{...}");
        copy(d, n + 1);
        return WEFT_OK;
    }
    size_t digits = peek(d, 1) == 'u' ? 4 : 2;
    for (size_t k = 0; k < digits; k++) {
        if (!is_hex(peek(d, 2 + k))) return malformed(d, "a malformed \\x or \\u");
    }
    if (digits == 2 && peek(d, 2) >= '8') return dialect_refuse(d, "\\x of a byte beyond ASCII");
    weft__strbuf_puts(d->out, "\\x{");
    weft__strbuf_put(d->out, d->p + d->i + 2, digits);
    weft__strbuf_putc(d->out, '}');
    d->i += 2 + digits;
    return WEFT_OK;
}

/* Escapes that mean the same inside brackets and outside. 1: done (or failed, in *status); 0: it is none of them. */
static int common_escape(dialect *d, weft_status *status)
{
    int c = peek(d, 1);
    *status = WEFT_OK;
    if (c == 'p' || c == 'P') {
        *status = property(d);
    } else if (c == 'x' || c == 'u') {
        *status = code_point(d);
    } else if (c == 'v') {
        weft__strbuf_puts(d->out, "\\x{b}");
        d->i += 2;
    } else if (c > 0 && c < 0x80 && (strchr("dDnrtfae", c) || !((c | 32) >= 'a' && (c | 32) <= 'z')) &&
               !(c >= '0' && c <= '9')) {
        copy(d, 2); /* a class or control character of the same meaning, or quoted punctuation */
    } else {
        return 0;
    }
    return 1;
}

static weft_status refuse_escape(dialect *d)
{
    int c = peek(d, 1);
    if (c < 0) return malformed(d, "a backslash without anything behind it");
    char what[16] = "the escape \\?";
    what[12] = c > 32 && c < 127 ? (char)c : '?';
    return dialect_refuse(d, what);
}

static weft_status outer_escape(dialect *d)
{
    static const struct {
        char letter;
        const char *text;
        int is_atom;
    } rewritten[] = {
        {'s', "[" SPACES "]", 1},
        {'S', "[^" SPACES "]", 1},
        {'w', "[" WORD "]", 1},
        {'W', "[^" WORD "]", 1},
        {'h', "[" HEX "]", 1},
        {'H', "[^" HEX "]", 1},
        {'b', "(?:(?<=[" WORD "])(?![" WORD "])|(?<![" WORD "])(?=[" WORD "]))", 0},
        {'B', "(?:(?<=[" WORD "])(?=[" WORD "])|(?<![" WORD "])(?![" WORD "]))", 0},
        {'A', "\\A", 0},
        {'z', "\\z", 0},
        {'Z', "\\Z", 0},
    };
    size_t begin = d->out->len;
    weft_status status;
    d->atom = begin;
    if (common_escape(d, &status)) return status;
    for (size_t k = 0; k < sizeof rewritten / sizeof *rewritten; k++) {
        if (peek(d, 1) != rewritten[k].letter) continue;
        weft__strbuf_puts(d->out, rewritten[k].text);
        if (!rewritten[k].is_atom) d->atom = NO_ATOM;
        d->i += 2;
        return WEFT_OK;
    }
    return refuse_escape(d);
}

static weft_status class_escape(dialect *d)
{
    static const struct {
        char letter;
        const char *text;
    } rewritten[] = {{'s', SPACES}, {'S', NO_SPACES}, {'w', WORD}, {'h', HEX}, {'b', "\\x{8}"}};
    weft_status status;
    if (common_escape(d, &status)) return status;
    for (size_t k = 0; k < sizeof rewritten / sizeof *rewritten; k++) {
        if (peek(d, 1) != rewritten[k].letter) continue;
        weft__strbuf_puts(d->out, rewritten[k].text);
        d->i += 2;
        return WEFT_OK;
    }
    return refuse_escape(d);
}

/* Puts text at an earlier place of out. */
static void insert(weft__strbuf *out, size_t at, const char *text)
{
    size_t n = strlen(text);
    weft__strbuf_puts(out, text);
    if (out->failed) return;
    memmove(out->data + at + n, out->data + at, out->len - n - at);
    memcpy(out->data + at, text, n);
}

/* [...], at the bracket. [A&&[B]] becomes (?:[A](?<=[B])): one character of A that is also one of B. `inner`: the right
 * side of an intersection, which may not contain another. */
static weft_status bracket(dialect *d, int inner)
{
    size_t begin = d->out->len;
    copy(d, 1);
    int negated = peek(d, 0) == '^';
    if (negated) copy(d, 1);
    if (peek(d, 0) == ']') copy(d, 1);
    while (peek(d, 0) >= 0 && peek(d, 0) != ']') {
        weft_status status = WEFT_OK;
        if (peek(d, 0) == '\\') {
            status = class_escape(d);
        } else if (peek(d, 0) == '[') {
            status = dialect_refuse(d, peek(d, 1) == ':' ? "a POSIX class ([:name:])" : "a class within a class");
        } else if (peek(d, 0) == '&' && peek(d, 1) == '&') {
            if (inner || negated || peek(d, 2) != '[') return dialect_refuse(d, "this form of &&");
            d->i += 2;
            weft__strbuf_putc(d->out, ']');
            insert(d->out, begin, "(?:");
            weft__strbuf_puts(d->out, "(?<=");
            status = bracket(d, 1);
            if (status) return status;
            weft__strbuf_puts(d->out, "))");
            if (peek(d, 0) != ']') return dialect_refuse(d, "this form of &&");
            d->i++;
            return WEFT_OK;
        } else {
            copy(d, 1);
        }
        if (status) return status;
    }
    if (peek(d, 0) < 0) return malformed(d, "a class without its ]");
    copy(d, 1);
    return WEFT_OK;
}

static weft_status open_group(dialect *d)
{
    static const char *const heads[] = {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", "(?-i:"};
    if (d->n_groups == MAX_GROUPS) {
        return weft_fail(d->err, WEFT_LIMIT, "regular expression: groups nest more than %d deep", MAX_GROUPS);
    }
    if (peek(d, 1) == '*') return dialect_refuse(d, "(*");
    d->groups[d->n_groups++] = d->out->len;
    d->atom = NO_ATOM;
    if (peek(d, 1) != '?') {
        copy(d, 1);
        return WEFT_OK;
    }
    for (size_t k = 0; k < sizeof heads / sizeof *heads; k++) {
        size_t n = strlen(heads[k]);
        if (d->n - d->i >= n && !memcmp(d->p + d->i, heads[k], n)) {
            copy(d, n);
            return WEFT_OK;
        }
    }
    if (d->n - d->i >= 4 && !memcmp(d->p + d->i, "(?i)", 4)) {
        d->n_groups--;
        copy(d, 4);
        return WEFT_OK;
    }
    return dialect_refuse(d, "this kind of group ((?...)");
}

/* {n}, {n,}, {n,m} or {,m} at the brace. 1 and the numbers as text, or 0 when it is a literal brace. */
static int interval(const dialect *d, size_t *low_n, size_t *high_n, int *comma, size_t *total)
{
    size_t i = 1;
    while (peek(d, i) >= '0' && peek(d, i) <= '9') i++;
    *low_n = i - 1;
    *high_n = 0;
    *comma = peek(d, i) == ',';
    if (*comma) {
        size_t from = ++i;
        while (peek(d, i) >= '0' && peek(d, i) <= '9') i++;
        *high_n = i - from;
    }
    *total = i + 1;
    return peek(d, i) == '}' && (*low_n || *high_n);
}

static weft_status quantifier(dialect *d)
{
    size_t low_n, high_n, total;
    int comma;
    if (d->p[d->i] != '{') {
        copy(d, 1);
        if (peek(d, 0) == '+' || peek(d, 0) == '?') copy(d, 1);
        return WEFT_OK;
    }
    if (!interval(d, &low_n, &high_n, &comma, &total)) {
        d->atom = d->out->len;
        weft__strbuf_puts(d->out, "\\{");
        d->i++;
        return WEFT_OK;
    }
    if (d->atom == NO_ATOM) return malformed(d, "a quantifier with nothing to repeat");
    weft__strbuf_puts(d->out, low_n ? "{" : "{0");
    weft__strbuf_put(d->out, d->p + d->i + 1, total - 1);
    d->i += total;
    int mark = peek(d, 0);
    if (mark == '+' || (mark == '?' && !comma)) {
        insert(d->out, d->atom, "(?:");
        weft__strbuf_putc(d->out, ')');
        copy(d, 1);
        if (peek(d, 0) == '+' || peek(d, 0) == '?') return dialect_refuse(d, "a quantifier of a quantifier");
    } else if (mark == '?') {
        copy(d, 1);
    }
    return WEFT_OK;
}

static weft_status element(dialect *d)
{
    int c = peek(d, 0);
    size_t begin = d->out->len;
    weft_status status;
    switch (c) {
    case '\\': return outer_escape(d);
    case '[':
        status = bracket(d, 0);
        d->atom = begin;
        return status;
    case '(': return open_group(d);
    case ')':
        if (!d->n_groups) return malformed(d, "a ) without its (");
        d->atom = d->groups[--d->n_groups];
        copy(d, 1);
        return WEFT_OK;
    case '*':
    case '+':
    case '?':
    case '{': return quantifier(d);
    case '|':
    case '^':
    case '$':
        d->atom = NO_ATOM;
        copy(d, 1);
        return WEFT_OK;
    default:
        d->atom = begin;
        copy(d, (size_t)weft__utf8_length((unsigned char)c));
        return WEFT_OK;
    }
}

weft_status weft__regex_translate(const char *pattern, size_t n, weft__strbuf *out, weft_error *err)
{
    dialect d = {pattern, n, 0, out, err, {0}, 0, NO_ATOM};
    if (n > WEFT__REGEX_MAX_BYTES) return weft_fail(err, WEFT_LIMIT, "regular expression: %zu bytes are too many", n);
    if (!weft__utf8_valid(pattern, n)) return weft_fail(err, WEFT_FORMAT, "regular expression: not UTF-8");
    while (d.i < n) {
        weft_status status = element(&d);
        if (status) return status;
    }
    if (d.n_groups) return weft_fail(err, WEFT_FORMAT, "regular expression: a ( without its )");
    if (out->failed) return weft_fail(err, WEFT_NO_MEMORY, "regular expression: out of memory");
    return WEFT_OK;
}
