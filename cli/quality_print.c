// SPDX-License-Identifier: Apache-2.0
/* quality_print.c: means, errors and percentiles, in the words and columns of llama-perplexity. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "quality.h"

typedef quality_estimate estimate;

/* Mean of n values from their sums, and the standard error of that mean. */
static estimate mean_of(double sum, double sum2, int64_t n)
{
    estimate e = {n > 0 ? sum / (double)n : 0, 0};
    if (n > 1) {
        double variance = sum2 / (double)n - e.value * e.value;
        e.error = variance > 0 ? sqrt(variance / (double)(n - 1)) : 0;
    }
    return e;
}

quality_estimate quality_perplexity(const quality_sums *s)
{
    estimate nll = mean_of(s->nll, s->nll2, s->n);
    double ppl = exp(nll.value);
    return (estimate){ppl, ppl * nll.error};
}

void quality_print_final(const quality_sums *s)
{
    estimate e = quality_perplexity(s);
    printf("Final estimate: PPL = %.4lf +/- %.5lf\n", e.value, e.error);
}

struct figures {
    estimate nll, nll_base, log_ratio, kld, p_diff, p_rms, same;
    double covariance;
};

static struct figures figures_of(const quality_sums *s)
{
    struct figures f;
    double n = (double)s->n;
    f.nll = mean_of(s->nll, s->nll2, s->n);
    f.nll_base = mean_of(s->nll_base, s->nll_base2, s->n);
    f.covariance = n > 1 ? (s->nll_nll_base / n - f.nll.value * f.nll_base.value) / (n - 1) : 0;
    double variance = f.nll.error * f.nll.error + f.nll_base.error * f.nll_base.error - 2 * f.covariance;
    f.log_ratio = (estimate){f.nll.value - f.nll_base.value, variance > 0 ? sqrt(variance) : 0};
    f.kld = mean_of(s->kld, s->kld2, s->n);
    f.p_diff = mean_of(s->p_diff, s->p_diff2, s->n);
    estimate mse = mean_of(s->p_diff2, s->p_diff4, s->n);
    f.p_rms.value = sqrt(mse.value);
    f.p_rms.error = f.p_rms.value > 0 ? 0.5 / f.p_rms.value * mse.error : 0;
    f.same.value = n > 0 ? (double)s->same_top / n : 0;
    f.same.error = n > 1 ? sqrt(f.same.value * (1 - f.same.value) / (n - 1)) : 0;
    return f;
}

void quality_print_chunk_header(void)
{
    printf("\nchunk             PPL               ln(PPL(Q)/PPL(base))          KL Divergence              Δp RMS      "
           "      Same top p\n");
}

void quality_print_chunk(int32_t chunk, const quality_sums *s)
{
    struct figures f = figures_of(s);
    estimate ppl = quality_perplexity(s);
    printf(
        "%4d     %8.4lf ± %9.4lf    %10.5lf ± %10.5lf    %10.5f ± %10.5lf    %6.3f ± %6.3lf %%   %6.3f ± %6.3lf %%\n",
        chunk, ppl.value, ppl.error, f.log_ratio.value, f.log_ratio.error, f.kld.value, f.kld.error,
        100 * f.p_rms.value, 100 * f.p_rms.error, 100 * f.same.value, 100 * f.same.error);
    fflush(stdout);
}

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

double quality_percentile(const float *sorted, int64_t n, double fraction)
{
    double at = fraction * (double)(n - 1);
    int64_t i = (int64_t)at;
    if (i >= n - 1) return (double)sorted[n - 1];
    double part = at - (double)i;
    return (1 - part) * (double)sorted[i] + part * (double)sorted[i + 1];
}

static void print_perplexity(const quality_sums *s, const struct figures *f)
{
    double ppl = exp(f->nll.value), base = exp(f->nll_base.value), ratio = exp(f->log_ratio.value);
    double ppl_error = ppl * f->nll.error, base_error = base * f->nll_base.error;
    double difference2 = ppl_error * ppl_error + base_error * base_error - 2 * ppl * base * f->covariance;
    double spread = f->nll.error * f->nll_base.error;
    (void)s;
    printf("====== Perplexity statistics ======\n");
    printf("Mean PPL(Q)                   : %10.6lf ± %10.6lf\n", ppl, ppl_error);
    printf("Mean PPL(base)                : %10.6lf ± %10.6lf\n", base, base_error);
    printf("Cor(ln(PPL(Q)), ln(PPL(base))): %6.2lf%%\n", spread > 0 ? 100 * f->covariance / spread : 100.0);
    printf("Mean ln(PPL(Q)/PPL(base))     : %10.6lf ± %10.6lf\n", f->log_ratio.value, f->log_ratio.error);
    printf("Mean PPL(Q)/PPL(base)         : %10.6lf ± %10.6lf\n", ratio, ratio * f->log_ratio.error);
    printf("Mean PPL(Q)-PPL(base)         : %10.6lf ± %10.6lf\n", ppl - base, difference2 > 0 ? sqrt(difference2) : 0);
}

static void print_divergence(const quality_sums *s, const struct figures *f)
{
    const float *k = s->klds;
    printf("\n====== KL divergence statistics ======\n");
    printf("Mean    KLD: %10.6lf ± %10.6lf\n", f->kld.value, f->kld.error);
    printf("Maximum KLD: %10.6f\n", (double)k[s->n - 1]);
    static const double upper[] = {0.999, 0.99, 0.95, 0.90}, lower[] = {0.10, 0.05, 0.01};
    for (int i = 0; i < 4; i++)
        printf("%4.1f%%   KLD: %10.6f\n", 100 * upper[i], quality_percentile(k, s->n, upper[i]));
    printf("Median  KLD: %10.6f\n", quality_percentile(k, s->n, 0.5));
    for (int i = 0; i < 3; i++)
        printf("%4.1f%%   KLD: %10.6f\n", 100 * lower[i], quality_percentile(k, s->n, lower[i]));
    printf("Minimum KLD: %10.6f\n", (double)k[0]);
}

static void print_probabilities(const quality_sums *s, const struct figures *f)
{
    const float *p = s->p_diffs;
    printf("\n====== Token probability statistics ======\n");
    printf("Mean    Δp: %6.3lf ± %5.3lf %%\n", 100 * f->p_diff.value, 100 * f->p_diff.error);
    printf("Maximum Δp: %6.3lf%%\n", 100 * (double)p[s->n - 1]);
    static const double upper[] = {0.999, 0.99, 0.95, 0.90, 0.75}, lower[] = {0.25, 0.10, 0.05, 0.01, 0.001};
    for (int i = 0; i < 5; i++)
        printf("%4.1f%%   Δp: %6.3lf%%\n", 100 * upper[i], 100 * quality_percentile(p, s->n, upper[i]));
    printf("Median  Δp: %6.3lf%%\n", 100 * quality_percentile(p, s->n, 0.5));
    for (int i = 0; i < 5; i++)
        printf("%4.1f%%   Δp: %6.3lf%%\n", 100 * lower[i], 100 * quality_percentile(p, s->n, lower[i]));
    printf("Minimum Δp: %6.3lf%%\n", 100 * (double)p[0]);
    printf("RMS Δp    : %6.3lf ± %5.3lf %%\n", 100 * f->p_rms.value, 100 * f->p_rms.error);
    printf("Same top p: %6.3lf ± %5.3lf %%\n", 100 * f->same.value, 100 * f->same.error);
}

void quality_sort(quality_sums *s)
{
    qsort(s->klds, (size_t)s->n, sizeof *s->klds, by_value);
    qsort(s->p_diffs, (size_t)s->n, sizeof *s->p_diffs, by_value);
}

void quality_print_summary(quality_sums *s)
{
    struct figures f = figures_of(s);
    quality_sort(s);
    putchar('\n');
    print_perplexity(s, &f);
    print_divergence(s, &f);
    print_probabilities(s, &f);
}

/* A member of a JSON object; what is no number is null, as JSON has no word for it. */
static void put_number(const char *name, int digits, double v)
{
    if (isfinite(v)) printf(", \"%s\": %.*f", name, digits, v);
    else printf(", \"%s\": null", name);
}

int quality_is_known(const quality_sums *s)
{
    quality_estimate ppl = quality_perplexity(s);
    return s->n > 0 && isfinite(ppl.value) && isfinite(ppl.error) && isfinite(s->kld2) && isfinite(s->nll_base2);
}

void quality_print_json(quality_sums *s, int32_t n_ctx, int32_t n_chunks, int against)
{
    const double nothing = quality_is_known(s) ? 0 : NAN; /* added to each figure */
    estimate ppl = quality_perplexity(s);
    printf("{\"n_ctx\": %d, \"n_chunks\": %d, \"n_scored\": %lld", n_ctx, n_chunks, (long long)s->n);
    put_number("perplexity", 6, ppl.value + nothing);
    put_number("perplexity_error", 6, ppl.error + nothing);
    if (against) {
        struct figures f = figures_of(s);
        if (s->n) quality_sort(s);
        put_number("perplexity_base", 6, exp(f.nll_base.value) + nothing);
        put_number("ln_ratio", 6, f.log_ratio.value + nothing);
        put_number("ln_ratio_error", 6, f.log_ratio.error + nothing);
        put_number("kld_mean", 8, f.kld.value + nothing);
        put_number("kld_error", 8, f.kld.error + nothing);
        put_number("kld_median", 8, s->n ? quality_percentile(s->klds, s->n, 0.5) + nothing : NAN);
        put_number("kld_p99", 8, s->n ? quality_percentile(s->klds, s->n, 0.99) + nothing : NAN);
        put_number("kld_max", 8, s->n ? (double)s->klds[s->n - 1] + nothing : NAN);
        put_number("p_diff_mean", 8, f.p_diff.value + nothing);
        put_number("p_diff_rms", 8, f.p_rms.value + nothing);
        put_number("same_top", 6, f.same.value + nothing);
    }
    printf("}\n");
}

static void put_member(weft__strbuf *t, const char *name, double v)
{
    if (isfinite(v)) weft__strbuf_printf(t, ", \"%s\": %.6f", name, v);
    else weft__strbuf_printf(t, ", \"%s\": null", name);
}

void quality_put_documents(weft__strbuf *t, const quality_sums *s, int32_t n_documents, int32_t n_cut)
{
    const double nothing = quality_is_known(s) ? 0 : NAN;
    estimate ppl = quality_perplexity(s);
    weft__strbuf_printf(t, "\"tokens\": %lld, \"documents\": %d, \"cut\": %d", (long long)s->n, n_documents, n_cut);
    put_member(t, "ppl", ppl.value + nothing);
    put_member(t, "ppl_error", ppl.error + nothing);
    put_member(t, "nll", (s->n ? s->nll / (double)s->n : NAN) + nothing);
}
