// SPDX-License-Identifier: Apache-2.0
/* prefix.h: the prefix tree: which pages hold which tokens, so that a request begins where an earlier one has been.
 *
 * A root per key; below it, edges are blocks of token ids (as long as the largest page of any group; the last block of
 * a path may be shorter), compared id by id. Children of a node are sorted and none is a prefix of another, so the
 * longest match is found by bisection: O(tokens · log children). A node holds the pages of its block: always those of
 * groups with full attention; of a sliding-window group those that were still there when it was inserted and were not
 * evicted since. A match that ends at n needs the window's pages before n, and is shortened to the longest prefix that
 * has them.
 *
 * Sequences attach to the tree's pages by reference, so what is in use is pinned. Pages that only the tree holds are
 * idle; under page pressure (weft__kv_page_take finds none free) the one idle for longest goes, O(1): a sliding-window
 * page alone, a page of full attention with its node and all below it. Descendants become idle before their ancestors,
 * so that is a leaf in practice.
 *
 * Invariant: the page of a node holds what evaluating the tokens on the path from its root produces; it is never
 * written while it is in the tree (copy-on-write, kv.h). No sequence depends on the tree: evicting and forgetting are
 * always safe. Owner: the engine thread. Nothing here is thread-safe. */
#ifndef WEFT_KV_PREFIX_H
#define WEFT_KV_PREFIX_H

#include "kv/kv.h"

typedef struct weft__kv_prefix weft__kv_prefix;

/* What pages depend on besides tokens: a 128-bit hash of (model, adapter's content, scale, version), and of the tenant
 * where prefixes are not shared between tenants. Two things with one key share pages, so where an adversary picks a
 * part of it, it must be the beginning of a cryptographic hash. */
typedef struct weft__kv_key {
    uint64_t word[2];
} weft__kv_key;

typedef struct weft__kv_prefix_stats {
    uint64_t n_lookups, n_hits;                /* matches asked for; those that found something */
    uint64_t tokens_asked, tokens_reused;      /* of these */
    uint64_t n_evicted_nodes, n_evicted_pages; /* under pressure; pages of all groups */
    int64_t n_nodes, n_roots;                  /* now */
    int64_t n_tokens;                          /* now, in all nodes */
} weft__kv_prefix_stats;

/* One tree per pool: it answers the pool's page pressure. The pool outlives it. WEFT_NO_MEMORY, WEFT_STATE (the pool
 * has one). */
weft_status weft__kv_prefix_create(weft__kv_pool *pool, weft__kv_prefix **out, weft_error *err);
void weft__kv_prefix_destroy(weft__kv_prefix **prefix);

/* Attaches the longest known prefix of tokens[0, n) to `seq`, which is empty and of the tree's pool: afterwards its
 * length is the returned number of tokens, 0..n, and it goes on from there. Takes no page. For logits of the last
 * token, pass n - 1. *hits (or NULL) receives how often a match has ended in the same node, this one included; 0 when
 * nothing was found. */
int32_t weft__kv_prefix_match(weft__kv_prefix *prefix, weft__kv_key root, const int32_t *tokens, int32_t n,
                              weft__kv_seq *seq, uint32_t *hits);
/* What weft__kv_prefix_match would return for a sequence with room for n tokens; changes nothing. */
int32_t weft__kv_prefix_peek(const weft__kv_prefix *prefix, weft__kv_key root, const int32_t *tokens, int32_t n);

/* Makes what `seq` holds for its first n tokens known, n <= its length; tokens[0, n) are those that it evaluated. Pages
 * are shared from now on, none is copied or taken; where the tree has a page of the same content already, seq gets that
 * one instead of its own (so views of it end). Returns how many leading tokens a match would find now: less than n when
 * memory ran out, which is no error since a cache may forget, or when a window before n was let go of already. Insert
 * after each chunk of a prompt to keep the pages of sliding windows at all chunk ends; otherwise once, before the
 * sequence of a finished request is destroyed. */
int32_t weft__kv_prefix_insert(weft__kv_prefix *prefix, weft__kv_key root, const int32_t *tokens, int32_t n,
                               weft__kv_seq *seq);

/* Forgets all below one root (an adapter that is gone), or everything when root is NULL. */
void weft__kv_prefix_forget(weft__kv_prefix *prefix, const weft__kv_key *root);
void weft__kv_prefix_get_stats(const weft__kv_prefix *prefix, weft__kv_prefix_stats *out);

#endif
