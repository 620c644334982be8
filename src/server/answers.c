/* answers.c: whole answers are written by a thread of their own, one after the other: some have tens of megabytes, and everybody's tokens
 * would wait meanwhile for the engine's thread, which tells of the end.
 * Invariant: a gen in the queue has finished and is nobody else's to change; each put is answered, those before weft__answers_end, too. */
#include "base/thread.h"
#include "server/server.h"

static weft__gen *take(weft__answers *a)
{
    pthread_mutex_lock(&a->lock);
    while (!a->first && !a->stop) pthread_cond_wait(&a->wake, &a->lock);
    weft__gen *g = a->first;
    if (g) {
        a->first = g->next;
        if (!a->first) a->last = NULL;
    }
    pthread_mutex_unlock(&a->lock);
    return g;
}

static void *write_all(void *arg)
{
    for (weft__gen *g; (g = take(arg));) weft__gen_answer(g);
    return NULL;
}

weft_status weft__answers_begin(weft__answers *a, weft_error *err)
{
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->wake, NULL);
    a->has_thread = weft__thread_start(&a->thread, write_all, a) == 0;
    return a->has_thread ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no thread for answers");
}

void weft__answers_put(weft__answers *a, weft__gen *g)
{
    pthread_mutex_lock(&a->lock);
    g->next = NULL;
    *(a->first ? &a->last->next : &a->first) = g;
    a->last = g;
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
