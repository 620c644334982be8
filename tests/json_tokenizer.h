// SPDX-License-Identifier: Apache-2.0
/* json_tokenizer.h: the tokenizer of a tokenizer.json and, unless it is NULL, of a tokenizer_config.json in memory. */
#ifndef WEFT_TESTS_JSON_TOKENIZER_H
#define WEFT_TESTS_JSON_TOKENIZER_H

#include "text/tokenizer/json.h"

static inline weft_status json_tokenizer(const char *json, size_t n, const char *config, size_t n_config,
                                         weft__tok **out, weft_error *err)
{
    const weft__tok_json_files files = {.tokenizer = {json, n}, .config = {config, n_config}};
    weft__tok_json_vocab *v;
    *out = NULL;
    weft_status status = weft__tok_json_vocab_read(&files, &v, err);
    if (status) return status;
    status = weft__tok_create(weft__tok_json_vocab_spec(v), out, err);
    weft__tok_json_vocab_free(&v);
    return status;
}

#endif
