// SPDX-License-Identifier: Apache-2.0
/* answers.c: whole answers are written by a thread of their own, one after the other: some have tens of megabytes, and
 * the tokens of all would wait meanwhile for the thread that tells of the end. Clients take turns.
 * Invariant: a gen in the queue has finished and is changed by no other thread; each put is answered, those before
 * weft__server_answers_end, too. */
#include "base/thread.h"
#include "server/server.h"

static weft__server_response *answers_take(weft__server_answers *a)
{
    pthread_mutex_lock(&a->lock);
    while (!a->waiting.n && !a->stop) pthread_cond_wait(&a->wake, &a->lock);
    weft__http_turn *turn = weft__http_turns_take(&a->waiting);
    pthread_mutex_unlock(&a->lock);
    return turn ? WEFT__HTTP_TURN_OF(weft__server_response, turn, turn) : NULL;
}

static void *write_answers(void *arg)
{
    for (weft__server_response *g; (g = answers_take(arg));) weft__server_response_answer(g);
    return NULL;
}

weft_status weft__server_answers_begin(weft__server_answers *a, weft_error *err)
{
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->wake, NULL);
    a->has_thread = weft__thread_start(&a->thread, write_answers, a) == 0;
    return a->has_thread ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no thread for answers");
}

void weft__server_answers_put(weft__server_answers *a, weft__server_response *g)
{
    pthread_mutex_lock(&a->lock);
    weft__http_turns_put(&a->waiting, &g->turn, weft__http_client_of(g->r));
    pthread_cond_signal(&a->wake);
    pthread_mutex_unlock(&a->lock);
}

void weft__server_answers_end(weft__server_answers *a)
{
    if (!a->has_thread) return;
    pthread_mutex_lock(&a->lock);
    a->stop = 1;
    pthread_cond_signal(&a->wake);
    pthread_mutex_unlock(&a->lock);
    pthread_join(a->thread, NULL);
    pthread_cond_destroy(&a->wake);
    pthread_mutex_destroy(&a->lock);
}
