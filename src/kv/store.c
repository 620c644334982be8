// SPDX-License-Identifier: Apache-2.0
/* store.c: the queue and the thread of the disk store (store.h).
 * The store's thread alone touches files and adds to or removes from the index; the lock covers queue, index and
 * counters, and is never held while the disk works. */
#include "kv/store.h"

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
        weft__kv_store_drop(s, old);
    }
}

static weft_status do_put(weft__kv_store *s, weft__kv_store_job *j, weft_error *err)
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
    weft_status st = weft__kv_store_make_room(s, j->file, e->n_bytes, old, err);
    if (!st) {
        weft__kv_snapshot_seal(j->snapshot);
        st = weft__kv_store_write(&s->folder, j->file, j->snapshot, &in_place, err);
        if (st == WEFT_LIMIT && weft__kv_store_free_disk(s, e->n_bytes))
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
    weft__kv_store_drop(s, e);
    return st;
}

static weft_status do_fetch(weft__kv_store *s, weft__kv_store_job *j, weft__kv_snapshot **out, weft_error *err)
{
    int32_t serves;
    weft__kv_store_entry *e;
    pthread_mutex_lock(&s->lock);
    if (j->kind == JOB_FETCH) e = weft__kv_store_index_best(&s->index, &s->layout, j->root, j->tokens, j->n, &serves);
    else e = weft__kv_store_index_named(&s->index, j->file);
    pthread_mutex_unlock(&s->lock);
    return e ? do_read(s, e, out, err) : weft_fail(err, WEFT_NOT_FOUND, "nothing of that kind is in the disk store");
}

static weft_status do_erase(weft__kv_store *s, weft__kv_store_job *j, weft_error *err)
{
    weft__kv_store_entry *e = weft__kv_store_index_named(&s->index, j->file);
    if (!e) return weft_fail(err, WEFT_NOT_FOUND, "no slot of that name is saved");
    weft__kv_store_drop(s, e);
    return WEFT_OK;
}

/* Counts how a write ended, and logs the first of a row of failures. */
static void note_put(weft__kv_store *s, const weft__kv_store_job *j, weft_status st, const char *message)
{
    pthread_mutex_lock(&s->lock);
    s->stats.n_queued--;
    s->stats.queued_bytes -= j->snapshot->n_bytes;
    s->stats.n_write_failed += st != WEFT_OK;
    pthread_mutex_unlock(&s->lock);
    if (st && !s->failing) weft__log(WEFT__LOG_WARN, "%s: %s: not saved: %s", s->folder.path, j->file, message);
    s->failing = st != WEFT_OK;
}

static void job_free(weft__kv_store_job *j)
{
    weft__kv_snapshot_free(&j->snapshot);
    weft__kv_swap_io_free(&j->io);
    weft__free(j);
}

static void store_run(weft__kv_store *s, weft__kv_store_job *j)
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
    case JOB_SWAP_OUT:
    case JOB_SWAP_IN:
    case JOB_SWAP_EMPTY: weft__kv_store_swap(s, j); break;
    }
    pthread_mutex_lock(&s->lock);
    s->notifying = (j->done || j->io) && !s->abandoned;
    pthread_mutex_unlock(&s->lock);
    if (s->notifying && j->done) j->done(j->arg, st, e.message, snapshot);
    else weft__kv_snapshot_free(&snapshot);
    if (s->notifying && j->io) s->swap.done(s->swap.arg, j->io), j->io = NULL;
    job_free(j);
}

static weft__kv_store_job *pop(weft__kv_store *s)
{
    weft__kv_store_queue *q = s->reads.first ? &s->reads : s->swaps.first ? &s->swaps : &s->others;
    weft__kv_store_job *j = q->first;
    if (!j) return NULL;
    q->first = j->next;
    if (!q->first) q->last = NULL;
    return j;
}

/* Frees all of it; the thread has ended, or is the caller. */
static void discard(weft__kv_store *s)
{
    for (weft__kv_store_job *j; (j = pop(s));) job_free(j);
    for (size_t i = 0; i < s->index.n; i++) weft__free(s->index.entry[i]);
    weft__free(s->index.entry);
    weft__kv_store_swap_close(s);
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
        weft__kv_store_job *j = pop(s);
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

weft__kv_store_job *weft__kv_store_job_new(weft__kv_store_kind kind, const int32_t *tokens, int32_t n,
                                           weft__kv_store_done done, void *arg)
{
    weft__kv_store_job *j = weft__alloc(sizeof *j + (size_t)n * sizeof *tokens);
    if (!j) return NULL;
    *j = (weft__kv_store_job){.kind = kind, .n = n, .done = done, .arg = arg};
    if (n) memcpy(j->tokens, tokens, (size_t)n * sizeof *tokens);
    return j;
}

void weft__kv_store_push(weft__kv_store *s, weft__kv_store_job *j)
{
    weft__kv_store_queue *q = j->kind == JOB_FETCH || j->kind == JOB_SWAP_IN         ? &s->reads
                              : j->kind == JOB_SWAP_OUT || j->kind == JOB_SWAP_EMPTY ? &s->swaps
                                                                                     : &s->others;
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
    weft__kv_store_job *j = weft__kv_store_job_new(JOB_PUT, NULL, 0, done, arg);
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
        weft__kv_store_push(s, j);
    }
    pthread_mutex_unlock(&s->lock);
    if (st) weft__free(j);
    return st;
}

weft_status weft__kv_store_fetch(weft__kv_store *s, weft__kv_key root, const int32_t *tokens, int32_t n,
                                 weft__kv_store_done done, void *arg, weft_error *err)
{
    int32_t serves;
    weft__kv_store_job *j = weft__kv_store_job_new(JOB_FETCH, tokens, n, done, arg);
    if (!j) return weft_fail(err, WEFT_NO_MEMORY, "no memory to ask the disk store");
    j->root = root;
    pthread_mutex_lock(&s->lock);
    int found = weft__kv_store_index_best(&s->index, &s->layout, root, tokens, n, &serves) != NULL;
    if (found) weft__kv_store_push(s, j);
    pthread_mutex_unlock(&s->lock);
    if (found) return WEFT_OK;
    weft__free(j);
    return weft_fail(err, WEFT_NOT_FOUND, "the disk store has no prefix of this");
}

static weft_status ask_slot(weft__kv_store *s, weft__kv_store_kind kind, const char *name, weft__kv_store_done done,
                            void *arg, weft_error *err)
{
    char file[WEFT__KV_STORE_FILE];
    weft_status st = slot_file(name, file, err);
    if (st) return st;
    weft__kv_store_job *j = weft__kv_store_job_new(kind, NULL, 0, done, arg);
    if (!j) return weft_fail(err, WEFT_NO_MEMORY, "no memory to ask the disk store");
    memcpy(j->file, file, sizeof file);
    pthread_mutex_lock(&s->lock);
    weft__kv_store_push(s, j);
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
    out->swap_bytes = s->swap.n_bytes;
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
    s->swap.fd = s->folder.fd = s->folder.lock = -1;
    for (int g = 0; g < layout->n_groups; g++) {
        if (layout->group[g].page_tokens > s->page_tokens) s->page_tokens = layout->group[g].page_tokens;
        s->has_window |= layout->group[g].window > 0;
    }
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->wake, NULL);
    weft__clock_cond_init(&s->idle);
    weft_status st = weft__kv_store_folder_open(&s->folder, folder, err);
    if (!st) st = weft__kv_store_scan(&s->folder, layout, &s->index, &s->stats.n_damaged, err);
    while (!st && s->index.n_bytes > cap_bytes && weft__kv_store_drop_oldest(s)) continue;
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
