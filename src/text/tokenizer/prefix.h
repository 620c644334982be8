// SPDX-License-Identifier: Apache-2.0
/* prefix.h: which of a set of strings a text begins with.
 *
 * The strings are sorted; walking down a text narrows a range of them byte by byte through binary searches, so a walk
 * costs O(length of the longest string it meets * log of their number) and the index two words per string. Invariant:
 * no two strings are equal; the strings are borrowed. Immutable after build. */
#ifndef WEFT_TEXT_PREFIX_H
#define WEFT_TEXT_PREFIX_H

#include <stddef.h>
#include <stdint.h>

#include "text/strings.h"

typedef struct weft__tok_prefix_index {
    const weft__strings *strings;
    int32_t *ids; /* [n] sorted by text */
    size_t n;
    uint32_t root[257]; /* root[c] .. root[c + 1]: the range of strings that begin with byte c */
} weft__tok_prefix_index;

/* Indexes the strings `ids[0..n)`, whose array is taken over in any case. Of equal strings the lowest id is kept; empty
 * ones are dropped. */
void weft__tok_prefix_build(weft__tok_prefix_index *index, const weft__strings *strings, int32_t *ids, size_t n);
void weft__tok_prefix_free(weft__tok_prefix_index *index);

/* A walk: all strings of ids[lo..hi) begin with the `depth` bytes walked so far. */
typedef struct weft__tok_prefix_walk {
    size_t lo, hi, depth;
} weft__tok_prefix_walk;

static inline weft__tok_prefix_walk weft__tok_prefix_start(const weft__tok_prefix_index *index)
{
    return (weft__tok_prefix_walk){0, index->n, 0};
}

/* Walks on by byte c. Returns 1 while some string goes that way; *id is then the string that ends here, or -1. */
int weft__tok_prefix_step(const weft__tok_prefix_index *index, weft__tok_prefix_walk *walk, unsigned char c,
                          int32_t *id);

/* The longest string that s[0..n) begins with, and its length; -1 when there is none. */
int32_t weft__tok_prefix_longest(const weft__tok_prefix_index *index, const char *s, size_t n, size_t *len);

#endif
