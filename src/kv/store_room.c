// SPDX-License-Identifier: Apache-2.0
/* store_room.c: which files of the disk store go for others (store_parts.h). Owner: the store's thread. */
#include "kv/store_parts.h"

#include <string.h>

void weft__kv_store_drop(weft__kv_store *s, weft__kv_store_entry *e)
{
    char file[WEFT__KV_STORE_FILE];
    memcpy(file, e->file, sizeof file);
    pthread_mutex_lock(&s->lock);
    weft__kv_store_index_remove(&s->index, e);
    pthread_mutex_unlock(&s->lock);
    weft__kv_store_unlink(&s->folder, file);
}

uint64_t weft__kv_store_drop_oldest(weft__kv_store *s)
{
    pthread_mutex_lock(&s->lock);
    weft__kv_store_entry *e = weft__kv_store_index_oldest(&s->index);
    uint64_t n_bytes = e ? e->n_bytes : 0;
    if (e) s->stats.n_removed++;
    pthread_mutex_unlock(&s->lock);
    if (e) weft__kv_store_drop(s, e);
    return n_bytes;
}

/* Bytes of a slot's file name that tell whose it is: "s-key-0123456789ab." of "s-key-0123456789ab.mine"; 0: no
 * owner. */
static size_t owner_bytes(const char *file)
{
    enum { HEAD = 6, DIGITS = 12 };
    const int owned = !strncmp(file, "s-key-", HEAD) && strspn(file + HEAD, "0123456789abcdef") == DIGITS &&
                      file[HEAD + DIGITS] == '.';
    return owned ? HEAD + DIGITS + 1 : 0;
}

weft_status weft__kv_store_make_room(weft__kv_store *s, const char *file, uint64_t n_bytes,
                                     const weft__kv_store_entry *replaced, weft_error *err)
{
    int64_t n_slots, n_own;
    const int slot = file[0] == 's';
    const size_t owner = owner_bytes(file);
    pthread_mutex_lock(&s->lock);
    uint64_t cap = s->stats.cap_bytes, slots = weft__kv_store_index_slots(&s->index, &n_slots);
    uint64_t own = owner ? weft__kv_store_index_alike(&s->index, file, owner, &n_own) : 0;
    pthread_mutex_unlock(&s->lock);
    uint64_t credit = replaced && replaced->slot ? replaced->n_bytes : 0;
    /* A quarter stays for prefixes and for swapped pages, whatever is saved by name. */
    const uint64_t rest = cap - s->swap.n_bytes, share = slot ? cap / 4 * 3 + cap % 4 : rest;
    if (n_bytes > share || slots - credit > share - n_bytes)
        return weft_fail(
            err, WEFT_LIMIT,
            "%llu bytes do not fit beside the %llu of %lld saved slots, which may take %llu of the store's %llu; "
            "erase some by name, or give the store more room",
            (unsigned long long)n_bytes, (unsigned long long)(slots - credit), (long long)n_slots,
            (unsigned long long)share, (unsigned long long)cap);
    if (owner && own - credit + n_bytes > share - (slots - credit) - n_bytes)
        return weft_fail(err, WEFT_LIMIT,
                         "%llu bytes do not fit beside the %llu of this key's %lld saved slots, which may take no more "
                         "of the store's %llu "
                         "than they leave to others; erase some by name, or give the store more room",
                         (unsigned long long)n_bytes, (unsigned long long)(own - credit), (long long)n_own,
                         (unsigned long long)share);
    while (s->index.n_bytes - credit > rest - n_bytes) weft__kv_store_drop_oldest(s);
    return WEFT_OK;
}

int weft__kv_store_free_disk(weft__kv_store *s, uint64_t n_bytes)
{
    int64_t n_slots;
    pthread_mutex_lock(&s->lock);
    uint64_t prefixes = s->index.n_bytes - weft__kv_store_index_slots(&s->index, &n_slots);
    pthread_mutex_unlock(&s->lock);
    if (prefixes < n_bytes) return 0;
    for (uint64_t freed = 0, n; freed < n_bytes && (n = weft__kv_store_drop_oldest(s));) freed += n;
    return 1;
}
