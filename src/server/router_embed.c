// SPDX-License-Identifier: Apache-2.0
/* router_embed.c: what a router sees of a request besides its words: its embedding, by the model of the first arm
 * (router.h). Workers, which wait for the engine meanwhile: all but one of them at most. */
#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "server/models.h"
#include "server/router.h"

/* Of a question: that many tokens are computed once more than without a router, and no more; and no request waits
 * longer for it. */
enum { BYTES = 4096, TOKENS = 256, WAIT_MS = 2000 };

typedef struct embedding_wait {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    float *vector; /* [n]; NULL until it is there */
    int n, has_ended;
} embedding_wait;

/* On the engine's thread. */
static int on_router_event(void *arg, const weft_event *e)
{
    embedding_wait *w = arg;
    if (e->kind == WEFT_EVENT_EMBEDDING && e->n_embedding > 0 &&
        (w->vector = weft__alloc_array((size_t)e->n_embedding, sizeof *w->vector))) {
        memcpy(w->vector, e->embedding, (size_t)e->n_embedding * sizeof *w->vector);
        w->n = e->n_embedding;
    }
    if (e->kind != WEFT_EVENT_FINISHED) return 0;
    pthread_mutex_lock(&w->lock);
    w->has_ended = 1;
    pthread_cond_signal(&w->ended);
    pthread_mutex_unlock(&w->lock);
    return 0;
}

/* Waits for it; what the engine refuses, or does not get done, leaves no vector. */
static void embed_tokens(weft__server_model *m, const char *tenant, const int32_t *ids, int32_t n, embedding_wait *w)
{
    weft_request_params p;
    uint64_t id;
    weft_request_params_default(&p);
    p.tokens = ids;
    p.n_tokens = n;
    p.max_tokens = 0;
    p.n_top = -1;
    p.embedding = 1;
    p.cut_to_fit = 1;
    p.tenant = tenant;
    p.deadline_ms = WAIT_MS;
    p.event = on_router_event;
    p.arg = w;
    if (weft_engine_submit(m->engine, &p, &id, NULL, NULL)) return;
    pthread_mutex_lock(&w->lock);
    while (!w->has_ended) pthread_cond_wait(&w->ended, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

/* Whether one more worker may wait. */
static int router_enter(weft_server *s)
{
    if (atomic_fetch_add(&s->router->n_waiting, 1) < s->max_at_disk) return 1;
    atomic_fetch_sub(&s->router->n_waiting, 1);
    return 0;
}

float *weft__server_router_embed(weft_server *s, const weft__server_caller *who, const char *tenant, const char *text,
                                 size_t n_text, int *n)
{
    embedding_wait w = {.n = 0};
    int32_t ids[TOKENS];
    size_t n_ids = 0;
    const weft__server_caller anybody = {.is_admin = 1, .rules = who->rules};
    weft__api_error error;
    weft__server_model *m = weft__server_models_which(s, &anybody, s->router->arms[0], &error);
    if (m && n_text && router_enter(s)) {
        if (weft__server_model_hold_loaded(m)) {
            pthread_mutex_init(&w.lock, NULL);
            pthread_cond_init(&w.ended, NULL);
            const weft_status st = weft_tokenize(m->prompt_model.tokenizer, text, n_text < BYTES ? n_text : BYTES,
                                                 WEFT_TOKENIZE_BOS, ids, TOKENS, &n_ids, NULL);
            if (n_ids > TOKENS) n_ids = TOKENS;
            if ((int32_t)n_ids > m->prompt_model.n_ctx) n_ids = (size_t)m->prompt_model.n_ctx;
            if ((!st || st == WEFT_LIMIT) && n_ids) embed_tokens(m, tenant, ids, (int32_t)n_ids, &w);
            pthread_cond_destroy(&w.ended);
            pthread_mutex_destroy(&w.lock);
            weft__server_model_look_away(&m);
        }
        atomic_fetch_sub(&s->router->n_waiting, 1);
    }
    atomic_fetch_add(w.vector ? &s->router->n_embedded : &s->router->n_unembedded, 1);
    *n = w.n;
    return w.vector;
}
