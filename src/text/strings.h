// SPDX-License-Identifier: Apache-2.0
/* strings.h: an append-only list of byte strings with a hash table over them.
 *
 * Invariant: string i keeps its index; each is followed by a NUL. Of equal strings only the first one put into the
 * table is found. The hash is keyed with a secret of this process, so that a prepared file cannot make it slow.
 * Zero-initialise. One writer; any number of readers while there is no writing. */
#ifndef WEFT_TEXT_STRINGS_H
#define WEFT_TEXT_STRINGS_H

#include <stddef.h>
#include <stdint.h>

typedef struct weft__strings_slot {
    uint32_t hash;
    int32_t index; /* -1: free */
} weft__strings_slot;

typedef struct weft__strings {
    char *bytes;
    size_t n_bytes, bytes_capacity;
    size_t *at; /* [n + 1] where each begins; the last is the end */
    size_t n, at_capacity;
    weft__strings_slot *slots;
    size_t n_slots, n_found; /* n_slots is 0 or a power of two, at least 2 n_found */
    uint64_t secret;
} weft__strings;

/* A hash of s[0..n). */
uint64_t weft__strings_hash(const char *s, size_t n, uint64_t secret);

/* Appends s[0..n) as string number strings->n; with `findable`, puts it into the table unless an equal one is there.
 * Returns 1, or 0 when memory runs out (also beyond 2^31 - 1 strings). */
int weft__strings_add(weft__strings *strings, const char *s, size_t n, int findable);
/* The index of the findable string equal to s[0..n), or -1. */
int32_t weft__strings_find(const weft__strings *strings, const char *s, size_t n);
void weft__strings_free(weft__strings *strings);

static inline const char *weft__strings_data(const weft__strings *strings, size_t i)
{
    return strings->bytes + strings->at[i];
}

static inline size_t weft__strings_len(const weft__strings *strings, size_t i)
{
    return strings->at[i + 1] - strings->at[i] - 1;
}

#endif
