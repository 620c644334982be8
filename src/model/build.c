// SPDX-License-Identifier: Apache-2.0
/* build.c: weights by name, KV groups, and the build of a whole model. */
#include "model/build.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "model/rope_keys.h"

enum { PAGE_TOKENS = 64 };

void weft__build_fail(weft__build *m, weft_status status, const char *format, ...)
{
    char text[WEFT_ERROR_TEXT];
    va_list args;
    if (m->status) return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    m->status = weft_fail(m->err, status, "%s: %s", m->src->label, text);
}

static void shape_text(char *out, size_t size, const uint64_t *d, uint32_t n_dims)
{
    size_t at = 0;
    for (uint32_t i = 0; i < n_dims && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%llu", i ? " x " : "", (unsigned long long)d[i]);
}

/* Finds `name` and checks that it is [k, n, e]; n 0 a vector, e 0 a matrix. NULL when absent or after a failure. */
static const weft__tensor_desc *build_find(weft__build *m, enum weft__build_need need, const char *name, int64_t k,
                                           int64_t n, int64_t e)
{
    if (m->status) return NULL;
    const weft__tensor_desc *t = m->src->tensor(m->src, name);
    if (t && m->used) m->used[t - m->src->tensors->items] = 1;
    if (!t) {
        if (need == WEFT__BUILD_REQUIRED) weft__build_fail(m, WEFT_FORMAT, "tensor %s is missing", name);
        return NULL;
    }
    uint64_t want[3] = {(uint64_t)k, n > 0 ? (uint64_t)n : 1, e > 0 ? (uint64_t)e : 1};
    if (t->d[0] != want[0] || t->d[1] != want[1] || t->d[2] != want[2] || t->d[3] != 1) {
        char is[96], should[96];
        shape_text(is, sizeof is, t->d, t->n_dims);
        shape_text(should, sizeof should, want, e > 0 ? 3 : n > 0 ? 2 : 1);
        weft__build_fail(m, WEFT_FORMAT, "tensor %s is %s; the hyperparameters say %s", name, is, should);
        return NULL;
    }
    if (n == 0 && t->dtype != WEFT_F32) {
        weft__build_fail(m, WEFT_UNSUPPORTED, "vector %s is %s; only F32 is supported", name,
                         weft_dtype_describe(t->dtype).name);
        return NULL;
    }
    return t;
}

static weft_weight_id build_add(weft__build *m, const weft__tensor_desc *t, const char *name, int64_t k, int64_t first,
                                int64_t n, int64_t e)
{
    if (!t) return WEFT_NONE;
    if (strlen(name) >= WEFT_NAME_MAX) {
        weft__build_fail(m, WEFT_FORMAT, "tensor name %s is longer than %d", name, WEFT_NAME_MAX - 1);
        return WEFT_NONE;
    }
    weft_dtype_info info = weft_dtype_describe(t->dtype);
    weft_weight w = {.dtype = t->dtype, .buffer = t->buffer};
    snprintf(w.name, sizeof w.name, "%s", name);
    w.row_bytes = (uint64_t)k / info.block_elems * info.block_bytes;
    w.offset = t->offset + (uint64_t)first * w.row_bytes;
    w.shape.n_dims = e > 0 ? 3 : n > 0 ? 2 : 1;
    w.shape.d[0] = k;
    w.shape.d[1] = n > 0 ? n : 1;
    w.shape.d[2] = e > 0 ? e : 1;
    w.shape.d[3] = 1;
    m->n_params += (double)k * (double)w.shape.d[1] * (double)w.shape.d[2];
    return weft__builder_weight(m->b, &w);
}

#define FORMAT_NAME(name)                                                                                              \
    char name[256];                                                                                                    \
    do {                                                                                                               \
        va_list args_;                                                                                                 \
        va_start(args_, name_format);                                                                                  \
        vsnprintf(name, sizeof name, name_format, args_);                                                              \
        va_end(args_);                                                                                                 \
    } while (0)

weft_weight_id weft__build_weight(weft__build *m, enum weft__build_need need, int64_t k, int64_t n,
                                  const char *name_format, ...)
{
    FORMAT_NAME(name);
    return build_add(m, build_find(m, need, name, k, n, 0), name, k, 0, n, 0);
}

weft_weight_id weft__build_experts(weft__build *m, int64_t k, int64_t n, int64_t n_experts, const char *name_format,
                                   ...)
{
    FORMAT_NAME(name);
    return build_add(m, build_find(m, WEFT__BUILD_REQUIRED, name, k, n, n_experts), name, k, 0, n, n_experts);
}

weft_weight_id weft__build_rows(weft__build *m, int64_t k, int64_t n_total, int64_t first, int64_t n,
                                const char *name_format, ...)
{
    FORMAT_NAME(name);
    return build_add(m, build_find(m, WEFT__BUILD_REQUIRED, name, k, n_total, 0), name, k, first, n, 0);
}

/* One group for the layers with full attention, one for those with a window. */
static void declare_groups(weft__build *m)
{
    const weft__hparams *hp = m->hp;
    int32_t n[2] = {0, 0}, window = 0;
    for (int32_t l = 0; l < hp->n_layers; l++) {
        int windowed = hp->window_of[l] > 0;
        if (windowed && window && hp->window_of[l] != window) {
            weft__build_fail(m, WEFT_UNSUPPORTED, "layers with windows of %d and %d", window, hp->window_of[l]);
            return;
        }
        if (windowed) window = hp->window_of[l];
        m->kv_of[l].layer = n[windowed]++;
    }
    for (int windowed = 0; windowed < 2; windowed++) {
        weft_kv_group g = {.kind = windowed ? WEFT_KV_WINDOW : WEFT_KV_FULL,
                           .window = windowed ? window : 0,
                           .n_layers = n[windowed],
                           .n_kv_heads = hp->n_kv_heads,
                           .head_dim_k = hp->head_dim_k,
                           .head_dim_v = hp->head_dim_v,
                           .page_tokens = PAGE_TOKENS};
        int32_t id = n[windowed] > 0 ? weft__builder_kv_group(m->b, &g) : WEFT_NONE;
        *(windowed ? &m->group_window : &m->group_full) = id;
    }
    for (int32_t l = 0; l < hp->n_layers; l++)
        m->kv_of[l].group = hp->window_of[l] > 0 ? m->group_window : m->group_full;
}

static weft_status unknown_arch(const char *label, const char *arch, weft_error *err)
{
    char list[256] = "";
    size_t at = 0;
    for (const char *const *n = weft__arch_names(); *n && at < sizeof list; n++)
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", at ? ", " : "", *n);
    return weft_fail(err, WEFT_UNSUPPORTED, "%s: architecture '%s' is not supported; supported are: %s", label, arch,
                     list);
}

/* The name behind "blk.LAYER.", or the whole name and layer -1. */
static const char *within_layer(const char *name, long *layer)
{
    char *end;
    *layer = -1;
    if (strncmp(name, "blk.", 4)) return name;
    long n = strtol(name + 4, &end, 10);
    if (n < 0 || end == name + 4 || *end != '.') return name;
    *layer = n;
    return end + 1;
}

/* Frequencies of rope: tables that this engine computes itself, or of which a context of that length uses one. */
static int may_be_left(const char *name)
{
    static const char *const names[] = {"rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight",
                                        "attn_rot_embd.weight"};
    long layer;
    name = within_layer(name, &layer);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i])) return 1;
    return 0;
}

static void check_all_used(weft__build *m)
{
    for (size_t i = 0; m->used && i < m->src->tensors->n && !m->status; i++) {
        const char *name = m->src->tensors->items[i].name;
        long layer;
        if (m->used[i] || may_be_left(name)) continue;
        within_layer(name, &layer);
        if (layer >= m->hp->n_layers)
            weft__build_fail(m, WEFT_FORMAT, "tensor %s lies beyond the %d layers that key %s.block_count gives", name,
                             m->hp->n_layers, m->hp->arch);
        else weft__build_fail(m, WEFT_UNSUPPORTED, "tensor %s has no place in architecture '%s'", name, m->hp->arch);
    }
}

/* The graph of `arch` with m->src and m->hp; all fields of *m are set. */
static weft_status build_graph(weft__build *m, const weft__arch *arch, weft_graph **graph)
{
    weft_status st = weft__builder_create(&m->b, m->err);
    if (st) return st;
    declare_groups(m);
    if (!m->status) arch->build(m);
    if (!m->status) check_all_used(m);
    if (m->status) {
        weft__builder_destroy(&m->b);
        return m->status;
    }
    if ((st = weft__builder_finish(&m->b, graph, m->err))) return weft_fail_within(m->err, st, "%s", m->src->label);
    return WEFT_OK;
}

/* The hyperparameters with rope's keys as they were asked for. */
static weft_status read_hparams(const weft__source *src, const weft__arch *arch, int32_t n_ctx,
                                const weft_rope_params *rope, weft__hparams *hp, weft_error *err)
{
    weft__source_rope keys;
    weft__source told;
    weft_status st = weft__hparams_read(src, arch->name, n_ctx, hp, err);
    if (!st && arch->hparams) st = arch->hparams(src, hp, err);
    if (st || !rope || (st = weft__source_rope_make(src, arch->name, rope, &keys, &told, err)) || !keys.n) return st;
    weft__hparams *file = weft__alloc(sizeof *file);
    if (!file) return weft_fail(err, WEFT_NO_MEMORY, "%s: no memory to build it", src->label);
    *file = *hp;
    st = weft__hparams_read(&told, arch->name, n_ctx, hp, err);
    if (!st && arch->hparams) st = arch->hparams(&told, hp, err);
    if (!st) hp->n_ctx_max = weft__hparams_reach(file, hp, rope);
    weft__free(file);
    return st;
}

weft_status weft__model_build(const weft__source *src, int32_t n_ctx, const weft_rope_params *rope, weft__hparams *hp,
                              weft__build *m, weft_graph **graph, weft_error *err)
{
    char name[64];
    weft_status st;
    *graph = NULL;
    if ((st = weft__source_is_model(src, err)) ||
        (st = weft__source_string(src, NULL, "general.architecture", 1, name, sizeof name, err)))
        return st;
    const weft__arch *arch = weft__arch_find(name);
    if (!arch) return unknown_arch(src->label, name, err);
    if ((st = read_hparams(src, arch, n_ctx, rope, hp, err))) return st;
    memset(m, 0, sizeof *m);
    m->src = src;
    m->hp = hp;
    m->err = err;
    if (src->tensors && !(m->used = weft__alloc_zero(src->tensors->n, 1)))
        return weft_fail(err, WEFT_NO_MEMORY, "%s: no memory to build it", src->label);
    st = build_graph(m, arch, graph);
    weft__free(m->used);
    m->used = NULL;
    return st;
}
