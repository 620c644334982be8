// SPDX-License-Identifier: Apache-2.0
/* plan_write.c: writes a compiled plan (plan_file.h). Everything is summed up before the first byte is written, so that
 * the file is written from front to back. One thread. */
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/hash.h"
#include "format/out_file.h"
#include "format/plan_parts.h"
#include "mem/mem.h"

enum { PIECE = 16 << 20 };

typedef struct plan_write_writing {
    const weft__plan_file_contents *c;
    const char *path;
    weft__plan_file_header header;
    weft__strbuf meta;
    uint64_t *places; /* [tensors->n] in the data, UINT64_MAX where a tensor keeps no bytes */
    weft__out_file out;
    weft_progress_fn progress;
    void *arg;
    uint64_t done;
    weft_error *err;
} plan_write_writing;

int weft__plan_file_places(const weft__plan_file_header *h, uint64_t *data, uint64_t *image, uint64_t *end)
{
    return weft__checked_add(sizeof *h, h->meta_bytes, data) &&
           weft__checked_align(*data, WEFT__PLAN_FILE_DATA_ALIGN, data) &&
           weft__checked_add(*data, h->data_bytes, image) &&
           weft__checked_align(*image, WEFT__PLAN_FILE_IMAGE_ALIGN, image) &&
           weft__checked_add(*image, h->image_bytes, end) && *end <= INT64_MAX;
}

static weft_status plan_write_no_memory(const plan_write_writing *w)
{
    return weft_fail(w->err, WEFT_NO_MEMORY, "%s: no memory to write it", w->path);
}

/* ---- the tables ---- */

/* Gives every tensor that keeps its bytes a place. */
static weft_status place_tensors(plan_write_writing *w)
{
    const weft__tensor_set *set = w->c->tensors;
    uint64_t at = 0;
    if (!(w->places = weft__alloc_array(set->n, sizeof *w->places))) return plan_write_no_memory(w);
    for (size_t i = 0; i < set->n; i++) {
        w->places[i] = UINT64_MAX;
        if (!w->c->kept[i]) continue;
        if (!weft__checked_align(at, WEFT__PLAN_FILE_TENSOR_ALIGN, &w->places[i]) ||
            !weft__checked_add(w->places[i], set->items[i].n_bytes, &at))
            return weft_fail(w->err, WEFT_LIMIT, "%s: the tensors are larger than can be counted", w->path);
    }
    w->header.data_bytes = at;
    return WEFT_OK;
}

static weft_status put_tensors(plan_write_writing *w, weft__gguf_writer *meta)
{
    const weft__tensor_set *set = w->c->tensors;
    weft_status st;
    weft__gguf_str *names = weft__alloc_array(set->n, sizeof *names);
    uint64_t *numbers = weft__alloc_array(set->n, WEFT__PLAN_FILE_NUMBERS * sizeof *numbers);
    if (names && numbers) {
        for (size_t i = 0; i < set->n; i++) {
            const weft__tensor_desc *t = &set->items[i];
            uint64_t row[WEFT__PLAN_FILE_NUMBERS] = {t->dtype, t->n_dims, t->d[0],     t->d[1],
                                                     t->d[2],  t->d[3],   w->places[i]};
            names[i] = (weft__gguf_str){t->name, strlen(t->name)};
            memcpy(numbers + i * WEFT__PLAN_FILE_NUMBERS, row, sizeof row);
        }
        st = weft__gguf_put_strings(meta, WEFT__PLAN_FILE_NAMES, names, set->n, w->err);
        if (!st)
            st = weft__gguf_put_array(meta, WEFT__PLAN_FILE_TENSORS, WEFT__GGUF_U64, numbers,
                                      set->n * WEFT__PLAN_FILE_NUMBERS, w->err);
    } else {
        st = plan_write_no_memory(w);
    }
    weft__free(numbers);
    weft__free(names);
    return st;
}

static weft_status put_text(plan_write_writing *w, weft__gguf_writer *meta, const char *key, const char *text)
{
    return weft__gguf_put_string(meta, key, text, strlen(text), w->err);
}

static weft_status put_origin(plan_write_writing *w, weft__gguf_writer *meta)
{
    const weft__plan_file_origin *o = &w->c->info.origin;
    weft_status st;
    if (!o->path) return WEFT_OK;
    if ((st = put_text(w, meta, WEFT__PLAN_FILE_SOURCE, o->path)) ||
        (st = weft__gguf_put(meta, WEFT__PLAN_FILE_SOURCE_BYTES, WEFT__GGUF_U64, &o->bytes, w->err)) ||
        (st = weft__gguf_put(meta, WEFT__PLAN_FILE_SOURCE_TIME, WEFT__GGUF_U64, &o->time_ns, w->err)) ||
        (st = weft__gguf_put(meta, WEFT__PLAN_FILE_KEEPS, WEFT__GGUF_U64, &o->keep_weights, w->err)))
        return st;
    return o->pre_tokenizer ? put_text(w, meta, WEFT__PLAN_FILE_SOURCE_PRE, o->pre_tokenizer) : WEFT_OK;
}

static weft_status make_meta(plan_write_writing *w, weft__gguf_writer *meta)
{
    const weft__plan_file_summary *info = &w->c->info;
    weft_status st;
    if ((st = place_tensors(w)) || (st = put_text(w, meta, WEFT__PLAN_FILE_PROVIDER, info->provider)) ||
        (st = put_text(w, meta, WEFT__PLAN_FILE_MADE_BY, info->made_by)) ||
        (st = put_text(w, meta, WEFT__PLAN_FILE_LAYOUT, info->image.layout)) ||
        (st = weft__gguf_put(meta, WEFT__PLAN_FILE_WEIGHTS, WEFT__GGUF_U64, &info->weights, w->err)) ||
        (st = weft__gguf_put_array(meta, WEFT__PLAN_FILE_OFFSETS, WEFT__GGUF_U64, info->image.offset,
                                   (size_t)info->image.n_weights, w->err)) ||
        (st = put_tensors(w, meta)) || (st = put_origin(w, meta)))
        return st;
    return weft__gguf_writer_bytes(meta, &w->meta, w->err);
}

/* ---- the bytes ---- */

/* Calls put for the data section's pieces in order: gaps as zeros (bytes NULL), then a tensor, and so on. */
typedef weft_status (*put_fn)(plan_write_writing *w, weft__hash_state *h, const void *bytes, uint64_t n);

static weft_status each_piece(plan_write_writing *w, weft__hash_state *h, put_fn put)
{
    const weft__tensor_set *set = w->c->tensors;
    uint64_t at = 0;
    weft_status st = WEFT_OK;
    for (size_t i = 0; i < set->n && !st; i++) {
        const weft__tensor_desc *t = &set->items[i];
        if (!w->c->kept[i]) continue;
        st = put(w, h, NULL, w->places[i] - at);
        if (!st) st = put(w, h, weft__tensor_data(t), t->n_bytes);
        if (t->buffer->domain == WEFT_DOMAIN_MAPPED)
            (void)weft__mem_advise(t->buffer, t->offset, t->n_bytes, WEFT__MEM_ADVICE_DONTNEED, NULL); /* a wish */
        at = w->places[i] + t->n_bytes;
    }
    return st;
}

static weft_status put_hash(plan_write_writing *w, weft__hash_state *h, const void *bytes, uint64_t n)
{
    static const unsigned char zeros[WEFT__PLAN_FILE_TENSOR_ALIGN];
    (void)w;
    weft__hash_add(h, bytes ? bytes : zeros, (size_t)n);
    return WEFT_OK;
}

static weft_status put_out(plan_write_writing *w, weft__hash_state *h, const void *bytes, uint64_t n)
{
    (void)h;
    if (!bytes) return weft__out_file_zeros(&w->out, n, w->err);
    for (uint64_t at = 0, piece; at < n; at += piece) {
        piece = n - at < PIECE ? n - at : PIECE;
        weft_status st = weft__out_file_write(&w->out, (const unsigned char *)bytes + at, (size_t)piece, w->err);
        if (st) return st;
        w->done += piece;
        if (w->progress && w->progress(w->arg, "writing", (double)w->done / (double)w->header.file_bytes))
            return weft_fail(w->err, WEFT_CANCELLED, "%s: cancelled while writing", w->path);
    }
    return WEFT_OK;
}

static weft_status make_header(plan_write_writing *w)
{
    weft__plan_file_header *h = &w->header;
    weft__hash_state data;
    uint64_t at, image;
    memcpy(h->magic, WEFT__PLAN_FILE_MAGIC, sizeof h->magic);
    h->version = WEFT__PLAN_FILE_VERSION;
    h->order = WEFT__PLAN_FILE_ORDER;
    h->meta_bytes = w->meta.len;
    h->image_bytes = w->c->info.image.n_bytes;
    if (!weft__plan_file_places(h, &at, &image, &h->file_bytes))
        return weft_fail(w->err, WEFT_LIMIT, "%s: the plan is larger than can be counted", w->path);
    weft__hash_begin(&data);
    weft_status st = each_piece(w, &data, put_hash);
    h->meta_hash = weft__hash(w->meta.data, w->meta.len);
    h->data_hash = weft__hash_end(&data);
    h->image_hash = weft__hash(w->c->info.image.data, (size_t)h->image_bytes);
    h->hash = weft__hash(h, offsetof(weft__plan_file_header, hash));
    return st;
}

static weft_status write_all(plan_write_writing *w)
{
    const weft__plan_file_header *h = &w->header;
    uint64_t data, image, end;
    if (!weft__plan_file_places(h, &data, &image, &end))
        return weft_fail(w->err, WEFT_INTERNAL, "%s: its sizes have changed", w->path);
    weft_status st = weft__out_file_reserve(&w->out, h->file_bytes, w->err);
    if (!st) st = weft__out_file_write(&w->out, h, sizeof *h, w->err);
    if (!st) st = weft__out_file_write(&w->out, w->meta.data, w->meta.len, w->err);
    if (!st) st = weft__out_file_zeros(&w->out, data - sizeof *h - h->meta_bytes, w->err);
    if (!st) st = each_piece(w, NULL, put_out);
    if (!st) st = weft__out_file_zeros(&w->out, image - data - h->data_bytes, w->err);
    if (!st && h->image_bytes) st = put_out(w, NULL, w->c->info.image.data, h->image_bytes);
    return st ? st : weft__out_file_commit(&w->out, w->err);
}

weft_status weft__plan_file_write(const char *path, weft__gguf_writer *meta, const weft__plan_file_contents *contents,
                                  weft_progress_fn progress, void *arg, uint64_t *n_bytes, weft_error *err)
{
    plan_write_writing w = {.c = contents, .path = path, .progress = progress, .arg = arg, .err = err};
    weft_status st = make_meta(&w, meta);
    if (!st) st = make_header(&w);
    if (!st && !(st = weft__out_file_open(&w.out, path, err))) {
        st = write_all(&w);
        weft__out_file_close(&w.out);
    }
    *n_bytes = w.header.file_bytes;
    weft__free(w.places);
    weft__strbuf_free(&w.meta);
    return st;
}
