// SPDX-License-Identifier: Apache-2.0
/* slots.c: slots that are saved, restored and erased by name: what callers wait for, and the commands of which the
 * engine's thread and the store's do it. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "batcher/batcher.h"

/* ---- commands: the engine's thread, and the store's ---- */

static void command_free(batcher_command *c)
{
    weft__kv_snapshot_free(&c->snapshot);
    weft__free(c->tokens);
    weft__free(c);
}

/* For the engine's thread; with the lock. */
static void enqueue(batcher_command *c)
{
    weft_engine *e = c->engine;
    c->next = NULL;
    *(e->commands.last ? &e->commands.last->next : &e->commands.first) = c;
    e->commands.last = c;
    e->work = 1;
    pthread_cond_signal(&e->wake);
}

/* With the lock. */
static void command_done(batcher_command *c, weft_status status)
{
    c->status = status;
    c->done = 1;
    pthread_cond_broadcast(&c->engine->done);
    if (!c->abandoned) return;
    batcher_command **p = &c->engine->commands.abandoned;
    while (*p != c) p = &(*p)->next_abandoned;
    *p = c->next_abandoned;
    command_free(c);
}

/* No caller waits for it any more; with the lock. */
static void abandon(batcher_command *c)
{
    c->abandoned = 1;
    c->next_abandoned = c->engine->commands.abandoned;
    c->engine->commands.abandoned = c;
}

void weft__batcher_commands_free(weft_engine *e)
{
    for (batcher_command *c; (c = e->commands.abandoned);) {
        e->commands.abandoned = c->next_abandoned;
        command_free(c);
    }
}

/* The store has written or erased it: the command is done. */
static void slot_done(void *arg, weft_status status, const char *message, weft__kv_snapshot *snapshot)
{
    batcher_command *c = arg;
    weft_engine *e = c->engine;
    (void)snapshot;
    pthread_mutex_lock(&e->lock);
    if (status) weft_fail(&c->err, status, "%s", message);
    command_done(c, status);
    pthread_mutex_unlock(&e->lock);
}

void weft__batcher_slot_read(void *arg, weft_status status, const char *message, weft__kv_snapshot *snapshot)
{
    batcher_command *c = arg;
    weft_engine *e = c->engine;
    c->snapshot = snapshot;
    pthread_mutex_lock(&e->lock);
    if (status) {
        weft_fail(&c->err, status, "%s", message);
        command_done(c, status);
    } else {
        enqueue(c);
    }
    pthread_mutex_unlock(&e->lock);
}

/* The type of which most of the tokens is known; the first one of several. */
static batcher_cache *best_cache(weft_engine *e, const batcher_command *c)
{
    int32_t best = 0, most = -1;
    for (int32_t i = 0; i < e->n_caches; i++) {
        const int32_t n = weft__kv_prefix_peek(e->caches[i].prefix, c->root[i], c->tokens, c->n);
        if (n > most) best = i, most = n;
    }
    return &e->caches[best];
}

/* A piece; *going: there are more to come. */
static weft_status save(weft_engine *e, batcher_command *c, int *going)
{
    int complete;
    if (!c->cache) c->cache = best_cache(e, c);
    weft_status st = weft__batcher_copy_piece(e, c->cache, c->root[c->cache - e->caches], c->tokens, &c->n,
                                              &c->snapshot, &c->at, &complete, &c->err);
    *going = !st && !complete;
    if (*going) return WEFT_OK;
    weft__kv_snapshot *s = c->snapshot; /* the command may be gone when the store has taken it */
    c->snapshot = NULL;
    if (!st) {
        c->n_bytes = s->n_bytes;
        st = weft__kv_store_put(e->store, &s, c->name, slot_done, c, &c->err);
    }
    weft__kv_snapshot_free(&s);
    return st;
}

/* As save. */
static weft_status restore(weft_engine *e, batcher_command *c, int *going)
{
    int32_t n = weft__kv_snapshot_head_of(c->snapshot)->n_tokens;
    *going = !weft__batcher_restore(e, c->snapshot, n, &c->n);
    if (*going) return WEFT_OK;
    int32_t n_told = c->n < c->capacity ? c->n : c->capacity;
    if (n_told > 0) memcpy(c->tokens, weft__kv_snapshot_tokens(c->snapshot), (size_t)n_told * sizeof *c->tokens);
    c->n_bytes = c->snapshot->n_bytes;
    weft__kv_snapshot_free(&c->snapshot);
    return c->n ? WEFT_OK : weft_fail(&c->err, WEFT_LIMIT, "there are no KV pages for the slot's %d tokens now", n);
}

/* Puts it back before the others, which have come nearer as well; with the lock. */
static void command_goes_on(weft_engine *e, batcher_command *c)
{
    c->next = e->commands.first;
    e->commands.first = c;
    if (!e->commands.last) e->commands.last = c;
    for (c = c->next; c; c = c->next) c->n_turns++;
    e->work = 1;
}

void weft__batcher_commands(weft_engine *e)
{
    for (batcher_command *c; (c = e->commands.first);) {
        int saving = c->save, going = 0;
        c->n_turns++;
        e->commands.first = c->next;
        if (!e->commands.first) e->commands.last = NULL;
        pthread_mutex_unlock(&e->lock);
        weft_status st = saving ? save(e, c, &going) : restore(e, c, &going);
        pthread_mutex_lock(&e->lock);
        if (going) { /* after a step of those that run */
            command_goes_on(e, c);
            return;
        }
        if (st || !saving) command_done(c, st); /* one that is being written may be done, and gone, by now */
    }
}

/* ---- what callers wait for ---- */

/* For n tokens, which are copied where they are given; NULL: no memory. */
static batcher_command *command_new(weft_engine *e, const char *name, const int32_t *tokens, int32_t n)
{
    batcher_command *c = weft__alloc_zero(1, sizeof *c);
    if (!c) return NULL;
    c->engine = e;
    c->n = c->capacity = n;
    snprintf(c->name, sizeof c->name, "%s", name);
    c->tokens = weft__alloc_array((size_t)n, sizeof *c->tokens);
    if (c->tokens && tokens) memcpy(c->tokens, tokens, (size_t)n * sizeof *tokens);
    if (c->tokens) return c;
    command_free(c);
    return NULL;
}

/* Changes when the engine's thread, or the store's, does some of what c waits for. With the lock. */
static uint64_t progress(const batcher_command *c)
{
    return c->n_turns + weft__kv_store_n_done(c->engine->store);
}

/* Waits until the engine's thread, or the store's, is done with it: 1, and it is the caller's to free; 0: nothing has
 * moved for disk_wait_ms: the disk does not answer. */
static int wait_for(batcher_command *c, weft_error *err)
{
    weft_engine *e = c->engine;
    pthread_mutex_lock(&e->lock);
    uint32_t wait_ms = e->params.disk_wait_ms;
    for (int late = 0; !c->done && !late;) {
        const uint64_t seen = progress(c), until = weft__clock_ns() + wait_ms * 1000000ull;
        do late = weft__clock_wait(&e->done, &e->lock, until) != 0;
        while (!c->done && !late && progress(c) == seen);
        late = late && progress(c) == seen;
    }
    int done = c->done;
    if (!done) abandon(c);
    pthread_mutex_unlock(&e->lock);
    if (!done) weft_fail(err, WEFT_TIMEOUT, "the disk has not answered within %g s; it may do it yet", wait_ms / 1e3);
    else if (c->status && err) *err = c->err;
    return done;
}

static weft_status check_slot(const weft_engine *e, const char *name, weft_error *err)
{
    if (!e->store)
        return weft_fail(err, WEFT_UNSUPPORTED, "this engine has no store to keep slots in; give it a folder for one");
    return weft__kv_slot_name_check(name, err);
}

weft_status weft_engine_save(weft_engine *e, const char *tenant, const int32_t *tokens, int32_t n, const char *name,
                             int32_t *n_saved, uint64_t *n_bytes, weft_error *err)
{
    weft__kv_key root[WEFT_KV_TYPES_MAX];
    *n_saved = 0;
    *n_bytes = 0;
    weft_status st = check_slot(e, name, err);
    if (!st && (n < 1 || n > WEFT__KV_SNAPSHOT_TOKENS)) st = weft_fail(err, WEFT_ARGUMENT, "%d tokens to save", n);
    for (int32_t i = 0; !st && i < e->n_caches; i++)
        st = weft__batcher_root(e, &e->caches[i], tenant ? tenant : "", NULL, &root[i], err);
    if (st) return st;
    batcher_command *c = command_new(e, name, tokens, n);
    if (!c) return weft_fail(err, WEFT_NO_MEMORY, "no memory to save %d tokens", n);
    c->save = 1;
    memcpy(c->root, root, (size_t)e->n_caches * sizeof *root);
    pthread_mutex_lock(&e->lock);
    enqueue(c);
    pthread_mutex_unlock(&e->lock);
    if (!wait_for(c, err)) return WEFT_TIMEOUT;
    st = c->status;
    if (!st) {
        *n_saved = c->n;
        *n_bytes = c->n_bytes;
    }
    command_free(c);
    return st;
}

weft_status weft_engine_restore(weft_engine *e, const char *name, int32_t *tokens, int32_t capacity, int32_t *n_tokens,
                                uint64_t *n_bytes, weft_error *err)
{
    *n_tokens = 0;
    *n_bytes = 0;
    weft_status st = check_slot(e, name, err);
    if (st) return st;
    batcher_command *c = command_new(e, name, NULL, capacity);
    if (!c) return weft_fail(err, WEFT_NO_MEMORY, "no memory to restore %d tokens", capacity);
    if ((st = weft__kv_store_fetch_slot(e->store, name, weft__batcher_slot_read, c, err))) {
        command_free(c);
        return st;
    }
    if (!wait_for(c, err)) return WEFT_TIMEOUT;
    st = c->status;
    if (!st) {
        int32_t n_told = c->n < capacity ? c->n : capacity;
        if (n_told > 0) memcpy(tokens, c->tokens, (size_t)n_told * sizeof *tokens);
        *n_tokens = c->n;
        *n_bytes = c->n_bytes;
    }
    command_free(c);
    return st;
}

weft_status weft_engine_erase(weft_engine *e, const char *name, weft_error *err)
{
    weft_status st = check_slot(e, name, err);
    if (st) return st;
    batcher_command *c = command_new(e, name, NULL, 0);
    if (!c) return weft_fail(err, WEFT_NO_MEMORY, "no memory to erase a slot");
    if ((st = weft__kv_store_erase(e->store, name, slot_done, c, err))) {
        command_free(c);
        return st;
    }
    if (!wait_for(c, err)) return WEFT_TIMEOUT;
    st = c->status;
    command_free(c);
    return st;
}
