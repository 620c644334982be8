// SPDX-License-Identifier: Apache-2.0
/* schema_language.c: languages of JSON strings, quotes included, that a schema's keywords describe: for strings and
 * names that several keywords hold at once. Characters are spelled as JSON's writers spell them. Languages of patterns
 * are kept. One thread. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "text/grammar/build.h"
#include "text/grammar/parts.h"
#include "text/grammar/schema_parts.h"

enum { MAX_PARTS = 32 };

/* Rules of JSON in a grammar of their own; NULL after a failure. */
static weft__gram *own_rules(weft__gram_schema *c)
{
    weft__gram *g = weft__gram_schema_failed(c) ? NULL : weft__gram_create();
    if (!g && !weft__gram_schema_failed(c)) weft__gram_fail(c->g, WEFT_NO_MEMORY, "no memory for a grammar");
    if (g) weft__gram_json_parts(g);
    return g;
}

/* The language of `body`, with g let go; NULL after a failure. */
static weft__gram_automaton *language_of(weft__gram_schema *c, weft__gram *g, int32_t body, const char *at,
                                         const char *key)
{
    weft__gram_automaton *a = NULL;
    weft_error err = {0};
    int32_t root = GRAM_RULE("root");
    weft__gram_define(g, root, body);
    weft_status st = weft__gram_language(g, root, &c->budget->language_work, &a, &err);
    weft__gram_destroy(&g);
    if (st == WEFT_NO_MEMORY) weft__gram_fail(c->g, st, "no memory for a grammar");
    else if (st && !strncmp(err.message, "schema: ", 8)) weft__gram_fail(c->g, st, "%s", err.message);
    else if (st == WEFT_LIMIT) weft__gram_schema_fail(c, st, at, key, WEFT__GRAM_TOO_MUCH);
    else if (st) weft__gram_schema_fail(c, st, at, key, "%s", err.message);
    return a;
}

static int keep_language(weft__gram_schema *c, const char *name, size_t n, weft__gram_automaton *a)
{
    if (a && weft__grow(&c->languages, &c->languages_capacity, c->language_names.n + 1, sizeof *c->languages) &&
        weft__strings_add(&c->language_names, name, n, 1)) {
        c->languages[c->language_names.n - 1] = a;
        return 1;
    }
    if (a) weft__gram_fail(c->g, WEFT_NO_MEMORY, "no memory for a grammar");
    weft__gram_automaton_destroy(&a);
    return 0;
}

/* Strings that have a mark in them. */
static weft__gram_automaton *strings_with(weft__gram_schema *c, const char *mark, const char *at, const char *key)
{
    weft__gram *g = own_rules(c);
    if (!g) return NULL;
    int32_t open = GRAM_TEXT("\""), before = GRAM_ANY_NUMBER(GRAM_REF(GRAM_RULE("char")));
    int32_t text = weft__gram_text(g, mark, strlen(mark)), behind = GRAM_ANY_NUMBER(GRAM_REF(GRAM_RULE("char")));
    return language_of(c, g, GRAM_SEQ(open, before, text, behind, GRAM_TEXT("\"")), at, key);
}

/* The parts, and that the mark is in none of the texts. 0 after a failure. */
static int put_marked(weft__gram_schema *c, const char *at, const char *key, weft__gram_part *parts, size_t *n)
{
    if (*n >= MAX_PARTS) weft__gram_schema_fail(c, WEFT_LIMIT, at, key, "too much is asked at once");
    if (c->mark && !c->marked) c->marked = strings_with(c, c->mark, at, key);
    if (weft__gram_schema_failed(c)) return 0;
    if (c->mark) parts[(*n)++] = (weft__gram_part){c->marked, 1};
    return 1;
}

/* Any number of characters and quotes. */
static const weft__gram_automaton *any_characters(weft__gram_schema *c, const char *at, const char *key)
{
    if (!c->characters) {
        weft__gram *g = own_rules(c);
        if (!g) return NULL;
        int32_t quote = GRAM_TEXT("\"");
        c->characters = language_of(c, g, GRAM_ANY_NUMBER(GRAM_ALT(quote, GRAM_REF(GRAM_RULE("char")))), at, key);
    }
    return c->characters;
}

int32_t weft__gram_schema_counted_to(weft__gram_schema *c, const char *at, const char *key,
                                     const weft__gram_part *parts, size_t n, uint32_t most)
{
    enum { QUOTES = 2 };
    weft__gram_part all[MAX_PARTS + 1];
    const weft__gram_automaton *characters = any_characters(c, at, key);
    if (weft__gram_schema_failed(c)) return -1;
    if (n < MAX_PARTS) memcpy(all, parts, n * sizeof *all);
    return put_marked(c, at, key, all, &n) ? weft__gram_counted(c->g, all, n, characters, most + QUOTES) : -1;
}

int32_t weft__gram_schema_common(weft__gram_schema *c, const char *at, const char *key, const weft__gram_part *parts,
                                 size_t n)
{
    weft__gram_part all[MAX_PARTS + 1];
    if (n < MAX_PARTS) memcpy(all, parts, n * sizeof *all);
    if (!put_marked(c, at, key, all, &n)) return -1;
    int32_t node = weft__gram_common(c->g, all, n);
    return node != WEFT__GRAM_TOO_MANY
               ? node
               : weft__gram_schema_fail(c, WEFT_LIMIT, at, key, "with what else is asked, it needs more than %d states",
                                        WEFT__GRAM_MAX_PRODUCT);
}

int weft__gram_schema_nothing_common(weft__gram_schema *c, const char *at, const weft__gram_automaton *a,
                                     const weft__gram_automaton *b)
{
    enum { WORK = 16 }; /* of a state */
    weft__gram *g = weft__gram_schema_failed(c) ? NULL : weft__gram_create();
    if (!g) return 0;
    const int none = weft__gram_common(g, (const weft__gram_part[]){{a, 0}, {b, 0}}, 2) == WEFT__GRAM_NO_TEXT &&
                     !weft__gram_failed(g);
    const size_t work = g->n_product * WORK;
    weft__gram_destroy(&g);
    if (work > c->budget->language_work)
        weft__gram_schema_fail(c, WEFT_LIMIT, at, NULL, "its parts take too many steps to compare");
    c->budget->language_work -= work < c->budget->language_work ? work : c->budget->language_work;
    return none && !weft__gram_schema_failed(c);
}

int32_t weft__gram_schema_unmarked(weft__gram_schema *c, const char *at, const char *key, const char *s, size_t n,
                                   uint32_t most)
{
    weft__gram_regex_facts facts;
    weft__gram_automaton *all = NULL, *with = NULL;
    int32_t node = -1;
    weft__gram *g = own_rules(c);
    if (g) {
        int32_t text = most == UINT32_MAX ? weft__gram_regex(g, s, n, 0, &facts)
                                          : weft__gram_regex_bounded(g, s, n, 0, most, &facts);
        all = language_of(c, g, text, at, key);
    }
    if ((g = own_rules(c))) {
        int32_t before = GRAM_ANY_NUMBER(GRAM_CLASS({0, 0x10FFFF})),
                mark = weft__gram_text(g, c->mark, strlen(c->mark));
        int32_t behind = GRAM_ANY_NUMBER(GRAM_CLASS({0, 0x10FFFF}));
        with = language_of(c, g, GRAM_SEQ(before, mark, behind), at, key);
    }
    if (all && with)
        node =
            weft__gram_common(c->g, (const weft__gram_part[]){{.language = all}, {.language = with, .lacked = 1}}, 2);
    weft__gram_automaton_destroy(&with);
    weft__gram_automaton_destroy(&all);
    if (node == WEFT__GRAM_TOO_MANY) return weft__gram_schema_fail(c, WEFT_LIMIT, at, key, WEFT__GRAM_TOO_MUCH);
    if (node >= 0 || weft__gram_schema_failed(c)) return node;
    return weft__gram_schema_fail(c, WEFT_UNSUPPORTED, at, key,
                                  "each of its texts has '%s' in it, which ends a parameter", c->mark);
}

const weft__gram_automaton *weft__gram_schema_pattern(weft__gram_schema *c, const char *at, const char *key,
                                                      const char *s, size_t n, uint32_t most, int wide)
{
    weft__strbuf name = {0};
    weft__gram_regex_facts facts;
    const weft__gram_automaton *kept = NULL;
    weft__strbuf_printf(&name, "%c%lx ", wide ? 'w' : 'n', (unsigned long)most);
    weft__strbuf_put(&name, s, n);
    int32_t known = name.failed ? -1 : weft__strings_find(&c->language_names, name.data, name.len);
    if (known >= 0) {
        kept = c->languages[known];
        goto done;
    }
    weft__gram *g = own_rules(c);
    if (!g) goto done;
    int32_t open = GRAM_TEXT("\""), close = GRAM_TEXT("\"");
    const unsigned flags = WEFT__GRAM_REGEX_QUOTED | (wide ? WEFT__GRAM_REGEX_WIDE : 0);
    int32_t inside = most == UINT32_MAX ? weft__gram_regex(g, s, n, flags, &facts)
                                        : weft__gram_regex_bounded(g, s, n, flags, most, &facts);
    if (facts.why) {
        weft__gram_schema_fail(c, WEFT_UNSUPPORTED, at, key, "%s", facts.why);
        weft__gram_destroy(&g);
    } else {
        weft__gram_automaton *a = language_of(c, g, GRAM_SEQ(open, inside, close), at, key);
        if (name.failed) weft__gram_fail(c->g, WEFT_NO_MEMORY, "no memory for a grammar");
        if (keep_language(c, name.data, name.len, a)) kept = a;
    }
done:
    weft__strbuf_free(&name);
    return kept;
}

int weft__gram_schema_matches(weft__gram_schema *c, const char *at, const char *key, const weft__json *pattern,
                              const char *s, size_t n, int wide)
{
    weft__strbuf text = {0};
    enum { MAX_LOOKED = 8, STEPS = 8 /* that it counts as: its parts are looked up, and kept */ };
    weft__gram_held held[MAX_LOOKED];
    const char *expression;
    size_t length;
    int has = 1;
    if (!weft__gram_schema_steps(c, STEPS, at)) return 0;
    if (!weft__gram_schema_expression(c, at, key, pattern, &expression, &length)) return !weft__gram_schema_failed(c);
    const size_t count = weft__gram_schema_lookaheads(c, expression, length, held, MAX_LOOKED);
    weft__json_write_string(&text, s, n);
    if (text.failed) weft__gram_fail(c->g, WEFT_NO_MEMORY, "no memory for a grammar");
    for (size_t i = 0; i < count && has && !weft__gram_schema_failed(c); i++) {
        const weft__gram_automaton *a =
            weft__gram_schema_pattern(c, at, key, held[i].s, held[i].n, UINT32_MAX, wide != held[i].lacked);
        has = a && weft__gram_language_has(a, text.data, text.len) != held[i].lacked;
    }
    weft__strbuf_free(&text);
    return has && count && !weft__gram_schema_failed(c);
}

weft__gram_automaton *weft__gram_schema_lengths(weft__gram_schema *c, const char *at, uint32_t min, uint32_t max)
{
    weft__gram *g = own_rules(c);
    if (!g) return NULL;
    int32_t open = GRAM_TEXT("\""), close = GRAM_TEXT("\"");
    int32_t inside = GRAM_REPEAT(min, max, GRAM_REF(GRAM_RULE("char")));
    return language_of(c, g, GRAM_SEQ(open, inside, close), at, max == UINT32_MAX ? "minLength" : "maxLength");
}

weft__gram_automaton *weft__gram_schema_any_name(weft__gram_schema *c, const char *at)
{
    weft__gram_regex_facts facts;
    weft__gram *g = own_rules(c);
    if (!g) return NULL;
    int32_t open = GRAM_TEXT("\""), close = GRAM_TEXT("\"");
    int32_t inside = weft__gram_regex(
        g, ".*", 2, WEFT__GRAM_REGEX_QUOTED | WEFT__GRAM_REGEX_WHOLE | WEFT__GRAM_REGEX_DOT_ALL, &facts);
    return language_of(c, g, GRAM_SEQ(open, inside, close), at, "additionalProperties");
}

weft__gram_automaton *weft__gram_schema_name_class(weft__gram_schema *c, const char *at, uint32_t number, uint32_t n,
                                                   int by_length)
{
    weft__gram *g = own_rules(c);
    weft__gram_range first[96];
    size_t n_first = 0;
    if (!g) return NULL;
    for (uint32_t x = ' '; x < 0x7F; x++)
        if (x != '"' && x != '\\' && x % n == number) first[n_first++] = (weft__gram_range){x, x};
    if (!number) first[n_first++] = (weft__gram_range){0x80, 0x10FFFF};
    int32_t begin =
        by_length ? GRAM_REPEAT(number, number, GRAM_REF(GRAM_RULE("char"))) : weft__gram_class(g, first, n_first, 0);
    int32_t rest = GRAM_ANY_NUMBER(GRAM_REPEAT(by_length ? n : 1, by_length ? n : 1, GRAM_REF(GRAM_RULE("char"))));
    int32_t open = GRAM_TEXT("\"");
    return language_of(c, g, GRAM_SEQ(open, begin, rest, GRAM_TEXT("\"")), at, "minProperties");
}

weft__gram_automaton *weft__gram_schema_texts(weft__gram_schema *c, const char *at, const char *const *names,
                                              const size_t *lengths, size_t n)
{
    weft__gram *g = own_rules(c);
    int32_t *items = weft__alloc_array(n, sizeof *items);
    weft__strbuf text = {0};
    if (!items) weft__gram_fail(c->g, WEFT_NO_MEMORY, "no memory for a grammar");
    for (size_t i = 0; g && items && i < n; i++) {
        text.len = 0;
        weft__json_write_string(&text, names[i], lengths[i]);
        items[i] = text.failed ? -1 : weft__gram_text(g, text.data, text.len);
    }
    weft__gram_automaton *a = NULL;
    if (text.failed) weft__gram_fail(c->g, WEFT_NO_MEMORY, "no memory for a grammar");
    if (g && items && !text.failed) a = language_of(c, g, weft__gram_alt(g, items, n), at, "properties");
    else weft__gram_destroy(&g);
    weft__strbuf_free(&text);
    weft__free(items);
    return a;
}

weft__gram_automaton *weft__gram_schema_strings(weft__gram_schema *c, const weft__json *schema, const char *at)
{
    weft__gram *main_rules = c->g, *g = own_rules(c);
    if (!g) return NULL;
    int32_t items[256];
    size_t n = weft__json_size(schema);
    c->g = g;
    for (size_t i = 0; i < n && i < 256; i++) items[i] = weft__gram_schema_flat(c, weft__json_at(schema, i), at);
    int32_t body = weft__gram_failed(g) ? -1 : weft__gram_alt(g, items, n);
    c->g = main_rules;
    return language_of(c, g, body, at, "propertyNames");
}
