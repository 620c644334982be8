// SPDX-License-Identifier: Apache-2.0
/* gguf.c: opens, reads and closes a GGUF file; the parts of a header are read in gguf_meta.c and gguf_tensors.c.
 *
 * Layout: "GGUF", u32 version, u64 tensors, u64 metadata entries; the entries; the tensor descriptions; padding; tensor
 * data. Invariant: g->parts owns every mapping; descriptors only point to them. One thread until open returns, then
 * read-only. */
#include "base/alloc.h"
#include "format/gguf_parts.h"
#include "mem/mem.h"

/* The numbers are copied as they stand. */
WEFT_STATIC_ASSERT(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "GGUF reading needs a little-endian machine");

static weft_status check_magic(weft__gguf_cursor *c, uint32_t *version, weft_error *err)
{
    const unsigned char *magic = weft__gguf_take(c, 4);
    if (!magic)
        return weft_fail(err, WEFT_FORMAT, "%s: is not a GGUF file: it has only %llu bytes", c->label,
                         (unsigned long long)c->n);
    if (memcmp(magic, WEFT__GGUF_MAGIC, 4) != 0)
        return weft_fail(err, WEFT_FORMAT, "%s: is not a GGUF file: it begins with %02x %02x %02x %02x", c->label,
                         magic[0], magic[1], magic[2], magic[3]);
    if (!weft__gguf_take_u32(c, version))
        return weft_fail(err, WEFT_FORMAT, "%s: the file ends inside its version", c->label);
    if (*version == 2 || *version == 3) return WEFT_OK;
    if (*version && (*version & 0xffff) == 0)
        return weft_fail(err, WEFT_UNSUPPORTED, "%s: is a big-endian GGUF file; convert it to little-endian", c->label);
    return weft_fail(err, WEFT_UNSUPPORTED, "%s: GGUF version %u is not supported; versions 2 and 3 are", c->label,
                     *version);
}

static weft_status read_alignment(const weft__gguf_metadata *m, uint32_t *alignment, weft_error *err)
{
    *alignment = WEFT__GGUF_ALIGNMENT;
    if (weft__name_table_find(&m->keys, "general.alignment", 17) < 0) return WEFT_OK;
    weft_status status = weft__gguf_meta_u32(m, "general.alignment", alignment, err);
    if (status != WEFT_OK) return status;
    if (*alignment < WEFT__GGUF_MIN_ALIGNMENT || (*alignment & (*alignment - 1)))
        return weft_fail(err, WEFT_FORMAT, "%s: key 'general.alignment': %u is not a power of two of at least %d",
                         m->label, *alignment, WEFT__GGUF_MIN_ALIGNMENT);
    return WEFT_OK;
}

weft_status weft__gguf_read_head(const weft_buffer *part, weft__gguf_metadata *m, weft__gguf_head *head,
                                 weft_error *err)
{
    weft__gguf_cursor *c = &head->cursor;
    uint64_t n_meta;
    *head = (weft__gguf_head){.cursor = {part->data, part->n_bytes, 0, m->label}};
    weft_status status = check_magic(c, &head->version, err);
    if (status != WEFT_OK) return status;
    if (!weft__gguf_take_u64(c, &head->n_tensors) || !weft__gguf_take_u64(c, &n_meta))
        return weft_fail(err, WEFT_FORMAT, "%s: the file ends inside its counts", c->label);
    status = weft__gguf_read_meta(c, n_meta, m, err);
    return status == WEFT_OK ? read_alignment(m, &head->alignment, err) : status;
}

/* Reads the first or only part, whose buffer g owns. */
static weft_status read_first(weft__gguf *g, weft_buffer *part, int with_tensors, weft_error *err)
{
    weft__gguf_head head;
    weft_status status = weft__gguf_read_head(part, &g->meta, &head, err);
    if (status == WEFT_OK && with_tensors) status = weft__gguf_read_tensors(g, &head, part, err);
    g->version = head.version;
    g->alignment = head.alignment;
    return status;
}

/* Hands `part` to g, which then owns it; releases it on failure. */
static weft_status own(weft__gguf *g, weft_buffer *part, weft_error *err)
{
    if (!weft__grow(&g->parts, &g->parts_capacity, g->n_parts + 1, sizeof *g->parts)) {
        weft_buffer_release(&part);
        return weft_fail(err, WEFT_NO_MEMORY, "%s: no memory for its list of parts", g->label);
    }
    g->parts[g->n_parts++] = part;
    return WEFT_OK;
}

weft_status weft__gguf_map_part(weft__gguf *g, const char *path, weft_buffer **out, weft_error *err)
{
    weft_status status = weft__mem_map(path, out, err);
    return status == WEFT_OK ? own(g, *out, err) : status;
}

static weft_status create(const char *name, weft__gguf **out, weft_error *err)
{
    weft__gguf *g = weft__alloc_zero(1, sizeof *g);
    if (!g) return weft_fail(err, WEFT_NO_MEMORY, "no memory to open a GGUF file");
    weft__name_show_path(g->label, name);
    g->meta.label = g->label;
    *out = g;
    return WEFT_OK;
}

weft_status weft__gguf_open(const char *path, weft__gguf **out, weft_error *err)
{
    weft_buffer *part;
    *out = NULL;
    weft_status status = create(path, out, err);
    if (status == WEFT_OK) status = weft__gguf_map_part(*out, path, &part, err);
    if (status == WEFT_OK) status = read_first(*out, part, 1, err);
    if (status == WEFT_OK) status = weft__gguf_read_other_parts(*out, path, err);
    if (status != WEFT_OK) weft__gguf_close(out);
    return status;
}

static weft_status parse(const void *bytes, size_t n, const char *name, int with_tensors, weft__gguf **out,
                         weft_error *err)
{
    weft_buffer *part;
    *out = NULL;
    weft_status status = create(name, out, err);
    if (status == WEFT_OK) status = weft__mem_borrow(bytes, n, WEFT_BUFFER_READONLY, &part, err);
    if (status == WEFT_OK) status = own(*out, part, err);
    if (status == WEFT_OK) status = read_first(*out, part, with_tensors, err);
    if (status == WEFT_OK && with_tensors) status = weft__gguf_read_other_parts(*out, NULL, err);
    if (status != WEFT_OK) weft__gguf_close(out);
    return status;
}

weft_status weft__gguf_parse(const void *bytes, size_t n, const char *name, weft__gguf **out, weft_error *err)
{
    return parse(bytes, n, name, 1, out, err);
}

weft_status weft__gguf_parse_meta(const void *bytes, size_t n, const char *name, weft__gguf **out, weft_error *err)
{
    return parse(bytes, n, name, 0, out, err);
}

void weft__gguf_close(weft__gguf **g)
{
    if (!g || !*g) return;
    weft__gguf *old = *g;
    *g = NULL;
    weft__tensor_set_free(&old->tensors);
    weft__gguf_metadata_free(&old->meta);
    weft__arena_free(&old->arena);
    for (size_t i = 0; i < old->n_parts; i++) weft_buffer_release(&old->parts[i]);
    weft__free(old->parts);
    weft__free(old);
}
