// SPDX-License-Identifier: Apache-2.0
/* vocab.h: the tokenizer that a GGUF file carries (keys tokenizer.ggml.*, as the GGUF specification names them).
 * Stateless. */
#ifndef WEFT_MODEL_VOCAB_H
#define WEFT_MODEL_VOCAB_H

#include "format/gguf_write.h"
#include "text/tokenizer/tokenizer.h"

/* What GGUF's keys have no words for stands in keys of the engine's own, tokenizer.weft.* (docs/howto/convert.md). This
 * one is [tokens] of WEFT__TOK_STRIP and _ADDED bits: what special tokens do to the text beside them. Without it
 * nothing is known of that, unless by the model's name. */
#define WEFT__VOCAB_STRIPS "tokenizer.weft.strips"

/* Builds the file's tokenizer, which does not need the file afterwards. Fails with WEFT_NOT_FOUND when the file carries
 * none, with WEFT_FORMAT when a key has the wrong type or length (the message names it), and as weft__tok_create
 * does. */
weft_status weft__vocab_tokenizer(const weft__gguf *g, weft__tok **out, weft_error *err);

/* Adds the keys of a vocabulary to `w`: n tokens, of which those beyond the vocabulary's are marked unused. pre: the
 * pre-tokenizer's name in GGUF, for byte-level BPE; NULL: the name that the explicit steps have. First the usual keys;
 * where they alone give another tokenizer, those of the engine's own beside them. What the keys give is compared with
 * the vocabulary, member by member and on texts, so that nothing is added which is read otherwise. Warns where programs
 * that know only the usual keys read a text otherwise. Fails with WEFT_UNSUPPORTED when the tokenizer cannot be said in
 * keys (naming what), WEFT_ARGUMENT for an unknown name, as weft__tok_create does for the vocabulary, and as
 * weft__gguf_put does. */
weft_status weft__vocab_put(const weft__tok_spec *spec, size_t n, const char *pre, weft__gguf_writer *w,
                            weft_error *err);

/* vocab_check.c: do both give the same for a set of texts: spaces, letters composed and decomposed, digits, scripts,
 * malformed bytes, and every special token among others; and are the same tokens ends? 1 or 0, and then what differs is
 * written to `what`, printable; -1 without memory. */
int weft__vocab_same(const weft__tok *a, const weft__tok *b, char *what, size_t size);

#endif
