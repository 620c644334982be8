// SPDX-License-Identifier: Apache-2.0
/* seq.c: one sequence: a block table per group, its length, and which pages a sliding window has let go.
 * Owner: the engine thread. */
#include <string.h>

#include "base/alloc.h"
#include "kv/pool.h"

weft_status weft__kv_seq_create(weft__kv_pool *pool, int32_t n_ctx, weft__kv_seq **out, weft_error *err)
{
    *out = NULL;
    size_t n_groups = (size_t)pool->n_groups;
    if (n_ctx < 1) return weft_fail(err, WEFT_ARGUMENT, "a context of %d tokens", n_ctx);
    weft__kv_seq *seq = weft__alloc_zero(1, sizeof *seq);
    if (!seq) goto no_memory;
    seq->pool = pool;
    seq->n_ctx = n_ctx;
    seq->pages = weft__alloc_zero(n_groups, sizeof *seq->pages);
    seq->n_pages = weft__alloc_zero(n_groups, sizeof *seq->n_pages);
    seq->n_gone = weft__alloc_zero(n_groups, sizeof *seq->n_gone);
    seq->capacity = weft__alloc_zero(n_groups, sizeof *seq->capacity);
    if (!seq->pages || !seq->n_pages || !seq->n_gone || !seq->capacity) goto no_memory;
    for (size_t g = 0; g < n_groups; g++) {
        seq->capacity[g] = weft__kv_entries(&pool->groups[g].spec, n_ctx);
        seq->pages[g] = weft__alloc_array((size_t)seq->capacity[g], sizeof **seq->pages);
        if (!seq->pages[g]) goto no_memory;
    }
    *out = seq;
    return WEFT_OK;
no_memory:
    weft__kv_seq_destroy(&seq);
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for the block tables of %d tokens", n_ctx);
}

/* Returns the pages from entry `first` on, the last one first: so a prefix is evicted from its end. */
static void release_from(weft__kv_seq *seq, int g, int32_t first)
{
    for (int32_t i = seq->n_pages[g] - 1; i >= first; i--)
        if (seq->pages[g][i] >= 0) weft__kv_page_release(seq->pool, g, seq->pages[g][i]);
    if (first < seq->n_pages[g]) seq->n_pages[g] = first;
}

void weft__kv_seq_destroy(weft__kv_seq **p)
{
    weft__kv_seq *seq = p ? *p : NULL;
    if (!seq) return;
    for (int g = 0; seq->pages && g < seq->pool->n_groups; g++) {
        if (seq->n_pages) release_from(seq, g, 0);
        weft__free(seq->pages[g]);
    }
    weft__free(seq->pages);
    weft__free(seq->n_pages);
    weft__free(seq->n_gone);
    weft__free(seq->capacity);
    weft__free(seq);
    *p = NULL;
}

int32_t weft__kv_seq_length(const weft__kv_seq *seq)
{
    return seq->length;
}

/* Lets go of the pages of a window group that no position >= seq->length can see. */
static void drop_window(weft__kv_seq *seq, int g)
{
    int32_t first = weft__kv_first_entry(&seq->pool->groups[g].spec, seq->length);
    while (seq->n_gone[g] < seq->n_pages[g] && seq->n_gone[g] < first) {
        int32_t *page = &seq->pages[g][seq->n_gone[g]++];
        weft__kv_page_release(seq->pool, g, *page);
        *page = -1;
    }
}

/* The entry that holds positions on both sides of the length, when another sequence or the tree holds its page too; or
 * -1. */
static int32_t shared_last(const weft__kv_seq *seq, int g)
{
    const struct weft__kv_group_pool *gp = &seq->pool->groups[g];
    if (seq->length % gp->spec.page_tokens == 0) return -1;
    int32_t last = seq->length / gp->spec.page_tokens;
    return gp->count[seq->pages[g][last]] > 1 ? last : -1;
}

/* Makes room for n > 0 tokens in one group; 0 when the pool is full. */
static int reserve_group(weft__kv_seq *seq, int g, int32_t n)
{
    weft__kv_pool *pool = seq->pool;
    int32_t need = weft__kv_entries(&pool->groups[g].spec, seq->length + n), shared = shared_last(seq, g), page;
    while (seq->n_pages[g] < need) {
        if ((page = weft__kv_page_take(pool, g)) < 0) return 0;
        seq->pages[g][seq->n_pages[g]++] = page;
    }
    if (shared < 0) return 1;
    if ((page = weft__kv_page_take(pool, g)) < 0) return 0;
    memcpy(weft__kv_page_data(pool, g, page), weft__kv_page_data(pool, g, seq->pages[g][shared]),
           pool->bindings[g].page_bytes);
    weft__kv_page_release(pool, g, seq->pages[g][shared]);
    seq->pages[g][shared] = page;
    return 1;
}

weft_status weft__kv_seq_reserve(weft__kv_seq *seq, int32_t n, weft_error *err)
{
    weft__kv_pool *pool = seq->pool;
    int ok = 1;
    if (n < 0 || n > seq->n_ctx - seq->length)
        return weft_fail(err, WEFT_LIMIT, "the context of %d tokens is full (%d used, %d more asked); use a larger -c",
                         seq->n_ctx, seq->length, n);
    for (int g = 0; g < pool->n_groups; g++) drop_window(seq, g);
    for (int g = 0; n > 0 && g < pool->n_groups && ok; g++) ok = reserve_group(seq, g, n);
    if (ok) return WEFT_OK;
    /* A copy made of a shared page stays: it holds the same. */
    for (int g = 0; g < pool->n_groups; g++) release_from(seq, g, weft__kv_entries(&pool->groups[g].spec, seq->length));
    return weft_fail(err, WEFT_LIMIT, "no free KV page for %d more tokens", n);
}

int32_t weft__kv_seq_pages_for(const weft__kv_seq *seq, int group, int32_t n)
{
    int32_t more = weft__kv_entries(&seq->pool->groups[group].spec, seq->length + n) - seq->n_pages[group];
    return (more > 0 ? more : 0) + (n > 0 && shared_last(seq, group) >= 0);
}

void weft__kv_seq_advance(weft__kv_seq *seq, int32_t n)
{
    seq->length += n;
}

int weft__kv_seq_continues(const weft__kv_seq *seq, int32_t n)
{
    for (int g = 0; g < seq->pool->n_groups; g++)
        if (seq->n_gone[g] > weft__kv_first_entry(&seq->pool->groups[g].spec, n)) return 0;
    return 1;
}

int32_t weft__kv_seq_trim(weft__kv_seq *seq, int32_t n)
{
    weft__kv_pool *pool = seq->pool;
    if (n >= seq->length) n = seq->length;
    else if (n < 0 || !weft__kv_seq_continues(seq, n)) n = 0;
    for (int g = 0; g < pool->n_groups; g++) {
        release_from(seq, g, weft__kv_entries(&pool->groups[g].spec, n));
        if (n == 0) seq->n_gone[g] = 0;
    }
    seq->length = n;
    return n;
}

/* Of a group: the entries that n more tokens begin become copies of those n_period before, or of the oldest. */
static void copy_entries(const weft__kv_seq *seq, int g, int32_t n, int32_t n_period)
{
    const weft_kv_group *spec = &seq->pool->groups[g].spec;
    const int32_t end = weft__kv_entries(spec, seq->length + n), period = n_period / spec->page_tokens;
    for (int32_t i = weft__kv_entries(spec, seq->length); i < end; i++) {
        const int32_t from = i - period > seq->n_gone[g] ? i - period : seq->n_gone[g];
        if (from < i)
            memcpy(weft__kv_page_data(seq->pool, g, seq->pages[g][i]),
                   weft__kv_page_data(seq->pool, g, seq->pages[g][from]), seq->pool->bindings[g].page_bytes);
    }
}

weft_status weft__kv_seq_repeat(weft__kv_seq *seq, int32_t n, weft_error *err)
{
    const int32_t n_period = seq->length;
    for (int g = 0; g < seq->pool->n_groups; g++)
        if (!n_period || n_period % seq->pool->groups[g].spec.page_tokens)
            return weft_fail(err, WEFT_ARGUMENT, "%d tokens are no whole pages of %d", n_period,
                             seq->pool->groups[g].spec.page_tokens);
    while (n > 0) { /* as a prompt is read: a window lets go as it moves on */
        const int32_t part = n < n_period ? n : n_period;
        const weft_status st = weft__kv_seq_reserve(seq, part, err);
        if (st) return st;
        for (int g = 0; g < seq->pool->n_groups; g++) copy_entries(seq, g, part, n_period);
        weft__kv_seq_advance(seq, part);
        n -= part;
    }
    return WEFT_OK;
}

weft_seq_view weft__kv_seq_view(const weft__kv_seq *seq)
{
    return (weft_seq_view){(const int32_t *const *)seq->pages, seq->n_pages, NULL};
}
