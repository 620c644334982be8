// SPDX-License-Identifier: Apache-2.0
/* lex.c: the text of a template into tokens (ast.h), with jinja2's rules for white space around tags: trim_blocks
 * (the newline after a block tag goes), lstrip_blocks (blanks before a block tag that begins its line go), and the
 * signs - and +. Runs once per template, in the thread that compiles. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/text.h"
#include "text/jinja/ast.h"

typedef struct lexer {
    weft__jinja_ctx *c;
    weft__jinja_tokens *out;
    const char *s;
    size_t n, at;
    int line_starting;  /* the last thing matched ended with a newline */
    char brackets[256]; /* closing ones awaited */
    size_t n_brackets;
} lexer;

static weft_status lex_fail(lexer *x, weft_status status, const char *what)
{
    return weft__jinja_fail(x->c, status, "%s", what);
}

static weft_status push(lexer *x, weft__jinja_token token)
{
    token.line = x->c->line;
    weft__jinja_tokens *out = x->out;
    WEFT__JINJA_TRY(weft__jinja_grow(x->c, &out->items, &out->capacity, out->n + 1, sizeof *out->items));
    out->items[out->n++] = token;
    return WEFT_OK;
}

/* Moves to `to`, counting lines. */
static void advance(lexer *x, size_t to)
{
    for (size_t i = x->at; i < to; i++) x->c->line += x->s[i] == '\n';
    if (to > x->at) x->line_starting = x->s[to - 1] == '\n';
    x->at = to;
}

static size_t skip_space(const lexer *x, size_t at)
{
    while (at < x->n) {
        uint32_t cp;
        size_t n = weft__utf8_decode(x->s + at, x->n - at, &cp, NULL);
        if (!weft__jinja_is_space(cp)) break;
        at += n;
    }
    return at;
}

static int starts(const lexer *x, size_t at, const char *text)
{
    size_t n = strlen(text);
    return at <= x->n && n <= x->n - at && !memcmp(x->s + at, text, n);
}

/* Where a tag's end that begins at `at` ends (after what it swallows of the white space behind it), or 0. `close` is
 * the bracket pair; `is_block` ends swallow one newline, and may say + to keep it. */
static size_t match_end(const lexer *x, size_t at, const char *close, int is_block)
{
    if (starts(x, at, close)) return at + 2 + (is_block && !x->c->plain && starts(x, at + 2, "\n"));
    if (starts(x, at, "-") && starts(x, at + 1, close)) return skip_space(x, at + 3);
    if (is_block && starts(x, at, "+") && starts(x, at + 1, close)) return at + 3;
    return 0;
}

/* Text [x->at, to) before a tag with this sign: '-', '+' or 0. */
static weft_status push_data(lexer *x, size_t to, char sign, int is_variable)
{
    size_t end = to;
    weft__jinja_str text = {.data = x->s + x->at, .len = to - x->at};
    if (sign == '-') {
        size_t from = 0, stop = text.len;
        weft__jinja_strip(&text, NULL, 0, 1, &from, &stop);
        end = x->at + stop;
    } else if (!sign && !is_variable && !x->c->plain) {
        size_t line = to;
        while (line > x->at && x->s[line - 1] != '\n') line--;
        if ((line > x->at || x->line_starting) && skip_space(x, line) >= to) end = line;
    }
    if (end == x->at) return WEFT_OK;
    return push(x, (weft__jinja_token){.type = WEFT__JINJA_TOKEN_DATA, .text = text.data, .len = end - x->at});
}

static char sign_at(const lexer *x, size_t at)
{
    return starts(x, at, "-") || starts(x, at, "+") ? x->s[at] : 0;
}

/* {% endraw %} or {% raw %} beginning at `at`: stores its sign and returns where it ends, or 0. */
static size_t match_raw(const lexer *x, size_t at, const char *word, char *sign)
{
    if (!starts(x, at, "{%")) return 0;
    *sign = sign_at(x, at + 2);
    size_t i = skip_space(x, at + 2 + (*sign != 0));
    if (!starts(x, i, word)) return 0;
    i = skip_space(x, i + strlen(word));
    if (word[0] == 'e') return match_end(x, i, "%}", 1);
    if (starts(x, i, "%}")) return i + 2;
    return starts(x, i, "-%}") ? skip_space(x, i + 3) : 0;
}

static weft_status lex_raw(lexer *x, size_t body)
{
    advance(x, body);
    for (size_t i = x->at; i < x->n; i++) {
        char sign;
        size_t end = x->s[i] == '{' ? match_raw(x, i, "endraw", &sign) : 0;
        if (!end) continue;
        WEFT__JINJA_TRY(push_data(x, i, sign, 0));
        advance(x, end);
        return WEFT_OK;
    }
    /* jinja2 does not mind when nothing follows. */
    return x->at < x->n ? lex_fail(x, WEFT_FORMAT, "'raw' is never closed") : WEFT_OK;
}

static weft_status lex_comment(lexer *x)
{
    for (size_t i = x->at; i < x->n; i++) {
        size_t end = match_end(x, i, "#}", 1);
        if (!end) continue;
        advance(x, end);
        return WEFT_OK;
    }
    return x->at < x->n ? lex_fail(x, WEFT_FORMAT, "a comment is never closed") : WEFT_OK; /* as for raw */
}

static int hex_digit(char ch)
{
    if (ch >= '0' && ch <= '9') return ch - '0';
    ch |= 0x20;
    return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

/* \xHH, \uHHHH, \UHHHHHHHH, \ooo after the backslash at s[0..n). Returns the bytes used, 0 when malformed. */
static size_t numeric_escape(const char *s, size_t n, uint32_t *cp)
{
    size_t digits = s[0] == 'x' ? 2 : s[0] == 'u' ? 4 : 8, used = 0;
    *cp = 0;
    if (s[0] >= '0' && s[0] <= '7') {
        for (; used < 3 && used < n && s[used] >= '0' && s[used] <= '7'; used++)
            *cp = *cp * 8 + (uint32_t)(s[used] - '0');
        return used;
    }
    if (n < digits + 1) return 0;
    for (used = 1; used <= digits; used++) {
        int digit = hex_digit(s[used]);
        if (digit < 0) return 0;
        *cp = *cp << 4 | (uint32_t)digit;
    }
    return *cp > 0x10FFFF || (*cp >= 0xD800 && *cp < 0xE000) ? 0 : used;
}

static weft_status unescape(lexer *x, const char *s, size_t n, weft__jinja_token *token)
{
    static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
    char *out = weft__jinja_alloc(x->c, n + 1);
    if (!out) return WEFT__JINJA_NO_ROOM(x->c);
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] != '\\' || i + 1 == n) {
            out[len++] = s[i];
            continue;
        }
        char ch = s[++i];
        const char *simple = memchr(from, ch, sizeof from - 1);
        uint32_t cp;
        if (simple) {
            out[len++] = to[simple - from];
        } else if (ch == 'x' || ch == 'u' || ch == 'U' || (ch >= '0' && ch <= '7')) {
            size_t used = numeric_escape(s + i, n - i, &cp);
            if (!used) return lex_fail(x, WEFT_FORMAT, "a string holds a malformed \\x, \\u or \\U escape");
            len += weft__utf8_encode(cp, out + len);
            i += used - 1;
        } else if (ch == 'N') {
            return lex_fail(x, WEFT_UNSUPPORTED, "\\N{...} escapes are not supported");
        } else if (ch != '\n') { /* an escape Python does not know stays as it is; an escaped newline goes */
            out[len++] = '\\';
            out[len++] = ch;
        }
    }
    token->text = out;
    token->len = len;
    return WEFT_OK;
}

static weft_status lex_string(lexer *x)
{
    char quote = x->s[x->at];
    size_t i = x->at + 1;
    while (i < x->n && x->s[i] != quote) i += x->s[i] == '\\' ? 2 : 1;
    if (i >= x->n) return lex_fail(x, WEFT_FORMAT, "a string is never closed");
    weft__jinja_token token = {.type = WEFT__JINJA_TOKEN_STRING};
    WEFT__JINJA_TRY(unescape(x, x->s + x->at + 1, i - x->at - 1, &token));
    WEFT__JINJA_TRY(push(x, token));
    advance(x, i + 1);
    return WEFT_OK;
}

static int is_digit(const lexer *x, size_t at)
{
    return at < x->n && x->s[at] >= '0' && x->s[at] <= '9';
}

/* Digits in groups separated by single underscores; where they end. */
static size_t digits_end(const lexer *x, size_t at)
{
    while (is_digit(x, at) || (at < x->n && x->s[at] == '_' && is_digit(x, at + 1) && at && is_digit(x, at - 1))) at++;
    return at;
}

/* Where a floating-point number at `at` ends, or `at` when there is none. */
static size_t float_end(const lexer *x, size_t at)
{
    if (at && x->s[at - 1] == '.') return at;
    size_t whole = digits_end(x, at), end = whole, exponent;
    if (end < x->n && x->s[end] == '.' && is_digit(x, end + 1)) end = digits_end(x, end + 1);
    exponent = end;
    if (exponent < x->n && (x->s[exponent] | 0x20) == 'e') {
        exponent++;
        if (exponent < x->n && (x->s[exponent] == '+' || x->s[exponent] == '-')) exponent++;
        if (is_digit(x, exponent)) return digits_end(x, exponent);
    }
    return end > whole ? end : at;
}

static weft_status lex_float(lexer *x, size_t end)
{
    char text[400];
    size_t n = 0;
    for (size_t i = x->at; i < end && n + 1 < sizeof text; i++) {
        if (x->s[i] != '_') text[n++] = x->s[i];
    }
    text[n] = 0;
    if (n + 1 >= sizeof text) return lex_fail(x, WEFT_FORMAT, "a number is too long");
    WEFT__JINJA_TRY(push(x, (weft__jinja_token){.type = WEFT__JINJA_TOKEN_FLOAT, .f = strtod(text, NULL)}));
    advance(x, end);
    return WEFT_OK;
}

static weft_status lex_int(lexer *x)
{
    size_t i = x->at, first = i;
    int base = 10;
    if (x->s[i] == '0' && i + 1 < x->n) {
        char kind = x->s[i + 1] | 0x20;
        int candidate = kind == 'b' ? 2 : kind == 'o' ? 8 : kind == 'x' ? 16 : 10;
        size_t digit = i + 2 + (i + 2 < x->n && x->s[i + 2] == '_');
        int value = digit < x->n ? hex_digit(x->s[digit]) : -1;
        if (candidate != 10 && value >= 0 && value < candidate) {
            base = candidate;
            first = digit;
        }
    }
    int64_t number = 0;
    for (i = first; i < x->n; i++) {
        if (x->s[i] == '_' && i + 1 < x->n) {
            int next = hex_digit(x->s[i + 1]);
            if (next < 0 || next >= base) break;
            continue;
        }
        int digit = hex_digit(x->s[i]);
        if (digit < 0 || digit >= base) break;
        if (base == 10 && x->s[first] == '0' && digit) break; /* 012 is no number in Python */
        if (__builtin_mul_overflow(number, (int64_t)base, &number) ||
            __builtin_add_overflow(number, (int64_t)digit, &number)) {
            return lex_fail(x, WEFT_LIMIT, "an integer exceeds 64 bits");
        }
    }
    WEFT__JINJA_TRY(push(x, (weft__jinja_token){.type = WEFT__JINJA_TOKEN_INT, .i = number}));
    advance(x, i);
    return WEFT_OK;
}

static int is_name_char(uint32_t cp, int first)
{
    if (cp == '_' || (cp | 0x20) - 'a' < 26) return 1;
    if (cp < 0x80) return !first && cp >= '0' && cp <= '9';
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)cp);
    if (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO) return 1;
    return !first &&
           (category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC || category == UTF8PROC_CATEGORY_ND);
}

static weft_status lex_name(lexer *x)
{
    size_t i = x->at;
    while (i < x->n) {
        uint32_t cp;
        size_t n = weft__utf8_decode(x->s + i, x->n - i, &cp, NULL);
        if (!is_name_char(cp, i == x->at)) break;
        i += n;
    }
    WEFT__JINJA_TRY(
        push(x, (weft__jinja_token){.type = WEFT__JINJA_TOKEN_NAME, .text = x->s + x->at, .len = i - x->at}));
    advance(x, i);
    return WEFT_OK;
}

/* Keeps track of open brackets, so that }} inside of a dict does not end the tag. */
static weft_status balance(lexer *x, char ch)
{
    static const char opening[] = "{([", closing[] = "})]";
    const char *open = memchr(opening, ch, 3);
    if (open) {
        if (x->n_brackets == sizeof x->brackets) return lex_fail(x, WEFT_LIMIT, "brackets nest too deeply");
        x->brackets[x->n_brackets++] = closing[open - opening];
        return WEFT_OK;
    }
    if (!memchr(closing, ch, 3)) return WEFT_OK;
    if (!x->n_brackets) return weft__jinja_fail(x->c, WEFT_FORMAT, "unexpected '%c'", ch);
    char expected = x->brackets[--x->n_brackets];
    if (ch != expected) return weft__jinja_fail(x->c, WEFT_FORMAT, "unexpected '%c', expected '%c'", ch, expected);
    return WEFT_OK;
}

static weft_status lex_operator(lexer *x)
{
    static const char *const pairs[] = {"//", "**", "==", "!=", ">=", "<="};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (!starts(x, x->at, pairs[i])) continue;
        WEFT__JINJA_TRY(push(
            x, (weft__jinja_token){.type = WEFT__JINJA_TOKEN_OP, .op = WEFT__JINJA_OP2(pairs[i][0], pairs[i][1])}));
        advance(x, x->at + 2);
        return WEFT_OK;
    }
    char ch = x->s[x->at];
    if (!ch || !strchr("+-/*%~[](){}><=.:|,;", ch)) {
        uint32_t cp;
        size_t n = weft__utf8_decode(x->s + x->at, x->n - x->at, &cp, NULL);
        return weft__jinja_fail(x->c, WEFT_FORMAT, "unexpected character '%.*s' (U+%04X)", cp < 0x20 ? 0 : (int)n,
                                x->s + x->at, cp);
    }
    WEFT__JINJA_TRY(balance(x, ch));
    WEFT__JINJA_TRY(push(x, (weft__jinja_token){.type = WEFT__JINJA_TOKEN_OP, .op = WEFT__JINJA_OP1(ch)}));
    advance(x, x->at + 1);
    return WEFT_OK;
}

static weft_status lex_one(lexer *x)
{
    char ch = x->s[x->at];
    uint32_t cp;
    weft__utf8_decode(x->s + x->at, x->n - x->at, &cp, NULL);
    if (weft__jinja_is_space(cp)) {
        advance(x, skip_space(x, x->at));
        return WEFT_OK;
    }
    if (is_digit(x, x->at)) {
        size_t end = float_end(x, x->at);
        return end > x->at ? lex_float(x, end) : lex_int(x);
    }
    if (is_name_char(cp, 1)) return lex_name(x);
    if (ch == '\'' || ch == '"') return lex_string(x);
    return lex_operator(x);
}

/* The inside of {{ }} or {% %} up to and including its end. */
static weft_status lex_tag(lexer *x, const char *close, int is_block)
{
    x->n_brackets = 0;
    while (x->at < x->n) {
        size_t end = x->n_brackets ? 0 : match_end(x, x->at, close, is_block);
        if (end) {
            WEFT__JINJA_TRY(push(x, (weft__jinja_token){.type = is_block ? WEFT__JINJA_TOKEN_BLOCK_END
                                                                         : WEFT__JINJA_TOKEN_VARIABLE_END}));
            advance(x, end);
            return WEFT_OK;
        }
        WEFT__JINJA_TRY(lex_one(x));
    }
    return WEFT_OK; /* the parser misses the end */
}

/* The next {{, {% or {#; x->n when there is none. */
static size_t find_tag(const lexer *x)
{
    for (size_t i = x->at; i + 1 < x->n; i++) {
        if (x->s[i] == '{' && (x->s[i + 1] == '{' || x->s[i + 1] == '%' || x->s[i + 1] == '#')) return i;
    }
    return x->n;
}

static weft_status lex_text(lexer *x)
{
    size_t tag = find_tag(x);
    if (tag == x->n) {
        WEFT__JINJA_TRY(
            push(x, (weft__jinja_token){.type = WEFT__JINJA_TOKEN_DATA, .text = x->s + x->at, .len = tag - x->at}));
        advance(x, tag);
        return WEFT_OK;
    }
    char sign, kind = x->s[tag + 1];
    size_t raw = match_raw(x, tag, "raw", &sign);
    if (!raw) sign = sign_at(x, tag + 2);
    WEFT__JINJA_TRY(push_data(x, tag, sign, kind == '{'));
    if (raw) {
        advance(x, tag);
        return lex_raw(x, raw);
    }
    advance(x, tag + 2 + (sign != 0));
    if (kind == '#') return lex_comment(x);
    int is_block = kind == '%';
    WEFT__JINJA_TRY(push(
        x, (weft__jinja_token){.type = is_block ? WEFT__JINJA_TOKEN_BLOCK_BEGIN : WEFT__JINJA_TOKEN_VARIABLE_BEGIN}));
    return lex_tag(x, is_block ? "%}" : "}}", is_block);
}

/* All line ends become \n, and the last one goes, unless the template is plain. */
static weft_status normalise(lexer *x, const char *source, size_t n)
{
    char *copy = weft__jinja_alloc(x->c, n);
    if (!copy) return WEFT__JINJA_NO_ROOM(x->c);
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        if (source[i] == '\r') {
            copy[len++] = '\n';
            if (i + 1 < n && source[i + 1] == '\n') i++;
        } else {
            copy[len++] = source[i];
        }
    }
    if (len && copy[len - 1] == '\n' && !x->c->plain) len--;
    x->s = copy;
    x->n = len;
    return WEFT_OK;
}

weft_status weft__jinja_lex(weft__jinja_ctx *c, const char *source, size_t n, weft__jinja_tokens *out)
{
    lexer x = {.c = c, .out = out, .line_starting = 1};
    c->line = 1;
    if (!weft__utf8_valid(source, n)) return lex_fail(&x, WEFT_FORMAT, "the template is not UTF-8");
    WEFT__JINJA_TRY(normalise(&x, source, n));
    while (x.at < x.n) WEFT__JINJA_TRY(lex_text(&x));
    return push(&x, (weft__jinja_token){.type = WEFT__JINJA_TOKEN_EOF});
}
