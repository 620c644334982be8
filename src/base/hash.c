// SPDX-License-Identifier: Apache-2.0
/* hash.c: see hash.h. libxxhash does the work; its state lies in the caller's memory, so that nothing is allocated
 * here. Reentrant. */
#define XXH_STATIC_LINKING_ONLY /* shows the state's size */
#include <xxhash.h>

#include "base/hash.h"

_Static_assert(sizeof(XXH3_state_t) <= sizeof(weft__hash_state), "weft__hash_state is too small for libxxhash's state");

static XXH3_state_t *state_of(weft__hash_state *h)
{
    return (XXH3_state_t *)(void *)h->state;
}

uint64_t weft__hash(const void *bytes, size_t n)
{
    return XXH3_64bits(bytes, n);
}

void weft__hash_begin(weft__hash_state *h)
{
    XXH3_INITSTATE(state_of(h));
    XXH3_64bits_reset(state_of(h));
}

void weft__hash_add(weft__hash_state *h, const void *bytes, size_t n)
{
    XXH3_64bits_update(state_of(h), bytes, n);
}

uint64_t weft__hash_end(const weft__hash_state *h)
{
    return XXH3_64bits_digest((const XXH3_state_t *)(const void *)h->state);
}
