// SPDX-License-Identifier: Apache-2.0
/* swap_parts.h: the inside of swapping: swap.c has the parked sequences, swap_move.c the pages outside of the pool and
 * their transfers. For these only. */
#ifndef WEFT_KV_SWAP_PARTS_H
#define WEFT_KV_SWAP_PARTS_H

#include <pthread.h>

#include "kv/pool.h"
#include "kv/swap.h"

/* A page outside of the pool. */
typedef struct weft__kv_swap_page {
    int32_t n_holders;    /* entries of records, and transfers */
    int64_t slot;         /* in the file; -1: none */
    weft__kv_swap_io *io; /* its copy, while it is written; the store only reads it */
    int written;
    uint64_t seed, sum;
} weft__kv_swap_page;

/* An entry of a parked block table: in the tree, outside, or, with neither, lost. */
typedef struct weft__kv_swap_entry {
    int32_t page; /* -1: not in the tree */
    weft__kv_swap_page *out;
    int asked, filled; /* since it was begun */
} weft__kv_swap_entry;

struct weft__kv_parked {
    weft__kv_parked *next, *prev;
    weft__kv_pool *pool;                                                    /* of its pages */
    int32_t n;                                                              /* tokens */
    int32_t first[WEFT__KV_SNAPSHOT_GROUPS], end[WEFT__KV_SNAPSHOT_GROUPS]; /* entries */
    weft__kv_swap_entry *entry[WEFT__KV_SNAPSHOT_GROUPS];                   /* [end - first] */
    weft__kv_seq *seq;           /* begun: whose pages are filled; NULL: not */
    int32_t n_wanted, n_missing; /* tokens; entries that are not filled */
    int lost;
    uint64_t begun_ns, came_ns, n_bytes; /* that come from outside */
};

/* A transfer. */
typedef struct weft__kv_swap_move {
    struct weft__kv_swap_move *next, *next_moving;
    weft__kv_swap_page *page;
    weft__kv_swap_io *io;
    weft__kv_parked *parked; /* a read: for whom; NULL: nobody any more */
    int group, reads;
    int32_t entry;
} weft__kv_swap_move;

typedef struct weft__kv_swap_rate {
    double bytes, ns; /* of late */
} weft__kv_swap_rate;

struct weft__kv_swap {
    weft__kv_pool *pool; /* the first of those that share */
    weft__kv_store *store;
    void (*news)(void *arg);
    void *arg;
    uint64_t slot_bytes, seed;
    int64_t n_slots, n_begun_slots, n_used; /* all there may be; [0, n_begun_slots) were used */
    int64_t *free;                          /* [n_free] of these */
    size_t n_free, free_capacity;
    weft__kv_parked *parked;
    weft__kv_swap_move *moving;                 /* that the store has */
    weft__kv_swap_move *arrived, *arrived_last; /* read, and to be copied */
    uint64_t read_bytes;                        /* of those that are read */
    uint32_t n_declined;
    uint64_t n_changes; /* of sequences that were begun */
    int32_t n_begun;
    weft__kv_swap_rate in, out;
    weft__kv_swap_stats stats;
    pthread_mutex_t lock;
    weft__kv_swap_move *done; /* under the lock, the last one first */
};

static inline void weft__kv_swap_rate_add(weft__kv_swap_rate *r, uint64_t bytes, uint64_t ns)
{
    r->bytes = 0.75 * r->bytes + (double)bytes;
    r->ns = 0.75 * r->ns + (double)ns;
}

/* Copies a page of the pool, and has it written. NULL: it is lost. The caller holds it. */
weft__kv_swap_page *weft__kv_swap_copy_out(weft__kv_swap *w, const weft__kv_pool *pool, int group, int32_t page);
/* One holder less. NULL is fine. */
void weft__kv_swap_let_go(weft__kv_swap *w, weft__kv_swap_page *p);
/* The store's weft__kv_swap_done. */
void weft__kv_swap_done_with(void *arg, weft__kv_swap_io *io);
/* After the store was closed: forgets all transfers; what it still has, it frees. */
void weft__kv_swap_close(weft__kv_swap *w);

#endif
