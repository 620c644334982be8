// SPDX-License-Identifier: Apache-2.0
/* synthetic.h: models of known shapes with random weights, made in memory, for benchmarks. */
#ifndef WEFT_MODEL_SYNTHETIC_H
#define WEFT_MODEL_SYNTHETIC_H

#include "model/source.h"
#include "weft/backend.h"

typedef struct weft__synthetic weft__synthetic;

/* shape: a name of weft__synthetic_shapes(); dtype: of every matrix (norms are F32) whose rows are a multiple of its
 * block; others have the type that quantizing them would give (weft__mix_fitting). The same call gives the same
 * weights. progress (may be NULL) hears of "random weights". The caller owns *out. */
weft_status weft__synthetic_create(const char *shape, uint32_t dtype, weft_progress_fn progress, void *arg,
                                   weft__synthetic **out, weft_error *err);
/* The same, of which the matrices are addresses alone, and must not be read: for outlines. */
weft_status weft__synthetic_outline(const char *shape, uint32_t dtype, weft__synthetic **out, weft_error *err);
void weft__synthetic_destroy(weft__synthetic **s);
/* A view, valid as long as the model. */
void weft__synthetic_source(const weft__synthetic *s, weft__source *out);
/* "tinyllama-1.1b, ..." */
const char *weft__synthetic_shapes(void);
/* Bytes of all tensors. */
uint64_t weft__synthetic_bytes(const weft__synthetic *s);
const char *weft__synthetic_arch(const weft__synthetic *s);
int32_t weft__synthetic_n_vocab(const weft__synthetic *s);
const weft__tensor_set *weft__synthetic_tensors(const weft__synthetic *s);
/* Hyperparameter i with its whole key ("llama.block_count"); 0: there are no more. */
int weft__synthetic_number(const weft__synthetic *s, size_t i, char key[64], weft__source_value *out);

/* Writes the model as a GGUF file (gguf_write.h: it appears when it is complete) with a SentencePiece vocabulary of
 * made-up words. progress (may be NULL) hears of "writing". */
weft_status weft__synthetic_write(const weft__synthetic *s, const char *path, weft_progress_fn progress, void *arg,
                                  weft_error *err);

#endif
