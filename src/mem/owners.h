// SPDX-License-Identifier: Apache-2.0
/* owners.h: which part of the process has which memory: every host buffer and every mapped file is in one list, with
 * its owner. For those who count what is resident, and for keeping it there. Thread-safe. */
#ifndef WEFT_MEM_OWNERS_H
#define WEFT_MEM_OWNERS_H

#include <stddef.h>

#include "weft/buffer.h"
#include "weft/error.h"

typedef enum weft__mem_owner {
    WEFT__MEM_SCRATCH, /* of buffers of which nothing else is said */
    WEFT__MEM_WEIGHTS, /* and of mapped files */
    WEFT__MEM_PAGES,
    WEFT__MEM_ADAPTERS,
    WEFT__MEM_OWNERS
} weft__mem_owner;

/* A place in the list, within what describes a buffer. */
typedef struct weft__mem_range {
    struct weft__mem_range *prev, *next;
    const weft_buffer *buffer;
    const void *base;
    size_t n_bytes;
    weft__mem_owner owner;
    int is_heap; /* not mapped by itself */
} weft__mem_range;

/* For host.c and map.c: from creation to release. */
void weft__mem_range_add(weft__mem_range *r);
void weft__mem_range_remove(weft__mem_range *r);

/* A buffer that is not in the list is left alone. */
void weft__mem_set_owner(const weft_buffer *b, weft__mem_owner owner);
/* Copies at most `capacity` of them; returns how many there are. prev and next of the copies mean nothing. */
size_t weft__mem_ranges(weft__mem_range *out, size_t capacity);
/* Weights and pages that there are now stay in memory, as far as they have been used, until they are released.
 * WEFT_LIMIT names the limit and what raises it. */
weft_status weft__mem_lock(weft_error *err);

#endif
