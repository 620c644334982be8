// SPDX-License-Identifier: Apache-2.0
/* profile.c: a record of the ops of profiled steps: when, how many bytes, how many operations.
 * The providers fill a log of events per run (backend.h); here they become ops of a step. Owner: the thread that runs
 * the plan. */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "graph/plan.h"

static void free_profile(weft__profile *f)
{
    if (!f) return;
    weft__free(f->seqs);
    weft__free(f->log.events);
    weft__free(f->steps);
    weft__free(f->ops);
    weft__free(f);
}

void weft__profile_destroy(weft__profile **profile)
{
    free_profile(*profile);
    *profile = NULL;
}

/* Events of the longest segment: one per node, and a few for work of the whole step. */
static int32_t log_capacity(const weft__plan *p)
{
    return p->graph->n_nodes + 8;
}

static weft_status create(weft__plan *p, weft_error *err)
{
    weft__profile *f = weft__alloc_zero(1, sizeof *f);
    if (!f) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a profile");
    f->log = (weft_profile_log){.size = sizeof f->log, .capacity = log_capacity(p)};
    f->log.events = weft__alloc_zero((size_t)f->log.capacity, sizeof *f->log.events);
    f->seqs = weft__alloc_array((size_t)p->max_rows, sizeof *f->seqs);
    if (!f->log.events || !f->seqs) {
        free_profile(f);
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for a profile");
    }
    p->profile = f;
    return WEFT_OK;
}

weft_status weft__plan_profile_start(weft__plan *p, weft_error *err)
{
    weft_status st;
    for (int32_t i = 0; i < p->n_segments; i++) {
        const weft_backend_api *api = p->segments[i].provider->api;
        if (!api->profile)
            return weft_fail(err, WEFT_UNSUPPORTED, "provider %s cannot say where its time goes", api->name);
    }
    if (!p->profile && (st = create(p, err))) return st;
    p->profile->n_ops = p->profile->n_steps = p->profile->n_pending = 0;
    p->profile->on = 1;
    for (int32_t i = 0; i < p->n_segments; i++)
        p->segments[i].provider->api->profile(p->segments[i].program, &p->profile->log);
    return WEFT_OK;
}

void weft__plan_profile_stop(weft__plan *p)
{
    if (!p->profile) return;
    p->profile->on = 0;
    for (int32_t i = 0; i < p->n_segments; i++) p->segments[i].provider->api->profile(p->segments[i].program, NULL);
}

const weft__profile *weft__plan_profile(const weft__plan *p)
{
    return p->profile;
}

weft_status weft__profile_begin(weft__plan *p, weft_error *err)
{
    weft__profile *f = p->profile;
    size_t ops = (size_t)f->n_ops + (size_t)p->n_segments * (size_t)f->log.capacity, steps = (size_t)f->n_steps + 1;
    if (ops > INT32_MAX) return weft_fail(err, WEFT_LIMIT, "a profile of %d steps is as long as it can be", f->n_steps);
    if (!weft__grow(&f->ops, &f->ops_capacity, ops, sizeof *f->ops) ||
        !weft__grow(&f->steps, &f->steps_capacity, steps, sizeof *f->steps))
        return weft_fail(err, WEFT_NO_MEMORY, "no memory to record step %d", f->n_steps);
    f->n_pending = f->log.n = f->log.n_lost = 0;
    f->begin_ns = weft__clock_ns();
    return WEFT_OK;
}

void weft__profile_segment(weft__plan *p)
{
    weft__profile *f = p->profile;
    for (int32_t i = 0; i < f->log.n; i++) {
        const weft_profile_event *e = &f->log.events[i];
        int known = e->node >= 0 && e->node < p->graph->n_nodes;
        f->ops[f->n_ops + f->n_pending++] = (weft__profile_op){.node = known ? e->node : WEFT_NONE,
                                                               .step = f->n_steps,
                                                               .begin_ns = e->begin_ns,
                                                               .done_ns = e->done_ns,
                                                               .end_ns = e->end_ns};
    }
    f->log.n = 0;
}

/* The step's rows by sequence. */
static weft__graph_load describe_rows(weft__profile *f, const weft_rows *rows, const weft_kv_binding *kv)
{
    int32_t n = 0;
    for (int32_t r = 0; r < rows->n_rows; r++) {
        if (r == 0 || rows->seq[r] != rows->seq[r - 1]) f->seqs[n++] = (weft__graph_seq_rows){rows->pos[r], 0, 0};
        f->seqs[n - 1].n++;
        f->seqs[n - 1].n_wanted += weft_row_wants(rows, r, WEFT_WANT_LOGITS);
    }
    return (weft__graph_load){.n_rows = rows->n_rows,
                              .n_wanted = rows->n_wanted,
                              .n_seqs = n,
                              .seqs = f->seqs,
                              .kv_dtype = kv ? kv[0].dtype : WEFT_F16,
                              .wants_outputs = weft_rows_want_outputs(rows)};
}

void weft__profile_end(weft__plan *p, const weft_rows *rows, const weft_kv_binding *kv)
{
    weft__profile *f = p->profile;
    uint64_t end = weft__clock_ns();
    weft__graph_load load = describe_rows(f, rows, p->graph->n_kv_groups > 0 ? kv : NULL);
    for (int32_t i = 0; i < f->n_pending; i++) {
        weft__profile_op *op = &f->ops[f->n_ops + i];
        if (op->node == WEFT_NONE) continue;
        weft__graph_cost c = weft__graph_node_cost(p->graph, op->node, &load);
        op->bytes = c.bytes;
        op->ops = c.int8_ops + c.bf16_ops + c.f32_ops + c.attention_ops;
    }
    f->steps[f->n_steps++] = (weft__profile_step){.n_rows = rows->n_rows,
                                                  .n_wanted = rows->n_wanted,
                                                  .first = f->n_ops,
                                                  .n = f->n_pending,
                                                  .begin_ns = f->begin_ns,
                                                  .end_ns = end};
    f->n_ops += f->n_pending;
    f->n_pending = 0;
}
