// SPDX-License-Identifier: Apache-2.0
/* graph.c: a graph as a value: names, copying, producers, release. Reentrant; no state. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/internal.h"

static const char *const op_names[WEFT_OP_COUNT] = {
#define OP_NAME(name, value, text) [value] = text,
    WEFT_OP_LIST(OP_NAME)
#undef OP_NAME
};

const char *weft_op_name(uint32_t op)
{
    return op < WEFT_OP_COUNT && op_names[op] ? op_names[op] : "?";
}

const char *weft__graph_node_name(const weft_graph *g, int32_t i, char out[WEFT__GRAPH_NODE_NAME])
{
    const weft_node *n = &g->nodes[i];
    const char *tensor = "";
    if (n->n_out > 0 && n->n_out <= WEFT_NODE_OUT && n->out[0] >= 0 && n->out[0] < g->n_tensors)
        tensor = g->tensors[n->out[0]].name;
    snprintf(out, WEFT__GRAPH_NODE_NAME, "node %d (%s%s%.63s)", i, weft_op_name(n->op), *tensor ? " " : "", tensor);
    return out;
}

/* n items of `size` bytes copied; a unique pointer when n is 0. */
static void *copy_array(const void *items, int32_t n, size_t size)
{
    void *copy = weft__alloc_array((size_t)n, size);
    if (copy && n > 0) memcpy(copy, items, (size_t)n * size);
    return copy;
}

weft_graph *weft__graph_copy(const weft_graph *g)
{
    weft_graph *copy = weft__alloc_zero(1, sizeof *copy);
    if (!copy) return NULL;
    *copy = *g;
    copy->size = sizeof *copy;
    copy->nodes = copy_array(g->nodes, g->n_nodes, sizeof *g->nodes);
    copy->tensors = copy_array(g->tensors, g->n_tensors, sizeof *g->tensors);
    copy->weights = copy_array(g->weights, g->n_weights, sizeof *g->weights);
    copy->kv_groups = copy_array(g->kv_groups, g->n_kv_groups, sizeof *g->kv_groups);
    copy->outputs = copy_array(g->outputs, g->n_outputs, sizeof *g->outputs);
    if (!copy->nodes || !copy->tensors || !copy->weights || !copy->kv_groups || !copy->outputs)
        weft__graph_destroy(&copy);
    return copy;
}

void weft__graph_destroy(weft_graph **pg)
{
    weft_graph *g = *pg;
    if (!g) return;
    *pg = NULL;
    weft__free((void *)g->outputs);
    weft__free((void *)g->kv_groups);
    weft__free((void *)g->weights);
    weft__free((void *)g->tensors);
    weft__free((void *)g->nodes);
    weft__free(g);
}

static weft_status check_defined(const weft_graph *g, const int32_t *producer, weft_error *err)
{
    char name[WEFT__GRAPH_NODE_NAME];
    for (int32_t i = 0; i < g->n_nodes; i++) {
        for (int32_t j = 0; j < g->nodes[i].n_in; j++) {
            weft_tensor_id t = g->nodes[i].in[j];
            if (producer[t] != WEFT_NONE) continue;
            return weft_fail(err, WEFT_ARGUMENT, "%s: its input %s is made by no node",
                             weft__graph_node_name(g, i, name), g->tensors[t].name);
        }
    }
    for (int32_t i = 0; i < g->n_outputs; i++) {
        weft_tensor_id t = g->outputs[i];
        if (producer[t] == WEFT_NONE)
            return weft_fail(err, WEFT_ARGUMENT, "output %d, %s, is made by no node", i, g->tensors[t].name);
    }
    return WEFT_OK;
}

weft_status weft__graph_producers(const weft_graph *g, int32_t *producer, weft_error *err)
{
    char a[WEFT__GRAPH_NODE_NAME], b[WEFT__GRAPH_NODE_NAME];
    for (int32_t t = 0; t < g->n_tensors; t++) producer[t] = WEFT_NONE;
    for (int32_t i = 0; i < g->n_nodes; i++) {
        for (int32_t j = 0; j < g->nodes[i].n_out; j++) {
            weft_tensor_id t = g->nodes[i].out[j];
            if (producer[t] != WEFT_NONE)
                return weft_fail(err, WEFT_ARGUMENT, "tensor %s is made twice: by %s and %s", g->tensors[t].name,
                                 weft__graph_node_name(g, producer[t], a), weft__graph_node_name(g, i, b));
            producer[t] = i;
        }
    }
    return check_defined(g, producer, err);
}
