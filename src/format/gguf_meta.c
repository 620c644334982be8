// SPDX-License-Identifier: Apache-2.0
/* gguf_meta.c: reads the metadata entries of one part.
 *
 * Invariant: memory grows with the entries actually found, never with a count that the file claims. One thread. */
#include "base/alloc.h"
#include "format/gguf_parts.h"

/* A key's length, one byte of key, a type, one byte of value. */
#define LEAST_ENTRY_BYTES (8 + 1 + 4 + 1)

static weft_status gguf_meta_no_memory(const weft__gguf_metadata *m, weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "%s: no memory for the metadata", m->label);
}

/* Takes note of a checked entry. */
static weft_status gguf_meta_add(weft__gguf_metadata *m, weft__gguf_entry *e, weft__gguf_str key, weft_error *err)
{
    char shown[WEFT__NAME_SHOW];
    if (!weft__grow(&m->entries, &m->capacity, m->n + 1, sizeof *m->entries)) return gguf_meta_no_memory(m, err);
    e->key = weft__arena_string(&m->arena, key.data, key.len);
    e->key_len = (uint32_t)key.len;
    if (!e->key) return gguf_meta_no_memory(m, err);
    int added = weft__name_table_put(&m->keys, e->key, key.len, (uint32_t)m->n, NULL);
    if (added < 0) return gguf_meta_no_memory(m, err);
    if (added == 0)
        return weft_fail(err, WEFT_FORMAT, "%s: key '%s' is there twice", m->label,
                         weft__name_show(shown, key.data, key.len));
    if (e->type == WEFT__GGUF_ARRAY && !(e->list = weft__gguf_list_build(&m->arena, e->raw)))
        return gguf_meta_no_memory(m, err);
    m->entries[m->n++] = *e;
    return WEFT_OK;
}

static weft_status read_entry(weft__gguf_cursor *c, weft__gguf_metadata *m, weft_error *err)
{
    char shown[WEFT__NAME_SHOW];
    weft__gguf_str key;
    weft__gguf_entry e = {0};
    weft_status status = weft__gguf_take_name(c, WEFT__GGUF_KEY_BYTES, &key, err);
    if (status != WEFT_OK) return weft_fail_within(err, status, "%s: metadata key %zu", c->label, m->n);
    if (!weft__gguf_take_u32(c, &e.type))
        return weft_fail(err, WEFT_FORMAT, "%s: key '%s': the file ends before its type", c->label,
                         weft__name_show(shown, key.data, key.len));
    uint64_t begin = c->pos;
    status = weft__gguf_skip_value(c, e.type, err);
    if (status != WEFT_OK)
        return weft_fail_within(err, status, "%s: key '%s'", c->label, weft__name_show(shown, key.data, key.len));
    e.raw = c->base + begin;
    e.raw_bytes = c->pos - begin;
    return gguf_meta_add(m, &e, key, err);
}

weft_status weft__gguf_read_meta(weft__gguf_cursor *c, uint64_t n, weft__gguf_metadata *m, weft_error *err)
{
    if (n > weft__gguf_left(c) / LEAST_ENTRY_BYTES || n >= UINT32_MAX)
        return weft_fail(err, WEFT_FORMAT, "%s: %llu metadata entries cannot fit into the %llu bytes left in the file",
                         c->label, (unsigned long long)n, (unsigned long long)weft__gguf_left(c));
    for (uint64_t i = 0; i < n; i++) {
        weft_status status = read_entry(c, m, err);
        if (status != WEFT_OK) return status;
    }
    return WEFT_OK;
}

void weft__gguf_metadata_free(weft__gguf_metadata *m)
{
    weft__name_table_free(&m->keys);
    weft__free(m->entries);
    weft__arena_free(&m->arena);
    m->entries = NULL;
    m->n = m->capacity = 0;
}
