// SPDX-License-Identifier: Apache-2.0
/* schema.c: any bytes as a JSON Schema: it is refused, or its automaton is walked along the first way that it allows,
 * and what was written is JSON, where the way ends within a few hundred bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "text/grammar/run.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Byte by byte, those first that end something. */
static size_t write_one(const weft__gram_automaton *a, char *text, size_t room, int *done)
{
    static const char order[] = "}]\"0,:{[1truefalsn";
    weft__gram_run r;
    size_t n = 0;
    if (!weft__gram_run_init(&r, a)) abort();
    r.work = (size_t)1 << 20;
    weft__gram_set at = weft__gram_run_start(&r);
    while (!at.done && n < room && !r.status) {
        weft__gram_set next = {0, 0, 0};
        int found = -1;
        for (size_t i = 0; i < sizeof order - 1 + 256 && found < 0 && !r.status; i++) {
            int byte = i < sizeof order - 1 ? order[i] : (int)(i - (sizeof order - 1));
            next = weft__gram_run_step(&r, at, (unsigned char)byte);
            if (next.begin < next.end || next.done) found = byte;
        }
        if (found < 0 || r.status) break;
        text[n++] = (char)found;
        at = next;
    }
    *done = at.done && !r.status;
    weft__gram_run_free(&r);
    return n;
}

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
    size_t n = write_one(a, text, sizeof text, &done);
    if (done) {
        if (weft__json_parse(text, n, &value, NULL) == WEFT_FORMAT && !memchr(text, '{', n)) abort();
        weft__json_free(&value);
    }
    weft__gram_automaton_destroy(&a);
    return 0;
}
