// SPDX-License-Identifier: Apache-2.0
/* spm_proto.c: fuzzes the reader of SentencePiece models: any bytes are refused with a message, or give a vocabulary
 * whose every text can be read, and which the tokenizer accepts or refuses cleanly. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "text/tokenizer/spm_proto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t touched; /* keeps the reads alive */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weft__tok_spm_model *m;
    weft__tok *tok = NULL;
    weft_error err = {0};
    size_t live = weft__alloc_live();
    if (weft__tok_spm_model_read(data, size, &m, &err) == WEFT_OK) {
        const weft__tok_spec *s = weft__tok_spm_model_spec(m);
        for (size_t i = 0; i < s->n_tokens; i++)
            for (size_t k = 0; k < s->tokens[i].len; k++) touched += (unsigned char)s->tokens[i].data[k];
        weft__tok_create(s, &tok, &err);
        weft__tok_destroy(&tok);
    } else if (m || !strstr(err.message, "tokenizer.model: ")) {
        abort();
    }
    weft__tok_spm_model_free(&m);
    if (weft__alloc_live() != live) abort();
    return 0;
}
