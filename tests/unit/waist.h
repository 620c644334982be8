// SPDX-License-Identifier: Apache-2.0
/* waist.h: what the tests of graph and backend share: weights in host buffers, pages for a few sequences, and running
 * steps.
 *
 * A stage owns the weights of one graph; a store owns the pages and the plan of one way of running it. Everything is
 * reproducible from the stage's seed. */
#ifndef WEFT_TESTS_WAIST_H
#define WEFT_TESTS_WAIST_H

#include "fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "backend/registry.h"
#include "base/cpu.h"
#include "base/random.h"
#include "graph/graph.h"
#include "mem/mem.h"
#include "quant/quant.h"

enum { STAGE_BUFFERS = 128, STAGE_SEQS = 3, STAGE_GROUPS = 2 };

#define assert_ok(call)                                                                                                \
    do {                                                                                                               \
        weft_error e_ = {0};                                                                                           \
        weft_error *err = &e_;                                                                                         \
        if ((call) != WEFT_OK) fail_msg("%s: %s", #call, e_.message);                                                  \
    } while (0)

/* The call (which names its error `err`) fails with `expected`, and the message contains `text`. */
#define assert_refused(expected, text, call)                                                                           \
    do {                                                                                                               \
        weft_error e_ = {0};                                                                                           \
        weft_error *err = &e_;                                                                                         \
        assert_int_equal((call), (expected));                                                                          \
        assert_int_equal(e_.status, (expected));                                                                       \
        if (!strstr(e_.message, (text))) fail_msg("%s: message '%s' lacks '%s'", #call, e_.message, (text));           \
    } while (0)

typedef struct stage {
    weft__rng rng;
    weft__builder *b;
    weft_graph *g;
    weft_buffer *buffers[STAGE_BUFFERS];
    int n_buffers;
} stage;

static inline void stage_open(stage *s, uint64_t seed)
{
    memset(s, 0, sizeof *s);
    weft__rng_seed(&s->rng, seed);
    assert_ok(weft__builder_create(&s->b, err));
}

static inline void stage_close(stage *s)
{
    weft__builder_destroy(&s->b);
    weft__graph_destroy(&s->g);
    for (int i = 0; i < s->n_buffers; i++) weft_buffer_release(&s->buffers[i]);
}

static inline int stage_below(stage *s, int n)
{
    return (int)weft__rng_below(&s->rng, (uint64_t)n);
}

/* A random weight [k, n, e] at an odd offset, rows a few bytes apart; n 0: a vector of values near 1. */
static inline weft_weight_id stage_weight(stage *s, uint32_t dtype, int64_t k, int64_t n, int64_t e, const char *name)
{
    int64_t rows = (n ? n : 1) * (e ? e : 1);
    uint64_t row_bytes = weft__quant_row_bytes(dtype, k), stride = row_bytes + (n ? 3 : 0), offset = 5;
    weft_buffer_spec spec = {.size = sizeof spec, .n_bytes = offset + (uint64_t)rows * stride};
    assert_true(s->n_buffers < STAGE_BUFFERS && row_bytes > 0);
    weft_buffer **buffer = &s->buffers[s->n_buffers++];
    assert_ok(weft__mem_create(&spec, buffer, err));
    uint8_t *at = (uint8_t *)(*buffer)->data + offset;
    for (int64_t r = 0; r < rows; r++, at += stride) {
        if (n) {
            weft__quant_random_row(dtype, &s->rng, at, k);
        } else {
            for (int64_t i = 0; i < k; i++) {
                float v = (float)(1 + 0.2 * weft__rng_normal(&s->rng));
                memcpy(at + i * 4, &v, 4);
            }
        }
    }
    weft_weight w = {.dtype = dtype, .buffer = *buffer, .offset = offset, .row_bytes = stride};
    w.shape = (weft_shape){.n_dims = e ? 3 : n ? 2 : 1, .d = {k, n, e, 1}};
    snprintf(w.name, sizeof w.name, "%.40s.weight", name);
    return weft__builder_weight(s->b, &w);
}

static inline weft_weight_id stage_vector(stage *s, int64_t k, const char *name)
{
    return stage_weight(s, WEFT_F32, k, 0, 0, name);
}

static inline void stage_finish(stage *s)
{
    assert_ok(weft__builder_finish(&s->b, &s->g, err));
}

/* ---- running ---- */

typedef struct store {
    weft__provider *providers[2];
    weft__plan *plan;
    weft__plan_state *state;
    weft__profile *profile; /* NULL: steps are not recorded */
    const weft_graph *g;
    weft_kv_binding kv[STAGE_GROUPS];
    int32_t *pages[STAGE_SEQS][STAGE_GROUPS];
    const int32_t *tables[STAGE_SEQS][STAGE_GROUPS];
    int32_t n_pages[STAGE_GROUPS];
    weft_seq_view views[STAGE_SEQS];
    int32_t max_rows;
    int32_t *token, *pos, *seq, *adapter;
    uint8_t *want;
    weft_adapter *adapters[STAGE_SEQS];
    int32_t n_adapters;             /* 0: steps have none */
    int32_t adapter_of[STAGE_SEQS]; /* of each sequence, or -1 */
    const weft_kv_binding *pools;   /* instead of kv: [n_pools][groups], of which a sequence has its pages in one */
    const int32_t *pool;            /* [STAGE_SEQS] */
    int32_t n_pools;
    int wants_some; /* steps want some of their rows, and of those the logits alone; 0: all of all rows */
} store;

/* Pages for STAGE_SEQS sequences of n_ctx positions each, handed out in a scattered order; filled with noise, which
 * must not be seen. */
static inline void store_pages(store *t, const weft_graph *g, uint32_t dtype, int32_t n_ctx)
{
    for (int32_t k = 0; k < g->n_kv_groups; k++) {
        int32_t per_seq = (n_ctx + g->kv_groups[k].page_tokens - 1) / g->kv_groups[k].page_tokens,
                n = per_seq * STAGE_SEQS;
        uint64_t page_bytes = weft_kv_layer_at(dtype, &g->kv_groups[k], g->kv_groups[k].n_layers);
        t->n_pages[k] = per_seq;
        t->kv[k] = (weft_kv_binding){.data = weft__alloc_aligned(64, (size_t)n * page_bytes),
                                     .page_bytes = page_bytes,
                                     .dtype = dtype,
                                     .n_pages = n};
        memset(t->kv[k].data, 0x3c, (size_t)n * page_bytes);
        for (int s = 0; s < STAGE_SEQS; s++) {
            t->pages[s][k] = weft__alloc_array((size_t)per_seq, sizeof(int32_t));
            for (int32_t i = 0; i < per_seq; i++) t->pages[s][k][i] = (i * STAGE_SEQS + s + 7 * k) % n;
            t->tables[s][k] = t->pages[s][k];
        }
    }
    for (int s = 0; s < STAGE_SEQS; s++) t->views[s] = (weft_seq_view){t->tables[s], t->n_pages, NULL};
}

/* Room for the rows of a step. */
static inline void store_columns(store *t)
{
    t->token = weft__alloc_array((size_t)t->max_rows, sizeof *t->token);
    t->pos = weft__alloc_array((size_t)t->max_rows, sizeof *t->pos);
    t->seq = weft__alloc_array((size_t)t->max_rows, sizeof *t->seq);
    t->adapter = weft__alloc_array((size_t)t->max_rows, sizeof *t->adapter);
    t->want = weft__alloc_array((size_t)t->max_rows, 1);
}

/* provider "cpu", or a plugin, which is opened with WEFT_TEST_OPTIONS and has the CPU beside it for what it cannot run;
 * `options` are the CPU's. */
static inline void store_open(store *t, const weft_graph *g, const char *provider, const char *options, int fused,
                              uint32_t kv_dtype, int32_t n_ctx, int32_t max_rows)
{
    memset(t, 0, sizeof *t);
    t->g = g;
    t->max_rows = max_rows;
    int n = 0;
    if (strcmp(provider, "cpu"))
        assert_ok(weft__provider_open(provider, getenv("WEFT_TEST_OPTIONS"), &t->providers[n++], err));
    assert_ok(weft__provider_open("cpu", options, &t->providers[n++], err));
    weft__plan_options o = {
        .max_rows = max_rows, .max_wanted = max_rows, .no_fusion = !fused, .providers = t->providers, .n_providers = n};
    assert_ok(weft__plan_create(g, &o, &t->plan, err));
    assert_ok(weft__plan_state_new(t->plan, &t->state, err));
    store_pages(t, g, kv_dtype, n_ctx);
    store_columns(t);
}

/* One more adapter for steps to come, kept as dtype; lora [n_weights]. */
static inline void store_adapter(store *t, const weft_lora *lora, uint32_t dtype)
{
    weft_adapter_spec spec = {.size = sizeof spec, .n_weights = t->g->n_weights, .lora = lora, .dtype = dtype};
    assert_ok(weft__plan_adapter_new(t->plan, &spec, &t->adapters[t->n_adapters++], err));
}

static inline void store_close(store *t)
{
    for (int32_t i = 0; i < t->n_adapters; i++) weft__plan_adapter_free(&t->adapters[i]);
    weft__profile_free(&t->profile);
    weft__plan_state_free(&t->state);
    weft__plan_destroy(&t->plan);
    for (int i = 1; i >= 0; i--) weft__provider_close(&t->providers[i]);
    for (int32_t k = 0; k < t->g->n_kv_groups; k++) {
        weft__free(t->kv[k].data);
        for (int s = 0; s < STAGE_SEQS; s++) weft__free(t->pages[s][k]);
    }
    weft__free(t->token);
    weft__free(t->pos);
    weft__free(t->seq);
    weft__free(t->adapter);
    weft__free(t->want);
}

/* A run of positions of one sequence within a step. */
typedef struct span {
    int32_t seq, from, n;
} span;

/* The token of a sequence at a position; any function of the two does. */
static inline int32_t token_at(int32_t seq, int32_t pos, int64_t vocab)
{
    uint32_t x = (uint32_t)(seq * 7919 + pos) * 2654435761u;
    return (int32_t)((x >> 8) % (uint32_t)vocab);
}

/* Is the row at a position one of some? Any function of the two does; in steps of a few rows it may be none. */
static inline int wanted_at(int32_t seq, int32_t pos)
{
    return token_at(seq + 1, pos, 4) == 0;
}

/* Runs the n rows that are described in t, of which n_wanted are wanted. */
static inline void store_run(store *t, int32_t n, int32_t n_wanted, float *const *outputs)
{
    weft_rows rows = {.size = sizeof rows,
                      .n_rows = n,
                      .n_wanted = n_wanted,
                      .n_seqs = STAGE_SEQS,
                      .token = t->token,
                      .pos = t->pos,
                      .seq = t->seq,
                      .want = t->want,
                      .seqs = t->views,
                      .adapter = t->n_adapters ? t->adapter : NULL,
                      .n_adapters = t->n_adapters,
                      .adapters = t->adapters,
                      .pool = t->pool,
                      .n_pools = t->n_pools};
    const weft_kv_binding *kv = t->pools ? t->pools : t->kv;
    if (t->profile) assert_ok(weft__profile_run(t->profile, t->state, &rows, kv, outputs, err));
    else assert_ok(weft__plan_run(t->state, &rows, kv, outputs, err));
}

/* Runs the spans as one step, and stores the output of every row that is wanted at out[seq][pos]: out
 * [STAGE_SEQS][n_ctx][width]. */
static inline void store_step(store *t, const span *spans, int n_spans, int64_t vocab, int32_t n_ctx, float *out)
{
    int32_t n = 0, n_wanted = 0;
    int64_t width = t->g->tensors[t->g->outputs[0]].shape.d[0];
    for (int i = 0; i < n_spans; i++) {
        for (int32_t j = 0; j < spans[i].n; j++, n++) {
            t->token[n] = token_at(spans[i].seq, spans[i].from + j, vocab);
            t->pos[n] = spans[i].from + j;
            t->seq[n] = spans[i].seq;
            if (t->n_adapters) t->adapter[n] = t->adapter_of[spans[i].seq];
            t->want[n] = !t->wants_some                    ? WEFT_WANT_LOGITS | WEFT_WANT_OUTPUTS
                         : wanted_at(t->seq[n], t->pos[n]) ? WEFT_WANT_LOGITS
                                                           : 0;
            n_wanted += t->want[n] != 0;
        }
    }
    float *y = weft__alloc_array((size_t)(n * width), sizeof *y), *from = y;
    store_run(t, n, n_wanted, &y);
    for (int32_t r = 0; r < n; r++) {
        if (!t->want[r]) continue;
        memcpy(out + ((int64_t)t->seq[r] * n_ctx + t->pos[r]) * width, from, (size_t)width * sizeof *y);
        from += width;
    }
    weft__free(y);
}

/* sum (a - b)^2 / sum b^2; infinite when a is not finite somewhere. */
static inline double nmse(const float *a, const float *b, size_t n)
{
    double error = 0, power = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(a[i])) return INFINITY;
        error += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        power += (double)b[i] * b[i];
    }
    return error / (power > 0 ? power : 1);
}

#endif
