// SPDX-License-Identifier: Apache-2.0
/* grammar_file.c: the grammar of a file. One thread. */
#include "grammar_file.h"

#include <stdlib.h>

#include "prompt.h"

weft_status grammar_of_file(const weft_tokenizer *tokenizer, const char *path, int schema, weft_grammar **out,
                            weft_error *err)
{
    char *source = NULL;
    size_t n = 0;
    *out = NULL;
    weft_status st = read_text(path, &source, &n, err);
    if (st) return st;
    st = schema ? weft_grammar_from_schema(tokenizer, source, n, out, err)
                : weft_grammar_new(tokenizer, WEFT_GRAMMAR_GBNF, source, n, out, err);
    if (st) weft_fail_within(err, st, "%s", path);
    free(source);
    return st;
}
