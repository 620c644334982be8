// SPDX-License-Identifier: Apache-2.0
/* plan.h: the inside of a plan; for plan*.c only. */
#ifndef WEFT_GRAPH_PLAN_H
#define WEFT_GRAPH_PLAN_H

#include "graph/internal.h"

/* A run of nodes on one provider. Owns the arrays that `s` points to. */
typedef struct weft__plan_segment {
    const weft__provider *provider;
    weft_program *program;
    weft_segment s;
    uint64_t *border_at;    /* [s.n_bound] where a tensor lies in a run's border; those of graph outputs do not */
    uint64_t without_reuse; /* bytes of the arena if no two tensors shared */
    int has_pages;          /* a node of it writes or reads keys and values */
} weft__plan_segment;

struct weft__plan {
    weft_graph *graph;      /* fused and in order; its own copy */
    int32_t n_nodes_before; /* of the graph as it was written */
    int32_t *place;         /* [n_nodes] index into the providers */
    weft__provider *const *providers;
    int32_t *output_of; /* [n_tensors] index among the graph's outputs, or WEFT_NONE */
    weft__plan_segment *segments;
    int32_t n_segments;
    int32_t max_rows, max_wanted;
    uint64_t border_bytes; /* of tensors that pass from one segment to another */
};

/* What steps of a plan write, for one caller. */
struct weft__plan_state {
    const weft__plan *plan;
    weft_buffer *border;     /* tensors that pass from one segment to another */
    weft_adapter **adapters; /* [max_rows] those of a step as one segment's provider knows them */
    weft_profile_log *log;   /* NULL, or where the events of the step that runs go (profile.c) */
    struct weft__plan_part {
        weft_run *run;
        weft_tensor_binding *bindings; /* [n_bound of the segment]; those of graph outputs are set at each step */
    } part[];                          /* [n_segments] */
};

/* Bytes of tensor t for the largest step; 0 for an order token. */
uint64_t weft__plan_tensor_bytes(const weft__plan *p, weft_tensor_id t);

/* Chooses a provider for every node of `graph`: place [n_nodes]. */
weft_status weft__plan_place(const weft_graph *graph, weft__provider *const *providers, int n_providers, int32_t *place,
                             weft_error *err);
/* Cuts p->graph, whose nodes are in order and placed, into segments, and plans their memory and the border's. */
weft_status weft__plan_cut(weft__plan *p, weft_error *err);

/* Do the step's adapters belong to this plan? */
weft_status weft__plan_check_adapters(const weft__plan *p, const weft_rows *rows, weft_error *err);
/* The rows as segment number `segment` gets them: with its parts of the adapters, or none. Valid until the state's next
 * call. */
void weft__plan_segment_rows(const weft__plan_state *s, int32_t segment, const weft_rows *rows, weft_rows *out);

#endif
