// SPDX-License-Identifier: Apache-2.0
/* plan.c: from a graph to programs. A plan is built by one thread and constant from then on; run.c runs it. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "graph/plan.h"

/* What is asked whether a fused node is wanted: the provider on which its parts were placed. */
typedef struct fuse_ask {
    weft__provider *const *providers;
    const int32_t *tensor_place; /* [n_tensors] */
} fuse_ask;

static int ask_provider(void *arg, const weft_graph *graph, const weft_node *node)
{
    const fuse_ask *a = arg;
    const weft__provider *p = a->providers[a->tensor_place[node->out[0]]];
    return p->api->supports(p->backend, graph, node);
}

/* Provider of each tensor's maker, WEFT_NONE where there is none. */
static void place_tensors(const weft_graph *g, const int32_t *place, int32_t *tensor_place)
{
    for (int32_t t = 0; t < g->n_tensors; t++) tensor_place[t] = WEFT_NONE;
    for (int32_t i = 0; i < g->n_nodes; i++)
        for (int32_t j = 0; j < g->nodes[i].n_out; j++) tensor_place[g->nodes[i].out[j]] = place[i];
}

/* Fuses `graph` into p->graph, places and orders it. */
static weft_status plan_prepare(weft__plan *p, const weft_graph *graph, const weft__plan_options *o, weft_error *err)
{
    size_t n = (size_t)graph->n_nodes;
    weft_status st = WEFT_NO_MEMORY;
    int32_t *place = weft__alloc_array(n, sizeof *place), *order = weft__alloc_array(n, sizeof *order);
    int32_t *tensor_place = weft__alloc_array((size_t)graph->n_tensors, sizeof *tensor_place);
    p->place = weft__alloc_array(n, sizeof *p->place);
    p->output_of = weft__alloc_array((size_t)graph->n_tensors, sizeof *p->output_of);
    if (!place || !order || !tensor_place || !p->place || !p->output_of) {
        weft_fail(err, st, "no memory to plan a graph of %zu nodes", n);
        goto done;
    }
    if ((st = weft__plan_place(graph, o->providers, o->n_providers, place, err))) goto done;
    place_tensors(graph, place, tensor_place);
    fuse_ask ask = {o->providers, tensor_place};
    if (!o->no_fusion) {
        if ((st = weft__graph_fuse(graph, place, ask_provider, &ask, &p->graph, err))) goto done;
    } else if (!(p->graph = weft__graph_copy(graph))) {
        st = weft_fail(err, WEFT_NO_MEMORY, "no memory to plan a graph of %zu nodes", n);
        goto done;
    }
    for (int32_t i = 0; i < p->graph->n_nodes; i++) p->place[i] = tensor_place[p->graph->nodes[i].out[0]];
    if ((st = weft__graph_order(p->graph, p->place, order, err))) goto done;
    if ((st = weft__graph_permute(p->graph, order, p->place, err))) goto done;
    if ((st = weft__graph_mark_wanted(p->graph, err))) goto done;
    for (int32_t t = 0; t < p->graph->n_tensors; t++) p->output_of[t] = WEFT_NONE;
    for (int32_t i = 0; i < p->graph->n_outputs; i++) p->output_of[p->graph->outputs[i]] = i;
done:
    weft__free(tensor_place);
    weft__free(order);
    weft__free(place);
    return st;
}

/* Passes a segment's progress on as a share of the whole. */
typedef struct share {
    const weft__plan_options *o;
    int32_t index, n;
} share;

static int pass_on(void *arg, const char *what, double fraction)
{
    const share *s = arg;
    return s->o->progress(s->o->progress_arg, what, (s->index + fraction) / s->n);
}

/* Packed weights are one provider's, and it must know them. */
static weft_status check_image(const weft__plan *p, weft_error *err)
{
    for (int32_t i = 0; i < p->n_segments; i++) {
        const weft_backend_api *api = p->segments[i].provider->api;
        if (!api->image) return weft_fail(err, WEFT_UNSUPPORTED, "provider %s knows no packed weights", api->name);
    }
    if (p->n_segments == 1) return WEFT_OK;
    return weft_fail(err, WEFT_UNSUPPORTED, "the model is divided into %d segments; packed weights are those of one",
                     p->n_segments);
}

weft_status weft__plan_image(const weft__plan *p, weft_image *out, const char **provider, weft_error *err)
{
    weft_status st = check_image(p, err);
    if (st) return st;
    const weft_backend_api *api = p->segments[0].provider->api;
    *provider = api->name;
    *out = (weft_image){.size = sizeof *out};
    st = api->image(p->segments[0].program, out, err);
    return st ? weft_fail_within(err, st, "provider %s", api->name) : WEFT_OK;
}

static weft_status compile(weft__plan *p, const weft__plan_options *o, weft_error *err)
{
    weft_status checked = o->image ? check_image(p, err) : WEFT_OK;
    if (checked) return checked;
    for (int32_t i = 0; i < p->n_segments; i++) {
        weft__plan_segment *seg = &p->segments[i];
        share s = {o, i, p->n_segments};
        weft_compile_options options = {
            .size = sizeof options, .progress = o->progress ? pass_on : NULL, .progress_arg = &s, .image = o->image};
        const weft_backend_api *api = seg->provider->api;
        if (o->outline && !(api->features & WEFT_FEATURE_OUTLINE))
            return weft_fail(err, WEFT_UNSUPPORTED, "provider %s packs what it compiles: it gives no outline",
                             api->name);
        if (o->outline) options.flags |= WEFT_COMPILE_OUTLINE;
        weft_status st = api->compile(seg->provider->backend, p->graph, &seg->s, &options, &seg->program, err);
        if (st) return weft_fail_within(err, st, "provider %s", api->name);
    }
    return WEFT_OK;
}

weft_status weft__plan_create(const weft_graph *graph, const weft__plan_options *o, weft__plan **out, weft_error *err)
{
    weft_status st;
    *out = NULL;
    if (o->n_providers < 1 || o->max_rows < 1 || o->max_wanted < 0)
        return weft_fail(err, WEFT_ARGUMENT, "a plan for %d rows, %d of them with logits, on %d providers", o->max_rows,
                         o->max_wanted, o->n_providers);
    weft__plan *p = weft__alloc_zero(1, sizeof *p);
    if (!p) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a plan");
    p->max_rows = o->max_rows;
    p->max_wanted = o->max_wanted;
    p->n_nodes_before = graph->n_nodes;
    p->providers = o->providers;
    if ((st = plan_prepare(p, graph, o, err)) || (st = weft__plan_cut(p, err)) || (st = compile(p, o, err))) {
        weft__plan_destroy(&p);
        return st;
    }
    p->providers = NULL; /* the caller's list; the providers themselves stay */
    *out = p;
    return WEFT_OK;
}

void weft__plan_destroy(weft__plan **pp)
{
    weft__plan *p = *pp;
    if (!p) return;
    *pp = NULL;
    for (int32_t i = p->n_segments - 1; i >= 0; i--) {
        weft__plan_segment *seg = &p->segments[i];
        if (seg->program) seg->provider->api->program_free(&seg->program);
        weft__free((void *)seg->s.arena_offset);
        weft__free(seg->border_at);
        weft__free((void *)seg->s.bound);
        weft__free((void *)seg->s.nodes);
    }
    weft__free(p->segments);
    weft__free(p->output_of);
    weft__free(p->place);
    weft__graph_destroy(&p->graph);
    weft__free(p);
}

uint64_t weft__plan_scratch(const weft__plan *p)
{
    uint64_t n = p->border_bytes;
    for (int32_t i = 0; i < p->n_segments; i++) n += p->segments[i].s.arena_bytes;
    return n;
}

weft_status weft__plan_bytes(const weft__plan *p, weft_program_bytes *out, weft_error *err)
{
    *out = (weft_program_bytes){.size = sizeof *out, .run = p->border_bytes};
    for (int32_t i = 0; i < p->n_segments; i++) {
        const weft_backend_api *api = p->segments[i].provider->api;
        weft_program_bytes one = {.size = sizeof one};
        if (!api->program_bytes)
            return weft_fail(err, WEFT_UNSUPPORTED, "provider %s does not tell how much memory it takes", api->name);
        weft_status st = api->program_bytes(p->segments[i].program, &one, err);
        if (st) return weft_fail_within(err, st, "provider %s", api->name);
        out->packed += one.packed;
        out->own += one.own;
        out->run += one.run;
    }
    return WEFT_OK;
}

const weft_graph *weft__plan_graph(const weft__plan *p)
{
    return p->graph;
}
