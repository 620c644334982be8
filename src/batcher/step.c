// SPDX-License-Identifier: Apache-2.0
/* step.c: what the scheduler planned, as steps of the model. A plan is one step, whatever types of pages it has rows
 * of, or one for each type where a provider takes no others beside it; unless more rows want logits than one step gives
 * (log-probabilities of prompts): then it is cut into several, which changes no bit. Nothing is allocated here but by
 * the prefix tree, when prompts are read. Owner: the engine's thread. */
#include "base/clock.h"
#include "batcher/batcher.h"

/* Does the row at that position of an item need logits? */
static int wants_logits(const batcher_request *r, const weft__sched_item *item, int32_t position)
{
    if (item->sample && position >= item->first + item->n - 1 - item->n_draft) return 1;
    return r->prompt_logprobs && position + 1 >= r->n_told && position + 1 < r->n_prompt;
}

static void add_sequence(weft_engine *e, const batcher_request *r)
{
    weft__graph_batch *b = &e->steps.batch;
    weft__graph_batch_add_sequence(b, weft__kv_seq_view(r->seq), r->lease ? weft__adapt_lease_packed(r->lease) : NULL);
    if (e->pools) weft__graph_batch_set_pool(b, (int32_t)(r->cache - e->caches), e->n_caches);
}

/* Adds rows of an item from position `from` on, as many as the step takes; returns where it stopped. */
static int32_t add_rows(weft_engine *e, const weft__sched_item *item, int32_t from)
{
    weft__graph_batch *b = &e->steps.batch;
    batcher_request *r = item->user;
    int32_t end = item->first + item->n, position = from;
    batcher_part part = {.r = r, .first = from, .row = b->rows.n_rows, .wanted = b->rows.n_wanted};
    for (; position < end; position++) {
        int wants = wants_logits(r, item, position);
        const unsigned outputs = weft__batcher_embeds(r, position) ? WEFT_WANT_OUTPUTS : 0;
        if (b->rows.n_wanted + wants > e->max_wanted) break;
        if (position == from) add_sequence(e, r);
        weft__graph_batch_add_row(b, r->tokens[position], position, (wants ? WEFT_WANT_LOGITS : 0) | outputs);
    }
    part.n = position - from;
    part.n_wanted = b->rows.n_wanted - part.wanted;
    part.sample = item->sample && position == end;
    part.n_draft = item->n_draft; /* all of them: a request that decodes is never cut */
    if (part.n > 0) e->parts[e->n_parts++] = part;
    return position;
}

static weft_status run_model(weft_engine *e, const batcher_cache *cache, weft_error *err)
{
    const weft_kv_binding *pages = e->pools ? e->pools : weft__kv_pool_bindings(cache->pool);
    uint64_t begin = weft__clock_ns();
    for (int32_t i = 0; i < e->n_parts; i++) weft__batcher_stage(e->parts[i].r, BATCHER_COMPUTING, begin);
    weft__batcher_trace_begin(e);
    weft_status st = weft__engine_step(e->model, &e->steps, pages, e->logits, err);
    uint64_t end = weft__clock_ns();
    for (int32_t i = 0; i < e->n_parts; i++) weft__batcher_stage(e->parts[i].r, BATCHER_WAITING, end);
    e->model_ns += end - begin;
    weft__batcher_trace_step(e, e->steps.batch.rows.n_rows, e->steps.batch.rows.n_wanted, begin, end);
    return st;
}

/* The grammars before it took the time that this step has for theirs: its last row comes again, which changes no
 * bit. */
static void put_off(batcher_request *r)
{
    weft_engine *e = r->engine;
    pthread_mutex_lock(&e->lock);
    weft__sched_defer(e->sched, r->sched_id);
    pthread_mutex_unlock(&e->lock);
}

/* What the rows of one request have brought. 0: not the next token yet. */
static int use_rows(weft_engine *e, const batcher_part *part)
{
    batcher_request *r = part->r;
    size_t n_vocab = (size_t)e->model->hp.n_vocab, d = (size_t)e->model->hp.d_model;
    const float *logits = e->logits + (size_t)part->wanted * n_vocab;
    if (r->embedding) weft__batcher_embed(r, part->first, part->n, e->steps.batch.hidden + (size_t)part->row * d);
    for (int32_t i = 0; i < part->n && r->prompt_logprobs && !r->ended; i++) {
        int32_t next = part->first + i + 1;
        if (next < r->n_told || next >= r->n_prompt) continue;
        weft__batcher_prompt_token(r, next, logits);
        logits += n_vocab;
    }
    if (!part->sample || r->ended) return 1;
    if (!weft__batcher_has_time(r)) {
        r->put_off++;
        return 0;
    }
    r->put_off = 0;
    weft__batcher_sample(r, e->logits + (size_t)(part->wanted + part->n_wanted - 1 - part->n_draft) * n_vocab,
                         part->n_draft ? r->draft.now.token[0] : -1);
    return 1;
}

/* What these rows have read of the prompt that was not read before. */
static void count_read(weft_engine *e, const batcher_part *part)
{
    batcher_request *r = part->r;
    int32_t end = part->first + part->n, n_read = end < r->n_prompt ? end : r->n_prompt;
    if (!r->computed) {
        r->n_cached = part->first;
        e->step.prompt += (uint64_t)r->n_prompt;
        e->step.cached += (uint64_t)r->n_cached;
    }
    r->computed = 1;
    if (n_read <= r->n_read) return;
    r->n_read = n_read;
    weft_event event = weft__batcher_event(r, WEFT_EVENT_READ);
    if (r->read_events && !r->ended) weft__batcher_notify(r, &event);
}

static void use_part(weft_engine *e, batcher_part *part)
{
    batcher_request *r = part->r;
    weft__batcher_stage(r, BATCHER_SAMPLING, weft__clock_ns());
    count_read(e, part);
    part->known = r->ended || use_rows(e, part);
    weft__kv_seq_advance(r->seq, part->n - part->n_draft - !part->known);
    if (!part->n_draft && !part->known) put_off(r);
    if (!part->n_draft) weft__batcher_shift(r);
    weft__batcher_stage(r, BATCHER_WAITING, weft__clock_ns());
}

/* The rows of a draft, as far as its tokens are those that the request's sampler has picked; what is not stays beyond
 * the sequence's end, and pages that hold nothing else go. Tokens whose turn did not come for want of time were neither
 * right nor wrong. */
static void use_draft(weft_engine *e, const batcher_part *part)
{
    batcher_request *r = part->r;
    const weft__draft *d = &r->draft.now;
    const size_t n_vocab = (size_t)e->model->hp.n_vocab;
    float *logits = e->logits + (size_t)(part->wanted + part->n_wanted - part->n_draft) * n_vocab;
    int32_t n = 0;
    int waits = !part->known;
    weft__batcher_stage(r, BATCHER_SAMPLING, weft__clock_ns());
    while (!waits && !r->ended && n < part->n_draft && r->tokens[r->n_known - 1] == d->token[n]) {
        if ((waits = !weft__batcher_has_time(r))) break;
        weft__batcher_sample(r, logits + (size_t)n * n_vocab, n + 1 < part->n_draft ? d->token[n + 1] : -1);
        n++;
    }
    weft__kv_seq_advance(r->seq, n);
    weft__kv_seq_trim(r->seq, weft__kv_seq_length(r->seq));
    weft__batcher_drafted(r, waits ? r->draft.n_right : d->n);
    pthread_mutex_lock(&e->lock);
    weft__sched_drafted(e->sched, r->sched_id, n);
    pthread_mutex_unlock(&e->lock);
    if (!part->known) put_off(r);
    weft__batcher_shift(r);
    weft__batcher_stage(r, BATCHER_WAITING, weft__clock_ns());
}

/* Those that have been put off most often come first, so that each has its turn; else the order stays. */
static void sort_parts(weft_engine *e)
{
    for (int32_t i = 1, j; i < e->n_parts; i++) {
        const batcher_part part = e->parts[i];
        for (j = i; j > 0 && e->parts[j - 1].r->put_off < part.r->put_off; j--) e->parts[j] = e->parts[j - 1];
        e->parts[j] = part;
    }
}

static void use_parts(weft_engine *e)
{
    sort_parts(e);
    for (int32_t i = 0; i < e->n_parts; i++) use_part(e, &e->parts[i]);
    for (int32_t i = 0; i < e->n_parts; i++) /* then: no draft takes the time of another's mask */
        if (e->parts[i].n_draft) use_draft(e, &e->parts[i]);
}

/* One step of the model: rows of the items from `item` on, which begins at position `from`; of those with pages of one
 * type alone where e->pools is NULL. Both move on. */
static void step(weft_engine *e, const weft__sched_plan *plan, const batcher_cache *cache, int32_t *item, int32_t *from)
{
    weft_error err = {0};
    e->n_parts = 0;
    weft__graph_batch_clear(&e->steps.batch);
    while (*item < plan->n_items) {
        const weft__sched_item *it = &plan->items[*item];
        if (e->pools || ((const batcher_request *)it->user)->cache == cache) {
            *from = add_rows(e, it, *from);
            if (*from < it->first + it->n) break;
        }
        if (++*item < plan->n_items) *from = plan->items[*item].first;
    }
    if (!e->n_parts) return;
    weft_status st = run_model(e, cache, &err);
    for (int32_t i = 0; i < e->n_parts && st; i++) weft__batcher_fail(e->parts[i].r, st, err.message);
    if (!st) use_parts(e);
}

void weft__batcher_step(weft_engine *e, const weft__sched_plan *plan)
{
    const int32_t n_apart = e->pools ? 1 : e->n_caches; /* types that have steps of their own */
    int32_t n_types = 0;
    e->mask_ns = 0;
    for (int32_t i = 0; i < n_apart; i++) {
        int32_t item = 0, from = plan->items[0].first;
        const uint64_t before = e->model_ns;
        while (item < plan->n_items) step(e, plan, &e->caches[i], &item, &from);
        n_types += e->model_ns > before;
    }
    weft__batcher_swap_measure(e, plan);
    if (e->draft.pool && !plan->n_prompt_rows && n_types == 1)
        weft__draft_cost_saw(&e->draft.cost, plan->n_rows, e->model_ns);
    for (int32_t i = 0; i < plan->n_items; i++)
        if (!plan->items[i].decode) weft__batcher_publish(plan->items[i].user);
}
