// SPDX-License-Identifier: Apache-2.0
/* layout.c: a graph as a list of ops to go through and back: what each needs, and where everything lies. */
#include <math.h>
#include <string.h>

#include "graph/attr/rope.h"
#include "base/alloc.h"
#include "base/check.h"
#include "mem/mem.h"
#include "train/optimizer.h"
#include "train/params.h"
#include "train/served.h"

enum { CHUNK_FLOATS = 1 << 23 /* of logits at a time */, MIN_CHUNK = 16 };

static weft_status layout_no_memory(const weft__trainer *t, weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "%s: no memory to train it", t->src.label);
}

/* ---- ops ---- */

static weft_status supported(const weft__trainer *t, const weft_node *n, weft_error *err)
{
    switch (n->op) {
    case WEFT_OP_MOE_ROUTE:
    case WEFT_OP_MOE_FFN:
        return weft_fail(err, WEFT_UNSUPPORTED, "%s: mixtures of experts cannot be trained here; choose a dense model",
                         t->src.label);
    case WEFT_OP_ROPE_KV: return weft_fail(err, WEFT_INTERNAL, "%s: a fused graph", t->src.label);
    case WEFT_OP_NORM:
        if (n->attr.norm.kind == WEFT_NORM_RMS) return WEFT_OK;
        return weft_fail(err, WEFT_UNSUPPORTED, "%s: layer norms cannot be trained here", t->src.label);
    case WEFT_OP_EMBED:
    case WEFT_OP_LINEAR:
    case WEFT_OP_ROPE:
    case WEFT_OP_KV_WRITE:
    case WEFT_OP_ATTENTION:
    case WEFT_OP_GLU:
    case WEFT_OP_ADD:
    case WEFT_OP_SOFTCAP:
    case WEFT_OP_PICK_ROWS: return WEFT_OK;
    default:
        return weft_fail(err, WEFT_UNSUPPORTED, "%s: it has an op that cannot be trained here (%d)", t->src.label,
                         (int)n->op);
    }
}

/* Attention reads k and v from pages; here, from the tensors that were written there. */
static const weft_node *writer_of(const weft_graph *g, weft_tensor_id order)
{
    for (int32_t i = 0; i < g->n_nodes; i++)
        if (g->nodes[i].op == WEFT_OP_KV_WRITE && g->nodes[i].out[0] == order) return &g->nodes[i];
    return NULL; /* builder_finish saw one */
}

static void set_inputs(const weft__trainer *t, struct weft__train_op *op)
{
    const weft_node *n = op->node;
    op->out = n->out[0];
    if (n->op == WEFT_OP_KV_WRITE) return;
    op->n_in = n->n_in;
    for (int32_t i = 0; i < n->n_in; i++) op->in[i] = n->in[i];
    if (n->op != WEFT_OP_ATTENTION) return;
    const weft_node *kv = writer_of(t->graph, n->in[1]);
    op->n_in = 3;
    op->in[1] = kv->in[0];
    op->in[2] = kv->in[1];
}

/* The weights of an op: where they lie in the file, or the parameter that began as them. */
static void set_weights(weft__trainer *t, struct weft__train_op *op)
{
    const weft_node *n = op->node;
    weft_weight_id vector = n->op == WEFT_OP_NORM     ? n->w[0]
                            : n->op == WEFT_OP_LINEAR ? n->attr.linear.bias[0]
                                                      : WEFT_NONE;
    weft_weight_id matrix = n->op == WEFT_OP_EMBED || n->op == WEFT_OP_LINEAR ? n->w[0] : WEFT_NONE;
    if (vector != WEFT_NONE) {
        const weft_weight *w = &t->graph->weights[vector];
        int32_t p = weft__train_param_find(t, w->name);
        op->vector =
            p >= 0 ? t->params[p].data : (const float *)(const void *)((const uint8_t *)w->buffer->data + w->offset);
        op->vector_grad = p >= 0 ? t->params[p].grad : NULL;
    }
    if (matrix != WEFT_NONE) {
        const weft_weight *w = &t->graph->weights[matrix];
        int32_t p = weft__train_param_find(t, w->name);
        op->w = (weft__train_rows_of){(const uint8_t *)w->buffer->data + w->offset, w->row_bytes, w->dtype};
        if (p >= 0) {
            int64_t at = weft__train_param_row(t, matrix) * w->shape.d[0];
            op->w = weft__train_rows_of_floats(t->params[p].data + at, w->shape.d[0]);
            op->w_grad = t->params[p].grad + at;
        }
    }
    op->pair = weft__train_lora_of(t, n);
    if (op->pair >= 0) op->pair_row = weft__train_param_row(t, n->w[0]);
}

static weft_status set_ops(weft__trainer *t, weft_error *err)
{
    const weft_graph *g = t->graph;
    t->ops = weft__train_own(t, (size_t)g->n_nodes, sizeof *t->ops);
    t->segments = weft__train_own(t, (size_t)g->n_nodes, sizeof *t->segments);
    if (!t->ops || !t->segments) return layout_no_memory(t, err);
    for (int head = 0; head < 2; head++) {
        for (int32_t i = 0; i < g->n_nodes; i++) {
            const weft_node *n = &g->nodes[i];
            if ((g->tensors[n->out[0]].shape.d[1] == WEFT_WANTED) != head) continue;
            struct weft__train_op *op = &t->ops[t->n_ops];
            weft_status st = supported(t, n, err);
            if (st) return st;
            op->node = n;
            op->segment = -1;
            if (!head) {
                if (t->n_ops == 0 || n->layer != op[-1].node->layer) t->segments[t->n_segments++].first = t->n_ops;
                op->segment = t->n_segments - 1;
                t->segments[op->segment].last = t->n_ops + 1;
                t->n_body++;
            }
            set_inputs(t, op);
            set_weights(t, op);
            op->same_in = t->n_ops > 0 && n->op == WEFT_OP_LINEAR && op[-1].node->op == WEFT_OP_LINEAR &&
                          op[-1].in[0] == op->in[0];
            if (n->op == WEFT_OP_PICK_ROWS) t->hidden = n->in[0];
            t->n_ops++;
        }
    }
    t->logits = g->outputs[0];
    return WEFT_OK;
}

/* Which gradients are needed: those of tensors that something which learns has a part in. */
static weft_status set_wants(weft__trainer *t, weft_error *err)
{
    uint8_t *needed = weft__alloc_zero((size_t)t->graph->n_tensors, 1);
    if (!needed) return layout_no_memory(t, err);
    for (int32_t i = 0; i < t->n_ops; i++) {
        struct weft__train_op *op = &t->ops[i];
        op->learns = op->w_grad || op->vector_grad || op->pair >= 0;
        for (int32_t j = 0; j < op->n_in; j++) {
            op->wants[j] = needed[op->in[j]];
            op->learns |= op->wants[j];
        }
        needed[op->out] = (uint8_t)op->learns;
    }
    weft__free(needed);
    return WEFT_OK;
}

/* ---- memory ---- */

/* Offsets in floats are given out first, with the arena not yet there; `at` counts them. */
struct places {
    weft__trainer *t;
    int64_t *value, *gradient; /* [tensors], -1: none */
    uint64_t at;
    int overflow;
};

static int64_t layout_take(struct places *s, int64_t width, int64_t rows)
{
    uint64_t n, here = s->at;
    if (!weft__checked_mul((uint64_t)width, (uint64_t)rows, &n) || !weft__checked_align(n, 16, &n) ||
        !weft__checked_add(s->at, n, &s->at) || s->at > INT64_MAX / 8)
        s->overflow = 1;
    return (int64_t)here;
}

static int64_t rows_of(const weft__trainer *t, weft_tensor_id id)
{
    return t->graph->tensors[id].shape.d[1] == WEFT_WANTED ? t->chunk : t->max_rows;
}

/* The segment that a tensor does not leave, or -1. */
static int32_t segment_of(const weft__trainer *t, int32_t producer)
{
    const struct weft__train_op *op = &t->ops[producer];
    for (int32_t i = producer + 1; i < t->n_ops; i++) {
        for (int32_t j = 0; j < t->ops[i].n_in; j++)
            if (t->ops[i].in[j] == op->out && t->ops[i].segment != op->segment) return -1;
    }
    return op->segment;
}

/* Values: each its own place; with recomputation, those inside segments begin at the same place in each. */
static void place_values(struct places *s)
{
    const weft__trainer *t = s->t;
    for (int32_t i = 0; i < t->n_ops; i++)
        if (t->ops[i].node->op != WEFT_OP_KV_WRITE && (!t->o.recompute || segment_of(t, i) < 0))
            s->value[t->ops[i].out] = layout_take(s, weft__train_width(t, t->ops[i].out), rows_of(t, t->ops[i].out));
    if (!t->o.recompute) return;
    const uint64_t base = s->at;
    uint64_t most = base;
    for (int32_t g = 0; g < t->n_segments; g++, s->at = base) {
        for (int32_t i = t->segments[g].first; i < t->segments[g].last; i++)
            if (t->ops[i].node->op != WEFT_OP_KV_WRITE && s->value[t->ops[i].out] < 0)
                s->value[t->ops[i].out] = layout_take(s, weft__train_width(t, t->ops[i].out), t->max_rows);
        if (s->at > most) most = s->at;
    }
    s->at = most;
}

/* A place for gradients of one width; those of tensors whose time is over are used again. */
struct layout_slot {
    int64_t width, at;
    int busy;
};

static int64_t slot_for(struct places *s, struct layout_slot *slots, int32_t *n, int64_t width)
{
    for (int32_t i = 0; i < *n; i++) {
        if (slots[i].busy || slots[i].width != width) continue;
        slots[i].busy = 1;
        return slots[i].at;
    }
    slots[*n] = (struct layout_slot){width, layout_take(s, width, s->t->max_rows), 1};
    return slots[(*n)++].at;
}

static void place_gradients(struct places *s, struct layout_slot *slots)
{
    weft__trainer *t = s->t;
    int32_t n = 0;
    for (int32_t i = t->n_ops - 1; i >= 0; i--) {
        struct weft__train_op *op = &t->ops[i];
        for (int32_t j = 0; op->learns && j < op->n_in; j++) {
            if (!op->wants[j]) continue;
            op->add[j] = s->gradient[op->in[j]] >= 0;
            if (op->add[j]) continue;
            int64_t width = weft__train_width(t, op->in[j]);
            int body = rows_of(t, op->in[j]) == t->max_rows && t->graph->tensors[op->in[j]].shape.d[1] == WEFT_ROWS;
            s->gradient[op->in[j]] = body ? slot_for(s, slots, &n, width) : layout_take(s, width, t->chunk);
        }
        for (int32_t k = 0; k < n; k++)
            if (op->segment >= 0 && slots[k].at == s->gradient[op->out]) slots[k].busy = 0;
    }
}

static weft_status place_all(weft__trainer *t, weft_error *err)
{
    size_t n = (size_t)t->graph->n_tensors;
    struct places s = {.t = t};
    struct layout_slot *slots = weft__alloc_zero(n, sizeof *slots);
    s.value = weft__alloc_array(n, sizeof *s.value);
    s.gradient = weft__alloc_array(n, sizeof *s.gradient);
    t->value = weft__train_own(t, n, sizeof *t->value);
    t->gradient = weft__train_own(t, n, sizeof *t->gradient);
    weft_status st = slots && s.value && s.gradient && t->value && t->gradient ? WEFT_OK : layout_no_memory(t, err);
    if (st) goto done;
    for (size_t i = 0; i < n; i++) s.value[i] = s.gradient[i] = -1;
    s.gradient[t->logits] = layout_take(&s, weft__train_width(t, t->logits), t->chunk);
    place_values(&s);
    place_gradients(&s, slots);
    if (s.overflow) {
        st =
            weft_fail(err, WEFT_LIMIT, "%s: batches of %d rows are too large; choose fewer", t->src.label, t->max_rows);
        goto done;
    }
    weft_buffer_spec spec = {sizeof spec, WEFT_DOMAIN_HOST, s.at * sizeof(float), 64, WEFT_BUFFER_HUGE};
    if ((st = weft__mem_create(&spec, &t->arena, err))) goto done;
    t->n_bytes += spec.n_bytes;
    for (size_t i = 0; i < n; i++) {
        if (s.value[i] >= 0) t->value[i] = (float *)t->arena->data + s.value[i];
        if (s.gradient[i] >= 0) t->gradient[i] = (float *)t->arena->data + s.gradient[i];
    }
done:
    weft__free(s.gradient);
    weft__free(s.value);
    weft__free(slots);
    return st;
}

/* ---- what else an op keeps ---- */

static int same_rope(const weft_attr_rope *a, const weft_attr_rope *b)
{
    return a->n_rot == b->n_rot && a->base == b->base && a->freq_scale == b->freq_scale &&
           a->ext_factor == b->ext_factor && a->attn_factor == b->attn_factor && a->beta_fast == b->beta_fast &&
           a->beta_slow == b->beta_slow && a->n_ctx_orig == b->n_ctx_orig;
}

static weft_status set_rope(weft__trainer *t, struct weft__train_op *op, weft_error *err)
{
    const weft_attr_rope *a = &op->node->attr.rope;
    weft_weight_id factors = op->node->w[0];
    for (op->rope = 0; op->rope < t->n_ropes; op->rope++)
        if (t->ropes[op->rope].factors == factors && same_rope(&t->ropes[op->rope].attr, a)) return WEFT_OK;
    struct weft__train_rope *rope = &t->ropes[t->n_ropes++];
    size_t pairs = (size_t)a->n_rot / 2, n = (size_t)t->n_ctx * pairs;
    double *freq = weft__train_own(t, pairs, sizeof *freq);
    *rope = (struct weft__train_rope){*a, factors, weft__train_own(t, n, 2 * sizeof(float)),
                                      weft__train_own(t, n, 2 * sizeof(float))};
    if (!freq || !rope->forth || !rope->back) return layout_no_memory(t, err);
    const weft_weight *w = factors == WEFT_NONE ? NULL : &t->graph->weights[factors];
    weft__graph_rope_frequencies(
        a, w ? (const float *)(const void *)((const uint8_t *)w->buffer->data + w->offset) : NULL, freq);
    for (size_t i = 0; i < n; i++) {
        double angle = (double)(i / pairs) * freq[i % pairs];
        rope->forth[2 * i] = rope->back[2 * i] = (float)(cos(angle) * a->attn_factor);
        rope->forth[2 * i + 1] = (float)(sin(angle) * a->attn_factor);
        rope->back[2 * i + 1] = -rope->forth[2 * i + 1];
    }
    return WEFT_OK;
}

static weft_status set_kept(weft__trainer *t, weft_error *err)
{
    t->ropes = weft__train_own(t, (size_t)t->n_ops, sizeof *t->ropes);
    if (!t->ropes) return layout_no_memory(t, err);
    for (int32_t i = 0; i < t->n_ops; i++) {
        struct weft__train_op *op = &t->ops[i];
        size_t rows = (size_t)rows_of(t, op->out);
        weft_status st = op->node->op == WEFT_OP_ROPE ? set_rope(t, op, err) : WEFT_OK;
        if (st) return st;
        if (op->pair >= 0 && !(op->shrunk = weft__train_own(t, rows * (size_t)t->o.lora_rank, sizeof *op->shrunk)))
            return layout_no_memory(t, err);
        if (op->node->op == WEFT_OP_ATTENTION &&
            !(op->lse = weft__train_own(t, rows * (size_t)op->node->attr.attention.n_heads, sizeof *op->lse)))
            return layout_no_memory(t, err);
    }
    return WEFT_OK;
}

/* ---- scratch ---- */

static void most(int64_t *x, int64_t value)
{
    if (value > *x) *x = value;
}

static weft_status set_scratch(weft__trainer *t, weft_error *err)
{
    const int64_t pad = WEFT__GEMM_MAX_MR, rank = t->o.lora_rank, rows = t->max_rows, queries = WEFT__TRAIN_QUERY_ROWS;
    const uint32_t tiers = weft__tier_mask();
    weft__train_room room = {.left = 1, .alone = 1};
    int64_t widest = 1, groups = 1;
    for (int32_t i = 0; i < t->n_ops; i++) {
        const struct weft__train_op *op = &t->ops[i];
        const weft_node *n = op->node;
        int64_t width = weft__train_width(t, op->out), op_rows = rows_of(t, op->out);
        if (op->segment >= 0 || n->op != WEFT_OP_LINEAR) most(&widest, width);
        if (n->op == WEFT_OP_NORM && n->attr.norm.group) most(&groups, width / n->attr.norm.group);
        if (n->op == WEFT_OP_LINEAR) {
            int64_t k = weft__train_width(t, op->in[0]), most_of = k > width ? k : width;
            most(&room.left, (op_rows + pad) * (most_of > rank ? most_of : rank));
            most(&room.left, ((most_of > rank ? most_of : rank) + pad) * op_rows);
            if (!op->w_grad && !t->o.exact) weft__train_served_room(&room, op->w.dtype, tiers, op_rows, k);
        }
        if (n->op == WEFT_OP_ATTENTION) {
            int64_t dim = n->attr.attention.head_dim_k > n->attr.attention.head_dim_v ? n->attr.attention.head_dim_k
                                                                                      : n->attr.attention.head_dim_v;
            most(&room.alone, (queries + pad) * (t->n_ctx > dim ? t->n_ctx : dim));
            most(&room.alone, (t->n_ctx + pad) * queries);
        }
    }
    t->threads = weft__train_own(t, (size_t)t->n_threads, sizeof *t->threads);
    t->inverse = weft__train_own(t, (size_t)(rows * groups), sizeof *t->inverse);
    t->shrunk_grad = weft__train_own(t, (size_t)(rows * (rank > 0 ? rank : 1)), sizeof *t->shrunk_grad);
    if (!t->threads || !t->inverse || !t->shrunk_grad) return layout_no_memory(t, err);
    for (int32_t i = 0; i < t->n_threads; i++) {
        t->threads[i].row = weft__train_own(t, 2 * (size_t)widest, sizeof(float));
        t->threads[i].score = weft__train_own(t, 3 * (size_t)(queries * t->max_rows), sizeof(float));
        if (!t->threads[i].row || !t->threads[i].score) return layout_no_memory(t, err);
    }
    weft_status st = weft__train_optimizer_open(t, &room.left, err);
    if (st) return st;
    st = weft__train_multiplier_create(t->pool, tiers, t->o.exact, &room, &t->x, err);
    if (!st) t->n_bytes += weft__train_multiplier_bytes(t->x);
    return st;
}

weft_status weft__train_layout(weft__trainer *t, weft_error *err)
{
    int64_t chunk = CHUNK_FLOATS / (t->hp.n_vocab > 0 ? t->hp.n_vocab : 1);
    t->chunk = t->o.head_rows ? t->o.head_rows : (int32_t)(chunk < MIN_CHUNK ? MIN_CHUNK : chunk);
    if (t->chunk > t->max_rows) t->chunk = t->max_rows;
    weft_status st;
    if ((st = set_ops(t, err)) || (st = set_wants(t, err)) || (st = place_all(t, err)) || (st = set_kept(t, err)))
        return st;
    return set_scratch(t, err);
}
