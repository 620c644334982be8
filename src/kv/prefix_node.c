// SPDX-License-Identifier: Apache-2.0
/* prefix_node.c: nodes of the prefix tree (prefix_node.h).
 * Owner: the engine thread. */
#include "kv/prefix_node.h"

#include <string.h>

#include "base/alloc.h"

weft__kv_prefix_node *weft__kv_prefix_node_new(const weft__kv_prefix_shape *shape)
{
    size_t n = (size_t)shape->block + (size_t)shape->n_slots;
    weft__kv_prefix_node *node = weft__alloc(sizeof *node + n * sizeof(int32_t));
    if (!node) return NULL;
    *node = (weft__kv_prefix_node){.tokens = (int32_t *)(node + 1)};
    node->pages = node->tokens + shape->block;
    for (int32_t i = 0; i < shape->n_slots; i++) node->pages[i] = -1;
    return node;
}

void weft__kv_prefix_node_free(const weft__kv_prefix_shape *shape, weft__kv_prefix_node **p)
{
    weft__kv_prefix_node *node = *p;
    if (!node) return;
    for (int g = 0; g < shape->pool->n_groups; g++) {
        int32_t end = g + 1 < shape->pool->n_groups ? shape->slot[g + 1] : shape->n_slots;
        for (int32_t s = shape->slot[g]; s < end; s++)
            if (node->pages[s] >= 0) weft__kv_page_disown(shape->pool, g, node->pages[s]);
    }
    weft__free(node->child);
    weft__free(node);
    *p = NULL;
}

int32_t weft__kv_prefix_common(const int32_t *a, int32_t n_a, const int32_t *b, int32_t n_b)
{
    int32_t n = n_a < n_b ? n_a : n_b, i = 0;
    while (i < n && a[i] == b[i]) i++;
    return i;
}

/* Does the node's block stand before tokens[0, n)? */
static int before(const weft__kv_prefix_node *node, const int32_t *tokens, int32_t n)
{
    int32_t same = weft__kv_prefix_common(node->tokens, node->n_tokens, tokens, n);
    if (same == n) return 0;
    return same == node->n_tokens || node->tokens[same] < tokens[same];
}

size_t weft__kv_prefix_find(const weft__kv_prefix_node *node, const int32_t *tokens, int32_t n)
{
    size_t low = 0, high = node->n_child;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (before(node->child[middle], tokens, n)) low = middle + 1;
        else high = middle;
    }
    return low;
}

int weft__kv_prefix_attach(weft__kv_prefix_node *parent, size_t at, weft__kv_prefix_node *child)
{
    if (!weft__grow(&parent->child, &parent->child_capacity, parent->n_child + 1, sizeof *parent->child)) return 0;
    memmove(parent->child + at + 1, parent->child + at, (parent->n_child - at) * sizeof *parent->child);
    parent->child[at] = child;
    parent->n_child++;
    child->parent = parent;
    return 1;
}

void weft__kv_prefix_detach(weft__kv_prefix_node *child)
{
    weft__kv_prefix_node *parent = child->parent;
    size_t at = weft__kv_prefix_find(parent, child->tokens, child->n_tokens);
    parent->n_child--;
    memmove(parent->child + at, parent->child + at + 1, (parent->n_child - at) * sizeof *parent->child);
    child->parent = NULL;
}
