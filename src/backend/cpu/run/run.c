// SPDX-License-Identifier: Apache-2.0
/* run.c: one step: every thread walks the program (program.h), and thread 0 keeps the time where a profile is made. */
#include "backend/cpu/program.h"
#include "base/clock.h"

/* The event of step s, or NULL when there is no room for it. */
static weft_profile_event *begin_event(const weft_program *p, const weft__cpu_step *s)
{
    weft_profile_log *log = p->state->profile;
    if (log->n == log->capacity) {
        log->n_lost++;
        return NULL;
    }
    weft_profile_event *e = &log->events[log->n++];
    e->node = s->node ? (int32_t)(s->node - p->graph->nodes) : WEFT_NONE;
    e->begin_ns = weft__clock_ns();
    return e;
}

static void walk(void *arg, int thread, int n_threads)
{
    weft_program *p = arg;
    int timed = thread == 0 && p->state->profile;
    (void)n_threads;
    for (int32_t i = 0; i < p->n_steps; i++) {
        const weft__cpu_step *s = &p->steps[i];
        if (weft__cpu_rows(p, s) == 0) continue;
        weft_profile_event *e = timed && s != p->gather ? begin_event(p, s) : NULL; /* moving rows is no op */
        s->run(p, s, thread);
        if (e) e->done_ns = weft__clock_ns();
        if (s->barrier) weft__pool_barrier(p->backend->pool, thread);
        if (e) e->end_ns = weft__clock_ns();
    }
}

/* The steps that follow are done by n threads. Their number changes which computes an output, never how. */
static void use_threads(weft_program *p, int n)
{
    p->state->n_threads = n;
    weft__cpu_forget_claims(p);
    for (int32_t i = 0; i < p->n_steps; i++) {
        const weft__cpu_step *s = &p->steps[i];
        if (s->node && s->node->op == WEFT_OP_LINEAR) weft__cpu_split_linear(p, s->data);
        if (s->node && s->node->op == WEFT_OP_MOE_FFN) weft__cpu_split_moe(p, s->data);
    }
}

weft_status weft__cpu_run(weft_program *p, const weft_rows *rows, const weft_bindings *b, weft_error *err)
{
    weft_status st;
    int n_threads = weft__pool_team(p->backend->pool);
    if (n_threads != p->state->n_threads) use_threads(p, n_threads);
    if ((st = weft__cpu_accept(p, rows, b, err)) || (st = weft__cpu_tile_rows(p, err))) return st;
    weft__pool_run_team(p->backend->pool, n_threads, rows->n_rows, walk, p);
    return WEFT_OK;
}

void weft__cpu_profile(weft_program *p, weft_profile_log *log)
{
    p->state->profile = log;
}
