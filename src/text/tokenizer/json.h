/* json.h: tokenizers from Hugging Face's tokenizer.json (and the names in tokenizer_config.json beside it). Stateless.
 *
 * Read: models BPE, Unigram, WordPiece; added tokens; the normalizers, pre-tokenizers, post-processors and decoders that these
 * models come with. Whatever else a file names is refused by name, not skipped. */
#ifndef WEFT_TEXT_TOKENIZER_JSON_H
#define WEFT_TEXT_TOKENIZER_JSON_H

#include "base/json.h"
#include "text/tokenizer/tokenizer.h"

typedef struct weft__json_vocab weft__json_vocab;
/* The files; without data those that a folder lacks. Only the first is needed. */
typedef struct weft__json_files {
    weft__slice tokenizer; /* tokenizer.json */
    weft__slice config;    /* tokenizer_config.json */
    weft__slice added;     /* added_tokens.json, and special_tokens_map.json: read where the configuration has no */
    weft__slice map;       /* added_tokens_decoder */
} weft__json_files;
/* Reads the files: from the configuration come the roles of tokens (BOS, EOS ...), tokens beyond those of tokenizer.json, and the
 * chat template. Fails with WEFT_FORMAT (naming the field), WEFT_UNSUPPORTED (naming the thing), WEFT_LIMIT or WEFT_NO_MEMORY. */
weft_status weft__json_vocab_read(const weft__json_files *files, weft__json_vocab **out, weft_error *err);
/* For weft__tokenizer_create. What it points to lives until weft__json_vocab_free. */
const weft__vocab_spec *weft__json_vocab_spec(const weft__json_vocab *v);
void weft__json_vocab_free(weft__json_vocab **v);

/* The chat templates of a configuration: one, or a list of them by name, of which "default" is the usual one. Texts are the value's;
 * *list is spec->templates, and the caller's to free (weft__free), NULL where there are none. WEFT_NO_MEMORY. */
weft_status weft__json_templates(const weft__json *value, weft__vocab_spec *spec, weft__named_template **list, weft_error *err);

#endif
