// SPDX-License-Identifier: Apache-2.0
/* merge.h: the merging of neighbouring symbols, best pair first, that both kinds of BPE share.
 *
 * Symbols form a linked list; candidate pairs lie in a heap ordered by rank, then by position. An entry whose symbols
 * have changed since is skipped when it comes up. O(n log n) for n symbols. A merger is scratch memory of one call;
 * zero-initialise it, free it at the end. One thread. */
#ifndef WEFT_TEXT_MERGE_H
#define WEFT_TEXT_MERGE_H

#include <stddef.h>
#include <stdint.h>

typedef struct weft__tok_symbol {
    uint32_t start, len; /* bytes of the piece; len 0: merged into the one before */
    int32_t prev, next;  /* -1: none */
    int32_t id;          /* what the vocabulary calls it; -1: it has no such symbol */
} weft__tok_symbol;

typedef struct weft__tok_candidate {
    uint64_t order; /* rank, then the left symbol: the lowest is merged first */
    int32_t right;
    int32_t id;   /* of the merged symbol */
    uint32_t len; /* of both together when it was found; a sum that changed since tells a stale entry */
} weft__tok_candidate;

typedef struct weft__tok_merger {
    weft__tok_symbol *symbols;
    size_t n_symbols, symbols_capacity;
    weft__tok_candidate *heap;
    size_t n_heap, heap_capacity;
} weft__tok_merger;

/* Whether two neighbours may become one: 1 and the pair's rank (lower first) and id, or 0. */
typedef int (*weft__tok_pair_fn)(const void *arg, const weft__tok_symbol *left, const weft__tok_symbol *right,
                                 uint32_t *rank, int32_t *id);

/* Appends a symbol at the end of the list. 0 when memory runs out. */
int weft__tok_merger_add(weft__tok_merger *m, uint32_t start, uint32_t len, int32_t id);
/* Merges until no pair is left. Symbol 0 stays the first of the list. 0 when memory runs out. */
int weft__tok_merger_run(weft__tok_merger *m, weft__tok_pair_fn pair, const void *arg);
/* Empties it and keeps the memory. */
void weft__tok_merger_clear(weft__tok_merger *m);
void weft__tok_merger_free(weft__tok_merger *m);

#endif
