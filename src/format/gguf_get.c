// SPDX-License-Identifier: Apache-2.0
/* gguf_get.c: values out of an opened file, converted where that loses nothing. Read-only; any thread. */
#include <float.h>
#include <math.h>

#include "format/gguf_parts.h"

uint32_t weft__gguf_version(const weft__gguf *g)
{
    return g->version;
}

size_t weft__gguf_n_meta(const weft__gguf *g)
{
    return g->meta.n;
}

const weft__gguf_entry *weft__gguf_meta(const weft__gguf *g, size_t i)
{
    return i < g->meta.n ? &g->meta.entries[i] : NULL;
}

int64_t weft__gguf_find(const weft__gguf *g, const char *key)
{
    return weft__name_table_find(&g->meta.keys, key, strlen(key));
}

const weft__tensor_set *weft__gguf_tensors(const weft__gguf *g)
{
    return &g->tensors;
}

weft_status weft__gguf_tensor(const weft__gguf *g, const char *name, const weft__tensor_desc **out, weft_error *err)
{
    char shown[WEFT__NAME_SHOW];
    const weft__tensor_desc *t = weft__tensor_find(&g->tensors, name);
    if (!t)
        return weft_fail(err, WEFT_NOT_FOUND, "%s: tensor '%s' is missing", g->label,
                         weft__name_show(shown, name, strlen(name)));
    *out = t;
    return WEFT_OK;
}

/* Any number as encoded: kind 'u' (u holds it), 'i' (negative, i holds it) or 'f'; 0 for what is no number. */
typedef struct number {
    char kind;
    uint64_t u;
    int64_t i;
    double f;
} number;

static number from_signed(int64_t v)
{
    return v < 0 ? (number){.kind = 'i', .i = v} : (number){.kind = 'u', .u = (uint64_t)v};
}

static number read_number(uint32_t type, const unsigned char *p)
{
    union {
        uint16_t u16;
        int16_t i16;
        uint32_t u32;
        int32_t i32;
        uint64_t u64;
        int64_t i64;
        float f32;
        double f64;
    } v;
    uint32_t bytes = weft__gguf_type_bytes(type);
    if (bytes) memcpy(&v, p, bytes);
    switch (type) {
    case WEFT__GGUF_U8: return (number){.kind = 'u', .u = *p};
    case WEFT__GGUF_I8: return from_signed((int8_t)*p);
    case WEFT__GGUF_U16: return (number){.kind = 'u', .u = v.u16};
    case WEFT__GGUF_I16: return from_signed(v.i16);
    case WEFT__GGUF_U32: return (number){.kind = 'u', .u = v.u32};
    case WEFT__GGUF_I32: return from_signed(v.i32);
    case WEFT__GGUF_U64: return (number){.kind = 'u', .u = v.u64};
    case WEFT__GGUF_I64: return from_signed(v.i64);
    case WEFT__GGUF_F32: return (number){.kind = 'f', .f = v.f32};
    case WEFT__GGUF_F64: return (number){.kind = 'f', .f = v.f64};
    default: return (number){0};
    }
}

static int to_u64(number n, uint64_t most, uint64_t *out)
{
    if (n.kind != 'u' || n.u > most) return 0;
    *out = n.u;
    return 1;
}

static int to_i64(number n, int64_t least, int64_t most, int64_t *out)
{
    if (n.kind == 'u' && n.u <= (uint64_t)most) *out = (int64_t)n.u;
    else if (n.kind == 'i' && n.i >= least) *out = n.i;
    else return 0;
    return 1;
}

/* The entry of `key`, or NULL with the error of WEFT_NOT_FOUND. */
static const weft__gguf_entry *lookup(const weft__gguf_metadata *m, const char *key, weft_error *err)
{
    char shown[WEFT__NAME_SHOW];
    int64_t i = weft__name_table_find(&m->keys, key, strlen(key));
    if (i >= 0) return &m->entries[i];
    weft_fail(err, WEFT_NOT_FOUND, "%s: key '%s' is missing", m->label, weft__name_show(shown, key, strlen(key)));
    return NULL;
}

/* The failure of a conversion: wrong type, or a number of the right kind that does not fit. */
static weft_status unfit(const weft__gguf_metadata *m, const weft__gguf_entry *e, const char *wanted, char kind,
                         weft_error *err)
{
    char shown[WEFT__NAME_SHOW];
    number n = read_number(e->type, e->raw);
    const char *found = weft__gguf_type_name(e->type);
    weft__name_show(shown, e->key, e->key_len);
    if (kind == 'u' && n.kind == 'u')
        return weft_fail(err, WEFT_FORMAT, "%s: key '%s' (type %s) holds %llu, which does not fit into %s", m->label,
                         shown, found, (unsigned long long)n.u, wanted);
    if (kind == 'u' && n.kind == 'i')
        return weft_fail(err, WEFT_FORMAT, "%s: key '%s' (type %s) holds %lld, which does not fit into %s", m->label,
                         shown, found, (long long)n.i, wanted);
    if (kind == 'f' && n.kind == 'f')
        return weft_fail(err, WEFT_FORMAT, "%s: key '%s' (type %s) holds %g, which does not fit into %s", m->label,
                         shown, found, n.f, wanted);
    return weft_fail(err, WEFT_FORMAT, "%s: key '%s' has type %s, expected %s", m->label, shown, found, wanted);
}

static weft_status get_u64(const weft__gguf_metadata *m, const char *key, uint64_t most, const char *wanted,
                           uint64_t *out, weft_error *err)
{
    const weft__gguf_entry *e = lookup(m, key, err);
    if (!e) return WEFT_NOT_FOUND;
    return to_u64(read_number(e->type, e->raw), most, out) ? WEFT_OK : unfit(m, e, wanted, 'u', err);
}

static weft_status get_i64(const weft__gguf_metadata *m, const char *key, int64_t least, int64_t most,
                           const char *wanted, int64_t *out, weft_error *err)
{
    const weft__gguf_entry *e = lookup(m, key, err);
    if (!e) return WEFT_NOT_FOUND;
    return to_i64(read_number(e->type, e->raw), least, most, out) ? WEFT_OK : unfit(m, e, wanted, 'u', err);
}

weft_status weft__gguf_meta_u32(const weft__gguf_metadata *m, const char *key, uint32_t *out, weft_error *err)
{
    uint64_t v = 0;
    weft_status status = get_u64(m, key, UINT32_MAX, "u32", &v, err);
    if (status == WEFT_OK) *out = (uint32_t)v;
    return status;
}

weft_status weft__gguf_meta_u64(const weft__gguf_metadata *m, const char *key, uint64_t *out, weft_error *err)
{
    return get_u64(m, key, UINT64_MAX, "u64", out, err);
}

weft_status weft__gguf_u32(const weft__gguf *g, const char *key, uint32_t *out, weft_error *err)
{
    return weft__gguf_meta_u32(&g->meta, key, out, err);
}

weft_status weft__gguf_u64(const weft__gguf *g, const char *key, uint64_t *out, weft_error *err)
{
    return weft__gguf_meta_u64(&g->meta, key, out, err);
}

weft_status weft__gguf_i32(const weft__gguf *g, const char *key, int32_t *out, weft_error *err)
{
    int64_t v = 0;
    weft_status status = get_i64(&g->meta, key, INT32_MIN, INT32_MAX, "i32", &v, err);
    if (status == WEFT_OK) *out = (int32_t)v;
    return status;
}

weft_status weft__gguf_i64(const weft__gguf *g, const char *key, int64_t *out, weft_error *err)
{
    return get_i64(&g->meta, key, INT64_MIN, INT64_MAX, "i64", out, err);
}

weft_status weft__gguf_f64(const weft__gguf *g, const char *key, double *out, weft_error *err)
{
    const weft__gguf_entry *e = lookup(&g->meta, key, err);
    if (!e) return WEFT_NOT_FOUND;
    number n = read_number(e->type, e->raw);
    if (n.kind != 'f') return unfit(&g->meta, e, "f64", 'f', err);
    *out = n.f;
    return WEFT_OK;
}

weft_status weft__gguf_f32(const weft__gguf *g, const char *key, float *out, weft_error *err)
{
    const weft__gguf_entry *e = lookup(&g->meta, key, err);
    if (!e) return WEFT_NOT_FOUND;
    number n = read_number(e->type, e->raw);
    /* Infinity and NaN exist in both widths; a finite number must stay finite. */
    if (n.kind != 'f' || (isfinite(n.f) && fabs(n.f) > FLT_MAX)) return unfit(&g->meta, e, "f32", 'f', err);
    *out = (float)n.f;
    return WEFT_OK;
}

weft_status weft__gguf_bool(const weft__gguf *g, const char *key, int *out, weft_error *err)
{
    const weft__gguf_entry *e = lookup(&g->meta, key, err);
    if (!e) return WEFT_NOT_FOUND;
    if (e->type != WEFT__GGUF_BOOL) return unfit(&g->meta, e, "bool", 'b', err);
    *out = *e->raw;
    return WEFT_OK;
}

static weft__gguf_str string_at(const unsigned char *p)
{
    uint64_t len;
    memcpy(&len, p, sizeof len);
    return (weft__gguf_str){(const char *)p + sizeof len, (size_t)len};
}

weft__gguf_str weft__gguf_entry_string(const weft__gguf_entry *e)
{
    return e->type == WEFT__GGUF_STRING ? string_at(e->raw) : (weft__gguf_str){NULL, 0};
}

weft_status weft__gguf_string(const weft__gguf *g, const char *key, weft__gguf_str *out, weft_error *err)
{
    const weft__gguf_entry *e = lookup(&g->meta, key, err);
    if (!e) return WEFT_NOT_FOUND;
    if (e->type != WEFT__GGUF_STRING) return unfit(&g->meta, e, "string", 's', err);
    *out = string_at(e->raw);
    return WEFT_OK;
}

weft_status weft__gguf_array(const weft__gguf *g, const char *key, const weft__gguf_list **out, weft_error *err)
{
    const weft__gguf_entry *e = lookup(&g->meta, key, err);
    if (!e) return WEFT_NOT_FOUND;
    if (e->type != WEFT__GGUF_ARRAY) return unfit(&g->meta, e, "array", 'a', err);
    *out = e->list;
    return WEFT_OK;
}

/* Element i as a number; kind 0 when it is none. */
static number element(const weft__gguf_list *list, uint64_t i)
{
    if (i >= list->n || !list->elem_bytes) return (number){0};
    return read_number(list->type, list->data + i * list->elem_bytes);
}

int weft__gguf_list_u64(const weft__gguf_list *list, uint64_t i, uint64_t *out)
{
    return to_u64(element(list, i), UINT64_MAX, out);
}

int weft__gguf_list_i64(const weft__gguf_list *list, uint64_t i, int64_t *out)
{
    return to_i64(element(list, i), INT64_MIN, INT64_MAX, out);
}

int weft__gguf_list_f64(const weft__gguf_list *list, uint64_t i, double *out)
{
    number n = element(list, i);
    if (n.kind != 'f') return 0;
    *out = n.f;
    return 1;
}

int weft__gguf_list_bool(const weft__gguf_list *list, uint64_t i, int *out)
{
    if (i >= list->n || list->type != WEFT__GGUF_BOOL) return 0;
    *out = list->data[i];
    return 1;
}

weft__gguf_str weft__gguf_list_string(const weft__gguf_list *list, uint64_t i)
{
    return i < list->n && list->offsets ? string_at(list->data + list->offsets[i]) : (weft__gguf_str){NULL, 0};
}

const weft__gguf_list *weft__gguf_list_list(const weft__gguf_list *list, uint64_t i)
{
    return i < list->n && list->list ? &list->list[i] : NULL;
}
