// SPDX-License-Identifier: Apache-2.0
/* synthetic.c: the shapes, their metadata as a GGUF file would state it, and tensors of random blocks. */
#include "model/synthetic.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "mem/mem.h"
#include "mem/owners.h"
#include "model/quant_mix.h"
#include "quant/quant.h"

struct synthetic_shape {
    const char *name, *arch;
    int32_t n_layers, d_model, d_ff, n_heads, n_kv_heads, head_dim, n_vocab, n_ctx;
    float rope_base, norm_eps;
    int tied, qkv_bias, qk_norm;
};

/* Sizes from the published config.json of each model; "tiny" is for tests, and "tiny-128" where even that takes long.
 * X(name, the rest of struct shape ...) */
#define SHAPE_LIST(X)                                                                                                  \
    X("tinyllama-1.1b", "llama", 22, 2048, 5632, 32, 4, 64, 32000, 2048, 10000, 1e-5f, 0, 0, 0)                        \
    X("qwen2.5-0.5b", "qwen2", 24, 896, 4864, 14, 2, 64, 151936, 32768, 1e6f, 1e-6f, 1, 1, 0)                          \
    X("llama-3.2-1b", "llama", 16, 2048, 8192, 32, 8, 64, 128256, 131072, 5e5f, 1e-5f, 1, 0, 0)                        \
    X("llama-3.1-8b", "llama", 32, 4096, 14336, 32, 8, 128, 128256, 131072, 5e5f, 1e-5f, 0, 0, 0)                      \
    X("qwen3-4b", "qwen3", 36, 2560, 9728, 32, 8, 128, 151936, 40960, 1e6f, 1e-6f, 1, 0, 1)                            \
    X("tiny", "llama", 2, 256, 512, 4, 2, 64, 512, 2048, 10000, 1e-5f, 0, 0, 0)                                        \
    X("tiny-128", "llama", 2, 128, 128, 2, 2, 64, 512, 2048, 10000, 1e-5f, 0, 0, 0)

static const struct synthetic_shape SHAPES[] = {
#define SHAPE_ROW(...) {__VA_ARGS__},
    SHAPE_LIST(SHAPE_ROW)
#undef SHAPE_ROW
};

struct weft__synthetic {
    const struct synthetic_shape *shape;
    char label[64];
    weft__tensor_set tensors;
    weft_buffer **buffers; /* one per tensor */
    char (*names)[WEFT_NAME_MAX];
    size_t n, capacity;
    uint64_t n_bytes;
    weft__rng rng;
    int outline; /* matrices have addresses, and no bytes */
};

static void synthetic_fill(weft__synthetic *s, uint32_t dtype, uint64_t k, uint64_t rows, weft_buffer *b)
{
    size_t row_bytes = (size_t)(b->n_bytes / rows);
    for (uint64_t r = 0; r < rows; r++) {
        uint8_t *row = (uint8_t *)b->data + r * row_bytes;
        if (rows > 1) weft__quant_random_row(dtype, &s->rng, row, (int64_t)k);
        else
            for (uint64_t i = 0; i < k; i++) ((float *)row)[i] = 1; /* norm weights */
    }
}

static weft_status synthetic_add(weft__synthetic *s, uint32_t dtype, int64_t k, int64_t n, weft_error *err,
                                 const char *format, int layer)
{
    weft_status st;
    if (s->n == s->capacity) return weft_fail(err, WEFT_INTERNAL, "%s: more tensors than planned", s->label);
    char *name = s->names[s->n];
    snprintf(name, WEFT_NAME_MAX, format, layer);
    weft__tensor_desc t = {.name = name,
                           .dtype = n ? weft__mix_fitting(dtype, k) : WEFT_F32,
                           .n_dims = n ? 2 : 1,
                           .d = {(uint64_t)k, n ? (uint64_t)n : 1, 1, 1}};
    if ((st = weft__tensor_measure(t.dtype, t.n_dims, t.d, &t.n_elems, &t.n_bytes, err)))
        return weft_fail_within(err, st, "%s, %s", s->label, name);
    weft_buffer_spec spec = {sizeof spec, WEFT_DOMAIN_HOST, t.n_bytes, 64, WEFT_BUFFER_HUGE};
    const int bare = s->outline && n;
    st = bare ? weft__mem_reserve(t.n_bytes, &s->buffers[s->n], err) : weft__mem_create(&spec, &s->buffers[s->n], err);
    if (st) return st;
    t.buffer = s->buffers[s->n++];
    weft__mem_set_owner(t.buffer, WEFT__MEM_WEIGHTS);
    s->n_bytes += t.n_bytes;
    if (!bare) synthetic_fill(s, t.dtype, t.d[0], t.d[1], t.buffer);
    uint32_t existing;
    if (weft__tensor_set_add(&s->tensors, &t, &existing) != 1)
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for %s", name);
    return WEFT_OK;
}

static weft_status add_layer(weft__synthetic *s, uint32_t dtype, int l, weft_error *err)
{
    const struct synthetic_shape *h = s->shape;
    int64_t d = h->d_model, f = h->d_ff, q = (int64_t)h->n_heads * h->head_dim,
            kv = (int64_t)h->n_kv_heads * h->head_dim;
    weft_status st;
    if ((st = synthetic_add(s, dtype, d, 0, err, "blk.%d.attn_norm.weight", l)) ||
        (st = synthetic_add(s, dtype, d, q, err, "blk.%d.attn_q.weight", l)) ||
        (st = synthetic_add(s, dtype, d, kv, err, "blk.%d.attn_k.weight", l)) ||
        (st = synthetic_add(s, dtype, d, kv, err, "blk.%d.attn_v.weight", l)) ||
        (st = synthetic_add(s, dtype, q, d, err, "blk.%d.attn_output.weight", l)) ||
        (st = synthetic_add(s, dtype, d, 0, err, "blk.%d.ffn_norm.weight", l)) ||
        (st = synthetic_add(s, dtype, d, f, err, "blk.%d.ffn_gate.weight", l)) ||
        (st = synthetic_add(s, dtype, d, f, err, "blk.%d.ffn_up.weight", l)) ||
        (st = synthetic_add(s, dtype, f, d, err, "blk.%d.ffn_down.weight", l)))
        return st;
    if (h->qkv_bias && ((st = synthetic_add(s, dtype, q, 0, err, "blk.%d.attn_q.bias", l)) ||
                        (st = synthetic_add(s, dtype, kv, 0, err, "blk.%d.attn_k.bias", l)) ||
                        (st = synthetic_add(s, dtype, kv, 0, err, "blk.%d.attn_v.bias", l))))
        return st;
    if (h->qk_norm && ((st = synthetic_add(s, dtype, h->head_dim, 0, err, "blk.%d.attn_q_norm.weight", l)) ||
                       (st = synthetic_add(s, dtype, h->head_dim, 0, err, "blk.%d.attn_k_norm.weight", l))))
        return st;
    return WEFT_OK;
}

static const struct synthetic_shape *find_shape(const char *name)
{
    for (size_t i = 0; i < sizeof SHAPES / sizeof *SHAPES; i++)
        if (!strcmp(SHAPES[i].name, name)) return &SHAPES[i];
    return NULL;
}

static weft_status create(const char *shape, uint32_t dtype, int outline, weft_progress_fn progress, void *arg,
                          weft__synthetic **out, weft_error *err)
{
    weft_status st;
    *out = NULL;
    const struct synthetic_shape *h = find_shape(shape);
    if (!h)
        return weft_fail(err, WEFT_NOT_FOUND, "no synthetic shape '%s'; known: %s", shape, weft__synthetic_shapes());
    weft__synthetic *s = weft__alloc_zero(1, sizeof *s);
    if (!s) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a synthetic model");
    s->shape = h;
    s->outline = outline;
    snprintf(s->label, sizeof s->label, "%s", h->name);
    weft__rng_seed(&s->rng, 42);
    s->capacity = 3 + 14 * (size_t)h->n_layers;
    s->buffers = weft__alloc_zero(s->capacity, sizeof *s->buffers);
    s->names = weft__alloc_zero(s->capacity, sizeof *s->names);
    st = s->buffers && s->names ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no memory for a synthetic model");
    if (!st) st = synthetic_add(s, dtype, h->d_model, h->n_vocab, err, "token_embd.weight", 0);
    for (int l = 0; !st && l < h->n_layers; l++) {
        st = add_layer(s, dtype, l, err);
        if (!st && progress && progress(arg, "random weights", (l + 1.0) / h->n_layers))
            st = weft_fail(err, WEFT_CANCELLED, "cancelled");
    }
    if (!st) st = synthetic_add(s, dtype, h->d_model, 0, err, "output_norm.weight", 0);
    if (!st && !h->tied) st = synthetic_add(s, dtype, h->d_model, h->n_vocab, err, "output.weight", 0);
    if (st) weft__synthetic_destroy(&s);
    *out = s;
    return st;
}

weft_status weft__synthetic_create(const char *shape, uint32_t dtype, weft_progress_fn progress, void *arg,
                                   weft__synthetic **out, weft_error *err)
{
    return create(shape, dtype, 0, progress, arg, out, err);
}

weft_status weft__synthetic_outline(const char *shape, uint32_t dtype, weft__synthetic **out, weft_error *err)
{
    return create(shape, dtype, 1, NULL, NULL, out, err);
}

void weft__synthetic_destroy(weft__synthetic **p)
{
    weft__synthetic *s = p ? *p : NULL;
    if (!s) return;
    weft__tensor_set_free(&s->tensors);
    for (size_t i = 0; s->buffers && i < s->n; i++) weft_buffer_release(&s->buffers[i]);
    weft__free(s->buffers);
    weft__free(s->names);
    weft__free(s);
    *p = NULL;
}

uint64_t weft__synthetic_bytes(const weft__synthetic *s)
{
    return s->n_bytes;
}

const char *weft__synthetic_shapes(void)
{
#define SHAPE_NAME(name, ...) ", " name
    static const char names[] = SHAPE_LIST(SHAPE_NAME);
#undef SHAPE_NAME
    return names + 2; /* without the first comma */
}

const char *weft__synthetic_arch(const weft__synthetic *s)
{
    return s->shape->arch;
}

int32_t weft__synthetic_n_vocab(const weft__synthetic *s)
{
    return s->shape->n_vocab;
}

const weft__tensor_set *weft__synthetic_tensors(const weft__synthetic *s)
{
    return &s->tensors;
}

/* ---- as a source ---- */

enum { N_NUMBERS = 11 };

/* Hyperparameter i: its key within the architecture. */
static const char *number(const struct synthetic_shape *h, size_t i, weft__source_value *out)
{
    const struct {
        const char *key;
        double value;
        int integer;
    } all[N_NUMBERS] = {
        {".block_count", h->n_layers, 1},
        {".context_length", h->n_ctx, 1},
        {".embedding_length", h->d_model, 1},
        {".feed_forward_length", h->d_ff, 1},
        {".attention.head_count", h->n_heads, 1},
        {".attention.head_count_kv", h->n_kv_heads, 1},
        {".attention.key_length", h->head_dim, 1},
        {".attention.value_length", h->head_dim, 1},
        {".rope.dimension_count", h->head_dim, 1},
        {".rope.freq_base", (double)h->rope_base, 0},
        {".attention.layer_norm_rms_epsilon", (double)h->norm_eps, 0},
    };
    *out = (weft__source_value){
        .kind = all[i].integer ? WEFT__SOURCE_INT : WEFT__SOURCE_FLOAT, .i = (int64_t)all[i].value, .f = all[i].value};
    return all[i].key;
}

int weft__synthetic_number(const weft__synthetic *s, size_t i, char key[64], weft__source_value *out)
{
    if (i >= N_NUMBERS) return 0;
    snprintf(key, 64, "%s%s", s->shape->arch, number(s->shape, i, out));
    return 1;
}

static int meta(const weft__source *src, const char *key, weft__source_value *out)
{
    const weft__synthetic *s = src->impl;
    const struct synthetic_shape *h = s->shape;
    char known[64];
    const char *text = !strcmp(key, "general.architecture") ? h->arch : !strcmp(key, "general.name") ? h->name : NULL;
    if (text) {
        *out = (weft__source_value){.kind = WEFT__SOURCE_STRING, .s = text, .count = strlen(text)};
        return 1;
    }
    for (size_t i = 0; weft__synthetic_number(s, i, known, out); i++)
        if (!strcmp(key, known)) return 1;
    return 0;
}

static double meta_at(const weft__source *src, const char *key, uint64_t i)
{
    (void)src;
    (void)key;
    (void)i;
    return NAN; /* no arrays here */
}

static const weft__tensor_desc *tensor(const weft__source *src, const char *name)
{
    return weft__tensor_find(&((const weft__synthetic *)src->impl)->tensors, name);
}

void weft__synthetic_source(const weft__synthetic *s, weft__source *out)
{
    *out = (weft__source){s->label, meta, meta_at, tensor, s};
}
