// SPDX-License-Identifier: Apache-2.0
/* profile.c: steps that are recorded: when each op ran, how many bytes it moves, how many operations it does.
 * The providers append events to a log (backend.h); here they become ops of a step. Owner: one thread at a time. */
#include "base/alloc.h"
#include "base/clock.h"
#include "graph/plan.h"

enum { WHOLE_STEP = 8 }; /* events of a segment, beside one for each node, that are work for the whole step */

weft_status weft__profile_new(const weft__plan *p, weft__profile **out, weft_error *err)
{
    *out = NULL;
    for (int32_t i = 0; i < p->n_segments; i++) {
        const weft_backend_api *api = p->segments[i].provider->api;
        if (!(api->features & WEFT_FEATURE_PROFILE))
            return weft_fail(err, WEFT_UNSUPPORTED, "provider %s cannot say where its time goes", api->name);
    }
    weft__profile *f = weft__alloc_zero(1, sizeof *f);
    if (!f) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a profile");
    f->plan = p;
    f->log = (weft_profile_log){.size = sizeof f->log, .capacity = p->graph->n_nodes + WHOLE_STEP * p->n_segments};
    f->log.events = weft__alloc_zero((size_t)f->log.capacity, sizeof *f->log.events);
    f->seqs = weft__alloc_array((size_t)p->max_rows, sizeof *f->seqs);
    f->kv_types = weft__alloc_array((size_t)p->max_rows, sizeof *f->kv_types);
    if (f->log.events && f->seqs && f->kv_types) {
        *out = f;
        return WEFT_OK;
    }
    weft__profile_free(&f);
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for a profile");
}

void weft__profile_free(weft__profile **profile)
{
    weft__profile *f = *profile;
    if (!f) return;
    *profile = NULL;
    weft__counters_free(&f->counters);
    weft__free(f->counts);
    weft__free(f->kv_types);
    weft__free(f->seqs);
    weft__free(f->log.events);
    weft__free(f->steps);
    weft__free(f->ops);
    weft__free(f);
}

void weft__profile_clear(weft__profile *f)
{
    f->n_ops = f->n_steps = 0;
}

static void count(void *counters, int32_t thread, int32_t event)
{
    weft__counters_mark(counters, thread, event);
}

weft_status weft__profile_count(weft__profile *f, int on, const weft__counter_system *system, weft_error *err)
{
    weft__profile_clear(f);
    weft__counters_free(&f->counters);
    f->log.count = NULL;
    if (!on) return WEFT_OK;
    for (int32_t i = 0; i < f->plan->n_segments; i++) {
        const weft_backend_api *api = f->plan->segments[i].provider->api;
        if (!(api->features & WEFT_FEATURE_COUNT))
            return weft_fail(err, WEFT_UNSUPPORTED, "provider %s counts nothing per op", api->name);
    }
    weft_status st = weft__counters_new(system, f->log.capacity, &f->counters, err);
    if (st) return st;
    f->log.count = count;
    f->log.count_arg = f->counters;
    return WEFT_OK;
}

/* Room for one more step. */
static weft_status reserve(weft__profile *f, weft_error *err)
{
    size_t ops = (size_t)f->n_ops + (size_t)f->log.capacity, steps = (size_t)f->n_steps + 1;
    if (ops > INT32_MAX) return weft_fail(err, WEFT_LIMIT, "a profile of %d steps is as long as it can be", f->n_steps);
    if (!weft__grow(&f->ops, &f->ops_capacity, ops, sizeof *f->ops) ||
        !weft__grow(&f->steps, &f->steps_capacity, steps, sizeof *f->steps))
        return weft_fail(err, WEFT_NO_MEMORY, "no memory to record step %d", f->n_steps);
    if (f->counters && !weft__grow(&f->counts, &f->counts_capacity, ops, sizeof *f->counts))
        return weft_fail(err, WEFT_NO_MEMORY, "no memory to count in step %d", f->n_steps);
    return WEFT_OK;
}

/* The step's rows by sequence. */
static weft__graph_load describe_rows(weft__profile *f, const weft_rows *rows, const weft_kv_binding *kv)
{
    const int32_t n_groups = f->plan->graph->n_kv_groups;
    int32_t n = 0;
    for (int32_t r = 0; r < rows->n_rows; r++) {
        if (r == 0 || rows->seq[r] != rows->seq[r - 1]) {
            const int32_t pool = rows->pool ? rows->pool[rows->seq[r]] : 0;
            f->kv_types[n] = kv ? kv[pool * n_groups].dtype : WEFT_F16;
            f->seqs[n++] = (weft__graph_seq_rows){rows->pos[r], 0, 0};
        }
        f->seqs[n - 1].n++;
        f->seqs[n - 1].n_wanted += weft_row_wants(rows, r, WEFT_WANT_LOGITS);
    }
    return (weft__graph_load){.n_rows = rows->n_rows,
                              .n_wanted = rows->n_wanted,
                              .n_seqs = n,
                              .seqs = f->seqs,
                              .kv_types = f->kv_types,
                              .wants_outputs = weft_rows_want_outputs(rows)};
}

/* An event as an op of the step that is being recorded. */
static weft__profile_op op_of(const weft__profile *f, const weft_profile_event *e, const weft__graph_load *load)
{
    const weft_graph *g = f->plan->graph;
    weft__profile_op op = {.node = e->node >= 0 && e->node < g->n_nodes ? e->node : WEFT_NONE,
                           .step = f->n_steps,
                           .begin_ns = e->begin_ns,
                           .done_ns = e->done_ns,
                           .end_ns = e->end_ns};
    if (op.node == WEFT_NONE) return op;
    weft__graph_cost c = weft__graph_node_cost(g, op.node, load);
    op.bytes = c.bytes;
    op.ops = c.int8_ops + c.bf16_ops + c.f32_ops + c.attention_ops;
    return op;
}

weft_status weft__profile_run(weft__profile *f, weft__plan_state *s, const weft_rows *rows, const weft_kv_binding *kv,
                              float *const *outputs, weft_error *err)
{
    weft_status st = reserve(f, err);
    if (st) return st;
    f->log.n = f->log.n_lost = 0;
    s->log = &f->log;
    const uint64_t begin = weft__clock_ns();
    st = weft__plan_run(s, rows, kv, outputs, err);
    const uint64_t end = weft__clock_ns();
    s->log = NULL;
    for (int32_t i = 0; f->counters && i < f->log.n; i++)
        weft__counters_take(f->counters, i, &f->counts[f->n_ops + i]); /* of a step that failed: for nobody */
    if (st) return st;
    const weft__graph_load load = describe_rows(f, rows, f->plan->graph->n_kv_groups > 0 ? kv : NULL);
    for (int32_t i = 0; i < f->log.n; i++) f->ops[f->n_ops + i] = op_of(f, &f->log.events[i], &load);
    f->steps[f->n_steps++] = (weft__profile_step){.n_rows = rows->n_rows,
                                                  .n_wanted = rows->n_wanted,
                                                  .first = f->n_ops,
                                                  .n = f->log.n,
                                                  .begin_ns = begin,
                                                  .end_ns = end};
    f->n_ops += f->log.n;
    return WEFT_OK;
}
