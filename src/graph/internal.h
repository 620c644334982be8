// SPDX-License-Identifier: Apache-2.0
/* internal.h: what the files of this room share. Nothing outside src/graph includes it. */
#ifndef WEFT_GRAPH_INTERNAL_H
#define WEFT_GRAPH_INTERNAL_H

#include <stddef.h>

#include "graph/graph.h"

/* Fills `out` with the name by which messages call node i: "node 7 (linear blk.0.attn_q)". Returns out. */
#define WEFT__GRAPH_NODE_NAME 128
const char *weft__graph_node_name(const weft_graph *g, int32_t i, char out[WEFT__GRAPH_NODE_NAME]);

/* An exact copy of a graph, arrays and all; NULL when memory runs out. */
weft_graph *weft__graph_copy(const weft_graph *g);

/* Node that produces each tensor, WEFT_NONE where none does: producer [n_tensors]. Fails when two produce one, or when
 * an input or an output of the graph has no producer. All ids must be in range. */
weft_status weft__graph_producers(const weft_graph *g, int32_t *producer, weft_error *err);

/* Checks ids, weights, shapes, widths and attributes of every node, unfused and fused forms alike; not the order. */
weft_status weft__graph_check(const weft_graph *g, weft_error *err);

/* Writes into order [n_nodes] an order in which every tensor is made before it is used (Kahn 1962); among the nodes
 * that are ready, first those of the same place as the last one (place [n_nodes], or NULL: all the same), then the
 * lowest index. A cycle is an error that names one of its nodes. */
weft_status weft__graph_order(const weft_graph *g, const int32_t *place, int32_t *order, weft_error *err);

/* Rearranges the nodes (and place, which may be NULL) accordingly. Fails only for lack of memory. */
weft_status weft__graph_permute(weft_graph *g, const int32_t *order, int32_t *place, weft_error *err);

/* Flags the nodes, which are in order, that are there for wanted rows alone. Fails only for lack of memory. */
weft_status weft__graph_mark_wanted(weft_graph *g, weft_error *err);

/* ---- memory ---- */

/* Something that needs n_bytes from time `begin` to time `end`, both included. `offset` is the answer. */
typedef struct weft__graph_lifetime {
    int32_t begin, end;
    uint64_t n_bytes, offset;
} weft__graph_lifetime;

/* Gives every item an offset, a multiple of 64, so that items which are alive at the same time never share bytes;
 * largest first, each into the smallest gap that holds it. *total is the bytes needed, *without_reuse their sum. Items
 * of 0 bytes get offset 0. Fails with WEFT_NO_MEMORY, or WEFT_LIMIT when sizes overflow. */
weft_status weft__graph_plan_memory(weft__graph_lifetime *items, int32_t n, uint64_t *total, uint64_t *without_reuse,
                                    weft_error *err);

#endif
