// SPDX-License-Identifier: Apache-2.0
/* fake_model.h: the model of the doubles in fake_model.c and fake_engine.c: its sizes. Tokens 0..255 are bytes, but 127
 * reads as 126; and 29 cannot be read at all; then <s>, </s>, <|user|>, <|assistant|>, "hello", " world", and made-up
 * ones. */
#ifndef WEFT_TESTS_FAKE_MODEL_H
#define WEFT_TESTS_FAKE_MODEL_H

#include "weft/weft.h"

enum { FAKE_VOCAB = 300, FAKE_CTX = 2048, FAKE_EMBEDDING = 16, FAKE_BROKEN = 29 };

/* The caller's, until weft_model_close; ends the program when there is no memory. */
weft_model *fake_model_new(void);
/* Where it was loaded from, "" of one that was made; bytes of its weights. */
const char *fake_model_path(const weft_model *model);
uint64_t fake_model_bytes(const weft_model *model);
/* 1: its engine ends when fake_hold returns. */
int fake_model_lingers(const weft_model *model);
/* Returns when no file lies where the variable WEFT_FAKE_HOLD says: so a test holds up what takes long elsewhere. */
void fake_hold(void);
/* Adds a byte to the file that the variable WEFT_FAKE_RENDERS names, where it does: for each prompt of a chat. */
void fake_count_render(void);
/* Counts what a thread allocates: the engine's is to allocate little when a request ends. */
void fake_engine_allocated(size_t n_bytes);

#endif
