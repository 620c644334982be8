// SPDX-License-Identifier: Apache-2.0
/* bytes.c: what an engine would take before there is one (weft_engine_count_bytes). Any thread. */
#include "base/check.h"
#include "base/params.h"
#include "batcher/batcher.h"
#include "sample/sampler.h"

/* A model that guesses, with its own pages. */
static void add_draft_model(const weft_engine_params *p, weft_engine_bytes *b)
{
    const weft__engine_drafter_params d = weft__batcher_drafter_params(p);
    const uint64_t scratch =
        weft__plan_scratch(p->draft->plan) + (uint64_t)p->n_slots * (uint64_t)p->draft->hp.n_vocab * sizeof(float);
    b->weights += p->draft->held;
    b->scratch += scratch;
    b->scratch_most += scratch + (uint64_t)p->n_slots * weft__engine_drafter_text_bytes(p->n_ctx);
    b->pages += weft__engine_drafter_page_bytes_most(p->draft, &d);
    b->pages_least += weft__engine_drafter_page_bytes_least(p->draft, &d);
}

weft_status weft_engine_count_bytes(const weft_model *m, const weft_engine_params *params, weft_engine_bytes *out,
                                    weft_error *err)
{
    int32_t n_pages[WEFT__KV_SNAPSHOT_GROUPS];
    weft_engine_params p;
    weft_engine_params_default(&p);
    weft_status st = weft__params_read(WEFT__PARAMS_TYPE(weft_engine_params), &p, params, err);
    if (!st) st = weft__batcher_complete_params(m, &p, err);
    if (!st) st = weft__batcher_plan_pages(m, &p, n_pages, err);
    if (st) return st;
    weft_engine_bytes own = {.size = sizeof own,
                             .n_slots = p.n_slots,
                             .n_ctx = p.n_ctx,
                             .n_kv_tokens = p.n_kv_tokens,
                             .weights = m->held,
                             .scratch = weft__batcher_scratch(m, weft__batcher_max_wanted(m, p.n_slots))};
    own.scratch_most =
        own.scratch +
        (uint64_t)p.n_slots * ((uint64_t)p.n_ctx * sizeof(int32_t) + weft__sample_bytes_most(m->hp.n_vocab, p.n_ctx) +
                               (p.spec ? weft__batcher_draft_bytes(p.n_ctx) : 0)) +
        (p.spec ? weft__batcher_answers_bytes(p.n_slots) : 0);
    for (int32_t g = 0; g < m->graph->n_kv_groups; g++) {
        uint64_t page_bytes, one;
        if (!weft__kv_page_bytes(&m->graph->kv_groups[g], p.kv_dtype, &one) ||
            !weft__checked_mul(one, (uint64_t)n_pages[g], &page_bytes) ||
            !weft__checked_add(own.pages, page_bytes, &own.pages))
            return weft_fail(err, WEFT_LIMIT, "KV group %d: the size of %d pages overflows", g, n_pages[g]);
        own.kv_pages += n_pages[g];
        own.pages_least += one * (uint64_t)weft__batcher_least_pages(m, &p, g, n_pages[g]);
    }
    if (weft__batcher_asks_model(&p)) add_draft_model(&p, &own);
    return weft__params_write(WEFT__PARAMS_TYPE(weft_engine_bytes), out, &own, err);
}
