// SPDX-License-Identifier: Apache-2.0
/* router_embed.c: what a router sees of a request besides its words: its embedding, by the model of the first arm
 * (router.h). Workers, which wait for the engine meanwhile: together with those at the disk all but one at most, fewer
 * for one client; where there is one worker, that. */
#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "server/models.h"
#include "server/router.h"
#include "server/rules.h"

/* Of a question: that many tokens are computed once more than without a router, and no more; and no request waits
 * longer for it. */
enum { BYTES = 4096, TOKENS = 256, WAIT_MS = 2000 };

typedef struct embedding_wait {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    float *vector; /* [n]; NULL until it is there */
    int n, has_ended;
    int32_t n_read, n_cached; /* of its tokens */
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
    w->n_read = e->n_read;
    w->n_cached = e->n_cached;
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
    p.embedding = WEFT_POOLING_MODEL;
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

/* Who is to be refused for his body costs no step of a model. */
static int is_of_its_form(weft__server_question *q, const weft__server_model *m)
{
    weft__api_params params;
    weft__api_error error = {0};
    if (!q->root) return 0;
    const int ok = weft__api_params_take(q->form, m->n_vocab, &q->root, &params, &error);
    weft__api_params_free(&params);
    return ok;
}

/* As count.c does of prompts. A body has at least as many bytes as its prompts have tokens, but for what templates and
 * presets add. */
static void embed_counted(weft_server *s, const weft__server_question *q, weft__server_model *m, embedding_wait *w)
{
    static const weft__server_chain none;
    const weft__server_chain *c = q->who->member ? &q->who->member->chain : &none;
    int32_t ids[TOKENS];
    size_t n = 0, place = 0;
    const weft_status st = weft_tokenize(m->prompt_model.tokenizer, q->text, q->n_text < BYTES ? q->n_text : BYTES,
                                         WEFT_TOKENIZE_BOS, ids, TOKENS, &n, NULL);
    if (n > TOKENS) n = TOKENS;
    if ((int32_t)n > m->prompt_model.n_ctx) n = (size_t)m->prompt_model.n_ctx;
    if ((st && st != WEFT_LIMIT) || !n) return;
    if (!weft__server_limits_enter_aside(&s->limits, c, (int64_t)n, (int64_t)q->n_body)) return;
    embed_tokens(m, q->tenant, ids, (int32_t)n, w);
    weft__server_limits_leave_aside(&s->limits, c, (int64_t)n, w->n_read);
    const weft__server_used used = {.prompt_tokens = (uint64_t)w->n_read, .cached_tokens = (uint64_t)w->n_cached};
    weft__server_usage_add(&s->usage, &place, q->who->label, "", &used);
}

float *weft__server_router_embed(weft_server *s, weft__server_question *q, int *n)
{
    embedding_wait w = {.n = 0};
    const weft__server_caller anybody = {.is_admin = 1, .rules = q->who->rules};
    weft__api_error error;
    weft__server_model *m = weft__server_models_which(s, &anybody, s->router->arms[0], &error);
    if (m && q->n_text && weft__server_model_hold_loaded(m)) {
        if (is_of_its_form(q, m) && weft__server_disk_enter(s, q->r, NULL, &error)) {
            pthread_mutex_init(&w.lock, NULL);
            pthread_cond_init(&w.ended, NULL);
            embed_counted(s, q, m, &w);
            pthread_cond_destroy(&w.ended);
            pthread_mutex_destroy(&w.lock);
            weft__server_disk_leave(s, q->r);
        }
        weft__server_model_look_away(&m);
    }
    atomic_fetch_add(w.vector ? &s->router->n_embedded : &s->router->n_unembedded, 1);
    *n = w.n;
    return w.vector;
}
