// SPDX-License-Identifier: Apache-2.0
/* pool.h: the inside of pools and sequences, for the files of this room.
 *
 * The prefix tree keeps a page by owning it: that counts as one reference, and `owner` says which node. An owned page
 * whose count is 1 is idle: the tree alone holds it. Idle pages stand in a list, the one that became idle first at its
 * head; that is the order in which they are evicted. All operations are O(1). Owner: the engine thread. */
#ifndef WEFT_KV_POOL_H
#define WEFT_KV_POOL_H

#include "kv/kv.h"

struct weft__kv_group_pool {
    weft_kv_group spec;
    weft_buffer *buffer;
    int32_t *count; /* references per page */
    int32_t *free;  /* stack of free pages; those that were never taken lie at its bottom, the lowest on top */
    int32_t n_free;
    uint64_t most_bytes;    /* of the first pool of those that share: what pages of all of them take at most */
    int32_t n_used, n_warm; /* pages [0, n_used) were taken before; [0, n_warm) were in memory once, n_used <= n_warm */
    uint8_t *in_memory;     /* per page */
    int32_t n_in_memory;
    void **owner;         /* per page: the tree's node, or NULL */
    int32_t *next, *prev; /* per page: neighbours in the list of idle pages; -1 at its ends */
    int32_t idle_head, idle_tail, n_idle;
};

/* The tree of that pool gives a page up: it still holds what it held, for the time of this call. */
typedef void (*weft__kv_leaving)(void *arg, const weft__kv_pool *pool, int group, int32_t page);

/* Frees at least one page of the group, or returns 0 when there is nothing to evict. */
typedef int (*weft__kv_reclaim)(void *arg, int group);

struct weft__kv_pool {
    int n_groups;
    weft__kv_pool *first, *next; /* those that share memory: the first one, and the next, or NULL */
    struct weft__kv_group_pool *groups;
    weft_kv_binding *bindings;
    weft__kv_reclaim reclaim; /* NULL: none */
    void *reclaim_arg;
    weft__kv_leaving leaving; /* NULL: nobody asks */
    void *leaving_arg;
};

struct weft__kv_seq {
    weft__kv_pool *pool;
    int32_t n_ctx, length;
    int32_t **pages;   /* [n_groups][capacity]; -1: dropped */
    int32_t *n_pages;  /* entries in use, dropped ones included */
    int32_t *n_gone;   /* leading entries that were dropped */
    int32_t *capacity; /* entries of each table */
};

static inline void *weft__kv_page_data(const weft__kv_pool *pool, int group, int32_t page)
{
    return (char *)pool->bindings[group].data + (uint64_t)page * pool->bindings[group].page_bytes;
}

/* Entries of a block table that n tokens need. */
static inline int32_t weft__kv_entries(const weft_kv_group *g, int32_t n)
{
    return (int32_t)(((int64_t)n + g->page_tokens - 1) / g->page_tokens);
}

/* The first entry of a block table that a sequence of n tokens needs for continuing: those before it hold only what
 * position n and later ones cannot see (position n sees [n - window + 1, n]). */
static inline int32_t weft__kv_first_entry(const weft_kv_group *g, int32_t n)
{
    int32_t oldest = g->window > 0 ? n - g->window + 1 : 0;
    return oldest > 0 ? oldest / g->page_tokens : 0;
}

/* Is everything there that a sequence of n tokens, 0 <= n <= its length, needs for continuing? */
int weft__kv_seq_continues(const weft__kv_seq *seq, int32_t n);

/* Adds the tree's reference. 0: the page is owned already. */
int weft__kv_page_own(weft__kv_pool *pool, int group, int32_t page, void *node);
/* Gives the tree's reference back. */
void weft__kv_page_disown(weft__kv_pool *pool, int group, int32_t page);

#endif
