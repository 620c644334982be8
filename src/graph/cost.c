/* cost.c: what an op must move and multiply at least, from the graph and the shape of a step alone. Reentrant; no state. */
#include "graph/graph.h"

/* Positions that n_rows of the step's rows see, and positions that at least one of each sequence sees. Where those are not all rows, they
 * count as the last ones of each sequence. */
static void attended(const weft__load *load, int32_t n_rows, int32_t window, double *seen, double *distinct)
{
    *seen = *distinct = 0;
    for (int32_t s = 0, left = n_rows; s < load->n_seqs && left > 0; s++) {
        int32_t first = load->seqs[s].first, n = load->seqs[s].n, even = (left + load->n_seqs - s - 1) / (load->n_seqs - s);
        if (n_rows < load->n_rows && even < n) {
            first += n - even;
            n = even;
        }
        left -= n;
        int32_t from = window > 0 && first + 1 > window ? first + 1 - window : 0;
        *distinct += first + n - from;
        if (window <= 0) {
            *seen += (double)n * first + (double)n * (n + 1) / 2;
            continue;
        }
        for (int32_t p = first; p < first + n; p++) *seen += p + 1 < window ? p + 1 : window;
    }
}

static double tensor_bytes(const weft_graph *g, weft_tensor_id t, int32_t rows)
{
    return 4.0 * (double)g->tensors[t].shape.d[0] * rows;
}

/* How many rows a node must make or read of a tensor. */
static int32_t rows_of(const weft_graph *g, const weft_node *n, weft_tensor_id t, const weft__load *load)
{
    int if_wanted = n->flags & WEFT_NODE_IF_WANTED && !load->wants_outputs;
    return if_wanted || g->tensors[t].shape.d[1] == WEFT_WANTED ? load->n_wanted : load->n_rows;
}

static double activation_bytes(const weft_graph *g, const weft_node *n, const weft__load *load)
{
    double bytes = 0;
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        weft_tensor_id t = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
        bytes += tensor_bytes(g, t, rows_of(g, n, t, load));
    }
    return bytes;
}

/* `used` matrices of the stack are read, and every one of `rows` rows is multiplied with one. */
static void add_matrix(weft__cost *c, const weft_weight *w, double used, double rows)
{
    double ops = 2 * rows * (double)w->shape.d[0] * (double)w->shape.d[1];
    c->weight_bytes += used * (double)w->row_bytes * (double)w->shape.d[1];
    if (w->dtype == WEFT_BF16) c->bf16_ops += ops;
    else if (w->dtype == WEFT_F32 || w->dtype == WEFT_F16) c->f32_ops += ops;
    else c->int8_ops += ops;
}

/* Bytes of one position's keys and values in one layer. */
static double kv_token_bytes(const weft_graph *g, const weft_attr_kv *kv, const weft__load *load)
{
    const weft_kv_group *group = &g->kv_groups[kv->group];
    return (load->kv_dtype == WEFT_F32 ? 4.0 : 2.0) * group->n_kv_heads * (group->head_dim_k + group->head_dim_v);
}

static void attention_cost(const weft_graph *g, const weft_attr_attention *a, const weft__load *load, int32_t rows, weft__cost *c)
{
    double seen, distinct;
    attended(load, rows, a->window, &seen, &distinct);
    c->kv_bytes = distinct * kv_token_bytes(g, &a->kv, load);
    c->attention_ops = 2 * seen * a->n_heads * (a->head_dim_k + a->head_dim_v);
}

weft__cost weft__node_cost(const weft_graph *g, int32_t node, const weft__load *load)
{
    weft__cost c = {0};
    const weft_node *n = &g->nodes[node];
    const int32_t rows = rows_of(g, n, n->out[0], load);
    if (rows == 0) return c;
    switch ((weft_opcode)n->op) {
    case WEFT_OP_LINEAR:
        for (int i = 0; i < n->attr.linear.n_mat; i++) add_matrix(&c, &g->weights[n->w[i]], 1, rows);
        break;
    case WEFT_OP_MOE_FFN: {
        double routed = (double)rows * n->attr.moe.n_used, used = routed < n->attr.moe.n_experts ? routed : n->attr.moe.n_experts;
        for (int i = 0; i < n->n_w; i++) add_matrix(&c, &g->weights[n->w[i]], used, routed);
        break;
    }
    case WEFT_OP_ATTENTION: attention_cost(g, &n->attr.attention, load, rows, &c); break;
    case WEFT_OP_KV_WRITE: c.bytes = rows * kv_token_bytes(g, &n->attr.kv, load); break;
    case WEFT_OP_ROPE_KV: c.bytes = rows * kv_token_bytes(g, &n->attr.rope_kv.kv, load); break;
    case WEFT_OP_EMBED: c.bytes = rows * (double)g->weights[n->w[0]].row_bytes; break;
    default: break;
    }
    c.bytes += c.weight_bytes + c.kv_bytes + activation_bytes(g, n, load);
    return c;
}
