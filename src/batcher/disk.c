/* disk.c: what outlives the engine: prefixes that go to the disk store and come back, and slots that are saved by name.
 *
 * A request whose prefix may be on the disk waits for it outside of the scheduler: nobody asked the prefix tree yet (ASKING), the
 * disk is being read (FETCHING), it was read (FETCHED). A finished request's tokens are kept until there is a quiet moment, or a
 * second has gone by; then the pages that the tree still has of them are copied for the store, a piece after each step, and the store
 * writes them in the background. Who waits for the disk ends at his deadline or when he is cancelled, whatever the disk does.
 * The store's thread only hands over what it read. */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "batcher/batcher.h"

static const uint64_t KEEP_EVERY_NS = 1000000000; /* between two of them, while the engine is busy */

weft_status weft__serve_open_store(weft_engine *e, weft_error *err)
{
    return weft__store_open(e->params.store_dir, e->params.store_bytes, &e->layout, &e->store, err);
}

/* ---- prefixes that come back ---- */

int weft__serve_worth_fetching(const serve_request *r)
{
    weft_engine *e = r->engine;
    return e->store && weft__serve_reads_cache(r) && weft__store_find(e->store, r->root, r->tokens, r->n_prompt - 1) >= e->block;
}

static void on_fetched(void *arg, weft_status status, const char *message, weft__snapshot *snapshot)
{
    serve_fetch *f = arg;
    weft_engine *e = f->engine;
    if (status && status != WEFT_NOT_FOUND) weft__log(WEFT__LOG_WARN, "a stored prefix cannot be used: %s", message);
    pthread_mutex_lock(&e->lock);
    if (f->r) {
        f->r->state = SERVE_FETCHED;
        f->r->found = snapshot;
        snapshot = NULL;
    }
    *f = (serve_fetch){0};
    e->work = 1;
    pthread_cond_signal(&e->wake);
    pthread_mutex_unlock(&e->lock);
    weft__snapshot_free(&snapshot);
}

/* A place for a read; NULL: there is none now. *stuck: nor will there be, as far as one can see: all are taken by reads whose askers are
 * gone. With the lock. */
static serve_fetch *free_fetch(weft_engine *e, int *stuck)
{
    *stuck = 1;
    for (int i = 0; i < SERVE_FETCHES; i++) {
        if (!e->fetches[i].busy) return &e->fetches[i];
        if (e->fetches[i].r) *stuck = 0;
    }
    return NULL;
}

/* Asks the disk when the tree has less. With the lock. */
static void ask(weft_engine *e, serve_request *r)
{
    int32_t n = r->n_prompt - 1, known = weft__prefix_peek(e->prefix, r->root, r->tokens, n);
    int stuck;
    serve_fetch *f = free_fetch(e, &stuck);
    if (!f && !stuck) return;
    r->state = SERVE_FETCHED;
    if (!f || weft__store_find(e->store, r->root, r->tokens, n) < known + e->block) return;
    *f = (serve_fetch){e, r, 1};
    r->state = SERVE_FETCHING;
    r->fetch = f;
    if (weft__store_fetch(e->store, r->root, r->tokens, n, on_fetched, f, NULL) == WEFT_OK) return;
    *f = (serve_fetch){0};
    r->state = SERVE_FETCHED;
}

/* It waits for the disk no longer; what is still read for it is dropped then. With the lock. */
static void let_go(weft_engine *e, serve_request *r)
{
    if (r->state == SERVE_FETCHING) r->fetch->r = NULL;
    weft__serve_plant_stop(e, r->found);
    r->state = SERVE_FETCHED;
}

/* Uses what was read; without the lock. 0: it is not done yet. */
static int take_found(weft_engine *e, serve_request *r)
{
    int32_t n = weft__snapshot_match(r->found, &e->layout, r->root, r->tokens, r->n_prompt - 1), known;
    if (n > weft__prefix_peek(e->prefix, r->root, r->tokens, r->n_prompt - 1) && !weft__serve_plant(e, r->found, n, &known))
        return 0;
    weft__serve_plant_stop(e, r->found); /* the tree may have learned of it otherwise meanwhile */
    weft__snapshot_free(&r->found);
    return 1;
}

/* A request that never reaches the scheduler. */
static void finish_pending(weft_engine *e, serve_request *r, weft_finish finish)
{
    r->finish = finish;
    e->ended[e->n_ended++] = (int32_t)(r - e->records);
}

/* Moves one request on. Returns 1 when it has left the pending ones. With the lock, which it lets go meanwhile. */
static int advance(weft_engine *e, serve_request *r)
{
    weft_error err = {0};
    int late = r->deadline_ns && weft__clock_ns() >= r->deadline_ns;
    if (late || r->cancelled) let_go(e, r);
    if (r->state == SERVE_ASKING) ask(e, r);
    if (r->state != SERVE_FETCHED) return 0;
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
        weft__serve_late(r);
        finish_pending(e, r, WEFT_FINISH_FAILED);
        return 1;
    }
    if (!weft__sched_has_room(e->sched, r->tenant, 0, 0)) return 0; /* it was accepted: it waits for its place here */
    weft_status st = weft__serve_schedule(r, NULL, &err);
    if (st) {
        r->status = st;
        snprintf(r->message, sizeof r->message, "%.255s", err.message);
        finish_pending(e, r, WEFT_FINISH_FAILED);
    }
    return 1;
}

void weft__serve_pending(weft_engine *e)
{
    int32_t before = -1;
    for (int32_t i = e->first_pending; i >= 0;) {
        int gone = advance(e, &e->records[i]);
        int32_t next = e->records[i].next; /* others may have been appended meanwhile */
        if (gone) *(before < 0 ? &e->first_pending : &e->records[before].next) = next;
        else before = i;
        if (gone && next < 0) e->last_pending = before;
        i = next;
    }
}

uint64_t weft__serve_pending_deadline(const weft_engine *e)
{
    uint64_t first = 0;
    for (int32_t i = e->first_pending; i >= 0; i = e->records[i].next) {
        uint64_t ns = e->records[i].deadline_ns;
        if (ns && (!first || ns < first)) first = ns;
    }
    return first;
}

/* ---- slots ---- */

void weft__serve_command(serve_command *c)
{
    weft_engine *e = c->engine;
    c->next = NULL;
    *(e->last_command ? &e->last_command->next : &e->first_command) = c;
    e->last_command = c;
    e->work = 1;
    pthread_cond_signal(&e->wake);
}

/* With the lock. */
static void command_done(serve_command *c, weft_status status)
{
    c->status = status;
    c->done = 1;
    pthread_cond_broadcast(&c->engine->told);
    if (!c->abandoned) return;
    serve_command **p = &c->engine->abandoned;
    while (*p != c) p = &(*p)->next_abandoned;
    *p = c->next_abandoned;
    weft__serve_command_free(c);
}

void weft__serve_command_abandon(serve_command *c)
{
    c->abandoned = 1;
    c->next_abandoned = c->engine->abandoned;
    c->engine->abandoned = c;
}

void weft__serve_commands_free(weft_engine *e)
{
    for (serve_command *c; (c = e->abandoned);) {
        e->abandoned = c->next_abandoned;
        weft__serve_command_free(c);
    }
}

void weft__serve_command_free(serve_command *c)
{
    weft__snapshot_free(&c->snapshot);
    weft__free(c->tokens);
    weft__free(c);
}

void weft__serve_slot_done(void *arg, weft_status status, const char *message, weft__snapshot *snapshot)
{
    serve_command *c = arg;
    weft_engine *e = c->engine;
    (void)snapshot;
    pthread_mutex_lock(&e->lock);
    if (status) weft_fail(&c->err, status, "%s", message);
    command_done(c, status);
    pthread_mutex_unlock(&e->lock);
}

void weft__serve_slot_read(void *arg, weft_status status, const char *message, weft__snapshot *snapshot)
{
    serve_command *c = arg;
    weft_engine *e = c->engine;
    c->snapshot = snapshot;
    pthread_mutex_lock(&e->lock);
    if (status) {
        weft_fail(&c->err, status, "%s", message);
        command_done(c, status);
    } else {
        weft__serve_command(c);
    }
    pthread_mutex_unlock(&e->lock);
}

/* A piece of a snapshot of what the tree has of tokens[0, *n), which becomes how many those are. Nothing of the tree is held between
 * pieces: what was evicted meanwhile, and is not there again, ends it with WEFT_NOT_FOUND. *complete: it is whole. */
static weft_status copy_piece(weft_engine *e, weft__kv_key root, const int32_t *tokens, int32_t *n, weft__snapshot **s,
                              uint64_t *at, int *complete, weft_error *err)
{
    weft_status st = WEFT_OK;
    int32_t wanted = *n, found;
    *complete = 0;
    weft__kv_seq *seq = weft__serve_borrow_seq(e, wanted);
    if (!seq) return weft_fail(err, WEFT_NO_MEMORY, "no memory for %d tokens", wanted);
    found = weft__prefix_match(e->prefix, root, tokens, wanted, seq, NULL);
    if (found == 0 || (*s && found < wanted)) st = weft_fail(err, WEFT_NOT_FOUND, "nothing of these tokens is cached any more");
    if (!st && !*s) {
        *n = found;
        *at = 0;
        st = weft__snapshot_begin(&e->layout, root, tokens, found, seq, s, err);
    }
    uint64_t before = *at;
    if (!st) *complete = weft__snapshot_copy(*s, &e->layout, seq, at, e->copy_left);
    if (!st) e->copy_left -= *at - before;
    weft__kv_seq_destroy(&seq);
    return st;
}

/* A piece; *going: there are more to come. */
static weft_status save(weft_engine *e, serve_command *c, int *going)
{
    int complete;
    weft_status st = copy_piece(e, c->root, c->tokens, &c->n, &c->snapshot, &c->at, &complete, &c->err);
    *going = !st && !complete;
    if (*going) return WEFT_OK;
    weft__snapshot *s = c->snapshot; /* the command may be gone when the store has taken it */
    c->snapshot = NULL;
    if (!st) {
        c->n_bytes = s->n_bytes;
        st = weft__store_put(e->store, &s, c->name, weft__serve_slot_done, c, &c->err);
    }
    weft__snapshot_free(&s);
    return st;
}

/* As save. */
static weft_status restore(weft_engine *e, serve_command *c, int *going)
{
    int32_t n = weft__snapshot_head_of(c->snapshot)->n_tokens;
    *going = !weft__serve_plant(e, c->snapshot, n, &c->n);
    if (*going) return WEFT_OK;
    int32_t n_told = c->n < c->capacity ? c->n : c->capacity;
    if (n_told > 0) memcpy(c->tokens, weft__snapshot_tokens(c->snapshot), (size_t)n_told * sizeof *c->tokens);
    c->n_bytes = c->snapshot->n_bytes;
    weft__snapshot_free(&c->snapshot);
    return c->n ? WEFT_OK : weft_fail(&c->err, WEFT_LIMIT, "there are no KV pages for the slot's %d tokens now", n);
}

/* Puts it back before the others, which have come nearer as well; with the lock. */
static void command_goes_on(weft_engine *e, serve_command *c)
{
    c->next = e->first_command;
    e->first_command = c;
    if (!e->last_command) e->last_command = c;
    for (c = c->next; c; c = c->next) c->n_turns++;
    e->work = 1;
}

void weft__serve_commands(weft_engine *e)
{
    for (serve_command *c; (c = e->first_command);) {
        int saving = c->save, going = 0;
        c->n_turns++;
        e->first_command = c->next;
        if (!e->first_command) e->last_command = NULL;
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

/* ---- prefixes to be kept ---- */

/* A file holds all pages of its tokens: one that shares most of them with another is not worth its bytes. */
static int worth_keeping(weft_engine *e, weft__kv_key root, const int32_t *tokens, int32_t n)
{
    return weft__store_wants(e->store, root, tokens, n) && n - weft__store_find(e->store, root, tokens, n) >= n / 4;
}

void weft__serve_keep(weft_engine *e, weft__kv_key root, int32_t **tokens, int32_t n)
{
    if (!e->store || n < e->block || !worth_keeping(e, root, *tokens, n)) return;
    if (e->n_keeps == SERVE_KEEPS) { /* the oldest is the likeliest to have lost its pages */
        weft__free(e->keeps[e->first_keep].tokens);
        e->first_keep = (e->first_keep + 1) % SERVE_KEEPS;
        e->n_keeps--;
    }
    e->keeps[(e->first_keep + e->n_keeps++) % SERVE_KEEPS] = (serve_keep){root, *tokens, n};
    *tokens = NULL;
}

int weft__serve_keeping(const weft_engine *e)
{
    return e->n_keeps + (e->keeping.tokens != NULL);
}

int weft__serve_keep_due(const weft_engine *e)
{
    return e->keeping.tokens || (e->n_keeps > 0 && weft__clock_ns() - e->kept_ns > KEEP_EVERY_NS);
}

static void forget_keeps(weft_engine *e)
{
    for (; e->n_keeps > 0; e->n_keeps--) {
        weft__free(e->keeps[e->first_keep].tokens);
        e->first_keep = (e->first_keep + 1) % SERVE_KEEPS;
    }
}

/* Takes the next one that is still worth it; 0: it is not. */
static int next_to_keep(weft_engine *e, int stopping)
{
    serve_keep *k = &e->keeping;
    *k = e->keeps[e->first_keep];
    e->first_keep = (e->first_keep + 1) % SERVE_KEEPS;
    e->n_keeps--;
    if (stopping && !weft__store_flush(e->store, e->params.disk_wait_ms))
        forget_keeps(e); /* else there is time, and room in its queue then */
    k->n = weft__prefix_peek(e->prefix, k->root, k->tokens, k->n);
    return k->n > 0 && worth_keeping(e, k->root, k->tokens, k->n);
}

void weft__serve_keep_some(weft_engine *e, int stopping)
{
    serve_keep *k = &e->keeping;
    int complete = 0;
    if (!weft__serve_keeping(e)) return;
    if (k->tokens || next_to_keep(e, stopping)) {
        weft_status st = copy_piece(e, k->root, k->tokens, &k->n, &e->kept, &e->kept_at, &complete, NULL);
        if (!st && !complete) return;
        if (!st)
            weft__store_put(e->store, &e->kept, NULL, NULL, NULL,
                            NULL); /* a cache may forget: the store tells of failures in its log */
    }
    weft__serve_keep_nothing(e);
    e->kept_ns = weft__clock_ns();
}

void weft__serve_keep_nothing(weft_engine *e)
{
    weft__snapshot_free(&e->kept);
    weft__free(e->keeping.tokens);
    e->keeping.tokens = NULL;
}
