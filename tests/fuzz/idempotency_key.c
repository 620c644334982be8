// SPDX-License-Identifier: Apache-2.0
/* The value of an Idempotency-Key of any client: what is taken is a key within bounds, which, written as a String, is
 * read as itself; what is not is told. */
#include <stdlib.h>
#include <string.h>

#include "learn/feedback.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
    char key[WEFT__LEARN_KEY], again[WEFT__LEARN_KEY], quoted[2 * WEFT__LEARN_KEY + 2], *at = quoted;
    weft_error err = {0};
    char *value = malloc(n + 1); /* so that reading past its end is seen */
    if (!value) return 0;
    if (n) memcpy(value, data, n);
    value[n] = 0;
    const weft_status st = weft__learn_key_read(value, key, &err);
    free(value);
    if (st && !*err.message) abort();
    if (st) return 0;
    *at++ = '"';
    for (const char *k = key; *k; k++) {
        if (*k < 0x20 || *k > 0x7e) abort();
        if (*k == '"' || *k == '\\') *at++ = '\\';
        *at++ = *k;
    }
    *at++ = '"';
    *at = 0;
    if (!*key || strlen(key) >= WEFT__LEARN_KEY) abort();
    if (weft__learn_key_read(quoted, again, &err) || strcmp(key, again)) abort();
    return 0;
}
