// SPDX-License-Identifier: Apache-2.0
/* use_tokenizer.h: what the fuzz targets of tokenizers ask of one that was taken: ids within its range, and text that
 * is UTF-8. */
#ifndef WEFT_FUZZ_USE_TOKENIZER_H
#define WEFT_FUZZ_USE_TOKENIZER_H

#include <stdlib.h>

#include "text/tokenizer/tokenizer.h"

static inline void use_tokenizer(const weft__tok *tok, const char *text, size_t n)
{
    weft__tok_ids ids = {0};
    weft__strbuf back = {0};
    if (!weft__tok_encode(tok, text, n, WEFT__TOK_ENCODE_SPECIAL | WEFT__TOK_ENCODE_PARSE, &ids, NULL)) {
        for (size_t i = 0; i < ids.n; i++)
            if (ids.data[i] < 0 || ids.data[i] >= weft__tok_n(tok)) abort();
        if (weft__tok_decode(tok, ids.data, ids.n, WEFT__TOK_DECODE_SPECIAL, &back, NULL)) abort();
        if (back.len && !weft__utf8_valid(back.data, back.len)) abort();
    }
    weft__strbuf_free(&back);
    weft__tok_ids_free(&ids);
}

#endif
