/* vocab.h: the tokenizer that a GGUF file carries (keys tokenizer.ggml.*, as the GGUF specification names them). Stateless. */
#ifndef WEFT_MODEL_VOCAB_H
#define WEFT_MODEL_VOCAB_H

#include "format/gguf_write.h"
#include "text/tokenizer.h"

/* GGUF has no key for tokens that swallow the whitespace beside them, as a tokenizer.json may say. This one is the engine's own: [tokens] of
 * WEFT__STRIP_LEFT | WEFT__STRIP_RIGHT. Without it nothing is known of that, unless by the model's name. */
#define WEFT__VOCAB_STRIPS "tokenizer.weft.strips"

/* Builds the file's tokenizer, which does not need the file afterwards. Fails with WEFT_NOT_FOUND when the file carries none,
 * with WEFT_FORMAT when a key has the wrong type or length (the message names it), and as weft__tokenizer_create does. */
weft_status weft__vocab_tokenizer(const weft__gguf *g, weft__tokenizer **out, weft_error *err);

/* Adds the keys of a vocabulary to `w`: n tokens, of which those beyond the vocabulary's are marked unused. pre: the pre-tokenizer's name
 * in GGUF, for byte-level BPE; NULL: the name that the explicit steps have. Fails with WEFT_UNSUPPORTED when the tokenizer has no
 * counterpart in GGUF, WEFT_ARGUMENT for an unknown name, and as weft__gguf_put does. */
weft_status weft__vocab_put(const weft__vocab_spec *spec, size_t n, const char *pre, weft__gguf_writer *w, weft_error *err);

#endif
