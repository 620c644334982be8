// SPDX-License-Identifier: Apache-2.0
/* place.c: which provider runs a node, where one segment ends and the next begins, and where their tensors lie.
 * Reentrant; no state. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/plan.h"

/* The types of the node's weights, each once: "Q4_0, F32". */
static void weight_types(const weft_graph *g, const weft_node *n, char *out, size_t size)
{
    uint64_t seen = 0;
    size_t at = 0;
    out[0] = 0;
    for (int32_t i = 0; i < n->n_w && at < size; i++) {
        uint32_t dtype = n->w[i] == WEFT_NONE ? 0 : g->weights[n->w[i]].dtype;
        if (n->w[i] == WEFT_NONE || (dtype < 64 && seen >> dtype & 1)) continue;
        if (dtype < 64) seen |= 1ull << dtype;
        at += (size_t)snprintf(out + at, size - at, "%s%s", at ? ", " : "", weft_dtype_describe(dtype).name);
    }
}

static weft_status no_provider(const weft_graph *g, int32_t i, weft__provider *const *providers, int n_providers,
                               weft_error *err)
{
    char name[WEFT__GRAPH_NODE_NAME], list[128] = "", types[128];
    size_t at = 0;
    for (int p = 0; p < n_providers && at + 20 < sizeof list; p++) {
        size_t n = strnlen(providers[p]->api->name, 16);
        if (p) list[at++] = ' ';
        memcpy(list + at, providers[p]->api->name, n);
        at += n;
        list[at] = 0;
    }
    weight_types(g, &g->nodes[i], types, sizeof types);
    return weft_fail(err, WEFT_UNSUPPORTED, "%s: no provider can run it%s%s (asked: %s)",
                     weft__graph_node_name(g, i, name), types[0] ? " with weights of type " : "", types, list);
}

weft_status weft__plan_place(const weft_graph *graph, weft__provider *const *providers, int n_providers, int32_t *place,
                             weft_error *err)
{
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        int best = 0;
        for (int p = 0; p < n_providers; p++) {
            int rank = providers[p]->api->supports(providers[p]->backend, graph, &graph->nodes[i]);
            if (rank <= best) continue;
            best = rank;
            place[i] = p;
        }
        if (best == 0) return no_provider(graph, i, providers, n_providers, err);
    }
    return WEFT_OK;
}

uint64_t weft__plan_tensor_bytes(const weft__plan *p, weft_tensor_id t)
{
    const weft_shape *s = &p->graph->tensors[t].shape;
    return (uint64_t)s->d[0] * (uint64_t)(s->d[1] == WEFT_WANTED ? p->max_wanted : p->max_rows) * sizeof(float);
}

/* What the cutting works on, [n_tensors] each: lives in node positions and in segments. */
typedef struct lives {
    weft__graph_lifetime *node, *segment;
    int32_t *list; /* scratch: tensors of one segment */
    weft__graph_lifetime *items;
} lives;

static void lives_free(lives *l)
{
    weft__free(l->items);
    weft__free(l->list);
    weft__free(l->segment);
    weft__free(l->node);
}

static void touch(weft__graph_lifetime *l, int32_t at)
{
    if (l->begin < 0 || at < l->begin) l->begin = at;
    if (at > l->end) l->end = at;
}

static void touch_node(lives *l, const weft_node *n, int32_t position, int32_t segment)
{
    for (int j = 0; j < n->n_in + n->n_out; j++) {
        weft_tensor_id t = j < n->n_in ? n->in[j] : n->out[j - n->n_in];
        touch(&l->node[t], position);
        touch(&l->segment[t], segment);
    }
}

static weft_status lives_init(lives *l, const weft__plan *p, weft_error *err)
{
    size_t n = (size_t)p->graph->n_tensors;
    *l = (lives){weft__alloc_array(n, sizeof *l->node), weft__alloc_array(n, sizeof *l->segment),
                 weft__alloc_array(n, sizeof *l->list), weft__alloc_array(n, sizeof *l->items)};
    if (!l->node || !l->segment || !l->list || !l->items) {
        lives_free(l);
        return weft_fail(err, WEFT_NO_MEMORY, "no memory to plan %zu tensors", n);
    }
    for (size_t t = 0; t < n; t++) l->node[t] = l->segment[t] = (weft__graph_lifetime){-1, -1, 0, 0};
    int32_t segment = -1;
    for (int32_t i = 0; i < p->graph->n_nodes; i++) {
        if (i == 0 || p->place[i] != p->place[i - 1]) segment++;
        touch_node(l, &p->graph->nodes[i], i, segment);
    }
    return WEFT_OK;
}

static int is_bound(const weft__plan *p, const lives *l, weft_tensor_id t)
{
    return p->output_of[t] != WEFT_NONE || l->segment[t].begin != l->segment[t].end;
}

/* Tensors with data that segment `index` touches and that are bound (or not): l->list; their count. */
static int32_t list_tensors(const weft__plan *p, lives *l, int32_t index, int bound)
{
    int32_t n = 0;
    for (weft_tensor_id t = 0; t < p->graph->n_tensors; t++) {
        const weft__graph_lifetime *s = &l->segment[t];
        if (s->begin < 0 || s->begin > index || s->end < index || weft__plan_tensor_bytes(p, t) == 0) continue;
        if (is_bound(p, l, t) == bound) l->list[n++] = t;
    }
    return n;
}

/* Does some node of segment s touch tensor t? A tensor may pass by a segment that lies between its maker and its
 * user. */
static int touches(const weft__plan *p, const weft_segment *s, weft_tensor_id t)
{
    for (int32_t i = 0; i < s->n_nodes; i++) {
        const weft_node *n = &p->graph->nodes[s->nodes[i]];
        for (int j = 0; j < n->n_in; j++)
            if (n->in[j] == t) return 1;
        for (int j = 0; j < n->n_out; j++)
            if (n->out[j] == t) return 1;
    }
    return 0;
}

static weft_status plan_bound(weft__plan *p, lives *l, int32_t index, weft_error *err)
{
    weft__plan_segment *seg = &p->segments[index];
    int32_t n = list_tensors(p, l, index, 1), n_bound = 0;
    weft_tensor_id *bound = weft__alloc_array((size_t)n, sizeof *bound);
    seg->s.bound = bound;
    seg->border_at = weft__alloc_zero((size_t)n, sizeof *seg->border_at);
    if (!bound || !seg->border_at) return weft_fail(err, WEFT_NO_MEMORY, "no memory for the %d tensors of a border", n);
    for (int32_t i = 0; i < n; i++) {
        if (!touches(p, &seg->s, l->list[i])) continue;
        bound[n_bound++] = l->list[i];
    }
    seg->s.n_bound = n_bound;
    return WEFT_OK;
}

static weft_status plan_arena(weft__plan *p, lives *l, int32_t index, weft_error *err)
{
    weft__plan_segment *seg = &p->segments[index];
    uint64_t *offset = weft__alloc_array((size_t)p->graph->n_tensors, sizeof *offset);
    if (!offset) return weft_fail(err, WEFT_NO_MEMORY, "no memory to plan %d tensors", p->graph->n_tensors);
    seg->s.arena_offset = offset;
    for (int32_t t = 0; t < p->graph->n_tensors; t++) offset[t] = UINT64_MAX;
    int32_t n = list_tensors(p, l, index, 0);
    for (int32_t i = 0; i < n; i++) {
        weft_tensor_id t = l->list[i];
        l->items[i] = (weft__graph_lifetime){l->node[t].begin, l->node[t].end, weft__plan_tensor_bytes(p, t), 0};
    }
    weft_status st = weft__graph_plan_memory(l->items, n, &seg->s.arena_bytes, &seg->without_reuse, err);
    for (int32_t i = 0; i < n && !st; i++) offset[l->list[i]] = l->items[i].offset;
    return st;
}

/* Gives every tensor that passes from one segment to another a place in the border. */
static weft_status plan_border(weft__plan *p, lives *l, weft_error *err)
{
    int32_t n = 0;
    uint64_t without_reuse;
    for (weft_tensor_id t = 0; t < p->graph->n_tensors; t++) {
        if (l->segment[t].begin < 0 || !is_bound(p, l, t) || p->output_of[t] != WEFT_NONE) continue;
        l->items[n] = l->segment[t];
        l->items[n].n_bytes = weft__plan_tensor_bytes(p, t);
        l->list[n++] = t;
    }
    weft_status st = weft__graph_plan_memory(l->items, n, &p->border_bytes, &without_reuse, err);
    if (st) return st;
    for (int32_t i = 0; i < n; i++) l->node[l->list[i]].offset = l->items[i].offset;
    for (int32_t i = 0; i < p->n_segments; i++) {
        weft__plan_segment *seg = &p->segments[i];
        for (int32_t j = 0; j < seg->s.n_bound; j++) {
            weft_tensor_id t = seg->s.bound[j];
            if (p->output_of[t] == WEFT_NONE) seg->border_at[j] = l->node[t].offset;
        }
    }
    return WEFT_OK;
}

static int has_pages(const weft_node *n)
{
    return n->op == WEFT_OP_KV_WRITE || n->op == WEFT_OP_ROPE_KV || n->op == WEFT_OP_ATTENTION;
}

/* Fills in provider and nodes of every segment. */
static weft_status cut_nodes(weft__plan *p, weft_error *err)
{
    int32_t n = 0;
    for (int32_t i = 0; i < p->graph->n_nodes; i++) n += i == 0 || p->place[i] != p->place[i - 1];
    p->segments = weft__alloc_zero((size_t)n, sizeof *p->segments);
    if (!p->segments) return weft_fail(err, WEFT_NO_MEMORY, "no memory for %d segments", n);
    for (int32_t i = 0, end; i < p->graph->n_nodes; i = end) {
        for (end = i; end < p->graph->n_nodes && p->place[end] == p->place[i];) end++;
        weft__plan_segment *seg = &p->segments[p->n_segments++];
        int32_t *nodes = weft__alloc_array((size_t)(end - i), sizeof *nodes);
        if (!nodes) return weft_fail(err, WEFT_NO_MEMORY, "no memory for %d segments", n);
        for (int32_t j = i; j < end; j++) {
            nodes[j - i] = j;
            seg->has_pages |= has_pages(&p->graph->nodes[j]);
        }
        seg->provider = p->providers[p->place[i]];
        seg->s = (weft_segment){.size = sizeof seg->s,
                                .n_nodes = end - i,
                                .nodes = nodes,
                                .max_rows = p->max_rows,
                                .max_wanted = p->max_wanted};
    }
    return WEFT_OK;
}

weft_status weft__plan_cut(weft__plan *p, weft_error *err)
{
    lives l;
    weft_status st = cut_nodes(p, err);
    if (st || (st = lives_init(&l, p, err))) return st;
    for (int32_t i = 0; i < p->n_segments && !st; i++) {
        if (!(st = plan_bound(p, &l, i, err))) st = plan_arena(p, &l, i, err);
    }
    if (!st) st = plan_border(p, &l, err);
    lives_free(&l);
    return st;
}
