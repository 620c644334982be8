// SPDX-License-Identifier: Apache-2.0
/* params.h: the public structs that begin with `size`, between programs and libraries of different versions.
 *
 * Fields are only ever appended, so a smaller struct is a beginning of a larger one. A size is a multiple of the type's
 * alignment, so that no field is cut; a struct that ends in padding is filled up with a field `reserved`.
 * Thread-safe. */
#ifndef WEFT_BASE_PARAMS_H
#define WEFT_BASE_PARAMS_H

#include <stddef.h>

#include "weft/error.h"

enum { WEFT__PARAMS_MAX = 4096 }; /* bytes of a struct of parameters: a larger `size` was never set */

/* Of a struct of ours: its name, size and alignment. */
typedef struct weft__params_type {
    const char *name;
    uint32_t size, align;
} weft__params_type;
#define WEFT__PARAMS_TYPE(type) (&(const weft__params_type){#type, sizeof(type), _Alignof(type)})

/* Puts the fields that `given` has over the defaults in *own; given NULL: the defaults stay. own->size stays ours.
 * WEFT_ABI, with the type's name, where given's size is none, or what it has beyond ours is not all zero. */
weft_status weft__params_read(const weft__params_type *type, void *own, const void *given, weft_error *err);

/* Copies *own to `out` as far as out's size goes; what is beyond ours becomes zero. out->size stays. WEFT_ABI, and
 * nothing is written, where that size is none. */
weft_status weft__params_write(const weft__params_type *type, void *out, const void *own, weft_error *err);

/* What a ..._params_init does: the same for a program that has `size` bytes in *out and nothing in them. Sets
 * out->size. A size that is none leaves it 0, which every function refuses. */
void weft__params_init(const weft__params_type *type, void *out, uint32_t size, const void *own);

#endif
