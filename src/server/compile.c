/* compile.c: the grammars of requests are compiled one after the other on a thread of their own: a flood of slow ones costs one processor
 * and delays requests with grammars, and neither the workers nor the engine. What a grammar costs the engine afterwards, at each token, is
 * bounded where its masks are made (matcher.h).
 * Invariant: a gen in the queue belongs to it, and leaves it through weft__gen_compiled exactly once. */
#include "base/alloc.h"
#include "server/server.h"

enum { MAX_WAITING = 64 }; /* of some 30 ms at most, on the machines we measured */

static void *compile_all(void *arg)
{
    weft_server *s = arg;
    weft__compiler *c = &s->compiler;
    pthread_mutex_lock(&c->lock);
    for (;;) {
        while (!c->first && !c->stop) pthread_cond_wait(&c->wake, &c->lock);
        weft__gen *g = c->first;
        if (!g) break;
        c->first = g->next_to_compile;
        c->n--;
        pthread_mutex_unlock(&c->lock);
        weft__gen_compiled(g);
        pthread_mutex_lock(&c->lock);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

weft_status weft__compiler_begin(weft_server *s, weft_error *err)
{
    weft__compiler *c = &s->compiler;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->wake, NULL);
    c->ready = pthread_create(&c->thread, NULL, compile_all, s) == 0;
    return c->ready ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no thread for grammars");
}

int weft__compiler_put(weft_server *s, weft__gen *g)
{
    weft__compiler *c = &s->compiler;
    pthread_mutex_lock(&c->lock);
    int room = c->n < MAX_WAITING;
    if (room) {
        g->next_to_compile = NULL;
        *(c->first ? &c->last->next_to_compile : &c->first) = g;
        c->last = g;
        c->n++;
        pthread_cond_signal(&c->wake);
    }
    pthread_mutex_unlock(&c->lock);
    return room;
}

weft_status weft__compiler_json(weft_server *s, weft_grammar **out, weft_error *err)
{
    weft__compiler *c = &s->compiler;
    weft_status st = c->json ? WEFT_OK : weft_grammar_new(s->tokenizer, WEFT_GRAMMAR_JSON, NULL, 0, &c->json, err);
    *out = st ? NULL : weft_grammar_retain(c->json);
    return st;
}

void weft__compiler_end(weft_server *s)
{
    weft__compiler *c = &s->compiler;
    if (!c->ready) return;
    pthread_mutex_lock(&c->lock);
    c->stop = 1;
    pthread_cond_signal(&c->wake);
    pthread_mutex_unlock(&c->lock);
    pthread_join(c->thread, NULL);
    weft_grammar_free(&c->json);
    pthread_cond_destroy(&c->wake);
    pthread_mutex_destroy(&c->lock);
}
