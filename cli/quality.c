// SPDX-License-Identifier: Apache-2.0
/* quality.c: the sums behind perplexity and divergence; see quality.h for the definitions. */
#include "quality.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const float CLIP = 16.0f; /* log-probabilities further below the largest are all the same */

int64_t quality_record(int32_t n_vocab)
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
    memset(record, 0, (size_t)quality_record(n_vocab) * sizeof *record);
    memcpy(record, &scale, sizeof scale);
    memcpy(record + 2, &min_log_prob, sizeof min_log_prob);
    if (scale == 0) return;
    for (int32_t i = 0; i < n_vocab; i++)
        if (logits[i] > min) record[4 + i] = (uint16_t)lrintf((logits[i] - min) / scale);
}

double quality_nll(const float *logits, int32_t n_vocab, int32_t token, uint16_t *record)
{
    int32_t at;
    float max = largest(logits, n_vocab, &at);
    double lse = log_sum_exp(logits, n_vocab, max);
    if (record) encode(logits, n_vocab, max, (float)lse, record);
    return max + lse - (double)logits[token];
}

void quality_add(quality_sums *s, double nll)
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

quality_sample quality_against(const float *logits, int32_t n_vocab, int32_t token, const uint16_t *record)
{
    int32_t top, top_base = 0;
    float scale, min, max = largest(logits, n_vocab, &top);
    memcpy(&scale, record, sizeof scale);
    memcpy(&min, record + 2, sizeof min);
    double log_total = max + log_sum_exp(logits, n_vocab, max);
    double kld = divergence(logits, n_vocab, log_total, record + 4, scale, min, &top_base);
    return (quality_sample){.nll = log_total - (double)logits[token],
                            .nll_base = -((double)scale * record[4 + token] + (double)min),
                            .kld = kld,
                            .same_top = top == top_base};
}

quality_sample quality_between(const float *logits, const float *base, int32_t n_vocab, int32_t token)
{
    int32_t top, top_base;
    float max = largest(logits, n_vocab, &top), max_base = largest(base, n_vocab, &top_base);
    double total = max + log_sum_exp(logits, n_vocab, max),
           total_base = max_base + log_sum_exp(base, n_vocab, max_base);
    quality_sample q = {.same_top = top == top_base};
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

static int quality_grow(quality_sums *s)
{
    int64_t grown = s->capacity ? 2 * s->capacity : 4096;
    float *klds = realloc(s->klds, (size_t)grown * sizeof *klds);
    if (klds) s->klds = klds;
    float *p_diffs = realloc(s->p_diffs, (size_t)grown * sizeof *p_diffs);
    if (p_diffs) s->p_diffs = p_diffs;
    if (klds && p_diffs) s->capacity = grown;
    return klds && p_diffs;
}

int quality_add_sample(quality_sums *s, const quality_sample *q)
{
    if (s->n == s->capacity && !quality_grow(s)) return 0;
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
    quality_add(s, q->nll);
    return 1;
}

void quality_free(quality_sums *s)
{
    free(s->klds);
    free(s->p_diffs);
    *s = (quality_sums){0};
}
