// SPDX-License-Identifier: Apache-2.0
/* A traceparent header of any client: what is read of it has the lengths that its copies have room for, is hexadecimal
 * and names something, and reads the same when it is written again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/traces.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
    char text[128], again[80];
    weft__server_trace_parent parent, other;
    if (n >= sizeof text) n = sizeof text - 1;
    memcpy(text, data, n);
    text[n] = 0;
    char *exact = malloc(strlen(text) + 1); /* so that reading past its end is seen */
    if (!exact) return 0;
    strcpy(exact, text);
    const int ok = weft__server_trace_parent_read(exact, &parent);
    free(exact);
    if (!ok && (parent.trace[0] || parent.span[0])) abort();
    if (!ok) return 0;
    if (strlen(parent.trace) != 32 || strlen(parent.span) != 16 || strspn(parent.trace, "0") == 32) abort();
    snprintf(again, sizeof again, "00-%s-%s-0%d", parent.trace, parent.span, parent.is_sampled);
    if (!weft__server_trace_parent_read(again, &other) || memcmp(&parent, &other, sizeof parent)) abort();
    return 0;
}
