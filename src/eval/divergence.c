// SPDX-License-Identifier: Apache-2.0
/* divergence.c: the sums behind perplexity and divergence (divergence.h). */
#include "eval/divergence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static const float CLIP = 16.0f; /* log-probabilities further below the largest are all the same */

int64_t weft__eval_record_size(int32_t n_vocab)
{
    return 2 * (((int64_t)n_vocab + 1) / 2) + 4;
}

static float largest(const float *logits, int32_t n_vocab, int32_t *at)
{
    *at = 0;
    for (int32_t i = 1; i < n_vocab; i++)
        if (logits[i] > logits[*at]) *at = i;
    return logits[*at];
}

static double log_sum_exp(const float *logits, int32_t n_vocab, float max)
{
    double sum = 0;
    for (int32_t i = 0; i < n_vocab; i++) sum += (double)expf(logits[i] - max);
    return log(sum);
}

static void encode(const float *logits, int32_t n_vocab, float max, float lse, uint16_t *record)
{
    float min = max;
    for (int32_t i = 0; i < n_vocab; i++) min = logits[i] < min ? logits[i] : min;
    if (min < max - CLIP) min = max - CLIP;
    float scale = (max - min) / 65535.0f, min_log_prob = min - max - lse;
    memset(record, 0, (size_t)weft__eval_record_size(n_vocab) * sizeof *record);
    memcpy(record, &scale, sizeof scale);
    memcpy(record + 2, &min_log_prob, sizeof min_log_prob);
    if (scale == 0) return;
    for (int32_t i = 0; i < n_vocab; i++)
        if (logits[i] > min) record[4 + i] = (uint16_t)lrintf((logits[i] - min) / scale);
}

double weft__eval_nll(const float *logits, int32_t n_vocab, int32_t token, uint16_t *record)
{
    int32_t at;
    float max = largest(logits, n_vocab, &at);
    double lse = log_sum_exp(logits, n_vocab, max);
    if (record) encode(logits, n_vocab, max, (float)lse, record);
    return max + lse - (double)logits[token];
}

void weft__eval_totals_add(weft__eval_totals *s, double nll)
{
    s->nll += nll;
    s->nll2 += nll * nll;
    s->n++;
}

/* Sum over the vocabulary of p (log p - log q), p the base. */
static double divergence(const float *logits, int32_t n_vocab, double log_total, const uint16_t *codes, float scale,
                         float min, int32_t *top)
{
    double sum = 0;
    float best = -INFINITY;
    for (int32_t i = 0; i < n_vocab; i++) {
        float log_p = scale * (float)codes[i] + min;
        if (log_p > best) best = log_p, *top = i;
        if (log_p > -CLIP) sum += (double)expf(log_p) * ((double)log_p - (double)logits[i] + log_total);
    }
    return sum;
}

weft__eval_compared weft__eval_against(const float *logits, int32_t n_vocab, int32_t token, const uint16_t *record)
{
    int32_t top, top_base = 0;
    float scale, min, max = largest(logits, n_vocab, &top);
    memcpy(&scale, record, sizeof scale);
    memcpy(&min, record + 2, sizeof min);
    double log_total = max + log_sum_exp(logits, n_vocab, max);
    double kld = divergence(logits, n_vocab, log_total, record + 4, scale, min, &top_base);
    return (weft__eval_compared){.nll = log_total - (double)logits[token],
                                 .nll_base = -((double)scale * record[4 + token] + (double)min),
                                 .kld = kld,
                                 .same_top = top == top_base};
}

weft__eval_compared weft__eval_between(const float *logits, const float *base, int32_t n_vocab, int32_t token)
{
    int32_t top, top_base;
    float max = largest(logits, n_vocab, &top), max_base = largest(base, n_vocab, &top_base);
    double total = max + log_sum_exp(logits, n_vocab, max),
           total_base = max_base + log_sum_exp(base, n_vocab, max_base);
    weft__eval_compared q = {.same_top = top == top_base};
    for (int32_t i = 0; i < n_vocab; i++) {
        double log_p = (double)base[i] - total_base, p = (double)expf((float)log_p);
        if (p > 0) q.kld += p * (log_p - ((double)logits[i] - total));
    }
    if (token >= 0) {
        q.nll = total - (double)logits[token];
        q.nll_base = total_base - (double)base[token];
    }
    return q;
}

int weft__eval_totals_compare(weft__eval_totals *s, const weft__eval_compared *q)
{
    const size_t need = (size_t)s->n + 1;
    if (!weft__grow(&s->klds, &s->klds_room, need, sizeof *s->klds) ||
        !weft__grow(&s->p_diffs, &s->p_diffs_room, need, sizeof *s->p_diffs))
        return 0;
    double p_diff = exp(-q->nll) - exp(-q->nll_base);
    s->klds[s->n] = (float)q->kld;
    s->p_diffs[s->n] = (float)p_diff;
    s->nll_base += q->nll_base;
    s->nll_base2 += q->nll_base * q->nll_base;
    s->nll_nll_base += q->nll * q->nll_base;
    s->kld += q->kld;
    s->kld2 += q->kld * q->kld;
    s->p_diff += p_diff;
    s->p_diff2 += p_diff * p_diff;
    s->p_diff4 += p_diff * p_diff * p_diff * p_diff;
    s->same_top += q->same_top;
    weft__eval_totals_add(s, q->nll);
    return 1;
}

void weft__eval_totals_free(weft__eval_totals *s)
{
    weft__free(s->klds);
    weft__free(s->p_diffs);
    *s = (weft__eval_totals){0};
}

int weft__eval_totals_known(const weft__eval_totals *s)
{
    const double n = (double)s->n, mean = s->nll / n;
    return s->n > 0 && isfinite(exp(mean)) && isfinite(s->nll2) && isfinite(s->kld2) && isfinite(s->nll_base2);
}

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

void weft__eval_totals_sort(weft__eval_totals *s)
{
    if (!s->klds) return;
    qsort(s->klds, (size_t)s->n, sizeof *s->klds, by_value);
    qsort(s->p_diffs, (size_t)s->n, sizeof *s->p_diffs, by_value);
}

double weft__eval_quantile(const float *sorted, int64_t n, double fraction)
{
    double at = fraction * (double)(n - 1);
    int64_t i = (int64_t)at;
    if (i >= n - 1) return (double)sorted[n - 1];
    double part = at - (double)i;
    return (1 - part) * (double)sorted[i] + part * (double)sorted[i + 1];
}
