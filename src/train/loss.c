// SPDX-License-Identifier: Apache-2.0
/* loss.c: batches: what they must be, their forward pass, cross-entropy on the rows that have a target, preferences
 * between pairs of segments, and the way back. The head passes in chunks of rows: logits of a whole batch are never
 * there at once. */
#include <math.h>
#include <string.h>

#include "train/parts.h"

/* ---- batches ---- */

static weft_status check_batch(weft__trainer *t, const weft__train_batch *b, weft_error *err)
{
    if (b->n_rows < 1 || b->n_rows > t->max_rows)
        return weft_fail(err, WEFT_ARGUMENT, "a batch of %d rows; this trainer takes 1 to %d", b->n_rows, t->max_rows);
    for (int32_t r = 0; r < b->n_rows; r++) {
        int32_t before = r ? b->segment[r - 1] : -1;
        if (b->token[r] < 0 || b->token[r] >= t->hp.n_vocab)
            return weft_fail(err, WEFT_ARGUMENT, "row %d: token %d is not among the %d of the vocabulary", r,
                             b->token[r], t->hp.n_vocab);
        if (b->target[r] < -1 || b->target[r] >= t->hp.n_vocab)
            return weft_fail(err, WEFT_ARGUMENT, "row %d: target %d is not among the %d of the vocabulary", r,
                             b->target[r], t->hp.n_vocab);
        if (b->segment[r] != before + 1 && (r == 0 || b->segment[r] != before))
            return weft_fail(err, WEFT_ARGUMENT, "row %d: segment %d behind %d; segments rise from 0 in steps of 1", r,
                             b->segment[r], before);
        if (b->weight && !(fabsf(b->weight[r]) <= 1e6f)) /* not NaN */
            return weft_fail(err, WEFT_ARGUMENT, "row %d: weight %g", r, (double)b->weight[r]);
    }
    return WEFT_OK;
}

/* Positions, segments and rows with targets. */
static weft_status accept(weft__trainer *t, const weft__train_batch *b, weft_error *err)
{
    weft_status st = check_batch(t, b, err);
    if (st) return st;
    t->batch = b;
    t->n_segs = t->n_wanted = 0;
    for (int32_t r = 0; r < b->n_rows; r++) {
        if (r == 0 || b->segment[r] != b->segment[r - 1]) t->begin[t->n_segs++] = r;
        t->pos[r] = r - t->begin[t->n_segs - 1];
        if (t->pos[r] >= t->n_ctx)
            return weft_fail(err, WEFT_ARGUMENT, "segment %d has more than %d rows, the longest text of this trainer",
                             b->segment[r], t->n_ctx);
        if (b->target[r] < 0) continue;
        t->coef[t->n_wanted] = b->weight ? b->weight[r] : 1;
        t->wanted[t->n_wanted++] = r;
    }
    t->begin[t->n_segs] = b->n_rows;
    t->flops = 0;
    t->counting = 1;
    t->stopped = 0;
    return WEFT_OK;
}

int weft__train_stopped(weft__trainer *t)
{
    if (!t->stopped) t->stopped = t->o.stop && t->o.stop(t->o.stop_arg);
    return t->stopped;
}

static void body(weft__trainer *t)
{
    weft__train_forward(t, 0, t->n_body);
}

/* Segments from the last; those whose values were overwritten are run again first. */
static void body_back(weft__trainer *t)
{
    for (int32_t g = t->n_segments - 1; g >= 0; g--) {
        const struct weft__train_segment *s = &t->segments[g];
        if (t->o.recompute && g < t->n_segments - 1) {
            t->counting = 0;
            weft__train_forward(t, s->first, s->last);
            t->counting = 1;
        }
        weft__train_backward(t, s->first, s->last);
    }
}

/* ---- the head ---- */

/* log p of the target; the gradient of coef * -log p with regard to the logits is coef * (softmax - 1 at the
 * target). */
static void loss_row(const weft__trainer *t, int64_t i, int back)
{
    int64_t width = weft__train_width(t, t->logits), w = t->first_wanted + i;
    const float *x = t->value[t->logits] + i * width;
    const int64_t at = t->k->argmax(x, width);
    float *g = t->gradient[t->logits] + i * width, most = x[at];
    double sum = t->k->exp_sum(x, most, width, g);
    int32_t target = t->batch->target[t->wanted[w]];
    t->likeliest[w] = (int32_t)at;
    t->logp[w] = (float)((double)x[target] - most - log(sum));
    if (!back) return;
    t->k->scale(g, (float)(t->coef[w] / sum), width, g);
    g[target] -= t->coef[w];
}

struct loss_job {
    weft__trainer *t;
    int back;
};

static void run_loss(void *arg, int thread, int n_threads)
{
    const struct loss_job *j = arg;
    int64_t n = j->t->n_chunk, last = weft__train_share(n, thread + 1, n_threads);
    for (int64_t i = weft__train_share(n, thread, n_threads); i < last; i++) loss_row(j->t, i, j->back);
}

/* `back`: and back again. Flops of the way forth count unless they did already (`again`). */
static void head(weft__trainer *t, int back, int again)
{
    if (back && t->gradient[t->hidden])
        memset(t->gradient[t->hidden], 0, (size_t)(t->batch->n_rows * weft__train_width(t, t->hidden)) * sizeof(float));
    for (t->first_wanted = 0; t->first_wanted < t->n_wanted; t->first_wanted += t->n_chunk) {
        int32_t left = t->n_wanted - t->first_wanted;
        t->n_chunk = left < t->chunk ? left : t->chunk;
        t->counting = !again;
        weft__train_forward(t, t->n_body, t->n_ops);
        t->counting = 1;
        weft__pool_run(t->pool, run_loss, &(struct loss_job){t, back});
        if (back) weft__train_backward(t, t->n_body, t->n_ops);
    }
}

static void drop(weft__trainer *t)
{
    memset(t->grad, 0, (size_t)t->n_floats * sizeof *t->grad);
    weft__train_begin_step(t);
}

static weft_status cancelled(weft__trainer *t, weft_error *err)
{
    drop(t);
    return weft_fail(err, WEFT_CANCELLED, "cancelled; what was added since step %lld is dropped", (long long)t->step);
}

static weft_status not_finite(weft__trainer *t, weft_error *err)
{
    drop(t);
    return weft_fail(err, WEFT_LIMIT,
                     "%s: the loss is not finite; what was added since step %lld is dropped: lower the learning rate",
                     t->src.label, (long long)t->step);
}

/* Sums over the rows with targets, in order. */
static weft__train_loss summed(const weft__trainer *t)
{
    weft__train_loss l = {.n_rows = t->batch->n_rows, .n_targets = t->n_wanted, .flops = t->flops};
    for (int32_t i = 0; i < t->n_wanted; i++) {
        l.loss -= (double)t->coef[i] * (double)t->logp[i];
        l.weight += fabs((double)t->coef[i]);
    }
    return l;
}

static weft_status one_kind(weft__trainer *t, int kind, weft_error *err)
{
    if (t->kind != 0 && t->kind != kind)
        return weft_fail(err, WEFT_STATE,
                         "rows and pairs cannot be added to the same step; call weft__trainer_step between them");
    return WEFT_OK;
}

weft_status weft__trainer_add(weft__trainer *t, const weft__train_batch *batch, weft__train_loss *out, weft_error *err)
{
    weft_status st;
    if ((st = one_kind(t, 1, err)) || (st = accept(t, batch, err))) return st;
    if (t->n_wanted > 0) {
        body(t);
        head(t, 1, 0);
        body_back(t);
    }
    if (t->stopped) return cancelled(t, err);
    weft__train_loss l = summed(t);
    if (!isfinite(l.loss)) return not_finite(t, err);
    t->kind = 1;
    t->total_weight += l.weight;
    t->n_added++;
    if (out) *out = l;
    return WEFT_OK;
}

weft_status weft__trainer_loss(weft__trainer *t, const weft__train_batch *batch, int with_adapter, float *logp,
                               weft__train_loss *out, weft_error *err)
{
    weft_status st = accept(t, batch, err);
    if (st) return st;
    t->adapter_on = with_adapter;
    body(t);
    head(t, 0, 0);
    t->adapter_on = 1;
    if (t->stopped) return weft_fail(err, WEFT_CANCELLED, "cancelled");
    if (out) *out = summed(t);
    for (int32_t r = 0, w = 0; logp && r < batch->n_rows; r++)
        logp[r] = w < t->n_wanted && t->wanted[w] == r ? t->logp[w++] : 0;
    return WEFT_OK;
}

/* ---- preferences ---- */

/* Adds sign * log p of the rows' segments to margin [pairs]: chosen ones count for, rejected ones against. */
static void add_margins(const weft__trainer *t, double sign, double *margin)
{
    for (int32_t i = 0; i < t->n_wanted; i++) {
        int32_t s = t->batch->segment[t->wanted[i]];
        margin[s / 2] += (s % 2 ? -sign : sign) * (double)t->coef[i] * (double)t->logp[i];
    }
}

/* log(1 + e^-x) without overflow. */
static double softplus_minus(double x)
{
    return x > 0 ? log1p(exp(-x)) : log1p(exp(x)) - x;
}

/* t->partial (step.c's, idle now; made large enough by trainer.c) receives the margins [pairs]. */
weft_status weft__trainer_pairs(weft__trainer *t, const weft__train_batch *batch, float beta,
                                weft__train_preference_loss *l, weft_error *err)
{
    weft_status st;
    if (t->o.lora_rank == 0)
        return weft_fail(err, WEFT_STATE,
                         "preferences are learned by LoRA only: the frozen base is what an answer is compared with");
    if (!(beta > 0 && beta <= 1000))
        return weft_fail(err, WEFT_ARGUMENT, "beta is %g; it must be above 0, and 1000 at most", (double)beta);
    if ((st = accept(t, batch, err))) return st;
    if (t->n_segs % 2)
        return weft_fail(err, WEFT_ARGUMENT, "%d segments are no pairs of chosen and rejected answers", t->n_segs);
    double *margin = t->partial;
    *l = (weft__train_preference_loss){.n_pairs = t->n_segs / 2};
    memset(margin, 0, (size_t)l->n_pairs * sizeof *margin);
    t->adapter_on = 0;
    body(t);
    head(t, 0, 0);
    add_margins(t, -1, margin);
    t->adapter_on = 1;
    body(t);
    head(t, 0, 0);
    add_margins(t, 1, margin);
    if (t->stopped) return weft_fail(err, WEFT_CANCELLED, "cancelled");
    for (int64_t i = 0; i < l->n_pairs; i++) {
        l->loss += softplus_minus((double)beta * margin[i]);
        l->margin += margin[i];
        l->n_better += margin[i] > 0;
    }
    l->flops = t->flops;
    return WEFT_OK;
}

weft_status weft__trainer_add_pairs(weft__trainer *t, const weft__train_batch *batch, float beta,
                                    weft__train_preference_loss *out, weft_error *err)
{
    weft__train_preference_loss l;
    const double *margin = t->partial;
    weft_status st;
    if ((st = one_kind(t, 2, err)) || (st = weft__trainer_pairs(t, batch, beta, &l, err)))
        return st == WEFT_CANCELLED ? cancelled(t, err) : st;
    if (!isfinite(l.loss)) return not_finite(t, err);
    /* d loss / d log p = -+ beta sigmoid(-beta margin): the factor of -log p is its negative. */
    for (int32_t i = 0; i < t->n_wanted; i++) {
        int32_t s = batch->segment[t->wanted[i]];
        double slope = (double)beta / (1 + exp((double)beta * margin[s / 2]));
        t->coef[i] *= (float)(s % 2 ? -slope : slope);
    }
    head(t, 1, 1);
    body_back(t);
    if (t->stopped) return cancelled(t, err);
    l.flops = t->flops;
    t->kind = 2;
    t->total_weight += (double)l.n_pairs;
    t->n_added++;
    if (out) *out = l;
    return WEFT_OK;
}
