// SPDX-License-Identifier: Apache-2.0
/* swap.c: requests that gave way, and whose pages are kept instead of computed again (kv/swap.h has the pages, and the
 * rule by which it is worth it). What is measured for that rule is measured here: tokens per second of steps that read
 * prompts. Owner: the engine's thread. */
#include "base/clock.h"
#include "batcher/batcher.h"

enum { COPIES_PER_STEP = 8 };       /* copies take at most so small a part of the time of steps, */
static const double COPY_NS = 0.25; /* with so much for a byte: slower than any memory at hand */

/* On the store's thread. */
static void on_news(void *arg)
{
    weft_engine *e = arg;
    pthread_mutex_lock(&e->lock);
    e->work = 1;
    pthread_cond_signal(&e->wake);
    pthread_mutex_unlock(&e->lock);
}

weft_status weft__batcher_open_swap(weft_engine *e, weft_error *err)
{
    const uint64_t most = weft__kv_store_swap_most(e->store);
    if (e->params.swap == WEFT_SWAP_OFF) return WEFT_OK;
    return weft__kv_swap_create(e->caches[0].pool, e->store, e->params.swap_bytes ? e->params.swap_bytes : most,
                                on_news, e, &e->swap.pages, err);
}

void weft__batcher_swap_measure(weft_engine *e, const weft__sched_plan *plan)
{
    if (plan->n_prompt_rows * 2 < plan->n_rows) return;
    e->swap.rows = 0.9 * e->swap.rows + plan->n_rows;
    e->swap.rows_ns = 0.9 * e->swap.rows_ns + (double)e->model_ns;
}

double weft__batcher_prefill_rate(const weft_engine *e)
{
    return e->swap.rows_ns > 0 ? e->swap.rows / e->swap.rows_ns * 1e9 : 0;
}

void weft__batcher_swap_out(batcher_request *r)
{
    weft_engine *e = r->engine;
    if (!e->swap.pages || r->parked) return;
    if (weft__kv_swap_wants(e->swap.pages, r->seq, weft__batcher_prefill_rate(e)) || e->params.swap == WEFT_SWAP_ALWAYS)
        r->parked = weft__kv_swap_park(e->swap.pages, r->seq);
    r->n_swaps += r->parked != NULL;
}

void weft__batcher_swap_forget(batcher_request *r)
{
    if (r->parked) weft__kv_swap_forget(r->engine->swap.pages, &r->parked);
}

void weft__batcher_swap_stop(batcher_request *r)
{
    if (r->parked) weft__kv_swap_stop(r->engine->swap.pages, r->parked);
}

static uint64_t wait_ns(const weft_engine *e)
{
    return (uint64_t)e->params.disk_wait_ms * 1000000;
}

uint64_t weft__batcher_swap_deadline(const weft_engine *e)
{
    return e->swap.pages && weft__kv_swap_n_begun(e->swap.pages) ? weft__clock_ns() + wait_ns(e) : 0;
}

/* 1: it has begun. */
static int begin(batcher_request *r, int32_t n_max, int32_t had)
{
    weft__kv_swap *pages = r->engine->swap.pages;
    const int32_t n = weft__kv_swap_has(pages, r->parked, n_max);
    if (n <= had) return 0;
    weft__kv_seq_trim(r->seq, 0);
    return weft__kv_swap_begin(pages, r->parked, r->seq, n);
}

int32_t weft__batcher_swap_in(batcher_request *r, int32_t n_max)
{
    weft_engine *e = r->engine;
    if (!weft__kv_swap_is_begun(r->parked)) {
        r->n_found = weft__kv_seq_length(r->seq);
        r->swap_began_ns = weft__clock_ns();
        if (!begin(r, n_max, r->n_found)) goto otherwise;
    }
    for (int done; (done = weft__kv_swap_end(e->swap.pages, r->parked)) <= 0;) {
        if (done == 0 && weft__kv_swap_idle_ns(r->parked) < wait_ns(e)) return WEFT__SCHED_LATER;
        if (done == 0) goto otherwise; /* the disk does not answer */
        if (!begin(r, n_max, r->n_found)) goto otherwise;
    }
    const int32_t n = weft__kv_seq_length(r->seq);
    r->swap_bytes += weft__kv_swap_bytes(r->parked);
    r->swap_ns += weft__clock_ns() - r->swap_began_ns;
    e->swap.tokens += (uint64_t)(n - r->n_found);
    weft__batcher_swap_forget(r);
    return n;
otherwise: /* what the tree has of it is the most that there is */
    weft__batcher_swap_forget(r);
    return weft__batcher_match(r, n_max);
}

int weft__batcher_swap_some(weft_engine *e, uint64_t step_ns)
{
    const uint64_t least = 1 << 20, n = (uint64_t)((double)step_ns / COPIES_PER_STEP / COPY_NS);
    return e->swap.pages && weft__kv_swap_some(e->swap.pages, n > least ? n : least);
}

void weft__batcher_count_swap(weft_engine *e)
{
    weft__kv_swap_stats s;
    if (!e->swap.pages) return;
    weft__kv_swap_get_stats(e->swap.pages, &s);
    e->stats.swap = (weft_swap_stats){.limit_bytes = s.limit_bytes,
                                      .used_bytes = s.used_bytes,
                                      .staged_bytes = s.staged_bytes,
                                      .pages_out = s.pages_out,
                                      .bytes_out = s.bytes_out,
                                      .out_ns = s.out_ns,
                                      .pages_in = s.pages_in,
                                      .bytes_in = s.bytes_in,
                                      .in_ns = s.in_ns,
                                      .pages_lost = s.pages_lost,
                                      .n_swapped = s.n_parked,
                                      .n_restored = s.n_restored,
                                      .tokens = e->swap.tokens,
                                      .bytes_per_second = s.bytes_per_second,
                                      .prompt_tokens_per_second = weft__batcher_prefill_rate(e)};
}
