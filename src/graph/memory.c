// SPDX-License-Identifier: Apache-2.0
/* memory.c: which bytes of an arena each tensor gets, so that tensors whose lives do not overlap share. Reentrant; no
 * state. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "graph/internal.h"

enum { ALIGN = 64 };

typedef struct memory_slot {
    weft__graph_lifetime *item;
    int32_t index;
} memory_slot;

/* Largest first; equal ones in the order given. */
static int by_size(const void *a, const void *b)
{
    const memory_slot *x = a, *y = b;
    if (x->item->n_bytes != y->item->n_bytes) return x->item->n_bytes > y->item->n_bytes ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static int overlap_in_time(const weft__graph_lifetime *a, const weft__graph_lifetime *b)
{
    return a->begin <= b->end && b->begin <= a->end;
}

static uint64_t rounded(uint64_t n)
{
    return (n + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
}

/* Where `item` goes among those in placed[0..n), which are in order of offset: the smallest sufficient gap between the
 * ones that are alive with it, or behind the last of them. */
static uint64_t best_gap(const weft__graph_lifetime *item, weft__graph_lifetime *const *placed, int32_t n)
{
    uint64_t need = rounded(item->n_bytes), at = 0, best = UINT64_MAX, best_size = UINT64_MAX;
    for (int32_t i = 0; i < n; i++) {
        if (!overlap_in_time(item, placed[i])) continue;
        uint64_t begin = placed[i]->offset, end = begin + rounded(placed[i]->n_bytes);
        if (begin > at && begin - at >= need && begin - at < best_size) {
            best = at;
            best_size = begin - at;
        }
        if (end > at) at = end;
    }
    return best != UINT64_MAX ? best : at;
}

static void insert_by_offset(weft__graph_lifetime **placed, int32_t n, weft__graph_lifetime *item)
{
    int32_t i = n;
    for (; i > 0 && placed[i - 1]->offset > item->offset; i--) placed[i] = placed[i - 1];
    placed[i] = item;
}

weft_status weft__graph_plan_memory(weft__graph_lifetime *items, int32_t n, uint64_t *total, uint64_t *without_reuse,
                                    weft_error *err)
{
    uint64_t sum = 0;
    *total = *without_reuse = 0;
    for (int32_t i = 0; i < n; i++) {
        uint64_t bytes;
        if (!weft__checked_align(items[i].n_bytes, ALIGN, &bytes) || !weft__checked_add(sum, bytes, &sum))
            return weft_fail(err, WEFT_LIMIT, "the activations need more bytes than can be counted; use smaller steps");
    }
    memory_slot *slots = weft__alloc_array((size_t)n, sizeof *slots);
    weft__graph_lifetime **placed = weft__alloc_array((size_t)n, sizeof *placed);
    if (!slots || !placed) {
        weft__free(placed);
        weft__free(slots);
        return weft_fail(err, WEFT_NO_MEMORY, "no memory to plan %d tensors", n);
    }
    for (int32_t i = 0; i < n; i++) slots[i] = (memory_slot){&items[i], i};
    qsort(slots, (size_t)n, sizeof *slots, by_size);
    int32_t n_placed = 0;
    for (int32_t i = 0; i < n; i++) {
        weft__graph_lifetime *item = slots[i].item;
        item->offset = 0;
        if (item->n_bytes == 0) continue;
        item->offset = best_gap(item, placed, n_placed);
        insert_by_offset(placed, n_placed++, item);
        if (item->offset + rounded(item->n_bytes) > *total) *total = item->offset + rounded(item->n_bytes);
    }
    *without_reuse = sum;
    weft__free(placed);
    weft__free(slots);
    return WEFT_OK;
}
