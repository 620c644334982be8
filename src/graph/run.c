// SPDX-License-Identifier: Apache-2.0
/* run.c: steps of a plan: what they write, and their way through the segments.
 * A state belongs to one thread at a time; those of one plan run beside each other, since none writes the plan. */
#include "base/alloc.h"
#include "graph/plan.h"
#include "mem/mem.h"

/* Memory for the tensors between segments, and the bindings to it; a run of each program. */
static weft_status fill(weft__plan_state *s, weft_error *err)
{
    const weft__plan *p = s->plan;
    weft_buffer_spec spec = {.size = sizeof spec, .domain = WEFT_DOMAIN_HOST, .n_bytes = p->border_bytes};
    weft_status st = weft__mem_create(&spec, &s->border, err);
    for (int32_t i = 0; i < p->n_segments && !st; i++) {
        const weft__plan_segment *seg = &p->segments[i];
        struct weft__plan_part *part = &s->part[i];
        part->bindings = weft__alloc_zero((size_t)seg->s.n_bound, sizeof *part->bindings);
        if (!part->bindings) return weft_fail(err, WEFT_NO_MEMORY, "no memory to bind %d tensors", seg->s.n_bound);
        for (int32_t j = 0; j < seg->s.n_bound; j++) {
            part->bindings[j].tensor = seg->s.bound[j];
            if (p->output_of[seg->s.bound[j]] != WEFT_NONE) continue;
            part->bindings[j].data = (float *)((uint8_t *)s->border->data + seg->border_at[j]);
        }
        st = seg->provider->api->run_new(seg->program, &part->run, err);
        if (st) weft_fail_within(err, st, "provider %s", seg->provider->api->name);
    }
    return st;
}

weft_status weft__plan_state_new(const weft__plan *p, weft__plan_state **out, weft_error *err)
{
    weft_status st = WEFT_NO_MEMORY;
    *out = NULL;
    weft__plan_state *s = weft__alloc_zero(1, sizeof *s + (size_t)p->n_segments * sizeof s->part[0]);
    if (!s) return weft_fail(err, st, "no memory to run a plan");
    s->plan = p;
    s->adapters = weft__alloc_array((size_t)p->max_rows, sizeof(weft_adapter *));
    if (!s->adapters) weft_fail(err, st, "no memory for steps of %d rows", p->max_rows);
    else st = fill(s, err);
    if (st) weft__plan_state_free(&s);
    *out = s;
    return st;
}

void weft__plan_state_free(weft__plan_state **ps)
{
    weft__plan_state *s = *ps;
    if (!s) return;
    *ps = NULL;
    for (int32_t i = s->plan->n_segments - 1; i >= 0; i--) {
        if (s->part[i].run) s->plan->segments[i].provider->api->run_free(&s->part[i].run);
        weft__free(s->part[i].bindings);
    }
    weft_buffer_release(&s->border);
    weft__free(s->adapters);
    weft__free(s);
}

/* Points the segments at this step's outputs. */
static weft_status bind_outputs(weft__plan_state *s, const weft_rows *rows, float *const *outputs, weft_error *err)
{
    const weft__plan *p = s->plan;
    for (int32_t i = 0; i < p->graph->n_outputs; i++) {
        const weft_tensor *t = &p->graph->tensors[p->graph->outputs[i]];
        int empty = t->shape.d[1] == WEFT_WANTED && rows->n_wanted == 0;
        if (!empty && (!outputs || !outputs[i]))
            return weft_fail(err, WEFT_ARGUMENT, "no memory was given for output %s", t->name);
    }
    for (int32_t i = 0; i < p->n_segments; i++) {
        for (int32_t j = 0; j < p->segments[i].s.n_bound; j++) {
            int32_t k = p->output_of[s->part[i].bindings[j].tensor];
            if (k != WEFT_NONE) s->part[i].bindings[j].data = outputs ? outputs[k] : NULL;
        }
    }
    return WEFT_OK;
}

/* The first provider of keys and values that takes pages of one type alone, or NULL. */
static const weft_backend_api *takes_one_pool(const weft__plan *p)
{
    for (int32_t i = 0; i < p->n_segments; i++) {
        const weft_backend_api *api = p->segments[i].provider->api;
        if (p->segments[i].has_pages && !(api->features & WEFT_FEATURE_POOLS)) return api;
    }
    return NULL;
}

int weft__plan_takes_pools(const weft__plan *p)
{
    return !takes_one_pool(p);
}

static weft_status check_pools(const weft__plan *p, const weft_rows *rows, weft_error *err)
{
    const weft_backend_api *api = rows->pool ? takes_one_pool(p) : NULL;
    if (!api) return WEFT_OK;
    return weft_fail(err, WEFT_UNSUPPORTED, "provider %s takes keys and values of one type in a step", api->name);
}

/* Has the segment one of those nodes? */
static int has_node(const weft__plan_segment *seg, int32_t first, int32_t n)
{
    for (int32_t i = 0; i < seg->s.n_nodes; i++)
        if (seg->s.nodes[i] >= first && seg->s.nodes[i] - first < n) return 1;
    return 0;
}

static weft_status run_segments(weft__plan_state *s, const weft_rows *rows, const weft_kv_binding *kv,
                                int32_t first_node, int32_t n_nodes, weft_error *err)
{
    const weft__plan *p = s->plan;
    const int32_t n_pools = rows->pool ? rows->n_pools : 1;
    weft_status st = WEFT_OK;
    for (int32_t i = 0; i < p->n_segments && !st; i++) {
        const weft__plan_segment *seg = &p->segments[i];
        if (n_nodes && !has_node(seg, first_node, n_nodes)) continue;
        weft_bindings b = {.size = sizeof b,
                           .n_kv = n_pools * p->graph->n_kv_groups,
                           .n_tensors = seg->s.n_bound,
                           .kv = kv,
                           .tensors = s->part[i].bindings};
        weft_rows own;
        weft__plan_segment_rows(s, i, rows, &own);
        weft_step step = {.size = sizeof step,
                          .rows = &own,
                          .bindings = &b,
                          .profile = s->log,
                          .first_node = first_node,
                          .n_nodes = n_nodes};
        st = seg->provider->api->run(s->part[i].run, &step, err);
    }
    return st;
}

weft_status weft__plan_run(weft__plan_state *s, const weft_rows *rows, const weft_kv_binding *kv, float *const *outputs,
                           weft_error *err)
{
    weft_status st = check_pools(s->plan, rows, err);
    if (!st) st = weft__plan_check_adapters(s->plan, rows, err);
    if (!st) st = bind_outputs(s, rows, outputs, err);
    return st ? st : run_segments(s, rows, kv, 0, 0, err);
}

weft_status weft__plan_run_nodes(weft__plan_state *s, const weft_rows *rows, const weft_kv_binding *kv,
                                 float *const *outputs, int32_t first_node, int32_t n_nodes, weft_error *err)
{
    const weft__plan *p = s->plan;
    for (int32_t i = 0; i < p->n_segments; i++) {
        const weft_backend_api *api = p->segments[i].provider->api;
        if (has_node(&p->segments[i], first_node, n_nodes) && !(api->features & WEFT_FEATURE_NODES))
            return weft_fail(err, WEFT_UNSUPPORTED, "provider %s runs whole steps only", api->name);
    }
    weft_status st = bind_outputs(s, rows, outputs, err);
    return st ? st : run_segments(s, rows, kv, first_node, n_nodes, err);
}
