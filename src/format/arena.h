// SPDX-License-Identifier: Apache-2.0
/* arena.h: many small pieces of memory that live and die together, such as the names and offset tables of one opened
 * file.
 *
 * Invariant: a piece keeps its address until the arena is freed. Zero-initialise. One thread at a time. */
#ifndef WEFT_FORMAT_ARENA_H
#define WEFT_FORMAT_ARENA_H

#include <stddef.h>

typedef struct weft__arena_block weft__arena_block;
typedef struct weft__arena {
    weft__arena_block *last;
} weft__arena;

/* n_bytes, aligned for any object, uninitialised; NULL when memory runs out. */
void *weft__arena_take(weft__arena *arena, size_t n_bytes);
/* The same for n * size bytes; NULL also when that overflows. */
void *weft__arena_array(weft__arena *arena, size_t n, size_t size);
/* A copy of s[0..n) with a NUL behind it. */
char *weft__arena_string(weft__arena *arena, const char *s, size_t n);
void weft__arena_free(weft__arena *arena);

#endif
