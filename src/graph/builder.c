// SPDX-License-Identifier: Apache-2.0
/* builder.c: collecting a graph node by node, and the usual nodes.
 * Invariant: once `status` is set, nothing is added any more. One thread. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/internal.h"

struct weft__builder {
    weft_status status; /* the first failure */
    weft_error error;
    weft_node *nodes;
    weft_tensor *tensors;
    weft_weight *weights;
    weft_kv_group *kv_groups;
    weft_tensor_id *outputs;
    size_t n_nodes, n_tensors, n_weights, n_kv_groups, n_outputs;
    size_t room_nodes, room_tensors, room_weights, room_kv_groups, room_outputs;
};

enum { MAX_ITEMS = 1 << 24 };

weft_status weft__builder_create(weft__builder **out, weft_error *err)
{
    *out = weft__alloc_zero(1, sizeof **out);
    return *out ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no memory for a graph builder");
}

void weft__builder_destroy(weft__builder **pb)
{
    weft__builder *b = *pb;
    if (!b) return;
    *pb = NULL;
    weft__free(b->outputs);
    weft__free(b->kv_groups);
    weft__free(b->weights);
    weft__free(b->tensors);
    weft__free(b->nodes);
    weft__free(b);
}

static int32_t builder_no_memory(weft__builder *b)
{
    b->status = weft_fail(&b->error, WEFT_NO_MEMORY, "no memory for a graph of %zu nodes", b->n_nodes);
    return WEFT_NONE;
}

/* Appends *item to a list of the builder; its index, or WEFT_NONE. */
#define APPEND(b, list, item)                                                                                          \
    ((b)->status ? WEFT_NONE                                                                                           \
     : (b)->n_##list >= MAX_ITEMS || !weft__grow(&(b)->list, &(b)->room_##list, (b)->n_##list + 1, sizeof *(b)->list)  \
         ? builder_no_memory(b)                                                                                        \
         : ((b)->list[(b)->n_##list] = *(item), (int32_t)(b)->n_##list++))

weft_weight_id weft__builder_weight(weft__builder *b, const weft_weight *w)
{
    weft_weight copy = *w;
    copy.name[WEFT_NAME_MAX - 1] = 0;
    for (int i = copy.shape.n_dims < 0 ? 0 : copy.shape.n_dims; i < 4; i++) copy.shape.d[i] = 1;
    return APPEND(b, weights, &copy);
}

int32_t weft__builder_kv_group(weft__builder *b, const weft_kv_group *g)
{
    return APPEND(b, kv_groups, g);
}

static weft_tensor_id tensor_v(weft__builder *b, int64_t width, int64_t rows, const char *format, va_list args)
{
    weft_tensor t = {.shape = {.n_dims = 2, .d = {width, rows, 1, 1}}};
    vsnprintf(t.name, sizeof t.name, format, args);
    return APPEND(b, tensors, &t);
}

weft_tensor_id weft__builder_tensor(weft__builder *b, int64_t width, int64_t rows, const char *name_format, ...)
{
    va_list args;
    va_start(args, name_format);
    weft_tensor_id id = tensor_v(b, width, rows, name_format, args);
    va_end(args);
    return id;
}

int32_t weft__builder_node(weft__builder *b, const weft_node *node)
{
    return APPEND(b, nodes, node);
}

void weft__builder_output(weft__builder *b, weft_tensor_id t)
{
    (void)APPEND(b, outputs, &t);
}

/* ---- the usual nodes ---- */

/* Keeps the first failure: an operand of `op` in `layer` that does not exist. */
static void missing(weft__builder *b, int layer, weft_opcode op, const char *what)
{
    if (b->status) return;
    b->status =
        weft_fail(&b->error, WEFT_ARGUMENT, "layer %d, %s: its %s does not exist", layer, weft_op_name(op), what);
}

/* Shape of tensor t, {0} and a failed builder when it does not exist. */
static weft_shape shape_of(weft__builder *b, int layer, weft_opcode op, weft_tensor_id t)
{
    if (!b->status && t >= 0 && (size_t)t < b->n_tensors) return b->tensors[t].shape;
    missing(b, layer, op, "input");
    return (weft_shape){0};
}

static const weft_weight *weight_of(weft__builder *b, int layer, weft_opcode op, weft_weight_id w)
{
    if (!b->status && w >= 0 && (size_t)w < b->n_weights) return &b->weights[w];
    missing(b, layer, op, "weight");
    return NULL;
}

/* The weight's name without ".weight", or "blk.LAYER.OP" (outside layers "OP") where there is none. */
static void name_output(weft__builder *b, int layer, weft_opcode op, weft_weight_id w, char name[WEFT_NAME_MAX])
{
    if (w >= 0 && (size_t)w < b->n_weights) {
        memcpy(name, b->weights[w].name, WEFT_NAME_MAX);
        size_t n = strlen(name), suffix = strlen(".weight");
        if (n > suffix && !strcmp(name + n - suffix, ".weight")) name[n - suffix] = 0;
    } else if (layer >= 0) {
        snprintf(name, WEFT_NAME_MAX, "blk.%d.%s", layer, weft_op_name(op));
    } else {
        snprintf(name, WEFT_NAME_MAX, "%s", weft_op_name(op));
    }
}

/* Declares the output [width, rows] of *node and adds the node; the output's id. */
static weft_tensor_id add_node(weft__builder *b, weft_node *node, int64_t width, int64_t rows,
                               weft_weight_id named_after)
{
    char name[WEFT_NAME_MAX];
    if (b->status) return WEFT_NONE;
    name_output(b, node->layer, node->op, named_after, name);
    node->n_out = 1;
    node->out[0] = weft__builder_tensor(b, width, rows, "%s", name);
    return weft__builder_node(b, node) == WEFT_NONE ? WEFT_NONE : node->out[0];
}

weft_tensor_id weft__op_embed(weft__builder *b, weft_weight_id table, float scale)
{
    weft_node n = {.op = WEFT_OP_EMBED, .n_w = 1, .w = {table}, .layer = -1, .attr.embed = {scale}};
    const weft_weight *w = weight_of(b, -1, WEFT_OP_EMBED, table);
    return w ? add_node(b, &n, w->shape.d[0], WEFT_ROWS, table) : WEFT_NONE;
}

weft_tensor_id weft__op_norm(weft__builder *b, int layer, weft_tensor_id x, weft_weight_id w, float eps, int group)
{
    weft_node n = {.op = WEFT_OP_NORM, .n_in = 1, .in = {x}, .n_w = 1, .w = {w}, .layer = layer};
    n.attr.norm = (weft_attr_norm){WEFT_NORM_RMS, group, eps};
    weft_shape s = shape_of(b, layer, WEFT_OP_NORM, x);
    return add_node(b, &n, s.d[0], s.d[1], w);
}

weft_tensor_id weft__op_linear(weft__builder *b, int layer, weft_tensor_id x, weft_weight_id w, weft_weight_id bias)
{
    weft_node n = {.op = WEFT_OP_LINEAR, .n_in = 1, .in = {x}, .n_w = 1, .w = {w}, .layer = layer};
    n.attr.linear = (weft_attr_linear){1, {bias, WEFT_NONE, WEFT_NONE}, WEFT_NONE, 0, WEFT_ACT_NONE, WEFT_NONE};
    weft_shape s = shape_of(b, layer, WEFT_OP_LINEAR, x);
    const weft_weight *weight = weight_of(b, layer, WEFT_OP_LINEAR, w);
    return weight ? add_node(b, &n, weight->shape.d[1], s.d[1], w) : WEFT_NONE;
}

weft_tensor_id weft__op_rope(weft__builder *b, int layer, weft_tensor_id x, const weft_attr_rope *attr,
                             weft_weight_id factors)
{
    weft_node n = {
        .op = WEFT_OP_ROPE, .n_in = 1, .in = {x}, .n_w = 1, .w = {factors}, .layer = layer, .attr.rope = *attr};
    weft_shape s = shape_of(b, layer, WEFT_OP_ROPE, x);
    return add_node(b, &n, s.d[0], s.d[1], WEFT_NONE);
}

weft_tensor_id weft__op_kv_write(weft__builder *b, int layer, weft_tensor_id k, weft_tensor_id v, weft_attr_kv kv)
{
    weft_node n = {.op = WEFT_OP_KV_WRITE, .n_in = 2, .in = {k, v}, .layer = layer, .attr.kv = kv};
    (void)shape_of(b, layer, WEFT_OP_KV_WRITE, v);
    weft_shape s = shape_of(b, layer, WEFT_OP_KV_WRITE, k);
    return add_node(b, &n, 0, s.d[1], WEFT_NONE);
}

weft_tensor_id weft__op_attention(weft__builder *b, int layer, weft_tensor_id q, weft_tensor_id order,
                                  const weft_attr_attention *attr)
{
    weft_node n = {.op = WEFT_OP_ATTENTION, .n_in = 2, .in = {q, order}, .layer = layer, .attr.attention = *attr};
    weft_shape s = shape_of(b, layer, WEFT_OP_ATTENTION, q);
    return add_node(b, &n, (int64_t)attr->n_heads * attr->head_dim_v, s.d[1], WEFT_NONE);
}

/* An op of one or two inputs (y may be WEFT_NONE) whose output is like x. */
static weft_tensor_id like_input(weft__builder *b, weft_node *n, weft_tensor_id x, weft_tensor_id y)
{
    n->n_in = y == WEFT_NONE ? 1 : 2;
    n->in[0] = x;
    n->in[1] = y;
    weft_shape s = shape_of(b, n->layer, n->op, x);
    return add_node(b, n, s.d[0], s.d[1], WEFT_NONE);
}

weft_tensor_id weft__op_glu(weft__builder *b, int layer, weft_tensor_id gate, weft_tensor_id up, int activation)
{
    weft_node n = {.op = WEFT_OP_GLU, .layer = layer, .attr.glu = {activation}};
    (void)shape_of(b, layer, WEFT_OP_GLU, up);
    return like_input(b, &n, gate, up);
}

weft_tensor_id weft__op_add(weft__builder *b, int layer, weft_tensor_id x, weft_tensor_id y)
{
    weft_node n = {.op = WEFT_OP_ADD, .layer = layer};
    (void)shape_of(b, layer, WEFT_OP_ADD, y);
    return like_input(b, &n, x, y);
}

weft_tensor_id weft__op_softcap(weft__builder *b, int layer, weft_tensor_id x, float cap)
{
    weft_node n = {.op = WEFT_OP_SOFTCAP, .layer = layer, .attr.softcap = {cap}};
    return like_input(b, &n, x, WEFT_NONE);
}

weft_tensor_id weft__op_pick_rows(weft__builder *b, weft_tensor_id x)
{
    weft_node n = {.op = WEFT_OP_PICK_ROWS, .n_in = 1, .in = {x}, .layer = -1};
    weft_shape s = shape_of(b, -1, WEFT_OP_PICK_ROWS, x);
    return add_node(b, &n, s.d[0], WEFT_WANTED, WEFT_NONE);
}

weft_tensor_id weft__op_moe_route(weft__builder *b, int layer, weft_tensor_id logits, const weft_attr_moe *attr)
{
    weft_node n = {.op = WEFT_OP_MOE_ROUTE, .n_in = 1, .in = {logits}, .layer = layer, .attr.moe = *attr};
    weft_shape s = shape_of(b, layer, WEFT_OP_MOE_ROUTE, logits);
    return add_node(b, &n, 2 * (int64_t)attr->n_used, s.d[1], WEFT_NONE);
}

weft_tensor_id weft__op_moe_ffn(weft__builder *b, int layer, weft_tensor_id x, weft_tensor_id route,
                                weft_weight_id gate, weft_weight_id up, weft_weight_id down, const weft_attr_moe *attr)
{
    weft_node n = {.op = WEFT_OP_MOE_FFN, .n_in = 2, .in = {x, route}, .n_w = 3, .w = {gate, up, down}, .layer = layer};
    n.attr.moe = *attr;
    (void)shape_of(b, layer, WEFT_OP_MOE_FFN, route);
    weft_shape s = shape_of(b, layer, WEFT_OP_MOE_FFN, x);
    return add_node(b, &n, s.d[0], s.d[1], WEFT_NONE);
}

/* ---- handing over ---- */

/* Moves the builder's lists into a graph. */
static weft_graph *builder_take(weft__builder *b)
{
    weft_graph *g = weft__alloc_zero(1, sizeof *g);
    if (!g) return NULL;
    *g = (weft_graph){sizeof *g,
                      (int32_t)b->n_nodes,
                      (int32_t)b->n_tensors,
                      (int32_t)b->n_weights,
                      (int32_t)b->n_kv_groups,
                      (int32_t)b->n_outputs,
                      b->nodes,
                      b->tensors,
                      b->weights,
                      b->kv_groups,
                      b->outputs};
    b->nodes = NULL;
    b->tensors = NULL;
    b->weights = NULL;
    b->kv_groups = NULL;
    b->outputs = NULL;
    return g;
}

/* Two nodes must not write the same layer's pages in one step. */
static weft_status check_writers(const weft_graph *g, weft_error *err)
{
    char a[WEFT__GRAPH_NODE_NAME], b[WEFT__GRAPH_NODE_NAME];
    for (int32_t i = 0; i < g->n_nodes; i++) {
        if (g->nodes[i].op != WEFT_OP_KV_WRITE) continue;
        weft_attr_kv kv = g->nodes[i].attr.kv;
        for (int32_t j = 0; j < i; j++) {
            weft_attr_kv other = g->nodes[j].attr.kv;
            if (g->nodes[j].op != WEFT_OP_KV_WRITE || other.group != kv.group || other.layer != kv.layer) continue;
            return weft_fail(err, WEFT_ARGUMENT, "layer %d of KV group %d is written twice: by %s and %s", kv.layer,
                             kv.group, weft__graph_node_name(g, j, a), weft__graph_node_name(g, i, b));
        }
    }
    return WEFT_OK;
}

static weft_status check_and_order(weft_graph *g, weft_error *err)
{
    weft_status st;
    if ((st = weft__graph_check(g, err)) || (st = check_writers(g, err))) return st;
    int32_t *order = weft__alloc_array((size_t)g->n_nodes, sizeof *order);
    if (!order) return weft_fail(err, WEFT_NO_MEMORY, "no memory to order %d nodes", g->n_nodes);
    if (!(st = weft__graph_order(g, NULL, order, err))) st = weft__graph_permute(g, order, NULL, err);
    weft__free(order);
    return st;
}

weft_status weft__builder_finish(weft__builder **pb, weft_graph **out, weft_error *err)
{
    weft__builder *b = *pb;
    weft_graph *g = NULL;
    weft_status st = b->status;
    *out = NULL;
    if (st) {
        weft_fail(err, st, "%s", b->error.message);
    } else if (!(g = builder_take(b))) {
        st = weft_fail(err, WEFT_NO_MEMORY, "no memory for a graph of %zu nodes", b->n_nodes);
    } else {
        st = check_and_order(g, err);
    }
    weft__builder_destroy(pb);
    if (st) weft__graph_destroy(&g);
    *out = g;
    return st;
}
