// SPDX-License-Identifier: Apache-2.0
/* train_model.h: small models of every dense architecture in memory, with random weights, for the tests of training. */
#ifndef WEFT_TESTS_TRAIN_MODEL_H
#define WEFT_TESTS_TRAIN_MODEL_H

#include <math.h>
#include <stdio.h>

#include "base/random.h"
#include "fixture.h"
#include "format/gguf_write.h"
#include "mem/mem.h"
#include "quant/encode.h"
#include "quant/quant.h"
#include "train/train.h"
#include "weft/graph.h"

enum { TINY_LAYERS = 2, TINY_VOCAB = 48, TINY_CTX = 128, TINY_TENSORS = 64, TINY_WINDOW = 5 };

/* What sets the architectures apart. Widths: of the model, of a head, of the feed-forward part. */
typedef struct tiny_kind {
    const char *arch;
    int bias, qk_norm, post_norms, fused, tied, window, softcap;
} tiny_kind;

static const tiny_kind TINY_KINDS[] = {
    {"llama", 0, 0, 0, 0, 0, 0, 0},
    {"llama", 0, 0, 0, 0, 1, TINY_WINDOW, 0},
    {"qwen2", 1, 0, 0, 0, 1, 0, 0},
    {"qwen3", 0, 1, 0, 0, 0, 0, 0},
    {"phi3", 0, 0, 0, 1, 0, TINY_WINDOW, 0},
    {"gemma2", 0, 0, 1, 0, 1, TINY_WINDOW, 1},
    {"gemma3", 0, 1, 1, 0, 1, TINY_WINDOW, 0},
};
enum { N_TINY_KINDS = sizeof TINY_KINDS / sizeof TINY_KINDS[0] };

typedef struct tiny {
    const tiny_kind *kind;
    int32_t width, n_heads, n_kv_heads, head, ff;
    uint32_t dtype; /* of matrices */
    weft__strbuf bytes;
    weft__gguf *meta;
    weft__tensor_set set;
    char names[TINY_TENSORS][WEFT_NAME_MAX];
    weft_buffer *buffers[TINY_TENSORS];
    weft__rng rng;
    weft__source src;
} tiny;

static const weft__tensor_desc *tiny_tensor(const weft__source *src, const char *name)
{
    return weft__tensor_find(src->tensors, name);
}

/* A vector of k around 1 (n 0), or a matrix [k, n] that keeps the size of what it multiplies. */
static void tiny_add(tiny *m, int64_t k, int64_t n, const char *format, int layer)
{
    size_t i = m->set.n;
    uint32_t existing;
    assert_true(i < TINY_TENSORS);
    snprintf(m->names[i], WEFT_NAME_MAX, format, layer);
    weft__tensor_desc t = {.name = m->names[i],
                           .dtype = n ? m->dtype : WEFT_F32,
                           .n_dims = n ? 2 : 1,
                           .d = {(uint64_t)k, n ? (uint64_t)n : 1, 1, 1}};
    assert_int_equal(weft__tensor_measure(t.dtype, t.n_dims, t.d, &t.n_elems, &t.n_bytes, NULL), WEFT_OK);
    weft_buffer_spec spec = {sizeof spec, WEFT_DOMAIN_HOST, t.n_bytes, 64, 0};
    assert_int_equal(weft__mem_create(&spec, &m->buffers[i], NULL), WEFT_OK);
    t.buffer = m->buffers[i];
    float *x = weft__alloc_array(t.n_elems, sizeof *x);
    assert_non_null(x);
    for (uint64_t j = 0; j < t.n_elems; j++)
        x[j] = (float)(n ? weft__rng_normal(&m->rng) * 1.2 / sqrt((double)k) : 1 + 0.3 * weft__rng_normal(&m->rng));
    assert_int_equal(weft__quant_encode_rows(t.dtype, x, t.buffer->data, n ? n : 1, k, NULL, NULL), WEFT_OK);
    weft__free(x);
    assert_int_equal(weft__tensor_set_add(&m->set, &t, &existing), 1);
}

static void tiny_attention(tiny *m, int l)
{
    int64_t d = m->width, q = m->n_heads * m->head, kv = m->n_kv_heads * m->head;
    tiny_add(m, d, 0, "blk.%d.attn_norm.weight", l);
    if (m->kind->fused) tiny_add(m, d, q + 2 * kv, "blk.%d.attn_qkv.weight", l);
    else {
        tiny_add(m, d, q, "blk.%d.attn_q.weight", l);
        tiny_add(m, d, kv, "blk.%d.attn_k.weight", l);
        tiny_add(m, d, kv, "blk.%d.attn_v.weight", l);
    }
    tiny_add(m, q, d, "blk.%d.attn_output.weight", l);
    if (m->kind->bias) {
        tiny_add(m, q, 0, "blk.%d.attn_q.bias", l);
        tiny_add(m, kv, 0, "blk.%d.attn_k.bias", l);
        tiny_add(m, kv, 0, "blk.%d.attn_v.bias", l);
    }
    if (m->kind->qk_norm) {
        tiny_add(m, m->head, 0, "blk.%d.attn_q_norm.weight", l);
        tiny_add(m, m->head, 0, "blk.%d.attn_k_norm.weight", l);
    }
    if (m->kind->post_norms) tiny_add(m, d, 0, "blk.%d.post_attention_norm.weight", l);
}

static void tiny_ffn(tiny *m, int l)
{
    int64_t d = m->width, f = m->ff;
    tiny_add(m, d, 0, "blk.%d.ffn_norm.weight", l);
    if (m->kind->fused) tiny_add(m, d, 2 * f, "blk.%d.ffn_up.weight", l);
    else {
        tiny_add(m, d, f, "blk.%d.ffn_gate.weight", l);
        tiny_add(m, d, f, "blk.%d.ffn_up.weight", l);
    }
    tiny_add(m, f, d, "blk.%d.ffn_down.weight", l);
    if (m->kind->post_norms) tiny_add(m, d, 0, "blk.%d.post_ffw_norm.weight", l);
}

static void tiny_number(const tiny *m, weft__gguf_writer *w, const char *key, double value, int whole)
{
    char full[96];
    snprintf(full, sizeof full, "%s.%s", m->kind->arch, key);
    assert_int_equal(whole ? weft__gguf_put_u32(w, full, (uint32_t)value, NULL)
                           : weft__gguf_put_f32(w, full, (float)value, NULL),
                     WEFT_OK);
}

static void tiny_meta(tiny *m)
{
    weft__gguf_writer *w;
    assert_int_equal(weft__gguf_writer_memory("tiny", &w, NULL), WEFT_OK);
    assert_int_equal(weft__gguf_put_string(w, "general.architecture", m->kind->arch, strlen(m->kind->arch), NULL),
                     WEFT_OK);
    tiny_number(m, w, "block_count", TINY_LAYERS, 1);
    tiny_number(m, w, "context_length", TINY_CTX, 1);
    tiny_number(m, w, "embedding_length", m->width, 1);
    tiny_number(m, w, "feed_forward_length", m->ff, 1);
    tiny_number(m, w, "attention.head_count", m->n_heads, 1);
    tiny_number(m, w, "attention.head_count_kv", m->n_kv_heads, 1);
    tiny_number(m, w, "attention.key_length", m->head, 1);
    tiny_number(m, w, "attention.value_length", m->head, 1);
    tiny_number(m, w, "rope.dimension_count", m->head, 1);
    tiny_number(m, w, "rope.freq_base", 100, 0);
    tiny_number(m, w, "attention.layer_norm_rms_epsilon", 1e-3, 0);
    if (m->kind->window) tiny_number(m, w, "attention.sliding_window", m->kind->window, 1);
    if (m->kind->softcap) tiny_number(m, w, "attn_logit_softcapping", 2, 0);
    if (m->kind->softcap) tiny_number(m, w, "final_logit_softcapping", 3, 0);
    assert_int_equal(weft__gguf_writer_bytes(w, &m->bytes, NULL), WEFT_OK);
    weft__gguf_writer_destroy(&w);
    assert_int_equal(weft__gguf_parse(m->bytes.data, m->bytes.len, "tiny", &m->meta, NULL), WEFT_OK);
}

/* The widths that are set fit the format of the matrices; `head` 16 for most. */
static tiny *tiny_new(const tiny_kind *kind, uint32_t dtype, int32_t width, int32_t ff)
{
    tiny *m = weft__alloc_zero(1, sizeof *m);
    assert_non_null(m);
    *m = (tiny){
        .kind = kind, .width = width, .n_heads = 4, .n_kv_heads = 2, .head = width / 4, .ff = ff, .dtype = dtype};
    weft__rng_seed(&m->rng, 7);
    tiny_add(m, width, TINY_VOCAB, "token_embd.weight", 0);
    for (int l = 0; l < TINY_LAYERS; l++) {
        tiny_attention(m, l);
        tiny_ffn(m, l);
    }
    tiny_add(m, width, 0, "output_norm.weight", 0);
    if (!kind->tied) tiny_add(m, width, TINY_VOCAB, "output.weight", 0);
    tiny_meta(m);
    weft__source_gguf(m->meta, kind->arch, &m->src);
    m->src.tensor = tiny_tensor;
    m->src.tensors = &m->set;
    return m;
}

static void tiny_free(tiny *m)
{
    weft__gguf_close(&m->meta);
    weft__strbuf_free(&m->bytes);
    for (size_t i = 0; i < m->set.n; i++) weft_buffer_release(&m->buffers[i]);
    weft__tensor_set_free(&m->set);
    weft__free(m);
}

/* ---- batches ---- */

enum { TINY_ROWS = 130 };

typedef struct tiny_batch {
    int32_t token[TINY_ROWS], segment[TINY_ROWS], target[TINY_ROWS];
    float weight[TINY_ROWS];
    weft__train_batch b;
} tiny_batch;

/* Segments of 13, 1, 101 (more than a block of queries) and 15 rows; a third of the rows without a target, weights from
 * a few. */
static inline void tiny_fill(tiny_batch *b, uint64_t seed)
{
    static const int32_t ends[] = {13, 14, 115, TINY_ROWS};
    static const float weights[] = {1, 0.5f, 2, 0};
    weft__rng rng;
    weft__rng_seed(&rng, seed);
    for (int32_t r = 0, s = 0; r < TINY_ROWS; r++) {
        s += r == ends[s];
        b->segment[r] = s;
        b->token[r] = (int32_t)weft__rng_below(&rng, TINY_VOCAB);
        b->target[r] = weft__rng_below(&rng, 3) ? (int32_t)weft__rng_below(&rng, TINY_VOCAB) : -1;
        b->weight[r] = weights[weft__rng_below(&rng, 4)];
    }
    b->b = (weft__train_batch){TINY_ROWS, b->token, b->segment, b->target, b->weight};
}

static inline weft__train_options tiny_options(void)
{
    weft__train_options o;
    weft__train_options_default(&o);
    o.max_rows = TINY_ROWS;
    o.n_threads = 2;
    o.schedule = WEFT__TRAIN_LR_CONSTANT;
    o.exact = 1; /* what rounding does is train_rounded.c's */
    return o;
}

static inline weft__trainer *tiny_trainer(const tiny *m, const weft__train_options *o)
{
    weft__trainer *t;
    weft_error err = {0};
    if (weft__trainer_create(&m->src, o, &t, &err)) fail_msg("%s: %s", m->kind->arch, err.message);
    return t;
}

/* B is zero at first, and then A has no gradient: so both are drawn. */
static inline void tiny_draw(weft__trainer *t, weft__rng *rng)
{
    for (size_t i = 0; i < weft__trainer_n_params(t); i++) {
        weft__train_param p = weft__trainer_param(t, i);
        float *x = weft__alloc_array((size_t)(p.d[0] * p.d[1]), sizeof *x);
        assert_non_null(x);
        for (uint64_t j = 0; j < p.d[0] * p.d[1]; j++)
            x[j] = (float)(0.3 * weft__rng_normal(rng) / sqrt((double)p.d[0]));
        weft__trainer_set_param(t, i, x);
        weft__free(x);
    }
}

#endif
