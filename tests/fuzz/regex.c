// SPDX-License-Identifier: Apache-2.0
/* regex.c: any bytes as a regular expression of an answer: it is refused, or a text that all readers match is one that
 * any of them does. As a pattern that is looked for it is refused, or the threads find what the search's automaton
 * does, where that does, and what is found begins in the text. */
#include <stdint.h>
#include <string.h>

#include "text/grammar/search.h"
#include "walk_grammar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* NULL: refused. */
static weft__gram_automaton *compile(const uint8_t *data, size_t size, unsigned flags)
{
    weft__gram_automaton *a;
    weft__gram_regex_facts facts;
    weft__gram *g = weft__gram_create();
    if (!g) abort();
    int32_t root = weft__gram_rule(g, "root", 4);
    int32_t body = weft__gram_regex(g, (const char *)data, size, flags | WEFT__GRAM_REGEX_WHOLE, &facts);
    if (!facts.why) weft__gram_define(g, root, body);
    if (facts.why || weft__gram_compile(g, root, 64, &a, NULL)) a = NULL;
    weft__gram_destroy(&g);
    return a;
}

/* NULL: refused. */
static weft__gram_search *look_for(const uint8_t *data, size_t size, unsigned flags)
{
    weft__gram_search *s = NULL;
    weft__gram_patterns *patterns = NULL;
    weft__gram_regex_facts facts;
    weft__gram *g = weft__gram_create();
    if (!g) abort();
    int32_t rule = weft__gram_rule(g, "pattern", 7);
    int32_t body = weft__gram_regex(g, (const char *)data, size, flags | WEFT__GRAM_REGEX_MARKED, &facts);
    if (!facts.why) weft__gram_define(g, rule, body);
    if (!facts.why && !weft__gram_patterns_create(g, rule, &patterns, NULL))
        if (weft__gram_search_create(g, -1, -1, -1, patterns, &s, NULL)) s = NULL;
    weft__gram_destroy(&g);
    return s;
}

/* The text as it is, then with a part of it as a control token. */
static void find_in(const weft__gram_search *s, const char *text, size_t n)
{
    for (int control = 0; control < 2; control++) {
        weft__gram_trail t = {0};
        uint64_t from = UINT64_MAX;
        int found = 0;
        weft__gram_trail_begin(s, &t, 0);
        for (size_t i = 0; i < n && !found; i++) {
            const int quoted = control && (i == n / 3 || i == n / 2);
            const unsigned char byte = quoted ? WEFT__GRAM_TRIE_CONTROL : (unsigned char)text[i];
            const int expected = s->next[256 * (size_t)t.state + byte] == WEFT__GRAM_SEARCH_FOUND;
            found = weft__gram_trail_step(s, &t, byte, &from);
            if (found != expected || (found && from > i) || weft__gram_trail_oldest(&t) > i + 1) abort();
            if (!found && (weft__gram_trail_ends(s, &t, &from) != ((s->looks[t.state] & WEFT__GRAM_SEARCH_ENDS) != 0)))
                abort();
        }
        weft__gram_trail_free(&t);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const unsigned flags[] = {0, WEFT__GRAM_REGEX_ANY_CASE, WEFT__GRAM_REGEX_DOT_ALL};
    char text[512];
    int done;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        weft__gram_automaton *a = compile(data, size, flags[i]);
        weft__gram_automaton *wide = a ? compile(data, size, flags[i] | WEFT__GRAM_REGEX_WIDE) : NULL;
        size_t n = a ? walk_grammar(a, "a0- \n", text, sizeof text, &done) : 0;
        if (wide && done && !takes_text(wide, text, n)) abort();
        weft__gram_automaton_destroy(&wide);
        if (a && !i) {
            for (unsigned whole = 0; whole < 2; whole++) {
                weft__gram_search *s = look_for(data, size, whole ? WEFT__GRAM_REGEX_WHOLE : 0);
                if (s) find_in(s, text, n);
                if (s) find_in(s, (const char *)data, size < 200 ? size : 200);
                weft__gram_search_destroy(&s);
            }
        }
        weft__gram_automaton_destroy(&a);
    }
    return 0;
}
