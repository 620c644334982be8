// SPDX-License-Identifier: Apache-2.0
/* cost.c: what an op must move and multiply at least, from the graph and the shape of a step alone. Reentrant; no
 * state. */
#include "graph/graph.h"

/* Is node n there for the wanted rows alone? */
static int is_for_wanted(const weft_node *n, const weft__graph_load *load)
{
    return n->flags & WEFT_NODE_IF_WANTED && !load->wants_outputs;
}

/* Bytes of one position's keys and values in one layer, as sequence s of the step has them. */
static double kv_token_bytes(const weft_graph *g, const weft_attr_kv *kv, const weft__graph_load *load, int32_t s)
{
    const weft_kv_group *group = &g->kv_groups[kv->group];
    const uint32_t type = load->kv_types ? load->kv_types[s] : load->kv_dtype;
    return (double)weft_kv_layer_bytes(type, group, kv->layer) / group->page_tokens;
}

/* Positions that all rows of the step, or those that are wanted, see, and bytes of those that at least one of each
 * sequence sees. */
static void attended(const weft_graph *g, const weft_attr_attention *a, const weft__graph_load *load, int if_wanted,
                     double *seen, double *bytes)
{
    const int32_t window = a->window;
    *seen = *bytes = 0;
    for (int32_t s = 0; s < load->n_seqs; s++) {
        const weft__graph_seq_rows *rows = &load->seqs[s];
        int32_t n = if_wanted ? rows->n_wanted : rows->n, first = rows->first + rows->n - n;
        if (n == 0) continue;
        int32_t from = window > 0 && first + 1 > window ? first + 1 - window : 0;
        *bytes += (first + n - from) * kv_token_bytes(g, &a->kv, load, s);
        if (window <= 0) {
            *seen += (double)n * first + (double)n * (n + 1) / 2;
            continue;
        }
        for (int32_t p = first; p < first + n; p++) *seen += p + 1 < window ? p + 1 : window;
    }
}

/* Bytes of keys and values that the step's rows write in one layer. */
static double written(const weft_graph *g, const weft_attr_kv *kv, const weft__graph_load *load, int if_wanted)
{
    double bytes = 0;
    for (int32_t s = 0; s < load->n_seqs; s++)
        bytes += (if_wanted ? load->seqs[s].n_wanted : load->seqs[s].n) * kv_token_bytes(g, kv, load, s);
    return bytes;
}

static double tensor_bytes(const weft_graph *g, weft_tensor_id t, int32_t rows)
{
    return 4.0 * (double)g->tensors[t].shape.d[0] * rows;
}

/* How many rows of a tensor node n makes or reads. */
static int32_t rows_of(const weft_graph *g, const weft_node *n, weft_tensor_id t, const weft__graph_load *load)
{
    return is_for_wanted(n, load) || g->tensors[t].shape.d[1] == WEFT_WANTED ? load->n_wanted : load->n_rows;
}

static double activation_bytes(const weft_graph *g, const weft_node *n, const weft__graph_load *load)
{
    double bytes = 0;
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        weft_tensor_id t = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
        bytes += tensor_bytes(g, t, rows_of(g, n, t, load));
    }
    return bytes;
}

/* `used` matrices of the stack are read, and every one of `rows` rows is multiplied with one. */
static void add_matrix(weft__graph_cost *c, const weft_weight *w, double used, double rows)
{
    double ops = 2 * rows * (double)w->shape.d[0] * (double)w->shape.d[1];
    c->weight_bytes += used * (double)w->row_bytes * (double)w->shape.d[1];
    if (w->dtype == WEFT_BF16) c->bf16_ops += ops;
    else if (w->dtype == WEFT_F32 || w->dtype == WEFT_F16) c->f32_ops += ops;
    else c->int8_ops += ops;
}

static void attention_cost(const weft_graph *g, const weft_node *n, const weft__graph_load *load, weft__graph_cost *c)
{
    const weft_attr_attention *a = &n->attr.attention;
    double seen;
    attended(g, a, load, is_for_wanted(n, load), &seen, &c->kv_bytes);
    c->attention_ops = 2 * seen * a->n_heads * (a->head_dim_k + a->head_dim_v);
}

weft__graph_cost weft__graph_node_cost(const weft_graph *g, int32_t node, const weft__graph_load *load)
{
    weft__graph_cost c = {0};
    const weft_node *n = &g->nodes[node];
    const int32_t rows = rows_of(g, n, n->out[0], load);
    if (rows == 0) return c;
    switch ((weft_opcode)n->op) {
    case WEFT_OP_LINEAR:
        for (int i = 0; i < n->attr.linear.n_mat; i++) add_matrix(&c, &g->weights[n->w[i]], 1, rows);
        break;
    case WEFT_OP_MOE_FFN: {
        double routed = (double)rows * n->attr.moe.n_used,
               used = routed < n->attr.moe.n_experts ? routed : n->attr.moe.n_experts;
        for (int i = 0; i < n->n_w; i++) add_matrix(&c, &g->weights[n->w[i]], used, routed);
        break;
    }
    case WEFT_OP_ATTENTION: attention_cost(g, n, load, &c); break;
    case WEFT_OP_KV_WRITE: c.bytes = written(g, &n->attr.kv, load, is_for_wanted(n, load)); break;
    case WEFT_OP_ROPE_KV: c.bytes = written(g, &n->attr.rope_kv.kv, load, is_for_wanted(n, load)); break;
    case WEFT_OP_EMBED: c.bytes = rows * (double)g->weights[n->w[0]].row_bytes; break;
    default: break;
    }
    c.bytes += c.weight_bytes + c.kv_bytes + activation_bytes(g, n, load);
    return c;
}

double weft__graph_expert_part(const weft_graph *g)
{
    double experts = 0, all = 0;
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const weft_node *n = &g->nodes[i];
        for (int k = 0; k < n->n_w && n->op != WEFT_OP_EMBED; k++) {
            if (n->w[k] < 0) continue;
            const weft_weight *w = &g->weights[n->w[k]];
            const double used = n->op == WEFT_OP_MOE_FFN ? n->attr.moe.n_used : 1,
                         bytes = used * (double)w->row_bytes * (double)(w->shape.n_dims > 1 ? w->shape.d[1] : 1);
            experts += n->op == WEFT_OP_MOE_FFN ? bytes : 0;
            all += bytes;
        }
    }
    return all > 0 ? experts / all : 0;
}
