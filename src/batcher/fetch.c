// SPDX-License-Identifier: Apache-2.0
/* fetch.c: prefixes that come back from the disk. A request whose prefix may be there waits for it outside of the
 * scheduler: the prefix tree was not looked at yet (ASKING), the disk is being read (FETCHING), it was read (FETCHED).
 * A request that waits ends at its deadline or when it is cancelled, whatever the disk does. The store's thread only
 * hands over what it read; all else is the engine's thread. */
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "batcher/batcher.h"

weft_status weft__batcher_open_store(weft_engine *e, weft_error *err)
{
    return weft__kv_store_open(e->params.store_dir, e->params.store_bytes, &e->caches[0].layout, &e->store, err);
}

int weft__batcher_worth_fetching(const batcher_request *r)
{
    weft_engine *e = r->engine;
    return e->store && weft__batcher_reads_cache(r) &&
           weft__kv_store_find(e->store, r->root, r->tokens, r->n_prompt - 1) >= e->block;
}

static void on_fetched(void *arg, weft_status status, const char *message, weft__kv_snapshot *snapshot)
{
    batcher_fetch *f = arg;
    weft_engine *e = f->engine;
    if (status && status != WEFT_NOT_FOUND) weft__log(WEFT__LOG_WARN, "a stored prefix cannot be used: %s", message);
    pthread_mutex_lock(&e->lock);
    if (f->r) {
        f->r->state = BATCHER_FETCHED;
        f->r->found = snapshot;
        snapshot = NULL;
    }
    *f = (batcher_fetch){0};
    e->work = 1;
    pthread_cond_signal(&e->wake);
    pthread_mutex_unlock(&e->lock);
    weft__kv_snapshot_free(&snapshot);
}

/* A place for a read; NULL: there is none now. *stuck: nor will there be, as far as one can see: all are taken by reads
 * whose askers are gone. With the lock. */
static batcher_fetch *free_fetch(weft_engine *e, int *stuck)
{
    *stuck = 1;
    for (int i = 0; i < BATCHER_FETCHES; i++) {
        if (!e->fetches[i].busy) return &e->fetches[i];
        if (e->fetches[i].r) *stuck = 0;
    }
    return NULL;
}

/* Asks the disk when the tree has less. With the lock. */
static void ask(weft_engine *e, batcher_request *r)
{
    int32_t n = r->n_prompt - 1, known = weft__kv_prefix_peek(r->cache->prefix, r->root, r->tokens, n);
    int stuck;
    batcher_fetch *f = free_fetch(e, &stuck);
    if (!f && !stuck) return;
    r->state = BATCHER_FETCHED;
    if (!f || weft__kv_store_find(e->store, r->root, r->tokens, n) < known + e->block) return;
    *f = (batcher_fetch){e, r, 1};
    r->state = BATCHER_FETCHING;
    r->fetch = f;
    if (weft__kv_store_fetch(e->store, r->root, r->tokens, n, on_fetched, f, NULL) == WEFT_OK) return;
    *f = (batcher_fetch){0};
    r->state = BATCHER_FETCHED;
}

/* It waits for the disk no longer; what is still read for it is dropped then. With the lock. */
static void let_go(weft_engine *e, batcher_request *r)
{
    if (r->state == BATCHER_FETCHING) r->fetch->r = NULL;
    weft__batcher_restore_stop(e, r->found);
    r->state = BATCHER_FETCHED;
}

/* Uses what was read; without the lock. 0: it is not done yet. */
static int take_found(weft_engine *e, batcher_request *r)
{
    int32_t n = weft__kv_snapshot_match(r->found, &r->cache->layout, r->root, r->tokens, r->n_prompt - 1), known;
    if (n > weft__kv_prefix_peek(r->cache->prefix, r->root, r->tokens, r->n_prompt - 1) &&
        !weft__batcher_restore(e, r->found, n, &known))
        return 0;
    weft__batcher_restore_stop(e, r->found); /* the tree may have learned of it otherwise meanwhile */
    weft__kv_snapshot_free(&r->found);
    return 1;
}

/* A request that never reaches the scheduler. */
static void finish_pending(weft_engine *e, batcher_request *r, weft_finish finish)
{
    r->finish = finish;
    e->events.ended[e->events.n_ended++] = (int32_t)(r - e->records.all);
}

/* Moves one request on. Returns 1 when it has left the pending ones. With the lock, which it lets go meanwhile. */
static int advance(weft_engine *e, batcher_request *r)
{
    weft_error err = {0};
    int late = r->deadline_ns && weft__clock_ns() >= r->deadline_ns;
    if (late || r->cancelled) let_go(e, r);
    if (r->state == BATCHER_ASKING) ask(e, r);
    if (r->state != BATCHER_FETCHED) return 0;
    if (r->found && !late && !r->cancelled) {
        pthread_mutex_unlock(&e->lock);
        int done = take_found(e, r);
        pthread_mutex_lock(&e->lock);
        e->work |= !done;
        if (!done) return 0;
    }
    if (r->cancelled) {
        finish_pending(e, r, WEFT_FINISH_CANCELLED);
        return 1;
    }
    if (late) {
        weft__batcher_expire(r);
        finish_pending(e, r, WEFT_FINISH_FAILED);
        return 1;
    }
    if (!weft__sched_has_room(e->sched, r->tenant, 0, 0)) return 0; /* it was accepted: it waits for its place here */
    weft_status st = weft__batcher_schedule(r, NULL, &err);
    if (st) {
        r->status = st;
        snprintf(r->message, sizeof r->message, "%.255s", err.message);
        finish_pending(e, r, WEFT_FINISH_FAILED);
    }
    return 1;
}

void weft__batcher_pending(weft_engine *e)
{
    int32_t before = -1;
    for (int32_t i = e->records.first_pending; i >= 0;) {
        int gone = advance(e, &e->records.all[i]);
        int32_t next = e->records.all[i].next; /* others may have been appended meanwhile */
        if (gone) *(before < 0 ? &e->records.first_pending : &e->records.all[before].next) = next;
        else before = i;
        if (gone && next < 0) e->records.last_pending = before;
        i = next;
    }
}

uint64_t weft__batcher_pending_deadline(const weft_engine *e)
{
    uint64_t first = 0;
    for (int32_t i = e->records.first_pending; i >= 0; i = e->records.all[i].next) {
        uint64_t ns = e->records.all[i].deadline_ns;
        if (ns && (!first || ns < first)) first = ns;
    }
    return first;
}
