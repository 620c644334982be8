// SPDX-License-Identifier: Apache-2.0
/* strings.c: byte strings and their hash table (strings.h). No state of its own. */
#include "text/strings.h"

#include <string.h>

#include "base/alloc.h"
#include "base/random.h"

static uint64_t mix(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t strings_load(const char *s, size_t n)
{
    uint64_t v = 0;
    memcpy(&v, s, n);
    return v;
}

/* Eight bytes at a time through a 64 x 64 -> 128 bit multiplication, folded. */
uint64_t weft__strings_hash(const char *s, size_t n, uint64_t secret)
{
    uint64_t h = secret ^ (n * 0x9E3779B97F4A7C15u);
    for (; n > 8; s += 8, n -= 8) h = mix(h ^ strings_load(s, 8), 0xD6E8FEB86659FD93u);
    if (n) h = mix(h ^ strings_load(s, n), 0xA0761D6478BD642Fu);
    return mix(h, 0xE7037ED1A0B428DBu);
}

/* Where the string with this hash is, or the free slot where it would be. */
static size_t probe(const weft__strings *st, const char *s, size_t n, uint32_t hash)
{
    size_t mask = st->n_slots - 1, i = hash & mask;
    for (;; i = (i + 1) & mask) {
        const weft__strings_slot *slot = &st->slots[i];
        if (slot->index < 0) return i;
        size_t at = (size_t)slot->index;
        if (slot->hash == hash && weft__strings_len(st, at) == n && !memcmp(weft__strings_data(st, at), s, n)) return i;
    }
}

static int rehash(weft__strings *st, size_t n_slots)
{
    weft__strings_slot *slots = weft__alloc_array(n_slots, sizeof *slots);
    if (!slots) return 0;
    for (size_t i = 0; i < n_slots; i++) slots[i].index = -1;
    for (size_t i = 0; i < st->n_slots; i++) {
        if (st->slots[i].index < 0) continue;
        size_t to = st->slots[i].hash & (n_slots - 1);
        while (slots[to].index >= 0) to = (to + 1) & (n_slots - 1);
        slots[to] = st->slots[i];
    }
    weft__free(st->slots);
    st->slots = slots;
    st->n_slots = n_slots;
    return 1;
}

int weft__strings_add(weft__strings *st, const char *s, size_t n, int findable)
{
    size_t need;
    if (st->n >= INT32_MAX || __builtin_add_overflow(st->n_bytes, n + 1, &need)) return 0;
    if (!st->secret) st->secret = weft__rng_entropy() | 1;
    if (!weft__grow(&st->at, &st->at_capacity, st->n + 2, sizeof *st->at)) return 0;
    if (!weft__grow(&st->bytes, &st->bytes_capacity, need, 1)) return 0;
    if (findable && 2 * (st->n_found + 1) > st->n_slots && !rehash(st, st->n_slots ? 2 * st->n_slots : 64)) return 0;
    if (st->n == 0) st->at[0] = 0;
    if (n) memcpy(st->bytes + st->n_bytes, s, n);
    st->bytes[st->n_bytes + n] = 0;
    if (findable) {
        uint32_t hash = (uint32_t)weft__strings_hash(s, n, st->secret);
        size_t slot = probe(st, s, n, hash);
        if (st->slots[slot].index < 0) {
            st->slots[slot] = (weft__strings_slot){hash, (int32_t)st->n};
            st->n_found++;
        }
    }
    st->n_bytes = need;
    st->at[++st->n] = need;
    return 1;
}

int32_t weft__strings_find(const weft__strings *st, const char *s, size_t n)
{
    if (!st->n_slots) return -1;
    return st->slots[probe(st, s, n, (uint32_t)weft__strings_hash(s, n, st->secret))].index;
}

void weft__strings_free(weft__strings *st)
{
    weft__free(st->bytes);
    weft__free(st->at);
    weft__free(st->slots);
    memset(st, 0, sizeof *st);
}
