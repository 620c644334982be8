// SPDX-License-Identifier: Apache-2.0
/* rollout.c: see rollout.h. */
#include "train/rollout.h"

#include <math.h>

#include "base/alloc.h"
#include "weft/engine.h"
#include "weft/model.h"

enum { SLOTS = 32, WAIT_MS = 20 };
static const char NAME[] = "learning";

struct weft__train_rollout {
    weft_model *model;
    weft_engine *engine;
    weft_inbox *inbox;
    int (*stop)(void *arg);
    void *arg;
    int has_adapter;
    /* The answers in work: id 0 is a free place. */
    struct {
        uint64_t id;
        weft__train_answer *answer;
    } asked[2 * SLOTS];
};

weft_status weft__train_rollout_open(const char *base, int32_t n_ctx, int32_t n_threads, int (*stop)(void *arg),
                                     void *arg, weft__train_rollout **out, weft_error *err)
{
    weft_model_params mp;
    weft_engine_params ep;
    weft__train_rollout *r = weft__alloc_zero(1, sizeof *r);
    *out = r;
    if (!r) return weft_fail(err, WEFT_NO_MEMORY, "no memory for answers");
    r->stop = stop;
    r->arg = arg;
    weft_model_params_default(&mp);
    weft_engine_params_default(&ep);
    mp.n_threads = n_threads;
    mp.n_ctx = n_ctx;
    ep.n_slots = SLOTS;
    ep.n_ctx = n_ctx;
    ep.max_queue = WEFT_QUEUE_MAX;
    ep.adapter_dtype = WEFT_F32; /* what is learned is what answers */
    weft_status st = weft_model_open(base, &mp, &r->model, err);
    if (!st) st = weft_engine_new(r->model, &ep, &r->engine, err);
    if (!st) st = weft_inbox_new(r->engine, &r->inbox, err);
    if (st) weft__train_rollout_close(out);
    return st;
}

void weft__train_rollout_close(weft__train_rollout **pr)
{
    weft__train_rollout *r = pr ? *pr : NULL;
    if (!r) return;
    if (r->inbox) weft_inbox_free(&r->inbox);
    if (r->engine) weft_engine_free(&r->engine);
    if (r->model) weft_model_close(&r->model);
    weft__free(r);
    *pr = NULL;
}

weft_status weft__train_rollout_adapter(weft__train_rollout *r, const char *path, weft_error *err)
{
    weft_status st = weft_engine_adapter_add(r->engine, NAME, path, 1, WEFT_ADAPTER_REPLACE, err);
    if (!st) r->has_adapter = 1;
    return st;
}

static weft_status submit_answer(weft__train_rollout *r, const weft__train_answer *a, uint64_t *request,
                                 weft_error *err)
{
    weft_request_params p;
    const weft_request_adapter adapter = {.name = NAME, .scale = NAN};
    weft_request_params_default(&p);
    p.tokens = a->prompt;
    p.n_tokens = a->n_prompt;
    p.max_tokens = a->most;
    p.n_top = 0;
    p.sampler.temperature = a->greedy ? 0 : 1;
    p.sampler.top_k = 0;
    p.sampler.top_p = 1;
    p.sampler.min_p = 0;
    p.sampler.seed = a->seed;
    p.sampler.seed_given = 1;
    p.draft_max = 0;
    p.adapters = &adapter;
    p.n_adapters = r->has_adapter;
    return weft_inbox_submit(r->inbox, &p, NULL, request, NULL, err);
}

/* The place of request `id`; 0: a free one, which there is. -1: nobody's. */
static int place_of_request(const weft__train_rollout *r, uint64_t id)
{
    for (int i = 0; i < 2 * SLOTS; i++)
        if (r->asked[i].id == id) return i;
    return -1;
}

static weft_status take(weft__train_answer *a, const weft_event *e, weft_error *err)
{
    if (e->kind == WEFT_EVENT_TOKEN && a->n < a->most) {
        a->ids[a->n] = e->token;
        a->logp[a->n++] = e->logprob;
    }
    if (e->kind == WEFT_EVENT_FINISHED && e->finish == WEFT_FINISH_FAILED)
        return weft_fail(err, e->status, "%s", e->message);
    if (e->kind == WEFT_EVENT_FINISHED) a->ended = e->finish == WEFT_FINISH_END;
    return WEFT_OK;
}

/* Of requests that are given up what comes is nobody's. */
static void forget(weft__train_rollout *r)
{
    weft_inbox_free(&r->inbox);
    (void)weft_inbox_new(r->engine, &r->inbox, NULL);
}

weft_status weft__train_rollout_run(weft__train_rollout *r, weft__train_answer *answers, int32_t n, weft_error *err)
{
    int32_t asked = 0, left = n, in_work = 0;
    weft_status st = WEFT_OK;
    if (!r->inbox && (st = weft_inbox_new(r->engine, &r->inbox, err))) return st;
    for (int i = 0; i < 2 * SLOTS; i++) r->asked[i].id = 0;
    for (int32_t i = 0; i < n; i++) answers[i].n = answers[i].ended = 0;
    while (!st && left > 0) {
        for (; !st && asked < n && in_work < 2 * SLOTS; asked += !st, in_work += !st) {
            const int place = place_of_request(r, 0);
            st = submit_answer(r, &answers[asked], &r->asked[place].id, err);
            r->asked[place].answer = &answers[asked];
        }
        const weft_event *e = st ? NULL : weft_inbox_take(r->inbox, WAIT_MS);
        if (!st && r->stop && r->stop(r->arg)) st = weft_fail(err, WEFT_CANCELLED, "cancelled");
        const int place = !st && e ? place_of_request(r, e->request) : -1;
        if (place < 0) continue;
        st = take(r->asked[place].answer, e, err);
        if (e->kind != WEFT_EVENT_FINISHED) continue;
        r->asked[place].id = 0;
        in_work--;
        left--;
    }
    if (st) forget(r);
    return st;
}
