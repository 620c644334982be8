/* answers.c: whole answers are written by a thread of their own, one after the other: some have tens of megabytes, and everybody's tokens
 * would wait meanwhile for the engine's thread, which tells of the end. Clients take turns.
 * Invariant: a gen in the queue has finished and is nobody else's to change; each put is answered, those before weft__answers_end, too. */
#include "base/thread.h"
#include "server/server.h"

static weft__gen *take(weft__answers *a)
{
    pthread_mutex_lock(&a->lock);
    while (!a->waiting.n && !a->stop) pthread_cond_wait(&a->wake, &a->lock);
    weft__turn *turn = weft__turns_take(&a->waiting);
    pthread_mutex_unlock(&a->lock);
    return turn ? WEFT__TURN_OF(weft__gen, turn, turn) : NULL;
}

static void *write_answers(void *arg)
{
    for (weft__gen *g; (g = take(arg));) weft__gen_answer(g);
    return NULL;
}

weft_status weft__answers_begin(weft__answers *a, weft_error *err)
{
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->wake, NULL);
    a->has_thread = weft__thread_start(&a->thread, write_answers, a) == 0;
    return a->has_thread ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no thread for answers");
}

void weft__answers_put(weft__answers *a, weft__gen *g)
{
    pthread_mutex_lock(&a->lock);
    weft__turns_put(&a->waiting, &g->turn, weft__http_client_of(g->r));
    pthread_cond_signal(&a->wake);
    pthread_mutex_unlock(&a->lock);
}

void weft__answers_end(weft__answers *a)
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
