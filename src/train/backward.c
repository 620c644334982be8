// SPDX-License-Identifier: Apache-2.0
/* backward.c: the ops of a graph, undone: from the gradient of what an op made to that of what it read and of what it
 * learns.
 *
 * Sums over rows (weights of norms, biases, embeddings) are taken column by column, each in order of the rows, by
 * whichever thread has that column: so no sum depends on the number of threads. */
#include <math.h>
#include <string.h>

#include "train/parts.h"

struct backward_job {
    weft__trainer *t;
    const struct weft__train_op *op;
};

/* ---- ops that look at one row ---- */

/* Where the gradient of input i of row r goes: its place, or `aside` where it is to be added. */
static float *target(const weft__trainer *t, const struct weft__train_op *op, int i, int64_t r, float *aside)
{
    return op->add[i] ? aside : t->gradient[op->in[i]] + r * weft__train_width(t, op->in[i]);
}

static void deliver(const weft__trainer *t, const struct weft__train_op *op, int i, int64_t r, const float *g)
{
    if (!op->wants[i] || !op->add[i]) return;
    int64_t width = weft__train_width(t, op->in[i]);
    float *to = t->gradient[op->in[i]] + r * width;
    t->k->add(to, g, width, to);
}

static double inverse_of(const float *x, int64_t n, float eps)
{
    double sum[4] = {0};
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        for (int j = 0; j < 4; j++) sum[j] += (double)x[i + j] * x[i + j];
    }
    for (; i < n; i++) sum[0] += (double)x[i] * x[i];
    return 1 / sqrt((sum[0] + sum[1] + sum[2] + sum[3]) / (double)n + eps);
}

static void norm_row(const weft__trainer *t, const struct weft__train_op *op, int64_t r, const float *g, float *aside)
{
    const weft_attr_norm *a = &op->node->attr.norm;
    int64_t width = weft__train_width(t, op->out), group = a->group ? a->group : width;
    const float *x = t->value[op->in[0]] + r * width;
    float *to = target(t, op, 0, r, aside);
    for (int64_t i = 0; i < width; i += group) {
        double inverse = inverse_of(x + i, group, a->eps);
        t->inverse[r * (width / group) + i / group] = inverse;
        if (op->wants[0]) t->k->norm_back(x + i, op->vector, g + i, inverse, group, to + i);
    }
    deliver(t, op, 0, r, to);
}

static void glu_row(const weft__trainer *t, const struct weft__train_op *op, int64_t r, const float *g, float *aside)
{
    int64_t width = weft__train_width(t, op->out);
    float *gate = op->wants[0] ? target(t, op, 0, r, aside) : aside,
          *up = op->wants[1] ? target(t, op, 1, r, aside + width) : aside + width;
    t->k->glu_back(op->node->attr.glu.activation, t->value[op->in[0]] + r * width, t->value[op->in[1]] + r * width, g,
                   width, gate, up);
    deliver(t, op, 0, r, gate);
    deliver(t, op, 1, r, up);
}

/* The derivative of cap * tanh(x / cap) is 1 - (y / cap)². */
static void softcap_row(const weft__trainer *t, const struct weft__train_op *op, int64_t r, const float *g,
                        float *aside)
{
    int64_t width = weft__train_width(t, op->out);
    const float *y = t->value[op->out] + r * width, by = 1 / op->node->attr.softcap.cap;
    float *to = target(t, op, 0, r, aside);
    for (int64_t i = 0; i < width; i++) to[i] = g[i] * (1 - y[i] * by * (y[i] * by));
    deliver(t, op, 0, r, to);
}

static void one_row(const weft__trainer *t, const struct weft__train_op *op, int64_t r, float *aside)
{
    const weft_node *n = op->node;
    int64_t width = weft__train_width(t, op->out);
    const float *g = t->gradient[op->out] + r * width;
    float *to;
    switch (n->op) {
    case WEFT_OP_NORM: norm_row(t, op, r, g, aside); break;
    case WEFT_OP_GLU: glu_row(t, op, r, g, aside); break;
    case WEFT_OP_SOFTCAP: softcap_row(t, op, r, g, aside); break;
    case WEFT_OP_ROPE:
        memcpy(to = target(t, op, 0, r, aside), g, (size_t)width * sizeof *g);
        t->k->rope(to, n->attr.rope.n_heads, n->attr.rope.head_dim, n->attr.rope.n_rot, n->attr.rope.style,
                   t->ropes[op->rope].back + (int64_t)t->pos[r] * n->attr.rope.n_rot);
        deliver(t, op, 0, r, to);
        break;
    case WEFT_OP_ADD:
        for (int i = 0; i < 2; i++) {
            if (op->wants[i] && !op->add[i]) memcpy(target(t, op, i, r, NULL), g, (size_t)width * sizeof *g);
            deliver(t, op, i, r, g);
        }
        break;
    case WEFT_OP_PICK_ROWS: /* to rows that are zero before the first chunk (loss.c) */
        memcpy(t->gradient[op->in[0]] + t->wanted[t->first_wanted + r] * width, g, (size_t)width * sizeof *g);
        break;
    default: break;
    }
}

static void run_rows(void *arg, int thread, int n_threads)
{
    const struct backward_job *j = arg;
    int64_t n = weft__train_rows(j->t, j->op), last = weft__train_share(n, thread + 1, n_threads);
    for (int64_t r = weft__train_share(n, thread, n_threads); r < last; r++)
        one_row(j->t, j->op, r, j->t->threads[thread].row);
}

/* ---- sums over rows ---- */

static void norm_columns(const weft__trainer *t, const struct weft__train_op *op, int64_t first, int64_t last)
{
    int64_t width = weft__train_width(t, op->out),
            group = op->node->attr.norm.group ? op->node->attr.norm.group : width, n = width / group;
    const float *x = t->value[op->in[0]], *g = t->gradient[op->out];
    for (int64_t i = 0; i < weft__train_rows(t, op) * n; i++) {
        float inverse = (float)t->inverse[i];
        for (int64_t c = first; c < last; c++) op->vector_grad[c] += g[i * group + c] * x[i * group + c] * inverse;
    }
}

static void embed_columns(const weft__trainer *t, const struct weft__train_op *op, int64_t first, int64_t last)
{
    int64_t width = weft__train_width(t, op->out);
    float scale = op->node->attr.embed.scale;
    for (int64_t r = 0; r < t->batch->n_rows; r++) {
        float *to = op->w_grad + t->batch->token[r] * width;
        const float *g = t->gradient[op->out] + r * width;
        for (int64_t c = first; c < last; c++) to[c] += scale * g[c];
    }
}

static void bias_columns(const weft__trainer *t, const struct weft__train_op *op, int64_t first, int64_t last)
{
    int64_t width = weft__train_width(t, op->out), rows = weft__train_rows(t, op);
    for (int64_t r = 0; r < rows; r++) {
        const float *g = t->gradient[op->out] + r * width;
        for (int64_t c = first; c < last; c++) op->vector_grad[c] += g[c];
    }
}

static void run_columns(void *arg, int thread, int n_threads)
{
    const struct backward_job *j = arg;
    const weft_node *n = j->op->node;
    int64_t width =
        n->op == WEFT_OP_NORM && n->attr.norm.group ? n->attr.norm.group : weft__train_width(j->t, j->op->out);
    int64_t units = (width + 15) / 16, first = weft__train_share(units, thread, n_threads) * 16,
            last = weft__train_share(units, thread + 1, n_threads) * 16;
    if (last > width) last = width;
    if (n->op == WEFT_OP_NORM) norm_columns(j->t, j->op, first, last);
    else if (n->op == WEFT_OP_EMBED) embed_columns(j->t, j->op, first, last);
    else bias_columns(j->t, j->op, first, last);
}

/* ---- products ---- */

static void scale_shrunk(void *arg, int thread, int n_threads)
{
    const struct backward_job *j = arg;
    weft__trainer *t = j->t;
    int64_t n = weft__train_rows(t, j->op), first = weft__train_share(n, thread, n_threads),
            last = weft__train_share(n, thread + 1, n_threads);
    float *at = t->shrunk_grad + first * t->o.lora_rank;
    t->k->scale(at, t->lora_scale, (last - first) * t->o.lora_rank, at);
}

/* With h = scale * A x, of which y had B h: dB += dy^T h, dh = scale * B^T dy, dA += dh^T x, dx += A^T dh. */
static void pair_back(weft__trainer *t, const struct weft__train_op *op)
{
    int64_t rows = weft__train_rows(t, op), k = weft__train_width(t, op->in[0]), n = weft__train_width(t, op->out),
            rank = t->o.lora_rank;
    const float *g = t->gradient[op->out];
    struct weft__trainer_weight *a = &t->params[t->pairs[op->pair].a], *b = &t->params[t->pairs[op->pair].b];
    weft__train_product p = {.m = rows,
                             .n = rank,
                             .k = n,
                             .a = g,
                             .lda = n,
                             .b_across = 1,
                             .c = t->shrunk_grad,
                             .ldc = rank,
                             .a_mark = t->a_mark};
    p.b = weft__train_rows_of_floats(b->data + op->pair_row * rank, rank);
    weft__train_multiply(t, &p);
    weft__pool_run(t->pool, scale_shrunk, &(struct backward_job){t, op});
    p = (weft__train_product){
        .m = n, .n = rank, .k = rows, .a = g, .lda = n, .a_across = 1, .b_across = 1, .ldc = rank, .add = 1};
    p.b = weft__train_rows_of_floats(op->shrunk, rank);
    p.c = b->grad + op->pair_row * rank;
    weft__train_multiply(t, &p);
    p = (weft__train_product){.m = rank,
                              .n = k,
                              .k = rows,
                              .a = t->shrunk_grad,
                              .lda = rank,
                              .a_across = 1,
                              .b_across = 1,
                              .c = a->grad,
                              .ldc = k,
                              .add = 1};
    p.b = weft__train_rows_of_floats(t->value[op->in[0]], k);
    weft__train_multiply(t, &p);
    if (!op->wants[0]) return;
    p = (weft__train_product){
        .m = rows, .n = k, .k = rank, .a = t->shrunk_grad, .lda = rank, .b_across = 1, .ldc = k, .add = 1};
    p.b = weft__train_rows_of_floats(a->data, k);
    p.c = t->gradient[op->in[0]];
    weft__train_multiply(t, &p);
}

static void linear(weft__trainer *t, const struct weft__train_op *op)
{
    int64_t rows = weft__train_rows(t, op), k = weft__train_width(t, op->in[0]), n = weft__train_width(t, op->out);
    const float *g = t->gradient[op->out];
    t->a_mark++;
    if (op->wants[0]) {
        weft__train_product p = {.m = rows,
                                 .n = k,
                                 .k = n,
                                 .a = g,
                                 .lda = n,
                                 .b = op->w,
                                 .b_across = 1,
                                 .c = t->gradient[op->in[0]],
                                 .ldc = k,
                                 .add = op->add[0],
                                 .rounded = !op->w_grad,
                                 .a_mark = t->a_mark};
        weft__train_multiply(t, &p);
    }
    if (op->pair >= 0 && t->fisher && t->fisher->sees) weft__train_fisher_see(t, op);
    if (op->pair >= 0) pair_back(t, op);
    if (op->w_grad) {
        weft__train_product p = {.m = n,
                                 .n = k,
                                 .k = rows,
                                 .a = g,
                                 .lda = n,
                                 .a_across = 1,
                                 .b_across = 1,
                                 .c = op->w_grad,
                                 .ldc = k,
                                 .add = 1};
        p.b = weft__train_rows_of_floats(t->value[op->in[0]], k);
        weft__train_multiply(t, &p);
    }
    if (op->vector_grad) weft__pool_run(t->pool, run_columns, &(struct backward_job){t, op});
}

void weft__train_backward(weft__trainer *t, int32_t first, int32_t last)
{
    for (int32_t i = last - 1; i >= first; i--) {
        const struct weft__train_op *op = &t->ops[i];
        if (!op->learns) continue;
        if (weft__train_stopped(t)) return;
        switch (op->node->op) {
        case WEFT_OP_LINEAR: linear(t, op); break;
        case WEFT_OP_ATTENTION: weft__train_attend_back(t, op); break;
        case WEFT_OP_KV_WRITE: break;
        case WEFT_OP_EMBED: weft__pool_run(t->pool, run_columns, &(struct backward_job){t, op}); break;
        default:
            weft__pool_run(t->pool, run_rows, &(struct backward_job){t, op});
            if (op->vector_grad) weft__pool_run(t->pool, run_columns, &(struct backward_job){t, op});
        }
    }
}
