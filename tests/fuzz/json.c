// SPDX-License-Identifier: Apache-2.0
/* json.c: any bytes through the JSON façade: what parses is written as text that parses to the same text again. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Writes v, and parses what was written; aborts when that is refused. */
static weft__json *round_trip(const weft__json *v, weft__strbuf *t)
{
    weft__json *again = NULL;
    weft_error err;
    weft__json_write(t, v, WEFT__JSON_SPACED);
    if (t->failed || weft__json_parse(t->data, t->len, &again, &err)) abort();
    return again;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    size_t before = weft__alloc_live();
    weft__json *v = NULL;
    weft_error err;
    if (weft__json_parse((const char *)data, n, &v, &err) == WEFT_OK) {
        weft__strbuf first = {0}, second = {0};
        weft__json *again = round_trip(v, &first), *third = round_trip(again, &second);
        if (first.len != second.len || memcmp(first.data, second.data, first.len)) abort();
        weft__json_free(&again);
        weft__json_free(&third);
        weft__strbuf_free(&first);
        weft__strbuf_free(&second);
    }
    weft__json_free(&v);
    if (weft__alloc_live() != before) abort();
    return 0;
}
