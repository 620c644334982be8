// SPDX-License-Identifier: Apache-2.0
/* kv_world.h: a model that stands in, for the tests of pages: it "evaluates" a token by writing a hash of the whole
 * token history into its slot of the page, so that every wrong reuse shows. */
#ifndef WEFT_TESTS_KV_WORLD_H
#define WEFT_TESTS_KV_WORLD_H

#include "fixture.h"

#include "kv/prefix.h"

enum { MAX_GROUPS = 2, CTX = 96 };

static const weft__kv_key ROOT = {{1, 2}};

typedef struct world {
    int n_groups;
    weft_kv_group group[MAX_GROUPS];
    int32_t n_pages[MAX_GROUPS];
    weft__kv_pool *pool;
    weft__kv_prefix *tree;
} world;

/* 8 bytes per token in f16: two heads' worth of keys and values. */
static inline weft_kv_group full(int32_t page_tokens)
{
    return (weft_kv_group){.kind = WEFT_KV_FULL,
                           .n_layers = 1,
                           .n_kv_heads = 1,
                           .head_dim_k = 2,
                           .head_dim_v = 2,
                           .page_tokens = page_tokens};
}

static inline weft_kv_group windowed(int32_t page_tokens, int32_t window)
{
    weft_kv_group g = full(page_tokens);
    g.kind = WEFT_KV_WINDOW;
    g.window = window;
    return g;
}

static inline void open_world(world *w)
{
    assert_int_equal(weft__kv_pool_create(w->group, w->n_groups, w->n_pages, WEFT_F16, &w->pool, NULL), WEFT_OK);
    assert_int_equal(weft__kv_prefix_create(w->pool, &w->tree, NULL), WEFT_OK);
}

static inline void close_world(world *w)
{
    weft__kv_prefix_destroy(&w->tree);
    for (int g = 0; g < w->n_groups; g++) assert_int_equal(weft__kv_pool_free_pages(w->pool, g), w->n_pages[g]);
    weft__kv_pool_destroy(&w->pool);
}

typedef struct run {
    weft__kv_seq *seq; /* NULL: not in use */
    weft__kv_key root;
    int32_t token[CTX]; /* [its length] */
} run;

static inline uint64_t history(weft__kv_key root, const int32_t *tokens, int32_t n)
{
    uint64_t h = root.word[0] * 31 + root.word[1];
    for (int32_t i = 0; i < n; i++) h = (h ^ (uint64_t)(tokens[i] + 1)) * 0x9e3779b97f4a7c15u, h ^= h >> 29;
    return h;
}

static inline uint64_t *cell(const world *w, const run *r, int g, int32_t pos)
{
    weft_seq_view view = weft__kv_seq_view(r->seq);
    int32_t pt = w->group[g].page_tokens, page = view.pages[g][pos / pt];
    assert_true(pos / pt < view.n_pages[g]);
    assert_true(page >= 0 && page < w->n_pages[g]);
    const weft_kv_binding *b = &weft__kv_pool_bindings(w->pool)[g];
    return (uint64_t *)((char *)b->data + (uint64_t)page * b->page_bytes) + pos % pt;
}

/* Everything that the next position sees holds what its history gives. */
static inline void check_run(const world *w, const run *r)
{
    int32_t n = weft__kv_seq_length(r->seq);
    uint64_t h[CTX + 1];
    for (int32_t i = 0; i < n; i++) h[i] = history(r->root, r->token, i + 1);
    for (int g = 0; g < w->n_groups; g++) {
        int32_t oldest = w->group[g].window > 0 ? n - w->group[g].window + 1 : 0;
        for (int32_t i = oldest > 0 ? oldest : 0; i < n; i++)
            if (*cell(w, r, g, i) != h[i]) fail_msg("position %d of %d, group %d: not what its tokens give", i, n, g);
    }
}

static inline void begin(world *w, run *r, weft__kv_key root)
{
    r->root = root;
    assert_int_equal(weft__kv_seq_create(w->pool, CTX, &r->seq, NULL), WEFT_OK);
}

/* Evaluates tokens; 0 when the pool is full. Holds admission's promise against what happens. */
static inline int extend(world *w, run *r, const int32_t *tokens, int32_t n)
{
    int32_t length = weft__kv_seq_length(r->seq);
    int promised = 1;
    for (int g = 0; g < w->n_groups; g++)
        promised &= weft__kv_seq_pages_for(r->seq, g, n) <= weft__kv_pool_available_pages(w->pool, g);
    if (weft__kv_seq_reserve(r->seq, n, NULL)) {
        assert_false(promised);
        return 0;
    }
    for (int32_t i = 0; i < n; i++) {
        r->token[length + i] = tokens[i];
        for (int g = 0; g < w->n_groups; g++) *cell(w, r, g, length + i) = history(r->root, r->token, length + i + 1);
    }
    weft__kv_seq_advance(r->seq, n);
    return 1;
}

static inline void count_up(int32_t *tokens, int32_t n)
{
    for (int32_t i = 0; i < n; i++) tokens[i] = i % 50;
}

#endif
