// SPDX-License-Identifier: Apache-2.0
/* fresh.c: a model with random weights in memory (fresh.h): metadata as the bytes of a GGUF file, tensors in one
 * buffer. */
#include "train/fresh.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "format/gguf_write.h"
#include "mem/mem.h"
#include "weft/graph.h"

enum { PER_LAYER = 9, OUTSIDE = 3 };
static const double DEVIATION = 0.02;

struct weft__train_scratch {
    weft__train_scratch_shape shape;
    char label[96];
    weft__strbuf bytes; /* of the metadata */
    weft__gguf *meta;
    weft__tensor_set tensors;
    char (*names)[WEFT_NAME_MAX];
    weft_buffer *buffer;
};

/* ---- metadata ---- */

static weft_status put_i32(weft__gguf_writer *w, const char *key, int32_t value, weft_error *err)
{
    return weft__gguf_put_u32(w, key, (uint32_t)value, err);
}

static weft_status put_shape(const weft__train_scratch_shape *s, weft__gguf_writer *w, weft_error *err)
{
    const char *name = s->name ? s->name : "fresh";
    const float base = s->rope_base > 0 ? s->rope_base : 10000, eps = s->norm_eps > 0 ? s->norm_eps : 1e-5f;
    weft_status st;
    if ((st = weft__gguf_put_string(w, "general.architecture", "llama", 5, err)) ||
        (st = weft__gguf_put_string(w, "general.name", name, strlen(name), err)) ||
        (st = put_i32(w, "llama.vocab_size", s->n_vocab, err)) ||
        (st = put_i32(w, "llama.context_length", s->n_ctx, err)) ||
        (st = put_i32(w, "llama.embedding_length", s->d_model, err)) ||
        (st = put_i32(w, "llama.block_count", s->n_layers, err)) ||
        (st = put_i32(w, "llama.feed_forward_length", s->d_ff, err)) ||
        (st = put_i32(w, "llama.attention.head_count", s->n_heads, err)) ||
        (st = put_i32(w, "llama.attention.head_count_kv", s->n_kv_heads, err)) ||
        (st = put_i32(w, "llama.attention.key_length", s->head_dim, err)) ||
        (st = put_i32(w, "llama.attention.value_length", s->head_dim, err)) ||
        (st = put_i32(w, "llama.rope.dimension_count", s->head_dim, err)) ||
        (st = weft__gguf_put_f32(w, "llama.rope.freq_base", base, err)))
        return st;
    return weft__gguf_put_f32(w, "llama.attention.layer_norm_rms_epsilon", eps, err);
}

static weft_status make_meta(weft__train_scratch *f, const weft__gguf *extra, weft_error *err)
{
    weft__gguf_writer *w;
    weft_status st = weft__gguf_writer_memory(f->label, &w, err);
    if (!st) st = put_shape(&f->shape, w, err);
    if (!st && extra) st = weft__gguf_put_all(w, extra, err);
    if (!st) st = weft__gguf_writer_bytes(w, &f->bytes, err);
    weft__gguf_writer_destroy(&w);
    return st ? st : weft__gguf_parse(f->bytes.data, f->bytes.len, f->label, &f->meta, err);
}

/* ---- tensors ---- */

static weft_status fresh_add(weft__train_scratch *f, int64_t k, int64_t n, weft_error *err, const char *format,
                             int layer)
{
    uint32_t existing;
    size_t i = f->tensors.n;
    snprintf(f->names[i], WEFT_NAME_MAX, format, layer);
    weft__tensor_desc t = {
        .name = f->names[i], .dtype = WEFT_F32, .n_dims = n ? 2 : 1, .d = {(uint64_t)k, n ? (uint64_t)n : 1, 1, 1}};
    weft_status st = weft__tensor_measure(t.dtype, t.n_dims, t.d, &t.n_elems, &t.n_bytes, err);
    if (st) return weft_fail_within(err, st, "%s: %s", f->label, t.name);
    if (i) t.offset = f->tensors.items[i - 1].offset + ((f->tensors.items[i - 1].n_bytes + 63) & ~63ull);
    return weft__tensor_set_add(&f->tensors, &t, &existing) == 1
               ? WEFT_OK
               : weft_fail(err, WEFT_NO_MEMORY, "%s: no memory for it", f->label);
}

static weft_status add_layer(weft__train_scratch *f, int l, weft_error *err)
{
    const weft__train_scratch_shape *s = &f->shape;
    const int64_t d = s->d_model, ff = s->d_ff, q = (int64_t)s->n_heads * s->head_dim,
                  kv = (int64_t)s->n_kv_heads * s->head_dim;
    weft_status st;
    if ((st = fresh_add(f, d, 0, err, "blk.%d.attn_norm.weight", l)) ||
        (st = fresh_add(f, d, q, err, "blk.%d.attn_q.weight", l)) ||
        (st = fresh_add(f, d, kv, err, "blk.%d.attn_k.weight", l)) ||
        (st = fresh_add(f, d, kv, err, "blk.%d.attn_v.weight", l)) ||
        (st = fresh_add(f, q, d, err, "blk.%d.attn_output.weight", l)) ||
        (st = fresh_add(f, d, 0, err, "blk.%d.ffn_norm.weight", l)) ||
        (st = fresh_add(f, d, ff, err, "blk.%d.ffn_gate.weight", l)) ||
        (st = fresh_add(f, d, ff, err, "blk.%d.ffn_up.weight", l)))
        return st;
    return fresh_add(f, ff, d, err, "blk.%d.ffn_down.weight", l);
}

static int ends_branch(const char *name)
{
    return strstr(name, "attn_output") || strstr(name, "ffn_down");
}

static void draw(weft__train_scratch *f)
{
    weft__rng rng;
    weft__rng_seed(&rng, f->shape.seed);
    for (size_t i = 0; i < f->tensors.n; i++) {
        weft__tensor_desc *t = &f->tensors.items[i];
        t->buffer = f->buffer;
        float *x = (float *)(void *)((uint8_t *)f->buffer->data + t->offset);
        double deviation = ends_branch(t->name) ? DEVIATION / sqrt(2.0 * f->shape.n_layers) : DEVIATION;
        for (uint64_t j = 0; j < t->n_elems; j++)
            x[j] = t->n_dims == 1 ? 1 : (float)(deviation * weft__rng_normal(&rng));
    }
}

static weft_status make_tensors(weft__train_scratch *f, weft_error *err)
{
    const weft__train_scratch_shape *s = &f->shape;
    weft_status st;
    if (!(f->names = weft__alloc_zero(OUTSIDE + PER_LAYER * (size_t)s->n_layers, sizeof *f->names)))
        return weft_fail(err, WEFT_NO_MEMORY, "%s: no memory for it", f->label);
    if ((st = fresh_add(f, s->d_model, s->n_vocab, err, "token_embd.weight", 0))) return st;
    for (int l = 0; l < s->n_layers; l++)
        if ((st = add_layer(f, l, err))) return st;
    if ((st = fresh_add(f, s->d_model, 0, err, "output_norm.weight", 0))) return st;
    if (!s->tied && (st = fresh_add(f, s->d_model, s->n_vocab, err, "output.weight", 0))) return st;
    const weft__tensor_desc *last = &f->tensors.items[f->tensors.n - 1];
    weft_buffer_spec spec = {sizeof spec, WEFT_DOMAIN_HOST, last->offset + last->n_bytes, 64, WEFT_BUFFER_HUGE};
    if ((st = weft__mem_create(&spec, &f->buffer, err))) return st;
    draw(f);
    return WEFT_OK;
}

/* ---- as a whole ---- */

static weft_status check_shape(const weft__train_scratch_shape *s, weft_error *err)
{
    const struct {
        const char *name;
        int32_t value, most;
    } all[] = {
        {"n_vocab", s->n_vocab, 1 << 20},    {"n_ctx", s->n_ctx, 1 << 20},    {"n_layers", s->n_layers, 512},
        {"d_model", s->d_model, 1 << 14},    {"d_ff", s->d_ff, 1 << 16},      {"n_heads", s->n_heads, 1024},
        {"n_kv_heads", s->n_kv_heads, 1024}, {"head_dim", s->head_dim, 1024},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].value < 1 || all[i].value > all[i].most)
            return weft_fail(err, WEFT_ARGUMENT, "%s is %d; it must be between 1 and %d", all[i].name, all[i].value,
                             all[i].most);
    if (s->n_heads % s->n_kv_heads)
        return weft_fail(err, WEFT_ARGUMENT, "%d heads cannot share %d key/value heads evenly", s->n_heads,
                         s->n_kv_heads);
    if (s->head_dim % 2) return weft_fail(err, WEFT_ARGUMENT, "head_dim is %d; rope needs an even number", s->head_dim);
    return WEFT_OK;
}

weft_status weft__train_scratch_create(const weft__train_scratch_shape *shape, const weft__gguf *extra,
                                       weft__train_scratch **out, weft_error *err)
{
    *out = NULL;
    weft_status st = check_shape(shape, err);
    if (st) return st;
    weft__train_scratch *f = weft__alloc_zero(1, sizeof *f);
    if (!f) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a fresh model");
    f->shape = *shape;
    snprintf(f->label, sizeof f->label, "%s", shape->name ? shape->name : "fresh");
    if (!(st = make_meta(f, extra, err))) st = make_tensors(f, err);
    f->shape.name = NULL; /* the caller's */
    if (st) weft__train_scratch_destroy(&f);
    *out = f;
    return st;
}

void weft__train_scratch_destroy(weft__train_scratch **pf)
{
    weft__train_scratch *f = pf ? *pf : NULL;
    if (!f) return;
    weft_buffer_release(&f->buffer);
    weft__tensor_set_free(&f->tensors);
    weft__free(f->names);
    weft__gguf_close(&f->meta);
    weft__strbuf_free(&f->bytes);
    weft__free(f);
    *pf = NULL;
}

static const weft__tensor_desc *tensor(const weft__source *src, const char *name)
{
    return weft__tensor_find(src->tensors, name);
}

void weft__train_scratch_source(const weft__train_scratch *f, weft__source *out)
{
    weft__source_gguf(f->meta, f->label, out);
    out->tensor = tensor;
    out->tensors = &f->tensors;
}

const weft__gguf *weft__train_scratch_meta(const weft__train_scratch *f)
{
    return f->meta;
}
