// SPDX-License-Identifier: Apache-2.0
/* plan_adapter.c: adapters of a plan: one packed part for every segment that has weights which they change.
 * Invariant: a part is its provider's, and NULL where the adapter changes nothing. Owner: its creator; a step only
 * reads. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/plan.h"

/* What stands behind the weft_adapter of a plan. */
typedef struct weft__plan_adapter {
    const weft__plan *plan;
    uint64_t n_bytes;
    int32_t n_parts; /* segments */
    struct {
        const weft_backend_api *api;
        weft_adapter *adapter; /* or NULL */
    } part[];
} weft__plan_adapter;

/* The places in which a node has weights that an adapter may change. */
static int n_changeable(const weft_node *n)
{
    return n->op == WEFT_OP_LINEAR || n->op == WEFT_OP_MOE_FFN ? n->n_w : n->op == WEFT_OP_EMBED ? 1 : 0;
}

static int changes(const weft_lora *l)
{
    return l->rank != 0 || l->gain;
}

static weft_status check_entry(const weft_weight *w, const weft_lora *l, weft_error *err)
{
    if (l->rank < 0 || l->rank > WEFT_ADAPTER_RANK_MAX)
        return weft_fail(err, WEFT_ARGUMENT, "an adapter of rank %d for %s; 1 to %d are possible", l->rank, w->name,
                         WEFT_ADAPTER_RANK_MAX);
    if (l->rank && (!l->a || !l->b || l->dtype != WEFT_F32 || !isfinite(l->scale)))
        return weft_fail(err, WEFT_ARGUMENT,
                         "an adapter for %s whose A or B is absent or not F32, or whose scale is not a number",
                         w->name);
    return WEFT_OK;
}

enum { LOOKED_UP = 1, MULTIPLIED = 2 };

/* How nodes read the weight as a matrix. */
static int uses_of(const weft_graph *g, weft_weight_id w)
{
    int used = 0;
    for (int32_t i = 0; i < g->n_nodes; i++)
        for (int j = 0; j < n_changeable(&g->nodes[i]); j++)
            if (g->nodes[i].w[j] == w) used |= g->nodes[i].op == WEFT_OP_EMBED ? LOOKED_UP : MULTIPLIED;
    return used;
}

/* Every entry is well-formed and changes a weight that the graph uses as a matrix. */
static weft_status check_spec(const weft_graph *g, const weft_adapter_spec *spec, weft_error *err)
{
    if (spec->size < sizeof *spec || spec->n_weights != g->n_weights || !spec->lora)
        return weft_fail(err, WEFT_ARGUMENT, "an adapter for %d weights; the graph has %d", spec->n_weights,
                         g->n_weights);
    for (weft_weight_id w = 0; w < g->n_weights; w++) {
        if (!changes(&spec->lora[w])) continue;
        weft_status st = check_entry(&g->weights[w], &spec->lora[w], err);
        const int used = uses_of(g, w);
        if (!st && spec->lora[w].gain && used == (LOOKED_UP | MULTIPLIED))
            st = weft_fail(err, WEFT_ARGUMENT,
                           "an adapter with magnitudes for %s, which is an embedding and multiplied by, too",
                           g->weights[w].name);
        if (!st && !used)
            st = weft_fail(err, WEFT_ARGUMENT, "an adapter changes %s, which is neither multiplied by nor an embedding",
                           g->weights[w].name);
        if (st) return st;
    }
    return WEFT_OK;
}

static int touches(const weft__plan *p, const weft__plan_segment *seg, const weft_adapter_spec *spec)
{
    for (int32_t i = 0; i < seg->s.n_nodes; i++) {
        const weft_node *n = &p->graph->nodes[seg->s.nodes[i]];
        for (int j = 0; j < n_changeable(n); j++)
            if (n->w[j] != WEFT_NONE && changes(&spec->lora[n->w[j]])) return 1;
    }
    return 0;
}

weft_status weft__plan_adapter_new(const weft__plan *p, const weft_adapter_spec *spec, weft_adapter **out,
                                   weft_error *err)
{
    *out = NULL;
    weft_status st = check_spec(p->graph, spec, err);
    if (st) return st;
    weft__plan_adapter *a = weft__alloc_zero(1, sizeof *a + (size_t)p->n_segments * sizeof a->part[0]);
    if (!a) return weft_fail(err, WEFT_NO_MEMORY, "no memory for an adapter");
    weft_adapter *handle = (weft_adapter *)a;
    a->plan = p;
    a->n_parts = p->n_segments;
    a->n_bytes = sizeof *a;
    for (int32_t i = 0; i < p->n_segments && !st; i++) {
        const weft__plan_segment *seg = &p->segments[i];
        const weft_backend_api *api = seg->provider->api;
        a->part[i].api = api;
        if (!touches(p, seg, spec)) continue;
        if (!api->adapter_new || !api->adapter_free || !api->adapter_bytes) {
            st =
                weft_fail(err, WEFT_UNSUPPORTED,
                          "provider %s runs no adapters, and this one changes weights that it has; run them on the cpu",
                          api->name);
            continue;
        }
        st = api->adapter_new(seg->program, spec, &a->part[i].adapter, err);
        if (st) st = weft_fail_within(err, st, "provider %s", api->name);
        else a->n_bytes += api->adapter_bytes(a->part[i].adapter);
    }
    if (st) weft__plan_adapter_free(&handle);
    *out = handle;
    return st;
}

void weft__plan_adapter_free(weft_adapter **adapter)
{
    weft__plan_adapter *a = (weft__plan_adapter *)*adapter;
    *adapter = NULL;
    if (!a) return;
    for (int32_t i = a->n_parts - 1; i >= 0; i--)
        if (a->part[i].adapter) a->part[i].api->adapter_free(&a->part[i].adapter);
    weft__free(a);
}

uint64_t weft__plan_adapter_bytes(const weft_adapter *adapter)
{
    return ((const weft__plan_adapter *)adapter)->n_bytes;
}

/* ---- in a step ---- */

weft_status weft__plan_check_adapters(const weft__plan *p, const weft_rows *rows, weft_error *err)
{
    if (!rows->adapter) return WEFT_OK;
    if (rows->n_adapters < 0 || rows->n_adapters > p->max_rows || (rows->n_adapters && !rows->adapters))
        return weft_fail(err, WEFT_ARGUMENT, "a step with %d adapters; the plan is for %d rows", rows->n_adapters,
                         p->max_rows);
    for (int32_t i = 0; i < rows->n_adapters; i++) {
        const weft__plan_adapter *a = (const weft__plan_adapter *)rows->adapters[i];
        if (a && a->plan != p)
            return weft_fail(err, WEFT_ARGUMENT, "adapter %d of the step was made for another plan", i);
    }
    for (int32_t r = 0; rows->n_rows <= p->max_rows && r < rows->n_rows; r++) /* more are the provider's to refuse */
        if (rows->adapter[r] < WEFT_NONE || rows->adapter[r] >= rows->n_adapters)
            return weft_fail(err, WEFT_ARGUMENT, "row %d asks for adapter %d; the step has %d", r, rows->adapter[r],
                             rows->n_adapters);
    return WEFT_OK;
}

void weft__plan_segment_rows(const weft__plan_state *s, int32_t segment, const weft_rows *rows, weft_rows *out)
{
    int any = 0;
    *out = *rows;
    for (int32_t i = 0; rows->adapter && i < rows->n_adapters; i++) {
        const weft__plan_adapter *a = (const weft__plan_adapter *)rows->adapters[i];
        s->adapters[i] = a ? a->part[segment].adapter : NULL;
        any |= s->adapters[i] != NULL;
    }
    out->adapters = any ? s->adapters : NULL;
    if (any) return;
    out->adapter = NULL;
    out->n_adapters = 0;
}
