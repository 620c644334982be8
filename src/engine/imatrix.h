// SPDX-License-Identifier: Apache-2.0
/* imatrix.h: importance matrices: per input of a matrix, how large it usually is. Read from llama-imatrix's files, the
 * GGUF form and the older one. Read-only once open. */
#ifndef WEFT_ENGINE_IMATRIX_H
#define WEFT_ENGINE_IMATRIX_H

#include <stddef.h>

#include "weft/error.h"

typedef struct weft__imatrix weft__imatrix;

weft_status weft__imatrix_open(const char *path, weft__imatrix **out, weft_error *err);
/* The same from n bytes, which need not outlive the call; `path` is for messages. *out is NULL when it fails. */
weft_status weft__imatrix_parse(const void *bytes, size_t n, const char *path, weft__imatrix **out, weft_error *err);
void weft__imatrix_close(weft__imatrix **m);
/* The importance of matrix `expert` (of n_experts) of tensor `name`, whose rows have k elements: k floats that live
 * with the matrix; NULL where nothing is known, also when m is NULL. Another length than k is an error. */
weft_status weft__imatrix_get(const weft__imatrix *m, const char *name, uint64_t expert, uint64_t n_experts, int64_t k,
                              const float **out, weft_error *err);
/* How many tensors it knows, the name of one of them, and whether it knows `name`; m is not NULL. */
size_t weft__imatrix_size(const weft__imatrix *m);
const char *weft__imatrix_name(const weft__imatrix *m, size_t i);
int weft__imatrix_has(const weft__imatrix *m, const char *name);

#endif
