// SPDX-License-Identifier: Apache-2.0
/* graph.h: building a model's graph, ordering and fusing it, planning its memory, and running it on providers.
 *
 * A builder is used once, by one thread. A plan is immutable, and read by any; what its steps write is a state, which
 * belongs to one thread at a time. */
#ifndef WEFT_GRAPH_ROOM_H
#define WEFT_GRAPH_ROOM_H

#include "backend/registry.h"
#include "base/counters.h"
#include "weft/graph.h"

/* ---- building ---- */
typedef struct weft__builder weft__builder;

weft_status weft__builder_create(weft__builder **out, weft_error *err);
void weft__builder_destroy(weft__builder **b);

/* Every function below returns an id >= 0, or WEFT_NONE once the builder has failed (out of memory, a malformed node):
 * the first failure is kept and reported by weft__builder_finish, so an architecture file is straight-line code. */

/* Copies *w. */
weft_weight_id weft__builder_weight(weft__builder *b, const weft_weight *w);
int32_t weft__builder_kv_group(weft__builder *b, const weft_kv_group *g);
/* Declares a tensor [width, rows]; rows WEFT_ROWS or WEFT_WANTED; width 0 for an order token. */
weft_tensor_id weft__builder_tensor(weft__builder *b, int64_t width, int64_t rows, const char *name_format, ...)
    WEFT_PRINTF(4, 5);
/* Adds a node; ids of tensors that no node produces, or that two produce, are found by finish. */
int32_t weft__builder_node(weft__builder *b, const weft_node *node);
void weft__builder_output(weft__builder *b, weft_tensor_id t);

/* The usual nodes; each declares its output tensor, named after `layer` and the op (or the weight), and returns it. */
weft_tensor_id weft__op_embed(weft__builder *b, weft_weight_id table, float scale);
weft_tensor_id weft__op_norm(weft__builder *b, int layer, weft_tensor_id x, weft_weight_id w, float eps, int group);
weft_tensor_id weft__op_linear(weft__builder *b, int layer, weft_tensor_id x, weft_weight_id w, weft_weight_id bias);
weft_tensor_id weft__op_rope(weft__builder *b, int layer, weft_tensor_id x, const weft_attr_rope *attr,
                             weft_weight_id factors);
weft_tensor_id weft__op_kv_write(weft__builder *b, int layer, weft_tensor_id k, weft_tensor_id v, weft_attr_kv kv);
weft_tensor_id weft__op_attention(weft__builder *b, int layer, weft_tensor_id q, weft_tensor_id order,
                                  const weft_attr_attention *attr);
weft_tensor_id weft__op_glu(weft__builder *b, int layer, weft_tensor_id gate, weft_tensor_id up, int activation);
weft_tensor_id weft__op_add(weft__builder *b, int layer, weft_tensor_id x, weft_tensor_id y);
weft_tensor_id weft__op_softcap(weft__builder *b, int layer, weft_tensor_id x, float cap);
weft_tensor_id weft__op_pick_rows(weft__builder *b, weft_tensor_id x);
weft_tensor_id weft__op_moe_route(weft__builder *b, int layer, weft_tensor_id logits, const weft_attr_moe *attr);
weft_tensor_id weft__op_moe_ffn(weft__builder *b, int layer, weft_tensor_id x, weft_tensor_id route,
                                weft_weight_id gate, weft_weight_id up, weft_weight_id down, const weft_attr_moe *attr);

/* Checks the whole (every input defined exactly once, shapes and widths agree with weights and attributes, groups
 * exist, no cycle: each fault names the node and the tensor), orders the nodes (Kahn, stable) and hands the graph
 * over. */
weft_status weft__builder_finish(weft__builder **b, weft_graph **out, weft_error *err);
void weft__graph_destroy(weft_graph **g);

/* ---- planning ---- */
typedef struct weft__plan weft__plan;

typedef struct weft__plan_options {
    int32_t max_rows, max_wanted;
    int no_fusion; /* for tests: compile the graph as it was written */
    /* Providers in order of preference on equal rank; borrowed, they outlive the plan. */
    weft__provider *const *providers;
    int n_providers;
    weft_progress_fn progress;
    void *progress_arg;
    /* weights that weft__plan_image gave out, packed; its data outlive the plan. NULL: they are packed now */
    const weft_image *image;
    int outline; /* nothing is packed; the plan has no states, but tells its bytes (weft__plan_bytes) */
} weft__plan_options;

/* Fuses, places each node on the provider with the highest rank, cuts segments, plans memory with reuse, compiles a
 * program for each. `graph` is borrowed and outlives the plan. A node that no provider supports is an error that names
 * it. */
weft_status weft__plan_create(const weft_graph *graph, const weft__plan_options *options, weft__plan **out,
                              weft_error *err);
void weft__plan_destroy(weft__plan **plan);

/* What steps of a plan write, for one caller: activations, scratch, the programs' runs. As large as the largest step
 * needs; the plan outlives it. WEFT_NO_MEMORY. */
typedef struct weft__plan_state weft__plan_state;
weft_status weft__plan_state_new(const weft__plan *plan, weft__plan_state **out, weft_error *err);
void weft__plan_state_free(weft__plan_state **state);

/* One step. outputs[i]: [W, d0] or [R, d0] floats for graph output i; what the latter hold is defined in steps of which
 * a row has WEFT_WANT_OUTPUTS. kv: one per group, of each pool in turn (weft_rows.pool). Allocates nothing, sorts
 * nothing. Several threads may run steps of one plan at once, each with a state of its own, on pages of its own.
 * WEFT_UNSUPPORTED: pages in several pools, where weft__plan_takes_pools says no. */
weft_status weft__plan_run(weft__plan_state *state, const weft_rows *rows, const weft_kv_binding *kv,
                           float *const *outputs, weft_error *err);

/* The same of nodes [first_node, first_node + n_nodes) of weft__plan_graph alone, none of them of experts, to be timed:
 * what they write is of no use (weft_step.n_nodes). WEFT_UNSUPPORTED, naming the provider, where one of theirs takes
 * whole steps only. */
weft_status weft__plan_run_nodes(weft__plan_state *state, const weft_rows *rows, const weft_kv_binding *kv,
                                 float *const *outputs, int32_t first_node, int32_t n_nodes, weft_error *err);

/* May rows of a step have pages in several pools? */
int weft__plan_takes_pools(const weft__plan *plan);

/* Packs an adapter for the plan's programs: spec->lora by the weights of the plan's graph (which has those of the graph
 * it was made from, under their ids). *out is what steps of this plan have in weft_rows.adapters; it must not outlive
 * the plan, nor end before a step that uses it. May be called by any thread, also while the plan runs. WEFT_ARGUMENT
 * where an entry is malformed or changes a weight that is neither multiplied by nor an embedding; WEFT_UNSUPPORTED,
 * naming the provider, where it runs none. */
weft_status weft__plan_adapter_new(const weft__plan *plan, const weft_adapter_spec *spec, weft_adapter **out,
                                   weft_error *err);
void weft__plan_adapter_free(weft_adapter **adapter);
uint64_t weft__plan_adapter_bytes(const weft_adapter *adapter);

/* Lines of text: order, fusion, segments, kernels, arena bytes with and without reuse. Caller frees with weft__free. */
char *weft__plan_describe(const weft__plan *plan);

/* The plan's packed weights, by the weights of its graph; they live with the plan. *provider: the name of the one that
 * packed them. WEFT_UNSUPPORTED, naming the provider, where it cannot hand them out, or where there are several. */
weft_status weft__plan_image(const weft__plan *plan, weft_image *out, const char **provider, weft_error *err);

/* Bytes of activations that a state of the plan holds, for its largest step: the arenas of its segments, and what
 * passes between them. */
uint64_t weft__plan_scratch(const weft__plan *plan);

/* Bytes of its programs' weights, packed and not, and of a state of the plan. WEFT_UNSUPPORTED, naming the provider,
 * where one cannot tell. */
weft_status weft__plan_bytes(const weft__plan *plan, weft_program_bytes *out, weft_error *err);

/* The graph as it runs: fused and in order. Lives with the plan. */
const weft_graph *weft__plan_graph(const weft__plan *plan);

/* ---- costs and profiles ---- */

/* The rows of one sequence in a step: positions first .. first + n - 1; n_wanted of them have WEFT_WANT_LOGITS, and
 * count as the last. */
typedef struct weft__graph_seq_rows {
    int32_t first, n, n_wanted;
} weft__graph_seq_rows;

typedef struct weft__graph_load {
    int32_t n_rows, n_wanted, n_seqs;
    const weft__graph_seq_rows *seqs;
    uint32_t kv_dtype;
    int wants_outputs;        /* a row has WEFT_WANT_OUTPUTS */
    const uint32_t *kv_types; /* [n_seqs] instead of kv_dtype, where sequences have several; or NULL */
} weft__graph_load;

/* What an op must move and multiply at least. */
typedef struct weft__graph_cost {
    /* everything that it reads or writes, each once: weights, activations, keys and values of attended positions */
    double bytes;
    double weight_bytes, kv_bytes; /* of those: matrices that are multiplied; keys and values that are attended to */
    double int8_ops, bf16_ops,
        f32_ops;          /* multiplications and additions of matrix products, by the type of the weights */
    double attention_ops; /* those of attention */
} weft__graph_cost;

/* Of node i for a step. Of experts, as many are counted as the rows can reach. */
weft__graph_cost weft__graph_node_cost(const weft_graph *graph, int32_t node, const weft__graph_load *load);
/* What part of the weights that one row reads is of experts, 0..1. */
double weft__graph_expert_part(const weft_graph *graph);

/* One op of a profiled step; times as in weft_profile_event. */
typedef struct weft__profile_op {
    int32_t node; /* of weft__plan_graph; WEFT_NONE: work for the whole step */
    int32_t step;
    uint64_t begin_ns, done_ns, end_ns;
    double bytes, ops;
} weft__profile_op;

typedef struct weft__profile_step {
    int32_t n_rows, n_wanted;
    int32_t first, n; /* its ops */
    uint64_t begin_ns, end_ns;
} weft__profile_step;

typedef struct weft__profile {
    const weft__plan *plan;
    int32_t n_ops, n_steps;
    weft__profile_op *ops;
    weft__profile_step *steps;
    weft__counters *counters; /* NULL: nothing is counted */
    weft__counts *counts;     /* [n_ops] while it is */
    size_t ops_capacity, steps_capacity, counts_capacity;
    weft_profile_log log;       /* of the step that runs */
    weft__graph_seq_rows *seqs; /* [max_rows] of a step */
    uint32_t *kv_types;         /* [max_rows] of its sequences */
} weft__profile;

/* An empty record of steps of the plan, which outlives it. WEFT_UNSUPPORTED where a provider cannot tell;
 * WEFT_NO_MEMORY. */
weft_status weft__profile_new(const weft__plan *plan, weft__profile **out, weft_error *err);
void weft__profile_free(weft__profile **profile);
/* Forgets the steps. */
void weft__profile_clear(weft__profile *profile);
/* Also forgets the steps; the next ones are counted, too, by counters that ask `system` (NULL: the running one). With
 * on = 0: no more. WEFT_UNSUPPORTED where a provider cannot count; WEFT_NO_MEMORY; then nothing is counted. */
weft_status weft__profile_count(weft__profile *profile, int on, const weft__counter_system *system, weft_error *err);
/* weft__plan_run of a state of the profile's plan, and its record, for which it may allocate memory. A step that fails
 * leaves none. */
weft_status weft__profile_run(weft__profile *profile, weft__plan_state *state, const weft_rows *rows,
                              const weft_kv_binding *kv, float *const *outputs, weft_error *err);

/* The fused form of a graph; owned by the caller. Only nodes of one place [n_nodes] are fused (NULL: all are), and
 * `supports` decides whether a fused node is wanted. */
typedef int (*weft__graph_supports_fn)(void *arg, const weft_graph *graph, const weft_node *node);
weft_status weft__graph_fuse(const weft_graph *graph, const int32_t *place, weft__graph_supports_fn supports, void *arg,
                             weft_graph **out, weft_error *err);

#endif
