/* use_tokenizer.h: what the fuzz targets of tokenizers ask of one that was taken: ids within its range, and text that is UTF-8. */
#ifndef WEFT_FUZZ_USE_TOKENIZER_H
#define WEFT_FUZZ_USE_TOKENIZER_H

#include <stdlib.h>

#include "text/tokenizer/tokenizer.h"

static inline void use_tokenizer(const weft__tokenizer *tok, const char *text, size_t n)
{
    weft__ids ids = {0};
    weft__text back = {0};
    if (!weft__tokenizer_encode(tok, text, n, WEFT__ENCODE_SPECIAL | WEFT__ENCODE_PARSE, &ids, NULL)) {
        for (size_t i = 0; i < ids.n; i++)
            if (ids.data[i] < 0 || ids.data[i] >= weft__tokenizer_n(tok)) abort();
        if (weft__tokenizer_decode(tok, ids.data, ids.n, WEFT__DECODE_SPECIAL, &back, NULL)) abort();
        if (back.len && !weft__utf8_valid(back.data, back.len)) abort();
    }
    weft__text_free(&back);
    weft__ids_free(&ids);
}

#endif
