// SPDX-License-Identifier: Apache-2.0
/* gguf_parts.h: what the gguf_*.c files share; private to this room.
 *
 * Invariant: a cursor never points past its bytes, and every read through it is checked. One thread builds a
 * weft__gguf. */
#ifndef WEFT_FORMAT_GGUF_PARTS_H
#define WEFT_FORMAT_GGUF_PARTS_H

#include <string.h>

#include "format/arena.h"
#include "format/gguf.h"

#define WEFT__GGUF_MAGIC "GGUF"
#define WEFT__GGUF_ALIGNMENT 32 /* when general.alignment is absent, bytes */
#define WEFT__GGUF_MIN_ALIGNMENT 8

/* Metadata of one part. */
typedef struct weft__gguf_metadata {
    weft__arena arena;
    weft__gguf_entry *entries;
    size_t n, capacity;
    weft__name_table keys;
    const char *label; /* the file in messages */
} weft__gguf_metadata;

struct weft__gguf {
    weft__gguf_metadata meta; /* of the first part */
    weft__tensor_set tensors; /* of all parts; names in `arena` */
    weft__arena arena;
    weft_buffer **parts;
    size_t n_parts, parts_capacity;
    uint32_t version, alignment;
    char label[WEFT__NAME_SHOW * 2];
};

/* A place in one part. */
typedef struct weft__gguf_cursor {
    const unsigned char *base;
    uint64_t n, pos;
    const char *label;
} weft__gguf_cursor;

static inline uint64_t weft__gguf_left(const weft__gguf_cursor *c)
{
    return c->n - c->pos;
}

/* The next n bytes, or NULL when fewer are left. */
static inline const unsigned char *weft__gguf_take(weft__gguf_cursor *c, uint64_t n)
{
    if (n > weft__gguf_left(c)) return NULL;
    const unsigned char *p = c->base + c->pos;
    c->pos += n;
    return p;
}

static inline int weft__gguf_take_u32(weft__gguf_cursor *c, uint32_t *out)
{
    const unsigned char *p = weft__gguf_take(c, sizeof *out);
    if (p) memcpy(out, p, sizeof *out);
    return p != NULL;
}

static inline int weft__gguf_take_u64(weft__gguf_cursor *c, uint64_t *out)
{
    const unsigned char *p = weft__gguf_take(c, sizeof *out);
    if (p) memcpy(out, p, sizeof *out);
    return p != NULL;
}

/* Reads a name of 1..limit bytes: counted, well-formed UTF-8 without NUL. The message says what is wrong, not where. */
weft_status weft__gguf_take_name(weft__gguf_cursor *c, uint64_t limit, weft__gguf_str *out, weft_error *err);

/* gguf_value.c: checks the value of `type` at the cursor and passes over it. The message does not name the key. */
weft_status weft__gguf_skip_value(weft__gguf_cursor *c, uint32_t type, weft_error *err);
/* gguf_value.c: the list of an array that weft__gguf_skip_value has accepted; NULL without memory. */
const weft__gguf_list *weft__gguf_list_build(weft__arena *arena, const unsigned char *raw);

/* gguf_meta.c: reads n entries at the cursor into *m (zeroed but for its label). */
weft_status weft__gguf_read_meta(weft__gguf_cursor *c, uint64_t n, weft__gguf_metadata *m, weft_error *err);
void weft__gguf_metadata_free(weft__gguf_metadata *m);
/* gguf_get.c: as weft__gguf_u32 and weft__gguf_u64. */
weft_status weft__gguf_meta_u32(const weft__gguf_metadata *m, const char *key, uint32_t *out, weft_error *err);
weft_status weft__gguf_meta_u64(const weft__gguf_metadata *m, const char *key, uint64_t *out, weft_error *err);

/* The head of a part: what its first bytes and its metadata say. */
typedef struct weft__gguf_head {
    weft__gguf_cursor cursor; /* at the tensor descriptions */
    uint32_t version, alignment;
    uint64_t n_tensors;
} weft__gguf_head;

/* gguf.c: reads a part up to its tensor descriptions; fills in *m (zeroed but for its label). */
weft_status weft__gguf_read_head(const weft_buffer *part, weft__gguf_metadata *m, weft__gguf_head *head,
                                 weft_error *err);
/* gguf_tensors.c: reads the tensor descriptions behind a head, checks where their data lie in `part`, and adds them to
 * g->tensors. */
weft_status weft__gguf_read_tensors(weft__gguf *g, weft__gguf_head *head, weft_buffer *part, weft_error *err);
/* gguf.c: maps the file and notes it in g->parts, which then owns it. */
weft_status weft__gguf_map_part(weft__gguf *g, const char *path, weft_buffer **out, weft_error *err);

/* gguf_split.c: after the first part at `path` was read: maps and reads the others, if there are any. */
weft_status weft__gguf_read_other_parts(weft__gguf *g, const char *path, weft_error *err);

#endif
