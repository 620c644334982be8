/* compile.c: the grammars of requests are compiled one after the other on a thread of their own: a flood of slow ones costs one processor
 * and delays requests with grammars, and neither the workers nor the engine. What a grammar costs the engine afterwards, at each token, is
 * bounded where its masks are made (matcher.h).
 * A second thread is their clock: whose deadline passes while he waits, or while his is compiled, has his answer then and not when it is his turn.
 * Invariant: a gen in the queue belongs to it, and leaves it exactly once; the one being compiled stays `now` until that is over, so that it
 * lives while the clock answers for it. */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "server/server.h"

enum {
    MAX_WAITING = 64 /* of some 30 ms at most, on the machines we measured */,
    MAX_OF_ONE = 48 /* of them, of a tenant with a name */
};

/* The first in the queue, taken out of it, or NULL. With the lock. */
static weft__gen *take(weft__compiler *c)
{
    weft__gen *g = c->first;
    if (!g) return NULL;
    c->first = g->next;
    c->n--;
    return g;
}

static void *compile_all(void *arg)
{
    weft_server *s = arg;
    weft__compiler *c = &s->compiler;
    pthread_mutex_lock(&c->lock);
    for (;;) {
        while (!c->first && !c->stop) pthread_cond_wait(&c->wake, &c->lock);
        weft__gen *g = c->now = take(c);
        if (!g) break;
        pthread_mutex_unlock(&c->lock);
        weft__fault fault = {0};
        int compiled = weft__gen_compile(g, &fault);
        pthread_mutex_lock(&c->lock);
        c->now = NULL;
        pthread_mutex_unlock(&c->lock);
        if (g->too_late) weft__gen_drop(g);
        else weft__gen_compiled(g, compiled ? NULL : &fault);
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
static uint64_t tell_late(weft__compiler *c)
{
    uint64_t now = weft__clock_ns(), next = 0;
    if (c->now && is_late(c->now, now, &next)) {
        c->now->too_late = 1;
        weft__gen_late(c->now);
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
        weft__gen_late(g);
        weft__gen_drop(g);
    }
    return next;
}

static void *watch_clock(void *arg)
{
    weft_server *s = arg;
    weft__compiler *c = &s->compiler;
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

weft_status weft__compiler_begin(weft_server *s, weft_error *err)
{
    weft__compiler *c = &s->compiler;
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->wake, NULL);
    pthread_cond_init(&c->tick, &attr);
    pthread_condattr_destroy(&attr);
    c->has_thread = pthread_create(&c->thread, NULL, compile_all, s) == 0;
    c->has_clock = c->has_thread && pthread_create(&c->clock, NULL, watch_clock, s) == 0;
    return c->has_clock ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no thread for grammars");
}

/* With the lock. */
static int has_room(const weft__compiler *c, const char *tenant)
{
    int n = 0;
    for (const weft__gen *g = c->first; g && *tenant; g = g->next) n += !strcmp(g->tenant, tenant);
    return c->n < MAX_WAITING && n < MAX_OF_ONE;
}

int weft__compiler_put(weft_server *s, weft__gen *g)
{
    weft__compiler *c = &s->compiler;
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

weft_status weft__compiler_json(weft_server *s, int any, weft_grammar **out, weft_error *err)
{
    weft_grammar **json = &s->compiler.json[any];
    uint32_t kind = any ? WEFT_GRAMMAR_JSON_VALUE : WEFT_GRAMMAR_JSON;
    weft_status st = *json ? WEFT_OK : weft_grammar_new(s->tokenizer, kind, NULL, 0, json, err);
    *out = st ? NULL : weft_grammar_retain(*json);
    return st;
}

void weft__compiler_end(weft_server *s)
{
    weft__compiler *c = &s->compiler;
    if (!c->has_thread) return;
    pthread_mutex_lock(&c->lock);
    c->stop = 1;
    pthread_cond_signal(&c->wake);
    pthread_cond_signal(&c->tick);
    pthread_mutex_unlock(&c->lock);
    pthread_join(c->thread, NULL);
    if (c->has_clock) pthread_join(c->clock, NULL);
    for (int any = 0; any < 2; any++) weft_grammar_free(&c->json[any]);
    pthread_cond_destroy(&c->tick);
    pthread_cond_destroy(&c->wake);
    pthread_mutex_destroy(&c->lock);
}
