// SPDX-License-Identifier: Apache-2.0
/* prefix_node.h: nodes of the prefix tree: their tokens, pages and sorted children. For prefix.c only.
 *
 * Invariant: children are sorted by their tokens (lexicographic, a prefix before what continues it), and none is a
 * prefix of another. A node with children is full: block tokens. Full-attention groups have all pages that n_tokens
 * need. Owner: the engine thread. */
#ifndef WEFT_KV_PREFIX_NODE_H
#define WEFT_KV_PREFIX_NODE_H

#include "kv/pool.h"
#include "kv/prefix.h"

/* Where the pages of each group stand in a node. */
typedef struct weft__kv_prefix_shape {
    weft__kv_pool *pool;
    int32_t block;   /* tokens of a full node */
    int32_t n_slots; /* pages of a full node, all groups */
    int32_t *slot;   /* [n_groups] first slot of each group */
} weft__kv_prefix_shape;

typedef struct weft__kv_prefix_node weft__kv_prefix_node;
struct weft__kv_prefix_node {
    weft__kv_prefix_node *parent; /* NULL: a root */
    weft__kv_prefix_node **child;
    size_t n_child, child_capacity;
    weft__kv_key key; /* of a root */
    uint32_t hits;
    int32_t n_tokens; /* 0: a root */
    int32_t *tokens;  /* [block], behind this struct */
    int32_t *pages;   /* [n_slots], likewise; -1: none */
};

/* A node without tokens, pages and place; freed by weft__kv_prefix_node_free, which gives its pages back. NULL: no
 * memory. */
weft__kv_prefix_node *weft__kv_prefix_node_new(const weft__kv_prefix_shape *shape);
void weft__kv_prefix_node_free(const weft__kv_prefix_shape *shape, weft__kv_prefix_node **node);

/* Leading tokens that a and b share. */
int32_t weft__kv_prefix_common(const int32_t *a, int32_t n_a, const int32_t *b, int32_t n_b);
/* Index of the first child not before tokens[0, n). */
size_t weft__kv_prefix_find(const weft__kv_prefix_node *node, const int32_t *tokens, int32_t n);
/* Puts `child` before child number `at`. 0: no memory. */
int weft__kv_prefix_attach(weft__kv_prefix_node *parent, size_t at, weft__kv_prefix_node *child);
/* Takes it out of its parent's list. */
void weft__kv_prefix_detach(weft__kv_prefix_node *child);

/* The node's page of entry i of a sequence's block table of group g, where entry i lies inside the node's block. */
static inline int32_t *weft__kv_prefix_page(const weft__kv_prefix_shape *shape, weft__kv_prefix_node *node, int g,
                                            int32_t i)
{
    int32_t per_node = shape->block / shape->pool->groups[g].spec.page_tokens;
    return &node->pages[shape->slot[g] + (i & (per_node - 1))];
}

#endif
