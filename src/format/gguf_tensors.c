// SPDX-License-Identifier: Apache-2.0
/* gguf_tensors.c: reads the tensor descriptions of one part and checks where their data lie.
 *
 * Invariant: while a part is being read, its descriptors' offsets count from the start of the part's data section; once
 * all have been checked they count from the start of the part. One thread. */
#include "base/check.h"
#include "format/gguf_parts.h"

/* A name's length, one byte of name, n_dims, one dimension, type, offset. */
#define LEAST_TENSOR_BYTES (8 + 1 + 4 + 8 + 4 + 8)

static weft_status read_shape(weft__gguf_cursor *c, weft__tensor_desc *t, weft_error *err)
{
    if (!weft__gguf_take_u32(c, &t->n_dims)) return weft_fail(err, WEFT_FORMAT, "the file ends before its dimensions");
    if (t->n_dims < 1 || t->n_dims > WEFT__TENSOR_DIMS)
        return weft_fail(err, WEFT_FORMAT, "%u dimensions are not between 1 and %d", t->n_dims, WEFT__TENSOR_DIMS);
    for (uint32_t i = 0; i < WEFT__TENSOR_DIMS; i++) {
        t->d[i] = 1;
        if (i < t->n_dims && !weft__gguf_take_u64(c, &t->d[i]))
            return weft_fail(err, WEFT_FORMAT, "the file ends inside its dimensions");
    }
    if (!weft__gguf_take_u32(c, &t->dtype) || !weft__gguf_take_u64(c, &t->offset))
        return weft_fail(err, WEFT_FORMAT, "the file ends inside its type and offset");
    return weft__tensor_measure(t->dtype, t->n_dims, t->d, &t->n_elems, &t->n_bytes, err);
}

static weft_status read_tensor(weft__gguf *g, weft__gguf_cursor *c, size_t first, uint32_t alignment, weft_buffer *part,
                               weft_error *err)
{
    char shown[WEFT__NAME_SHOW];
    weft__gguf_str name;
    weft__tensor_desc t = {.buffer = part};
    uint32_t existing;
    weft_status status = weft__gguf_take_name(c, WEFT__GGUF_TENSOR_NAME_BYTES, &name, err);
    if (status != WEFT_OK) return weft_fail_within(err, status, "%s: tensor %zu", c->label, g->tensors.n - first);
    weft__name_show(shown, name.data, name.len);
    status = read_shape(c, &t, err);
    if (status != WEFT_OK) return weft_fail_within(err, status, "%s: tensor '%s'", c->label, shown);
    if (t.offset % alignment)
        return weft_fail(err, WEFT_FORMAT, "%s: tensor '%s': its offset %llu is not a multiple of the alignment %u",
                         c->label, shown, (unsigned long long)t.offset, alignment);
    t.name = weft__arena_string(&g->arena, name.data, name.len);
    int added = t.name ? weft__tensor_set_add(&g->tensors, &t, &existing) : -1;
    if (added < 0) return weft_fail(err, WEFT_NO_MEMORY, "%s: no memory for the list of tensors", c->label);
    if (added == 0)
        return weft_fail(err, WEFT_FORMAT, "%s: tensor '%s' is there twice%s", c->label, shown,
                         existing < first ? ", here and in an earlier part" : "");
    return WEFT_OK;
}

/* Where the data section begins, and that every tensor lies in it. */
static weft_status place(weft__gguf *g, const weft__gguf_cursor *c, size_t first, uint32_t alignment, weft_error *err)
{
    uint64_t data;
    if (!weft__checked_align(c->pos, alignment, &data) || data > c->n)
        return weft_fail(err, WEFT_FORMAT, "%s: the file ends before its tensor data", c->label);
    for (size_t i = first; i < g->tensors.n; i++) {
        weft__tensor_desc *t = &g->tensors.items[i];
        if (t->offset > c->n - data || t->n_bytes > c->n - data - t->offset)
            return weft_fail(
                err, WEFT_FORMAT,
                "%s: tensor '%s': %llu bytes at offset %llu reach past the end of the file (%llu bytes of tensor "
                "data): it may be truncated",
                c->label, t->name, (unsigned long long)t->n_bytes, (unsigned long long)t->offset,
                (unsigned long long)(c->n - data));
        t->offset += data;
    }
    return WEFT_OK;
}

weft_status weft__gguf_read_tensors(weft__gguf *g, weft__gguf_head *head, weft_buffer *part, weft_error *err)
{
    weft__gguf_cursor *c = &head->cursor;
    uint64_t n = head->n_tensors;
    size_t first = g->tensors.n, pair[2];
    if (n > weft__gguf_left(c) / LEAST_TENSOR_BYTES || n >= UINT32_MAX)
        return weft_fail(err, WEFT_FORMAT,
                         "%s: %llu tensor descriptions cannot fit into the %llu bytes left in the file", c->label,
                         (unsigned long long)n, (unsigned long long)weft__gguf_left(c));
    for (uint64_t i = 0; i < n; i++) {
        weft_status status = read_tensor(g, c, first, head->alignment, part, err);
        if (status != WEFT_OK) return status;
    }
    if (n == 0) return WEFT_OK; /* a vocabulary alone: nothing needs the padding before the data */
    weft_status status = place(g, c, first, head->alignment, err);
    if (status != WEFT_OK) return status;
    int overlap = weft__tensor_overlap(&g->tensors, first, pair);
    if (overlap < 0) return weft_fail(err, WEFT_NO_MEMORY, "%s: no memory to check the tensors' places", c->label);
    if (overlap)
        return weft_fail(err, WEFT_FORMAT, "%s: tensors '%s' and '%s' overlap", c->label,
                         g->tensors.items[pair[0]].name, g->tensors.items[pair[1]].name);
    return WEFT_OK;
}
