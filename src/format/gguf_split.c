// SPDX-License-Identifier: Apache-2.0
/* gguf_split.c: the parts of a split model: their names, their numbers, and that they are all there.
 *
 * Convention (of the tool that splits models): the parts of NAME are NAME-00001-of-00003.gguf and so on; every part
 * holds split.no (from 0), split.count and split.tensors.count (tensors of all parts); the first holds all other
 * metadata. Invariant: part i is read only as part i of `count`, so no file can stand for two of them. One thread. */
#include "format/gguf_split.h"

#include <stdio.h>

#include "base/alloc.h"
#include "format/gguf_parts.h"

#define KEY_NO "split.no"
#define KEY_COUNT "split.count"
#define KEY_TENSORS "split.tensors.count"
#define SUFFIX_BYTES 20 /* "-00001-of-00003.gguf" */
#define MOST_PARTS 99999

typedef struct numbering {
    uint64_t no, count; /* `no` from 0 */
} numbering;

/* Five digits, or -1. */
static long digits(const char *s)
{
    long value = 0;
    for (int i = 0; i < 5; i++) {
        if (s[i] < '0' || s[i] > '9') return -1;
        value = value * 10 + (s[i] - '0');
    }
    return value;
}

/* The numbers in a part's name; 0 when the name is not that of a part. */
static int named(const char *path, numbering *out)
{
    size_t len = strlen(path);
    const char *s = path + len - SUFFIX_BYTES;
    if (len <= SUFFIX_BYTES || s[0] != '-' || memcmp(s + 6, "-of-", 4) != 0 || strcmp(s + 15, ".gguf") != 0) return 0;
    long no = digits(s + 1), count = digits(s + 10);
    if (no < 1 || count < 1) return 0;
    *out = (numbering){(uint64_t)no - 1, (uint64_t)count};
    return 1;
}

int weft__gguf_part_path(const char *path, uint64_t no, char *out, size_t capacity)
{
    numbering name;
    if (!named(path, &name) || no >= name.count) return 0;
    const int n = snprintf(out, capacity, "%.*s-%05u-of-%05u.gguf", (int)(strlen(path) - SUFFIX_BYTES), path,
                           (unsigned)no + 1, (unsigned)name.count);
    return n > 0 && (size_t)n < capacity;
}

static int has(const weft__gguf_metadata *m, const char *key)
{
    return weft__name_table_find(&m->keys, key, strlen(key)) >= 0;
}

static weft_status read_numbering(const weft__gguf_metadata *m, numbering *out, weft_error *err)
{
    weft_status status = weft__gguf_meta_u64(m, KEY_COUNT, &out->count, err);
    if (status == WEFT_OK) status = weft__gguf_meta_u64(m, KEY_NO, &out->no, err);
    if (status != WEFT_OK) return status == WEFT_NOT_FOUND ? WEFT_FORMAT : status;
    if (out->count < 1 || out->count > MOST_PARTS || out->no >= out->count)
        return weft_fail(err, WEFT_FORMAT,
                         "%s: keys 'split.no' and 'split.count' say part %llu of %llu (counted from 0)", m->label,
                         (unsigned long long)out->no, (unsigned long long)out->count);
    return WEFT_OK;
}

/* What the first part says of itself must agree with its name and make it the first. */
static weft_status check_first(const weft__gguf_metadata *m, const char *path, numbering said, weft_error *err)
{
    numbering name;
    int is_named = named(path, &name);
    if (said.no != 0)
        return weft_fail(err, WEFT_FORMAT, "%s: is part %llu of %llu of a split model (split.no); open the first part",
                         m->label, (unsigned long long)said.no + 1, (unsigned long long)said.count);
    if (is_named && (name.no != said.no || name.count != said.count))
        return weft_fail(err, WEFT_FORMAT,
                         "%s: its name says part %llu of %llu, its keys split.no and split.count say %llu of %llu",
                         m->label, (unsigned long long)name.no + 1, (unsigned long long)name.count,
                         (unsigned long long)said.no + 1, (unsigned long long)said.count);
    if (!is_named && said.count > 1)
        return weft_fail(err, WEFT_FORMAT,
                         "%s: is the first of %llu parts (split.count), so its name must end in -00001-of-%05llu.gguf",
                         m->label, (unsigned long long)said.count, (unsigned long long)said.count);
    return WEFT_OK;
}

/* Reads part `no`, whose path is `path`, and adds its tensors. Its other metadata are dropped. */
static weft_status read_other(weft__gguf *g, const char *path, numbering wanted, weft_error *err)
{
    char label[WEFT__NAME_SHOW * 2];
    weft__gguf_metadata m = {.label = weft__name_show_path(label, path)};
    numbering said;
    weft__gguf_head head;
    weft_buffer *part;
    weft_status status = weft__gguf_map_part(g, path, &part, err);
    if (status != WEFT_OK)
        return weft_fail_within(err, status, "part %llu of %llu cannot be read", (unsigned long long)wanted.no + 1,
                                (unsigned long long)wanted.count);
    status = weft__gguf_read_head(part, &m, &head, err);
    if (status == WEFT_OK) status = read_numbering(&m, &said, err);
    if (status == WEFT_OK && (said.no != wanted.no || said.count != wanted.count))
        status = weft_fail(err, WEFT_FORMAT,
                           "%s: should be part %llu of %llu, but its keys split.no and split.count say %llu of %llu",
                           label, (unsigned long long)wanted.no + 1, (unsigned long long)wanted.count,
                           (unsigned long long)said.no + 1, (unsigned long long)said.count);
    if (status == WEFT_OK) status = weft__gguf_read_tensors(g, &head, part, err);
    weft__gguf_metadata_free(&m);
    return status;
}

static weft_status gguf_split_read_all(weft__gguf *g, const char *path, uint64_t count, weft_error *err)
{
    const size_t room = strlen(path) + 1;
    char *other = weft__strdup(path);
    weft_status status = WEFT_OK;
    if (!other) return weft_fail(err, WEFT_NO_MEMORY, "%s: no memory for the names of its parts", g->label);
    for (uint64_t no = 1; no < count && status == WEFT_OK; no++) {
        weft__gguf_part_path(path, no, other, room);
        status = read_other(g, other, (numbering){no, count}, err);
    }
    weft__free(other);
    return status;
}

weft_status weft__gguf_read_other_parts(weft__gguf *g, const char *path, weft_error *err)
{
    numbering said;
    uint64_t n_tensors;
    if (!has(&g->meta, KEY_COUNT) && !has(&g->meta, KEY_NO)) {
        if (path && named(path, &said) && said.count > 1)
            return weft_fail(err, WEFT_FORMAT,
                             "%s: its name is that of a part of a split model, but key 'split.count' is missing",
                             g->label);
        return WEFT_OK;
    }
    weft_status status = read_numbering(&g->meta, &said, err);
    if (status != WEFT_OK) return status;
    if (!path && said.count > 1)
        return weft_fail(err, WEFT_UNSUPPORTED, "%s: is part %llu of %llu of a split model; open it as a file",
                         g->label, (unsigned long long)said.no + 1, (unsigned long long)said.count);
    if (path) status = check_first(&g->meta, path, said, err);
    if (status == WEFT_OK && said.count > 1) status = gguf_split_read_all(g, path, said.count, err);
    if (status != WEFT_OK || (said.count == 1 && !has(&g->meta, KEY_TENSORS))) return status;
    status = weft__gguf_meta_u64(&g->meta, KEY_TENSORS, &n_tensors, err);
    if (status != WEFT_OK) return status == WEFT_NOT_FOUND ? WEFT_FORMAT : status;
    if (n_tensors != g->tensors.n)
        return weft_fail(err, WEFT_FORMAT, "%s: key 'split.tensors.count' says %llu tensors, but the parts hold %zu",
                         g->label, (unsigned long long)n_tensors, g->tensors.n);
    return WEFT_OK;
}
