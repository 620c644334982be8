// SPDX-License-Identifier: Apache-2.0
/* logits_rows.c: which nodes are there for wanted rows alone. Reentrant; no state. */
#include "base/alloc.h"
#include "graph/internal.h"

/* A row of its outputs is made of that row of its inputs, and of what the pages have; and nothing else comes of it. */
static int is_by_row(const weft_node *n)
{
    switch ((weft_opcode)n->op) {
    case WEFT_OP_NORM:
    case WEFT_OP_LINEAR:
    case WEFT_OP_ATTENTION:
    case WEFT_OP_GLU:
    case WEFT_OP_ADD:
    case WEFT_OP_SOFTCAP:
    case WEFT_OP_MOE_ROUTE:
    case WEFT_OP_MOE_FFN: return 1;
    default: return 0; /* keys and values go to the pages; positions and tokens are those of a row's number */
    }
}

/* From the last node to the first: all rows of a tensor are needed where a node reads it that computes all of its
 * own. */
weft_status weft__graph_mark_wanted(weft_graph *g, weft_error *err)
{
    weft_node *nodes = (weft_node *)g->nodes; /* the caller may change *g, and so owns them */
    uint8_t *all_rows = weft__alloc_zero((size_t)g->n_tensors, 1);
    if (!all_rows) return weft_fail(err, WEFT_NO_MEMORY, "no memory to plan a graph of %d nodes", g->n_nodes);
    for (int32_t i = g->n_nodes - 1; i >= 0; i--) {
        weft_node *n = &nodes[i];
        int all = !is_by_row(n);
        if (g->tensors[n->out[0]].shape.d[1] == WEFT_WANTED) continue;
        for (int32_t j = 0; j < n->n_out; j++) all |= all_rows[n->out[j]];
        for (int32_t j = 0; all && j < n->n_in; j++) all_rows[n->in[j]] = 1;
        if (!all) n->flags |= WEFT_NODE_IF_WANTED;
    }
    weft__free(all_rows);
    return WEFT_OK;
}
