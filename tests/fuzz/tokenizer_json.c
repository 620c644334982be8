/* tokenizer_json.c: any bytes as tokenizer.json: what loads encodes some text without harm, and decodes it as UTF-8. The text is what follows
 * the first NUL, or the file itself. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "text/tokenizer_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void use(const weft__tokenizer *tok, const char *text, size_t n)
{
    weft__ids ids = {0};
    weft__text back = {0};
    if (n > 2000) n = 2000;
    if (!weft__tokenizer_encode(tok, text, n, WEFT__ENCODE_SPECIAL | WEFT__ENCODE_PARSE, &ids, NULL)) {
        for (size_t i = 0; i < ids.n; i++) {
            if (ids.data[i] < 0 || ids.data[i] >= weft__tokenizer_n(tok)) abort();
        }
        if (weft__tokenizer_decode(tok, ids.data, ids.n, WEFT__DECODE_SPECIAL, &back, NULL)) abort();
        if (back.len && !weft__utf8_valid(back.data, back.len)) abort();
    }
    weft__text_free(&back);
    weft__ids_free(&ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    size_t before = weft__alloc_live();
    const char *json = (const char *)data, *nul = n ? memchr(data, 0, n) : NULL;
    size_t n_json = nul ? (size_t)(nul - json) : n;
    weft__tokenizer *tok = NULL;
    weft_error err = {0};
    if (!weft__tokenizer_json_create(json, n_json, NULL, 0, &tok, &err)) {
        if (nul) {
            use(tok, nul + 1, n - n_json - 1);
        } else {
            use(tok, json, n);
        }
    } else if (!*err.message) {
        abort();
    }
    weft__tokenizer_destroy(&tok);
    if (weft__alloc_live() != before) abort();
    return 0;
}
