// SPDX-License-Identifier: Apache-2.0
/* thread.c: the engine's thread: commands, pending requests, then step after step while there is anything to compute.
 * Events are told here and in the step, never under the lock. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "batcher/batcher.h"

/* ---- events ---- */

weft_event weft__batcher_event(const batcher_request *r, uint32_t kind)
{
    return (weft_event){.size = sizeof(weft_event),
                        .kind = kind,
                        .request = r->id,
                        .logprob = NAN,
                        .n_prompt = r->n_prompt,
                        .n_cached = r->n_cached,
                        .n_read = r->n_read,
                        .n_generated = weft__batcher_generated(r),
                        .n_shifts = r->n_shifts,
                        .n_dropped = r->n_dropped,
                        .n_swaps = r->n_swaps,
                        .swap_bytes = r->swap_bytes,
                        .swap_ms = (double)r->swap_ns / 1e6};
}

void weft__batcher_end(batcher_request *r, weft_finish finish)
{
    weft_engine *e = r->engine;
    if (r->ended) return;
    r->ended = 1;
    r->finish = finish;
    pthread_mutex_lock(&e->lock);
    weft__sched_end(e->sched, r->sched_id);
    pthread_mutex_unlock(&e->lock);
}

void weft__batcher_fail(batcher_request *r, weft_status status, const char *message)
{
    if (r->ended) return;
    r->status = status;
    snprintf(r->message, sizeof r->message, "%.255s", message);
    weft__batcher_end(r, WEFT_FINISH_FAILED);
}

batcher_stage weft__batcher_stage(batcher_request *r, batcher_stage next, uint64_t now)
{
    const batcher_stage before = r->stage;
    r->spent_ns[before] += now - r->since_ns;
    r->since_ns = now;
    r->stage = next;
    return before;
}

void weft__batcher_notify(batcher_request *r, weft_event *event)
{
    const batcher_stage before = weft__batcher_stage(r, BATCHER_TELLING, weft__clock_ns());
    const int said = r->event(r->arg, event);
    weft__batcher_stage(r, before, weft__clock_ns());
    r->engine->has_told = 1;
    if (said == WEFT_EVENT_INSERT && r->can_insert) r->can_insert = r->at_insert = 0;
    else if (said) weft__batcher_end(r, WEFT_FINISH_STOP);
}

static double ms_between(uint64_t from, uint64_t to)
{
    return to > from ? (double)(to - from) / 1e6 : 0;
}

static void tell_began(batcher_request *r)
{
    weft_event event = weft__batcher_event(r, WEFT_EVENT_BEGAN);
    r->began_ns = r->since_ns = weft__clock_ns();
    event.queue_ms = ms_between(r->submitted_ns, r->began_ns);
    weft__batcher_prepare(r);
    if (!r->status) weft__batcher_notify(r, &event);
    if (r->prompt_logprobs && !r->ended) weft__batcher_prompt_token(r, 0, NULL);
}

/* Where its time went; nothing where it never left the queue. */
static void put_stages(batcher_request *r, uint64_t now, weft_event *event)
{
    if (r->began_ns) weft__batcher_stage(r, BATCHER_WAITING, now);
    event->wait_ms = (double)r->spent_ns[BATCHER_WAITING] / 1e6;
    event->model_ms = (double)r->spent_ns[BATCHER_COMPUTING] / 1e6;
    event->mask_ms = (double)r->spent_ns[BATCHER_MASKING] / 1e6;
    event->sample_ms = (double)r->spent_ns[BATCHER_SAMPLING] / 1e6;
    event->event_ms = (double)r->spent_ns[BATCHER_TELLING] / 1e6;
}

static void tell_finished(weft_engine *e, batcher_request *r)
{
    weft_event event = weft__batcher_event(r, WEFT_EVENT_FINISHED);
    uint64_t now = weft__clock_ns(), began = r->began_ns ? r->began_ns : now, first = r->first_ns ? r->first_ns : now;
    event.finish = r->status ? WEFT_FINISH_FAILED : r->finish;
    event.status = r->status;
    event.message = r->message;
    event.token = r->end_token;
    if (r->end_token >= 0) {
        event.logprob = r->end_logprob;
        event.top = r->end_top;
        event.n_top = r->n_end_top;
    }
    event.queue_ms = ms_between(r->submitted_ns, began);
    event.prompt_ms = ms_between(began, first);
    event.generate_ms = ms_between(first, now);
    put_stages(r, now, &event);
    weft__batcher_trace_request(e, r, now);
    for (int d = 0; d < WEFT_DRAFTERS; d++) {
        event.n_drafted += event.drafted[d] = r->draft.tried[d];
        event.accepted[d] = r->draft.right[d];
    }
    event.n_predicted = event.drafted[WEFT_DRAFTER_PREDICTION];
    weft__batcher_draft_end(r);
    weft__batcher_persist(r, r->n_kept);
    pthread_mutex_lock(&e->lock);
    weft__batcher_count_finished(e, event.finish);
    weft__batcher_count_persisting(e);
    e->records.n_finishing++;
    pthread_mutex_unlock(&e->lock);
    r->event(r->arg, &event);
    e->has_told = 1;
    e->n_scratch -= r->n_scratch;
    weft__batcher_clear(r);
    pthread_mutex_lock(&e->lock);
    weft__batcher_count_pages(e); /* a thread that waits for the last one finds what is held without it */
    weft__batcher_recycle(e, r);
    pthread_mutex_unlock(&e->lock);
}

static int has_begun_now(const weft_engine *e, int32_t record)
{
    for (int32_t i = 0; i < e->events.n_began; i++)
        if (e->events.began[i] == record) return 1;
    return 0;
}

static void call_told(weft_engine *e)
{
    if (!e->has_told) return;
    e->has_told = 0;
    pthread_mutex_lock(&e->told.lock);
    if (e->told.call) e->told.call(e->told.arg);
    pthread_mutex_unlock(&e->told.lock);
}

void weft_engine_on_told(weft_engine *e, void (*told)(void *arg), void *arg)
{
    pthread_mutex_lock(&e->told.lock);
    e->told.call = told;
    e->told.arg = arg;
    pthread_mutex_unlock(&e->told.lock);
}

/* Of what happened under the lock: a request that has gone is told of before the one that came in its place; of one
 * that came and went, in that order. */
static void tell_all(weft_engine *e)
{
    int32_t n_left = 0;
    for (int32_t i = 0; i < e->events.n_ended; i++) {
        if (has_begun_now(e, e->events.ended[i])) e->events.ended[n_left++] = e->events.ended[i];
        else tell_finished(e, &e->records.all[e->events.ended[i]]);
    }
    for (int32_t i = 0; i < e->events.n_began; i++) tell_began(&e->records.all[e->events.began[i]]);
    for (int32_t i = 0; i < n_left; i++) tell_finished(e, &e->records.all[e->events.ended[i]]);
    e->events.n_began = e->events.n_ended = 0;
    call_told(e);
}

/* ---- records ---- */

void weft__batcher_clear(batcher_request *r)
{
    weft__kv_snapshot_free(&r->found);
    weft_matcher_free(&r->matcher);
    weft_sampler_free(&r->sampler);
    weft__kv_seq_destroy(&r->seq);
    weft__adapt_store_release(r->engine->adapters, &r->lease);
    weft_grammar_free(&r->grammar);
    weft__batcher_draft_clear(r);
    weft__free(r->sum);
    weft__free(r->insert);
    weft__free(r->bias);
    weft__free(r->tokens);
    r->tokens = NULL;
    r->bias = NULL;
    r->insert = NULL;
    r->sum = NULL;
}

void weft__batcher_recycle(weft_engine *e, batcher_request *r)
{
    *r = (batcher_request){.engine = e, .generation = r->generation, .next = e->records.first_free};
    e->records.first_free = (int32_t)(r - e->records.all);
    e->records.n_live--;
    e->records.n_finishing--;
    pthread_cond_broadcast(&e->done);
}

/* ---- the loop ---- */

static const uint64_t COPY_BYTES = 1 << 20; /* of pages between two steps: about half a millisecond */

static uint64_t now_us(void)
{
    return weft__clock_ns() / 1000;
}

/* One step; the ns that it took. */
static uint64_t thread_run(weft_engine *e, const weft__sched_plan *plan)
{
    uint64_t begin = weft__clock_ns();
    weft__batcher_draft(e, plan);
    weft__batcher_step(e, plan);
    weft__batcher_pace_saw(e, plan->n_rows, plan->n_prompt_rows, weft__clock_ns() - begin);
    pthread_mutex_lock(&e->lock);
    const uint64_t ns = weft__clock_ns() - begin;
    weft__batcher_count_step(e, plan, ns);
    weft__sched_done(e->sched, now_us());
    weft__batcher_count_pages(e);
    pthread_mutex_unlock(&e->lock);
    tell_all(e);
    return ns;
}

/* Until there is something to do, or a request that waits for the disk has expired. With the lock. */
static void wait_for_work(weft_engine *e)
{
    int late = 0;
    while (!e->work && !late && !weft__batcher_n_persisting(e) && !(e->stop && !e->records.n_live)) {
        const uint64_t pending = weft__batcher_pending_deadline(e), swap = weft__batcher_swap_deadline(e);
        const uint64_t until = !pending || (swap && swap < pending) ? swap : pending;
        late = weft__clock_wait(&e->wake, &e->lock, until) != 0;
    }
}

void *weft__batcher_thread(void *arg)
{
    weft_engine *e = arg;
    for (int stop = 0; !stop;) {
        pthread_mutex_lock(&e->lock);
        e->work = 0;
        e->copy_left = COPY_BYTES;
        int evicted = weft__batcher_limit_pages(e);
        weft__batcher_commands(e);
        weft__batcher_pending(e);
        weft__sched_set_chunk(e->sched, (int32_t)e->pace.rows);
        const weft__sched_plan *plan = weft__sched_next(e->sched, now_us());
        int busy = plan->n_items > 0, stopping = e->stop;
        weft__batcher_count_pages(e);
        pthread_mutex_unlock(&e->lock);
        if (evicted) weft__kv_pool_give_back(e->caches[0].pool);
        if (evicted) weft__engine_drafter_give_back(e->draft.model);
        tell_all(e);
        const uint64_t step_ns = busy ? thread_run(e, plan) : 0;
        if (!busy || weft__batcher_persist_due(e)) weft__batcher_persist_some(e, stopping);
        const int swapping = weft__batcher_swap_some(e, step_ns);
        /* Between steps it would take more of their time than it saves: there all threads ask for memory at once. */
        int warming = !busy && !stopping && weft__batcher_warm_page(e);
        pthread_mutex_lock(&e->lock);
        weft__batcher_count_persisting(e);
        if (!busy && !warming && !swapping) wait_for_work(e);
        stop = e->stop && !e->records.n_live && !weft__batcher_n_persisting(e) && !e->commands.first;
        pthread_mutex_unlock(&e->lock);
    }
    return NULL;
}
