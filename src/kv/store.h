// SPDX-License-Identifier: Apache-2.0
/* store.h: prefixes that outlive the process: a folder of snapshots (snapshot.h), kept by a thread of its own.
 *
 *   p-HASH.kv   the pages of a prefix, named by a hash of root and tokens; the least recently used go when the cap is
 *               reached
 *   s-NAME.kv   a slot that a client saved by name: stays until it is erased or saved again, also while another model
 *               has the folder, which cannot read it; all of them take three quarters of the cap at most, and those of
 *               one owner (NAME is key-HEX12.REST) no more than they leave of that to others
 *   t-HEX       being written; removed when the store is opened
 *   (no name)   pages of requests that gave way (store_swap.h): a quarter of the cap at most
 *   lock        held while a process has the store open
 * Other files are left alone. A file appears complete (written aside, flushed, renamed, folder flushed) and is removed
 * when it is found truncated, damaged, of another version or, a prefix, of another model: then it is as if it had never
 * been there. What is used is compared token by token.
 *
 * All files are read and written by the store's thread; no other thread waits for the disk. Callers pass snapshots, so
 * pages are never read from another thread. Reads of prefixes overtake everything else in the queue; the rest is done
 * in order. Thread safety: all functions but open and close may be called from any thread at any time; none of them
 * waits for the disk except where it says so. */
#ifndef WEFT_KV_STORE_H
#define WEFT_KV_STORE_H

#include "kv/snapshot.h"

enum { WEFT__KV_STORE_NAME = 128 };

typedef struct weft__kv_store weft__kv_store;

typedef struct weft__kv_store_stats {
    int64_t n_prefixes, n_slots;        /* now */
    uint64_t n_bytes, cap_bytes;        /* now, of their files */
    uint64_t swap_bytes;                /* now, of the swap file: part of what cap_bytes allows */
    int64_t n_queued;                   /* files, now: those to be written, and the one that is being written */
    uint64_t queued_bytes;              /* of their snapshots */
    uint64_t n_written, n_write_failed; /* files */
    uint64_t n_read, tokens_read;       /* files that were handed out, and their tokens */
    uint64_t n_damaged;                 /* files dropped because they were not what they must be */
    uint64_t n_removed;                 /* prefixes that made room, or that a longer one replaced */
} weft__kv_store_stats;

/* The end of what was asked for, on the store's thread: it must not wait, and must not call weft__kv_store_flush or
 * _close. On success of a fetch `snapshot` is the callee's to free; otherwise it is NULL. `message` is borrowed. */
typedef void (*weft__kv_store_done)(void *arg, weft_status status, const char *message, weft__kv_snapshot *snapshot);

/* Opens `folder` (made when absent; its parent is not) and looks through what is in it; waits for the disk. cap_bytes:
 * what all files may take together. WEFT_IO, WEFT_STATE (another process has it open), WEFT_NO_MEMORY, WEFT_LIMIT (no
 * thread). */
weft_status weft__kv_store_open(const char *folder, uint64_t cap_bytes, const weft__kv_layout *layout,
                                weft__kv_store **out, weft_error *err);
/* Does what is queued, then stops; waits for the disk, but for no more than wait_ms (0: for ever) without anything
 * being done: then what is left is dropped, `done` is called no more, and the thread ends when the disk lets it go.
 * Where a flush has waited in vain, and nothing was done since, it does not wait again. NULL is fine. */
void weft__kv_store_close(weft__kv_store **store, uint64_t wait_ms);
/* Waits until everything asked for so far is done, as long as close does. 0: the disk does not answer. */
int weft__kv_store_flush(weft__kv_store *store, uint64_t wait_ms);

/* How much was done so far: while it grows, the disk answers. */
uint64_t weft__kv_store_n_done(weft__kv_store *store);

/* How many of tokens[0, n) are worth fetching now: less than a page are not, and count as 0. O(log files). */
int32_t weft__kv_store_find(weft__kv_store *store, weft__kv_key root, const int32_t *tokens, int32_t n);
/* Is a snapshot of these tokens worth taking? 0 when a file has them already (it counts as used then), when it would
 * add less than a page, or when too much waits to be written. */
int weft__kv_store_wants(weft__kv_store *store, weft__kv_key root, const int32_t *tokens, int32_t n);

/* [A-Za-z0-9._-]{1,128}, and neither "." nor ".."; else WEFT_ARGUMENT. name may be NULL. */
weft_status weft__kv_slot_name_check(const char *name, weft_error *err);

/* Writes a snapshot, under `name` or, when that is NULL, as a prefix. Takes *snapshot on success, and sets it to NULL.
 * `done` may be NULL; WEFT_OK there means that it is on the disk; otherwise WEFT_IO, WEFT_LIMIT (the cap; named slots
 * are not removed for others), WEFT_NO_MEMORY. Returns WEFT_ARGUMENT (name), WEFT_BUSY (too much waits to be written),
 * WEFT_NO_MEMORY. */
weft_status weft__kv_store_put(weft__kv_store *store, weft__kv_snapshot **snapshot, const char *name,
                               weft__kv_store_done done, void *arg, weft_error *err);
/* Reads the file that serves most of tokens[0, n). In `done`: WEFT_NOT_FOUND, WEFT_FORMAT and such (it was damaged and
 * is dropped now), WEFT_IO, WEFT_NO_MEMORY. Ask weft__kv_snapshot_match how many tokens it serves. Returns
 * WEFT_NOT_FOUND at once when there is none, or WEFT_NO_MEMORY; then `done` is not called. */
weft_status weft__kv_store_fetch(weft__kv_store *store, weft__kv_key root, const int32_t *tokens, int32_t n,
                                 weft__kv_store_done done, void *arg, weft_error *err);
/* Reads a slot. As weft__kv_store_fetch; WEFT_ARGUMENT (name) at once, WEFT_NOT_FOUND in `done`. */
weft_status weft__kv_store_fetch_slot(weft__kv_store *store, const char *name, weft__kv_store_done done, void *arg,
                                      weft_error *err);
/* Removes a slot. In `done`: WEFT_NOT_FOUND. At once: WEFT_ARGUMENT, WEFT_NO_MEMORY. */
weft_status weft__kv_store_erase(weft__kv_store *store, const char *name, weft__kv_store_done done, void *arg,
                                 weft_error *err);

void weft__kv_store_get_stats(weft__kv_store *store, weft__kv_store_stats *out);

#endif
