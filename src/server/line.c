/* line.c: requests that wait in a line for something that takes long, which is done for one after the other on a thread of the line's own:
 * grammars to be compiled, adapters to be read. A flood of slow ones costs one processor and delays those in the same line, and neither the
 * workers nor the engine. What a grammar costs the engine afterwards, at each token, is bounded where its masks are made (matcher.h).
 * A second thread is their clock: whose deadline passes while he waits, or while it is his turn, has his answer then and not later.
 * Invariant: a gen in the queue belongs to it, and leaves it exactly once; the one whose turn it is stays `now` until that is over, so that it
 * lives while the clock answers for it. */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "server/server.h"

/* The first in the queue, taken out of it, or NULL. With the lock. */
static weft__gen *take(weft__line *c)
{
    weft__gen *g = c->first;
    if (!g) return NULL;
    c->first = g->next;
    c->n--;
    return g;
}

static void *serve_all(void *arg)
{
    weft__line *c = arg;
    pthread_mutex_lock(&c->lock);
    for (;;) {
        while (!c->first && !c->stop) pthread_cond_wait(&c->wake, &c->lock);
        weft__gen *g = c->now = take(c);
        if (!g) break;
        pthread_mutex_unlock(&c->lock);
        weft__fault fault = {0};
        int is_done = c->work(g, &fault);
        pthread_mutex_lock(&c->lock);
        c->now = NULL;
        pthread_mutex_unlock(&c->lock);
        if (g->too_late) weft__gen_drop(g);
        else c->go_on(g, is_done ? NULL : &fault);
        pthread_mutex_lock(&c->lock);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* Is it late? *next: the earliest deadline of those that are not, 0: none. */
static int is_late(const weft__gen *g, uint64_t now, uint64_t *next)
{
    uint64_t ns = g->too_late ? 0 : weft__gen_deadline(g);
    if (ns && ns <= now) return 1;
    if (ns && (!*next || ns < *next)) *next = ns;
    return 0;
}

/* Answers those whose deadline has passed; returns when the next one does, 0: never. With the lock. */
static uint64_t tell_late(weft__line *c)
{
    uint64_t now = weft__clock_ns(), next = 0;
    if (c->now && is_late(c->now, now, &next)) {
        c->now->too_late = 1;
        weft__gen_late(c->now, c->what);
    }
    weft__gen *before = NULL;
    for (weft__gen *g = c->first, *after; g; g = after) {
        after = g->next;
        if (!is_late(g, now, &next)) {
            before = g;
            continue;
        }
        *(before ? &before->next : &c->first) = after;
        if (c->last == g) c->last = before;
        c->n--;
        weft__gen_late(g, c->what);
        weft__gen_drop(g);
    }
    return next;
}

static void *watch_clock(void *arg)
{
    weft__line *c = arg;
    pthread_mutex_lock(&c->lock);
    while (!c->stop) {
        uint64_t next = tell_late(c);
        struct timespec until = {(time_t)(next / 1000000000), (long)(next % 1000000000)};
        if (next) pthread_cond_timedwait(&c->tick, &c->lock, &until);
        else pthread_cond_wait(&c->tick, &c->lock);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

weft_status weft__line_begin(weft__line *c, weft_error *err)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->wake, NULL);
    pthread_cond_init(&c->tick, &attr);
    pthread_condattr_destroy(&attr);
    c->has_thread = pthread_create(&c->thread, NULL, serve_all, c) == 0;
    c->has_clock = c->has_thread && pthread_create(&c->clock, NULL, watch_clock, c) == 0;
    return c->has_clock ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no thread for requests that wait for %s", c->what);
}

/* With the lock. */
static int has_room(const weft__line *c, const char *tenant)
{
    int n = 0;
    for (const weft__gen *g = c->first; g && *tenant; g = g->next) n += !strcmp(g->tenant, tenant);
    return c->n < c->max && n < c->max_of_one;
}

int weft__line_put(weft__line *c, weft__gen *g)
{
    pthread_mutex_lock(&c->lock);
    int room = has_room(c, g->tenant);
    if (room) {
        int timed = weft__gen_deadline(g) != 0;
        g->next = NULL;
        *(c->first ? &c->last->next : &c->first) = g;
        c->last = g;
        c->n++;
        pthread_cond_signal(&c->wake);
        if (timed) pthread_cond_signal(&c->tick);
    }
    pthread_mutex_unlock(&c->lock);
    return room;
}

void weft__line_end(weft__line *c)
{
    if (!c->has_thread) return;
    pthread_mutex_lock(&c->lock);
    c->stop = 1;
    pthread_cond_signal(&c->wake);
    pthread_cond_signal(&c->tick);
    pthread_mutex_unlock(&c->lock);
    pthread_join(c->thread, NULL);
    if (c->has_clock) pthread_join(c->clock, NULL);
    pthread_cond_destroy(&c->tick);
    pthread_cond_destroy(&c->wake);
    pthread_mutex_destroy(&c->lock);
}
