// SPDX-License-Identifier: Apache-2.0
/* gguf.h: reading GGUF model files (versions 2 and 3, little-endian, one file or split into parts).
 *
 * Source: the GGUF specification published with ggml (docs/gguf.md).
 * Invariant: everything an opened file hands out was checked when it was opened: counts, lengths, types, dimensions,
 * ranges, names. Names are NUL-terminated UTF-8; string values are counted bytes in the map, not NUL-terminated and not
 * checked for UTF-8. Everything handed out lives until weft__gguf_close. Thread safety: an opened file is never
 * changed; any thread may read it. */
#ifndef WEFT_FORMAT_GGUF_H
#define WEFT_FORMAT_GGUF_H

#include "format/tensors.h"

/* X(name, value in the file, bytes of one value or 0, text). */
#define WEFT__GGUF_TYPE_LIST(X)                                                                                        \
    X(U8, 0, 1, "u8")                                                                                                  \
    X(I8, 1, 1, "i8")                                                                                                  \
    X(U16, 2, 2, "u16")                                                                                                \
    X(I16, 3, 2, "i16")                                                                                                \
    X(U32, 4, 4, "u32")                                                                                                \
    X(I32, 5, 4, "i32")                                                                                                \
    X(F32, 6, 4, "f32")                                                                                                \
    X(BOOL, 7, 1, "bool")                                                                                              \
    X(STRING, 8, 0, "string")                                                                                          \
    X(ARRAY, 9, 0, "array")                                                                                            \
    X(U64, 10, 8, "u64")                                                                                               \
    X(I64, 11, 8, "i64")                                                                                               \
    X(F64, 12, 8, "f64")

typedef enum weft__gguf_type {
#define WEFT__GGUF_TYPE_ENUM(name, value, bytes, text) WEFT__GGUF_##name = (value),
    WEFT__GGUF_TYPE_LIST(WEFT__GGUF_TYPE_ENUM)
#undef WEFT__GGUF_TYPE_ENUM
        WEFT__GGUF_TYPE_COUNT
} weft__gguf_type;

/* "u32"; NULL for an unknown id. */
const char *weft__gguf_type_name(uint32_t type);
/* Bytes of one value of a fixed-size type; 0 for strings, arrays and unknown ids. */
uint32_t weft__gguf_type_bytes(uint32_t type);

/* Arrays in arrays may be this deep, the outermost counted. */
#define WEFT__GGUF_DEPTH 4
#define WEFT__GGUF_KEY_BYTES 65535
#define WEFT__GGUF_TENSOR_NAME_BYTES 64

/* Counted bytes, not NUL-terminated. */
typedef struct weft__gguf_str {
    const char *data;
    size_t len;
} weft__gguf_str;

/* An array value. Read its elements with the functions below, each in constant time. */
typedef struct weft__gguf_list weft__gguf_list;
struct weft__gguf_list {
    uint32_t type;               /* weft__gguf_type of the elements */
    uint32_t elem_bytes;         /* 0 for strings and arrays */
    uint64_t n;                  /* elements */
    const unsigned char *data;   /* the encoded elements; not aligned */
    const uint64_t *offsets;     /* strings: where each begins in data */
    const weft__gguf_list *list; /* arrays: the n inner lists */
};

/* One metadata entry. */
typedef struct weft__gguf_entry {
    const char *key; /* NUL-terminated */
    uint32_t key_len;
    uint32_t type;            /* weft__gguf_type */
    const unsigned char *raw; /* the value as encoded in the file; not aligned */
    uint64_t raw_bytes;
    const weft__gguf_list *list; /* arrays only */
} weft__gguf_entry;

typedef struct weft__gguf weft__gguf;

/* Maps `path` and, when it is the first part of a split model, the parts beside it (NAME-00001-of-000NN.gguf, keys
 * split.no, split.count and split.tensors.count). Metadata is that of the first part. Fails with WEFT_NOT_FOUND (a file
 * or part is missing), WEFT_IO, WEFT_FORMAT (malformed), WEFT_UNSUPPORTED (version, byte order, tensor type) or
 * WEFT_NO_MEMORY; the message names the file and the key or tensor. On failure *out is NULL. */
weft_status weft__gguf_open(const char *path, weft__gguf **out, weft_error *err);

/* The same for n bytes in memory, which are borrowed until close; `name` stands for the path in messages. A part of a
 * split model is refused (WEFT_UNSUPPORTED). `bytes` should be aligned to 64 if tensor data are to be. */
weft_status weft__gguf_parse(const void *bytes, size_t n, const char *name, weft__gguf **out, weft_error *err);
/* The metadata alone, of a file whose first n bytes these are; WEFT_FORMAT also where they end within it. It has no
 * tensors. */
weft_status weft__gguf_parse_meta(const void *bytes, size_t n, const char *name, weft__gguf **out, weft_error *err);

void weft__gguf_close(weft__gguf **g);

uint32_t weft__gguf_version(const weft__gguf *g);

/* Metadata by position (i < n_meta, in file order), and by key: the position, or -1. */
size_t weft__gguf_n_meta(const weft__gguf *g);
const weft__gguf_entry *weft__gguf_meta(const weft__gguf *g, size_t i);
int64_t weft__gguf_find(const weft__gguf *g, const char *key);

/* The value of `key` in the wanted type. Integers of any width are accepted where the value fits; f32 also takes an f64
 * in its range (rounded), f64 also an f32. Fails with WEFT_NOT_FOUND when the key is missing, and with WEFT_FORMAT when
 * its type or value does not fit; the message names the key, the type found and the type wanted. *out is left alone on
 * failure, so a default may be put there first. */
weft_status weft__gguf_u32(const weft__gguf *g, const char *key, uint32_t *out, weft_error *err);
weft_status weft__gguf_i32(const weft__gguf *g, const char *key, int32_t *out, weft_error *err);
weft_status weft__gguf_u64(const weft__gguf *g, const char *key, uint64_t *out, weft_error *err);
weft_status weft__gguf_i64(const weft__gguf *g, const char *key, int64_t *out, weft_error *err);
weft_status weft__gguf_f32(const weft__gguf *g, const char *key, float *out, weft_error *err);
weft_status weft__gguf_f64(const weft__gguf *g, const char *key, double *out, weft_error *err);
weft_status weft__gguf_bool(const weft__gguf *g, const char *key, int *out, weft_error *err);
weft_status weft__gguf_string(const weft__gguf *g, const char *key, weft__gguf_str *out, weft_error *err);
weft_status weft__gguf_array(const weft__gguf *g, const char *key, const weft__gguf_list **out, weft_error *err);

/* The bytes of a string entry; {NULL, 0} for other types. */
weft__gguf_str weft__gguf_entry_string(const weft__gguf_entry *e);

/* Element i of a list. The number readers return 1, or 0 when i is out of range or the element's type or value does not
 * fit (by the rules above); the others return {NULL, 0} or NULL then. */
int weft__gguf_list_u64(const weft__gguf_list *list, uint64_t i, uint64_t *out);
int weft__gguf_list_i64(const weft__gguf_list *list, uint64_t i, int64_t *out);
int weft__gguf_list_f64(const weft__gguf_list *list, uint64_t i, double *out);
int weft__gguf_list_bool(const weft__gguf_list *list, uint64_t i, int *out);
weft__gguf_str weft__gguf_list_string(const weft__gguf_list *list, uint64_t i);
const weft__gguf_list *weft__gguf_list_list(const weft__gguf_list *list, uint64_t i);

/* Tensors of all parts, in file order; their buffers are the parts. */
const weft__tensor_set *weft__gguf_tensors(const weft__gguf *g);
/* The tensor `name`; WEFT_NOT_FOUND names the file and the tensor. */
weft_status weft__gguf_tensor(const weft__gguf *g, const char *name, const weft__tensor_desc **out, weft_error *err);

#endif
