// SPDX-License-Identifier: Apache-2.0
/* arena.h: memory that is taken piece by piece and freed all at once; a template has one, and so has each rendering.
 * Not thread-safe. */
#ifndef WEFT_TEXT_JINJA_ARENA_H
#define WEFT_TEXT_JINJA_ARENA_H

#include <stddef.h>

typedef struct weft__jinja_arena_block weft__jinja_arena_block;

typedef struct weft__jinja_arena {
    weft__jinja_arena_block *blocks; /* newest first */
    char *at, *end;                  /* what is left of the newest small block */
    size_t total, limit;             /* bytes taken from the heap, and how many may be */
    int over;                        /* the last failure was the limit, not the heap */
} weft__jinja_arena;

void weft__jinja_arena_init(weft__jinja_arena *a, size_t limit);
void weft__jinja_arena_free(weft__jinja_arena *a);
/* n bytes, aligned to 16, not cleared; NULL when the heap or the limit has no more. */
void *weft__jinja_arena_alloc(weft__jinja_arena *a, size_t n);
/* Makes the piece p of old_n bytes, the start of which is kept, n bytes long (n >= old_n): in place when it was the
 * last one. */
void *weft__jinja_arena_grow(weft__jinja_arena *a, void *p, size_t old_n, size_t n);

#endif
