// SPDX-License-Identifier: Apache-2.0
/* fisher.c: elastic weight consolidation (train.h). With D = diag of the outputs' squares and E = diag of the inputs',
 * the penalty's gradient is D (W - W0) E in W, so D (W - W0) E A^T in B and B^T D (W - W0) E in A, with W = B A. Both
 * take products of [r, r] with B, B0, A and A0 alone, as W - W0 is of rank 2 r and never made. */
#include <string.h>

#include "base/alloc.h"
#include "train/params.h"

static int64_t width_in(const weft__trainer *t, int32_t pair)
{
    return t->params[t->pairs[pair].a].d[0];
}

static int64_t width_out(const weft__trainer *t, int32_t pair)
{
    return t->params[t->pairs[pair].b].d[1];
}

static weft_status open_fisher(weft__trainer *t, weft_error *err)
{
    const size_t squares = (size_t)t->o.lora_rank * (size_t)t->o.lora_rank;
    int64_t n = 0, k = 0;
    if (t->fisher) return WEFT_OK;
    struct weft__train_fisher *f = weft__train_own(t, 1, sizeof *f);
    if (f) f->at = weft__train_own(t, (size_t)t->n_pairs, sizeof *f->at);
    for (int32_t i = 0; f && f->at && i < t->n_pairs; i++) {
        f->at[i][0] = n;
        f->at[i][1] = k;
        n += width_out(t, i);
        k += width_in(t, i);
    }
    if (f) {
        f->out = weft__train_own(t, (size_t)n, sizeof *f->out);
        f->in = weft__train_own(t, (size_t)k, sizeof *f->in);
        f->grams = weft__train_own(t, 2 * (size_t)t->n_threads * squares, sizeof *f->grams);
    }
    if (!f || !f->at || !f->out || !f->in || !f->grams)
        return weft_fail(err, WEFT_NO_MEMORY, "%s: no memory to hold what it knows", t->src.label);
    const weft_status st = weft__train_start_room(t, err);
    if (st) return st;
    if (!t->goes_on) weft__train_keep_start(t);
    t->fisher = f;
    return WEFT_OK;
}

/* ---- what is shown ---- */

struct see_job {
    weft__trainer *t;
    const struct weft__train_op *op;
};

static void add_squares(const float *x, int64_t rows, int64_t width, int64_t first, int64_t last, double *sum)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = first; c < last; c++) sum[c] += (double)x[r * width + c] * (double)x[r * width + c];
}

/* Columns are one thread's each, in the order of the rows. */
static void run_see(void *arg, int thread, int n_threads)
{
    const struct see_job *j = arg;
    const weft__trainer *t = j->t;
    const struct weft__train_op *op = j->op;
    const struct weft__train_fisher *f = t->fisher;
    const int64_t rows = weft__train_rows(t, op), n = weft__train_width(t, op->out),
                  k = weft__train_width(t, op->in[0]);
    add_squares(t->gradient[op->out], rows, n, weft__train_share(n, thread, n_threads),
                weft__train_share(n, thread + 1, n_threads), f->out + f->at[op->pair][0] + op->pair_row);
    if (op->pair_row > 0) return; /* others of the same matrix read the same */
    add_squares(t->value[op->in[0]], rows, k, weft__train_share(k, thread, n_threads),
                weft__train_share(k, thread + 1, n_threads), f->in + f->at[op->pair][1]);
}

void weft__train_fisher_see(weft__trainer *t, const struct weft__train_op *op)
{
    weft__pool_run(t->pool, run_see, &(struct see_job){t, op});
}

/* Its targets become tokens that the model draws. */
static weft_status draw_targets(weft__trainer *t, const weft__train_batch *batch, int32_t *target, weft_error *err)
{
    weft__train_batch b = *batch;
    uint64_t *draw = weft__alloc_array(b.n_rows > 0 ? (size_t)b.n_rows : 1, sizeof *draw);
    if (!draw) return weft_fail(err, WEFT_NO_MEMORY, "%s: no memory to hold what it knows", t->src.label);
    for (int32_t r = 0; r < b.n_rows; r++) /* the generator mixes them (SplitMix64); 0 would draw nothing */
        draw[r] = ((uint64_t)t->fisher->n_rows + (uint64_t)r + 1) * 0x9E3779B97F4A7C15u | 1;
    b.draw = draw;
    b.temperature = 1;
    b.weight = NULL;
    const weft_status st = weft__trainer_loss(t, &b, 1, NULL, NULL, err);
    if (!st) weft__trainer_likeliest(t, target);
    weft__free(draw);
    return st;
}

weft_status weft__trainer_show(weft__trainer *t, const weft__train_batch *batch, weft_error *err)
{
    weft__train_loss loss;
    if (t->o.lora_rank <= 0 || t->step > 0 || t->n_added > 0)
        return weft_fail(err, WEFT_STATE, "%s: what is to stay is shown to a LoRA trainer before its first step",
                         t->src.label);
    weft_status st = open_fisher(t, err);
    int32_t *target = weft__alloc_array(batch->n_rows > 0 ? (size_t)batch->n_rows : 1, sizeof *target);
    if (!st && !target) st = weft_fail(err, WEFT_NO_MEMORY, "%s: no memory to hold what it knows", t->src.label);
    if (!st) st = draw_targets(t, batch, target, err);
    if (!st) {
        weft__train_batch b = *batch;
        b.target = target;
        b.weight = NULL;
        b.draw = NULL;
        b.top = NULL;
        t->fisher->sees = 1;
        st = weft__trainer_add(t, &b, &loss, err);
        t->fisher->sees = 0;
        if (!st) {
            t->fisher->n_targets += (double)loss.n_targets;
            t->fisher->n_rows += (double)loss.n_rows;
        }
        memset(t->grad, 0, (size_t)t->n_floats * sizeof *t->grad);
        weft__train_begin_step(t);
    }
    weft__free(target);
    return st;
}

/* ---- what holds it ---- */

/* g [r, r] = sum over c of w[c] x_c y_c^T: element i of x_c is x[c * by + i * across]. */
static void gram(const float *x, const float *y, const double *w, int64_t n, int64_t by, int64_t across, int64_t r,
                 double *g)
{
    memset(g, 0, (size_t)(r * r) * sizeof *g);
    for (int64_t c = 0; c < n; c++)
        for (int64_t i = 0; i < r; i++) {
            const double xi = w[c] * (double)x[c * by + i * across];
            for (int64_t j = 0; j < r; j++) g[i * r + j] += xi * (double)y[c * by + j * across];
        }
}

struct hold_job {
    weft__trainer *t;
    double by;
};

static void run_hold(void *arg, int thread, int n_threads)
{
    const struct hold_job *job = arg;
    const weft__trainer *t = job->t;
    const struct weft__train_fisher *f = t->fisher;
    const int64_t r = t->o.lora_rank;
    double *g = f->grams + 2 * thread * r * r, *g0 = g + r * r;
    for (int32_t i = thread; i < t->n_pairs; i += n_threads) {
        const struct weft__trainer_weight *a = &t->params[t->pairs[i].a], *b = &t->params[t->pairs[i].b];
        const float *a0 = t->start + (a->data - t->data), *b0 = t->start + (b->data - t->data);
        const double *d = f->out + f->at[i][0], *e = f->in + f->at[i][1];
        const int64_t n = width_out(t, i), k = width_in(t, i);
        gram(a->data, a->data, e, k, 1, k, r, g);
        gram(a0, a->data, e, k, 1, k, r, g0);
        for (int64_t c = 0; c < n; c++)
            for (int64_t j = 0; j < r; j++) {
                double sum = 0;
                for (int64_t q = 0; q < r; q++)
                    sum += (double)b->data[c * r + q] * g[q * r + j] - (double)b0[c * r + q] * g0[q * r + j];
                b->grad[c * r + j] += (float)(job->by * d[c] * sum);
            }
        gram(b->data, b->data, d, n, r, 1, r, g);
        gram(b->data, b0, d, n, r, 1, r, g0);
        for (int64_t j = 0; j < r; j++)
            for (int64_t c = 0; c < k; c++) {
                double sum = 0;
                for (int64_t q = 0; q < r; q++)
                    sum += g[j * r + q] * (double)a->data[q * k + c] - g0[j * r + q] * (double)a0[q * k + c];
                a->grad[j * k + c] += (float)(job->by * e[c] * sum);
            }
    }
}

void weft__train_fisher_hold(weft__trainer *t, double weight)
{
    const double n = t->fisher->n_targets * t->fisher->n_rows, scale = (double)t->lora_scale;
    if (!(t->o.ewc > 0) || !(n > 0)) return;
    weft__pool_run(t->pool, run_hold, &(struct hold_job){t, weight * (double)t->o.ewc * scale * scale / n});
}
