// SPDX-License-Identifier: Apache-2.0
/* gbnf.c: GBNF text to rules (grammar.h names the dialect). Recursive descent; depth is bounded before the machine's
 * stack is. */
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "text/grammar/grammar.h"
#include "text/tokenizer/parts.h"

typedef struct gbnf_reader {
    weft__gram *g;
    const char *s, *end;
    int line, depth;
    weft__gram_list items; /* expressions of the sequences and choices being read, one after the other */
} gbnf_reader;

static int failed(const gbnf_reader *r)
{
    return weft__gram_failed(r->g) != WEFT_OK;
}

static int32_t gbnf_fail(gbnf_reader *r, const char *what)
{
    char quote[WEFT__TOK_QUOTE];
    size_t n = 0;
    while (r->s + n < r->end && n < 16 && r->s[n] != '\n' && r->s[n] != '\r') n++;
    if (r->s == r->end)
        weft__gram_fail(r->g, WEFT_ARGUMENT, "grammar: line %d: %s, but the grammar ends", r->line, what);
    else if (n == 0) weft__gram_fail(r->g, WEFT_ARGUMENT, "grammar: line %d: %s, but the line ends", r->line, what);
    else
        weft__gram_fail(r->g, WEFT_ARGUMENT, "grammar: line %d: %s at '%s'", r->line, what,
                        weft__tok_quote(quote, r->s, n));
    return -1;
}

static int at(const gbnf_reader *r, char c)
{
    return r->s < r->end && *r->s == c;
}

/* Skips blanks and comments, and with `lines` ends of lines. */
static void skip(gbnf_reader *r, int lines)
{
    while (r->s < r->end) {
        if (*r->s == '#') {
            while (r->s < r->end && *r->s != '\n' && *r->s != '\r') r->s++;
        } else if (*r->s == ' ' || *r->s == '\t') {
            r->s++;
        } else if (lines && (*r->s == '\n' || *r->s == '\r')) {
            r->line += *r->s == '\n';
            r->s++;
        } else {
            break;
        }
    }
    weft__gram_line(r->g, r->line);
}

static int is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static size_t word_length(const gbnf_reader *r)
{
    size_t n = 0;
    while (r->s + n < r->end && is_word(r->s[n])) n++;
    return n;
}

/* 1 when a rule begins here: a name and "::=". */
static int at_rule(const gbnf_reader *r)
{
    size_t n = word_length(r);
    const char *s = r->s + n;
    while (s < r->end && (*s == ' ' || *s == '\t')) s++;
    return n > 0 && r->end - s >= 3 && !memcmp(s, "::=", 3);
}

/* ---- characters ---- */

static int read_hex(gbnf_reader *r, int digits, uint32_t *cp)
{
    *cp = 0;
    for (int i = 0; i < digits; i++, r->s++) {
        char c = r->s < r->end ? *r->s : 0;
        uint32_t digit = c >= '0' && c <= '9'                 ? (uint32_t)(c - '0')
                         : (c | 32) >= 'a' && (c | 32) <= 'f' ? (uint32_t)((c | 32) - 'a' + 10)
                                                              : 16;
        if (digit == 16) {
            gbnf_fail(r, "hexadecimal digits must follow \\x (2), \\u (4) and \\U (8)");
            return 0;
        }
        *cp = *cp << 4 | digit;
    }
    return 1;
}

/* One character of a literal or a class, escaped or not. Returns 1, or 0 after a failure. */
static int read_char(gbnf_reader *r, uint32_t *cp)
{
    static const char names[] = "nrt\\\"[]", values[] = "\n\r\t\\\"[]";
    if (*r->s != '\\') {
        int bad = 0;
        size_t n = weft__utf8_decode(r->s, (size_t)(r->end - r->s), cp, &bad);
        if (bad) {
            gbnf_fail(r, "malformed UTF-8");
            return 0;
        }
        r->line += *cp == '\n';
        r->s += n;
        return 1;
    }
    char c = r->end - r->s > 1 ? r->s[1] : 0;
    const char *name = c ? strchr(names, c) : NULL;
    int digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (!name && !digits) {
        gbnf_fail(r, "an unknown escape; there are \\n \\r \\t \\\\ \\\" \\[ \\] \\xHH \\uHHHH \\UHHHHHHHH,");
        return 0;
    }
    r->s += 2;
    if (name) *cp = (unsigned char)values[name - names];
    else if (!read_hex(r, digits, cp)) return 0;
    if (*cp > 0x10FFFF || (*cp >= 0xD800 && *cp < 0xE000)) {
        weft__gram_fail(r->g, WEFT_ARGUMENT, "grammar: line %d: U+%04X is no character", r->line, *cp);
        return 0;
    }
    return 1;
}

static int32_t read_literal(gbnf_reader *r)
{
    weft__strbuf text = {0};
    int line = r->line;
    int32_t node = -1;
    uint32_t cp;
    r->s++;
    while (r->s < r->end && *r->s != '"') {
        if (!read_char(r, &cp)) goto done;
        weft__strbuf_put_utf8(&text, cp);
    }
    if (r->s == r->end) {
        weft__gram_fail(r->g, WEFT_ARGUMENT, "grammar: line %d: a literal without a closing '\"'", line);
        goto done;
    }
    r->s++;
    if (text.failed) weft__gram_fail(r->g, WEFT_NO_MEMORY, "no memory for a grammar");
    node = weft__gram_text(r->g, text.data ? text.data : "", text.len);
done:
    weft__strbuf_free(&text);
    return node;
}

static int32_t read_class(gbnf_reader *r)
{
    weft__gram_range *ranges = NULL;
    size_t n = 0, capacity = 0;
    int32_t node = -1;
    int line = r->line;
    r->s++;
    int negated = at(r, '^');
    r->s += negated;
    while (r->s < r->end && *r->s != ']') {
        weft__gram_range x;
        if (!read_char(r, &x.lo)) goto done;
        x.hi = x.lo;
        if (at(r, '-') && r->end - r->s > 1 && r->s[1] != ']') {
            r->s++;
            if (!read_char(r, &x.hi)) goto done;
        }
        if (x.hi < x.lo) {
            weft__gram_fail(r->g, WEFT_ARGUMENT, "grammar: line %d: a range from U+%04X down to U+%04X", r->line, x.lo,
                            x.hi);
            goto done;
        }
        if (!weft__grow(&ranges, &capacity, n + 1, sizeof *ranges)) {
            weft__gram_fail(r->g, WEFT_NO_MEMORY, "no memory for a grammar");
            goto done;
        }
        ranges[n++] = x;
    }
    if (r->s == r->end) {
        weft__gram_fail(r->g, WEFT_ARGUMENT, "grammar: line %d: a character class without a closing ']'", line);
        goto done;
    }
    if (n == 0)
        weft__gram_fail(r->g, WEFT_ARGUMENT, "grammar: line %d: an empty character class; '.' is any character", line);
    r->s++;
    node = weft__gram_class(r->g, ranges, n, negated);
done:
    weft__free(ranges);
    return node;
}

/* ---- expressions ---- */

static int32_t read_choice(gbnf_reader *r, int nested);

static int read_number(gbnf_reader *r, uint32_t *out)
{
    uint64_t value = 0;
    if (r->s == r->end || *r->s < '0' || *r->s > '9') {
        gbnf_fail(r, "a number must follow in {m}, {m,} or {m,n}");
        return 0;
    }
    for (; r->s < r->end && *r->s >= '0' && *r->s <= '9'; r->s++)
        if (value <= WEFT__GRAM_MAX_STATES) value = 10 * value + (uint64_t)(*r->s - '0');
    if (value > WEFT__GRAM_MAX_STATES) {
        weft__gram_fail(r->g, WEFT_LIMIT, "grammar: line %d: a repetition of more than %d times", r->line,
                        WEFT__GRAM_MAX_STATES);
        return 0;
    }
    *out = (uint32_t)value;
    return 1;
}

/* {m}, {m,} or {m,n} */
static int read_bounds(gbnf_reader *r, int nested, uint32_t *min, uint32_t *max)
{
    r->s++;
    skip(r, nested);
    if (!read_number(r, min)) return 0;
    *max = *min;
    skip(r, nested);
    if (at(r, ',')) {
        r->s++;
        skip(r, nested);
        *max = UINT32_MAX;
        if (!at(r, '}') && !read_number(r, max)) return 0;
        skip(r, nested);
    }
    if (!at(r, '}')) {
        gbnf_fail(r, "'}' must end a repetition");
        return 0;
    }
    r->s++;
    return 1;
}

/* What follows an item: none, one or several of * + ? {}. */
static int32_t read_repeats(gbnf_reader *r, int nested, int32_t item)
{
    for (;;) {
        uint32_t min = 0, max = UINT32_MAX;
        skip(r, nested);
        if (failed(r)) return -1;
        if (at(r, '*') || at(r, '+') || at(r, '?')) {
            min = *r->s == '+';
            if (*r->s == '?') max = 1;
            r->s++;
        } else if (!at(r, '{')) {
            return item;
        } else if (!read_bounds(r, nested, &min, &max)) {
            return -1;
        }
        item = weft__gram_repeat(r->g, item, min, max);
    }
}

static int32_t read_group(gbnf_reader *r)
{
    int line = r->line;
    if (r->depth >= WEFT__GRAM_MAX_NESTING) {
        weft__gram_fail(r->g, WEFT_LIMIT, "grammar: line %d: groups nested more than %d deep", r->line,
                        WEFT__GRAM_MAX_NESTING);
        return -1;
    }
    r->s++;
    r->depth++;
    int32_t node = read_choice(r, 1);
    r->depth--;
    if (failed(r)) return -1;
    if (!at(r, ')')) {
        weft__gram_fail(r->g, WEFT_ARGUMENT, "grammar: line %d: a group without a closing ')'", line);
        return -1;
    }
    r->s++;
    return node;
}

/* <[ID]> or <spelling>. */
static int32_t read_token(gbnf_reader *r)
{
    char quote[WEFT__TOK_QUOTE];
    const char *s = r->s;
    size_t n = 1;
    while (s + n < r->end && s[n] != '>' && s[n] != '\n' && s[n] != '\r') n++;
    if (s + n == r->end || s[n] != '>')
        return gbnf_fail(r, "a token must be written as <[ID]> or as it is spelled, <...>,");
    r->s += ++n;
    if (s[1] == '[' && n >= 5 && s[n - 2] == ']') {
        int32_t id = 0;
        size_t i = 2;
        for (; i < n - 2 && i < 11 && s[i] >= '0' && s[i] <= '9'; i++) id = 10 * id + (s[i] - '0');
        if (i == n - 2) return weft__gram_token(r->g, id);
    }
    int32_t id = weft__gram_find(r->g, s, n);
    if (id >= 0) return weft__gram_token(r->g, id);
    weft__gram_fail(r->g, WEFT_ARGUMENT, "grammar: line %d: no token of the vocabulary is spelled '%s'", r->line,
                    weft__tok_quote(quote, s, n));
    return -1;
}

/* -2: no item begins here. */
static int32_t read_item(gbnf_reader *r)
{
    char c = r->s < r->end ? *r->s : 0;
    if (c == '"') return read_literal(r);
    if (c == '[') return read_class(r);
    if (c == '(') return read_group(r);
    if (c == '.') {
        r->s++;
        return weft__gram_class(r->g, &(weft__gram_range){0, 0x10FFFF}, 1, 0);
    }
    if (c == '*' || c == '+' || c == '?' || c == '{') return gbnf_fail(r, "nothing to be repeated");
    if (c == '<') return read_token(r);
    if (c == '!') {
        weft__gram_fail(r->g, WEFT_UNSUPPORTED, "grammar: line %d: any token but one ('!<...>') is not supported",
                        r->line);
        return -1;
    }
    if (!is_word(c)) return -2;
    size_t n = word_length(r);
    int32_t rule = weft__gram_rule(r->g, r->s, n);
    r->s += n;
    return weft__gram_ref(r->g, rule);
}

static int32_t read_sequence(gbnf_reader *r, int nested)
{
    size_t first = r->items.n;
    for (;;) {
        skip(r, nested);
        if (failed(r) || (!nested && at_rule(r))) break; /* the latter only where a line was continued */
        int32_t item = read_item(r);
        if (item == -2) break;
        if (!weft__gram_push(r->g, &r->items, read_repeats(r, nested, item))) break;
    }
    return weft__gram_seq_from(r->g, &r->items, first);
}

/* Behind '|' and before a '|' at the beginning of a line, lines may end anywhere. */
static int32_t read_choice(gbnf_reader *r, int nested)
{
    size_t first = r->items.n;
    for (;;) {
        skip(r, 1);
        if (!weft__gram_push(r->g, &r->items, read_sequence(r, nested))) break;
        gbnf_reader ahead = *r;
        skip(&ahead, 1);
        if (!at(&ahead, '|')) break;
        r->s = ahead.s + 1;
        r->line = ahead.line;
    }
    weft__gram_line(r->g, r->line);
    return weft__gram_alt_from(r->g, &r->items, first);
}

static void read_rule(gbnf_reader *r)
{
    size_t n = word_length(r);
    if (!at_rule(r)) {
        gbnf_fail(r, "a rule must begin with its name and '::='");
        return;
    }
    int line = r->line;
    int32_t rule = weft__gram_rule(r->g, r->s, n);
    r->s += n;
    skip(r, 0);
    r->s += 3;
    int32_t body = read_choice(r, 0);
    if (failed(r)) return;
    skip(r, 0);
    if (r->s < r->end && *r->s != '\n' && *r->s != '\r') {
        gbnf_fail(r, "the rule should end or go on");
        return;
    }
    weft__gram_line(r->g, line);
    weft__gram_define(r->g, rule, body);
}

int32_t weft__gram_read_gbnf(weft__gram *g, const char *source, size_t n)
{
    gbnf_reader r = {.g = g, .s = source, .end = source + n, .line = 1};
    if (n > WEFT__GRAM_MAX_SOURCE) {
        weft__gram_fail(g, WEFT_LIMIT, "grammar: %zu bytes of text; at most %d", n, WEFT__GRAM_MAX_SOURCE);
        return -1;
    }
    weft__gram_line(g, 0);
    int32_t root = weft__gram_rule(g, "root", 4);
    for (skip(&r, 1); r.s < r.end && !failed(&r); skip(&r, 1)) read_rule(&r);
    weft__free(r.items.items);
    weft__gram_line(g, 0);
    weft__gram_check_first(g, root);
    return root;
}
