// SPDX-License-Identifier: Apache-2.0
/* heap.h: a binary heap of small integers (indices of records), ordered by the caller; each knows its place, so that
 * any can be moved or removed. Not thread-safe. */
#ifndef WEFT_SCHED_HEAP_H
#define WEFT_SCHED_HEAP_H

#include <stdint.h>

typedef struct weft__sched_heap {
    int32_t *items; /* [n], the first one on top; room for as many as there will ever be */
    int32_t *at;    /* [any item]: its place, -1 outside; heaps that never share an item may share the array */
    int32_t n;
    int (*before)(const void *arg, int32_t a, int32_t b); /* a strict order */
    const void *arg;
} weft__sched_heap;

void weft__sched_heap_push(weft__sched_heap *h, int32_t item);
/* Nothing when it is not in the heap. */
void weft__sched_heap_remove(weft__sched_heap *h, int32_t item);
/* After the order of an item in the heap changed. */
void weft__sched_heap_moved(weft__sched_heap *h, int32_t item);

#endif
