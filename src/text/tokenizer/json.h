// SPDX-License-Identifier: Apache-2.0
/* json.h: tokenizers from Hugging Face's tokenizer.json (and the names in tokenizer_config.json beside it). Stateless.
 *
 * Read: models BPE, Unigram, WordPiece; added tokens; the normalizers, pre-tokenizers, post-processors and decoders
 * that these models come with. Whatever else a file names is refused by name, not skipped. */
#ifndef WEFT_TEXT_TOKENIZER_JSON_H
#define WEFT_TEXT_TOKENIZER_JSON_H

#include "base/json.h"
#include "text/tokenizer/tokenizer.h"

typedef struct weft__tok_json_vocab weft__tok_json_vocab;
/* The files; without data those that a folder lacks. Only the first is needed. */
typedef struct weft__tok_json_files {
    weft__tok_slice tokenizer; /* tokenizer.json */
    weft__tok_slice config;    /* tokenizer_config.json */
    weft__tok_slice added;     /* added_tokens.json, and special_tokens_map.json: read where the configuration has no */
    weft__tok_slice map;       /* added_tokens_decoder */
} weft__tok_json_files;
/* Reads the files: from the configuration come the roles of tokens (BOS, EOS ...), tokens beyond those of
 * tokenizer.json, and the chat template. Fails with WEFT_FORMAT (naming the field), WEFT_UNSUPPORTED (naming the
 * thing), WEFT_LIMIT or WEFT_NO_MEMORY. */
weft_status weft__tok_json_vocab_read(const weft__tok_json_files *files, weft__tok_json_vocab **out, weft_error *err);
/* For weft__tok_create. What it points to lives until weft__tok_json_vocab_free. */
const weft__tok_spec *weft__tok_json_vocab_spec(const weft__tok_json_vocab *v);
void weft__tok_json_vocab_free(weft__tok_json_vocab **v);

/* The chat templates of a configuration: one, or a list of them by name, of which "default" is the usual one. Texts are
 * the value's; *list is spec->templates, and the caller's to free (weft__free), NULL where there are none.
 * WEFT_NO_MEMORY. */
weft_status weft__tok_json_templates(const weft__json *value, weft__tok_spec *spec, weft__tok_template **list,
                                     weft_error *err);

#endif
