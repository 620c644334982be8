// SPDX-License-Identifier: Apache-2.0
/* gguf_split.h: how the parts of a split model are called. Pure. */
#ifndef WEFT_FORMAT_GGUF_SPLIT_H
#define WEFT_FORMAT_GGUF_SPLIT_H

#include <stddef.h>
#include <stdint.h>

/* Writes the path of part `no` (from 0) of the model of which the file called `path` is a part. 0 when that is no
 * part's name, there are not so many, or it does not fit. */
int weft__gguf_part_path(const char *path, uint64_t no, char *out, size_t capacity);

#endif
