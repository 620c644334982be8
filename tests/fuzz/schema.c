// SPDX-License-Identifier: Apache-2.0
/* schema.c: any bytes as a JSON Schema: it is refused, or its automaton is walked along the first way that it allows,
 * and what was written is JSON, where the way ends within a few hundred bytes. */
#include <stdint.h>
#include <string.h>

#include "base/json.h"
#include "walk_grammar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weft__gram_automaton *a;
    weft__json *value;
    char text[512];
    int done;
    weft__gram *g = weft__gram_create();
    if (!g) abort();
    int32_t root = weft__gram_read_schema(g, (const char *)data, size);
    weft_status st = weft__gram_compile(g, root, 64, &a, NULL);
    weft__gram_destroy(&g);
    if (st) return 0;
    size_t n = walk_grammar(a, "}]\"0,:{[1truefalsn", text, sizeof text, &done);
    if (done) {
        weft_error err = {0};
        const weft_status read =
            weft__json_parse(text, n, &value, &err); /* whole numbers may have 64 bits without a sign */
        if (read == WEFT_FORMAT && !memchr(text, '{', n) && !strstr(err.message, "out of range")) abort();
        weft__json_free(&value);
    }
    weft__gram_automaton_destroy(&a);
    return 0;
}
