// SPDX-License-Identifier: Apache-2.0
/* figures.c: means, errors and quantiles of what was scored, as llama-perplexity has them (divergence.h). */
#include <math.h>

#include "eval/divergence.h"

/* Mean of n values from their sums, and the standard error of that mean. */
static weft_estimate mean_of(double sum, double sum2, int64_t n)
{
    weft_estimate e = {n > 0 ? sum / (double)n : 0, 0};
    if (n > 1) {
        double variance = sum2 / (double)n - e.value * e.value;
        e.error = variance > 0 ? sqrt(variance / (double)(n - 1)) : 0;
    }
    return e;
}

static weft_estimate exponential(weft_estimate nll)
{
    const double ppl = exp(nll.value);
    return (weft_estimate){ppl, ppl * nll.error};
}

static const weft_estimate UNKNOWN = {NAN, NAN};

static void figures_of_base(const weft__eval_totals *s, weft_perplexity_result *r)
{
    const double n = (double)s->n;
    const weft_estimate base = mean_of(s->nll_base, s->nll_base2, s->n), mse = mean_of(s->p_diff2, s->p_diff4, s->n);
    const double covariance = n > 1 ? (s->nll_nll_base / n - r->nll.value * base.value) / (n - 1) : 0;
    const double variance = r->nll.error * r->nll.error + base.error * base.error - 2 * covariance;
    r->base_perplexity = exponential(base);
    r->log_ratio = (weft_estimate){r->nll.value - base.value, variance > 0 ? sqrt(variance) : 0};
    const double a = r->perplexity.value, b = r->base_perplexity.value, a_error = r->perplexity.error,
                 b_error = r->base_perplexity.error;
    const double apart = a_error * a_error + b_error * b_error - 2 * a * b * covariance;
    r->difference = (weft_estimate){a - b, apart > 0 ? sqrt(apart) : 0};
    const double spread = r->nll.error * base.error;
    r->correlation = spread > 0 ? covariance / spread : 1;
    r->kl = mean_of(s->kld, s->kld2, s->n);
    r->p_diff = mean_of(s->p_diff, s->p_diff2, s->n);
    r->p_rms.value = sqrt(mse.value);
    r->p_rms.error = r->p_rms.value > 0 ? 0.5 / r->p_rms.value * mse.error : 0;
    r->same_top.value = n > 0 ? (double)s->same_top / n : 0;
    r->same_top.error = n > 1 ? sqrt(r->same_top.value * (1 - r->same_top.value) / (n - 1)) : 0;
}

void weft__eval_figures_of(const weft__eval_totals *s, int compared, weft_perplexity_result *r)
{
    const int known = weft__eval_totals_known(s);
    r->n_scored = s->n;
    r->nll = known ? mean_of(s->nll, s->nll2, s->n) : UNKNOWN;
    r->perplexity = known ? exponential(r->nll) : UNKNOWN;
    r->base_perplexity = r->difference = r->log_ratio = r->kl = r->p_diff = r->p_rms = r->same_top = UNKNOWN;
    r->correlation = NAN;
    if (known && compared) figures_of_base(s, r);
}

void weft__eval_figures_sorted(weft__eval_totals *s, weft_perplexity_result *r)
{
    static const double at[WEFT_QUANTILES] = {0, 0.001, 0.01, 0.05, 0.10, 0.25, 0.5, 0.75, 0.90, 0.95, 0.99, 0.999, 1};
    if (!s->klds || !weft__eval_totals_known(s)) return;
    weft__eval_totals_sort(s);
    for (int i = 0; i < WEFT_QUANTILES; i++) {
        r->kl_at[i] = weft__eval_quantile(s->klds, s->n, at[i]);
        r->p_diff_at[i] = weft__eval_quantile(s->p_diffs, s->n, at[i]);
    }
}
