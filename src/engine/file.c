// SPDX-License-Identifier: Apache-2.0
/* file.c: weft_file: metadata and tensors of a model file, for people and scripts. Read-only once open. */
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "engine/handles.h"

static weft_status open_kind(weft_file *f, weft_error *err)
{
    if (weft__hf_is_folder(f->path)) return weft__hf_open(f->path, &f->hf, err);
    if (!weft__plan_file_is(f->path)) return weft__gguf_open(f->path, &f->gguf, err);
    weft_status st = weft__plan_file_open(f->path, &f->plan, err);
    if (!st) f->gguf = weft__plan_file_meta(f->plan);
    return st;
}

weft_status weft_file_open(const char *path, weft_file **out, weft_error *err)
{
    char place[4096];
    *out = NULL;
    weft_status st = weft_resolve_model(path, place, sizeof place, err);
    if (st) return st;
    path = place;
    weft_file *f = weft__alloc_zero(1, sizeof *f);
    if (!f) return weft_fail(err, WEFT_NO_MEMORY, "no memory to open %s", path);
    f->path = weft__strdup(path);
    if (!f->path) st = weft_fail(err, WEFT_NO_MEMORY, "no memory to open %s", path);
    else st = open_kind(f, err);
    if (st) weft_file_close(&f);
    *out = f;
    return st;
}

void weft_file_close(weft_file **p)
{
    weft_file *f = p ? *p : NULL;
    if (!f) return;
    weft__hf_close(&f->hf);
    if (f->plan) weft__plan_file_close(&f->plan);
    else weft__gguf_close(&f->gguf);
    weft__free(f->path);
    weft__free(f);
    *p = NULL;
}

/* A folder's metadata are made from its config.json, under the names that GGUF has for them. */
void weft__engine_file_source(const weft_file *f, weft__source *out)
{
    if (f->hf) weft__hf_source(f->hf, out);
    else if (f->plan) weft__engine_plan_source(f->plan, f->path, out);
    else weft__source_gguf(f->gguf, f->path, out);
}

static const weft__gguf *meta_of(const weft_file *f)
{
    return f->hf ? weft__hf_meta(f->hf) : f->gguf;
}

const weft__tensor_set *weft__engine_file_tensors(const weft_file *f)
{
    return f->hf ? weft__hf_tensors(f->hf) : f->plan ? weft__plan_file_tensors(f->plan) : weft__gguf_tensors(f->gguf);
}

uint64_t weft__engine_file_bytes(const weft_file *f)
{
    const weft__tensor_set *set = weft__engine_file_tensors(f);
    uint64_t n = 0;
    for (size_t i = 0; i < set->n; i++) n += set->items[i].n_bytes;
    return n;
}

weft_status weft_file_check(const weft_file *f, weft_progress_fn progress, void *arg, weft_error *err)
{
    if (f->plan) return weft__plan_file_check(f->plan, progress, arg, err);
    return weft_fail(err, WEFT_UNSUPPORTED, "%s: only compiled plans have checksums of their weights", f->path);
}

uint32_t weft_file_version(const weft_file *f)
{
    return f->hf || f->plan ? 0 : weft__gguf_version(f->gguf);
}

const char *weft_file_plan_layout(const weft_file *f)
{
    return f->plan ? weft__plan_file_info(f->plan)->image.layout : NULL;
}

int64_t weft_file_n_meta(const weft_file *f)
{
    return (int64_t)weft__gguf_n_meta(meta_of(f));
}

static const char *type_text(const weft__gguf_entry *e)
{
    static const char *const arrays[WEFT__GGUF_TYPE_COUNT] = {
#define ARRAY_OF(name, value, bytes, text) [value] = "array of " text,
        WEFT__GGUF_TYPE_LIST(ARRAY_OF)
#undef ARRAY_OF
    };
    return e->type == WEFT__GGUF_ARRAY ? arrays[e->list->type] : weft__gguf_type_name(e->type);
}

weft_status weft_file_meta(const weft_file *f, int64_t index, weft_meta_info *out, weft_error *err)
{
    if (index < 0 || index >= weft_file_n_meta(f))
        return weft_fail(err, WEFT_ARGUMENT, "metadata entry %lld of %lld", (long long)index,
                         (long long)weft_file_n_meta(f));
    const weft__gguf_entry *e = weft__gguf_meta(meta_of(f), (size_t)index);
    *out = (weft_meta_info){e->key, type_text(e), e->type == WEFT__GGUF_ARRAY ? e->list->n : 1};
    return WEFT_OK;
}

static void put_list(weft__strbuf *t, const weft__gguf_list *list, uint64_t max_items);

static void put_element(weft__strbuf *t, const weft__gguf_list *list, uint64_t i, uint64_t max_items)
{
    uint64_t u;
    int64_t s;
    double d;
    int flag;
    if (list->type == WEFT__GGUF_STRING) {
        weft__gguf_str str = weft__gguf_list_string(list, i);
        weft__json_write_string(t, str.data, str.len);
    } else if (list->type == WEFT__GGUF_ARRAY) {
        put_list(t, weft__gguf_list_list(list, i), max_items);
    } else if (list->type == WEFT__GGUF_BOOL) {
        weft__strbuf_puts(t, weft__gguf_list_bool(list, i, &flag) && flag ? "true" : "false");
    } else if (weft__gguf_list_i64(list, i, &s)) {
        weft__strbuf_printf(t, "%lld", (long long)s);
    } else if (weft__gguf_list_u64(list, i, &u)) {
        weft__strbuf_printf(t, "%llu", (unsigned long long)u);
    } else if (weft__gguf_list_f64(list, i, &d)) {
        weft__json_write_double(t, d);
    } else {
        weft__strbuf_puts(t, "null");
    }
}

static void put_list(weft__strbuf *t, const weft__gguf_list *list, uint64_t max_items)
{
    weft__strbuf_putc(t, '[');
    for (uint64_t i = 0; i < list->n && i < max_items; i++) {
        if (i) weft__strbuf_puts(t, ", ");
        put_element(t, list, i, max_items);
    }
    weft__strbuf_putc(t, ']');
}

static void put_value(weft__strbuf *t, const weft__gguf_entry *e, uint64_t max_items)
{
    if (e->type == WEFT__GGUF_ARRAY) {
        put_list(t, e->list, max_items);
    } else if (e->type == WEFT__GGUF_STRING) {
        weft__gguf_str s = weft__gguf_entry_string(e);
        weft__json_write_string(t, s.data, s.len);
    } else {
        /* A scalar is encoded as an array's element is. */
        weft__gguf_list one = {e->type, weft__gguf_type_bytes(e->type), 1, e->raw, NULL, NULL};
        put_element(t, &one, 0, 1);
    }
}

weft_status weft_file_meta_json(const weft_file *f, int64_t index, int64_t max_items, char *out, size_t capacity,
                                size_t *length, weft_error *err)
{
    weft_meta_info info;
    weft_status st = weft_file_meta(f, index, &info, err);
    if (st) return st;
    weft__strbuf t = {0};
    put_value(&t, weft__gguf_meta(meta_of(f), (size_t)index), max_items < 0 ? 0 : (uint64_t)max_items);
    if (t.failed) {
        weft__strbuf_free(&t);
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for the value of %s", info.key);
    }
    *length = t.len;
    if (capacity > 0) {
        size_t n = t.len < capacity - 1 ? t.len : capacity - 1;
        if (n) memcpy(out, t.data, n);
        out[n] = 0;
    }
    weft__strbuf_free(&t);
    return WEFT_OK;
}

int64_t weft_file_n_tensors(const weft_file *f)
{
    return (int64_t)weft__engine_file_tensors(f)->n;
}

weft_status weft_file_tensor(const weft_file *f, int64_t index, weft_tensor_info *out, weft_error *err)
{
    const weft__tensor_set *set = weft__engine_file_tensors(f);
    if (index < 0 || (uint64_t)index >= set->n)
        return weft_fail(err, WEFT_ARGUMENT, "tensor %lld of %lld", (long long)index, (long long)set->n);
    const weft__tensor_desc *t = &set->items[index];
    *out = (weft_tensor_info){t->name, t->dtype, (int32_t)t->n_dims, {0}, t->n_bytes};
    for (int i = 0; i < 4; i++) out->d[i] = (int64_t)t->d[i];
    return WEFT_OK;
}
