// SPDX-License-Identifier: Apache-2.0
/* safetensors_parts.h: what the safetensors_*.c files share; private to this room. One thread builds a
 * weft__safetensors. */
#ifndef WEFT_FORMAT_SAFETENSORS_PARTS_H
#define WEFT_FORMAT_SAFETENSORS_PARTS_H

#include "format/arena.h"
#include "format/safetensors.h"

struct weft__safetensors {
    weft__tensor_set tensors; /* of all files; names in `arena` */
    weft__arena arena;
    weft_buffer **files;
    size_t n_files, capacity;
};

/* safetensors.c: an empty object, or NULL without memory. */
weft__safetensors *weft__safetensors_new(void);
/* safetensors.c: maps the file and reads its tensors. */
weft_status weft__safetensors_add(weft__safetensors *st, const char *path, weft_error *err);

#endif
