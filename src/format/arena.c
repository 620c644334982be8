// SPDX-License-Identifier: Apache-2.0
/* arena.c: a chain of blocks that double in size; a request too large for that gets a block of its own size.
 * Invariant: blocks before the last are never taken from again. One thread at a time. */
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "format/arena.h"

#define FIRST_BLOCK ((size_t)4096)
#define LARGEST_BLOCK ((size_t)1 << 20)

struct weft__arena_block {
    weft__arena_block *before;
    size_t used, capacity;
    _Alignas(max_align_t) unsigned char bytes[];
};

void *weft__arena_take(weft__arena *arena, size_t n_bytes)
{
    const size_t align = _Alignof(max_align_t);
    weft__arena_block *b = arena->last;
    if (n_bytes > SIZE_MAX / 2) return NULL;
    n_bytes = (n_bytes + align - 1) & ~(align - 1);
    if (!b || n_bytes > b->capacity - b->used) {
        size_t capacity = b ? b->capacity * 2 : FIRST_BLOCK;
        if (capacity > LARGEST_BLOCK) capacity = LARGEST_BLOCK;
        if (capacity < n_bytes) capacity = n_bytes;
        weft__arena_block *fresh = weft__alloc(sizeof *fresh + capacity);
        if (!fresh) return NULL;
        *fresh = (weft__arena_block){.before = b, .used = 0, .capacity = capacity};
        arena->last = b = fresh;
    }
    void *p = b->bytes + b->used;
    b->used += n_bytes;
    return p;
}

void *weft__arena_array(weft__arena *arena, size_t n, size_t size)
{
    size_t total;
    return __builtin_mul_overflow(n, size, &total) ? NULL : weft__arena_take(arena, total);
}

char *weft__arena_string(weft__arena *arena, const char *s, size_t n)
{
    char *p = n < SIZE_MAX ? weft__arena_take(arena, n + 1) : NULL;
    if (!p) return NULL;
    memcpy(p, s, n);
    p[n] = 0;
    return p;
}

void weft__arena_free(weft__arena *arena)
{
    for (weft__arena_block *b = arena->last; b;) {
        weft__arena_block *before = b->before;
        weft__free(b);
        b = before;
    }
    arena->last = NULL;
}
