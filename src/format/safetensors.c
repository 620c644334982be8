// SPDX-License-Identifier: Apache-2.0
/* safetensors.c: the header of one file to checked tensor descriptors (safetensors.h). One thread.
 *
 * Invariant: when a file was read without failure, its tensors tile its data section exactly. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/json.h"
#include "format/safetensors_parts.h"
#include "mem/mem.h"

enum { LENGTH_BYTES = 8 };

/* The file at hand. */
typedef struct safetensors_reading {
    weft__safetensors *st;
    weft_buffer *file;
    char label[WEFT__NAME_SHOW * 2];
    uint64_t data, n_data; /* where the data section begins in the file, and its bytes */
    size_t first;          /* tensors of this file begin here */
    weft_error *err;
} safetensors_reading;

static weft_status safetensors_no_memory(const safetensors_reading *r)
{
    return weft_fail(r->err, WEFT_NO_MEMORY, "%s: no memory for the list of tensors", r->label);
}

/* ---- one entry ---- */

static weft_status read_type(const safetensors_reading *r, const char *name, const weft__json *entry, uint32_t *dtype)
{
    static const struct {
        const char *name;
        uint32_t dtype;
    } types[] = {{"F32", WEFT_F32}, {"F16", WEFT_F16}, {"BF16", WEFT_BF16}};
    const char *s;
    size_t n;
    char shown[WEFT__NAME_SHOW];
    if (!weft__json_string(weft__json_get(entry, "dtype"), &s, &n))
        return weft_fail(r->err, WEFT_FORMAT, "%s: tensor '%s' has no dtype", r->label, name);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strlen(types[i].name) != n || memcmp(s, types[i].name, n)) continue;
        *dtype = types[i].dtype;
        return WEFT_OK;
    }
    return weft_fail(r->err, WEFT_UNSUPPORTED, "%s: tensor '%s' is of type %s; supported are F32, F16 and BF16",
                     r->label, name, weft__name_show(shown, s, n));
}

/* A number written as a plain integer, from 0 on. */
static int count_of(const weft__json *value, uint64_t *out)
{
    int64_t i;
    if (weft__json_kind_of(value) != WEFT__JSON_INT || !weft__json_int(value, &i) || i < 0) return 0;
    *out = (uint64_t)i;
    return 1;
}

static weft_status read_shape(const safetensors_reading *r, const char *name, const weft__json *entry,
                              weft__tensor_desc *t)
{
    const weft__json *shape = weft__json_get(entry, "shape");
    size_t n = weft__json_size(shape);
    if (weft__json_kind_of(shape) != WEFT__JSON_ARRAY)
        return weft_fail(r->err, WEFT_FORMAT, "%s: tensor '%s' has no shape", r->label, name);
    if (n > WEFT__TENSOR_DIMS)
        return weft_fail(r->err, WEFT_UNSUPPORTED, "%s: tensor '%s' has %zu dimensions; at most %d are supported",
                         r->label, name, n, WEFT__TENSOR_DIMS);
    for (size_t i = 0; i < WEFT__TENSOR_DIMS; i++) t->d[i] = 1;
    t->n_dims = n ? (uint32_t)n : 1;
    for (size_t i = 0; i < n; i++)
        if (!count_of(weft__json_at(shape, i), &t->d[n - 1 - i]))
            return weft_fail(r->err, WEFT_FORMAT, "%s: tensor '%s': dimension %zu of its shape is no size", r->label,
                             name, i);
    weft_status status = weft__tensor_measure(t->dtype, t->n_dims, t->d, &t->n_elems, &t->n_bytes, r->err);
    return status ? weft_fail_within(r->err, status, "%s: tensor '%s'", r->label, name) : WEFT_OK;
}

static weft_status read_range(const safetensors_reading *r, const char *name, const weft__json *entry,
                              weft__tensor_desc *t)
{
    const weft__json *range = weft__json_get(entry, "data_offsets");
    uint64_t begin, end;
    if (weft__json_kind_of(range) != WEFT__JSON_ARRAY || weft__json_size(range) != 2 ||
        !count_of(weft__json_at(range, 0), &begin) || !count_of(weft__json_at(range, 1), &end))
        return weft_fail(r->err, WEFT_FORMAT, "%s: tensor '%s' has no data_offsets [begin, end]", r->label, name);
    if (begin > end || end > r->n_data)
        return weft_fail(r->err, WEFT_FORMAT,
                         "%s: tensor '%s': bytes %" PRIu64 " to %" PRIu64 " are not in the %" PRIu64
                         " bytes of tensor data: the file may be truncated",
                         r->label, name, begin, end, r->n_data);
    if (end - begin != t->n_bytes)
        return weft_fail(r->err, WEFT_FORMAT,
                         "%s: tensor '%s' takes %" PRIu64 " bytes; its shape and type say %" PRIu64, r->label, name,
                         end - begin, t->n_bytes);
    t->offset = r->data + begin;
    return WEFT_OK;
}

static weft_status read_tensor(safetensors_reading *r, const weft__json_member *m)
{
    weft__tensor_desc t = {.buffer = r->file};
    uint32_t existing;
    char shown[WEFT__NAME_SHOW];
    weft__json_member field = {0};
    weft__name_show(shown, m->key, m->key_len);
    if (weft__json_kind_of(m->value) != WEFT__JSON_OBJECT)
        return weft_fail(r->err, WEFT_FORMAT, "%s: tensor '%s' is no object", r->label, shown);
    if (m->key_len == 0) return weft_fail(r->err, WEFT_FORMAT, "%s: a tensor has an empty name", r->label);
    while (weft__json_next(m->value, &field))
        if (strcmp(field.key, "dtype") && strcmp(field.key, "shape") && strcmp(field.key, "data_offsets"))
            return weft_fail(r->err, WEFT_FORMAT, "%s: tensor '%s' has an unknown field", r->label, shown);
    weft_status status = read_type(r, shown, m->value, &t.dtype);
    if (!status) status = read_shape(r, shown, m->value, &t);
    if (!status) status = read_range(r, shown, m->value, &t);
    if (status) return status;
    t.name = weft__arena_string(&r->st->arena, m->key, m->key_len);
    int added = t.name ? weft__tensor_set_add(&r->st->tensors, &t, &existing) : -1;
    if (added < 0) return safetensors_no_memory(r);
    /* Within a file the JSON parser has refused duplicates. */
    return added ? WEFT_OK : weft_fail(r->err, WEFT_FORMAT, "%s: tensor '%s' is in another file too", r->label, shown);
}

/* ---- the whole header ---- */

static weft_status check_metadata(const safetensors_reading *r, const weft__json *metadata)
{
    weft__json_member m = {0};
    int ok = weft__json_kind_of(metadata) == WEFT__JSON_OBJECT;
    while (ok && weft__json_next(metadata, &m)) ok = weft__json_kind_of(m.value) == WEFT__JSON_STRING;
    return ok ? WEFT_OK : weft_fail(r->err, WEFT_FORMAT, "%s: __metadata__ is no object of strings", r->label);
}

/* That the tensors cover the data section without hole or overlap. Ranges that do not overlap and add up to the whole
 * do. */
static weft_status check_tiling(const safetensors_reading *r)
{
    const weft__tensor_set *set = &r->st->tensors;
    size_t pair[2];
    uint64_t sum = 0;
    int overlap = weft__tensor_overlap(set, r->first, pair);
    if (overlap < 0) return safetensors_no_memory(r);
    if (overlap)
        return weft_fail(r->err, WEFT_FORMAT, "%s: tensors '%s' and '%s' overlap", r->label, set->items[pair[0]].name,
                         set->items[pair[1]].name);
    for (size_t i = r->first; i < set->n; i++) sum += set->items[i].n_bytes;
    if (sum == r->n_data) return WEFT_OK;
    return weft_fail(r->err, WEFT_FORMAT, "%s: %" PRIu64 " of the %" PRIu64 " bytes of tensor data belong to no tensor",
                     r->label, r->n_data - sum, r->n_data);
}

static weft_status read_tensors(safetensors_reading *r, const weft__json *header)
{
    weft__json_member m = {0};
    weft_status status = WEFT_OK;
    if (weft__json_kind_of(header) != WEFT__JSON_OBJECT)
        return weft_fail(r->err, WEFT_FORMAT, "%s: its header is no JSON object", r->label);
    while (!status && weft__json_next(header, &m))
        status = strcmp(m.key, "__metadata__") ? read_tensor(r, &m) : check_metadata(r, m.value);
    return status ? status : check_tiling(r);
}

static uint64_t length_at(const unsigned char *p)
{
    uint64_t n = 0;
    for (int i = LENGTH_BYTES - 1; i >= 0; i--) n = n << 8 | p[i];
    return n;
}

static weft_status read_file(safetensors_reading *r)
{
    const unsigned char *p = r->file->data;
    weft__json *header = NULL;
    if (r->file->n_bytes < LENGTH_BYTES)
        return weft_fail(r->err, WEFT_FORMAT, "%s: %" PRIu64 " bytes are no safetensors file", r->label,
                         r->file->n_bytes);
    uint64_t n = length_at(p), left = r->file->n_bytes - LENGTH_BYTES;
    if (n > left)
        return weft_fail(r->err, WEFT_FORMAT,
                         "%s: is no safetensors file, or truncated: a header of %" PRIu64 " bytes in %" PRIu64,
                         r->label, n, left);
    if (n > WEFT__SAFETENSORS_HEADER_BYTES)
        return weft_fail(r->err, WEFT_LIMIT, "%s: its header of %" PRIu64 " bytes exceeds the limit of %u", r->label, n,
                         WEFT__SAFETENSORS_HEADER_BYTES);
    if (n == 0 || p[LENGTH_BYTES] != '{')
        return weft_fail(r->err, WEFT_FORMAT, "%s: its header does not begin with '{'", r->label);
    r->data = LENGTH_BYTES + n;
    r->n_data = left - n;
    weft_status status = weft__json_parse((const char *)p + LENGTH_BYTES, (size_t)n, &header, r->err);
    if (status) return weft_fail_within(r->err, status, "%s: header", r->label);
    status = read_tensors(r, header);
    weft__json_free(&header);
    return status;
}

/* ---- files ---- */

weft__safetensors *weft__safetensors_new(void)
{
    return weft__alloc_zero(1, sizeof(weft__safetensors));
}

/* Takes over the buffer, also on failure. */
static weft_status add_buffer(weft__safetensors *st, weft_buffer *file, const char *name, weft_error *err)
{
    safetensors_reading r = {.st = st, .file = file, .first = st->tensors.n, .err = err};
    weft__name_show_path(r.label, name);
    if (!weft__grow(&st->files, &st->capacity, st->n_files + 1, sizeof *st->files)) {
        weft_buffer_release(&file);
        return safetensors_no_memory(&r);
    }
    st->files[st->n_files++] = file;
    return read_file(&r);
}

weft_status weft__safetensors_add(weft__safetensors *st, const char *path, weft_error *err)
{
    weft_buffer *file;
    weft_status status = weft__mem_map(path, &file, err);
    return status ? status : add_buffer(st, file, path, err);
}

weft_status weft__safetensors_parse(const void *bytes, size_t n, const char *name, weft__safetensors **out,
                                    weft_error *err)
{
    weft_buffer *file;
    *out = NULL;
    weft__safetensors *st = weft__safetensors_new();
    if (!st) return weft_fail(err, WEFT_NO_MEMORY, "%s: no memory to read it", name);
    weft_status status = weft__mem_borrow(bytes, n, WEFT_BUFFER_READONLY, &file, err);
    if (!status) status = add_buffer(st, file, name, err);
    if (status) weft__safetensors_close(&st);
    *out = st;
    return status;
}

void weft__safetensors_close(weft__safetensors **p)
{
    weft__safetensors *st = p ? *p : NULL;
    if (!st) return;
    weft__tensor_set_free(&st->tensors);
    for (size_t i = 0; i < st->n_files; i++) weft_buffer_release(&st->files[i]);
    weft__free(st->files);
    weft__arena_free(&st->arena);
    weft__free(st);
    *p = NULL;
}

const weft__tensor_set *weft__safetensors_tensors(const weft__safetensors *st)
{
    return &st->tensors;
}
