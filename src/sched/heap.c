// SPDX-License-Identifier: Apache-2.0
/* heap.c: see heap.h. Invariant: at[items[i]] == i, and no item is before its parent. */
#include "sched/heap.h"

static void place(weft__sched_heap *h, int32_t i, int32_t item)
{
    h->items[i] = item;
    h->at[item] = i;
}

static void rise(weft__sched_heap *h, int32_t i, int32_t item)
{
    for (; i > 0 && h->before(h->arg, item, h->items[(i - 1) / 2]); i = (i - 1) / 2) place(h, i, h->items[(i - 1) / 2]);
    place(h, i, item);
}

static void sink(weft__sched_heap *h, int32_t i, int32_t item)
{
    for (int32_t c; (c = 2 * i + 1) < h->n; i = c) {
        if (c + 1 < h->n && h->before(h->arg, h->items[c + 1], h->items[c])) c++;
        if (!h->before(h->arg, h->items[c], item)) break;
        place(h, i, h->items[c]);
    }
    place(h, i, item);
}

void weft__sched_heap_push(weft__sched_heap *h, int32_t item)
{
    rise(h, h->n++, item);
}

void weft__sched_heap_moved(weft__sched_heap *h, int32_t item)
{
    rise(h, h->at[item], item);
    sink(h, h->at[item], item);
}

void weft__sched_heap_remove(weft__sched_heap *h, int32_t item)
{
    int32_t i = h->at[item];
    if (i < 0) return;
    int32_t last = h->items[--h->n];
    h->at[item] = -1;
    if (last == item) return;
    place(h, i, last);
    weft__sched_heap_moved(h, last);
}
