// SPDX-License-Identifier: Apache-2.0
/* prefix.c: the prefix tree (prefix.h): matching, insertion, eviction.
 * Owner: the engine thread. */
#include "kv/prefix.h"

#include <string.h>

#include "base/alloc.h"
#include "kv/prefix_node.h"

struct weft__kv_prefix {
    weft__kv_prefix_shape shape;
    weft__kv_prefix_node **root; /* sorted by key */
    size_t n_roots, root_capacity;
    weft__kv_prefix_stats stats;
};

/* ---- roots ---- */

static int key_before(weft__kv_key a, weft__kv_key b)
{
    return a.word[0] != b.word[0] ? a.word[0] < b.word[0] : a.word[1] < b.word[1];
}

/* The first root whose key is not before `key`; *same: it is that key's. */
static size_t find_root(const weft__kv_prefix *p, weft__kv_key key, int *same)
{
    size_t low = 0, high = p->n_roots;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (key_before(p->root[middle]->key, key)) low = middle + 1;
        else high = middle;
    }
    *same = low < p->n_roots && !key_before(key, p->root[low]->key);
    return low;
}

static weft__kv_prefix_node *root_of(const weft__kv_prefix *p, weft__kv_key key)
{
    int same;
    size_t at = find_root(p, key, &same);
    return same ? p->root[at] : NULL;
}

static weft__kv_prefix_node *make_root(weft__kv_prefix *p, weft__kv_key key)
{
    int same;
    size_t at = find_root(p, key, &same);
    if (same) return p->root[at];
    if (!weft__grow(&p->root, &p->root_capacity, p->n_roots + 1, sizeof *p->root)) return NULL;
    weft__kv_prefix_node *root = weft__kv_prefix_node_new(&p->shape);
    if (!root) return NULL;
    root->key = key;
    memmove(p->root + at + 1, p->root + at, (p->n_roots - at) * sizeof *p->root);
    p->root[at] = root;
    p->n_roots++;
    return root;
}

/* ---- taking nodes away ---- */

static void remove_leaf(weft__kv_prefix *p, weft__kv_prefix_node *node)
{
    if (node->parent) {
        weft__kv_prefix_detach(node);
        p->stats.n_nodes--;
        p->stats.n_tokens -= node->n_tokens;
    } else {
        int same;
        size_t at = find_root(p, node->key, &same);
        p->n_roots--;
        memmove(p->root + at, p->root + at + 1, (p->n_roots - at) * sizeof *p->root);
    }
    weft__kv_prefix_node_free(&p->shape, &node);
}

/* Can no match end in this node? The page of its last position is gone, which the next position would see. */
static int useless(const weft__kv_prefix *p, weft__kv_prefix_node *node)
{
    for (int g = 0; g < p->shape.pool->n_groups; g++) {
        const weft_kv_group *spec = &p->shape.pool->groups[g].spec;
        if (spec->window > 1 &&
            *weft__kv_prefix_page(&p->shape, node, g, weft__kv_entries(spec, node->n_tokens) - 1) < 0)
            return 1;
    }
    return 0;
}

/* Removes leaves that serve no match, from `node` upwards. */
static void prune(weft__kv_prefix *p, weft__kv_prefix_node *node)
{
    while (node && node->n_child == 0 && (!node->parent || useless(p, node))) {
        weft__kv_prefix_node *parent = node->parent;
        remove_leaf(p, node);
        node = parent;
    }
}

/* Removes `top` and all below it. */
static void remove_tree(weft__kv_prefix *p, weft__kv_prefix_node *top)
{
    weft__kv_prefix_node *above = top->parent, *node = top, *parent;
    do {
        while (node->n_child) node = node->child[node->n_child - 1];
        parent = node->parent;
        remove_leaf(p, node);
        node = parent;
    } while (parent != above);
    prune(p, above);
}

/* Lets one page of a sliding window go; the node stays while it serves. */
static void drop_page(weft__kv_prefix *p, weft__kv_prefix_node *node, int group, int32_t page)
{
    int32_t *slot = node->pages + p->shape.slot[group];
    while (*slot != page) slot++;
    *slot = -1;
    weft__kv_page_disown(p->shape.pool, group, page);
    prune(p, node);
}

static int64_t free_pages(const weft__kv_pool *pool)
{
    int64_t n = 0;
    for (int g = 0; g < pool->n_groups; g++) n += pool->groups[g].n_free;
    return n;
}

/* The pool's weft__kv_reclaim. */
static int evict_one(void *arg, int group)
{
    weft__kv_prefix *p = arg;
    weft__kv_pool *pool = p->shape.pool;
    int32_t page = pool->groups[group].idle_head;
    if (page < 0) return 0;
    int64_t pages = free_pages(pool), nodes = p->stats.n_nodes;
    weft__kv_prefix_node *node = pool->groups[group].owner[page];
    if (pool->groups[group].spec.window > 0) drop_page(p, node, group, page);
    else remove_tree(p, node);
    p->stats.n_evicted_pages += (uint64_t)(free_pages(pool) - pages);
    p->stats.n_evicted_nodes += (uint64_t)(nodes - p->stats.n_nodes);
    return 1;
}

void weft__kv_prefix_forget(weft__kv_prefix *p, const weft__kv_key *key)
{
    if (!key) {
        while (p->n_roots) remove_tree(p, p->root[p->n_roots - 1]);
        return;
    }
    weft__kv_prefix_node *root = root_of(p, *key);
    if (root) remove_tree(p, root);
}

/* ---- matching ---- */

/* The node in which the longest run of known tokens ends, and that run's length; NULL and 0. */
static weft__kv_prefix_node *walk(const weft__kv_prefix *p, weft__kv_key key, const int32_t *tokens, int32_t n,
                                  int32_t *length)
{
    weft__kv_prefix_node *node = root_of(p, key), *deepest = NULL;
    int32_t block = p->shape.block, done = 0;
    while (node && done < n) {
        int32_t left = n - done < block ? n - done : block, best = 0;
        size_t at = weft__kv_prefix_find(node, tokens + done, left);
        weft__kv_prefix_node *next = NULL;
        for (size_t i = at ? at - 1 : 0; i <= at && i < node->n_child;
             i++) { /* the longest match stands beside the place */
            int32_t same =
                weft__kv_prefix_common(node->child[i]->tokens, node->child[i]->n_tokens, tokens + done, left);
            if (same > best) best = same, next = node->child[i];
        }
        if (next) deepest = next;
        done += best;
        node = best == block ? next : NULL;
    }
    *length = done;
    return deepest;
}

/* The last entry of group g that continuing at n needs and the path lacks, or -1. `node` holds position n - 1. */
static int32_t last_missing(const weft__kv_prefix *p, weft__kv_prefix_node *node, int g, int32_t n)
{
    const weft_kv_group *spec = &p->shape.pool->groups[g].spec;
    int32_t first = weft__kv_first_entry(spec, n);
    for (int32_t i = weft__kv_entries(spec, n) - 1; i >= first; i--) {
        if (*weft__kv_prefix_page(&p->shape, node, g, i) < 0) return i;
        if ((int64_t)i * spec->page_tokens % p->shape.block == 0) node = node->parent;
    }
    return -1;
}

/* Shortens a match to where every window is complete; returns the node that holds its last position. */
static weft__kv_prefix_node *usable(const weft__kv_prefix *p, weft__kv_prefix_node *node, int32_t *n)
{
    for (int g = 0; *n > 0 && g < p->shape.pool->n_groups; g++) {
        const weft_kv_group *spec = &p->shape.pool->groups[g].spec;
        int32_t missing = spec->window > 0 ? last_missing(p, node, g, *n) : -1;
        if (missing < 0) continue;
        int32_t shorter = missing * spec->page_tokens; /* a match of any length between needs that entry as well */
        if (shorter > 0)
            for (int32_t b = (*n - 1) / p->shape.block; b > (shorter - 1) / p->shape.block; b--) node = node->parent;
        *n = shorter;
        g = -1; /* the other windows end elsewhere now */
    }
    return *n > 0 ? node : NULL;
}

static weft__kv_prefix_node *match(const weft__kv_prefix *p, weft__kv_key key, const int32_t *tokens, int32_t n,
                                   int32_t *length)
{
    weft__kv_prefix_node *node = walk(p, key, tokens, n, length);
    return usable(p, node, length);
}

int32_t weft__kv_prefix_peek(const weft__kv_prefix *p, weft__kv_key key, const int32_t *tokens, int32_t n)
{
    int32_t length;
    match(p, key, tokens, n, &length);
    return length;
}

int32_t weft__kv_prefix_match(weft__kv_prefix *p, weft__kv_key key, const int32_t *tokens, int32_t n, weft__kv_seq *seq,
                              uint32_t *hits)
{
    weft__kv_pool *pool = p->shape.pool;
    int32_t length;
    if (n > seq->n_ctx) n = seq->n_ctx;
    weft__kv_prefix_node *end = match(p, key, tokens, n, &length);
    p->stats.n_lookups++;
    p->stats.tokens_asked += n > 0 ? (uint64_t)n : 0;
    if (hits) *hits = end ? end->hits + 1 : 0;
    if (!end) return 0;
    end->hits++;
    p->stats.n_hits++;
    p->stats.tokens_reused += (uint64_t)length;
    for (int g = 0; g < pool->n_groups; g++) {
        const weft_kv_group *spec = &pool->groups[g].spec;
        int32_t first = weft__kv_first_entry(spec, length), n_pages = weft__kv_entries(spec, length);
        weft__kv_prefix_node *node = end;
        for (int32_t i = n_pages - 1; i >= first; i--) {
            seq->pages[g][i] = *weft__kv_prefix_page(&p->shape, node, g, i);
            weft__kv_page_retain(pool, g, seq->pages[g][i]);
            if ((int64_t)i * spec->page_tokens % p->shape.block == 0) node = node->parent;
        }
        for (int32_t i = 0; i < first; i++) seq->pages[g][i] = -1;
        seq->n_pages[g] = n_pages;
        seq->n_gone[g] = first;
    }
    seq->length = length;
    return length;
}

/* ---- insertion ---- */

/* What one step of an insertion looks at: n tokens from position `begin` on, one block at most, and the sequence
 * that evaluated them. */
typedef struct piece {
    weft__kv_seq *seq;
    const int32_t *tokens;
    int32_t begin, n;
} piece;

/* Lets node and sequence share a page where both have a whole one, and gives the node what only the sequence has. */
static void merge(weft__kv_prefix *p, weft__kv_prefix_node *node, const piece *c)
{
    weft__kv_pool *pool = p->shape.pool;
    for (int g = 0; g < pool->n_groups; g++) {
        const weft_kv_group *spec = &pool->groups[g].spec;
        int32_t first = c->begin / spec->page_tokens, end = first + weft__kv_entries(spec, c->n);
        for (int32_t i = first; i < end; i++) {
            int32_t *mine = &c->seq->pages[g][i], *theirs = weft__kv_prefix_page(&p->shape, node, g, i);
            int whole = (i - first + 1) * spec->page_tokens <= c->n;
            if (*mine < 0 || *mine == *theirs) continue;
            if (*theirs < 0) {
                if ((whole || c->n == node->n_tokens) && weft__kv_page_own(pool, g, *mine, node)) *theirs = *mine;
            } else if (whole) {
                weft__kv_page_retain(pool, g, *theirs);
                weft__kv_page_release(pool, g, *mine);
                *mine = *theirs;
            }
        }
    }
}

/* Are the piece's pages the sequence's alone to give, and complete where they must be? Another answer means that its
 * tokens are not what it evaluated. */
static int can_give(const weft__kv_prefix *p, weft__kv_prefix_node *node, const piece *c)
{
    weft__kv_pool *pool = p->shape.pool;
    for (int g = 0; g < pool->n_groups; g++) {
        const weft_kv_group *spec = &pool->groups[g].spec;
        int32_t first = c->begin / spec->page_tokens, end = first + weft__kv_entries(spec, c->n);
        for (int32_t i = first; i < end; i++) {
            int32_t page = c->seq->pages[g][i], has = *weft__kv_prefix_page(&p->shape, node, g, i);
            if (page < 0 ? spec->window <= 0 : page != has && pool->groups[g].owner[page] != NULL) return 0;
        }
    }
    return 1;
}

/* Makes the node, new or a shorter beginning of the piece, hold the piece. 0: it cannot. */
static int prefix_fill(weft__kv_prefix *p, weft__kv_prefix_node *node, const piece *c)
{
    weft__kv_pool *pool = p->shape.pool;
    if (!can_give(p, node, c)) return 0;
    for (int g = 0; g < pool->n_groups; g++) {
        const weft_kv_group *spec = &pool->groups[g].spec;
        int32_t first = c->begin / spec->page_tokens, end = first + weft__kv_entries(spec, c->n);
        for (int32_t i = first; i < end; i++) {
            int32_t mine = c->seq->pages[g][i], *slot = weft__kv_prefix_page(&p->shape, node, g, i);
            int was_whole = (i - first + 1) * spec->page_tokens <= node->n_tokens;
            if (mine == *slot || (mine < 0 && was_whole)) continue;
            if (*slot >= 0) weft__kv_page_disown(pool, g, *slot);
            *slot = mine;
            if (mine >= 0) weft__kv_page_own(pool, g, mine, node);
        }
    }
    memcpy(node->tokens, c->tokens, (size_t)c->n * sizeof *c->tokens);
    p->stats.n_tokens += c->n - node->n_tokens;
    node->n_tokens = c->n;
    return 1;
}

/* The child of `parent` that holds the piece now, or NULL. */
static weft__kv_prefix_node *place(weft__kv_prefix *p, weft__kv_prefix_node *parent, const piece *c)
{
    size_t at = weft__kv_prefix_find(parent, c->tokens, c->n);
    weft__kv_prefix_node *node = at < parent->n_child ? parent->child[at] : NULL;
    if (node && weft__kv_prefix_common(node->tokens, node->n_tokens, c->tokens, c->n) == c->n) {
        merge(p, node, c);
        return node;
    }
    node = at > 0 ? parent->child[at - 1] : NULL;
    if (node && weft__kv_prefix_common(node->tokens, node->n_tokens, c->tokens, c->n) == node->n_tokens)
        return prefix_fill(p, node, c) ? node : NULL;
    node = weft__kv_prefix_node_new(&p->shape);
    if (!node) return NULL;
    if (prefix_fill(p, node, c) && weft__kv_prefix_attach(parent, at, node)) {
        p->stats.n_nodes++;
        return node;
    }
    p->stats.n_tokens -= node->n_tokens;
    weft__kv_prefix_node_free(&p->shape, &node);
    return NULL;
}

int32_t weft__kv_prefix_insert(weft__kv_prefix *p, weft__kv_key key, const int32_t *tokens, int32_t n,
                               weft__kv_seq *seq)
{
    int32_t done = 0, block = p->shape.block;
    if (n > seq->length) n = seq->length;
    weft__kv_prefix_node *node = n > 0 ? make_root(p, key) : NULL, *next;
    while (node && done < n) {
        piece c = {seq, tokens + done, done, n - done < block ? n - done : block};
        if (!(next = place(p, node, &c))) break;
        done += c.n;
        node = next;
    }
    prune(p, node);
    return weft__kv_prefix_peek(p, key, tokens, n);
}

/* ---- the whole ---- */

weft_status weft__kv_prefix_create(weft__kv_pool *pool, weft__kv_prefix **out, weft_error *err)
{
    *out = NULL;
    if (pool->reclaim) return weft_fail(err, WEFT_STATE, "this KV pool has a prefix tree already");
    weft__kv_prefix *p = weft__alloc_zero(1, sizeof *p);
    if (!p) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a prefix tree");
    p->shape.pool = pool;
    p->shape.slot = weft__alloc_array((size_t)pool->n_groups, sizeof *p->shape.slot);
    if (!p->shape.slot) {
        weft__free(p);
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for a prefix tree");
    }
    for (int g = 0; g < pool->n_groups; g++)
        if (pool->groups[g].spec.page_tokens > p->shape.block) p->shape.block = pool->groups[g].spec.page_tokens;
    for (int g = 0; g < pool->n_groups; g++) {
        p->shape.slot[g] = p->shape.n_slots;
        p->shape.n_slots += p->shape.block / pool->groups[g].spec.page_tokens;
    }
    pool->reclaim = evict_one;
    pool->reclaim_arg = p;
    *out = p;
    return WEFT_OK;
}

void weft__kv_prefix_destroy(weft__kv_prefix **pp)
{
    weft__kv_prefix *p = pp ? *pp : NULL;
    if (!p) return;
    weft__kv_prefix_forget(p, NULL);
    p->shape.pool->reclaim = NULL;
    weft__free(p->root);
    weft__free(p->shape.slot);
    weft__free(p);
    *pp = NULL;
}

void weft__kv_prefix_get_stats(const weft__kv_prefix *p, weft__kv_prefix_stats *out)
{
    *out = p->stats;
    out->n_roots = (int64_t)p->n_roots;
}
