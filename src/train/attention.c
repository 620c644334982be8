// SPDX-License-Identifier: Apache-2.0
/* attention.c: causal attention inside the segments of a batch, and back.
 *
 * One unit of work is a segment and a key/value head, with all query heads that share it; a thread takes a unit whole,
 * so that sums over queries (the gradients of keys and values) have one order. Queries go in blocks of
 * WEFT__TRAIN_QUERY_ROWS rows against the keys they may see; scores are made again on the way back from the saved
 * log-sums (Dao et al. 2022), never kept. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "train/parts.h"

struct attend {
    weft__trainer *t;
    const struct weft__train_op *op;
    const weft_attr_attention *a;
    int back;
    atomic_int next;
};

/* A block of queries of one head: rows [row, row + n_q) of the batch against rows [key, key + n_k). */
struct block {
    int64_t row, n_q, key, n_k, begin; /* begin: of the segment */
    int32_t head, kv_head;
    float *s, *dp, *capped; /* [n_q, n_k] */
};

/* Columns of the block that query i of it sees: [*from, *to). */
static void visible(const struct attend *j, const struct block *b, int64_t i, int64_t *from, int64_t *to)
{
    int64_t row = b->row + i,
            first = j->a->window > 0 && row - j->a->window + 1 > b->begin ? row - j->a->window + 1 : b->begin;
    *from = first - b->key;
    *to = row + 1 - b->key;
}

static int64_t q_width(const struct attend *j)
{
    return (int64_t)j->a->n_heads * j->a->head_dim_k;
}
static int64_t k_width(const struct attend *j)
{
    return (int64_t)j->a->n_kv_heads * j->a->head_dim_k;
}
static int64_t v_width(const struct attend *j)
{
    return (int64_t)j->a->n_kv_heads * j->a->head_dim_v;
}
static int64_t o_width(const struct attend *j)
{
    return (int64_t)j->a->n_heads * j->a->head_dim_v;
}

/* Where the head's part of row `row` lies. */
static float *part(float *data, int64_t row, int64_t width, int32_t head, int32_t dim)
{
    return data + row * width + (int64_t)head * dim;
}

/* s = scores of the block, scaled and capped, in the columns each query sees. */
static void scores(const struct attend *j, int thread, const struct block *b)
{
    const weft__trainer *t = j->t;
    const weft_attr_attention *a = j->a;
    weft__train_product p = {.m = b->n_q, .n = b->n_k, .k = a->head_dim_k, .lda = q_width(j), .c = b->s, .ldc = b->n_k};
    p.a = part(t->value[j->op->in[0]], b->row, q_width(j), b->head, a->head_dim_k);
    p.b = weft__train_rows_of_floats(part(t->value[j->op->in[1]], b->key, k_width(j), b->kv_head, a->head_dim_k),
                                     k_width(j));
    weft__train_multiplier_run_alone(t->x, thread, &p);
    for (int64_t i = 0; i < b->n_q; i++) {
        int64_t from, to;
        visible(j, b, i, &from, &to);
        float *s = b->s + i * b->n_k + from;
        t->k->scale(s, a->scale, to - from, s);
        if (a->softcap != 0) t->k->softcap(s, a->softcap, to - from, s);
    }
}

/* Scores become e^(s - shift), and 0 where the query sees nothing. Returns the sum. */
static double exponentials(const struct attend *j, const struct block *b, int64_t i, const float *shift)
{
    int64_t from, to;
    visible(j, b, i, &from, &to);
    float *s = b->s + i * b->n_k;
    float most = shift ? *shift : s[from + j->t->k->argmax(s + from, to - from)];
    double sum = j->t->k->exp_sum(s + from, most, to - from, s + from);
    memset(s, 0, (size_t)from * sizeof *s);
    memset(s + to, 0, (size_t)(b->n_k - to) * sizeof *s);
    if (!shift) j->op->lse[(b->row + i) * j->a->n_heads + b->head] = (float)(most + log(sum));
    return sum;
}

static void forward_block(const struct attend *j, int thread, const struct block *b)
{
    const weft__trainer *t = j->t;
    const weft_attr_attention *a = j->a;
    double sum[WEFT__TRAIN_QUERY_ROWS];
    scores(j, thread, b);
    for (int64_t i = 0; i < b->n_q; i++) sum[i] = exponentials(j, b, i, NULL);
    float *out = part(t->value[j->op->out], b->row, o_width(j), b->head, a->head_dim_v);
    weft__train_product p = {.m = b->n_q,
                             .n = a->head_dim_v,
                             .k = b->n_k,
                             .a = b->s,
                             .lda = b->n_k,
                             .b_across = 1,
                             .c = out,
                             .ldc = o_width(j)};
    p.b = weft__train_rows_of_floats(part(t->value[j->op->in[2]], b->key, v_width(j), b->kv_head, a->head_dim_v),
                                     v_width(j));
    weft__train_multiplier_run_alone(t->x, thread, &p);
    for (int64_t i = 0; i < b->n_q; i++) {
        float *y = out + i * o_width(j);
        t->k->scale(y, (float)(1 / sum[i]), a->head_dim_v, y);
    }
}

static double dot(const float *x, const float *y, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)x[i] * y[i];
    return sum;
}

/* dp becomes the gradient of q·k: p (dp - sum(p dp)), times the slope of the cap, times the scale. sum(p dp) is
 * do·o. */
static void score_gradients(const struct attend *j, const struct block *b)
{
    const weft__trainer *t = j->t;
    const weft_attr_attention *a = j->a;
    for (int64_t i = 0; i < b->n_q; i++) {
        int64_t from, to, at = (b->row + i) * o_width(j) + (int64_t)b->head * a->head_dim_v;
        visible(j, b, i, &from, &to);
        float mean = (float)dot(t->value[j->op->out] + at, t->gradient[j->op->out] + at, a->head_dim_v),
              scale = a->scale;
        const float *p = b->s + i * b->n_k, *capped = b->capped + i * b->n_k;
        float *dp = b->dp + i * b->n_k, by = a->softcap != 0 ? 1 / a->softcap : 0;
        memset(dp, 0, (size_t)from * sizeof *dp);
        for (int64_t c = from; c < to; c++) dp[c] = p[c] * (dp[c] - mean) * scale;
        if (a->softcap != 0) {
            for (int64_t c = from; c < to; c++) dp[c] *= 1 - capped[c] * by * (capped[c] * by);
        }
        memset(dp + to, 0, (size_t)(b->n_k - to) * sizeof *dp);
    }
}

/* dv += p^T do */
static void value_gradients(const struct attend *j, int thread, const struct block *b, const float *d_out)
{
    weft__trainer *t = j->t;
    const struct weft__train_op *op = j->op;
    const int64_t dv = j->a->head_dim_v;
    weft__train_product p = {.m = b->n_k,
                             .n = dv,
                             .k = b->n_q,
                             .a = b->s,
                             .lda = b->n_k,
                             .a_across = 1,
                             .b_across = 1,
                             .ldc = v_width(j),
                             .add = 1};
    p.b = weft__train_rows_of_floats(d_out, o_width(j));
    p.c = part(t->gradient[op->in[2]], b->key, v_width(j), b->kv_head, j->a->head_dim_v);
    weft__train_multiplier_run_alone(t->x, thread, &p);
}

static void backward_block(const struct attend *j, int thread, const struct block *b)
{
    weft__trainer *t = j->t;
    const struct weft__train_op *op = j->op;
    const weft_attr_attention *a = j->a;
    const int64_t dk = a->head_dim_k, dv = a->head_dim_v;
    float *d_out = part(t->gradient[op->out], b->row, o_width(j), b->head, a->head_dim_v);
    scores(j, thread, b);
    if (a->softcap != 0) memcpy(b->capped, b->s, (size_t)(b->n_q * b->n_k) * sizeof *b->s);
    for (int64_t i = 0; i < b->n_q; i++) exponentials(j, b, i, &op->lse[(b->row + i) * a->n_heads + b->head]);
    if (op->wants[2]) value_gradients(j, thread, b, d_out);
    if (!op->wants[0] && !op->wants[1]) return;
    weft__train_product p = {
        .m = b->n_q, .n = b->n_k, .k = dv, .a = d_out, .lda = o_width(j), .c = b->dp, .ldc = b->n_k}; /* dp = do v^T */
    p.b = weft__train_rows_of_floats(part(t->value[op->in[2]], b->key, v_width(j), b->kv_head, a->head_dim_v),
                                     v_width(j));
    weft__train_multiplier_run_alone(t->x, thread, &p);
    score_gradients(j, b);
    if (op->wants[0]) { /* dq = ds k */
        p = (weft__train_product){.m = b->n_q,
                                  .n = dk,
                                  .k = b->n_k,
                                  .a = b->dp,
                                  .lda = b->n_k,
                                  .b_across = 1,
                                  .ldc = q_width(j),
                                  .add = op->add[0]};
        p.b = weft__train_rows_of_floats(part(t->value[op->in[1]], b->key, k_width(j), b->kv_head, a->head_dim_k),
                                         k_width(j));
        p.c = part(t->gradient[op->in[0]], b->row, q_width(j), b->head, a->head_dim_k);
        weft__train_multiplier_run_alone(t->x, thread, &p);
    }
    if (op->wants[1]) { /* dk += ds^T q */
        p = (weft__train_product){.m = b->n_k,
                                  .n = dk,
                                  .k = b->n_q,
                                  .a = b->dp,
                                  .lda = b->n_k,
                                  .a_across = 1,
                                  .b_across = 1,
                                  .ldc = k_width(j),
                                  .add = 1};
        p.b = weft__train_rows_of_floats(part(t->value[op->in[0]], b->row, q_width(j), b->head, a->head_dim_k),
                                         q_width(j));
        p.c = part(t->gradient[op->in[1]], b->key, k_width(j), b->kv_head, a->head_dim_k);
        weft__train_multiplier_run_alone(t->x, thread, &p);
    }
}

/* The gradients of the unit's keys and values begin at 0, unless others have added to them. */
static void clear_unit(const struct attend *j, int64_t begin, int64_t end, int32_t kv_head)
{
    weft__trainer *t = j->t;
    const struct weft__train_op *op = j->op;
    for (int64_t r = begin; r < end; r++) {
        if (op->wants[1] && !op->add[1])
            memset(part(t->gradient[op->in[1]], r, k_width(j), kv_head, j->a->head_dim_k), 0,
                   (size_t)j->a->head_dim_k * sizeof(float));
        if (op->wants[2] && !op->add[2])
            memset(part(t->gradient[op->in[2]], r, v_width(j), kv_head, j->a->head_dim_v), 0,
                   (size_t)j->a->head_dim_v * sizeof(float));
    }
}

static void attention_run(void *arg, int thread, int n_threads)
{
    struct attend *j = arg;
    weft__trainer *t = j->t;
    const int32_t heads = j->a->n_heads / j->a->n_kv_heads;
    const int64_t room = (int64_t)WEFT__TRAIN_QUERY_ROWS * t->max_rows;
    (void)n_threads;
    for (int unit; (unit = atomic_fetch_add(&j->next, 1)) < t->n_segs * j->a->n_kv_heads;) {
        const int32_t kv_head = unit % j->a->n_kv_heads;
        const int64_t begin = t->begin[unit / j->a->n_kv_heads], end = t->begin[unit / j->a->n_kv_heads + 1];
        if (j->back) clear_unit(j, begin, end, kv_head);
        for (int32_t h = kv_head * heads; h < (kv_head + 1) * heads; h++) {
            for (int64_t row = begin; row < end; row += WEFT__TRAIN_QUERY_ROWS) {
                struct block b = {.row = row,
                                  .n_q = end - row < WEFT__TRAIN_QUERY_ROWS ? end - row : WEFT__TRAIN_QUERY_ROWS,
                                  .begin = begin,
                                  .head = h,
                                  .kv_head = kv_head};
                b.key = j->a->window > 0 && row - j->a->window + 1 > begin ? row - j->a->window + 1 : begin;
                b.n_k = row + b.n_q - b.key;
                b.s = t->threads[thread].score;
                b.dp = b.s + room;
                b.capped = b.dp + room;
                if (j->back) backward_block(j, thread, &b);
                else forward_block(j, thread, &b);
            }
        }
    }
}

/* What is needed: a pair of query and key costs 2 (K + V) forward, and 4 (K + V) back. */
static void count(weft__trainer *t, const weft_attr_attention *a, double per_pair)
{
    double pairs = 0;
    for (int32_t s = 0; s < t->n_segs; s++) {
        double n = t->begin[s + 1] - t->begin[s], w = a->window > 0 && a->window < n ? a->window : n;
        pairs += w * (w + 1) / 2 + (n - w) * w;
    }
    if (t->counting) t->flops += pairs * a->n_heads * per_pair * (a->head_dim_k + a->head_dim_v);
}

static void attend(weft__trainer *t, const struct weft__train_op *op, int back)
{
    struct attend j = {.t = t, .op = op, .a = &op->node->attr.attention, .back = back};
    atomic_init(&j.next, 0);
    weft__pool_run(t->pool, attention_run, &j);
    count(t, j.a, back ? 4 : 2);
}

void weft__train_attend(weft__trainer *t, const struct weft__train_op *op)
{
    attend(t, op, 0);
}

void weft__train_attend_back(weft__trainer *t, const struct weft__train_op *op)
{
    attend(t, op, 1);
}
