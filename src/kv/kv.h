// SPDX-License-Identifier: Apache-2.0
/* kv.h: pages of keys and values, and the block tables of sequences.
 *
 * A pool holds a fixed number of pages per group, in one buffer each; taking and returning a page is O(1). A sequence
 * is one block table per group. Pages carry reference counts, so that sequences, and the prefix tree (prefix.h), can
 * share a prefix. A sequence writes a page only while it is its only holder: weft__kv_seq_reserve copies it first
 * (copy-on-write). Invariant: a page is on the free list exactly when its count is 0, and idle exactly when the prefix
 * tree alone holds it; a sequence holds pages for all its positions, except that sliding-window groups may have dropped
 * those that no later position can see. Owner: the engine thread. Nothing here is thread-safe. */
#ifndef WEFT_KV_KV_H
#define WEFT_KV_KV_H

#include "weft/graph.h"

typedef struct weft__kv_pool weft__kv_pool;
typedef struct weft__kv_seq weft__kv_seq;

/* dtype WEFT_F16 or WEFT_F32; n_pages[g] pages for group g. Pages are zeroed, so that unused slots are finite. */
weft_status weft__kv_pool_create(const weft_kv_group *groups, int n_groups, const int32_t *n_pages, uint32_t dtype,
                                 weft__kv_pool **out, weft_error *err);
void weft__kv_pool_destroy(weft__kv_pool **pool);
/* From now on the pages of `pool`, of which none was taken yet, take memory that those of `first`, and of all that
 * joined it, leave, and the other way round: in each group as many bytes together as the pages of `first` have, or its
 * limit. Groups are the same, types are not. What one of them has free, the others may take; where nothing is free, the
 * one with most idle bytes gives way. All of them are destroyed together. WEFT_ARGUMENT: other groups. */
weft_status weft__kv_pool_join(weft__kv_pool *pool, weft__kv_pool *first, weft_error *err);
const weft_kv_binding *weft__kv_pool_bindings(const weft__kv_pool *pool); /* [n_groups] */
/* Pages that may be taken without evicting. */
int32_t weft__kv_pool_free_pages(const weft__kv_pool *pool, int group);
/* Pages that sequences or the prefix tree hold; those of them that the tree holds alone. */
int32_t weft__kv_pool_held_pages(const weft__kv_pool *pool, int group);
int32_t weft__kv_pool_idle_pages(const weft__kv_pool *pool, int group);
/* At most n_pages of the group are held from now on, from 1 to all there are; or as many bytes, of all that joined this
 * one. Those beyond it go as soon as the tree holds them alone: with this call, or with the next one after they became
 * idle. Returns how many were evicted. */
int32_t weft__kv_pool_limit(weft__kv_pool *pool, int group, int32_t n_pages);
/* Gives the memory of all free pages, of those that joined as well, back to the system; what takes them later waits for
 * it again. */
void weft__kv_pool_give_back(weft__kv_pool *pool);
/* Pages that are free, or would be after evicting everything that prefix trees alone hold. Exact, for all groups at
 * once, and O(pools that share): a reserve that needs no more than this in every group succeeds. What admission counts
 * with. The same in bytes, of any of the pools that share. */
int32_t weft__kv_pool_available_pages(const weft__kv_pool *pool, int group);
uint64_t weft__kv_pool_available_bytes(const weft__kv_pool *pool, int group);
/* What pages of a group take at most now, of all pools that share. */
uint64_t weft__kv_pool_most_bytes(const weft__kv_pool *pool, int group);
/* The system gives a page its memory when it is first written, and the writer waits for it: long where a virtual
 * machine has to ask its host, and a step may begin many pages (docs/tuning.md). Lets one page have it that was never
 * taken, of a group in which fewer than n_ahead such pages do. 0: there is none. */
int weft__kv_pool_warm(weft__kv_pool *pool, int32_t n_ahead);

/* Bytes of a page, as pools align them; 0: too many to be counted. */
int weft__kv_page_bytes(const weft_kv_group *group, uint32_t dtype, uint64_t *n);
/* Pages that one sequence of n_ctx tokens needs in a group when steps have at most max_rows rows. */
int32_t weft__kv_pages_needed(const weft_kv_group *group, int32_t n_ctx, int32_t max_rows);

/* A page with count 1; evicts from the prefix tree, if there is one, when none is free; -1 when that does not help
 * either. */
int32_t weft__kv_page_take(weft__kv_pool *pool, int group);
void weft__kv_page_retain(weft__kv_pool *pool, int group, int32_t page);
void weft__kv_page_release(weft__kv_pool *pool, int group, int32_t page);

/* An empty sequence that can grow to n_ctx tokens; allocates its tables now, and nothing later. The pool outlives
 * it. */
weft_status weft__kv_seq_create(weft__kv_pool *pool, int32_t n_ctx, weft__kv_seq **out, weft_error *err);
void weft__kv_seq_destroy(weft__kv_seq **seq);
int32_t weft__kv_seq_length(const weft__kv_seq *seq);
/* Makes room for n more tokens (pages taken, windows dropped, a shared last page copied); the length is unchanged until
 * weft__kv_seq_advance. On failure (WEFT_LIMIT: context or pool full) the sequence is as before. */
weft_status weft__kv_seq_reserve(weft__kv_seq *seq, int32_t n, weft_error *err);
/* Pages that reserving n more tokens takes in a group at most, the copy of a shared page included. */
int32_t weft__kv_seq_pages_for(const weft__kv_seq *seq, int group, int32_t n);
void weft__kv_seq_advance(weft__kv_seq *seq, int32_t n);
/* Forgets all but the first n tokens, and gives up what was reserved beyond them; returns how many are kept: n, or 0
 * when a window needed for continuing at n is gone. */
int32_t weft__kv_seq_trim(weft__kv_seq *seq, int32_t n);
/* n more tokens, whose keys and values are copies of whole pages that the sequence holds, the oldest first: what is
 * attended to is no text, and takes the time of one. For measurements of depth. The length is a multiple of every
 * group's page, and not 0 (WEFT_ARGUMENT); fails otherwise as weft__kv_seq_reserve, and has then as many as there was
 * room for. */
weft_status weft__kv_seq_repeat(weft__kv_seq *seq, int32_t n, weft_error *err);
/* Valid until the next reserve, trim or insertion into the prefix tree. */
weft_seq_view weft__kv_seq_view(const weft__kv_seq *seq);

#endif
