// SPDX-License-Identifier: Apache-2.0
/* prompt.h: text from arguments, files or standard input, and its tokens. */
#ifndef WEFT_CLI_PROMPT_H
#define WEFT_CLI_PROMPT_H

#include <stddef.h>

#include "weft/weft.h"

/* Reads a whole file, "-" for standard input; *out is NUL-terminated, free(). At most 1 GiB. */
weft_status read_text(const char *path, char **out, size_t *n, weft_error *err);

/* *ids is free()d by the caller. flags: weft_tokenize_flags. */
weft_status tokenize_text(const weft_tokenizer *tokenizer, const char *text, size_t n, uint32_t flags, int32_t **ids,
                          size_t *n_ids, weft_error *err);

#endif
