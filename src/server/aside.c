// SPDX-License-Identifier: Apache-2.0
/* aside.c: embeddings besides a request (aside.h). Workers. */
#include "server/aside.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "server/rules.h"

/* Of a text that many tokens are computed more than without, and no more; of all together so many; and no request waits
 * longer for them. */
enum { BYTES = 4096, TOKENS = 256, MOST = 2048, WAIT_MS = 2000 };

typedef struct aside_wait {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    size_t n, n_left;
    /* the engine's thread, until none is left: */
    float *vectors; /* [n][dims]; NULL until one is there */
    int dims;
    int32_t n_read, n_cached; /* of their tokens */
} aside_wait;

typedef struct aside_one {
    aside_wait *wait;
    size_t row;
    int32_t ids[TOKENS];
    int32_t n;
} aside_one;

static void one_ends(aside_wait *w)
{
    pthread_mutex_lock(&w->lock);
    if (--w->n_left == 0) pthread_cond_signal(&w->ended);
    pthread_mutex_unlock(&w->lock);
}

/* On the engine's thread. */
static int on_aside_event(void *arg, const weft_event *e)
{
    const aside_one *one = arg;
    aside_wait *w = one->wait;
    if (e->kind == WEFT_EVENT_EMBEDDING && e->n_embedding > 0) {
        if (!w->vectors) w->vectors = weft__alloc_zero(w->n * (size_t)e->n_embedding, sizeof *w->vectors);
        if (w->vectors) {
            w->dims = e->n_embedding;
            memcpy(w->vectors + one->row * (size_t)w->dims, e->embedding, (size_t)w->dims * sizeof *w->vectors);
        }
    }
    if (e->kind != WEFT_EVENT_FINISHED) return 0;
    w->n_read += e->n_read;
    w->n_cached += e->n_cached;
    one_ends(w);
    return 0;
}

/* What the engine refuses, or does not get done, leaves no vector. */
static void submit_one(const weft__server_aside *a, aside_one *one)
{
    weft_request_params p;
    uint64_t id;
    weft_request_params_default(&p);
    p.tokens = one->ids;
    p.n_tokens = one->n;
    p.max_tokens = 0;
    p.n_top = -1;
    p.embedding = WEFT_POOLING_MODEL;
    p.cut_to_fit = 1;
    p.tenant = a->tenant;
    p.deadline_ms = WAIT_MS;
    p.event = on_aside_event;
    p.arg = one;
    weft_status st = weft_engine_submit(a->m->engine, &p, &id, NULL, NULL);
    if (st == WEFT_UNSUPPORTED) { /* the model's own kind of pooling is not there */
        p.embedding = WEFT_POOLING_MEAN;
        st = weft_engine_submit(a->m->engine, &p, &id, NULL, NULL);
    }
    if (st) one_ends(one->wait);
}

/* As count.c does of prompts. A body has at least as many bytes as its prompts have tokens, but for what templates and
 * presets add. */
static void embed_counted(const weft__server_aside *a, aside_one *all, size_t n, int64_t n_tokens)
{
    static const weft__server_chain none;
    weft_server *s = a->m->server;
    const weft__server_chain *c = a->who->member ? &a->who->member->chain : &none;
    aside_wait *w = all->wait;
    size_t place = 0;
    if (!weft__server_limits_enter_aside(&s->limits, c, n_tokens, (int64_t)a->n_body)) return;
    w->n_left = n;
    for (size_t i = 0; i < n; i++) submit_one(a, &all[i]);
    pthread_mutex_lock(&w->lock);
    while (w->n_left) pthread_cond_wait(&w->ended, &w->lock);
    pthread_mutex_unlock(&w->lock);
    weft__server_limits_leave_aside(&s->limits, c, n_tokens, w->n_read);
    const weft__server_used used = {.prompt_tokens = (uint64_t)w->n_read, .cached_tokens = (uint64_t)w->n_cached};
    weft__server_usage_add(&s->usage, &place, a->who->label, "", &used);
}

/* 0: it has none. */
static int32_t tokens_of(const weft__server_model *m, const weft__server_aside_text *t, int32_t ids[TOKENS])
{
    size_t n = 0;
    const weft_status st = weft_tokenize(m->prompt_model.tokenizer, t->text, t->n < BYTES ? t->n : BYTES,
                                         WEFT_TOKENIZE_BOS, ids, TOKENS, &n, NULL);
    if (n > TOKENS) n = TOKENS;
    if ((int32_t)n > m->prompt_model.n_ctx) n = (size_t)m->prompt_model.n_ctx;
    return st && st != WEFT_LIMIT ? 0 : (int32_t)n;
}

float *weft__server_aside_embed(const weft__server_aside *a, const weft__server_aside_text *texts, size_t n, int *dims)
{
    aside_wait w = {.n = n};
    aside_one *all = weft__alloc_array(n, sizeof *all);
    size_t n_all = 0;
    int64_t n_tokens = 0;
    *dims = 0;
    if (!all) return NULL;
    for (size_t i = 0; i < n && n_tokens + TOKENS <= MOST; i++) {
        aside_one *one = &all[n_all];
        one->wait = &w;
        one->row = i;
        one->n = tokens_of(a->m, &texts[i], one->ids);
        n_tokens += one->n;
        n_all += one->n > 0;
    }
    pthread_mutex_init(&w.lock, NULL);
    pthread_cond_init(&w.ended, NULL);
    if (n_all) embed_counted(a, all, n_all, n_tokens);
    pthread_cond_destroy(&w.ended);
    pthread_mutex_destroy(&w.lock);
    weft__free(all);
    *dims = w.dims;
    return w.vectors;
}
