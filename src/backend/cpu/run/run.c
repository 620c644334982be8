// SPDX-License-Identifier: Apache-2.0
/* run.c: one step: every thread walks the program (program.h), and thread 0 keeps the time where a profile is made. */
#include <stddef.h>

#include "backend/cpu/program.h"
#include "base/clock.h"

/* The event of step s, or NULL when there is no room for it. */
static weft_profile_event *begin_event(const weft_run *run, const weft__cpu_step *s)
{
    weft_profile_log *log = run->profile;
    if (log->n == log->capacity) {
        log->n_lost++;
        return NULL;
    }
    weft_profile_event *e = &log->events[log->n++];
    e->node = s->node ? (int32_t)(s->node - run->program->graph->nodes) : WEFT_NONE;
    e->begin_ns = weft__clock_ns();
    return e;
}

/* Is the log one of 2.2, and does it count? */
static int counts(const weft_profile_log *log)
{
    return log && log->size >= offsetof(weft_profile_log, count_arg) + sizeof log->count_arg && log->count;
}

/* Is it of those nodes of the step that run? Work for the whole step always is. */
static int is_asked(const weft_run *run, const weft__cpu_step *s)
{
    const int64_t node = s->node ? s->node - run->program->graph->nodes : run->first_node;
    return run->n_nodes == 0 || (node >= run->first_node && node < (int64_t)run->first_node + run->n_nodes);
}

static void walk(void *arg, int thread, int n_threads)
{
    weft_run *run = arg;
    const weft_program *p = run->program;
    const weft_profile_log *counted = run->counted_from != WEFT_NONE ? run->profile : NULL;
    int timed = thread == 0 && run->profile;
    int32_t event = run->counted_from;
    (void)n_threads;
    if (counted) counted->count(counted->count_arg, thread, WEFT_NONE);
    for (int32_t i = 0; i < p->n_steps; i++) {
        const weft__cpu_step *s = &p->steps[i];
        if (weft__cpu_rows(run, s) == 0 || !is_asked(run, s)) continue;
        const int is_op = s != p->gather; /* moving rows is none */
        weft_profile_event *e = timed && is_op ? begin_event(run, s) : NULL;
        s->run(run, s, thread);
        if (e) e->done_ns = weft__clock_ns();
        if (counted) counted->count(counted->count_arg, thread, is_op ? event++ : WEFT_NONE);
        if (s->barrier) weft__pool_barrier(p->backend->pool, thread);
        if (counted && s->barrier) counted->count(counted->count_arg, thread, WEFT_NONE);
        if (e) e->end_ns = weft__clock_ns();
    }
}

void weft__cpu_use_threads(weft_run *run, int n)
{
    const weft_program *p = run->program;
    run->n_threads = n;
    weft__cpu_forget_claims(run);
    for (int32_t i = 0; i < p->n_steps; i++) {
        const weft__cpu_step *s = &p->steps[i];
        const weft__cpu_linear *l = s->node && s->node->op == WEFT_OP_LINEAR ? s->data : NULL;
        const weft__cpu_moe *m = s->node && s->node->op == WEFT_OP_MOE_FFN ? s->data : NULL;
        if (l) weft__cpu_split_linear(l, n, run->split + l->split_at);
        if (m) weft__cpu_split_moe(m, n, run->split + m->split_at);
    }
}

weft_status weft__cpu_run(weft_run *run, const weft_step *step, weft_error *err)
{
    weft__pool *pool = run->program->backend->pool;
    weft_status st;
    int n_threads = weft__pool_team(pool);
    if (n_threads != run->n_threads) weft__cpu_use_threads(run, n_threads);
    if ((st = weft__cpu_accept(run, step, err)) || (st = weft__cpu_tile_rows(run, err))) return st;
    run->counted_from = counts(run->profile) ? run->profile->n : WEFT_NONE;
    /* Some nodes are jobs of another kind than whole steps, and than other nodes. */
    const int64_t some = run->n_nodes ? ((int64_t)run->first_node + 1) << 32 : 0;
    weft__pool_run_team(pool, n_threads, some + step->rows->n_rows, walk, run);
    return WEFT_OK;
}
