// SPDX-License-Identifier: Apache-2.0
/* base.h: what a training begins with: a model file, or a fresh model with another file's vocabulary; and its
 * tokenizer. Immutable once open. */
#ifndef WEFT_TRAIN_BASE_H
#define WEFT_TRAIN_BASE_H

#include "model/hf.h"
#include "text/tokenizer/tokenizer.h"
#include "train/fresh.h"

enum { WEFT__TRAIN_USUAL_CTX = 512 /* tokens of a text unless the caller says */ };

/* Zero-initialise; close in any case. */
typedef struct weft__train_base {
    weft__gguf *gguf;           /* the model's file, or the one that gave the vocabulary; NULL: a folder */
    weft__hf *hf;               /* the folder, or NULL */
    weft__train_scratch *fresh; /* NULL: the model is the file's */
    /* the file's metadata as the result has it (fresh: the tokenizer's keys alone), over `bytes`; or NULL: as in the
     * file */
    weft__gguf *meta;
    weft__strbuf bytes;
    weft__source source;
    weft__tok *tok;
} weft__train_base;

/* What the result's metadata say instead of the file's; NULL: the file's. Borrowed during the call. */
typedef struct weft__train_base_overrides {
    const char *name, *chat_template;
} weft__train_base_overrides;

/* A GGUF file or a name that weft pull knows; a Hugging Face folder where `folders` is set: for adapters, since a model
 * that is written has its rows and keys as GGUF wants them, which a folder has not. */
weft_status weft__train_base_open(weft__train_base *b, const char *path, int folders,
                                  const weft__train_base_overrides *words, weft_error *err);
/* shape->n_vocab is set here; the name is the shape's. */
weft_status weft__train_base_scratch(weft__train_base *b, const weft__train_scratch_shape *shape,
                                     const char *vocabulary, const weft__train_base_overrides *words, weft_error *err);
/* The longest text of a training: `asked`, or for 0 what is usual (512) as far as the model was made for it.
 * WEFT_ARGUMENT: more than it was made for and its own rope scaling reaches. */
weft_status weft__train_base_context(const weft__train_base *b, int32_t asked, int32_t *n_ctx, weft_error *err);
/* The model's metadata, for writing it. */
const weft__gguf *weft__train_base_meta(const weft__train_base *b);
/* Tells models apart: a checksum of the architecture's hyperparameters and of the tensors' names, types, sizes and
 * numbers, every one: models differ in a single layer, or in what an adapter that was merged changed. It reads them
 * all, as every step does. */
uint64_t weft__train_base_hash(const weft__train_base *b);
void weft__train_base_close(weft__train_base *b);

#endif
