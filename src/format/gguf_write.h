// SPDX-License-Identifier: Apache-2.0
/* gguf_write.h: writing a GGUF file (version 3) as a stream: metadata, then the list of tensors, then their data in
 * that order.
 *
 * Order of calls: create; put... and declare... in any mixture; begin; write...; finish; destroy (always, also after a
 * failure). Invariant: the bytes go to a temporary file beside `path`, which takes the place of `path` only in finish,
 * after it has been flushed to the disk; until then whatever was at `path` stays whole. destroy removes the temporary
 * file of an unfinished write. Errors: WEFT_ARGUMENT (a name, value or shape the format does not allow), WEFT_EXISTS
 * (key or tensor twice), WEFT_STATE (order of calls, or an earlier failure), WEFT_NO_MEMORY, WEFT_IO (naming the file
 * and the system's reason; a full disk is called so). Thread safety: a writer belongs to one thread. */
#ifndef WEFT_FORMAT_GGUF_WRITE_H
#define WEFT_FORMAT_GGUF_WRITE_H

#include "base/text.h"
#include "format/gguf.h"

typedef struct weft__gguf_writer weft__gguf_writer;

/* Creates the temporary file. alignment: of tensor data, a power of two of at least 8; 0 means 32. */
weft_status weft__gguf_writer_create(const char *path, uint32_t alignment, weft__gguf_writer **out, weft_error *err);

/* A writer without a file, for metadata that stay in memory: put..., then weft__gguf_writer_bytes. `label` names it in
 * messages. begin and what follows it fail with WEFT_STATE. */
weft_status weft__gguf_writer_memory(const char *label, weft__gguf_writer **out, weft_error *err);
/* Appends the bytes of a GGUF file with the metadata added so far and without tensors. */
weft_status weft__gguf_writer_bytes(const weft__gguf_writer *w, weft__strbuf *bytes, weft_error *err);

/* Adds a value of a fixed-size type; `value` points to one of it (bool: one byte, 0 or 1). Keys are 1 to 65535 bytes of
 * UTF-8. The key general.alignment is the writer's own and refused. */
weft_status weft__gguf_put(weft__gguf_writer *w, const char *key, weft__gguf_type type, const void *value,
                           weft_error *err);
weft_status weft__gguf_put_string(weft__gguf_writer *w, const char *key, const char *s, size_t len, weft_error *err);
/* Adds an array of n values of a fixed-size type, packed at `values`. */
weft_status weft__gguf_put_array(weft__gguf_writer *w, const char *key, weft__gguf_type type, const void *values,
                                 size_t n, weft_error *err);
weft_status weft__gguf_put_strings(weft__gguf_writer *w, const char *key, const weft__gguf_str *values, size_t n,
                                   weft_error *err);
/* Adds a value that is already encoded, of any type (nested arrays); it is checked as when reading. */
weft_status weft__gguf_put_raw(weft__gguf_writer *w, const char *key, uint32_t type, const void *raw, size_t n_bytes,
                               weft_error *err);
/* Adds a copy of every entry of g, but for general.alignment and the split.* keys, which describe the file and not the
 * model. */
weft_status weft__gguf_put_all(weft__gguf_writer *w, const weft__gguf *g, weft_error *err);

static inline weft_status weft__gguf_put_u32(weft__gguf_writer *w, const char *key, uint32_t v, weft_error *err)
{
    return weft__gguf_put(w, key, WEFT__GGUF_U32, &v, err);
}
static inline weft_status weft__gguf_put_u64(weft__gguf_writer *w, const char *key, uint64_t v, weft_error *err)
{
    return weft__gguf_put(w, key, WEFT__GGUF_U64, &v, err);
}
static inline weft_status weft__gguf_put_f32(weft__gguf_writer *w, const char *key, float v, weft_error *err)
{
    return weft__gguf_put(w, key, WEFT__GGUF_F32, &v, err);
}
static inline weft_status weft__gguf_put_bool(weft__gguf_writer *w, const char *key, int v, weft_error *err)
{
    unsigned char byte = v != 0;
    return weft__gguf_put(w, key, WEFT__GGUF_BOOL, &byte, err);
}

/* Declares the next tensor: its name (1 to 64 bytes of UTF-8), type and dimensions (d[0] contiguous). */
weft_status weft__gguf_declare(weft__gguf_writer *w, const char *name, uint32_t dtype, uint32_t n_dims,
                               const uint64_t *d, weft_error *err);

/* Writes the header. Disk space for the whole file is reserved first where the file system can, so that a full disk is
 * found here and not at the end. */
weft_status weft__gguf_begin(weft__gguf_writer *w, weft_error *err);

/* Appends n_bytes of the tensor that is due; a tensor may come in any number of pieces, a piece may not cross its
 * end. */
weft_status weft__gguf_write(weft__gguf_writer *w, const void *bytes, size_t n_bytes, weft_error *err);

/* Checks that every declared tensor was written in full, flushes to the disk and renames to `path`. */
weft_status weft__gguf_finish(weft__gguf_writer *w, weft_error *err);

void weft__gguf_writer_destroy(weft__gguf_writer **w);

#endif
