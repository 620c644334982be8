// SPDX-License-Identifier: Apache-2.0
/* check.c: is every node of a graph well-formed? Each fault names the node and the tensor or weight. Reentrant; no
 * state.
 *
 * After weft__graph_check all ids are in range (WEFT_NONE only where an operand is optional) and all widths agree, so
 * nothing below the graph needs to look again. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/check.h"
#include "graph/internal.h"

enum { MAX_WIDTH = 1 << 28, MAX_PAGE_TOKENS = 1 << 16 };

/* The node under inspection. A failed expectation stores the status; the later ones of the node are skipped. */
typedef struct inspection {
    const weft_graph *g;
    const weft_node *n;
    int32_t index;
    weft_status status;
    weft_error *err;
} inspection;

/* Fails the inspection unless `ok`. */
#define EXPECT(s, ok, ...)                                                                                             \
    do {                                                                                                               \
        if (!(s)->status && !(ok)) fault(s, __VA_ARGS__);                                                              \
    } while (0)

static void WEFT_PRINTF(2, 3) fault(inspection *s, const char *format, ...)
{
    char text[384], name[WEFT__GRAPH_NODE_NAME];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    s->status = weft_fail(s->err, WEFT_ARGUMENT, "%s: %s", weft__graph_node_name(s->g, s->index, name), text);
}

static const weft_tensor *in(const inspection *s, int i)
{
    return &s->g->tensors[s->n->in[i]];
}

static const weft_tensor *out(const inspection *s, int i)
{
    return &s->g->tensors[s->n->out[i]];
}

static void counts(inspection *s, int n_in, int n_out, int n_w)
{
    EXPECT(s, s->n->n_in == n_in, "%d inputs; it takes %d", s->n->n_in, n_in);
    EXPECT(s, s->n->n_out == n_out, "%d outputs; it has %d", s->n->n_out, n_out);
    EXPECT(s, s->n->n_w == n_w, "%d weights; it takes %d", s->n->n_w, n_w);
}

/* Tensor t must be `width` wide, with the rows of `like`. */
static void is_like(inspection *s, const weft_tensor *t, int64_t width, const weft_tensor *like)
{
    EXPECT(s, t->shape.d[0] == width, "tensor %s is %lld wide; it must be %lld", t->name, (long long)t->shape.d[0],
           (long long)width);
    EXPECT(s, t->shape.d[1] == like->shape.d[1], "tensors %s and %s have different rows (all and wanted)", t->name,
           like->name);
}

/* Ops that know positions and sequences work on all rows of the step. */
static void all_rows(inspection *s, const weft_tensor *t)
{
    EXPECT(s, t->shape.d[1] == WEFT_ROWS, "tensor %s has the wanted rows; this op needs all rows", t->name);
}

/* Weight id w must be [k, n, e]; n = 0: a vector; k = -1, n = -1: any. Absent is fine when `optional`. */
static void weight_is(inspection *s, weft_weight_id id, int optional, int64_t k, int64_t n, int64_t e)
{
    if (s->status || (id == WEFT_NONE && optional)) return;
    EXPECT(s, id != WEFT_NONE, "a weight that it needs is absent");
    if (s->status) return;
    EXPECT(s, id >= 0 && id < s->g->n_weights, "weight id %d does not exist", id);
    if (s->status) return;
    const weft_weight *w = &s->g->weights[id];
    const int64_t *d = w->shape.d;
    EXPECT(s, k < 0 || d[0] == k, "weight %s has rows of %lld; they must be %lld", w->name, (long long)d[0],
           (long long)k);
    EXPECT(s, n < 0 || d[1] == (n ? n : 1), "weight %s has %lld rows; it must have %lld", w->name, (long long)d[1],
           (long long)(n ? n : 1));
    EXPECT(s, d[2] == e, "weight %s has %lld matrices; it must have %lld", w->name, (long long)d[2], (long long)e);
}

static void order_token(inspection *s, const weft_tensor *t)
{
    EXPECT(s, t->shape.d[0] == 0, "tensor %s must be an order token (width 0)", t->name);
    all_rows(s, t);
}

static const weft_kv_group *group_of(inspection *s, weft_attr_kv kv)
{
    EXPECT(s, kv.group >= 0 && kv.group < s->g->n_kv_groups, "there is no KV group %d", kv.group);
    if (s->status) return NULL;
    const weft_kv_group *g = &s->g->kv_groups[kv.group];
    EXPECT(s, kv.layer >= 0 && kv.layer < g->n_layers, "KV group %d has %d layers, not layer %d", kv.group, g->n_layers,
           kv.layer);
    return s->status ? NULL : g;
}

static void check_embed(inspection *s)
{
    counts(s, 0, 1, 1);
    if (s->status) return;
    all_rows(s, out(s, 0));
    weight_is(s, s->n->w[0], 0, out(s, 0)->shape.d[0], -1, 1);
}

static void check_norm(inspection *s)
{
    const weft_attr_norm *a = &s->n->attr.norm;
    EXPECT(s, a->kind == WEFT_NORM_RMS || a->kind == WEFT_NORM_LAYER, "unknown kind of norm %d", a->kind);
    counts(s, 1, 1, a->kind == WEFT_NORM_LAYER ? 2 : 1);
    if (s->status) return;
    int64_t width = in(s, 0)->shape.d[0], group = a->group > 0 ? a->group : width;
    is_like(s, out(s, 0), width, in(s, 0));
    EXPECT(s, a->group >= 0 && group > 0 && width % group == 0, "groups of %d do not divide the %lld of tensor %s",
           a->group, (long long)width, in(s, 0)->name);
    EXPECT(s, a->eps >= 0, "eps is negative or not a number");
    for (int i = 0; i < s->n->n_w; i++) weight_is(s, s->n->w[i], 1, group, 0, 1);
}

static void check_linear(inspection *s)
{
    const weft_attr_linear *a = &s->n->attr.linear;
    EXPECT(s, a->n_mat >= 1 && a->n_mat <= WEFT_LINEAR_MAX, "%d matrices; at most %d", a->n_mat, WEFT_LINEAR_MAX);
    EXPECT(s, a->activation >= WEFT_ACT_NONE && a->activation <= WEFT_ACT_GELU_ERF, "unknown activation %d",
           a->activation);
    EXPECT(s, a->activation == WEFT_ACT_NONE || (a->n_mat == 2 && a->residual == WEFT_NONE),
           "an activation needs gate and up, no residual");
    EXPECT(s, a->residual == WEFT_NONE || (a->residual == 1 && a->n_mat == 1),
           "the residual must be input 1 of a single matrix");
    counts(s, a->residual == WEFT_NONE ? 1 : 2, a->activation ? 1 : a->n_mat, a->n_mat);
    if (s->status) return;
    int64_t k = in(s, 0)->shape.d[0];
    for (int i = 0; i < a->n_mat; i++) {
        const weft_tensor *o = out(s, a->activation ? 0 : i);
        is_like(s, o, o->shape.d[0], in(s, 0));
        weight_is(s, s->n->w[i], 0, k, o->shape.d[0], 1);
        weight_is(s, a->bias[i], 1, o->shape.d[0], 0, 1);
    }
    weight_is(s, a->norm_weight, 1, k, 0, 1);
    if (a->residual != WEFT_NONE && !s->status) is_like(s, in(s, 1), out(s, 0)->shape.d[0], in(s, 0));
}

static void check_rope_attr(inspection *s, const weft_attr_rope *a, const weft_tensor *t)
{
    EXPECT(s, a->n_heads > 0 && a->head_dim > 0 && (int64_t)a->n_heads * a->head_dim == t->shape.d[0],
           "%d heads of %d are not the %lld of tensor %s", a->n_heads, a->head_dim, (long long)t->shape.d[0], t->name);
    EXPECT(s, a->n_rot > 0 && a->n_rot % 2 == 0 && a->n_rot <= a->head_dim,
           "cannot rotate %d of %d elements of tensor %s", a->n_rot, a->head_dim, t->name);
    EXPECT(s, a->style == WEFT_ROPE_ADJACENT || a->style == WEFT_ROPE_HALVES, "unknown rope style %d", a->style);
    EXPECT(s, a->base > 0 && a->freq_scale > 0, "rope base %g and frequency scale %g must be positive", a->base,
           a->freq_scale);
    EXPECT(s, a->ext_factor == 0 || (a->n_ctx_orig > 0 && a->beta_fast > 0 && a->beta_slow > 0 && a->base != 1),
           "YaRN needs the original context and both betas");
}

static void check_rope(inspection *s)
{
    counts(s, 1, 1, 1);
    if (s->status) return;
    all_rows(s, in(s, 0));
    is_like(s, out(s, 0), in(s, 0)->shape.d[0], in(s, 0));
    check_rope_attr(s, &s->n->attr.rope, in(s, 0));
    weight_is(s, s->n->w[0], 1, s->n->attr.rope.n_rot / 2, 0, 1);
}

/* k and v as KV group g stores them. */
static void check_kv(inspection *s, weft_attr_kv kv, const weft_tensor *k, const weft_tensor *v)
{
    const weft_kv_group *g = group_of(s, kv);
    if (!g) return;
    all_rows(s, k);
    is_like(s, k, (int64_t)g->n_kv_heads * g->head_dim_k, k);
    is_like(s, v, (int64_t)g->n_kv_heads * g->head_dim_v, k);
}

static void check_kv_write(inspection *s)
{
    counts(s, 2, 1, 0);
    if (s->status) return;
    check_kv(s, s->n->attr.kv, in(s, 0), in(s, 1));
    order_token(s, out(s, 0));
}

static void check_rope_kv(inspection *s)
{
    const weft_attr_rope_kv *a = &s->n->attr.rope_kv;
    counts(s, 3, 2, 1);
    if (s->status) return;
    all_rows(s, in(s, 0));
    is_like(s, out(s, 0), in(s, 0)->shape.d[0], in(s, 0));
    order_token(s, out(s, 1));
    check_kv(s, a->kv, in(s, 1), in(s, 2));
    check_rope_attr(s, &a->q, in(s, 0));
    check_rope_attr(s, &a->k, in(s, 1));
    weight_is(s, s->n->w[0], 1, a->q.n_rot / 2, 0, 1);
    EXPECT(s, a->q.n_rot == a->k.n_rot && a->q.head_dim == a->k.head_dim,
           "the ropes of q and k differ in more than heads");
}

static void check_attention(inspection *s)
{
    const weft_attr_attention *a = &s->n->attr.attention;
    counts(s, 2, 1, 0);
    const weft_kv_group *g = s->status ? NULL : group_of(s, a->kv);
    if (!g) return;
    all_rows(s, in(s, 0));
    order_token(s, in(s, 1));
    EXPECT(s, a->n_kv_heads == g->n_kv_heads && a->head_dim_k == g->head_dim_k && a->head_dim_v == g->head_dim_v,
           "its key/value heads are not those of KV group %d", a->kv.group);
    EXPECT(s, a->n_heads > 0 && a->n_heads % g->n_kv_heads == 0, "%d heads cannot share %d key/value heads", a->n_heads,
           g->n_kv_heads);
    is_like(s, in(s, 0), (int64_t)a->n_heads * a->head_dim_k, in(s, 0));
    is_like(s, out(s, 0), (int64_t)a->n_heads * a->head_dim_v, in(s, 0));
    EXPECT(s, a->window >= 0, "a window of %d", a->window);
    EXPECT(s, a->scale > 0 && isfinite(a->scale),
           "a scale of %g: it must be positive, as kernels look for the largest score first", a->scale);
    EXPECT(s, g->kind != WEFT_KV_WINDOW || (a->window > 0 && a->window <= g->window),
           "window %d is more than the %d that KV group %d keeps", a->window, g->window, a->kv.group);
}

/* n_in inputs, all as wide as the output. */
static void check_elementwise(inspection *s, int n_in)
{
    counts(s, n_in, 1, 0);
    for (int i = 0; i < n_in && !s->status; i++) is_like(s, in(s, i), out(s, 0)->shape.d[0], out(s, 0));
}

static void check_glu(inspection *s)
{
    int32_t act = s->n->attr.glu.activation;
    EXPECT(s, act >= WEFT_ACT_NONE && act <= WEFT_ACT_GELU_ERF, "unknown activation %d", act);
    check_elementwise(s, 2);
}

static void check_softcap(inspection *s)
{
    EXPECT(s, s->n->attr.softcap.cap > 0, "soft-cap %g must be positive", s->n->attr.softcap.cap);
    check_elementwise(s, 1);
}

static void check_pick_rows(inspection *s)
{
    counts(s, 1, 1, 0);
    if (s->status) return;
    all_rows(s, in(s, 0));
    EXPECT(s, out(s, 0)->shape.d[1] == WEFT_WANTED && out(s, 0)->shape.d[0] == in(s, 0)->shape.d[0],
           "tensor %s must have the wanted rows of %s", out(s, 0)->name, in(s, 0)->name);
}

static void check_moe_attr(inspection *s)
{
    const weft_attr_moe *a = &s->n->attr.moe;
    EXPECT(s, a->n_experts > 0 && a->n_experts < 1 << 20 && a->n_used > 0 && a->n_used <= a->n_experts,
           "%d of %d experts", a->n_used, a->n_experts);
    EXPECT(s, a->gate == WEFT_MOE_SOFTMAX || a->gate == WEFT_MOE_SIGMOID, "unknown gate %d", a->gate);
}

static void check_moe_route(inspection *s)
{
    counts(s, 1, 1, 0);
    check_moe_attr(s);
    if (s->status) return;
    is_like(s, in(s, 0), s->n->attr.moe.n_experts, in(s, 0));
    is_like(s, out(s, 0), 2 * (int64_t)s->n->attr.moe.n_used, in(s, 0));
}

static void check_moe_ffn(inspection *s)
{
    const weft_attr_moe *a = &s->n->attr.moe;
    counts(s, 2, s->n->n_out == 2 ? 2 : 1, 3);
    check_moe_attr(s);
    EXPECT(s, a->activation > WEFT_ACT_NONE && a->activation <= WEFT_ACT_GELU_ERF, "unknown activation %d",
           a->activation);
    weight_is(s, s->n->w[0], 0, -1, -1, a->n_experts);
    if (s->status) return;
    int64_t d = in(s, 0)->shape.d[0], f = s->g->weights[s->n->w[0]].shape.d[1];
    is_like(s, in(s, 1), 2 * (int64_t)a->n_used, in(s, 0));
    is_like(s, out(s, 0), d, in(s, 0));
    if (s->n->n_out == 2) is_like(s, out(s, 1), a->n_used * f, in(s, 0));
    weight_is(s, s->n->w[0], 0, d, f, a->n_experts);
    weight_is(s, s->n->w[1], 0, d, f, a->n_experts);
    weight_is(s, s->n->w[2], 0, f, d, a->n_experts);
}

static void check_op(inspection *s)
{
    switch ((weft_opcode)s->n->op) {
    case WEFT_OP_EMBED: check_embed(s); return;
    case WEFT_OP_NORM: check_norm(s); return;
    case WEFT_OP_LINEAR: check_linear(s); return;
    case WEFT_OP_ROPE: check_rope(s); return;
    case WEFT_OP_KV_WRITE: check_kv_write(s); return;
    case WEFT_OP_ATTENTION: check_attention(s); return;
    case WEFT_OP_GLU: check_glu(s); return;
    case WEFT_OP_ADD: check_elementwise(s, 2); return;
    case WEFT_OP_SOFTCAP: check_softcap(s); return;
    case WEFT_OP_PICK_ROWS: check_pick_rows(s); return;
    case WEFT_OP_ROPE_KV: check_rope_kv(s); return;
    case WEFT_OP_MOE_ROUTE: check_moe_route(s); return;
    case WEFT_OP_MOE_FFN: check_moe_ffn(s); return;
    case WEFT_OP_COUNT: break;
    }
    fault(s, "unknown op %u", s->n->op);
}

static void check_ids(inspection *s)
{
    const weft_node *n = s->n;
    EXPECT(s, n->n_in >= 0 && n->n_in <= WEFT_NODE_IN, "%d inputs; at most %d", n->n_in, WEFT_NODE_IN);
    EXPECT(s, n->n_out >= 0 && n->n_out <= WEFT_NODE_OUT, "%d outputs; at most %d", n->n_out, WEFT_NODE_OUT);
    EXPECT(s, n->n_w >= 0 && n->n_w <= WEFT_NODE_W, "%d weights; at most %d", n->n_w, WEFT_NODE_W);
    for (int i = 0; i < n->n_in && !s->status; i++)
        EXPECT(s, n->in[i] >= 0 && n->in[i] < s->g->n_tensors, "input %d: tensor id %d does not exist", i, n->in[i]);
    for (int i = 0; i < n->n_out && !s->status; i++)
        EXPECT(s, n->out[i] >= 0 && n->out[i] < s->g->n_tensors, "output %d: tensor id %d does not exist", i,
               n->out[i]);
}

/* The bytes of a weight lie inside its buffer. */
static weft_status check_weight(const weft_weight *w, weft_error *err)
{
    weft_dtype_info type = weft_dtype_describe(w->dtype);
    const int64_t *d = w->shape.d;
    if (!type.name) return weft_fail(err, WEFT_ARGUMENT, "weight %s: unknown type %u", w->name, w->dtype);
    if (w->shape.n_dims < 1 || w->shape.n_dims > 3 || d[0] < 1 || d[0] > MAX_WIDTH || d[1] < 1 || d[1] > MAX_WIDTH ||
        d[2] < 1 || d[2] > MAX_WIDTH || d[3] != 1 || d[0] % type.block_elems)
        return weft_fail(err, WEFT_ARGUMENT, "weight %s: [%lld, %lld, %lld] is no shape for %s", w->name,
                         (long long)d[0], (long long)d[1], (long long)d[2], type.name);
    uint64_t row = (uint64_t)d[0] / type.block_elems * type.block_bytes, n_rows = (uint64_t)d[1] * (uint64_t)d[2], end;
    if (w->row_bytes < row || !weft__checked_mul(n_rows - 1, w->row_bytes, &end) ||
        !weft__checked_add(end, row, &end) || !weft__checked_add(end, w->offset, &end) || !w->buffer ||
        end > w->buffer->n_bytes)
        return weft_fail(err, WEFT_ARGUMENT, "weight %s: its bytes do not lie inside its buffer", w->name);
    return WEFT_OK;
}

static weft_status check_group(const weft_kv_group *g, int32_t i, weft_error *err)
{
    int32_t t = g->page_tokens;
    if (g->n_layers < 1 || g->n_kv_heads < 1 || g->head_dim_k < 1 || g->head_dim_v < 1 || g->n_layers > 1 << 16 ||
        g->n_kv_heads > 1 << 16 || g->head_dim_k > 1 << 16 || g->head_dim_v > 1 << 16)
        return weft_fail(err, WEFT_ARGUMENT, "KV group %d: %d layers of %d heads, %d and %d wide", i, g->n_layers,
                         g->n_kv_heads, g->head_dim_k, g->head_dim_v);
    if (t < 1 || t > MAX_PAGE_TOKENS || (t & (t - 1)))
        return weft_fail(err, WEFT_ARGUMENT, "KV group %d: pages of %d tokens; it must be a power of two up to %d", i,
                         t, MAX_PAGE_TOKENS);
    if ((g->kind != WEFT_KV_FULL && g->kind != WEFT_KV_WINDOW) || (g->kind == WEFT_KV_WINDOW) != (g->window > 0))
        return weft_fail(err, WEFT_ARGUMENT, "KV group %d: kind %d with a window of %d", i, g->kind, g->window);
    return WEFT_OK;
}

static weft_status check_tensor(const weft_tensor *t, weft_error *err)
{
    const weft_shape *s = &t->shape;
    if (s->n_dims == 2 && s->d[0] >= 0 && s->d[0] <= MAX_WIDTH && (s->d[1] == WEFT_ROWS || s->d[1] == WEFT_WANTED))
        return WEFT_OK;
    return weft_fail(err, WEFT_ARGUMENT, "tensor %s: [%lld, %lld] is no shape", t->name, (long long)s->d[0],
                     (long long)s->d[1]);
}

weft_status weft__graph_check(const weft_graph *g, weft_error *err)
{
    weft_status st = WEFT_OK;
    for (int32_t i = 0; i < g->n_weights && !st; i++) st = check_weight(&g->weights[i], err);
    for (int32_t i = 0; i < g->n_kv_groups && !st; i++) st = check_group(&g->kv_groups[i], i, err);
    for (int32_t i = 0; i < g->n_tensors && !st; i++) st = check_tensor(&g->tensors[i], err);
    for (int32_t i = 0; i < g->n_nodes && !st; i++) {
        inspection s = {g, &g->nodes[i], i, WEFT_OK, err};
        check_ids(&s);
        if (!s.status) check_op(&s);
        st = s.status;
    }
    for (int32_t i = 0; i < g->n_outputs && !st; i++) {
        weft_tensor_id t = g->outputs[i];
        if (t < 0 || t >= g->n_tensors || g->tensors[t].shape.d[0] == 0)
            st = weft_fail(err, WEFT_ARGUMENT, "output %d: tensor id %d does not exist or holds nothing", i, t);
        for (int32_t j = 0; j < i && !st; j++)
            if (g->outputs[j] == t)
                st = weft_fail(err, WEFT_ARGUMENT, "tensor %s is an output twice", g->tensors[t].name);
    }
    return st;
}
