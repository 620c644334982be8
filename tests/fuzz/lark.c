// SPDX-License-Identifier: Apache-2.0
/* lark.c: any bytes as Lark-like EBNF: it is refused with a message, or its automaton writes a text that it takes. */
#include <stdint.h>
#include <string.h>

#include "walk_grammar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weft__gram_automaton *a;
    weft_error err = {0};
    char text[512];
    int done;
    weft__gram *g = weft__gram_create();
    if (!g) abort();
    int32_t root = weft__gram_read_lark(g, (const char *)data, size);
    weft_status st = weft__gram_compile(g, root, 64, &a, &err);
    weft__gram_destroy(&g);
    if (st) {
        if (!err.message[0]) abort();
        return 0;
    }
    size_t n = walk_grammar(a, ")];\"", text, sizeof text, &done);
    if (done && !takes_text(a, text, n)) abort();
    weft__gram_automaton_destroy(&a);
    return 0;
}
