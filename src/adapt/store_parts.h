// SPDX-License-Identifier: Apache-2.0
/* store_parts.h: what the files of the store share: names, packed stacks, and files that are read for them (store.c has
 * the locks). */
#ifndef WEFT_ADAPT_STORE_PARTS_H
#define WEFT_ADAPT_STORE_PARTS_H

#include <pthread.h>

#include "adapt/store.h"

typedef struct weft__adapt_entry {
    char *name, *path;
    int32_t index, version;
    float scale;
    int known;
    int asked_ahead;   /* for its file, which was not read since */
    weft__adapt_id id; /* of the version, where it is known */
    uint64_t n_packed; /* that it takes alone, or at least takes; 0: not known */
} weft__adapt_entry;

typedef struct weft__adapt_stack_item {
    weft__adapt_id id;
    float scale;
} weft__adapt_stack_item;

struct weft__adapt_lease {
    weft__adapt_stack_item items[WEFT__ADAPT_STACK];
    int32_t n, n_pins;
    int orphan; /* no name stands for one of its contents any more */
    uint64_t used, n_bytes;
    weft__adapt_id id;
    void *packed;
};

struct weft__adapt_store {
    weft__adapt_base base; /* borrowed but for its label */
    char *base_name;       /* that label: the base's file without its folders, which are not told to clients */
    const weft__adapt_names *names;
    weft__adapt_packer packer;
    pthread_mutex_t loading, lock;
    pthread_cond_t room;        /* with lock */
    int is_full;                /* a caller was refused for want of room, and nothing was given back since */
    weft__adapt_entry *entries; /* [n], by index */
    size_t n, capacity;
    int32_t next_index;
    weft__adapt_lease **packed; /* [n_packed] */
    size_t n_packed, packed_capacity;
    uint64_t max_bytes, room_bytes; /* of one stack; of all together, never less */
    uint64_t n_bytes, peak_bytes, clock, n_loads, n_evictions;
    uint64_t n_hits, n_disk_loads, n_ahead, n_ahead_hits;
};

static inline int weft__adapt_same_id(weft__adapt_id a, weft__adapt_id b)
{
    return a.word[0] == b.word[0] && a.word[1] == b.word[1];
}

/* Of these three, with the lock. The entry of that name, or NULL. */
weft__adapt_entry *weft__adapt_store_entry(weft__adapt_store *s, const char *name);
/* Does a name stand for these contents? */
int weft__adapt_store_has(const weft__adapt_store *s, weft__adapt_id id);
/* Frees packed stack i. */
void weft__adapt_store_drop(weft__adapt_store *s, size_t i);

/* float32 to 4 bits: what has more bytes than so many budgets fits none. */
enum { WEFT__ADAPT_SHRINK = 8 };
static inline uint64_t weft__adapt_store_max_read(const weft__adapt_store *s)
{
    return s->max_bytes > UINT64_MAX / WEFT__ADAPT_SHRINK ? UINT64_MAX : s->max_bytes * WEFT__ADAPT_SHRINK;
}

/* A file, read and checked against the base. */
typedef struct weft__adapt_reading {
    const weft__adapt_store *s;
    const char *path;
    weft__adapt **out; /* NULL: only its id is asked for, and whether it can be used at: */
    float scale;
    weft__adapt_id id;
    uint64_t n_packed; /* at least */
    weft_status status;
    weft_error *err;
} weft__adapt_reading;

/* Reads it; arg: a weft__adapt_reading. In the background. */
void weft__adapt_read_checked(void *arg);
/* Clients that ask for a name need not know where its file lies: they are told of it by that name, the log by its
 * path. */
weft_status weft__adapt_fail_by_name(const weft_error *why, const char *name, const char *path, weft_error *err);

#endif
