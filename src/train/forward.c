// SPDX-License-Identifier: Apache-2.0
/* forward.c: the ops of a graph over packed rows, each with all threads. Rows are shared evenly; which thread has a row
 * does not show. */
#include <string.h>

#include "train/parts.h"

/* A job of the pool: one op. */
struct forward_job {
    weft__trainer *t;
    const struct weft__train_op *op;
};

void weft__train_multiply(weft__trainer *t, const weft__train_product *p)
{
    if (t->counting) t->flops += 2.0 * (double)p->m * (double)p->n * (double)p->k;
    weft__train_multiplier_run(t->x, p);
}

static void embed_row(const weft__trainer *t, const struct weft__train_op *op, int64_t r, float *y)
{
    int64_t width = weft__train_width(t, op->out);
    t->k->decode_row(op->w.dtype, op->w.data + (uint64_t)t->batch->token[r] * op->w.row_bytes, width, y);
    if (op->node->attr.embed.scale != 1) t->k->scale(y, op->node->attr.embed.scale, width, y);
}

static void norm_row(const weft__trainer *t, const struct weft__train_op *op, const float *x, float *y)
{
    const weft_attr_norm *a = &op->node->attr.norm;
    int64_t width = weft__train_width(t, op->out), group = a->group ? a->group : width;
    for (int64_t i = 0; i < width; i += group) t->k->norm_rms(x + i, op->vector, a->eps, group, y + i);
}

static void rope_row(const weft__trainer *t, const struct weft__train_op *op, int64_t r, const float *x, float *y)
{
    const weft_attr_rope *a = &op->node->attr.rope;
    memcpy(y, x, (size_t)weft__train_width(t, op->out) * sizeof *y);
    t->k->rope(y, a->n_heads, a->head_dim, a->n_rot, a->style,
               t->ropes[op->rope].forth + (int64_t)t->pos[r] * a->n_rot);
}

/* Row r of an op that looks at one row only. */
static void one_row(const weft__trainer *t, const struct weft__train_op *op, int64_t r)
{
    const weft_node *n = op->node;
    int64_t width = weft__train_width(t, op->out);
    float *y = t->value[op->out] + r * width;
    const float *x = op->n_in > 0 ? t->value[op->in[0]] + r * width : NULL,
                *z = op->n_in > 1 ? t->value[op->in[1]] + r * width : NULL;
    switch (n->op) {
    case WEFT_OP_EMBED: embed_row(t, op, r, y); break;
    case WEFT_OP_NORM: norm_row(t, op, x, y); break;
    case WEFT_OP_ROPE: rope_row(t, op, r, x, y); break;
    case WEFT_OP_GLU: t->k->glu(n->attr.glu.activation, x, z, width, y); break;
    case WEFT_OP_ADD: t->k->add(x, z, width, y); break;
    case WEFT_OP_SOFTCAP: t->k->softcap(x, n->attr.softcap.cap, width, y); break;
    case WEFT_OP_PICK_ROWS:
        memcpy(y, t->value[op->in[0]] + t->wanted[t->first_wanted + r] * width, (size_t)width * sizeof *y);
        break;
    default: break; /* layout.c lets no other pass */
    }
}

static void run_rows(void *arg, int thread, int n_threads)
{
    const struct forward_job *j = arg;
    int64_t n = weft__train_rows(j->t, j->op), last = weft__train_share(n, thread + 1, n_threads);
    for (int64_t r = weft__train_share(n, thread, n_threads); r < last; r++) one_row(j->t, j->op, r);
}

/* Bias, and the factor of LoRA, which `shrunk` takes. */
static void run_linear_rows(void *arg, int thread, int n_threads)
{
    const struct forward_job *j = arg;
    weft__trainer *t = j->t;
    const struct weft__train_op *op = j->op;
    int64_t n = weft__train_rows(t, op), last = weft__train_share(n, thread + 1, n_threads),
            width = weft__train_width(t, op->out);
    int64_t rank = t->o.lora_rank;
    for (int64_t r = weft__train_share(n, thread, n_threads); r < last; r++) {
        float *y = t->value[op->out] + r * width;
        if (op->vector) t->k->add(y, op->vector, width, y);
        if (op->pair >= 0 && t->adapter_on)
            t->k->scale(op->shrunk + r * rank, t->lora_scale, rank, op->shrunk + r * rank);
    }
}

static void linear(weft__trainer *t, const struct weft__train_op *op, int same_in)
{
    if (!same_in) t->a_mark++;
    int64_t rows = weft__train_rows(t, op), k = weft__train_width(t, op->in[0]), n = weft__train_width(t, op->out),
            rank = t->o.lora_rank;
    int lora = op->pair >= 0 && t->adapter_on;
    weft__train_product p = {.m = rows,
                             .n = n,
                             .k = k,
                             .a = t->value[op->in[0]],
                             .lda = k,
                             .b = op->w,
                             .c = t->value[op->out],
                             .ldc = n,
                             .rounded = !op->w_grad,
                             .a_mark = t->a_mark};
    weft__train_multiply(t, &p);
    if (lora) {
        p = (weft__train_product){.m = rows,
                                  .n = rank,
                                  .k = k,
                                  .a = t->value[op->in[0]],
                                  .lda = k,
                                  .c = op->shrunk,
                                  .ldc = rank,
                                  .a_mark = t->a_mark};
        p.b = weft__train_rows_of_floats(t->params[t->pairs[op->pair].a].data, k);
        weft__train_multiply(t, &p);
    }
    if (op->vector || lora) weft__pool_run(t->pool, run_linear_rows, &(struct forward_job){t, op});
    if (!lora) return;
    p = (weft__train_product){
        .m = rows, .n = n, .k = rank, .a = op->shrunk, .lda = rank, .c = t->value[op->out], .ldc = n, .add = 1};
    p.b = weft__train_rows_of_floats(t->params[t->pairs[op->pair].b].data + op->pair_row * rank, rank);
    weft__train_multiply(t, &p);
}

void weft__train_forward(weft__trainer *t, int32_t first, int32_t last)
{
    for (int32_t i = first; i < last; i++) {
        const struct weft__train_op *op = &t->ops[i];
        if (weft__train_stopped(t)) return;
        switch (op->node->op) {
        case WEFT_OP_LINEAR: linear(t, op, i > first && op->same_in); break;
        case WEFT_OP_ATTENTION: weft__train_attend(t, op); break;
        case WEFT_OP_KV_WRITE: break; /* attention reads k and v where they are */
        default: weft__pool_run(t->pool, run_rows, &(struct forward_job){t, op});
        }
    }
}
