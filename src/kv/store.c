// SPDX-License-Identifier: Apache-2.0
/* store.c: the queue and the thread of the disk store (store.h).
 * The store's thread alone touches files and adds to or removes from the index; the lock covers queue, index and
 * counters, and is never held while the disk works. */
#include "kv/store.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "base/thread.h"
#include "kv/store_parts.h"

/* Snapshots that wait to be written take at most this much memory (one may be larger). */
#define MAX_QUEUED ((uint64_t)256 << 20)

typedef enum job_kind { JOB_PUT, JOB_FETCH, JOB_FETCH_SLOT, JOB_ERASE } job_kind;

typedef struct store_job {
    struct store_job *next;
    job_kind kind;
    weft__kv_snapshot *snapshot; /* PUT */
    char file[WEFT__KV_STORE_FILE];
    weft__kv_key root; /* FETCH */
    int32_t n;
    weft__kv_store_done done;
    void *arg;
    int32_t tokens[]; /* [n] */
} store_job;

typedef struct queue {
    store_job *first, *last;
} queue;

struct weft__kv_store {
    weft__kv_layout layout;
    int32_t page_tokens; /* of the largest page */
    int has_window;
    weft__kv_store_folder folder;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake, idle;
    queue reads, others;
    int busy, stop, failing;
    int notifying, ended, abandoned; /* a caller's `done` runs; no caller is left */
    uint64_t n_done;                 /* jobs, and files touched at the end */
    uint64_t vain_at;                /* n_done + 1, as it was when a caller had waited in vain; 0: none has */
    weft__kv_store_index index;
    weft__kv_store_stats stats;
};

/* ---- names ---- */

weft_status weft__kv_slot_name_check(const char *name, weft_error *err)
{
    if (name && weft__path_is_plain_name(name, WEFT__KV_STORE_NAME)) return WEFT_OK;
    return weft_fail(err, WEFT_ARGUMENT,
                     "a slot's name has 1 to %d of the characters A-Z a-z 0-9 . _ - and is not . or ..",
                     WEFT__KV_STORE_NAME);
}

static weft_status slot_file(const char *name, char out[WEFT__KV_STORE_FILE], weft_error *err)
{
    weft_status st = weft__kv_slot_name_check(name, err);
    if (!st) snprintf(out, WEFT__KV_STORE_FILE, "s-%s.kv", name);
    return st;
}

static void prefix_file(const weft__kv_snapshot *s, char out[WEFT__KV_STORE_FILE])
{
    const weft__kv_snapshot_head *head = weft__kv_snapshot_head_of(s);
    weft__hash_state h;
    weft__hash_begin(&h);
    weft__hash_add(&h, &head->root, sizeof head->root);
    weft__hash_add(&h, weft__kv_snapshot_tokens(s), (size_t)head->n_tokens * sizeof(int32_t));
    snprintf(out, WEFT__KV_STORE_FILE, "p-%016llx.kv", (unsigned long long)weft__hash_end(&h));
}

/* ---- the store's thread: making room ---- */

/* Removes a file, and what the index knows of it. */
static void drop(weft__kv_store *s, weft__kv_store_entry *e)
{
    char file[WEFT__KV_STORE_FILE];
    memcpy(file, e->file, sizeof file);
    pthread_mutex_lock(&s->lock);
    weft__kv_store_index_remove(&s->index, e);
    pthread_mutex_unlock(&s->lock);
    weft__kv_store_unlink(&s->folder, file);
}

/* Removes the prefix used least recently and returns its bytes; 0: there is none. */
static uint64_t drop_oldest(weft__kv_store *s)
{
    pthread_mutex_lock(&s->lock);
    weft__kv_store_entry *e = weft__kv_store_index_oldest(&s->index);
    uint64_t n_bytes = e ? e->n_bytes : 0;
    if (e) s->stats.n_removed++;
    pthread_mutex_unlock(&s->lock);
    if (e) drop(s, e);
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

/* Removes prefixes until n_bytes more, of a slot or of a prefix, fit under the cap, less those of the slot that is
 * replaced (or NULL). */
static weft_status make_room(weft__kv_store *s, const char *file, uint64_t n_bytes,
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
    uint64_t share = slot ? cap / 4 * 3 + cap % 4 : cap; /* a quarter stays for prefixes, whatever is saved by name */
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
    while (s->index.n_bytes - credit > cap - n_bytes) drop_oldest(s);
    return WEFT_OK;
}

/* Of a full disk: removes as many prefixes as hold n_bytes. 0: all of them hold less, and stay. Once for each write:
 * more would not help where others fill the disk. */
static int free_disk(weft__kv_store *s, uint64_t n_bytes)
{
    int64_t n_slots;
    pthread_mutex_lock(&s->lock);
    uint64_t prefixes = s->index.n_bytes - weft__kv_store_index_slots(&s->index, &n_slots);
    pthread_mutex_unlock(&s->lock);
    if (prefixes < n_bytes) return 0;
    for (uint64_t freed = 0, n; freed < n_bytes && (n = drop_oldest(s));) freed += n;
    return 1;
}

/* ---- the store's thread: jobs ---- */

/* Lists what has just been written as `e`, in place of what had its name and of shorter ones that it makes
 * superfluous. */
static void list(weft__kv_store *s, weft__kv_store_entry *e)
{
    weft__kv_store_entry *old;
    pthread_mutex_lock(&s->lock);
    if ((old = weft__kv_store_index_named(&s->index, e->file))) weft__kv_store_index_remove(&s->index, old);
    weft__kv_store_index_add(&s->index, e);
    s->stats.n_written++;
    pthread_mutex_unlock(&s->lock);
    while (!s->has_window && (old = weft__kv_store_index_shorter(&s->index, e))) {
        pthread_mutex_lock(&s->lock);
        s->stats.n_removed++;
        pthread_mutex_unlock(&s->lock);
        drop(s, old);
    }
}

static weft_status do_put(weft__kv_store *s, store_job *j, weft_error *err)
{
    const weft__kv_snapshot_head *head = weft__kv_snapshot_head_of(j->snapshot);
    const int32_t *tokens = weft__kv_snapshot_tokens(j->snapshot);
    int32_t serves = 0;
    int slot = j->file[0] == 's', in_place = 0;
    pthread_mutex_lock(&s->lock);
    weft__kv_store_entry *old = weft__kv_store_index_named(&s->index, j->file), *same = NULL;
    if (!slot) same = weft__kv_store_index_best(&s->index, &s->layout, head->root, tokens, head->n_tokens, &serves);
    int room = weft__kv_store_index_reserve(&s->index);
    if (same && serves == head->n_tokens) weft__kv_store_index_use(&s->index, same);
    pthread_mutex_unlock(&s->lock);
    if (same && serves == head->n_tokens) return WEFT_OK; /* written since it was asked for */
    weft__kv_store_entry *e = room ? weft__kv_store_entry_new(head->root, tokens, head->n_tokens) : NULL;
    if (!e) return weft_fail(err, WEFT_NO_MEMORY, "no memory for an entry of the disk store");
    e->n_bytes = j->snapshot->n_bytes;
    e->slot = slot;
    memcpy(e->file, j->file, sizeof e->file);
    weft_status st = make_room(s, j->file, e->n_bytes, old, err);
    if (!st) {
        weft__kv_snapshot_seal(j->snapshot);
        st = weft__kv_store_write(&s->folder, j->file, j->snapshot, &in_place, err);
        if (st == WEFT_LIMIT && free_disk(s, e->n_bytes))
            st = weft__kv_store_write(&s->folder, j->file, j->snapshot, &in_place, err);
    }
    if (in_place) list(s, e);
    else weft__free(e);
    return st;
}

/* Reads the file of e, and drops it when it is not what it must be. */
static weft_status do_read(weft__kv_store *s, weft__kv_store_entry *e, weft__kv_snapshot **out, weft_error *err)
{
    if (e->foreign)
        return weft_fail(err, WEFT_NOT_FOUND, "the slot of that name was saved by another model, or with other pages");
    weft_status st = weft__kv_store_read(&s->folder, e->file, &s->layout, out, err);
    if (!st) {
        pthread_mutex_lock(&s->lock);
        weft__kv_store_index_use(&s->index, e);
        e->touched = 0;
        s->stats.n_read++;
        s->stats.tokens_read += (uint64_t)e->n_tokens;
        pthread_mutex_unlock(&s->lock);
        return WEFT_OK;
    }
    weft__log(WEFT__LOG_WARN, "%s/%s: %s", s->folder.path, e->file,
              err->message); /* clients need not know where it lies */
    weft_fail_within(err, st, e->slot ? "the saved slot" : "a saved prefix");
    if (st != WEFT_NOT_FOUND && !weft__kv_store_is_damage(st)) return st;
    pthread_mutex_lock(&s->lock);
    s->stats.n_damaged++;
    pthread_mutex_unlock(&s->lock);
    drop(s, e);
    return st;
}

static weft_status do_fetch(weft__kv_store *s, store_job *j, weft__kv_snapshot **out, weft_error *err)
{
    int32_t serves;
    weft__kv_store_entry *e;
    pthread_mutex_lock(&s->lock);
    if (j->kind == JOB_FETCH) e = weft__kv_store_index_best(&s->index, &s->layout, j->root, j->tokens, j->n, &serves);
    else e = weft__kv_store_index_named(&s->index, j->file);
    pthread_mutex_unlock(&s->lock);
    return e ? do_read(s, e, out, err) : weft_fail(err, WEFT_NOT_FOUND, "nothing of that kind is in the disk store");
}

static weft_status do_erase(weft__kv_store *s, store_job *j, weft_error *err)
{
    weft__kv_store_entry *e = weft__kv_store_index_named(&s->index, j->file);
    if (!e) return weft_fail(err, WEFT_NOT_FOUND, "no slot of that name is saved");
    drop(s, e);
    return WEFT_OK;
}

/* Counts how a write ended, and logs the first of a row of failures. */
static void note_put(weft__kv_store *s, const store_job *j, weft_status st, const char *message)
{
    pthread_mutex_lock(&s->lock);
    s->stats.n_queued--;
    s->stats.queued_bytes -= j->snapshot->n_bytes;
    s->stats.n_write_failed += st != WEFT_OK;
    pthread_mutex_unlock(&s->lock);
    if (st && !s->failing) weft__log(WEFT__LOG_WARN, "%s: %s: not saved: %s", s->folder.path, j->file, message);
    s->failing = st != WEFT_OK;
}

static void store_run(weft__kv_store *s, store_job *j)
{
    weft_error e = {0};
    weft__kv_snapshot *snapshot = NULL;
    weft_status st = WEFT_OK;
    switch (j->kind) {
    case JOB_PUT:
        st = do_put(s, j, &e);
        note_put(s, j, st, e.message);
        break;
    case JOB_FETCH:
    case JOB_FETCH_SLOT: st = do_fetch(s, j, &snapshot, &e); break;
    case JOB_ERASE: st = do_erase(s, j, &e); break;
    }
    pthread_mutex_lock(&s->lock);
    s->notifying = j->done && !s->abandoned;
    pthread_mutex_unlock(&s->lock);
    if (s->notifying) j->done(j->arg, st, e.message, snapshot);
    else weft__kv_snapshot_free(&snapshot);
    weft__kv_snapshot_free(&j->snapshot);
    weft__free(j);
}

static store_job *pop(weft__kv_store *s)
{
    queue *q = s->reads.first ? &s->reads : &s->others;
    store_job *j = q->first;
    if (!j) return NULL;
    q->first = j->next;
    if (!q->first) q->last = NULL;
    return j;
}

/* Frees all of it; the thread has ended, or is the caller. */
static void discard(weft__kv_store *s)
{
    for (store_job *j; (j = pop(s));) {
        weft__kv_snapshot_free(&j->snapshot);
        weft__free(j);
    }
    for (size_t i = 0; i < s->index.n; i++) weft__free(s->index.entry[i]);
    weft__free(s->index.entry);
    weft__kv_store_folder_close(&s->folder);
    pthread_cond_destroy(&s->idle);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    weft__free(s);
}

/* The order of use, for the next that opens the folder. With the lock, which it lets go meanwhile. */
static void touch_used(weft__kv_store *s)
{
    for (size_t i = 0; i < s->index.n && !s->abandoned; i++) {
        if (!s->index.entry[i]->touched) continue;
        pthread_mutex_unlock(&s->lock);
        weft__kv_store_touch(&s->folder, s->index.entry[i]->file);
        pthread_mutex_lock(&s->lock);
        s->n_done++;
    }
}

static void *serve(void *arg)
{
    weft__kv_store *s = arg;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        store_job *j = pop(s);
        s->busy = j != NULL;
        if (j) {
            pthread_mutex_unlock(&s->lock);
            store_run(s, j);
            pthread_mutex_lock(&s->lock);
            s->notifying = 0;
            s->n_done++;
            if (s->abandoned) break;
            continue;
        }
        pthread_cond_broadcast(&s->idle);
        if (s->stop) break;
        pthread_cond_wait(&s->wake, &s->lock);
    }
    touch_used(s);
    int abandoned = s->abandoned;
    s->ended = 1;
    pthread_cond_broadcast(&s->idle);
    pthread_mutex_unlock(&s->lock);
    if (abandoned) discard(s);
    return NULL;
}

/* ---- callers ---- */

static store_job *job_new(job_kind kind, const int32_t *tokens, int32_t n, weft__kv_store_done done, void *arg)
{
    store_job *j = weft__alloc(sizeof *j + (size_t)n * sizeof *tokens);
    if (!j) return NULL;
    *j = (store_job){.kind = kind, .n = n, .done = done, .arg = arg};
    if (n) memcpy(j->tokens, tokens, (size_t)n * sizeof *tokens);
    return j;
}

/* With the lock held. */
static void push(weft__kv_store *s, store_job *j)
{
    queue *q = j->kind == JOB_FETCH ? &s->reads : &s->others;
    *(q->last ? &q->last->next : &q->first) = j;
    q->last = j;
    s->busy = 1;
    pthread_cond_signal(&s->wake);
}

/* With the lock. What serves less than a page counts as nothing, here and when a prefix asks to be kept: it would not
 * be fetched, so it must not keep others out. */
static weft__kv_store_entry *best_worth_a_read(weft__kv_store *s, weft__kv_key root, const int32_t *tokens, int32_t n,
                                               int32_t *serves)
{
    weft__kv_store_entry *e = weft__kv_store_index_best(&s->index, &s->layout, root, tokens, n, serves);
    if (*serves >= s->page_tokens) return e;
    *serves = 0;
    return NULL;
}

int32_t weft__kv_store_find(weft__kv_store *s, weft__kv_key root, const int32_t *tokens, int32_t n)
{
    int32_t serves;
    pthread_mutex_lock(&s->lock);
    best_worth_a_read(s, root, tokens, n, &serves);
    pthread_mutex_unlock(&s->lock);
    return serves;
}

int weft__kv_store_wants(weft__kv_store *s, weft__kv_key root, const int32_t *tokens, int32_t n)
{
    int32_t serves;
    pthread_mutex_lock(&s->lock);
    weft__kv_store_entry *e = best_worth_a_read(s, root, tokens, n, &serves);
    if (e && serves == n) {
        weft__kv_store_index_use(&s->index, e);
        e->touched = 1;
    }
    int wants = n - serves >= s->page_tokens && s->stats.queued_bytes < MAX_QUEUED;
    pthread_mutex_unlock(&s->lock);
    return wants;
}

weft_status weft__kv_store_put(weft__kv_store *s, weft__kv_snapshot **snapshot, const char *name,
                               weft__kv_store_done done, void *arg, weft_error *err)
{
    char file[WEFT__KV_STORE_FILE];
    weft_status st = name ? slot_file(name, file, err) : WEFT_OK;
    if (st) return st;
    if (!name) prefix_file(*snapshot, file);
    store_job *j = job_new(JOB_PUT, NULL, 0, done, arg);
    if (!j) return weft_fail(err, WEFT_NO_MEMORY, "no memory to save pages");
    memcpy(j->file, file, sizeof file);
    pthread_mutex_lock(&s->lock);
    uint64_t queued = s->stats.queued_bytes, n_bytes = (*snapshot)->n_bytes;
    if (queued > 0 && (n_bytes > MAX_QUEUED || queued > MAX_QUEUED - n_bytes)) {
        st = weft_fail(err, WEFT_BUSY, "%llu bytes wait to be written to the disk store already",
                       (unsigned long long)queued);
    } else {
        j->snapshot = *snapshot;
        *snapshot = NULL;
        s->stats.n_queued++;
        s->stats.queued_bytes += n_bytes;
        push(s, j);
    }
    pthread_mutex_unlock(&s->lock);
    if (st) weft__free(j);
    return st;
}

weft_status weft__kv_store_fetch(weft__kv_store *s, weft__kv_key root, const int32_t *tokens, int32_t n,
                                 weft__kv_store_done done, void *arg, weft_error *err)
{
    int32_t serves;
    store_job *j = job_new(JOB_FETCH, tokens, n, done, arg);
    if (!j) return weft_fail(err, WEFT_NO_MEMORY, "no memory to ask the disk store");
    j->root = root;
    pthread_mutex_lock(&s->lock);
    int found = weft__kv_store_index_best(&s->index, &s->layout, root, tokens, n, &serves) != NULL;
    if (found) push(s, j);
    pthread_mutex_unlock(&s->lock);
    if (found) return WEFT_OK;
    weft__free(j);
    return weft_fail(err, WEFT_NOT_FOUND, "the disk store has no prefix of this");
}

static weft_status ask_slot(weft__kv_store *s, job_kind kind, const char *name, weft__kv_store_done done, void *arg,
                            weft_error *err)
{
    char file[WEFT__KV_STORE_FILE];
    weft_status st = slot_file(name, file, err);
    if (st) return st;
    store_job *j = job_new(kind, NULL, 0, done, arg);
    if (!j) return weft_fail(err, WEFT_NO_MEMORY, "no memory to ask the disk store");
    memcpy(j->file, file, sizeof file);
    pthread_mutex_lock(&s->lock);
    push(s, j);
    pthread_mutex_unlock(&s->lock);
    return WEFT_OK;
}

weft_status weft__kv_store_fetch_slot(weft__kv_store *s, const char *name, weft__kv_store_done done, void *arg,
                                      weft_error *err)
{
    return ask_slot(s, JOB_FETCH_SLOT, name, done, arg, err);
}

weft_status weft__kv_store_erase(weft__kv_store *s, const char *name, weft__kv_store_done done, void *arg,
                                 weft_error *err)
{
    return ask_slot(s, JOB_ERASE, name, done, arg, err);
}

/* Has nothing been done since a caller waited in vain? Then no other need wait. With the lock. */
static int is_given_up(const weft__kv_store *s)
{
    return s->vain_at == s->n_done + 1;
}

/* Waits while *going, as long as jobs get done, each within wait_ms (0: for ever). With the lock. */
static void wait_while(weft__kv_store *s, const int *going, int until, uint64_t wait_ms)
{
    int expired = wait_ms && is_given_up(s);
    while (*going != until && !expired) {
        const uint64_t n = s->n_done, then = wait_ms ? weft__clock_ns() + wait_ms * 1000000 : 0;
        expired = weft__clock_wait(&s->idle, &s->lock, then) != 0 && s->n_done == n;
    }
    if (expired && *going != until) s->vain_at = s->n_done + 1;
}

int weft__kv_store_flush(weft__kv_store *s, uint64_t wait_ms)
{
    pthread_mutex_lock(&s->lock);
    wait_while(s, &s->busy, 0, wait_ms);
    int idle = !s->busy;
    pthread_mutex_unlock(&s->lock);
    return idle;
}

uint64_t weft__kv_store_n_done(weft__kv_store *s)
{
    pthread_mutex_lock(&s->lock);
    uint64_t n = s->n_done;
    pthread_mutex_unlock(&s->lock);
    return n;
}

void weft__kv_store_get_stats(weft__kv_store *s, weft__kv_store_stats *out)
{
    pthread_mutex_lock(&s->lock);
    *out = s->stats;
    weft__kv_store_index_slots(&s->index, &out->n_slots);
    out->n_prefixes = (int64_t)s->index.n - out->n_slots;
    out->n_bytes = s->index.n_bytes;
    pthread_mutex_unlock(&s->lock);
}

/* ---- opening and closing ---- */

static weft_status start(weft__kv_store *s, weft_error *err)
{
    int why =
        weft__thread_start(&s->thread, serve, s); /* on which a file that is too large gives an error, and no SIGXFSZ */
    return why ? weft_fail(err, WEFT_LIMIT, "no thread for the disk store: %s", strerror(why)) : WEFT_OK;
}

weft_status weft__kv_store_open(const char *folder, uint64_t cap_bytes, const weft__kv_layout *layout,
                                weft__kv_store **out, weft_error *err)
{
    *out = NULL;
    weft__kv_store *s = weft__alloc_zero(1, sizeof *s);
    if (!s) return weft_fail(err, WEFT_NO_MEMORY, "no memory for the disk store");
    s->layout = *layout;
    s->stats.cap_bytes = cap_bytes;
    for (int g = 0; g < layout->n_groups; g++) {
        if (layout->group[g].page_tokens > s->page_tokens) s->page_tokens = layout->group[g].page_tokens;
        s->has_window |= layout->group[g].window > 0;
    }
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->wake, NULL);
    weft__clock_cond_init(&s->idle);
    weft_status st = weft__kv_store_folder_open(&s->folder, folder, err);
    if (!st) st = weft__kv_store_scan(&s->folder, layout, &s->index, &s->stats.n_damaged, err);
    while (!st && s->index.n_bytes > cap_bytes && drop_oldest(s)) continue;
    if (!st) st = start(s, err);
    if (st) discard(s);
    else *out = s;
    return st;
}

void weft__kv_store_close(weft__kv_store **p, uint64_t wait_ms)
{
    weft__kv_store *s = p ? *p : NULL;
    if (!s) return;
    *p = NULL;
    pthread_mutex_lock(&s->lock);
    s->stop = 1;
    pthread_cond_signal(&s->wake);
    wait_while(s, &s->ended, 1, wait_ms);
    if (s->notifying) { /* the disk has answered: notifying takes no longer than a moment */
        s->vain_at = 0;
        wait_while(s, &s->ended, 1, wait_ms);
    }
    int ended = s->ended;
    s->abandoned = !ended;
    pthread_t thread = s->thread;
    if (!ended)
        weft__log(WEFT__LOG_WARN, "%s: the disk does not answer: what was to be written there is given up",
                  s->folder.path);
    pthread_mutex_unlock(&s->lock);
    if (!ended) {
        pthread_detach(thread);
        return;
    }
    pthread_join(thread, NULL);
    discard(s);
}
