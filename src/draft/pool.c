// SPDX-License-Identifier: Apache-2.0
/* pool.c: histories of finished texts by key (draft.h). Invariant: texts of two keys are never in one history. Owner:
 * one thread. */
#include <string.h>

#include "base/alloc.h"
#include "draft/draft.h"

enum { KEY_TOKENS = 1 << 14 /* that are kept of one key */ };

typedef struct pool_entry {
    uint64_t key[2];
    uint64_t used; /* the larger, the later; 0: free */
    weft__draft_history *history;
} pool_entry;

struct weft__draft_pool {
    pool_entry *entries; /* [n] */
    int32_t n;
    uint64_t clock, n_bytes;
};

weft__draft_pool *weft__draft_pool_new(uint64_t n_bytes)
{
    const uint64_t one = (uint64_t)KEY_TOKENS * 6 * sizeof(int32_t); /* a history takes five sixths of it */
    weft__draft_pool *p = weft__alloc_zero(1, sizeof *p);
    if (!p) return NULL;
    p->n = n_bytes / one < 1 ? 1 : n_bytes / one > 4096 ? 4096 : (int32_t)(n_bytes / one);
    p->entries = weft__alloc_zero((size_t)p->n, sizeof *p->entries);
    if (!p->entries) weft__draft_pool_free(&p);
    return p;
}

void weft__draft_pool_free(weft__draft_pool **pool)
{
    weft__draft_pool *p = pool ? *pool : NULL;
    if (!p) return;
    for (int32_t i = 0; p->entries && i < p->n; i++) weft__draft_history_free(&p->entries[i].history);
    weft__free(p->entries);
    weft__free(p);
    *pool = NULL;
}

uint64_t weft__draft_pool_bytes(const weft__draft_pool *p)
{
    return p ? sizeof *p + (uint64_t)p->n * sizeof *p->entries + p->n_bytes : 0;
}

static pool_entry *find(const weft__draft_pool *p, const uint64_t key[2])
{
    for (int32_t i = 0; i < p->n; i++)
        if (p->entries[i].used && !memcmp(p->entries[i].key, key, sizeof p->entries[i].key)) return &p->entries[i];
    return NULL;
}

weft__draft_history *weft__draft_pool_find(const weft__draft_pool *p, const uint64_t key[2])
{
    const pool_entry *e = find(p, key);
    return e ? e->history : NULL;
}

/* A free one, or that which was added to least recently, empty. */
static pool_entry *make(weft__draft_pool *p, const uint64_t key[2])
{
    pool_entry *e = &p->entries[0];
    for (int32_t i = 1; i < p->n; i++)
        if (p->entries[i].used < e->used) e = &p->entries[i];
    p->n_bytes -= weft__draft_history_bytes(e->history);
    weft__draft_history_free(&e->history);
    e->used = 0;
    if (!(e->history = weft__draft_history_new(KEY_TOKENS))) return NULL;
    p->n_bytes += weft__draft_history_bytes(e->history);
    memcpy(e->key, key, sizeof e->key);
    return e;
}

void weft__draft_pool_add(weft__draft_pool *p, const uint64_t key[2], const int32_t *tokens, int32_t n)
{
    pool_entry *e = find(p, key);
    if (!e && !(e = make(p, key))) return;
    e->used = ++p->clock;
    weft__draft_history_cut(e->history);
    weft__draft_history_add(e->history, tokens, n);
}
