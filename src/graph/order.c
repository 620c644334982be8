// SPDX-License-Identifier: Apache-2.0
/* order.c: an executable order of a graph's nodes. Reentrant; no state. */
#include <string.h>

#include "base/alloc.h"
#include "graph/internal.h"

/* What the sort works on. `users` of tensor t are user[first[t] .. first[t + 1]), one entry per use. */
typedef struct sorter {
    const weft_graph *g;
    const int32_t *place;
    int32_t *producer, *first, *user, *n_missing;
    uint8_t *state; /* of a node: 0 waits, 1 ready, 2 done */
} sorter;

enum { WAITS, READY, DONE };

static void sorter_free(sorter *s)
{
    weft__free(s->state);
    weft__free(s->n_missing);
    weft__free(s->user);
    weft__free(s->first);
    weft__free(s->producer);
}

static weft_status sorter_init(sorter *s, const weft_graph *g, const int32_t *place, weft_error *err)
{
    size_t n = (size_t)g->n_nodes, n_tensors = (size_t)g->n_tensors;
    *s = (sorter){.g = g, .place = place};
    s->producer = weft__alloc_array(n_tensors, sizeof *s->producer);
    s->first = weft__alloc_zero(n_tensors + 2, sizeof *s->first);
    s->user = weft__alloc_array(n * WEFT_NODE_IN, sizeof *s->user);
    s->n_missing = weft__alloc_zero(n, sizeof *s->n_missing);
    s->state = weft__alloc_zero(n, 1);
    if (!s->producer || !s->first || !s->user || !s->n_missing || !s->state) {
        sorter_free(s);
        return weft_fail(err, WEFT_NO_MEMORY, "no memory to order %d nodes", g->n_nodes);
    }
    weft_status st = weft__graph_producers(g, s->producer, err);
    if (st) {
        sorter_free(s);
        return st;
    }
    /* Count uses at first[t + 2], sum up, then fill: first[t + 1] moves from the start of t's users to their end. */
    for (int32_t i = 0; i < g->n_nodes; i++)
        for (int32_t j = 0; j < g->nodes[i].n_in; j++) s->first[g->nodes[i].in[j] + 2]++;
    for (size_t t = 2; t < n_tensors + 2; t++) s->first[t] += s->first[t - 1];
    for (int32_t i = 0; i < g->n_nodes; i++) {
        for (int32_t j = 0; j < g->nodes[i].n_in; j++) s->user[s->first[g->nodes[i].in[j] + 1]++] = i;
        s->n_missing[i] = g->nodes[i].n_in;
        s->state[i] = s->n_missing[i] ? WAITS : READY;
    }
    return WEFT_OK;
}

/* The ready node to take next, from `from` on, or WEFT_NONE. */
static int32_t next_ready(const sorter *s, int32_t from, int32_t place)
{
    int32_t any = WEFT_NONE;
    for (int32_t i = from; i < s->g->n_nodes; i++) {
        if (s->state[i] != READY) continue;
        if (!s->place || place == WEFT_NONE || s->place[i] == place) return i;
        if (any == WEFT_NONE) any = i;
    }
    return any;
}

static void finish_node(sorter *s, int32_t i)
{
    s->state[i] = DONE;
    for (int32_t j = 0; j < s->g->nodes[i].n_out; j++) {
        weft_tensor_id t = s->g->nodes[i].out[j];
        for (int32_t u = s->first[t]; u < s->first[t + 1]; u++) {
            if (--s->n_missing[s->user[u]] == 0) s->state[s->user[u]] = READY;
        }
    }
}

/* Nodes are left and none is ready. From any of them, going backwards along inputs that are missing never ends, so
 * after n_nodes steps we stand on a cycle. */
static weft_status cycle_error(const sorter *s, weft_error *err)
{
    const weft_graph *g = s->g;
    char name[WEFT__GRAPH_NODE_NAME];
    int32_t at = 0, through = WEFT_NONE;
    while (s->state[at] == DONE) at++;
    for (int32_t step = 0; step < g->n_nodes; step++) {
        for (int32_t j = 0; j < g->nodes[at].n_in; j++) {
            int32_t from = s->producer[g->nodes[at].in[j]];
            if (s->state[from] == DONE) continue;
            through = g->nodes[at].in[j];
            at = from;
            break;
        }
    }
    return weft_fail(err, WEFT_ARGUMENT, "%s is part of a cycle: it makes %s, on which it depends",
                     weft__graph_node_name(g, at, name), g->tensors[through].name);
}

weft_status weft__graph_order(const weft_graph *g, const int32_t *place, int32_t *order, weft_error *err)
{
    sorter s;
    weft_status st = sorter_init(&s, g, place, err);
    if (st) return st;
    int32_t low = 0, last = WEFT_NONE;
    for (int32_t n = 0; n < g->n_nodes; n++) {
        while (s.state[low] == DONE) low++;
        int32_t i = next_ready(&s, low, last);
        if (i == WEFT_NONE) {
            st = cycle_error(&s, err);
            break;
        }
        finish_node(&s, i);
        if (place) last = place[i];
        order[n] = i;
    }
    sorter_free(&s);
    return st;
}

weft_status weft__graph_permute(weft_graph *g, const int32_t *order, int32_t *place, weft_error *err)
{
    size_t n = (size_t)g->n_nodes;
    weft_node *nodes = weft__alloc_array(n, sizeof *nodes);
    int32_t *places = weft__alloc_array(n, sizeof *places);
    if (!nodes || !places) {
        weft__free(places);
        weft__free(nodes);
        return weft_fail(err, WEFT_NO_MEMORY, "no memory to order %d nodes", g->n_nodes);
    }
    for (size_t i = 0; i < n; i++) {
        nodes[i] = g->nodes[order[i]];
        if (place) places[i] = place[order[i]];
    }
    if (place && n) memcpy(place, places, n * sizeof *places);
    weft__free(places);
    weft__free((void *)g->nodes);
    g->nodes = nodes;
    return WEFT_OK;
}
