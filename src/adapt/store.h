// SPDX-License-Identifier: Apache-2.0
/* store.h: adapters by name, for many requests at once: read when first asked for, packed once per content and weights,
 * pinned while in use, evicted by least use under a budget.
 *
 * A name stands for a version of an adapter: what its file held when it was last loaded. Loading the name again makes
 * another version; a lease goes on with the one it began with (copy on write), and so after removal. A file
 * that changed without being loaded again is refused when it must be read anew. Thread safety: all functions may be
 * called by any thread. Reading and packing happen while the caller waits, one at a time and in the background
 * (base/background.h); leases that need neither do not wait. */
#ifndef WEFT_ADAPT_STORE_H
#define WEFT_ADAPT_STORE_H

#include "adapt/adapt.h"

enum { WEFT__ADAPT_NAME = 128, WEFT__ADAPT_STACK = 8 /* adapters of one request */, WEFT__ADAPT_ENTRIES = 1 << 16 };

typedef struct weft__adapt_store weft__adapt_store;

/* How a woven stack becomes what programs read. pack is called by one thread at a time, in the background; unpack by
 * any, also beside pack and itself. */
typedef struct weft__adapt_packer {
    void *arg;
    weft_status (*pack)(void *arg, const weft__adapt_woven *woven, void **out, uint64_t *n_bytes, weft_error *err);
    void (*unpack)(void *arg, void *packed);
} weft__adapt_packer;

/* base and names are borrowed; packer is copied. n_bytes: of everything packed. Messages call the base by its file's
 * name, never by its folders: clients read them. */
weft_status weft__adapt_store_create(const weft__adapt_base *base, const weft__adapt_names *names,
                                     const weft__adapt_packer *packer, uint64_t n_bytes, weft__adapt_store **out,
                                     weft_error *err);
/* No lease may be left. */
void weft__adapt_store_destroy(weft__adapt_store **store);

/* 1 to WEFT__ADAPT_NAME bytes of A-Z a-z 0-9 . _ - @, not beginning with a point or @; else WEFT_ARGUMENT. */
weft_status weft__adapt_name_check(const char *name, weft_error *err);

enum weft__adapt_add {
    WEFT__ADAPT_LAZY = 1u << 0,    /* do not read it now: the first lease does */
    WEFT__ADAPT_REPLACE = 1u << 1, /* the name may be there: it gets another version */
    WEFT__ADAPT_DISCREET =
        1u << 2 /* what is wrong with its file is told by the name, as by a lease; the log has the path */
};
/* scale: its weight where a request gives none. Fails with WEFT_ARGUMENT (name, scale; the adapter fits no matrix of
 * the base), WEFT_EXISTS, WEFT_STATE (so many names are there that no more are taken), and as weft__adapt_open and, at
 * that scale, weft__adapt_check_values do; then nothing has changed. */
weft_status weft__adapt_store_add(weft__adapt_store *s, const char *name, const char *path, float scale, uint32_t flags,
                                  weft_error *err);
/* WEFT_NOT_FOUND. */
weft_status weft__adapt_store_remove(weft__adapt_store *s, const char *name, weft_error *err);

/* A name, or where it is NULL the index of one, and a weight; NAN: the name's own. A weight of 0 is as if it were not
 * there. */
typedef struct weft__adapt_ref {
    const char *name;
    float scale;
    int32_t index;
} weft__adapt_ref;

typedef struct weft__adapt_lease weft__adapt_lease;

/* What the names and indices stand for now: from here on contents are meant, not names. *out NULL: nothing is changed.
 * Fails with WEFT_NOT_FOUND (no such name), WEFT_ARGUMENT (scale), WEFT_LIMIT (ranks, or larger than the budget),
 * WEFT_BUSY (those in use fill the budget), WEFT_STATE (the file has changed), and as weft__adapt_open, _check_values
 * and _weave do. */
weft_status weft__adapt_store_lease(weft__adapt_store *s, const weft__adapt_ref *asks, int32_t n,
                                    weft__adapt_lease **out, weft_error *err);
/* The same, but nothing is read or waited for: where that would have to be, *ready is 0, and there is no lease. */
weft_status weft__adapt_store_lease_ready(weft__adapt_store *s, const weft__adapt_ref *asks, int32_t n, int *ready,
                                          weft__adapt_lease **out, weft_error *err);
/* For a caller whose turn has not come: asks the system for the files of what is not packed, so that they are in its
 * page cache when they are leased. Takes nothing of the budget, and drops nothing. */
void weft__adapt_store_ask_ahead(weft__adapt_store *s, const weft__adapt_ref *asks, int32_t n);
/* Once more; NULL stays NULL. */
weft__adapt_lease *weft__adapt_store_share(weft__adapt_store *s, weft__adapt_lease *lease);
void weft__adapt_store_release(weft__adapt_store *s, weft__adapt_lease **lease);
/* For a caller that was refused with WEFT_BUSY, and has no lease of its own to give back: returns 1 when another was
 * given back since, or 0 after timeout_ms. */
int weft__adapt_store_wait(weft__adapt_store *s, uint32_t timeout_ms);
/* "adapter x", or "adapters x, y": names that stand for its contents now, as far as there is room, and "?" where there
 * is none any more. */
void weft__adapt_store_name(weft__adapt_store *s, const weft__adapt_lease *lease, char *out, size_t size);
/* Moves the room that all together have, which is never less than what the store was created with: that is what one
 * may take. What none uses goes at once as far as it has to, and what is in use when it was given back. */
void weft__adapt_store_give(weft__adapt_store *s, uint64_t n_bytes);
void *weft__adapt_lease_packed(const weft__adapt_lease *lease);
/* What it computes: contents and weights. */
weft__adapt_id weft__adapt_lease_id(const weft__adapt_lease *lease);

typedef struct weft__adapt_entry_info {
    int32_t index;   /* of the name, counted from 0 as they were added; never given twice */
    int32_t version; /* of the name, from 1 */
    float scale;
    int known; /* it was read */
    int32_t n_leases;
    uint64_t n_bytes; /* packed now, alone or in stacks */
    weft__adapt_id id;
    const char *name, *path; /* valid during the call */
} weft__adapt_entry_info;
/* In order of index; `each` must not call the store. */
void weft__adapt_store_each(weft__adapt_store *s, void (*each)(void *arg, const weft__adapt_entry_info *info),
                            void *arg);

/* The same for one name; 0: there is none. */
int weft__adapt_store_find(weft__adapt_store *s, const char *name,
                           void (*each)(void *arg, const weft__adapt_entry_info *info), void *arg);

typedef struct weft__adapt_store_stats {
    int32_t n_entries, n_packed, n_leases;
    uint64_t n_bytes, room_bytes, n_loads, n_evictions;
    uint64_t peak_bytes;   /* that n_bytes has been */
    uint64_t n_hits;       /* leases of what was packed */
    uint64_t n_disk_loads; /* of n_loads; the others' files were in memory as they are */
    uint64_t n_ahead;      /* files that were asked for ahead */
    uint64_t n_ahead_hits; /* of these, that were in memory when they were read */
} weft__adapt_store_stats;
void weft__adapt_store_get_stats(weft__adapt_store *s, weft__adapt_store_stats *out);

#endif
