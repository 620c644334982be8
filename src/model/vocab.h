/* vocab.h: the tokenizer that a GGUF file carries (keys tokenizer.ggml.*, as the GGUF specification names them). Stateless. */
#ifndef WEFT_MODEL_VOCAB_H
#define WEFT_MODEL_VOCAB_H

#include "format/gguf.h"
#include "text/tokenizer.h"

/* Builds the file's tokenizer, which does not need the file afterwards. Fails with WEFT_NOT_FOUND when the file carries none,
 * with WEFT_FORMAT when a key has the wrong type or length (the message names it), and as weft__tokenizer_create does. */
weft_status weft__vocab_tokenizer(const weft__gguf *g, weft__tokenizer **out, weft_error *err);

#endif
