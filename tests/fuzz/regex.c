// SPDX-License-Identifier: Apache-2.0
/* regex.c: any bytes as a regular expression of an answer: it is refused, or a text that all readers match is one that
 * any of them does. */
#include <stdint.h>
#include <string.h>

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
        weft__gram_automaton_destroy(&a);
    }
    return 0;
}
