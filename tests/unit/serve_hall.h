// SPDX-License-Identifier: Apache-2.0
/* serve_hall.h: what tests of engines share: requests (ask), what they bring (answer), where answers are waited for
 * (the_hall), and engines over small models. Include it after fixture.h. */
#ifndef WEFT_TESTS_SERVE_HALL_H
#define WEFT_TESTS_SERVE_HALL_H

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "claims.h"
#include "model/shared.h"
#include "weft/weft.h"

enum { MAX_TOKENS = 320, MAX_ANSWER = 128 };

/* ---- requests and what they bring ---- */

typedef struct ask {
    weft_request_params p;
    int32_t tokens[MAX_TOKENS];
    weft_logit_bias bias[32];
} ask;

typedef struct answer {
    struct hall *hall;
    uint64_t id;
    int accepted, n_began, n_finished, n;
    int32_t token[MAX_ANSWER];
    float logprob[MAX_ANSWER];
    double checksum; /* of alternatives, prompt tokens and embeddings */
    int n_prompt_tokens, n_embedding, n_cached, n_drafted, n_right;
    weft_finish finish;
    weft_status status;
    char message[256];
} answer;

/* Where answers are waited for. */
typedef struct hall {
    pthread_mutex_t lock;
    pthread_cond_t left;
    int n_left;
} hall;

static hall the_hall = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};

static inline void add_tops(answer *a, const weft_event *e)
{
    for (int32_t k = 0; k < e->n_top; k++) a->checksum += (double)e->top[k].logprob * (k + 1) + e->top[k].token;
}

static inline int on_event(void *arg, const weft_event *e)
{
    answer *a = arg;
    assert_int_equal(a->n_finished, 0); /* nothing comes after the end */
    if (e->kind == WEFT_EVENT_BEGAN) a->n_began++;
    if (e->kind == WEFT_EVENT_PROMPT_TOKEN) {
        a->n_prompt_tokens++;
        a->checksum += isnan(e->logprob) ? 1 : (double)e->logprob * a->n_prompt_tokens;
        add_tops(a, e);
    }
    if (e->kind == WEFT_EVENT_TOKEN) {
        assert_true(a->n_began && a->n < MAX_ANSWER);
        a->token[a->n] = e->token;
        a->logprob[a->n++] = e->logprob;
        assert_int_equal(e->n_generated, a->n);
        add_tops(a, e);
    }
    if (e->kind == WEFT_EVENT_EMBEDDING) {
        a->n_embedding = e->n_embedding;
        for (int32_t i = 0; i < e->n_embedding; i++) a->checksum += (double)e->embedding[i] * (i + 1);
    }
    if (e->kind != WEFT_EVENT_FINISHED) return 0;
    a->finish = e->finish;
    a->status = e->status;
    a->n_cached = e->n_cached;
    a->n_drafted = e->n_drafted;
    for (int d = 0; d < WEFT_DRAFTERS; d++) a->n_right += e->accepted[d];
    snprintf(a->message, sizeof a->message, "%s", e->message ? e->message : "");
    pthread_mutex_lock(&a->hall->lock);
    a->n_finished++;
    a->hall->n_left--;
    pthread_cond_broadcast(&a->hall->left);
    pthread_mutex_unlock(&a->hall->lock);
    return 0;
}

/* For requests that must not end before something else is done. */
static inline int slowly(void *arg, const weft_event *e)
{
    if (e->kind == WEFT_EVENT_TOKEN) usleep(10000);
    return on_event(arg, e);
}

static inline weft_status submit(weft_engine *e, const ask *q, answer *a, weft_error *err)
{
    weft_request_params p = q->p;
    *a = (answer){.hall = &the_hall};
    if (!p.tokens) p.tokens = q->tokens;
    p.sampler.bias = q->bias;
    if (!p.event) p.event = on_event;
    if (!p.arg) p.arg = a;
    pthread_mutex_lock(&the_hall.lock);
    the_hall.n_left++;
    pthread_mutex_unlock(&the_hall.lock);
    weft_status st = weft_engine_submit(e, &p, &a->id, NULL, err);
    a->accepted = st == WEFT_OK;
    if (st) {
        pthread_mutex_lock(&the_hall.lock);
        the_hall.n_left--;
        pthread_mutex_unlock(&the_hall.lock);
    }
    return st;
}

static inline void wait_all(void)
{
    pthread_mutex_lock(&the_hall.lock);
    while (the_hall.n_left > 0) pthread_cond_wait(&the_hall.left, &the_hall.lock);
    pthread_mutex_unlock(&the_hall.lock);
}

/* ---- models and engines ---- */

/* Contexts longer than that of the shape are stretched. */
static inline weft_model *tiny(int32_t n_ctx)
{
    enum { TRAINED = 2048 };
    weft_model *model = NULL;
    weft_model_params params;
    weft_error err = {0};
    weft_model_params_default(&params);
    params.n_threads = 2;
    params.n_ctx = n_ctx;
    if (n_ctx > TRAINED)
        params.rope = (weft_rope_params){.scaling = WEFT_ROPE_SCALING_LINEAR, .factor = (float)(n_ctx / TRAINED + 1)};
    if (weft_model_synthetic(CLAIMS_MODEL, WEFT_Q4_0, &params, &model, &err)) fail_msg("%s", err.message);
    return model;
}

static inline weft_model *open_model(const char *path)
{
    weft_model *model = NULL;
    weft_model_params params;
    weft_error err = {0};
    weft_model_params_default(&params);
    params.n_threads = 2;
    if (weft_model_open(path, &params, &model, &err)) fail_msg("%s", err.message);
    return model;
}

static inline weft_model *from_shared(const char *name)
{
    const char *path = shared_path("models/%s.gguf", name);
    if (!path) skip_material(name);
    return open_model(path);
}

static inline weft_engine_params small(void)
{
    weft_engine_params p;
    weft_engine_params_default(&p);
    p.n_slots = 16;
    p.n_ctx = 512;
    p.max_queue = 256;
    return p;
}

static inline weft_engine *open_engine(weft_model *model, const weft_engine_params *p)
{
    weft_engine *e = NULL;
    weft_error err = {0};
    if (weft_engine_new(model, p, &e, &err)) fail_msg("%s", err.message);
    return e;
}

static inline weft_engine_stats stats_of(const weft_engine *e)
{
    weft_engine_stats s = {.size = sizeof s};
    weft_engine_get_stats(e, &s);
    return s;
}

/* Everybody has ended: no page is held by anyone. */
static inline void close_engine(weft_engine **e)
{
    weft_engine_drain(*e, 60000); /* an event comes before its request is forgotten */
    weft_engine_stats s = stats_of(*e);
    assert_int_equal(s.kv_pages_used, 0);
    assert_int_equal(s.n_running + s.n_waiting, 0);
    assert_true(s.n_finished == s.n_submitted);
    weft_engine_free(e);
    assert_null(*e);
}

static inline void simple(ask *q, int32_t n_prompt, int32_t max_tokens)
{
    memset(q, 0, sizeof *q);
    weft_request_params_default(&q->p);
    q->p.n_tokens = n_prompt;
    q->p.max_tokens = max_tokens;
    q->p.sampler.seed_given = 1;
    q->p.sampler.seed = 7;
    q->p.sampler.n_bias = 0;
    for (int32_t i = 0; i < n_prompt; i++) q->tokens[i] = 3 + (i * 31 + 7) % 500;
}

static inline void run_alone(weft_engine *e, const ask *all, answer *out, int n)
{
    weft_error err = {0};
    for (int i = 0; i < n; i++) {
        if (submit(e, &all[i], &out[i], &err)) fail_msg("request %d: %s", i, err.message);
        wait_all();
    }
}

static inline void run_together(weft_engine *e, const ask *all, answer *out, int n)
{
    weft_error err = {0};
    for (int i = 0; i < n; i++)
        if (submit(e, &all[i], &out[i], &err)) fail_msg("request %d: %s", i, err.message);
    wait_all();
}

static inline void compare(const char *what, const ask *all, const answer *a, const answer *b, int n)
{
    for (int i = 0; i < n; i++) {
        int same = a[i].n == b[i].n && a[i].finish == b[i].finish &&
                   !memcmp(a[i].token, b[i].token, sizeof a[i].token) &&
                   !memcmp(a[i].logprob, b[i].logprob, (size_t)a[i].n * sizeof(float)) &&
                   !memcmp(&a[i].checksum, &b[i].checksum, sizeof(double)) &&
                   a[i].n_prompt_tokens == b[i].n_prompt_tokens && a[i].n_embedding == b[i].n_embedding;
        if (b[i].status) fail_msg("%s: request %d failed: %s", what, i, b[i].message);
        if (!same)
            fail_msg("%s: request %d (%d prompt tokens) gives another answer: %d tokens, then %d", what, i,
                     all[i].p.n_tokens, a[i].n, b[i].n);
    }
}

static inline void remove_folder(const char *path)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    if (system(command)) fail_msg("%s", command);
}

#endif
