// SPDX-License-Identifier: Apache-2.0
/* names.c: open addressing with linear probing; the hash is SipHash-1-3 (Aumasson and Bernstein 2012).
 * Invariant: at least half of the slots are free. One writer. */
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "base/text.h"
#include "format/names.h"

static uint64_t rotate(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1], v[1] = rotate(v[1], 13) ^ v[0], v[0] = rotate(v[0], 32);
    v[2] += v[3], v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3], v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1], v[1] = rotate(v[1], 17) ^ v[2], v[2] = rotate(v[2], 32);
}

static uint64_t hash(const uint64_t secret[2], const char *s, size_t len)
{
    uint64_t v[4] = {secret[0] ^ 0x736f6d6570736575, secret[1] ^ 0x646f72616e646f6d, secret[0] ^ 0x6c7967656e657261,
                     secret[1] ^ 0x7465646279746573};
    size_t i = 0;
    uint64_t word;
    for (; i + 8 <= len; i += 8) {
        memcpy(&word, s + i, 8);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    word = 0;
    memcpy(&word, s + i, len - i);
    word |= (uint64_t)len << 56;
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
    v[2] ^= 0xff;
    for (int round = 0; round < 3; round++) sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* The slot of the name, or the free one where it belongs. */
static weft__name_slot *slot_of(const weft__name_table *names, const char *name, size_t len)
{
    size_t mask = names->n_slots - 1;
    for (size_t i = (size_t)hash(names->secret, name, len) & mask;; i = (i + 1) & mask) {
        weft__name_slot *s = &names->slots[i];
        if (!s->name || (s->len == len && memcmp(s->name, name, len) == 0)) return s;
    }
}

static int enlarge(weft__name_table *names)
{
    weft__name_table larger = *names;
    if (!names->n_slots) {
        larger.secret[0] = weft__rng_entropy();
        larger.secret[1] = weft__rng_entropy();
    }
    larger.n_slots = names->n_slots ? names->n_slots * 2 : 64;
    larger.slots = weft__alloc_zero(larger.n_slots, sizeof *larger.slots);
    if (!larger.slots) return 0;
    for (size_t i = 0; i < names->n_slots; i++) {
        const weft__name_slot *s = &names->slots[i];
        if (s->name) *slot_of(&larger, s->name, s->len) = *s;
    }
    weft__free(names->slots);
    *names = larger;
    return 1;
}

int weft__name_table_put(weft__name_table *names, const char *name, size_t len, uint32_t index, uint32_t *existing)
{
    if (len > UINT32_MAX) return -1;
    if ((names->n + 1) * 2 > names->n_slots && !enlarge(names)) return -1;
    weft__name_slot *s = slot_of(names, name, len);
    if (s->name) {
        if (existing) *existing = s->index;
        return 0;
    }
    *s = (weft__name_slot){name, (uint32_t)len, index};
    names->n++;
    return 1;
}

int64_t weft__name_table_find(const weft__name_table *names, const char *name, size_t len)
{
    if (!names->n_slots) return -1;
    const weft__name_slot *s = slot_of(names, name, len);
    return s->name ? (int64_t)s->index : -1;
}

void weft__name_table_free(weft__name_table *names)
{
    weft__free(names->slots);
    *names = (weft__name_table){0};
}

const char *weft__name_show(char out[WEFT__NAME_SHOW], const char *name, size_t len)
{
    return weft__utf8_show(out, WEFT__NAME_SHOW, name, len);
}

const char *weft__name_show_path(char out[WEFT__NAME_SHOW * 2], const char *path)
{
    size_t len = strlen(path), room = WEFT__NAME_SHOW * 2, keep = room - 8;
    if (len <= keep) return weft__utf8_show(out, room, path, len);
    memcpy(out, "...", 3);
    const char *from = path + len - keep;
    while ((*from & 0xc0) == 0x80) from++; /* begin at a character */
    weft__utf8_show(out + 3, room - 3, from, strlen(from));
    return out;
}
