// SPDX-License-Identifier: Apache-2.0
/* text_file.h: where the text of a file of training data begins. */
#ifndef WEFT_TRAIN_TEXT_FILE_H
#define WEFT_TRAIN_TEXT_FILE_H

#include <stddef.h>

#include "weft/error.h"

/* *skip: the bytes of a UTF-8 byte-order mark at its beginning, which some editors put there and which is no text; 0
 * without. WEFT_FORMAT, without the file's name: it is a model or a vocabulary (GGUF), not text. */
weft_status weft__train_text_begin(const char *bytes, size_t n, size_t *skip, weft_error *err);

#endif
