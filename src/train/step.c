// SPDX-License-Identifier: Apache-2.0
/* step.c: a step (train.h): the norm of the gradients, clipping, the learning rate; optimizer.h moves. Sums of squares
 * are taken in parts of fixed size and added in order. */
#include <math.h>
#include <string.h>

#include "train/optimizer.h"

#define PI 3.14159265358979323846

/* Half a cosine from `from` at 0 to `to` at 1. */
static double cosine(double from, double to, double x)
{
    return to + (from - to) * 0.5 * (1 + cos(PI * x));
}

double weft__train_lr(const weft__train_options *o, int64_t step)
{
    const double lr = (double)o->lr, n = (double)o->n_steps, at = (double)step;
    if (o->schedule == WEFT__TRAIN_LR_ONE_CYCLE) {
        const double rise = fmax(1, 0.3 * n); /* a run of few steps makes one at the highest rate, too */
        if (at <= rise) return cosine(lr / 25, lr, at / rise);
        return cosine(lr, lr / 1e4, n > rise ? fmin(1, (at - rise) / (n - rise)) : 1);
    }
    if (step <= o->n_warmup) return lr * at / (double)o->n_warmup;
    if (o->schedule == WEFT__TRAIN_LR_CONSTANT) return lr;
    const double left = n - (double)o->n_warmup;
    return cosine(lr, lr * (double)o->lr_floor, left > 0 ? fmin(1, (at - (double)o->n_warmup) / left) : 1);
}

/* ---- the norm ---- */

static int64_t n_parts(const weft__trainer *t)
{
    return (t->n_floats + WEFT__TRAIN_SQUARES_PART - 1) / WEFT__TRAIN_SQUARES_PART;
}

static void run_squares(void *arg, int thread, int n_threads)
{
    weft__trainer *t = arg;
    int64_t last = weft__train_share(n_parts(t), thread + 1, n_threads);
    for (int64_t i = weft__train_share(n_parts(t), thread, n_threads); i < last; i++) {
        int64_t from = i * WEFT__TRAIN_SQUARES_PART,
                n = t->n_floats - from < WEFT__TRAIN_SQUARES_PART ? t->n_floats - from : WEFT__TRAIN_SQUARES_PART;
        const float *g = t->grad + from;
        double sum[8] = {0};
        for (int64_t j = 0; j < n; j++) sum[j % 8] += (double)g[j] * g[j];
        t->partial[i] = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
    }
}

/* Of the gradients as they are, not yet divided by the weight. */
static double gradient_norm(weft__trainer *t)
{
    double sum = 0;
    weft__pool_run(t->pool, run_squares, t);
    for (int64_t i = 0; i < n_parts(t); i++) sum += t->partial[i];
    return sqrt(sum);
}

void weft__train_begin_step(weft__trainer *t)
{
    t->total_weight = 0;
    t->n_added = 0;
    t->kind = 0;
}

weft_status weft__trainer_step(weft__trainer *t, weft__train_step *out, weft_error *err)
{
    if (t->n_added == 0 || t->total_weight <= 0)
        return weft_fail(err, WEFT_STATE, "%s: no row with a target was added since the last step", t->src.label);
    if (t->fisher) weft__train_fisher_hold(t, t->total_weight);
    double norm = gradient_norm(t) / t->total_weight;
    if (!isfinite(norm)) {
        memset(t->grad, 0, (size_t)t->n_floats * sizeof *t->grad);
        weft__train_begin_step(t);
        return weft_fail(err, WEFT_LIMIT,
                         "%s: a gradient is not finite behind step %lld; nothing was moved: lower the learning rate",
                         t->src.label, (long long)t->step);
    }
    double by = 1 / t->total_weight,
           clip = t->o.clip_norm > 0 && norm > (double)t->o.clip_norm ? (double)t->o.clip_norm / norm : 1;
    t->step++;
    double lr = weft__train_lr(&t->o, t->step);
    weft__train_optimizer_move(t, by * clip, lr);
    weft__train_cap(t);
    weft__train_begin_step(t);
    if (out) *out = (weft__train_step){t->step, norm, lr};
    return WEFT_OK;
}
