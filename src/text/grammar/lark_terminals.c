// SPDX-License-Identifier: Apache-2.0
/* lark_terminals.c: strings and regular expressions of Lark-like EBNF, and the terminals of Lark's library `common`, as
 * its documentation describes them. */
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "text/grammar/build.h"
#include "text/grammar/lark_parts.h"
#include "text/grammar/parts.h"

#define DIGITS "[0-9]+"
#define DECIMAL "([0-9]+\\.[0-9]*|\\.[0-9]+)"
#define EXPONENT "([eE][+-]?[0-9]+)"
#define FLOAT "([0-9]+" EXPONENT "|" DECIMAL EXPONENT "?)"

static const struct {
    const char *name, *pattern;
} common[] = {
    {"DIGIT", "[0-9]"},
    {"HEXDIGIT", "[0-9A-Fa-f]"},
    {"INT", DIGITS},
    {"SIGNED_INT", "[+-]?" DIGITS},
    {"DECIMAL", DECIMAL},
    {"FLOAT", FLOAT},
    {"SIGNED_FLOAT", "[+-]?" FLOAT},
    {"NUMBER", "(" FLOAT "|" DIGITS ")"},
    {"SIGNED_NUMBER", "[+-]?(" FLOAT "|" DIGITS ")"},
    {"ESCAPED_STRING", "\"([^\"\\\\\\n]|\\\\[^\\n])*\""},
    {"LCASE_LETTER", "[a-z]"},
    {"UCASE_LETTER", "[A-Z]"},
    {"LETTER", "[A-Za-z]"},
    {"WORD", "[A-Za-z]+"},
    {"CNAME", "[A-Za-z_][A-Za-z0-9_]*"},
    {"WS_INLINE", "[ \\t]+"},
    {"WS", "[ \\t\\f\\r\\n]+"},
    {"CR", "\\r"},
    {"LF", "\\n"},
    {"NEWLINE", "(\\r?\\n)+"},
    {"SH_COMMENT", "#[^\\n]*"},
    {"CPP_COMMENT", "//[^\\n]*"},
    {"C_COMMENT", "/\\*([^*]|\\*+[^*/])*\\*+/"},
    {"SQL_COMMENT", "--[^\\n]*"},
};

static const char *find_common(const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        if (strlen(common[i].name) == n && !memcmp(name, common[i].name, n)) return common[i].pattern;
    return NULL;
}

int weft__gram_lark_has_common(const char *name, size_t n)
{
    return find_common(name, n) != NULL;
}

void weft__gram_lark_check_common(weft__gram_lark *r)
{
    char subject[WEFT__GRAM_LABEL];
    for (size_t i = 0; i < sizeof common / sizeof *common && !weft__gram_lark_failed(r); i++) {
        const int32_t rule = weft__strings_find(&r->g->names, common[i].name, strlen(common[i].name));
        if (rule >= 0 && !weft__gram_defined(r->g, rule))
            weft__gram_fail(r->g, WEFT_ARGUMENT, "%s is used but not defined; '%%import common.%s' defines it",
                            weft__gram_subject(weft__gram_name_of(r->g, rule), subject), common[i].name);
    }
}

static int32_t expression(weft__gram_lark *r, const char *s, size_t n, unsigned flags)
{
    weft__gram_regex_facts facts;
    int32_t node = weft__gram_regex(r->g, s, n, flags | WEFT__GRAM_REGEX_WHOLE, &facts);
    if (facts.why)
        weft__gram_fail(r->g, WEFT_UNSUPPORTED, "grammar: line %d: regular expression, near byte %zu: %s", r->line,
                        facts.at, facts.why);
    return node;
}

void weft__gram_lark_common(weft__gram_lark *r, const char *name, size_t n, int32_t rule)
{
    const char *pattern = find_common(name, n);
    if (rule < 0 || !pattern) return;
    int32_t body = expression(r, pattern, strlen(pattern), 0);
    weft__gram_define(r->g, rule, body);
}

/* ---- strings ---- */

static int hex_digits(weft__gram_lark *r, int digits, uint32_t *cp)
{
    *cp = 0;
    for (int i = 0; i < digits; i++, r->s++) {
        char c = r->s < r->end ? *r->s : 0;
        if (c >= '0' && c <= '9') *cp = *cp << 4 | (uint32_t)(c - '0');
        else if ((c | 32) >= 'a' && (c | 32) <= 'f') *cp = *cp << 4 | (uint32_t)((c | 32) - 'a' + 10);
        else return 0;
    }
    return *cp <= 0x10FFFF && (*cp < 0xD800 || *cp > 0xDFFF);
}

/* One character, escaped or not. Returns 1, or 0 after a failure. */
static int read_char(weft__gram_lark *r, uint32_t *cp)
{
    static const char names[] = "nrtf\\\"'/", values[] = "\n\r\t\f\\\"'/";
    if (*r->s != '\\') {
        int bad = 0;
        size_t n = weft__utf8_decode(r->s, (size_t)(r->end - r->s), cp, &bad);
        if (bad || *cp == '\n') weft__gram_lark_fail(r, WEFT_ARGUMENT, bad ? "malformed UTF-8" : "a string ends early");
        r->s += n;
        return !weft__gram_lark_failed(r);
    }
    char c = r->end - r->s > 1 ? r->s[1] : 0;
    const char *name = c ? strchr(names, c) : NULL;
    int digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (!name && !digits) {
        weft__gram_lark_fail(r, WEFT_ARGUMENT,
                             "an unknown escape; there are \\n \\r \\t \\f \\\\ \\\" \\xHH \\uHHHH \\UHHHHHHHH,");
        return 0;
    }
    r->s += 2;
    if (name) *cp = (unsigned char)values[name - names];
    else if (!hex_digits(r, digits, cp)) weft__gram_lark_fail(r, WEFT_ARGUMENT, "an escape that names no character");
    return !weft__gram_lark_failed(r);
}

/* Reads "..." into text. 0 after a failure. */
static int read_quoted(weft__gram_lark *r, weft__strbuf *text)
{
    uint32_t cp;
    int line = r->line;
    for (r->s++; r->s < r->end && *r->s != '"' && *r->s != '\n';) {
        if (!read_char(r, &cp)) return 0;
        weft__strbuf_put_utf8(text, cp);
    }
    if (r->s == r->end || *r->s != '"') {
        weft__gram_fail(r->g, WEFT_ARGUMENT, "grammar: line %d: a string without a closing '\"'", line);
        return 0;
    }
    r->s++;
    if (text->failed) weft__gram_fail(r->g, WEFT_NO_MEMORY, "no memory for a grammar");
    return !text->failed;
}

/* The only character of a text; 0 after a failure. */
static int one_character(weft__gram_lark *r, const weft__strbuf *text, uint32_t *cp)
{
    if (text->len && weft__utf8_decode(text->data, text->len, cp, NULL) == text->len) return 1;
    weft__gram_fail(r->g, WEFT_ARGUMENT, "grammar: line %d: a range is of two single characters", r->line);
    return 0;
}

static int32_t read_range(weft__gram_lark *r, const weft__strbuf *first)
{
    weft__strbuf last = {0};
    weft__gram_range x = {0, 0};
    int32_t node = -1;
    r->s += 2;
    if (r->s == r->end || *r->s != '"') weft__gram_lark_fail(r, WEFT_ARGUMENT, "a string must follow '..'");
    else if (read_quoted(r, &last) && one_character(r, first, &x.lo) && one_character(r, &last, &x.hi)) {
        if (x.hi < x.lo)
            weft__gram_fail(r->g, WEFT_ARGUMENT, "grammar: line %d: a range from U+%04X down to U+%04X", r->line, x.lo,
                            x.hi);
        node = weft__gram_class(r->g, &x, 1, 0);
    }
    weft__strbuf_free(&last);
    return node;
}

/* A text in any case. */
static int32_t any_case(weft__gram_lark *r, const weft__strbuf *text)
{
    weft__gram *g = r->g;
    int32_t *items = weft__alloc_array(text->len, sizeof *items), node = -1;
    if (!items) weft__gram_fail(g, WEFT_NO_MEMORY, "no memory for a grammar");
    for (size_t i = 0; i < text->len && !weft__gram_lark_failed(r); i++) {
        unsigned char c = (unsigned char)text->data[i], small = c | 32, large = (unsigned char)(small - 32);
        if (c >= 0x80)
            weft__gram_fail(g, WEFT_UNSUPPORTED, "grammar: line %d: characters beyond ASCII where case does not matter",
                            r->line);
        items[i] = small >= 'a' && small <= 'z' ? GRAM_CLASS({small, small}, {large, large}) : GRAM_CLASS({c, c});
    }
    if (!weft__gram_lark_failed(r)) node = weft__gram_seq(g, items, text->len);
    weft__free(items);
    return node;
}

int32_t weft__gram_lark_string(weft__gram_lark *r)
{
    weft__strbuf text = {0};
    int32_t node = -1;
    if (read_quoted(r, &text)) {
        if (r->end - r->s >= 2 && r->s[0] == '.' && r->s[1] == '.') {
            node = read_range(r, &text);
        } else if (r->s < r->end && *r->s == 'i') {
            r->s++;
            node = any_case(r, &text);
        } else {
            node = weft__gram_text(r->g, text.data ? text.data : "", text.len);
        }
    }
    weft__strbuf_free(&text);
    return node;
}

/* ---- regular expressions ---- */

int32_t weft__gram_lark_regex(weft__gram_lark *r)
{
    const char *begin = ++r->s;
    unsigned flags = 0;
    while (r->s < r->end && *r->s != '/' && *r->s != '\n') r->s += *r->s == '\\' && r->end - r->s > 1 ? 2 : 1;
    if (r->s == r->end || *r->s != '/') {
        weft__gram_fail(r->g, WEFT_ARGUMENT, "grammar: line %d: a regular expression without a closing '/'", r->line);
        return -1;
    }
    size_t n = (size_t)(r->s++ - begin);
    for (; r->s < r->end && *r->s >= 'a' && *r->s <= 'z'; r->s++) {
        if (*r->s != 'i' && *r->s != 's')
            return weft__gram_lark_fail(r, WEFT_UNSUPPORTED, "of flags there are i and s, and none");
        flags |= *r->s == 'i' ? WEFT__GRAM_REGEX_ANY_CASE : WEFT__GRAM_REGEX_DOT_ALL;
    }
    return expression(r, begin, n, flags);
}
