// SPDX-License-Identifier: Apache-2.0
/* gguf_write.c: collects the header in memory, then streams tensor data (gguf_write.h).
 *
 * Invariant: a tensor begins at the aligned end of the one before it; while writing, `due` is the tensor that the next
 * byte belongs to and `n_written` the bytes of it already written, fewer than it has. One thread. */
#include "format/gguf_write.h"
#include "base/alloc.h"
#include "base/check.h"
#include "base/text.h"
#include "format/gguf_parts.h"
#include "format/out_file.h"

enum { DECLARING, WRITING, FINISHED };

struct weft__gguf_writer {
    weft__out_file out;
    int state;
    uint32_t alignment;
    weft__arena arena; /* names */
    weft__name_table keys;
    weft__strbuf meta; /* encoded entries */
    uint64_t n_meta;
    weft__tensor_set tensors;
    weft__strbuf infos;  /* encoded tensor descriptions */
    uint64_t data_bytes; /* of the data section so far, padded */
    size_t due;
    uint64_t n_written;
};

weft_status weft__gguf_writer_create(const char *path, uint32_t alignment, weft__gguf_writer **out, weft_error *err)
{
    *out = NULL;
    if (alignment == 0) alignment = WEFT__GGUF_ALIGNMENT;
    if (alignment < WEFT__GGUF_MIN_ALIGNMENT || (alignment & (alignment - 1)))
        return weft_fail(err, WEFT_ARGUMENT, "%s: alignment %u is not a power of two of at least %d", path, alignment,
                         WEFT__GGUF_MIN_ALIGNMENT);
    weft__gguf_writer *w = weft__alloc_zero(1, sizeof *w);
    if (!w) return weft_fail(err, WEFT_NO_MEMORY, "%s: no memory to write it", path);
    w->alignment = alignment;
    weft_status status = weft__out_file_open(&w->out, path, err);
    if (status != WEFT_OK) weft__free(w);
    else *out = w;
    return status;
}

weft_status weft__gguf_writer_memory(const char *label, weft__gguf_writer **out, weft_error *err)
{
    weft__gguf_writer *w = *out = weft__alloc_zero(1, sizeof *w);
    if (!w) return weft_fail(err, WEFT_NO_MEMORY, "%s: no memory for its metadata", label);
    w->alignment = WEFT__GGUF_ALIGNMENT;
    w->out = (weft__out_file){.fd = -1, .failed = 1};
    weft__name_show_path(w->out.label, label);
    return WEFT_OK;
}

void weft__gguf_writer_destroy(weft__gguf_writer **w)
{
    if (!w || !*w) return;
    weft__gguf_writer *old = *w;
    *w = NULL;
    weft__out_file_close(&old->out);
    weft__strbuf_free(&old->infos);
    weft__tensor_set_free(&old->tensors);
    weft__strbuf_free(&old->meta);
    weft__name_table_free(&old->keys);
    weft__arena_free(&old->arena);
    weft__free(old);
}

static weft_status gguf_write_no_memory(const weft__gguf_writer *w, weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "%s: no memory for its header", w->out.label);
}

static weft_status expect_state(const weft__gguf_writer *w, int state, const char *what, weft_error *err)
{
    static const char *const names[] = {"its header is not yet written", "its header is already written",
                                        "it is finished"};
    if (w->state == state) return WEFT_OK;
    return weft_fail(err, WEFT_STATE, "%s: cannot %s: %s", w->out.label, what, names[w->state]);
}

/* What the reader would refuse. `kind` is "key" or "tensor name". */
static weft_status check_name(const weft__gguf_writer *w, const char *kind, const char *name, size_t most,
                              weft_error *err)
{
    char shown[WEFT__NAME_SHOW];
    size_t len = strlen(name);
    if (len >= 1 && len <= most && weft__utf8_valid(name, len)) return WEFT_OK;
    return weft_fail(err, WEFT_ARGUMENT, "%s: %s '%s' is not 1 to %zu bytes of UTF-8", w->out.label, kind,
                     weft__name_show(shown, name, len), most);
}

/* Begins an entry: checks and notes the key and appends it with the type. */
static weft_status put_key(weft__gguf_writer *w, const char *key, uint32_t type, weft_error *err)
{
    char shown[WEFT__NAME_SHOW];
    weft_status status = expect_state(w, DECLARING, "add metadata", err);
    if (status == WEFT_OK) status = check_name(w, "key", key, WEFT__GGUF_KEY_BYTES, err);
    if (status != WEFT_OK) return status;
    uint64_t len = strlen(key);
    char *copy = weft__arena_string(&w->arena, key, (size_t)len);
    int added = copy ? weft__name_table_put(&w->keys, copy, (size_t)len, 0, NULL) : -1;
    if (added < 0) return gguf_write_no_memory(w, err);
    if (added == 0)
        return weft_fail(err, WEFT_EXISTS, "%s: key '%s' was added before", w->out.label,
                         weft__name_show(shown, key, (size_t)len));
    weft__strbuf_put(&w->meta, &len, sizeof len);
    weft__strbuf_put(&w->meta, key, (size_t)len);
    weft__strbuf_put(&w->meta, &type, sizeof type);
    w->n_meta++;
    return WEFT_OK;
}

/* A failed append stays failed, so that begin would notice; here it is told where it happened. */
static weft_status put_done(const weft__gguf_writer *w, weft_error *err)
{
    return w->meta.failed || w->infos.failed ? gguf_write_no_memory(w, err) : WEFT_OK;
}

static weft_status check_key(const weft__gguf_writer *w, const char *key, weft_error *err)
{
    if (strcmp(key, "general.alignment") != 0) return WEFT_OK;
    return weft_fail(err, WEFT_ARGUMENT, "%s: key 'general.alignment' follows from the writer's alignment",
                     w->out.label);
}

static void put_text(weft__gguf_writer *w, const char *s, uint64_t len)
{
    weft__strbuf_put(&w->meta, &len, sizeof len);
    weft__strbuf_put(&w->meta, s, (size_t)len);
}

/* The head of an array value. */
static void put_count(weft__gguf_writer *w, uint32_t type, uint64_t n)
{
    weft__strbuf_put(&w->meta, &type, sizeof type);
    weft__strbuf_put(&w->meta, &n, sizeof n);
}

/* Refuses types without a fixed size, and bools other than 0 and 1. */
static weft_status check_fixed(const weft__gguf_writer *w, const char *key, uint32_t type, const void *values, size_t n,
                               weft_error *err)
{
    char shown[WEFT__NAME_SHOW];
    int ok = weft__gguf_type_bytes(type) != 0;
    if (type == WEFT__GGUF_BOOL)
        for (size_t i = 0; i < n; i++) ok &= ((const unsigned char *)values)[i] <= 1;
    if (ok) return WEFT_OK;
    return weft_fail(err, WEFT_ARGUMENT, "%s: key '%s': type %u has no fixed size, or a bool is neither 0 nor 1",
                     w->out.label, weft__name_show(shown, key, strlen(key)), type);
}

weft_status weft__gguf_put(weft__gguf_writer *w, const char *key, weft__gguf_type type, const void *value,
                           weft_error *err)
{
    weft_status status = check_key(w, key, err);
    if (status == WEFT_OK) status = check_fixed(w, key, type, value, 1, err);
    if (status == WEFT_OK) status = put_key(w, key, type, err);
    if (status != WEFT_OK) return status;
    weft__strbuf_put(&w->meta, value, weft__gguf_type_bytes(type));
    return put_done(w, err);
}

weft_status weft__gguf_put_string(weft__gguf_writer *w, const char *key, const char *s, size_t len, weft_error *err)
{
    weft_status status = check_key(w, key, err);
    if (status == WEFT_OK) status = put_key(w, key, WEFT__GGUF_STRING, err);
    if (status != WEFT_OK) return status;
    put_text(w, s, len);
    return put_done(w, err);
}

weft_status weft__gguf_put_array(weft__gguf_writer *w, const char *key, weft__gguf_type type, const void *values,
                                 size_t n, weft_error *err)
{
    uint64_t bytes;
    weft_status status = check_key(w, key, err);
    if (status == WEFT_OK) status = check_fixed(w, key, type, values, n, err);
    if (status == WEFT_OK && !weft__checked_mul(n, weft__gguf_type_bytes(type), &bytes))
        status = gguf_write_no_memory(w, err);
    if (status == WEFT_OK) status = put_key(w, key, WEFT__GGUF_ARRAY, err);
    if (status != WEFT_OK) return status;
    put_count(w, type, n);
    weft__strbuf_put(&w->meta, values, (size_t)bytes);
    return put_done(w, err);
}

weft_status weft__gguf_put_strings(weft__gguf_writer *w, const char *key, const weft__gguf_str *values, size_t n,
                                   weft_error *err)
{
    weft_status status = check_key(w, key, err);
    if (status == WEFT_OK) status = put_key(w, key, WEFT__GGUF_ARRAY, err);
    if (status != WEFT_OK) return status;
    put_count(w, WEFT__GGUF_STRING, n);
    for (size_t i = 0; i < n; i++) put_text(w, values[i].data, values[i].len);
    return put_done(w, err);
}

weft_status weft__gguf_put_raw(weft__gguf_writer *w, const char *key, uint32_t type, const void *raw, size_t n_bytes,
                               weft_error *err)
{
    char shown[WEFT__NAME_SHOW];
    weft__gguf_cursor c = {raw, n_bytes, 0, w->out.label};
    weft_status status = check_key(w, key, err);
    if (status != WEFT_OK) return status;
    status = weft__gguf_skip_value(&c, type, err);
    if (status == WEFT_OK && c.pos != n_bytes) status = weft_fail(err, WEFT_FORMAT, "bytes are left behind the value");
    if (status != WEFT_OK)
        return weft_fail_within(err, WEFT_ARGUMENT, "%s: key '%s'", w->out.label,
                                weft__name_show(shown, key, strlen(key)));
    status = put_key(w, key, type, err);
    if (status != WEFT_OK) return status;
    weft__strbuf_put(&w->meta, raw, n_bytes);
    return put_done(w, err);
}

weft_status weft__gguf_put_all(weft__gguf_writer *w, const weft__gguf *g, weft_error *err)
{
    weft_status status = WEFT_OK;
    for (size_t i = 0; i < weft__gguf_n_meta(g) && status == WEFT_OK; i++) {
        const weft__gguf_entry *e = weft__gguf_meta(g, i);
        if (strcmp(e->key, "general.alignment") == 0 || strncmp(e->key, "split.", 6) == 0) continue;
        status = weft__gguf_put_raw(w, e->key, e->type, e->raw, (size_t)e->raw_bytes, err);
    }
    return status;
}

/* Checks the description in *t, completes it and stores where the data section ends after it. */
static weft_status measure(const weft__gguf_writer *w, weft__tensor_desc *t, uint64_t *data_bytes, weft_error *err)
{
    char shown[WEFT__NAME_SHOW];
    weft_status status = weft__tensor_measure(t->dtype, t->n_dims, t->d, &t->n_elems, &t->n_bytes, err);
    t->offset = w->data_bytes;
    if (status == WEFT_OK &&
        (!weft__checked_add(t->offset, t->n_bytes, data_bytes) ||
         !weft__checked_align(*data_bytes, w->alignment, data_bytes) || *data_bytes > INT64_MAX / 2))
        status = weft_fail(err, WEFT_ARGUMENT, "the file becomes too large");
    if (status != WEFT_OK)
        weft_fail_within(err, WEFT_ARGUMENT, "%s: tensor '%s'", w->out.label,
                         weft__name_show(shown, t->name, strlen(t->name)));
    return status == WEFT_OK ? WEFT_OK : WEFT_ARGUMENT;
}

weft_status weft__gguf_declare(weft__gguf_writer *w, const char *name, uint32_t dtype, uint32_t n_dims,
                               const uint64_t *d, weft_error *err)
{
    weft__tensor_desc t = {.name = name, .dtype = dtype, .n_dims = n_dims, .d = {1, 1, 1, 1}};
    uint64_t data_bytes, len;
    weft_status status = expect_state(w, DECLARING, "declare a tensor", err);
    if (status == WEFT_OK) status = check_name(w, "tensor name", name, WEFT__GGUF_TENSOR_NAME_BYTES, err);
    if (status != WEFT_OK) return status;
    if (n_dims <= WEFT__TENSOR_DIMS) memcpy(t.d, d, n_dims * sizeof *d); /* more are refused below, unread */
    status = measure(w, &t, &data_bytes, err);
    if (status != WEFT_OK) return status;
    t.name = weft__arena_string(&w->arena, name, strlen(name));
    int added = t.name ? weft__tensor_set_add(&w->tensors, &t, NULL) : -1;
    if (added < 0) return gguf_write_no_memory(w, err);
    if (added == 0) return weft_fail(err, WEFT_EXISTS, "%s: tensor '%s' was declared before", w->out.label, t.name);
    w->data_bytes = data_bytes;
    len = strlen(name);
    weft__strbuf_put(&w->infos, &len, sizeof len);
    weft__strbuf_put(&w->infos, name, (size_t)len);
    weft__strbuf_put(&w->infos, &n_dims, sizeof n_dims);
    weft__strbuf_put(&w->infos, t.d, n_dims * sizeof *t.d);
    weft__strbuf_put(&w->infos, &dtype, sizeof dtype);
    weft__strbuf_put(&w->infos, &t.offset, sizeof t.offset);
    return put_done(w, err);
}

/* How a file begins. */
struct head {
    char magic[4];
    uint32_t version;
    uint64_t n_tensors, n_meta;
};

weft_status weft__gguf_writer_bytes(const weft__gguf_writer *w, weft__strbuf *bytes, weft_error *err)
{
    struct head head = {{'G', 'G', 'U', 'F'}, 3, 0, w->n_meta};
    weft__strbuf_put(bytes, &head, sizeof head);
    weft__strbuf_put(bytes, w->meta.data, w->meta.len);
    return w->meta.failed || bytes->failed ? gguf_write_no_memory(w, err) : WEFT_OK;
}

weft_status weft__gguf_begin(weft__gguf_writer *w, weft_error *err)
{
    weft_status status = expect_state(w, DECLARING, "begin", err);
    if (status == WEFT_OK && w->alignment != WEFT__GGUF_ALIGNMENT) {
        status = put_key(w, "general.alignment", WEFT__GGUF_U32, err);
        weft__strbuf_put(&w->meta, &w->alignment, sizeof w->alignment);
    }
    if (status == WEFT_OK) status = put_done(w, err);
    if (status != WEFT_OK) return status;
    w->state = WRITING;
    struct head head = {{'G', 'G', 'U', 'F'}, 3, w->tensors.n, w->n_meta};
    uint64_t header = sizeof head + w->meta.len + w->infos.len, padded = header;
    if (w->tensors.n && !weft__checked_align(header, w->alignment, &padded)) return gguf_write_no_memory(w, err);
    status = weft__out_file_reserve(&w->out, padded + w->data_bytes, err);
    if (status == WEFT_OK) status = weft__out_file_write(&w->out, &head, sizeof head, err);
    if (status == WEFT_OK) status = weft__out_file_write(&w->out, w->meta.data, w->meta.len, err);
    if (status == WEFT_OK) status = weft__out_file_write(&w->out, w->infos.data, w->infos.len, err);
    if (status == WEFT_OK) status = weft__out_file_zeros(&w->out, padded - header, err);
    return status;
}

weft_status weft__gguf_write(weft__gguf_writer *w, const void *bytes, size_t n_bytes, weft_error *err)
{
    weft_status status = expect_state(w, WRITING, "write tensor data", err);
    if (status != WEFT_OK || n_bytes == 0) return status;
    if (w->due == w->tensors.n)
        return weft_fail(err, WEFT_ARGUMENT, "%s: %zu bytes more than its tensors hold", w->out.label, n_bytes);
    const weft__tensor_desc *t = &w->tensors.items[w->due];
    uint64_t end = 0;
    if (n_bytes > t->n_bytes - w->n_written)
        return weft_fail(err, WEFT_ARGUMENT, "%s: tensor '%s' has room for %llu bytes more, not for %zu", w->out.label,
                         t->name, (unsigned long long)(t->n_bytes - w->n_written), n_bytes);
    status = weft__out_file_write(&w->out, bytes, n_bytes, err);
    if (status != WEFT_OK) return status;
    w->n_written += n_bytes;
    if (w->n_written < t->n_bytes) return WEFT_OK;
    w->due++;
    w->n_written = 0;
    weft__checked_align(t->n_bytes, w->alignment, &end); /* checked when the tensor was declared */
    return weft__out_file_zeros(&w->out, end - t->n_bytes, err);
}

weft_status weft__gguf_finish(weft__gguf_writer *w, weft_error *err)
{
    weft_status status = expect_state(w, WRITING, "finish", err);
    if (status != WEFT_OK) return status;
    if (w->due < w->tensors.n)
        return weft_fail(err, WEFT_STATE, "%s: tensor '%s' has %llu of its %llu bytes", w->out.label,
                         w->tensors.items[w->due].name, (unsigned long long)w->n_written,
                         (unsigned long long)w->tensors.items[w->due].n_bytes);
    status = weft__out_file_commit(&w->out, err);
    if (status == WEFT_OK) w->state = FINISHED;
    return status;
}
