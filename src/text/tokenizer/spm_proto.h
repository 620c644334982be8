// SPDX-License-Identifier: Apache-2.0
/* spm_proto.h: vocabularies from SentencePiece's own model files (tokenizer.model). Stateless.
 *
 * The file is a protocol buffer; the message and its fields are those of sentencepiece_model.proto in SentencePiece's
 * repository. Read: the pieces with scores and types, the kind of model (BPE or Unigram), the ids by role, and the
 * normalizer. */
#ifndef WEFT_TEXT_SPM_PROTO_H
#define WEFT_TEXT_SPM_PROTO_H

#include "text/tokenizer/tokenizer.h"

typedef struct weft__tok_spm_model weft__tok_spm_model;

/* bytes[0..n) are borrowed until free. Fails with WEFT_FORMAT (damaged), WEFT_UNSUPPORTED (word and character models,
 * and normalizers that this engine does not apply to BPE, by name), WEFT_LIMIT or WEFT_NO_MEMORY; *out is NULL then. */
weft_status weft__tok_spm_model_read(const void *bytes, size_t n, weft__tok_spm_model **out, weft_error *err);
/* For weft__tok_create ("llama" or "t5"); lives until free. */
const weft__tok_spec *weft__tok_spm_model_spec(const weft__tok_spm_model *m);
void weft__tok_spm_model_free(weft__tok_spm_model **m);

#endif
