// SPDX-License-Identifier: Apache-2.0
/* wait_queue.c: requests that wait in a line for something that takes long, which is done for one after the other on a
 * thread of the line's own: grammars to be compiled, adapters to be read. A flood of slow ones costs one processor and
 * delays those in the same line, and neither the workers nor the engine. What a grammar costs the engine afterwards, at
 * each token, is bounded where its masks are made (matcher.h). A second thread is their clock: a request whose
 * deadline passes while it waits, or while it is its turn, has its answer then and not later. Where the work waits for
 * something, a third begins that for those whose turn is near, in their order. Clients take turns, so that one with one
 * request waits for one of each other's. Invariant: a gen in the queue belongs to it, and leaves it
 * exactly once; the one whose turn it is stays `now` until that is over, so that it lives while the clock answers for
 * it. */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"
#include "server/server.h"

static weft__server_response *gen_of(weft__http_turn *turn)
{
    return turn ? WEFT__HTTP_TURN_OF(weft__server_response, turn, turn) : NULL;
}

/* With the lock. */
static void line_put(weft__server_wait_queue *line, weft__server_response *g)
{
    weft__http_turns_put(&line->waiting, &g->turn, weft__http_client_of(g->r));
}

static void *serve_all(void *arg)
{
    weft__server_wait_queue *line = arg;
    pthread_mutex_lock(&line->lock);
    for (;;) {
        while (!line->waiting.n && !line->stop) pthread_cond_wait(&line->wake, &line->lock);
        weft__server_response *g = line->now = gen_of(weft__http_turns_take(&line->waiting));
        if (!g) break;
        pthread_cond_signal(&line->moved);
        pthread_mutex_unlock(&line->lock);
        weft__api_error error = {0};
        int is_done = line->work(g, &error);
        pthread_mutex_lock(&line->lock);
        line->now = NULL;
        int again = is_done < 0 && !g->too_late;
        if (again) line_put(line, g);
        pthread_mutex_unlock(&line->lock);
        if (again)
            ;
        else if (g->too_late) weft__server_response_drop(g);
        else line->go_on(g, is_done > 0 ? NULL : &error);
        pthread_mutex_lock(&line->lock);
    }
    pthread_mutex_unlock(&line->lock);
    return NULL;
}

/* Is it late? *next: the earliest deadline of those that are not, 0: none. */
static int is_late(const weft__server_response *g, uint64_t now, uint64_t *next)
{
    uint64_t ns = g->too_late ? 0 : weft__server_response_deadline(g);
    if (ns && ns <= now) return 1;
    if (ns && (!*next || ns < *next)) *next = ns;
    return 0;
}

/* Answers those whose deadline has passed; returns when the next one does, 0: never. With the lock. */
static uint64_t tell_late(weft__server_wait_queue *line)
{
    uint64_t now = weft__clock_ns(), next = 0;
    if (line->now && is_late(line->now, now, &next)) {
        line->now->too_late = 1;
        weft__server_response_expired(line->now, line->what);
    }
    for (weft__http_turn *turn = line->waiting.first, *after; turn; turn = after) {
        weft__server_response *g = gen_of(turn);
        after = turn->next;
        if (!is_late(g, now, &next)) continue;
        weft__http_turns_remove(&line->waiting, turn);
        weft__server_response_expired(g, line->what);
        weft__server_response_drop(g);
    }
    return next;
}

static void *watch_clock(void *arg)
{
    weft__server_wait_queue *line = arg;
    pthread_mutex_lock(&line->lock);
    while (!line->stop) {
        weft__clock_wait(&line->tick, &line->lock, tell_late(line));
    }
    pthread_mutex_unlock(&line->lock);
    return NULL;
}

enum { AHEAD = 8 /* of those that wait, from the first on */ };

/* The first whose turn is near and for which nothing was begun; NULL: there is none. Where it is nobody's turn, the
 * first one's comes at once. With the lock. */
static weft__server_response *next_ahead(const weft__server_wait_queue *line)
{
    int n = 0;
    weft__http_turn *t = line->waiting.first;
    for (t = t && !line->now ? t->next : t; t && n < AHEAD; t = t->next, n++)
        if (!gen_of(t)->looked_ahead) return gen_of(t);
    return NULL;
}

static void *look_ahead(void *arg)
{
    weft__server_wait_queue *line = arg;
    pthread_mutex_lock(&line->lock);
    while (!line->stop) {
        weft__server_response *g = next_ahead(line);
        if (!g) {
            pthread_cond_wait(&line->moved, &line->lock);
            continue;
        }
        g->looked_ahead = 1;
        atomic_fetch_add(&g->refs, 1); /* its turn may come meanwhile */
        pthread_mutex_unlock(&line->lock);
        line->ahead(g);
        weft__server_response_drop(g);
        pthread_mutex_lock(&line->lock);
    }
    pthread_mutex_unlock(&line->lock);
    return NULL;
}

weft_status weft__server_wait_queue_begin(weft__server_wait_queue *line, weft_error *err)
{
    pthread_mutex_init(&line->lock, NULL);
    pthread_cond_init(&line->wake, NULL);
    pthread_cond_init(&line->moved, NULL);
    weft__clock_cond_init(&line->tick);
    line->has_thread = weft__thread_start(&line->thread, serve_all, line) == 0;
    line->has_clock = line->has_thread && weft__thread_start(&line->clock, watch_clock, line) == 0;
    line->has_scout = line->has_clock && line->ahead && weft__thread_start(&line->scout, look_ahead, line) == 0;
    return line->has_clock ? WEFT_OK
                           : weft_fail(err, WEFT_NO_MEMORY, "no thread for requests that wait for %s", line->what);
}

/* With the lock. Those that give no name are one, as in the engine's queue; and an address may give itself many
 * names. */
static int has_room(const weft__server_wait_queue *line, const weft__server_response *g)
{
    const void *client = weft__http_client_of(g->r);
    int n = 0, n_of_client = 0, most = line->max_of_one + (line->max - line->max_of_one) / 2;
    for (weft__http_turn *t = line->waiting.first; t; t = t->next) {
        n += !strcmp(gen_of(t)->tenant, g->tenant);
        n_of_client += client && t->client == client;
    }
    return line->waiting.n < line->max && n < line->max_of_one && n_of_client < most;
}

int weft__server_wait_queue_put(weft__server_wait_queue *line, weft__server_response *g)
{
    pthread_mutex_lock(&line->lock);
    int room = has_room(line, g);
    if (room) {
        int timed = weft__server_response_deadline(g) != 0;
        line_put(line, g);
        pthread_cond_signal(&line->wake);
        pthread_cond_signal(&line->moved);
        if (timed) pthread_cond_signal(&line->tick);
    }
    pthread_mutex_unlock(&line->lock);
    return room;
}

void weft__server_wait_queue_end(weft__server_wait_queue *line)
{
    if (!line->has_thread) return;
    pthread_mutex_lock(&line->lock);
    line->stop = 1;
    pthread_cond_signal(&line->wake);
    pthread_cond_signal(&line->tick);
    pthread_cond_signal(&line->moved);
    pthread_mutex_unlock(&line->lock);
    pthread_join(line->thread, NULL);
    if (line->has_scout) pthread_join(line->scout, NULL);
    if (line->has_clock) pthread_join(line->clock, NULL);
    pthread_cond_destroy(&line->tick);
    pthread_cond_destroy(&line->moved);
    pthread_cond_destroy(&line->wake);
    pthread_mutex_destroy(&line->lock);
}
