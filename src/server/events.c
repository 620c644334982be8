// SPDX-License-Identifier: Apache-2.0
/* events.c: what the engine tells of choices becomes text, JSON and bytes of answers on a thread of its own, so that
 * steps wait for none of it.
 *
 * The engine's thread gathers the events of a step, and hands them over behind the last of them. Before that it waits
 * until those it handed over before were told: so the engine is one step ahead at most, and memory is that of two
 * steps. Where a step has more events than there is room for, they go in several pieces.
 *
 * A choice that ends itself (a stop string, its call) is told of no further token: the engine may have made one more by
 * then, which is dropped. What an answer needs to know before the next token is told by the engine's thread itself,
 * when all before it was told.
 *
 * Invariant: events are told in their order, and one at a time. */
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"
#include "server/response.h"

enum { EVENTS_AT_ONCE = 512, EVENTS_TOP = 20 /* as many as the engine gives */ };

struct weft__server_event {
    weft__server_choice *choice;
    uint64_t ns; /* when it came */
    weft_event event;
    weft_token_prob top[EVENTS_TOP];
};

/* ---- the thread that tells ---- */

/* A choice may be gone when its last event was told. */
static void tell_one(const weft__server_event *told)
{
    weft__server_choice *c = told->choice;
    weft_engine *engine = c->gen->model->engine;
    if (c->has_ended && told->event.kind != WEFT_EVENT_FINISHED) return;
    c->now_ns = told->ns;
    if (!weft__server_response_on_event(c, &told->event)) return;
    c->has_ended = 1;
    weft_engine_finish(engine, told->event.request);
}

/* How many were handed over; 0: there will be no more. */
static int events_take(weft__server_events *q)
{
    pthread_mutex_lock(&q->lock);
    while (!q->n_taken && !q->stop) pthread_cond_wait(&q->wake, &q->lock);
    int n = q->n_taken;
    pthread_mutex_unlock(&q->lock);
    return n;
}

/* The last one's response is kept until all was told: by its request, what was written to all of them is flushed. */
static void events_tell(const weft__server_event *events, int n)
{
    weft__server_response *g = events[n - 1].choice->gen;
    atomic_fetch_add(&g->refs, 1);
    for (int i = 0; i < n; i++) tell_one(&events[i]);
    weft__http_flush(g->r);
    weft__server_response_unref(g);
}

static void *tell_events(void *arg)
{
    weft__server_events *q = arg;
    const struct sched_param none = {0};
    /* It runs when a core is free, or was used for its time by a thread that computes: no step is interrupted by what
     * the one before it brought. Where the user chose a policy, it stays. */
    if (sched_getscheduler(0) == SCHED_OTHER) (void)sched_setscheduler(0, SCHED_BATCH, &none);
    for (int n; (n = events_take(q));) {
        events_tell(q->taken, n);
        pthread_mutex_lock(&q->lock);
        q->n_taken = 0;
        pthread_cond_signal(&q->told);
        pthread_mutex_unlock(&q->lock);
    }
    return NULL;
}

/* ---- the engine's thread ---- */

static void hand_over(weft__server_events *q)
{
    pthread_mutex_lock(&q->lock);
    while (q->n_taken) pthread_cond_wait(&q->told, &q->lock);
    weft__server_event *empty = q->taken;
    q->taken = q->gathered;
    q->gathered = empty;
    q->n_taken = q->n_gathered;
    q->n_gathered = 0;
    if (q->n_taken) pthread_cond_signal(&q->wake);
    pthread_mutex_unlock(&q->lock);
}

/* Behind the last event of a step. */
static void end_step(void *arg)
{
    weft__server_events *q = arg;
    weft__server_response *g = q->told_here;
    hand_over(q);
    if (!g) return;
    q->told_here = NULL;
    weft__http_flush(g->r);
    weft__server_response_unref(g);
}

/* Until all was told. */
static void settle(weft__server_events *q)
{
    hand_over(q);
    pthread_mutex_lock(&q->lock);
    while (q->n_taken) pthread_cond_wait(&q->told, &q->lock);
    pthread_mutex_unlock(&q->lock);
}

/* What it points to is the choice's own from now on. */
static void own(weft__server_event *to, weft__server_choice *c, const weft_event *e)
{
    to->choice = c;
    to->ns = weft__clock_ns();
    to->event = *e;
    to->event.top = to->top;
    if (e->n_top > 0) memcpy(to->top, e->top, (size_t)e->n_top * sizeof *e->top);
    if (e->n_embedding > 0) {
        c->out->embedding = weft__alloc_array((size_t)e->n_embedding, sizeof *c->out->embedding);
        if (c->out->embedding)
            memcpy(c->out->embedding, e->embedding, (size_t)e->n_embedding * sizeof *c->out->embedding);
        to->event.embedding = c->out->embedding;
    }
    if (e->message) {
        snprintf(c->engine_message, sizeof c->engine_message, "%.255s", e->message);
        to->event.message = c->engine_message;
    }
}

static int tell_here(weft__server_events *q, weft__server_choice *c, const weft_event *e)
{
    settle(q);
    if (!q->told_here) {
        q->told_here = c->gen;
        atomic_fetch_add(&c->gen->refs, 1);
    }
    c->now_ns = weft__clock_ns();
    return weft__server_response_on_event(c, e);
}

int weft__server_events_on_event(void *arg, const weft_event *e)
{
    weft__server_choice *c = arg;
    weft__server_events *q = &c->gen->model->events;
    if (weft__server_parse_may_insert(c)) return tell_here(q, c, e);
    if (q->n_gathered == EVENTS_AT_ONCE) hand_over(q);
    own(&q->gathered[q->n_gathered++], c, e);
    return 0;
}

/* ---- life ---- */

weft_status weft__server_events_begin(weft__server_events *q, weft_engine *engine, weft_error *err)
{
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->wake, NULL);
    pthread_cond_init(&q->told, NULL);
    q->engine = engine;
    q->gathered = weft__alloc_zero(EVENTS_AT_ONCE, sizeof *q->gathered);
    q->taken = weft__alloc_zero(EVENTS_AT_ONCE, sizeof *q->taken);
    if (!q->gathered || !q->taken) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a server");
    q->has_thread = weft__thread_start(&q->thread, tell_events, q) == 0;
    if (!q->has_thread) return weft_fail(err, WEFT_NO_MEMORY, "no thread for the engine's events");
    weft_engine_on_told(engine, end_step, q);
    return WEFT_OK;
}

void weft__server_events_end(weft__server_events *q)
{
    if (!q->engine) return;
    weft_engine_on_told(q->engine, NULL, NULL);
    if (q->has_thread) {
        pthread_mutex_lock(&q->lock);
        q->stop = 1;
        pthread_cond_signal(&q->wake);
        pthread_mutex_unlock(&q->lock);
        pthread_join(q->thread, NULL);
    }
    weft__free(q->gathered);
    weft__free(q->taken);
    pthread_cond_destroy(&q->told);
    pthread_cond_destroy(&q->wake);
    pthread_mutex_destroy(&q->lock);
}
