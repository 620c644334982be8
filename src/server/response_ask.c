// SPDX-License-Identifier: Apache-2.0
/* response_ask.c: a request may have more inputs than the queue has places: as some end, the next ones are asked for
 * (response.h). Invariant: one thread at a time asks, the worker that begins or the engine's; the others leave it to
 * that one. */
#include <math.h>

#include "base/clock.h"
#include "server/response.h"

/* Nothing more is to be asked for: it was refused, its client left, or one has failed. With the lock. */
static int is_over(const weft__server_response *g)
{
    return g->has_failed || g->refused || g->gone;
}

/* What was not asked for will not come. With the lock. */
static void ask_no_more(weft__server_response *g)
{
    g->n_left -= g->answer.n_choices - g->n_asked;
    g->n_asked = g->answer.n_choices;
}

int weft__server_response_ask(weft__server_response *g)
{
    int is_due = 0;
    pthread_mutex_lock(&g->lock);
    while (g->n_asked < g->answer.n_choices && g->n_asked - g->n_done < g->n_at_once) {
        weft__server_choice *next = &g->choices[g->n_asked];
        weft_error err = {0};
        double retry_after_s = 1;
        const int is_wanted = !is_over(g), n_done = g->n_done;
        pthread_mutex_unlock(&g->lock);
        weft_status st = is_wanted ? weft__server_response_submit(next, &retry_after_s, &err) : WEFT_CANCELLED;
        pthread_mutex_lock(&g->lock);
        if (st == WEFT_BUSY && g->n_asked > g->n_done) break;
        if (st == WEFT_BUSY && g->n_done != n_done) continue; /* the last of ours ended meanwhile, and left its place */
        if (st) {
            if (st != WEFT_CANCELLED) weft__server_response_keep_status(next, st, err.message);
            g->retry_s = (int)ceil(retry_after_s);
            ask_no_more(g);
            is_due = !g->n_left;
            break;
        }
        g->n_asked++;
        if (!is_over(g)) continue;
        pthread_mutex_unlock(&g->lock);
        weft_engine_cancel(g->model->engine, next->request); /* who cancels all did not see it */
        pthread_mutex_lock(&g->lock);
    }
    g->is_asking = 0;
    pthread_mutex_unlock(&g->lock);
    return is_due;
}

void weft__server_response_ask_on(weft__server_response *g)
{
    if (!weft__server_response_ask(g)) return;
    weft__server_stages_leave_engine(&g->stages, weft__clock_ns());
    weft__server_response_leave(g);
    atomic_fetch_add(&g->refs, 1);
    weft__server_answers_put(&g->server->answers, g);
}
