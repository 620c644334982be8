// SPDX-License-Identifier: Apache-2.0
/* safetensors_folder.c: a folder's model.safetensors, or the shards that its index names (safetensors.h). One thread.
 *
 * Invariant: only files directly in the folder are opened, whatever the index says. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/json.h"
#include "format/safetensors_parts.h"
#include "mem/mem.h"

#define INDEX "model.safetensors.index.json"
#define SINGLE "model.safetensors"

enum { SHARD_NAME_BYTES = 255, MAX_SHARDS = 4096 };

/* folder/name, owned by the caller; NULL without memory. */
static char *join(const char *folder, const char *name)
{
    size_t n = strlen(folder) + strlen(name) + 2;
    char *path = weft__alloc(n);
    if (path) snprintf(path, n, "%s/%s", folder, name);
    return path;
}

static weft_status safetensors_folder_no_memory(const char *label, weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "%s: no memory to read it", label);
}

/* A plain file name: nothing that leads elsewhere, and nothing hidden. */
static int plain_name(const char *s, size_t n)
{
    return n > 0 && n <= SHARD_NAME_BYTES && s[0] != '.' && !memchr(s, '/', n) && !memchr(s, '\\', n) &&
           !memchr(s, 0, n);
}

/* The shards met so far, by name. */
typedef struct shards {
    weft__name_table names; /* index: the position of the shard's buffer in st->files */
    uint32_t n;
} shards;

/* The shard called s[0..n), opened when it is met for the first time. */
static weft_status shard_of(weft__safetensors *st, const char *folder, shards *known, const char *s, size_t n,
                            const weft_buffer **out, weft_error *err)
{
    int64_t at = weft__name_table_find(&known->names, s, n);
    if (at < 0) {
        if (known->n == MAX_SHARDS) return weft_fail(err, WEFT_LIMIT, "%s: more than %d shards", INDEX, MAX_SHARDS);
        char *path = join(folder, s);
        weft_status status = path ? weft__safetensors_add(st, path, err) : safetensors_folder_no_memory(folder, err);
        weft__free(path);
        if (status) return status;
        at = known->n++;
        if (weft__name_table_put(&known->names, s, n, (uint32_t)at, NULL) != 1)
            return safetensors_folder_no_memory(folder, err);
    }
    *out = st->files[at];
    return WEFT_OK;
}

static weft_status read_entry(weft__safetensors *st, const char *folder, shards *known, const weft__json_member *m,
                              weft_error *err)
{
    const char *s;
    size_t n;
    const weft_buffer *file = NULL;
    char tensor[WEFT__NAME_SHOW], shard[WEFT__NAME_SHOW];
    weft__name_show(tensor, m->key, m->key_len);
    if (!weft__json_string(m->value, &s, &n))
        return weft_fail(err, WEFT_FORMAT, "%s: the shard of '%s' is no string", INDEX, tensor);
    weft__name_show(shard, s, n);
    if (!plain_name(s, n))
        return weft_fail(err, WEFT_FORMAT, "%s: the shard '%s' of tensor '%s' is no plain file name; refused", INDEX,
                         shard, tensor);
    weft_status status = shard_of(st, folder, known, s, n, &file, err);
    if (status) return status;
    const weft__tensor_desc *t = weft__tensor_find(&st->tensors, m->key);
    if (t && t->buffer == file) return WEFT_OK;
    return weft_fail(err, WEFT_FORMAT, "%s: tensor '%s' is not in the shard '%s'", INDEX, tensor, shard);
}

static weft_status read_index(weft__safetensors *st, const char *folder, const weft__json *index, weft_error *err)
{
    const weft__json *map = weft__json_get(index, "weight_map");
    weft__json_member m = {0};
    shards known = {0};
    weft_status status = WEFT_OK;
    if (weft__json_kind_of(map) != WEFT__JSON_OBJECT || weft__json_size(map) == 0)
        return weft_fail(err, WEFT_FORMAT, "%s: it has no weight_map", INDEX);
    while (!status && weft__json_next(map, &m)) status = read_entry(st, folder, &known, &m, err);
    weft__name_table_free(&known.names);
    return status;
}

static weft_status open_shards(weft__safetensors *st, const char *folder, const char *path, weft_error *err)
{
    weft_buffer *text;
    weft__json *index;
    weft_status status = weft__mem_map(path, &text, err);
    if (status) return status;
    if (text->n_bytes > WEFT__SAFETENSORS_HEADER_BYTES)
        status = weft_fail(err, WEFT_LIMIT, "it exceeds %u bytes", WEFT__SAFETENSORS_HEADER_BYTES);
    else status = weft__json_parse(text->data, (size_t)text->n_bytes, &index, err);
    if (status) {
        weft_fail_within(err, status, "%s", INDEX);
    } else {
        status = read_index(st, folder, index, err);
        weft__json_free(&index);
    }
    weft_buffer_release(&text);
    return status;
}

/* That there are no weights, and what there is instead. */
static weft_status nothing_here(const char *folder, weft_error *err)
{
    char *pickle = join(folder, "pytorch_model.bin"), *parts = join(folder, "pytorch_model.bin.index.json");
    int has = (pickle && !access(pickle, F_OK)) || (parts && !access(parts, F_OK));
    weft__free(parts);
    weft__free(pickle);
    if (has)
        return weft_fail(err, WEFT_UNSUPPORTED,
                         "the weights are in pytorch_model.bin, a Python pickle; save them as safetensors first "
                         "(save_pretrained of transformers does)");
    return weft_fail(err, WEFT_NOT_FOUND, "there is neither " SINGLE " nor " INDEX);
}

weft_status weft__safetensors_open_folder(const char *folder, weft__safetensors **out, weft_error *err)
{
    *out = NULL;
    weft_status status;
    weft__safetensors *st = weft__safetensors_new();
    char *index = join(folder, INDEX), *single = join(folder, SINGLE);
    if (!st || !index || !single) status = safetensors_folder_no_memory(folder, err);
    else if (!access(index, F_OK)) status = open_shards(st, folder, index, err);
    else if (!access(single, F_OK)) status = weft__safetensors_add(st, single, err);
    else status = nothing_here(folder, err);
    weft__free(single);
    weft__free(index);
    if (status) weft__safetensors_close(&st);
    *out = st;
    return status;
}
