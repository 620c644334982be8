// SPDX-License-Identifier: Apache-2.0
/* store_parts.h: the inside of the disk store: store.c has the queue and the thread, store_room.c what goes when there is
 * no room, store_index.c the list of files, store_disk.c the files themselves, store_swap.c the swap file. For these
 * only. */
#ifndef WEFT_KV_STORE_PARTS_H
#define WEFT_KV_STORE_PARTS_H

#include <pthread.h>

#include "kv/store.h"
#include "kv/store_swap.h"

enum { WEFT__KV_STORE_FILE = WEFT__KV_STORE_NAME + 8 };

/* One file. Under the store's lock; only its thread adds and removes, anyone may use. */
typedef struct weft__kv_store_entry {
    weft__kv_key root;
    int32_t n_tokens;
    int32_t *tokens; /* behind this struct */
    uint64_t n_bytes;
    uint64_t used; /* the larger, the later */
    int slot;
    int foreign; /* a slot of another model or page layout: kept for that, and without tokens here */
    int touched; /* used since its file's time was set */
    char file[WEFT__KV_STORE_FILE];
} weft__kv_store_entry;

/* The files, sorted by (root, tokens). Invariant: no two have the same file name; n_bytes is the sum of theirs. */
typedef struct weft__kv_store_index {
    weft__kv_store_entry **entry;
    size_t n, capacity;
    uint64_t n_bytes, clock;
} weft__kv_store_index;

weft__kv_store_entry *weft__kv_store_entry_new(weft__kv_key root, const int32_t *tokens, int32_t n);
/* Makes room for one more; 0: no memory. */
int weft__kv_store_index_reserve(weft__kv_store_index *x);
/* Takes the entry, for which there is room; `used` becomes the latest unless it is set. */
void weft__kv_store_index_add(weft__kv_store_index *x, weft__kv_store_entry *e);
/* Forgets and frees it. */
void weft__kv_store_index_remove(weft__kv_store_index *x, weft__kv_store_entry *e);
void weft__kv_store_index_use(weft__kv_store_index *x, weft__kv_store_entry *e);
weft__kv_store_entry *weft__kv_store_index_named(const weft__kv_store_index *x, const char *file);
/* The file that serves most of tokens[0, n), and how many; NULL and 0. */
weft__kv_store_entry *weft__kv_store_index_best(const weft__kv_store_index *x, const weft__kv_layout *layout,
                                                weft__kv_key root, const int32_t *tokens, int32_t n, int32_t *serves);
/* A prefix file whose tokens continue as those of `e`, which are more; NULL: none. */
weft__kv_store_entry *weft__kv_store_index_shorter(const weft__kv_store_index *x, const weft__kv_store_entry *e);
/* Bytes of all slots. */
uint64_t weft__kv_store_index_slots(const weft__kv_store_index *x, int64_t *n_slots);
/* The same of those whose files' names begin as that of `file` does, n bytes of it. */
uint64_t weft__kv_store_index_alike(const weft__kv_store_index *x, const char *file, size_t n, int64_t *n_slots);
/* The prefix (no slot) used least recently; NULL: none. */
weft__kv_store_entry *weft__kv_store_index_oldest(const weft__kv_store_index *x);

/* A folder that is open and locked. */
typedef struct weft__kv_store_folder {
    int fd, lock;
    char path[512]; /* for messages */
} weft__kv_store_folder;

weft_status weft__kv_store_folder_open(weft__kv_store_folder *f, const char *path, weft_error *err);
void weft__kv_store_folder_close(weft__kv_store_folder *f);
/* Puts all valid files into the index, slots of other models included, and removes the others of ours; *n_damaged
 * counts these. WEFT_IO, WEFT_NO_MEMORY. */
weft_status weft__kv_store_scan(weft__kv_store_folder *f, const weft__kv_layout *layout, weft__kv_store_index *x,
                                uint64_t *n_damaged, weft_error *err);
/* Writes a sealed snapshot as `file`, whole or not at all: *in_place says which, since what is in place may still not
 * be certain to last (WEFT_IO then). WEFT_LIMIT: the disk is full; WEFT_IO, also for what may not be so large. */
weft_status weft__kv_store_write(weft__kv_store_folder *f, const char *file, const weft__kv_snapshot *s, int *in_place,
                                 weft_error *err);
/* Reads and checks it, and marks the file as used now. WEFT_NOT_FOUND, WEFT_IO, WEFT_NO_MEMORY, or as
 * weft__kv_snapshot_check. */
weft_status weft__kv_store_read(weft__kv_store_folder *f, const char *file, const weft__kv_layout *layout,
                                weft__kv_snapshot **out, weft_error *err);
void weft__kv_store_unlink(weft__kv_store_folder *f, const char *file);
/* Sets the file's time to now. */
void weft__kv_store_touch(weft__kv_store_folder *f, const char *file);

/* Does a failed read mean that the file itself is worthless? */
static inline int weft__kv_store_is_damage(weft_status st)
{
    return st == WEFT_FORMAT || st == WEFT_UNSUPPORTED || st == WEFT_STATE;
}

/* ---- the store, its queue and its thread ---- */

typedef enum weft__kv_store_kind {
    JOB_PUT,
    JOB_FETCH,
    JOB_FETCH_SLOT,
    JOB_ERASE,
    JOB_SWAP_OUT,
    JOB_SWAP_IN,
    JOB_SWAP_EMPTY
} weft__kv_store_kind;

typedef struct weft__kv_store_job {
    struct weft__kv_store_job *next;
    weft__kv_store_kind kind;
    weft__kv_snapshot *snapshot; /* PUT */
    char file[WEFT__KV_STORE_FILE];
    weft__kv_key root; /* FETCH */
    int32_t n;
    weft__kv_store_done done;
    void *arg;
    weft__kv_swap_io *io; /* SWAP_OUT, SWAP_IN */
    int32_t tokens[];     /* [n] */
} weft__kv_store_job;

typedef struct weft__kv_store_queue {
    weft__kv_store_job *first, *last;
} weft__kv_store_queue;

struct weft__kv_store {
    weft__kv_layout layout;
    int32_t page_tokens; /* of the largest page */
    int has_window;
    weft__kv_store_folder folder;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake, idle;
    weft__kv_store_queue reads, swaps, others;
    int busy, stop, failing;
    int notifying, ended, abandoned; /* a caller's `done` runs; no caller is left */
    uint64_t n_done;                 /* jobs, and files touched at the end */
    uint64_t vain_at;                /* n_done + 1, as it was when a caller had waited in vain; 0: none has */
    weft__kv_store_index index;
    weft__kv_store_stats stats;
    struct {
        int fd; /* -1: there is none */
        uint64_t limit, n_bytes;
        weft__kv_swap_done done;
        void *arg;
        int failing;
    } swap;
};

/* store.c. Puts a job into its queue; with the lock. */
weft__kv_store_job *weft__kv_store_job_new(weft__kv_store_kind kind, const int32_t *tokens, int32_t n,
                                           weft__kv_store_done done, void *arg);
void weft__kv_store_push(weft__kv_store *s, weft__kv_store_job *j);

/* store_room.c, on the store's thread. Removes a file, and what the index knows of it. */
void weft__kv_store_drop(weft__kv_store *s, weft__kv_store_entry *e);
/* Removes the prefix used least recently and returns its bytes; 0: there is none. */
uint64_t weft__kv_store_drop_oldest(weft__kv_store *s);
/* Removes prefixes until n_bytes more, of a slot or of a prefix, fit under the cap, less those of the slot that is
 * replaced (or NULL). */
weft_status weft__kv_store_make_room(weft__kv_store *s, const char *file, uint64_t n_bytes,
                                     const weft__kv_store_entry *replaced, weft_error *err);
/* Of a full disk: removes as many prefixes as hold n_bytes. 0: all of them hold less, and stay. Once for each write:
 * more would not help where others fill the disk. */
int weft__kv_store_free_disk(weft__kv_store *s, uint64_t n_bytes);

/* store_swap.c, on the store's thread. */
void weft__kv_store_swap(weft__kv_store *s, weft__kv_store_job *j);
void weft__kv_store_swap_close(weft__kv_store *s);

/* store_disk.c. Exactly n bytes at `at`. WEFT_LIMIT: the disk is full; WEFT_FORMAT: the file is shorter; WEFT_IO. */
weft_status weft__kv_store_write_at(int fd, uint64_t at, const void *from, uint64_t n, weft_error *err);
weft_status weft__kv_store_read_at(int fd, uint64_t at, void *to, uint64_t n, weft_error *err);
/* A new file for reading and writing; its name is t-HEX. */
int weft__kv_store_new_file(weft__kv_store_folder *f, char name[32]);

#endif
