// SPDX-License-Identifier: Apache-2.0
/* store_index.c: the list of files, sorted so that the longest match stands beside the place (store_parts.h).
 * Owner: the store, under its lock. */
#include <string.h>

#include "base/alloc.h"
#include "kv/prefix_node.h"
#include "kv/store_parts.h"

/* Neighbours looked at on each side: beyond the nearest one only windows make a difference. */
enum { NEIGHBOURS = 16 };

weft__kv_store_entry *weft__kv_store_entry_new(weft__kv_key root, const int32_t *tokens, int32_t n)
{
    weft__kv_store_entry *e = weft__alloc(sizeof *e + (size_t)n * sizeof *tokens);
    if (!e) return NULL;
    *e = (weft__kv_store_entry){.root = root, .n_tokens = n, .tokens = (int32_t *)(e + 1)};
    memcpy(e->tokens, tokens, (size_t)n * sizeof *tokens);
    return e;
}

static int compare(const weft__kv_store_entry *e, weft__kv_key root, const int32_t *tokens, int32_t n)
{
    for (int i = 0; i < 2; i++)
        if (e->root.word[i] != root.word[i]) return e->root.word[i] < root.word[i] ? -1 : 1;
    int32_t same = weft__kv_prefix_common(e->tokens, e->n_tokens, tokens, n);
    if (same < e->n_tokens && same < n) return e->tokens[same] < tokens[same] ? -1 : 1;
    return e->n_tokens < n ? -1 : e->n_tokens > n;
}

/* The first file not before these tokens. */
static size_t store_index_find(const weft__kv_store_index *x, weft__kv_key root, const int32_t *tokens, int32_t n)
{
    size_t low = 0, high = x->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(x->entry[middle], root, tokens, n) < 0) low = middle + 1;
        else high = middle;
    }
    return low;
}

int weft__kv_store_index_reserve(weft__kv_store_index *x)
{
    return weft__grow(&x->entry, &x->capacity, x->n + 1, sizeof *x->entry);
}

void weft__kv_store_index_use(weft__kv_store_index *x, weft__kv_store_entry *e)
{
    e->used = ++x->clock;
}

void weft__kv_store_index_add(weft__kv_store_index *x, weft__kv_store_entry *e)
{
    size_t at = store_index_find(x, e->root, e->tokens, e->n_tokens);
    memmove(x->entry + at + 1, x->entry + at, (x->n - at) * sizeof *x->entry);
    x->entry[at] = e;
    x->n++;
    x->n_bytes += e->n_bytes;
    if (!e->used) weft__kv_store_index_use(x, e);
    else if (e->used > x->clock) x->clock = e->used;
}

void weft__kv_store_index_remove(weft__kv_store_index *x, weft__kv_store_entry *e)
{
    size_t at = store_index_find(x, e->root, e->tokens, e->n_tokens);
    while (x->entry[at] != e) at++; /* a slot and a prefix may hold the same tokens */
    x->n--;
    memmove(x->entry + at, x->entry + at + 1, (x->n - at) * sizeof *x->entry);
    x->n_bytes -= e->n_bytes;
    weft__free(e);
}

weft__kv_store_entry *weft__kv_store_index_named(const weft__kv_store_index *x, const char *file)
{
    for (size_t i = 0; i < x->n; i++)
        if (!strcmp(x->entry[i]->file, file)) return x->entry[i];
    return NULL;
}

weft__kv_store_entry *weft__kv_store_index_best(const weft__kv_store_index *x, const weft__kv_layout *layout,
                                                weft__kv_key root, const int32_t *tokens, int32_t n, int32_t *serves)
{
    size_t at = store_index_find(x, root, tokens, n), end = at + NEIGHBOURS < x->n ? at + NEIGHBOURS : x->n;
    weft__kv_store_entry *best = NULL;
    *serves = 0;
    for (size_t i = at > NEIGHBOURS ? at - NEIGHBOURS : 0; i < end; i++) {
        weft__kv_store_entry *e = x->entry[i];
        if (e->foreign || memcmp(&e->root, &root, sizeof root)) continue;
        int32_t same = weft__kv_prefix_common(e->tokens, e->n_tokens, tokens, n);
        same = weft__kv_snapshot_usable(layout, e->n_tokens, same);
        if (same > *serves) *serves = same, best = e;
    }
    return best;
}

weft__kv_store_entry *weft__kv_store_index_shorter(const weft__kv_store_index *x, const weft__kv_store_entry *e)
{
    size_t at = store_index_find(x, e->root, e->tokens, e->n_tokens);
    for (size_t i = at; i-- > 0 && i + NEIGHBOURS >= at;) {
        weft__kv_store_entry *other = x->entry[i];
        if (other->slot || memcmp(&other->root, &e->root, sizeof e->root)) continue;
        if (weft__kv_prefix_common(other->tokens, other->n_tokens, e->tokens, e->n_tokens) == other->n_tokens)
            return other;
    }
    return NULL;
}

uint64_t weft__kv_store_index_slots(const weft__kv_store_index *x, int64_t *n_slots)
{
    return weft__kv_store_index_alike(x, "", 0, n_slots);
}

uint64_t weft__kv_store_index_alike(const weft__kv_store_index *x, const char *file, size_t n, int64_t *n_slots)
{
    uint64_t sum = 0;
    *n_slots = 0;
    for (size_t i = 0; i < x->n; i++)
        if (x->entry[i]->slot && !strncmp(x->entry[i]->file, file, n)) sum += x->entry[i]->n_bytes, ++*n_slots;
    return sum;
}

weft__kv_store_entry *weft__kv_store_index_oldest(const weft__kv_store_index *x)
{
    weft__kv_store_entry *oldest = NULL;
    for (size_t i = 0; i < x->n; i++)
        if (!x->entry[i]->slot && (!oldest || x->entry[i]->used < oldest->used)) oldest = x->entry[i];
    return oldest;
}
