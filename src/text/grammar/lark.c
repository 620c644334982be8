// SPDX-License-Identifier: Apache-2.0
/* lark.c: Lark-like EBNF to rules (grammar.h names what there is of it). Recursive descent; depth is bounded before
 * the machine's stack is. Each string, expression and terminal within a rule is followed by what the grammar ignores;
 * within a terminal nothing is. */
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "text/grammar/build.h"
#include "text/grammar/lark_parts.h"

enum { BEGINS_NOTHING = -2 };

/* ---- characters and names ---- */

int weft__gram_lark_failed(const weft__gram_lark *r)
{
    return weft__gram_failed(r->g) != WEFT_OK;
}

int32_t weft__gram_lark_fail(weft__gram_lark *r, weft_status status, const char *what)
{
    char quote[64];
    size_t n = 0;
    while (r->s + n < r->end && n < 16 && r->s[n] != '\n' && r->s[n] != '\r') n++;
    if (n)
        weft__gram_fail(r->g, status, "grammar: line %d: %s at '%s'", r->line, what,
                        weft__utf8_show(quote, sizeof quote, r->s, n));
    else
        weft__gram_fail(r->g, status, "grammar: line %d: %s, but the %s ends", r->line, what,
                        r->s == r->end ? "grammar" : "line");
    return -1;
}

static int at(const weft__gram_lark *r, char c)
{
    return r->s < r->end && *r->s == c;
}

static int at_two(const weft__gram_lark *r, const char two[2])
{
    return r->end - r->s >= 2 && r->s[0] == two[0] && r->s[1] == two[1];
}

/* Skips blanks and comments, and with `lines` ends of lines. */
static void skip(weft__gram_lark *r, int lines)
{
    while (r->s < r->end) {
        if (*r->s == '#' || at_two(r, "//")) {
            while (r->s < r->end && *r->s != '\n') r->s++;
        } else if (*r->s == ' ' || *r->s == '\t' || *r->s == '\r') {
            r->s++;
        } else if (lines && *r->s == '\n') {
            r->line++;
            r->s++;
        } else {
            break;
        }
    }
    weft__gram_line(r->g, r->line);
}

static int is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static size_t name_length(const weft__gram_lark *r)
{
    size_t n = 0;
    while (r->s + n < r->end && is_name(r->s[n])) n++;
    return n > 0 && r->s[0] >= '0' && r->s[0] <= '9' ? 0 : n;
}

/* 1: a terminal, whose first letter is a capital one. */
static int is_terminal(const char *name, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (name[i] != '_') return name[i] >= 'A' && name[i] <= 'Z';
    return 0;
}

/* What may be ignored behind a terminal of a rule. */
static int32_t with_ignored(weft__gram_lark *r, int32_t node)
{
    weft__gram *g = r->g;
    return r->in_terminal || node < 0 ? node : GRAM_SEQ(node, GRAM_REF(r->ignored));
}

/* ---- items ---- */

static int32_t read_choice(weft__gram_lark *r, int nested);

/* ( ) and [ ]. */
static int32_t read_group(weft__gram_lark *r, char close)
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
    if (weft__gram_lark_failed(r)) return -1;
    if (!at(r, close)) {
        weft__gram_fail(r->g, WEFT_ARGUMENT, "grammar: line %d: a group without a closing '%c'", line, close);
        return -1;
    }
    r->s++;
    return close == ']' ? weft__gram_repeat(r->g, node, 0, 1) : node;
}

static int32_t read_reference(weft__gram_lark *r)
{
    weft__gram *g = r->g;
    size_t n = name_length(r);
    int terminal = is_terminal(r->s, n);
    if (r->in_terminal && !terminal)
        return weft__gram_lark_fail(r, WEFT_ARGUMENT, "a terminal is made of terminals, not of rules,");
    if (r->s + n < r->end && (r->s[n] == '{' || r->s[n] == '['))
        return weft__gram_lark_fail(r, WEFT_UNSUPPORTED,
                                    r->s[n] == '{' ? "templates are not supported,"
                                                   : "attributes of names are not supported; put a blank before '[',");
    int32_t rule = weft__gram_rule(g, r->s, n);
    r->s += n;
    int32_t node = rule < 0 ? -1 : GRAM_REF(rule);
    return terminal ? with_ignored(r, node) : node;
}

static int32_t read_item(weft__gram_lark *r)
{
    char c = r->s < r->end ? *r->s : 0;
    if (c == '"') return with_ignored(r, weft__gram_lark_string(r));
    if (c == '/') return with_ignored(r, weft__gram_lark_regex(r));
    if (c == '(') return read_group(r, ')');
    if (c == '[') return read_group(r, ']');
    if (c == '<') return weft__gram_lark_fail(r, WEFT_UNSUPPORTED, "special tokens ('<...>') are not supported,");
    if (c == '%') return weft__gram_lark_fail(r, WEFT_UNSUPPORTED, "directives within rules are not supported,");
    if (c && strchr("?*+~", c)) return weft__gram_lark_fail(r, WEFT_ARGUMENT, "nothing to be repeated");
    return name_length(r) ? read_reference(r) : BEGINS_NOTHING;
}

static int read_number(weft__gram_lark *r, uint32_t *out)
{
    uint64_t value = 0;
    skip(r, 0);
    if (r->s == r->end || *r->s < '0' || *r->s > '9') {
        weft__gram_lark_fail(r, WEFT_ARGUMENT, "a number must follow in ~n and ~n..m");
        return 0;
    }
    for (; r->s < r->end && *r->s >= '0' && *r->s <= '9'; r->s++)
        if (value <= WEFT__GRAM_MAX_STATES) value = 10 * value + (uint64_t)(*r->s - '0');
    if (value > WEFT__GRAM_MAX_STATES)
        weft__gram_fail(r->g, WEFT_LIMIT, "grammar: line %d: a repetition of more than %d times", r->line,
                        WEFT__GRAM_MAX_STATES);
    *out = (uint32_t)value;
    return value <= WEFT__GRAM_MAX_STATES;
}

/* What follows an item: ? * + ~n ~n..m, or nothing. */
static int32_t read_repeat(weft__gram_lark *r, int32_t item)
{
    uint32_t min = 0, max = UINT32_MAX;
    if (weft__gram_lark_failed(r)) return -1;
    if (at(r, '?') || at(r, '*') || at(r, '+')) {
        min = *r->s == '+';
        if (*r->s == '?') max = 1;
        r->s++;
        return weft__gram_repeat(r->g, item, min, max);
    }
    weft__gram_lark ahead = *r;
    skip(&ahead, 0);
    if (!at(&ahead, '~')) return item;
    r->s = ahead.s + 1;
    if (!read_number(r, &min)) return -1;
    max = min;
    skip(r, 0);
    if (at_two(r, "..")) {
        r->s += 2;
        if (!read_number(r, &max)) return -1;
    }
    return weft__gram_repeat(r->g, item, min, max);
}

/* ---- sequences and choices ---- */

/* Items up to what begins none; their number. `-> name` behind them says nothing about texts. */
static size_t read_items(weft__gram_lark *r, int nested)
{
    size_t first = r->items.n;
    for (;;) {
        skip(r, nested);
        if (weft__gram_lark_failed(r)) break;
        int32_t item = read_item(r);
        if (item == BEGINS_NOTHING || !weft__gram_push(r->g, &r->items, read_repeat(r, item))) break;
    }
    if (at_two(r, "->") && !weft__gram_lark_failed(r)) {
        r->s += 2;
        skip(r, 0);
        if (!name_length(r)) weft__gram_lark_fail(r, WEFT_ARGUMENT, "a name must follow '->'");
        r->s += name_length(r);
        skip(r, nested);
    }
    return r->items.n - first;
}

/* 1 when a '|' is next, perhaps on a line of its own; it is read. */
static int read_bar(weft__gram_lark *r)
{
    weft__gram_lark ahead = *r;
    skip(&ahead, 1);
    if (weft__gram_lark_failed(r) || !at(&ahead, '|')) return 0;
    r->s = ahead.s + 1;
    r->line = ahead.line;
    return 1;
}

static int32_t read_choice(weft__gram_lark *r, int nested)
{
    size_t first = r->items.n;
    do {
        size_t begin = r->items.n;
        read_items(r, nested);
        if (!weft__gram_push(r->g, &r->items, weft__gram_seq_from(r->g, &r->items, begin))) break;
    } while (read_bar(r));
    skip(r, nested);
    return weft__gram_alt_from(r->g, &r->items, first);
}

static int32_t alternatives_of(weft__gram_lark *r, weft__gram_list *list)
{
    int32_t node = list->n ? weft__gram_alt_from(r->g, list, 0) : -1;
    weft__free(list->items);
    return node;
}

/* The alternatives of a rule. Those that begin with the rule itself are what may follow the others, any number of
 * times: a : a x | y is y x*. */
static int32_t read_body(weft__gram_lark *r, int32_t rule)
{
    weft__gram *g = r->g;
    weft__gram_list others = {0}, behind = {0};
    do {
        size_t begin = r->items.n, n = read_items(r, 0);
        if (n && !weft__gram_lark_failed(r) && weft__gram_is_ref(g, r->items.items[begin], rule)) {
            if (n > 1)
                weft__gram_push(g, &behind, weft__gram_seq_from(g, &r->items, begin + 1)); /* a : a says nothing */
            r->items.n = begin;
        } else {
            weft__gram_push(g, &others, weft__gram_seq_from(g, &r->items, begin));
        }
    } while (read_bar(r));
    weft__gram_line(g, r->line);
    if (!others.n && !weft__gram_lark_failed(r))
        weft__gram_fail(g, WEFT_ARGUMENT, "grammar: line %d: each way through the rule needs it again", r->line);
    int has_more = behind.n > 0;
    int32_t body = alternatives_of(r, &others), more = alternatives_of(r, &behind);
    if (weft__gram_lark_failed(r)) return -1;
    return has_more ? GRAM_SEQ(body, GRAM_ANY_NUMBER(more)) : body;
}

/* ---- statements ---- */

static void end_of_line(weft__gram_lark *r)
{
    skip(r, 0);
    if (!weft__gram_lark_failed(r) && r->s < r->end && *r->s != '\n')
        weft__gram_lark_fail(r, WEFT_ARGUMENT, "the line should end");
}

static void read_ignore(weft__gram_lark *r)
{
    r->in_terminal = 1;
    int32_t node = read_choice(r, 0);
    weft__gram_push(r->g, &r->ignores, node);
}

/* common.NAME, with -> ALIAS behind it, or common (NAME, NAME). */
static void read_import(weft__gram_lark *r)
{
    static const char library[] = "common";
    size_t n = name_length(r);
    if (n != sizeof library - 1 || memcmp(r->s, library, n) != 0) {
        weft__gram_lark_fail(r, WEFT_UNSUPPORTED, "only the library 'common' can be imported,");
        return;
    }
    r->s += n;
    skip(r, 0);
    int list = at(r, '(');
    if (!list && !at(r, '.')) {
        weft__gram_lark_fail(r, WEFT_ARGUMENT, "'.' and a name must follow");
        return;
    }
    do {
        r->s++;
        skip(r, list);
        const char *name = r->s, *alias = name;
        size_t length = name_length(r), alias_length = length;
        if (!weft__gram_lark_has_common(name, length)) {
            weft__gram_lark_fail(r, WEFT_UNSUPPORTED, "there is no such terminal in 'common'");
            return;
        }
        r->s += length;
        skip(r, list);
        if (!list && at_two(r, "->")) {
            r->s += 2;
            skip(r, 0);
            alias = r->s;
            alias_length = name_length(r);
            if (!alias_length) weft__gram_lark_fail(r, WEFT_ARGUMENT, "a name must follow '->'");
            r->s += alias_length;
        }
        if (weft__gram_lark_failed(r)) return;
        weft__gram_lark_common(r, name, length, weft__gram_rule(r->g, alias, alias_length));
    } while (list && at(r, ',') && !weft__gram_lark_failed(r));
    if (list && !at(r, ')')) weft__gram_lark_fail(r, WEFT_ARGUMENT, "',' or ')' must follow");
    else r->s += list;
}

static void read_directive(weft__gram_lark *r)
{
    r->s++;
    size_t n = name_length(r);
    const char *name = r->s;
    if (n == 6 && (!memcmp(name, "ignore", 6) || !memcmp(name, "import", 6))) {
        r->s += n;
        skip(r, 0);
        if (name[1] == 'g') read_ignore(r);
        else read_import(r);
        return;
    }
    r->s--;
    weft__gram_lark_fail(r, WEFT_UNSUPPORTED, "of directives there are %ignore and %import, and none");
}

static void read_definition(weft__gram_lark *r)
{
    int line = r->line;
    if (at(r, '?') || at(r, '!')) r->s++; /* they are about trees */
    size_t n = name_length(r);
    const char *name = r->s;
    if (n) r->s += n;
    if (n && at(r, '.')) {
        weft__gram_lark_fail(r, WEFT_UNSUPPORTED, "priorities are not supported,");
        return;
    }
    if (n && (at(r, '{') || at(r, '['))) {
        r->s = name;
        weft__gram_lark_fail(r, WEFT_UNSUPPORTED, "templates and attributes are not supported,");
        return;
    }
    skip(r, 0);
    if (!n || !at(r, ':')) {
        r->s = n ? name : r->s;
        weft__gram_lark_fail(r, WEFT_ARGUMENT, "a rule must begin with its name and ':'");
        return;
    }
    r->s++;
    r->in_terminal = is_terminal(name, n);
    int32_t rule = weft__gram_rule(r->g, name, n), body = read_body(r, rule);
    if (weft__gram_lark_failed(r)) return;
    weft__gram_line(r->g, line);
    weft__gram_define(r->g, rule, body);
}

static void define_ignored(weft__gram_lark *r)
{
    weft__gram *g = r->g;
    int any = r->ignores.n > 0;
    int32_t node = alternatives_of(r, &r->ignores);
    if (weft__gram_lark_failed(r)) return;
    weft__gram_line(g, 0);
    weft__gram_define(g, r->ignored, any ? GRAM_ANY_NUMBER(node) : GRAM_TEXT(""));
}

int32_t weft__gram_read_lark(weft__gram *g, const char *source, size_t n)
{
    weft__gram_lark r = {.g = g, .s = source, .end = source + n, .line = 1};
    if (n > WEFT__GRAM_MAX_SOURCE) {
        weft__gram_fail(g, WEFT_LIMIT, "grammar: %zu bytes of text; at most %d", n, WEFT__GRAM_MAX_SOURCE);
        return -1;
    }
    weft__gram_line(g, 0);
    int32_t root = GRAM_RULE("start");
    r.ignored = GRAM_RULE("ignored texts"); /* no name of the grammar has a blank */
    for (skip(&r, 1); r.s < r.end && !weft__gram_lark_failed(&r); skip(&r, 1)) {
        if (*r.s == '%') read_directive(&r);
        else read_definition(&r);
        end_of_line(&r);
    }
    define_ignored(&r);
    weft__free(r.items.items);
    weft__gram_line(g, 0);
    weft__gram_check_first(g, root);
    weft__gram_lark_check_common(&r);
    return root;
}
