/* kv.h: pages of keys and values, and the block tables of sequences.
 *
 * A pool holds a fixed number of pages per group, in one buffer each; taking and returning a page is O(1). A sequence is one block
 * table per group. Pages carry reference counts, so that sequences can share a prefix.
 * Invariant: a page is on the free list exactly when its count is 0; a sequence holds pages for all its positions, except that
 * sliding-window groups may have dropped those that no later position can see.
 * Owner: the engine thread. Nothing here is thread-safe. */
#ifndef WEFT_KV_KV_H
#define WEFT_KV_KV_H

#include "weft/graph.h"

typedef struct weft__kv_pool weft__kv_pool;
typedef struct weft__kv_seq weft__kv_seq;

/* dtype WEFT_F16 or WEFT_F32; n_pages[g] pages for group g. Pages are zeroed, so that unused slots are finite. */
weft_status weft__kv_pool_create(const weft_kv_group *groups, int n_groups, const int32_t *n_pages, uint32_t dtype,
                                 weft__kv_pool **out, weft_error *err);
void weft__kv_pool_destroy(weft__kv_pool **pool);
const weft_kv_binding *weft__kv_pool_bindings(const weft__kv_pool *pool); /* [n_groups] */
int32_t weft__kv_pool_free_pages(const weft__kv_pool *pool, int group);

/* Pages that one sequence of n_ctx tokens needs in a group when steps have at most max_rows rows. */
int32_t weft__kv_pages_needed(const weft_kv_group *group, int32_t n_ctx, int32_t max_rows);

/* A page with count 1, or -1 when none is free. */
int32_t weft__kv_page_take(weft__kv_pool *pool, int group);
void weft__kv_page_retain(weft__kv_pool *pool, int group, int32_t page);
void weft__kv_page_release(weft__kv_pool *pool, int group, int32_t page);

/* An empty sequence that can grow to n_ctx tokens; allocates its tables now, and nothing later. The pool outlives it. */
weft_status weft__kv_seq_create(weft__kv_pool *pool, int32_t n_ctx, weft__kv_seq **out, weft_error *err);
void weft__kv_seq_destroy(weft__kv_seq **seq);
int32_t weft__kv_seq_length(const weft__kv_seq *seq);
/* Makes room for n more tokens (pages taken, windows dropped); the length is unchanged until weft__kv_seq_advance. On failure
 * (WEFT_LIMIT: context or pool full) the sequence is as before. */
weft_status weft__kv_seq_reserve(weft__kv_seq *seq, int32_t n, weft_error *err);
void weft__kv_seq_advance(weft__kv_seq *seq, int32_t n);
/* Forgets all but the first n tokens; returns how many are kept: n, or 0 when a window needed for continuing at n is gone. */
int32_t weft__kv_seq_trim(weft__kv_seq *seq, int32_t n);
/* Valid until the next reserve or trim. */
weft_seq_view weft__kv_seq_view(const weft__kv_seq *seq);

#endif
