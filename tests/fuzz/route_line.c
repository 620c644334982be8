// SPDX-License-Identifier: Apache-2.0
/* route_line.c: any bytes as a line of a router's log: read, and then written as a line that reads the same, or refused
 * with a message; what features are made of any text is finite. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "route/book.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
    static weft__route_line line, again;
    const size_t before = weft__alloc_live();
    weft_error err = {0};
    float x[WEFT__ROUTE_DIMS];
    weft__route_features((const char *)data, n, NULL, 0, x);
    for (int i = 0; i < WEFT__ROUTE_DIMS; i++)
        if (!isfinite(x[i]) || fabsf(x[i]) > 4) abort();
    const weft_status st = weft__route_line_read((const char *)data, n, &line, &err);
    if (st && !*err.message) abort();
    if (!st) {
        weft__strbuf out = {0};
        weft__route_line_write(&line, &out);
        if (out.failed || out.len >= WEFT__ROUTE_LINE || out.data[out.len - 1] != '\n') abort();
        if (weft__route_line_read(out.data, out.len, &again, NULL) || memcmp(&line, &again, sizeof line)) abort();
        weft__strbuf_free(&out);
    }
    if (weft__alloc_live() != before) abort();
    return 0;
}
