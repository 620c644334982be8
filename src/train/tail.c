// SPDX-License-Identifier: Apache-2.0
/* tail.c: see tail.h. With the change -s B A of the matrix a row's residual is h - s d, d = B A x, so its logits mix
 * two, L0 of h and L1 of the norm's weights times d: (i(s) / i(0)) L0 - s i(s) L1, where i is 1 / sqrt(mean of squares
 * + eps), of a square that is quadratic in s. So a loss along the line costs no product. */
#include "train/tail.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "train/parts.h"

enum { DOUBLINGS = 24, SECTIONS = 16, HALVINGS = 5 };

static weft_status tail_no_memory(const weft__trainer *t, weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "%s: no memory for its last layer's step", t->src.label);
}

void weft__train_tail_target(int32_t n_layers, char out[32])
{
    snprintf(out, 32, "ffn_down@%d", n_layers - 1);
}

/* ---- the ops ---- */

typedef struct tail_ops {
    const struct weft__train_op *down, *norm, *out;
} tail_ops;

static int is_down(const weft__trainer *t, const struct weft__train_op *op)
{
    static const char END[] = "ffn_down.weight";
    if (op->node->op != WEFT_OP_LINEAR) return 0;
    const char *name = t->graph->weights[op->node->w[0]].name;
    const size_t n = strlen(name);
    return n >= sizeof END - 1 && !strcmp(name + n - (sizeof END - 1), END);
}

/* The body ends with ffn_down and an addition; the head picks rows, and has a norm and the output matrix. */
static weft_status find_ops(const weft__trainer *t, tail_ops *out, weft_error *err)
{
    const struct weft__train_op *head = t->ops + t->n_body, *add = head - 1;
    int known = t->n_body >= 2 && t->n_ops - t->n_body == 3 && !t->o.recompute;
    if (known) {
        *out = (tail_ops){.down = head - 2, .norm = head + 1, .out = head + 2};
        known = is_down(t, out->down) && add->node->op == WEFT_OP_ADD && t->hidden == add->out &&
                (add->in[0] == out->down->out) + (add->in[1] == out->down->out) == 1 &&
                head->node->op == WEFT_OP_PICK_ROWS && out->norm->node->op == WEFT_OP_NORM &&
                !out->norm->node->attr.norm.group && out->out->node->op == WEFT_OP_LINEAR && !out->out->vector;
    }
    if (!known)
        return weft_fail(err, WEFT_UNSUPPORTED,
                         "%s: its last layer ends otherwise than with ffn_down and an addition, so it takes no step "
                         "alone",
                         t->src.label);
    if (out->down->pair < 0 || out->out->pair >= 0)
        return weft_fail(err, WEFT_STATE, "%s: ffn_down of the last layer must learn, and the output matrix must not",
                         t->src.label);
    return WEFT_OK;
}

/* ---- states ---- */

void weft__train_tail_free(weft__train_tail *s)
{
    weft__free(s->x);
    weft__free(s->h);
    weft__free(s->logits);
    weft__free(s->target);
    weft__free(s->weight);
    *s = (weft__train_tail){0};
}

/* The head took all rows with a target at once, so that their logits are all there. */
static void take_rows(const weft__trainer *t, const tail_ops *ops, weft__train_tail *s)
{
    const float *x = t->value[ops->down->in[0]], *h = t->value[t->hidden], *logits = t->value[t->logits];
    for (int32_t w = 0; w < t->n_wanted; w++) {
        const int64_t r = t->wanted[w];
        if (!(t->weight[w] > 0)) continue;
        memcpy(s->x + s->n * s->k, x + r * s->k, (size_t)s->k * sizeof *x);
        memcpy(s->h + s->n * s->d, h + r * s->d, (size_t)s->d * sizeof *h);
        memcpy(s->logits + s->n * s->v, logits + w * s->v, (size_t)s->v * sizeof *logits);
        s->target[s->n] = t->batch->target[r];
        s->weight[s->n++] = t->weight[w];
    }
}

weft_status weft__train_tail_keep(weft__trainer *t, const weft__train_batch *batch, weft__train_tail *out,
                                  weft_error *err)
{
    tail_ops ops = {0};
    weft__train_loss l;
    *out = (weft__train_tail){0};
    weft_status st = find_ops(t, &ops, err);
    if (!st) st = weft__trainer_loss(t, batch, 1, NULL, &l, err);
    if (st) return st;
    if (t->n_wanted < 1 || t->n_wanted > t->chunk)
        return weft_fail(err, WEFT_LIMIT, "%s: %d tokens to be learned; one step takes 1 to %d", t->src.label,
                         t->n_wanted, t->chunk);
    if (!isfinite(l.loss)) return weft_fail(err, WEFT_LIMIT, "%s: the loss is not finite", t->src.label);
    *out = (weft__train_tail){.k = weft__train_width(t, ops.down->in[0]),
                              .d = weft__train_width(t, t->hidden),
                              .v = weft__train_width(t, t->logits)};
    const size_t n = (size_t)t->n_wanted;
    out->x = weft__alloc_array(n * (size_t)out->k, sizeof *out->x);
    out->h = weft__alloc_array(n * (size_t)out->d, sizeof *out->h);
    out->logits = weft__alloc_array(n * (size_t)out->v, sizeof *out->logits);
    out->target = weft__alloc_array(n, sizeof *out->target);
    out->weight = weft__alloc_array(n, sizeof *out->weight);
    if (out->x && out->h && out->logits && out->target && out->weight) {
        take_rows(t, &ops, out);
        return WEFT_OK;
    }
    weft__train_tail_free(out);
    return tail_no_memory(t, err);
}

/* ---- the head, of rows that are kept ---- */

static double square_of(const float *a, const float *b, int64_t n)
{
    double sum[4] = {0};
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        for (int j = 0; j < 4; j++) sum[j] += (double)a[i + j] * (double)b[i + j];
    }
    for (; i < n; i++) sum[0] += (double)a[i] * (double)b[i];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* out [T, V] of rows [T, D]. */
static void multiply_out(weft__trainer *t, const tail_ops *ops, const weft__train_tail *s, const float *rows,
                         float *out)
{
    t->a_mark++;
    weft__train_product p = {.m = s->n,
                             .n = s->v,
                             .k = s->d,
                             .a = rows,
                             .lda = s->d,
                             .b = ops->out->w,
                             .c = out,
                             .ldc = s->v,
                             .rounded = 1,
                             .a_mark = t->a_mark};
    weft__train_multiply(t, &p);
}

/* logits [T, V] become weight * (p - onehot); told [T]: the rows' losses. */
typedef struct tail_softmax {
    const weft__trainer *t;
    const weft__train_tail *s;
    float *logits;
    double *told;
} tail_softmax;

static void run_softmax(void *arg, int thread, int n_threads)
{
    const tail_softmax *j = arg;
    const weft__kernels *k = j->t->k;
    const int64_t v = j->s->v, last = weft__train_share(j->s->n, thread + 1, n_threads);
    for (int64_t i = weft__train_share(j->s->n, thread, n_threads); i < last; i++) {
        float *z = j->logits + i * v;
        const float w = j->s->weight[i], most = z[k->argmax(z, v)], at = z[j->s->target[i]];
        const double sum = k->exp_sum(z, most, v, z);
        j->told[i] = (double)w * ((double)most + log(sum) - (double)at);
        k->scale(z, (float)((double)w / sum), v, z);
        z[j->s->target[i]] -= w;
    }
}

/* What a step needs room for; zero-initialise. */
typedef struct tail_work {
    float *moved, *g, *b, *a, *other, *scratch; /* [T, D] twice, [D, r], [r, K], [T, V] twice */
    double *told, *hh, *hd, *dd;                /* [T] */
    uint8_t *right;                             /* [T] */
} tail_work;

static void work_free(tail_work *w)
{
    float *const floats[] = {w->moved, w->g, w->b, w->a, w->other, w->scratch};
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) weft__free(floats[i]);
    weft__free(w->told);
    weft__free(w->right);
    *w = (tail_work){0};
}

static weft_status work_open(const weft__trainer *t, const weft__train_tail *s, int32_t rank, tail_work *w,
                             weft_error *err)
{
    const size_t n = (size_t)s->n, td = n * (size_t)s->d, tv = n * (size_t)s->v, r = (size_t)rank;
    w->moved = weft__alloc_array(td, sizeof(float));
    w->g = weft__alloc_array(td, sizeof(float));
    w->b = weft__alloc_array(r * (size_t)s->d, sizeof(float));
    w->a = weft__alloc_array(r * (size_t)s->k, sizeof(float));
    w->other = weft__alloc_array(tv, sizeof(float));
    w->scratch = weft__alloc_array(tv, sizeof(float));
    w->told = weft__alloc_array(4 * n, sizeof(double));
    w->right = weft__alloc_zero(n, 1);
    if (w->moved && w->g && w->b && w->a && w->other && w->scratch && w->told && w->right) {
        w->hh = w->told + n;
        w->hd = w->hh + n;
        w->dd = w->hd + n;
        return WEFT_OK;
    }
    work_free(w);
    return tail_no_memory(t, err);
}

/* The gradient g [T, D]; w->other is overwritten. */
static double gradient(weft__trainer *t, const tail_ops *ops, const weft__train_tail *s, tail_work *w, float *g)
{
    double loss = 0;
    memcpy(w->other, s->logits, (size_t)(s->n * s->v) * sizeof *w->other);
    tail_softmax j = {t, s, w->other, w->told};
    weft__pool_run(t->pool, run_softmax, &j);
    t->a_mark++;
    weft__train_product p = {.m = s->n,
                             .n = s->d,
                             .k = s->v,
                             .a = w->other,
                             .lda = s->v,
                             .b = ops->out->w,
                             .b_across = 1,
                             .c = w->scratch,
                             .ldc = s->d,
                             .rounded = 1,
                             .a_mark = t->a_mark};
    weft__train_multiply(t, &p);
    for (int32_t i = 0; i < s->n; i++) {
        const float *h = s->h + i * s->d;
        const double inverse = 1 / sqrt(square_of(h, h, s->d) / (double)s->d + (double)ops->norm->node->attr.norm.eps);
        t->k->norm_back(h, ops->norm->vector, w->scratch + i * s->d, inverse, s->d, g + i * s->d);
        loss += w->told[i];
    }
    return loss;
}

weft_status weft__train_tail_gradient(weft__trainer *t, const weft__train_tail *s, float *g, double *loss,
                                      weft_error *err)
{
    tail_ops ops = {0};
    tail_work w = {0};
    weft_status st = find_ops(t, &ops, err);
    if (!st) st = work_open(t, s, 1, &w, err);
    if (!st) *loss = gradient(t, &ops, s, &w, g);
    work_free(&w);
    return st;
}

/* ---- along the line ---- */

typedef struct tail_line {
    weft__trainer *t;
    const tail_ops *ops;
    const weft__train_tail *s;
    tail_work *w;
    double eps, at; /* at: the length that is tried */
    float hold_at;
    int32_t n_tried;
} tail_line;

/* d = B A x of each row, its products, and L1 into w->other. w->moved is overwritten. */
static void begin_line(tail_line *l, int32_t rank)
{
    const weft__train_tail *s = l->s;
    tail_work *w = l->w;
    const float *by = l->ops->norm->vector;
    for (int32_t i = 0; i < s->n; i++) {
        float *d = w->moved + i * s->d;
        const float *h = s->h + i * s->d;
        memset(d, 0, (size_t)s->d * sizeof *d);
        for (int32_t r = 0; r < rank; r++) {
            const float along = (float)square_of(w->a + r * s->k, s->x + i * s->k, s->k);
            for (int64_t c = 0; c < s->d; c++) d[c] += along * w->b[c * rank + r];
        }
        w->hh[i] = square_of(h, h, s->d);
        w->hd[i] = square_of(h, d, s->d);
        w->dd[i] = square_of(d, d, s->d);
        for (int64_t c = 0; by && c < s->d; c++) d[c] *= by[c];
    }
    multiply_out(l->t, l->ops, s, w->moved, w->other);
}

static void run_line(void *arg, int thread, int n_threads)
{
    const tail_line *l = arg;
    const weft__train_tail *s = l->s;
    const weft__kernels *k = l->t->k;
    tail_work *w = l->w;
    const int64_t v = s->v, last = weft__train_share(s->n, thread + 1, n_threads);
    for (int64_t i = weft__train_share(s->n, thread, n_threads); i < last; i++) {
        const double square = w->hh[i] - 2 * l->at * w->hd[i] + l->at * l->at * w->dd[i], d = (double)s->d,
                     now = 1 / sqrt(square / d + l->eps), before = 1 / sqrt(w->hh[i] / d + l->eps);
        const float of0 = (float)(now / before), of1 = (float)(l->at * now);
        const float *l0 = s->logits + i * v, *l1 = w->other + i * v;
        float *z = w->scratch + i * v;
        for (int64_t c = 0; c < v; c++) z[c] = of0 * l0[c] - of1 * l1[c];
        const int64_t best = k->argmax(z, v);
        const float most = z[best];
        const double logp = (double)z[s->target[i]] - (double)most - log(k->exp_sum(z, most, v, z));
        w->told[i] = -(double)s->weight[i] * logp;
        w->right[i] = best == s->target[i] && logp >= (double)l->hold_at;
    }
}

/* The loss at this length; *holds: every target does. */
static double loss_at(tail_line *l, double length, int *holds)
{
    double sum = 0;
    l->at = length;
    l->n_tried++;
    weft__pool_run(l->t->pool, run_line, l);
    *holds = l->hold_at < 0;
    for (int32_t i = 0; i < l->s->n; i++) {
        sum += l->w->told[i];
        *holds &= l->w->right[i];
    }
    return sum;
}

/* Between `low`, where not every target holds, and `high`, where it does. */
static double shortest(tail_line *l, double low, double high)
{
    int holds;
    for (int i = 0; i < HALVINGS; i++) {
        const double middle = (low + high) / 2;
        (void)loss_at(l, middle, &holds);
        if (holds) high = middle;
        else low = middle;
    }
    return high;
}

/* The least loss between a and b (Kiefer 1953). */
static double least(tail_line *l, double a, double b)
{
    const double part = (sqrt(5) - 1) / 2;
    double c = b - part * (b - a), d = a + part * (b - a);
    int holds;
    double at_c = loss_at(l, c, &holds), at_d = loss_at(l, d, &holds);
    for (int i = 0; i < SECTIONS; i++) {
        if (at_c <= at_d) {
            b = d, d = c, at_d = at_c;
            c = b - part * (b - a);
            at_c = loss_at(l, c, &holds);
        } else {
            a = c, c = d, at_c = at_d;
            d = a + part * (b - a);
            at_d = loss_at(l, d, &holds);
        }
    }
    return at_c <= at_d ? c : d;
}

/* By doubling, from where the line's slope at 0 would have no loss left, or the like of it: until all holds, or the
 * loss rises again, or `most`. */
static double line_search(tail_line *l, double loss, double slope, double most)
{
    double low = 0, at = fmin(loss / slope / 4, most), before = loss;
    int holds;
    for (int i = 0; i < DOUBLINGS; i++) {
        const double now = loss_at(l, at, &holds);
        if (holds) return shortest(l, low, at);
        if (!(now < before)) return least(l, low / 2, at);
        if (!(at < most)) return at;
        before = now;
        low = at;
        at = fmin(2 * at, most);
    }
    return low;
}

/* ---- the step ---- */

/* The pair's last rows of A, and columns of B. */
static void put_step(weft__trainer *t, const tail_ops *ops, const weft__train_tail *s, const tail_work *w, int32_t rank,
                     double length)
{
    const struct weft__train_lora *pair = &t->pairs[ops->down->pair];
    const int64_t all = t->o.lora_rank, first = all - rank;
    const float by = (float)(-length / (double)t->lora_scale);
    memcpy(t->params[pair->a].data + first * s->k, w->a, (size_t)(rank * s->k) * sizeof(float));
    for (int64_t i = 0; i < s->d; i++)
        for (int32_t r = 0; r < rank; r++) t->params[pair->b].data[i * all + first + r] = by * w->b[i * rank + r];
}

weft_status weft__train_tail_move(weft__trainer *t, const weft__train_tail *s, const weft__train_tail_options *o,
                                  weft__train_tail_step *out, weft_error *err)
{
    tail_ops ops = {0};
    tail_work w = {0};
    *out = (weft__train_tail_step){0};
    if (o->rank < 1 || o->rank > t->o.lora_rank || t->lora_scale == 0)
        return weft_fail(err, WEFT_ARGUMENT, "a step of rank %d, of %d", o->rank, t->o.lora_rank);
    weft_status st = find_ops(t, &ops, err);
    if (!st) st = work_open(t, s, o->rank, &w, err);
    if (st) return st;
    out->before = out->after = gradient(t, &ops, s, &w, w.g);
    if (!weft__train_low_rank(w.g, s->x, s->n, s->d, s->k, o->rank, w.b, w.a)) st = tail_no_memory(t, err);
    const double slope = st ? 0 : square_of(w.a, w.a, o->rank * s->k); /* of the loss along -B A: B is orthonormal */
    if (!st && slope > 0 && isfinite(slope)) {
        tail_line l = {
            .t = t, .ops = &ops, .s = s, .w = &w, .eps = (double)ops.norm->node->attr.norm.eps, .hold_at = o->hold_at};
        const double most = t->cap ? t->cap[ops.down->pair] / sqrt(slope) : INFINITY;
        begin_line(&l, o->rank);
        out->length = line_search(&l, out->before, slope, most);
        out->after = loss_at(&l, out->length, &out->holds);
        out->n_tried = l.n_tried;
        put_step(t, &ops, s, &w, o->rank, out->length);
    }
    work_free(&w);
    return st;
}
