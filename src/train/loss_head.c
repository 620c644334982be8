// SPDX-License-Identifier: Apache-2.0
/* loss_head.c: see loss_parts.h. The head passes in chunks of rows: logits of a whole batch are never there at once. A
 * row is one thread's, whichever it is. */
#include <math.h>
#include <string.h>

#include "base/random.h"
#include "train/loss_parts.h"

struct loss_head_job {
    weft__trainer *t;
    enum weft__loss_pass pass;
};

/* A row in work: logits, and e^(x - most) of them with their sum. */
typedef struct loss_logits {
    int64_t width;
    const float *x;
    float *exps; /* becomes the gradient */
    double sum, lse;
    int32_t target;
} loss_logits;

/* log(1 - p) of the target from what the others have, so that it is exact where they have next to nothing. */
static double log_of_rest(const loss_logits *h)
{
    double rest = 0;
    for (int64_t i = 0; i < h->width; i++)
        if (i != h->target) rest += (double)h->exps[i];
    return rest > 0 ? fmin(0, log(rest / h->sum)) : -80; /* nothing that a float holds */
}

static weft__loss_told tell_row(const weft__trainer *t, int64_t w, const loss_logits *h, double logp)
{
    const weft__train_batch *b = t->batch;
    const int32_t r = t->wanted[w];
    const weft__loss_seen seen = {.logp = logp,
                                  .log_rest = t->weight[w] < 0 ? log_of_rest(h) : NAN,
                                  .weight = (double)t->weight[w],
                                  .advantage = b->advantage ? (double)b->advantage[r] : 0,
                                  .old_logp = b->old_logp ? (double)b->old_logp[r] : NAN,
                                  .base_logp = t->base_logp ? (double)t->base_logp[w] : NAN};
    return weft__loss_kind_of(t->objective->kind)->row(t->objective, &seen);
}

/* weight * KL(top || this), sum of q (log q - log p). */
static double top_value(const weft__train_top *top, const loss_logits *h)
{
    double kl = 0;
    for (int32_t i = 0; i < top->n; i++)
        if (top->p[i] > 0) kl += (double)top->p[i] * (log((double)top->p[i]) - ((double)h->x[top->token[i]] - h->lse));
    return (double)top->weight * kl;
}

/* anchor * KL(base || this): q is the base's softmax, and log q - log p = (y - x) - (lse_q - lse_p). `exps` receives
 * q times *sum. */
static double anchor_value(const weft__trainer *t, const loss_logits *h, const float *y, float *exps, double *sum)
{
    const float most = y[t->k->argmax(y, h->width)];
    double kl = 0;
    *sum = t->k->exp_sum(y, most, h->width, exps);
    for (int64_t i = 0; i < h->width; i++) kl += (double)exps[i] * ((double)y[i] - (double)h->x[i]);
    return (double)t->objective->anchor * (kl / *sum - ((double)most + log(*sum)) + h->lse);
}

/* From the softmax of sharp * x[n], whose largest is sharp * most, by a key: the largest with Gumbel noise each (Gumbel
 * 1954). What has e^-20 of the likeliest is never drawn. */
static int32_t drawn(const float *x, int64_t n, float most, double sharp, uint64_t key)
{
    weft__rng rng;
    double best = -INFINITY;
    int32_t at = 0;
    weft__rng_seed(&rng, key);
    for (int64_t i = 0; i < n; i++) {
        const double u = weft__rng_double(&rng), less = sharp * ((double)most - (double)x[i]);
        if (!(less < 20) || !(u > 0)) continue;
        const double v = -less - log(-log(u));
        if (v > best) best = v, at = (int32_t)i;
    }
    return at;
}

/* What the losses of row i of the chunk say, and the gradient of its logits: with c the weights of what is a
 * distribution, (slope + c) softmax, less the slope at the target and c times the distribution. */
static void loss_row(const struct loss_head_job *j, int thread, int64_t i)
{
    weft__trainer *t = j->t;
    const int64_t w = t->first_wanted + i, width = weft__train_width(t, t->logits);
    const int32_t r = t->wanted[w];
    loss_logits h = {.width = width,
                     .x = t->value[t->logits] + i * width,
                     .exps = t->gradient[t->logits] + i * width,
                     .target = t->batch->target[r]};
    t->likeliest[w] = (int32_t)t->k->argmax(h.x, width);
    const float most = h.x[t->likeliest[w]];
    if (t->batch->draw && t->batch->draw[r]) {
        const double sharp = t->batch->temperature > 0 ? 1 / (double)t->batch->temperature : 1;
        t->likeliest[w] = drawn(h.x, width, most, sharp, t->batch->draw[r]);
    }
    h.sum = t->k->exp_sum(h.x, most, width, h.exps);
    h.lse = (double)most + log(h.sum);
    const double logp = (double)h.x[h.target] - most - log(h.sum);
    t->logp[w] = (float)logp;
    if (j->pass == WEFT__LOSS_PASS_LOGP) return;

    const weft__train_top *top = t->batch->top ? &t->batch->top[r] : NULL;
    const float anchor = t->objective->anchor;
    float *q = anchor > 0 ? t->base_exps + thread * width : NULL;
    double sum_q = 1;
    t->told[w] = t->anchored[w] = 0;
    if (weft__loss_kind_of(t->objective->kind)->row) {
        const weft__loss_told told = tell_row(t, w, &h, logp);
        t->told[w] = told.value;
        t->slope[w] = (float)told.slope;
    }
    if (top && top->n) t->told[w] += top_value(top, &h);
    if (q) t->anchored[w] = anchor_value(t, &h, t->base_logits + i * width, q, &sum_q);
    if (j->pass == WEFT__LOSS_PASS_VALUE) return;

    const float c = top && top->n ? top->weight : 0;
    t->k->scale(h.exps, (float)(((double)t->slope[w] + (double)c + (double)anchor) / h.sum), width, h.exps);
    h.exps[h.target] -= t->slope[w];
    for (int32_t k = 0; top && k < top->n; k++) h.exps[top->token[k]] -= c * top->p[k];
    const float of_q = (float)((double)anchor / sum_q);
    for (int64_t k = 0; q && k < width; k++) h.exps[k] -= of_q * q[k];
}

static void run_loss(void *arg, int thread, int n_threads)
{
    const struct loss_head_job *j = arg;
    int64_t n = j->t->n_chunk, last = weft__train_share(n, thread + 1, n_threads);
    for (int64_t i = weft__train_share(n, thread, n_threads); i < last; i++) loss_row(j, thread, i);
}

/* The base's logits of the chunk: its hidden states stand in for the others' meanwhile. */
static void ask_base_logits(weft__trainer *t)
{
    float *own = t->value[t->hidden];
    t->value[t->hidden] = t->base_hidden;
    weft__train_as_it_began(t, 1);
    weft__train_forward(t, t->n_body, t->n_ops);
    weft__train_as_it_began(t, 0);
    t->value[t->hidden] = own;
    memcpy(t->base_logits, t->value[t->logits], (size_t)(t->n_chunk * weft__train_width(t, t->logits)) * sizeof(float));
}

void weft__train_head(weft__trainer *t, enum weft__loss_pass pass)
{
    const int back = pass == WEFT__LOSS_PASS_BACK || pass == WEFT__LOSS_PASS_BACK_AGAIN;
    if (back && t->gradient[t->hidden])
        memset(t->gradient[t->hidden], 0, (size_t)(t->batch->n_rows * weft__train_width(t, t->hidden)) * sizeof(float));
    for (t->first_wanted = 0; t->first_wanted < t->n_wanted; t->first_wanted += t->n_chunk) {
        int32_t left = t->n_wanted - t->first_wanted;
        t->n_chunk = left < t->chunk ? left : t->chunk;
        if (pass != WEFT__LOSS_PASS_LOGP && t->objective->anchor > 0) ask_base_logits(t);
        t->counting = pass != WEFT__LOSS_PASS_BACK_AGAIN;
        weft__train_forward(t, t->n_body, t->n_ops);
        t->counting = 1;
        weft__pool_run(t->pool, run_loss, &(struct loss_head_job){t, pass});
        if (back) weft__train_backward(t, t->n_body, t->n_ops);
    }
}
