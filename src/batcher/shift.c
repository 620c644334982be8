// SPDX-License-Identifier: Apache-2.0
/* shift.c: what a request goes on with where its context is full: by the rule of engine/shift.c some of its tokens
 * stay, and are computed as a prompt is, in chunks beside others', whether it is preempted or not. Where that happens
 * follows from numbers of tokens alone, and what is computed are prefixes of texts that begin at position 0: the prefix
 * tree may have them, and knows them. Owner: the engine's thread. */
#include "batcher/batcher.h"

enum { MOST_NEW = 1 << 30 }; /* tokens of an answer, where nothing else limits it */

weft_status weft__batcher_shift_plan(const weft_engine *e, const weft_request_params *p, batcher_request *r,
                                     weft_error *err)
{
    const weft__sched_store store = weft__batcher_store((weft_engine *)(uintptr_t)e);
    r->shift = p->shift != 0;
    r->n_most = p->n_tokens + r->max_new;
    if (!r->shift || p->embedding || !p->max_tokens) return WEFT_OK;
    r->max_new = p->max_tokens < 0 || p->max_tokens > MOST_NEW ? MOST_NEW : p->max_tokens;
    r->n_most = e->params.n_ctx;
    for (int32_t g = 0; g < store.n_groups; g++)
        while (r->n_most > p->n_tokens + 1 &&
               store.pages(store.arg, r, g, r->n_most - 1) > store.capacity(store.arg, g))
            r->n_most--;
    weft_status st = weft__engine_shift_keep(p->n_keep, r->n_most, &r->n_keep, err);
    r->shift = (int64_t)p->n_tokens + r->max_new > r->n_most;
    if (!r->shift) r->n_most = p->n_tokens + r->max_new;
    return st;
}

void weft__batcher_shift(batcher_request *r)
{
    weft_engine *e = r->engine;
    if (!r->shift || r->ended || r->n_known < r->n_most || weft__batcher_generated(r) >= r->max_new) return;
    weft__batcher_publish(r);
    weft__kv_seq_trim(r->seq, 0);
    const int32_t n = weft__engine_shift(r->tokens, r->n_known, r->n_most, r->n_keep);
    r->n_dropped += r->n_known - n;
    r->n_known = n;
    r->n_shifts++;
    pthread_mutex_lock(&e->lock);
    weft__sched_restart(e->sched, r->sched_id, n);
    pthread_mutex_unlock(&e->lock);
}
