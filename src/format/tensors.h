// SPDX-License-Identifier: Apache-2.0
/* tensors.h: named tensors as every file format describes them, and sets of them.
 *
 * Invariant: a described tensor has a known type, 1 to 4 dimensions, none of them 0, whole blocks in its first
 * dimension, at most 2^63 - 1 elements and bytes, and lies inside its buffer. Dimensions are in storage order: d[0] is
 * contiguous, so a matrix of R rows and K columns has d = {K, R}; unused dimensions are 1. Thread safety: a set that
 * does not change may be read by any thread. */
#ifndef WEFT_FORMAT_TENSORS_H
#define WEFT_FORMAT_TENSORS_H

#include "format/names.h"
#include "weft/buffer.h"

#define WEFT__TENSOR_DIMS 4

typedef struct weft__tensor_desc {
    const char *name; /* NUL-terminated UTF-8, owned by the file it came from */
    uint32_t dtype;   /* weft_dtype */
    uint32_t n_dims;
    uint64_t d[WEFT__TENSOR_DIMS];
    uint64_t n_elems, n_bytes;
    weft_buffer *buffer; /* where it lies; owned by the file */
    uint64_t offset;     /* bytes from the start of the buffer */
} weft__tensor_desc;

/* The tensor's first byte, in host-visible memory. */
static inline const void *weft__tensor_data(const weft__tensor_desc *t)
{
    return (const unsigned char *)t->buffer->data + t->offset;
}

/* Counts the elements and bytes of a tensor of n_dims dimensions d and checks the invariant above as far as it concerns
 * them. Fails with WEFT_FORMAT, or WEFT_UNSUPPORTED for a type that this build cannot read; the message does not name
 * the tensor. */
weft_status weft__tensor_measure(uint32_t dtype, uint32_t n_dims, const uint64_t *d, uint64_t *n_elems,
                                 uint64_t *n_bytes, weft_error *err);

/* Zero-initialise. Names are borrowed. */
typedef struct weft__tensor_set {
    weft__tensor_desc *items;
    size_t n, capacity;
    weft__name_table names;
} weft__tensor_set;

/* Appends a copy of *t. Returns 1; 0 when the name is taken, with its index in *existing; -1 without memory. */
int weft__tensor_set_add(weft__tensor_set *set, const weft__tensor_desc *t, uint32_t *existing);
void weft__tensor_set_free(weft__tensor_set *set);
/* The tensor of that name, or NULL. Constant time. */
const weft__tensor_desc *weft__tensor_find(const weft__tensor_set *set, const char *name);

/* Looks for two tensors that share bytes among items[first..n), which lie in one buffer; O(n log n). Returns 0 when
 * there are none, 1 with their indices in pair[0] (the one that starts first) and pair[1], -1 without memory. */
int weft__tensor_overlap(const weft__tensor_set *set, size_t first, size_t pair[2]);

#endif
