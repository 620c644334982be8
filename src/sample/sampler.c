// SPDX-License-Identifier: Apache-2.0
/* sampler.c: the sampler chain behind weft_sampler, in the order that weft.h documents.
 * Owner: one thread per sampler. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/params.h"
#include "base/random.h"
#include "sample/candidates.h"
#include "sample/defaults.h"
#include "sample/sampler.h"

struct weft_sampler {
    weft_sampler_params params;
    weft_logit_bias *bias;
    int32_t n_vocab;
    weft__rng rng;
    weft__sample_candidate *items; /* [n_vocab] */
    int32_t *count;                /* [n_vocab] occurrences inside the window */
    int32_t *history;              /* ring of the last `window` tokens; unused when the window is everything */
    int32_t window, n_history, at;
    int32_t *nameless; /* [n_nameless] that no bias asks for */
    int32_t n_nameless;
};

void(weft_sampler_params_default)(weft_sampler_params *p)
{
    *p = (weft_sampler_params){.size = sizeof *p,
                               .temperature = (float)WEFT__SAMPLE_TEMPERATURE,
                               .top_k = WEFT__SAMPLE_TOP_K,
                               .top_p = (float)WEFT__SAMPLE_TOP_P,
                               .min_p = (float)WEFT__SAMPLE_MIN_P,
                               .repeat_penalty = WEFT__SAMPLE_REPEAT_PENALTY,
                               .presence_penalty = WEFT__SAMPLE_PRESENCE_PENALTY,
                               .frequency_penalty = WEFT__SAMPLE_FREQUENCY_PENALTY,
                               .penalty_last_n = WEFT__SAMPLE_PENALTY_LAST_N};
}

void weft_sampler_params_init(weft_sampler_params *params, uint32_t size)
{
    weft_sampler_params own;
    (weft_sampler_params_default)(&own);
    weft__params_init(WEFT__PARAMS_TYPE(weft_sampler_params), params, size, &own);
}

weft_status weft__sample_check(const weft_sampler_params *p, int32_t n_vocab, weft_error *err)
{
    if (n_vocab < 1) return weft_fail(err, WEFT_ARGUMENT, "a vocabulary of %d tokens", n_vocab);
    if (!(p->temperature >= 0 && p->temperature < INFINITY))
        return weft_fail(err, WEFT_ARGUMENT, "temperature %g: must be 0 or more", p->temperature);
    if (p->top_k < 0) return weft_fail(err, WEFT_ARGUMENT, "top-k %d: must be 0 (off) or more", p->top_k);
    if (!(p->top_p > 0 && p->top_p <= 1))
        return weft_fail(err, WEFT_ARGUMENT, "top-p %g: must be above 0 and at most 1 (off)", p->top_p);
    if (!(p->min_p >= 0 && p->min_p <= 1))
        return weft_fail(err, WEFT_ARGUMENT, "min-p %g: must be from 0 (off) to 1", p->min_p);
    if (!(p->repeat_penalty > 0 && p->repeat_penalty < INFINITY))
        return weft_fail(err, WEFT_ARGUMENT, "repeat penalty %g: must be above 0 (1 is off)", p->repeat_penalty);
    if (!isfinite(p->presence_penalty))
        return weft_fail(err, WEFT_ARGUMENT, "presence penalty %g: must be finite", p->presence_penalty);
    if (!isfinite(p->frequency_penalty))
        return weft_fail(err, WEFT_ARGUMENT, "frequency penalty %g: must be finite", p->frequency_penalty);
    if (p->penalty_last_n < -1)
        return weft_fail(err, WEFT_ARGUMENT, "penalty window %d: must be -1 (all), 0 (off) or more", p->penalty_last_n);
    if (p->n_bias < 0 || (p->n_bias > 0 && !p->bias))
        return weft_fail(err, WEFT_ARGUMENT, "%d logit biases without values", p->n_bias);
    if (p->n_nameless < 0 || (p->n_nameless > 0 && !p->nameless))
        return weft_fail(err, WEFT_ARGUMENT, "%d nameless tokens without ids", p->n_nameless);
    for (int32_t i = 0; i < p->n_nameless; i++)
        if (p->nameless[i] < 0 || p->nameless[i] >= n_vocab)
            return weft_fail(err, WEFT_ARGUMENT, "nameless token %d: the vocabulary has ids 0 to %d", p->nameless[i],
                             n_vocab - 1);
    for (int32_t i = 0; i < p->n_bias; i++) {
        if (p->bias[i].token < 0 || p->bias[i].token >= n_vocab)
            return weft_fail(err, WEFT_ARGUMENT, "logit bias for token %d: the vocabulary has ids 0 to %d",
                             p->bias[i].token, n_vocab - 1);
        if (isnan(p->bias[i].bias) || p->bias[i].bias == INFINITY)
            return weft_fail(err, WEFT_ARGUMENT, "logit bias %g for token %d: must be finite or -infinity",
                             p->bias[i].bias, p->bias[i].token);
    }
    return WEFT_OK;
}

/* Keeps the nameless ids that no bias asks for. Counts serve as marks: there may be many of both. */
static void keep_nameless(weft_sampler *s, const weft_sampler_params *p)
{
    for (int32_t i = 0; i < p->n_bias; i++) s->count[p->bias[i].token] |= p->bias[i].bias > 0;
    for (int32_t i = 0; i < p->n_nameless; i++)
        if (!s->count[p->nameless[i]]) s->nameless[s->n_nameless++] = p->nameless[i];
    for (int32_t i = 0; i < p->n_bias; i++) s->count[p->bias[i].token] = 0;
    s->params.nameless = NULL;
}

weft_status weft_sampler_new(int32_t n_vocab, const weft_sampler_params *given, weft_sampler **out, weft_error *err)
{
    weft_sampler_params own, *params = &own;
    *out = NULL;
    weft_sampler_params_default(params);
    weft_status st = weft__params_read(WEFT__PARAMS_TYPE(weft_sampler_params), params, given, err);
    if (!st) st = weft__sample_check(params, n_vocab, err);
    if (st) return st;
    weft_sampler *s = weft__alloc_zero(1, sizeof *s);
    if (!s) goto no_memory;
    s->params = *params;
    s->n_vocab = n_vocab;
    s->window = params->penalty_last_n;
    s->items = weft__alloc_array((size_t)n_vocab, sizeof *s->items);
    s->count = weft__alloc_zero((size_t)n_vocab, sizeof *s->count);
    s->bias = weft__alloc_array((size_t)params->n_bias, sizeof *s->bias);
    s->nameless = weft__alloc_array((size_t)params->n_nameless, sizeof *s->nameless);
    if (s->window > 0) s->history = weft__alloc_array((size_t)s->window, sizeof *s->history);
    if (!s->items || !s->count || !s->bias || !s->nameless || (s->window > 0 && !s->history)) goto no_memory;
    if (params->n_bias > 0) memcpy(s->bias, params->bias, (size_t)params->n_bias * sizeof *s->bias);
    s->params.bias = s->bias;
    keep_nameless(s, params);
    if (!params->seed_given) s->params.seed = weft__rng_entropy();
    weft__rng_seed(&s->rng, s->params.seed);
    *out = s;
    return WEFT_OK;
no_memory:
    weft_sampler_free(&s);
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for a sampler of %d tokens", n_vocab);
}

void weft_sampler_free(weft_sampler **p)
{
    weft_sampler *s = p ? *p : NULL;
    if (!s) return;
    weft__free(s->history);
    weft__free(s->nameless);
    weft__free(s->bias);
    weft__free(s->count);
    weft__free(s->items);
    weft__free(s);
    *p = NULL;
}

uint64_t weft__sample_bytes(const weft_sampler *s)
{
    uint64_t history = s->window > 0 ? (uint64_t)s->window : 0;
    return sizeof *s + (uint64_t)s->n_vocab * (sizeof *s->items + sizeof *s->count) + history * sizeof *s->history +
           (uint64_t)s->params.n_bias * sizeof *s->bias + (uint64_t)s->n_nameless * sizeof *s->nameless;
}

uint64_t weft__sample_bytes_most(int32_t n_vocab, int32_t n_ctx)
{
    enum { BIASES = 4096 };
    const weft_sampler *s = NULL;
    return sizeof *s + (uint64_t)n_vocab * (sizeof *s->items + sizeof *s->count + sizeof *s->nameless) +
           (uint64_t)n_ctx * sizeof *s->history + BIASES * sizeof *s->bias;
}

uint64_t weft_sampler_seed(const weft_sampler *s)
{
    return s->params.seed;
}

weft_status weft_sampler_accept(weft_sampler *s, int32_t token, weft_error *err)
{
    if (token < 0 || token >= s->n_vocab)
        return weft_fail(err, WEFT_ARGUMENT, "token %d: the vocabulary has ids 0 to %d", token, s->n_vocab - 1);
    if (s->window == 0) return WEFT_OK;
    if (s->window > 0) {
        if (s->n_history == s->window) s->count[s->history[s->at]]--;
        else s->n_history++;
        s->history[s->at] = token;
        s->at = (s->at + 1) % s->window;
    }
    s->count[token]++;
    return WEFT_OK;
}

static void penalize(const weft_sampler *s, float *logits)
{
    const weft_sampler_params *p = &s->params;
    if (p->repeat_penalty == 1.0f && p->presence_penalty == 0.0f && p->frequency_penalty == 0.0f) return;
    for (int32_t i = 0; i < s->n_vocab; i++) {
        if (s->count[i] == 0) continue;
        if (logits[i] > 0) logits[i] /= p->repeat_penalty;
        else logits[i] *= p->repeat_penalty;
        logits[i] -= p->presence_penalty + p->frequency_penalty * (float)s->count[i];
    }
}

/* The largest, the lowest id of equals; -1 when all are NaN or -infinity. Two passes that vectorize. */
static int32_t largest(const float *logits, int32_t n)
{
    float max = weft__sample_largest_logit(logits, n);
    int32_t i = 0;
    if (!(max > -INFINITY)) return -1;
    for (; i + 16 <= n; i += 16) {
        int found = 0;
        for (int k = 0; k < 16; k++) found |= logits[i + k] == max;
        if (found) break;
    }
    while (logits[i] != max) i++;
    return i;
}

/* What a padded row of the model says means nothing: it was never trained. */
static void forbid_nameless(const weft_sampler *s, float *logits)
{
    for (int32_t i = 0; i < s->n_nameless; i++) logits[s->nameless[i]] = -INFINITY;
}

weft_status weft_sampler_pick(weft_sampler *s, float *logits, int32_t *token, weft_error *err)
{
    const weft_sampler_params *p = &s->params;
    forbid_nameless(s, logits);
    for (int32_t i = 0; i < p->n_bias; i++) logits[s->bias[i].token] += s->bias[i].bias;
    penalize(s, logits);
    if (p->temperature == 0) {
        *token = largest(logits, s->n_vocab);
    } else {
        weft__sample_candidates c;
        weft__sample_candidates_fill(&c, s->items, logits, s->n_vocab);
        if (c.n > 0) {
            weft__sample_candidates_top_k(&c, p->top_k);
            weft__sample_candidates_top_p(&c, p->top_p);
            weft__sample_candidates_min_p(&c, p->min_p);
            *token = weft__sample_candidates_draw(&c, p->temperature, weft__rng_double(&s->rng));
        } else {
            *token = -1;
        }
    }
    if (*token < 0) return weft_fail(err, WEFT_ARGUMENT, "no token can be picked: every logit is NaN or -infinity");
    return WEFT_OK;
}

/* ---- looking ahead ---- */

void weft__sample_ahead_begin(const weft_sampler *s, weft__sample_ahead *a)
{
    a->rng = s->rng;
    a->n = 0;
}

weft_status weft__sample_ahead_pick(weft_sampler *s, weft__sample_ahead *a, float *logits, int32_t *token, float *p,
                                    weft_error *err)
{
    if (a->n == WEFT__SAMPLE_AHEAD) return weft_fail(err, WEFT_LIMIT, "more than %d tokens ahead", a->n);
    weft_status st = weft_sampler_pick(s, logits, token, err);
    if (st) return st;
    *p = weft__sample_part(logits, s->n_vocab, *token);
    a->token[a->n] = *token;
    a->lost[a->n++] = s->window > 0 && s->n_history == s->window ? s->history[s->at] : -1;
    return weft_sampler_accept(s, *token, err);
}

void weft__sample_ahead_end(weft_sampler *s, const weft__sample_ahead *a)
{
    s->rng = a->rng;
    for (int32_t k = a->n - 1; k >= 0 && s->window; k--) {
        s->count[a->token[k]]--;
        if (s->window < 0) continue;
        s->at = (s->at + s->window - 1) % s->window;
        if (a->lost[k] < 0) s->n_history--;
        else s->count[s->history[s->at] = a->lost[k]]++;
    }
}
