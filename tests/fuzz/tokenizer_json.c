// SPDX-License-Identifier: Apache-2.0
/* tokenizer_json.c: any bytes as tokenizer.json: what loads encodes some text without harm, and decodes it as UTF-8.
 * The text is what follows the first NUL, or the file itself. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "../json_tokenizer.h"
#include "use_tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { TEXT = 2000 }; /* bytes of it, at most */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    size_t before = weft__alloc_live();
    const char *json = (const char *)data, *nul = n ? memchr(data, 0, n) : NULL;
    size_t n_json = nul ? (size_t)(nul - json) : n;
    weft__tok *tok = NULL;
    weft_error err = {0};
    if (!json_tokenizer(json, n_json, NULL, 0, &tok, &err)) {
        if (nul) {
            use_tokenizer(tok, nul + 1, n - n_json - 1 > TEXT ? TEXT : n - n_json - 1);
        } else {
            use_tokenizer(tok, json, n > TEXT ? TEXT : n);
        }
    } else if (!*err.message) {
        abort();
    }
    weft__tok_destroy(&tok);
    if (weft__alloc_live() != before) abort();
    return 0;
}
