// SPDX-License-Identifier: Apache-2.0
/* stats.c: the engine's counters. All under its lock. */
#include "base/params.h"
#include "batcher/batcher.h"

static void set_bounds(weft_histogram *h, const double *bounds, int n)
{
    h->n = n;
    for (int i = 0; i < n; i++) h->bounds[i] = bounds[i];
}

void weft__batcher_stats_begin(weft_engine *e)
{
    static const double rows[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048};
    static const double ms[] = {0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000};
    set_bounds(&e->stats.batch_rows, rows, sizeof rows / sizeof *rows);
    set_bounds(&e->stats.step_ms, ms, sizeof ms / sizeof *ms);
    e->stats.chunk = (int32_t)e->pace.rows;
}

static void stats_add(weft_histogram *h, double value)
{
    int i = 0;
    while (i < h->n && value > h->bounds[i]) i++;
    h->counts[i]++;
    h->sum += value;
}

static void count_drafts(weft_draft_stats *all, weft_draft_stats *step)
{
    for (int d = 0; d < WEFT_DRAFTERS; d++) {
        all[d].n_drafts += step[d].n_drafts;
        all[d].n_tokens += step[d].n_tokens;
        all[d].n_accepted += step[d].n_accepted;
        for (int k = 0; k < WEFT_DRAFT_MAX; k++) {
            all[d].tokens_at[k] += step[d].tokens_at[k];
            all[d].accepted_at[k] += step[d].accepted_at[k];
        }
        step[d] = (weft_draft_stats){0};
    }
}

void weft__batcher_count_step(weft_engine *e, const weft__sched_plan *plan, uint64_t ns)
{
    stats_add(&e->stats.batch_rows, plan->n_rows);
    stats_add(&e->stats.step_ms, (double)ns / 1e6);
    e->stats.model_ns += e->model_ns;
    e->stats.prompt_tokens += e->step.prompt;
    e->stats.cached_tokens += e->step.cached;
    e->stats.n_generated += e->step.generated;
    count_drafts(e->stats.drafts, e->step.drafts);
    e->stats.draft_ns += e->step.draft_ns;
    e->stats.chunk = (int32_t)e->pace.rows;
    e->step.draft_ns = 0;
    e->model_ns = e->step.prompt = e->step.cached = e->step.generated = 0;
}

static void hold(weft_held *h, uint64_t bytes)
{
    h->bytes = bytes;
    if (bytes > h->peak) h->peak = bytes;
}

uint64_t weft__batcher_scratch(const weft_model *m, int32_t max_wanted)
{
    uint64_t n_vocab = (uint64_t)m->hp.n_vocab;
    return weft__plan_scratch(m->plan) + ((uint64_t)max_wanted + 1) * n_vocab * sizeof(float) +
           ((uint64_t)m->max_rows + 1) * (uint64_t)m->hp.d_model * sizeof(float);
}

static void count_bytes(weft_engine *e, uint64_t pages)
{
    weft_memory *m = &e->stats.memory;
    hold(&m->weights, e->model->held + (e->draft.model ? e->params.draft->held : 0));
    hold(&m->pages, pages + weft__engine_drafter_page_bytes(e->draft.model));
    hold(&m->scratch, weft__batcher_scratch(e->model, e->max_wanted) + e->n_scratch +
                          weft__draft_pool_bytes(e->draft.pool) + weft__engine_drafter_scratch(e->draft.model) +
                          e->stats.swap.staged_bytes);
}

void weft__batcher_count_pages(weft_engine *e)
{
    int32_t all = 0, cached = 0, used = 0; /* in pages of the first type */
    uint64_t bytes = 0, limit = 0, known = 0, evicted = 0;
    for (int32_t g = 0; g < e->model->graph->n_kv_groups; g++) {
        const weft_kv_binding *first = &weft__kv_pool_bindings(e->caches[0].pool)[g];
        const uint64_t most = weft__kv_pool_most_bytes(e->caches[0].pool, g);
        uint64_t taken = 0, idle = 0;
        for (int32_t i = 0; i < e->n_caches; i++) {
            const uint64_t page_bytes = weft__kv_pool_bindings(e->caches[i].pool)[g].page_bytes;
            taken += (uint64_t)weft__kv_pool_held_pages(e->caches[i].pool, g) * page_bytes;
            idle += (uint64_t)weft__kv_pool_idle_pages(e->caches[i].pool, g) * page_bytes;
        }
        all += first->n_pages;
        bytes += taken;
        limit += taken > most ? taken : most;
        used += (int32_t)((taken - idle + first->page_bytes - 1) / first->page_bytes);
        cached += (int32_t)(idle / first->page_bytes);
    }
    for (int32_t i = 0; i < e->n_caches; i++) {
        weft__kv_prefix_stats tree;
        weft__kv_prefix_get_stats(e->caches[i].prefix, &tree);
        known += (uint64_t)tree.n_tokens;
        evicted += tree.n_evicted_pages;
    }
    weft__batcher_count_swap(e);
    count_bytes(e, bytes);
    e->stats.kv_pages = all;
    e->stats.kv_pages_cached = cached;
    e->stats.kv_pages_used = used;
    e->stats.kv_limit_bytes = limit + weft__engine_drafter_page_limit(e->draft.model);
    e->stats.prefix_tokens = known;
    e->stats.prefix_evicted_pages = evicted;
}

void weft__batcher_count_persisting(weft_engine *e)
{
    e->stats.store_waiting = weft__batcher_n_persisting(e);
}

void weft__batcher_count_finished(weft_engine *e, weft_finish finish)
{
    e->stats.n_finished++;
    e->stats.n_cancelled += finish == WEFT_FINISH_CANCELLED;
    e->stats.n_failed += finish == WEFT_FINISH_FAILED;
}

void weft_engine_get_stats(const weft_engine *engine, weft_engine_stats *filled)
{
    weft_engine_stats own, *out = &own;
    weft_engine *e = (weft_engine *)(uintptr_t)engine;
    weft__sched_stats s;
    weft__adapt_store_stats a;
    weft__kv_store_stats d = {0};
    weft__adapt_store_get_stats(e->adapters, &a);
    pthread_mutex_lock(&e->lock);
    weft__sched_get_stats(e->sched, &s);
    *out = e->stats;
    /* After what is to be kept was counted: on its way to the store it is seen at least once. */
    if (e->store) weft__kv_store_get_stats(e->store, &d);
    out->n_adapters = a.n_entries;
    out->n_adapters_ready = a.n_packed;
    out->adapter_bytes = a.n_bytes;
    out->memory.adapters = (weft_held){a.n_bytes, a.peak_bytes};
    out->adapter_loads = a.n_loads;
    out->adapter_evictions = a.n_evictions;
    out->adapter_hits = a.n_hits;
    out->adapter_disk_loads = a.n_disk_loads;
    out->adapter_asked_ahead = a.n_ahead;
    out->adapter_ahead_hits = a.n_ahead_hits;
    out->store_prefixes = d.n_prefixes;
    out->store_slots = d.n_slots;
    out->store_bytes = d.n_bytes;
    out->store_cap_bytes = d.cap_bytes;
    out->store_written = d.n_written;
    out->store_write_failed = d.n_write_failed;
    out->store_read = d.n_read;
    out->store_read_tokens = d.tokens_read;
    out->store_damaged = d.n_damaged;
    out->store_removed = d.n_removed;
    out->store_waiting += d.n_queued;
    out->swap.file_bytes = d.swap_bytes;
    out->size = sizeof *out;
    out->n_slots = e->params.n_slots;
    out->n_ctx = e->params.n_ctx;
    out->max_requests = weft__sched_max_accepted(e->sched);
    out->n_running = s.n_prefilling + s.n_decoding;
    out->n_waiting = e->records.n_live - e->records.n_finishing - out->n_running;
    out->n_steps = s.steps;
    out->n_rows_decode = s.decode_rows;
    out->n_rows_prompt = s.prompt_rows;
    out->n_preempted = s.preempted;
    out->n_put_off = s.deferred;
    pthread_mutex_unlock(&e->lock);
    if (out->n_waiting < 0) out->n_waiting = 0;
    weft__params_write(WEFT__PARAMS_TYPE(weft_engine_stats), filled, out, NULL);
}
