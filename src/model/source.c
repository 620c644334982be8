// SPDX-License-Identifier: Apache-2.0
/* source.c: typed and checked reads over any source, and the source that is a GGUF file. */
#include "model/source.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *kind_name(weft__source_kind kind)
{
    static const char *const names[] = {
        "an integer", "a number", "a boolean", "a string", "an array", "an integer above 2^63 - 1", "another type"};
    return names[kind];
}

/* Stores the full key and looks it up. Returns 1 found, 0 absent and optional, -1 with *st set. */
static int look_up(const weft__source *src, const char *arch, const char *key, int required, char *full, size_t size,
                   weft__source_value *meta, weft_status *st, weft_error *err)
{
    int n = snprintf(full, size, "%s%s", key[0] == '.' ? arch : "", key);
    if (n < 0 || (size_t)n >= size) {
        *st = weft_fail(err, WEFT_FORMAT, "%s: key %s%s is too long", src->label, arch ? arch : "", key);
        return -1;
    }
    if (src->meta(src, full, meta)) return 1;
    if (!required) return 0;
    *st = weft_fail(err, WEFT_FORMAT, "%s: key %s is missing", src->label, full);
    return -1;
}

static weft_status wrong_kind(const weft__source *src, const char *key, const weft__source_value *meta,
                              const char *wanted, weft_error *err)
{
    return weft_fail(err, WEFT_FORMAT, "%s: key %s is %s, not %s", src->label, key, kind_name(meta->kind), wanted);
}

weft_status weft__source_i32(const weft__source *src, const char *arch, const char *key, int required, int32_t min,
                             int32_t max, int32_t *out, weft_error *err)
{
    char full[160];
    weft__source_value meta;
    weft_status st = WEFT_OK;
    if (look_up(src, arch, key, required, full, sizeof full, &meta, &st, err) != 1) return st;
    if (meta.kind == WEFT__SOURCE_HUGE)
        return weft_fail(err, WEFT_FORMAT, "%s: key %s is %s, not in %d..%d", src->label, full, kind_name(meta.kind),
                         min, max);
    if (meta.kind != WEFT__SOURCE_INT) return wrong_kind(src, full, &meta, "an integer", err);
    if (meta.i < min || meta.i > max)
        return weft_fail(err, WEFT_FORMAT, "%s: key %s is %lld, not in %d..%d", src->label, full, (long long)meta.i,
                         min, max);
    *out = (int32_t)meta.i;
    return WEFT_OK;
}

weft_status weft__source_f32(const weft__source *src, const char *arch, const char *key, int required, float *out,
                             weft_error *err)
{
    char full[160];
    weft__source_value meta;
    weft_status st = WEFT_OK;
    if (look_up(src, arch, key, required, full, sizeof full, &meta, &st, err) != 1) return st;
    if (meta.kind != WEFT__SOURCE_INT && meta.kind != WEFT__SOURCE_FLOAT && meta.kind != WEFT__SOURCE_HUGE)
        return wrong_kind(src, full, &meta, "a number", err);
    if (!isfinite((float)meta.f))
        return weft_fail(err, WEFT_FORMAT, "%s: key %s is %g; it must be finite", src->label, full, meta.f);
    *out = (float)meta.f;
    return WEFT_OK;
}

weft_status weft__source_string(const weft__source *src, const char *arch, const char *key, int required, char *out,
                                size_t capacity, weft_error *err)
{
    char full[160];
    weft__source_value meta;
    weft_status st = WEFT_OK;
    if (look_up(src, arch, key, required, full, sizeof full, &meta, &st, err) != 1) return st;
    if (meta.kind != WEFT__SOURCE_STRING) return wrong_kind(src, full, &meta, "a string", err);
    if (meta.count >= capacity || memchr(meta.s, 0, (size_t)meta.count))
        return weft_fail(err, WEFT_FORMAT, "%s: the value of key %s is too long or holds a NUL", src->label, full);
    memcpy(out, meta.s, (size_t)meta.count);
    out[meta.count] = 0;
    return WEFT_OK;
}

/* ---- GGUF ---- */

static int gguf_meta(const weft__source *src, const char *key, weft__source_value *out)
{
    const weft__gguf *g = src->impl;
    int64_t at = weft__gguf_find(g, key);
    if (at < 0) return 0;
    const weft__gguf_entry *e = weft__gguf_meta(g, (size_t)at);
    *out = (weft__source_value){.kind = WEFT__SOURCE_OTHER};
    int flag = 0;
    uint64_t huge;
    if (e->type == WEFT__GGUF_STRING) {
        weft__gguf_str s = weft__gguf_entry_string(e);
        *out = (weft__source_value){.kind = WEFT__SOURCE_STRING, .s = s.data, .count = s.len};
    } else if (e->type == WEFT__GGUF_ARRAY) {
        if (e->list->elem_bytes > 0) *out = (weft__source_value){.kind = WEFT__SOURCE_ARRAY, .count = e->list->n};
    } else if (e->type == WEFT__GGUF_BOOL) {
        if (weft__gguf_bool(g, key, &flag, NULL) == WEFT_OK)
            *out = (weft__source_value){.kind = WEFT__SOURCE_BOOL, .i = flag};
    } else if (e->type == WEFT__GGUF_F32 || e->type == WEFT__GGUF_F64) {
        out->kind = WEFT__SOURCE_FLOAT;
        if (weft__gguf_f64(g, key, &out->f, NULL) != WEFT_OK) out->kind = WEFT__SOURCE_OTHER;
    } else if (weft__gguf_i64(g, key, &out->i, NULL) == WEFT_OK) {
        out->kind = WEFT__SOURCE_INT;
        out->f = (double)out->i;
    } else if (weft__gguf_u64(g, key, &huge, NULL) == WEFT_OK) {
        *out = (weft__source_value){.kind = WEFT__SOURCE_HUGE, .f = (double)huge};
    }
    return 1;
}

static double gguf_meta_at(const weft__source *src, const char *key, uint64_t i)
{
    const weft__gguf_list *list;
    int64_t integer;
    double value;
    int flag;
    if (weft__gguf_array(src->impl, key, &list, NULL) != WEFT_OK) return NAN;
    if (weft__gguf_list_i64(list, i, &integer)) return (double)integer;
    if (weft__gguf_list_f64(list, i, &value)) return value;
    return weft__gguf_list_bool(list, i, &flag) ? flag : NAN;
}

static const weft__tensor_desc *gguf_tensor(const weft__source *src, const char *name)
{
    return weft__tensor_find(weft__gguf_tensors(src->impl), name);
}

void weft__source_gguf(const weft__gguf *gguf, const char *label, weft__source *out)
{
    *out = (weft__source){label, gguf_meta, gguf_meta_at, gguf_tensor, gguf, weft__gguf_tensors(gguf)};
}

weft_status weft__source_is_model(const weft__source *src, weft_error *err)
{
    static const struct {
        const char *type, *what;
    } others[] = {
        {"adapter", "an adapter (LoRA)" WEFT__SOURCE_ADAPTER},
        {"imatrix", "an importance matrix, which 'weft quantize --imatrix' takes"},
        {"vocabulary", "a vocabulary without a model, which 'weft train --tokenizer' takes"},
        {"checkpoint", "a checkpoint of a training, whose --resume goes on from it; the model is beside it"},
        {"mmproj", "the part of a model that reads pictures; Weft reads text only: give the model"},
    };
    char type[32] = "";
    if (weft__source_string(src, NULL, "general.type", 0, type, sizeof type, NULL))
        return WEFT_OK; /* of no kind that we know */
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcmp(type, others[i].type))
            return weft_fail(err, WEFT_UNSUPPORTED, "%s is %s", src->label, others[i].what);
    return WEFT_OK;
}
