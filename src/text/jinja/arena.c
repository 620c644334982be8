// SPDX-License-Identifier: Apache-2.0
/* arena.c: bump allocation in heap blocks (arena.h). Owned by one template or one rendering. */
#include "text/jinja/arena.h"

#include <stdint.h>
#include <string.h>

#include "base/alloc.h"

#define FIRST_BLOCK ((size_t)16 << 10)
#define LAST_BLOCK ((size_t)1 << 20)
#define ALIGN ((size_t)16)

/* Under AddressSanitizer every piece is a heap block of its own, so that it sees accesses outside of one. */
#if defined(__SANITIZE_ADDRESS__)
#define SEPARATE 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SEPARATE 1
#endif
#endif
#ifndef SEPARATE
#define SEPARATE 0
#endif

struct weft__jinja_arena_block {
    weft__jinja_arena_block *next;
    size_t unused; /* keeps the header a multiple of ALIGN */
};

void weft__jinja_arena_init(weft__jinja_arena *a, size_t limit)
{
    memset(a, 0, sizeof *a);
    a->limit = limit;
}

void weft__jinja_arena_free(weft__jinja_arena *a)
{
    while (a->blocks) {
        weft__jinja_arena_block *next = a->blocks->next;
        weft__free(a->blocks);
        a->blocks = next;
    }
    weft__jinja_arena_init(a, a->limit);
}

/* A block with n bytes of room after its header, or NULL. */
static weft__jinja_arena_block *new_block(weft__jinja_arena *a, size_t n)
{
    a->over = 0;
    if (a->total > a->limit || n > a->limit - a->total) {
        a->over = 1;
        return NULL;
    }
    weft__jinja_arena_block *block = weft__alloc(sizeof *block + n);
    if (!block) return NULL;
    a->total += n;
    block->next = a->blocks;
    a->blocks = block;
    return block;
}

void *weft__jinja_arena_alloc(weft__jinja_arena *a, size_t n)
{
    if (n > SIZE_MAX / 2) {
        a->over = 1;
        return NULL;
    }
    n = n ? (n + ALIGN - 1) & ~(ALIGN - 1) : ALIGN;
    if (n <= (size_t)(a->end - a->at)) {
        void *p = a->at;
        a->at += n;
        return p;
    }
    /* Blocks double, so that small renderings stay small; a big piece gets a block of its own and leaves the current
     * one open. */
    size_t size = a->total < FIRST_BLOCK ? FIRST_BLOCK : a->total < LAST_BLOCK ? a->total : LAST_BLOCK;
    if (a->total <= a->limit && size > a->limit - a->total) size = a->limit - a->total;
    int own = SEPARATE || n > size / 4;
    weft__jinja_arena_block *block = new_block(a, own ? n : size);
    if (!block) return NULL;
    char *data = (char *)(block + 1);
    if (own) return data;
    a->at = data + n;
    a->end = data + (size & ~(ALIGN - 1));
    return data;
}

void *weft__jinja_arena_grow(weft__jinja_arena *a, void *p, size_t old_n, size_t n)
{
    size_t old_room = (old_n + ALIGN - 1) & ~(ALIGN - 1);
    if (p && old_room && n <= SIZE_MAX / 2 && (char *)p + old_room == a->at) {
        size_t room = (n + ALIGN - 1) & ~(ALIGN - 1);
        if (room - old_room <= (size_t)(a->end - a->at)) {
            a->at += room - old_room;
            return p;
        }
    }
    void *q = weft__jinja_arena_alloc(a, n);
    if (q && old_n) memcpy(q, p, old_n);
    return q;
}
