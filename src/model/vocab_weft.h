// SPDX-License-Identifier: Apache-2.0
/* vocab_weft.h: the keys tokenizer.weft.*, which say what GGUF's usual keys have no words for (docs/howto/convert.md).
 * Other programs do not know them. Stateless. */
#ifndef WEFT_MODEL_VOCAB_WEFT_H
#define WEFT_MODEL_VOCAB_WEFT_H

#include "format/gguf_write.h"
#include "text/tokenizer/tokenizer.h"

/* What the arrays of a specification point to where they were made of these keys. Zero-initialise. */
typedef struct weft__vocab_extra {
    weft__tok_norm_step *norms;
    weft__tok_split_step *splits;
    weft__tok_merge_pair *merges;
    int32_t *ends;
} weft__vocab_extra;
void weft__vocab_extra_free(weft__vocab_extra *x);

/* Puts what the keys say over what the usual ones said; texts [spec->n_tokens] is the array behind spec->tokens. The
 * file owns all texts. Fails with WEFT_FORMAT, naming the key, when one is malformed or stands without those that it
 * needs. */
weft_status weft__vocab_read_weft(const weft__gguf *g, weft__tok_spec *spec, weft__tok_slice *texts,
                                  weft__vocab_extra *x, weft_error *err);

/* vocab_put.c: the usual keys of all tokens, each of which has a type; they say it as near as they can. Fails as
 * weft__vocab_put does. */
weft_status weft__vocab_put_usual(const weft__tok_spec *spec, const char *pre, weft__gguf_writer *w, weft_error *err);
/* Adds the keys for the differences (weft__tok_difference bits) between the specification and `usual`, the tokenizer
 * that the usual keys give; NULL: they give none. Some differences have no key. */
weft_status weft__vocab_put_weft(const weft__tok_spec *spec, unsigned differences, const weft__tok *usual,
                                 weft__gguf_writer *w, weft_error *err);

#endif
