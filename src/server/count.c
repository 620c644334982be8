// SPDX-License-Identifier: Apache-2.0
/* count.c: what a request adds to the counters as it goes (server.h): with each step, not at its end, so that rates
 * show what happens now. As events are told. Invariant: at its end a request has added what its answer tells, once:
 * tokens as `usage` has them, times as the engine measured them. */
#include <string.h>

#include "base/clock.h"
#include "server/rules.h"

int weft__server_first_of_prompt(const weft__server_choice *c)
{
    return c->out->index % (int)c->gen->params.n == 0;
}

void weft__server_count_began(weft__server_choice *c, double queue_ms)
{
    c->counted_ns = c->now_ns;
    weft__server_histogram_add(&c->gen->model->metrics.queue, queue_ms / 1000);
}

/* The same by key and adapters. */
static void count_used(const weft__server_choice *c, uint64_t requests, uint64_t prompt, uint64_t cached,
                       uint64_t generated)
{
    weft__server_response *g = c->gen;
    const weft__server_used used = {requests, prompt, cached, generated};
    /* whose version it is, and which, is nobody else's business, and there are ever more of them */
    const char *adapters = strchr(g->adapters, '@') ? "(learned)" : g->adapters;
    weft__server_usage_add(&g->server->usage, &g->usage_place, g->label, adapters, &used);
    if (g->member) weft__server_limits_use(&g->server->limits, &g->member->chain, prompt, generated);
}

static void count_most(weft__server_metrics *m, const weft__server_choice *c)
{
    uint64_t n = (uint64_t)c->n_read + (uint64_t)c->out->n_generated, most = m->most_tokens;
    const uint64_t n_ctx = (uint64_t)c->gen->model->prompt_model.n_ctx;
    if (n > n_ctx) n = n_ctx; /* an answer that goes on where its context is full holds no more at a time */
    while (n > most && !atomic_compare_exchange_weak(&m->most_tokens, &most, n)) continue;
}

/* The time since it was counted last, up to `now`. */
static void count_time(weft__server_choice *c, _Atomic uint64_t *to, uint64_t *counted, uint64_t now)
{
    uint64_t us = now > c->counted_ns ? (now - c->counted_ns) / 1000 : 0;
    *to += us;
    *counted += us;
    c->counted_ns += us * 1000;
}

void weft__server_count_read(weft__server_choice *c, int32_t n_read, int32_t n_cached)
{
    weft__server_metrics *m = &c->gen->model->metrics;
    if (n_read <= c->n_read) return;
    if (weft__server_first_of_prompt(c)) {
        int32_t cached = c->n_read ? 0 : n_cached; /* those come first */
        m->prompt_tokens += (uint64_t)(n_read - c->n_read);
        m->cached_tokens += (uint64_t)cached;
        m->fresh_tokens += (uint64_t)(n_read - c->n_read - cached);
        count_used(c, 0, (uint64_t)(n_read - c->n_read), (uint64_t)cached, 0);
    }
    c->n_read = n_read;
    count_most(m, c);
    if (!c->out->n_generated) count_time(c, &m->prompt_us, &c->prompt_us, c->now_ns);
}

void weft__server_count_token(weft__server_choice *c)
{
    const uint64_t now = c->now_ns;
    weft__server_metrics *m = &c->gen->model->metrics;
    weft__server_histogram_add(c->out->n_generated ? &m->between_tokens : &m->first_token,
                               (double)(now - c->last_ns) / 1e9);
    if (c->out->n_generated) count_time(c, &m->generate_us, &c->generate_us, now);
    else count_time(c, &m->prompt_us, &c->prompt_us, now);
    c->last_ns = now;
    c->out->n_generated++;
    m->generated_tokens++;
    count_used(c, 0, 0, 0, 1);
    count_most(m, c);
}

/* What is left of a time that the engine measured. */
static void count_rest(_Atomic uint64_t *to, uint64_t counted, double ms)
{
    uint64_t us = (uint64_t)(ms * 1000);
    if (us > counted) *to += us - counted;
}

void weft__server_count_end(weft__server_choice *c)
{
    weft__server_metrics *m = &c->gen->model->metrics;
    if (!c->began) weft__server_histogram_add(&m->queue, c->queue_ms / 1000);
    m->embedded += c->out->n_embedding != 0;
    m->finished[c->out->finish]++;
    count_used(c, 1, 0, 0, 0);
    count_rest(&m->prompt_us, c->prompt_us, c->out->prompt_ms);
    count_rest(&m->generate_us, c->generate_us, c->out->generate_ms);
    weft__server_histogram_add(&m->duration, (double)(weft__clock_ns() - weft__http_began_ns(c->gen->r)) / 1e9);
}
