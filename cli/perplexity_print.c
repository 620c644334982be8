// SPDX-License-Identifier: Apache-2.0
/* perplexity_print.c: see perplexity_print.h. */
#include "perplexity_print.h"

#include <math.h>
#include <stdio.h>

/* The places of a result's quantiles, by their shares in a thousand. */
enum { Q_0, Q_1, Q_10, Q_50, Q_100, Q_250, Q_500, Q_750, Q_900, Q_950, Q_990, Q_999, Q_1000 };

void perplexity_print_final(weft_estimate e)
{
    printf("Final estimate: PPL = %.4lf +/- %.5lf\n", e.value, e.error);
}

void perplexity_print_chunk_header(void)
{
    printf("\nchunk             PPL               ln(PPL(Q)/PPL(base))          KL Divergence              Δp RMS      "
           "      Same top p\n");
}

void perplexity_print_chunk(const weft_perplexity_result *r)
{
    printf("%4lld     %8.4lf ± %9.4lf    %10.5lf ± %10.5lf    %10.5f ± %10.5lf    %6.3f ± %6.3lf %%   %6.3f ± %6.3lf "
           "%%\n",
           (long long)r->n_chunks, r->perplexity.value, r->perplexity.error, r->log_ratio.value, r->log_ratio.error,
           r->kl.value, r->kl.error, 100 * r->p_rms.value, 100 * r->p_rms.error, 100 * r->same_top.value,
           100 * r->same_top.error);
    fflush(stdout);
}

static void print_perplexity(const weft_perplexity_result *r)
{
    const double ratio = exp(r->log_ratio.value);
    printf("====== Perplexity statistics ======\n");
    printf("Mean PPL(Q)                   : %10.6lf ± %10.6lf\n", r->perplexity.value, r->perplexity.error);
    printf("Mean PPL(base)                : %10.6lf ± %10.6lf\n", r->base_perplexity.value, r->base_perplexity.error);
    printf("Cor(ln(PPL(Q)), ln(PPL(base))): %6.2lf%%\n", 100 * r->correlation);
    printf("Mean ln(PPL(Q)/PPL(base))     : %10.6lf ± %10.6lf\n", r->log_ratio.value, r->log_ratio.error);
    printf("Mean PPL(Q)/PPL(base)         : %10.6lf ± %10.6lf\n", ratio, ratio * r->log_ratio.error);
    printf("Mean PPL(Q)-PPL(base)         : %10.6lf ± %10.6lf\n", r->difference.value, r->difference.error);
}

static void print_divergence(const weft_perplexity_result *r)
{
    static const struct {
        const char *name;
        int at;
    } shares[] = {{"99.9%   KLD", Q_999}, {"99.0%   KLD", Q_990}, {"95.0%   KLD", Q_950}, {"90.0%   KLD", Q_900},
                  {"Median  KLD", Q_500}, {"10.0%   KLD", Q_100}, {" 5.0%   KLD", Q_50},  {" 1.0%   KLD", Q_10}};
    printf("\n====== KL divergence statistics ======\n");
    printf("Mean    KLD: %10.6lf ± %10.6lf\n", r->kl.value, r->kl.error);
    printf("Maximum KLD: %10.6f\n", r->kl_at[Q_1000]);
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        printf("%s: %10.6f\n", shares[i].name, r->kl_at[shares[i].at]);
    printf("Minimum KLD: %10.6f\n", r->kl_at[Q_0]);
}

static void print_probabilities(const weft_perplexity_result *r)
{
    static const struct {
        const char *name;
        int at;
    } shares[] = {{"99.9%   Δp", Q_999}, {"99.0%   Δp", Q_990}, {"95.0%   Δp", Q_950}, {"90.0%   Δp", Q_900},
                  {"75.0%   Δp", Q_750}, {"Median  Δp", Q_500}, {"25.0%   Δp", Q_250}, {"10.0%   Δp", Q_100},
                  {" 5.0%   Δp", Q_50},  {" 1.0%   Δp", Q_10},  {" 0.1%   Δp", Q_1}};
    printf("\n====== Token probability statistics ======\n");
    printf("Mean    Δp: %6.3lf ± %5.3lf %%\n", 100 * r->p_diff.value, 100 * r->p_diff.error);
    printf("Maximum Δp: %6.3lf%%\n", 100 * r->p_diff_at[Q_1000]);
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        printf("%s: %6.3lf%%\n", shares[i].name, 100 * r->p_diff_at[shares[i].at]);
    printf("Minimum Δp: %6.3lf%%\n", 100 * r->p_diff_at[Q_0]);
    printf("RMS Δp    : %6.3lf ± %5.3lf %%\n", 100 * r->p_rms.value, 100 * r->p_rms.error);
    printf("Same top p: %6.3lf ± %5.3lf %%\n", 100 * r->same_top.value, 100 * r->same_top.error);
}

void perplexity_print_summary(const weft_perplexity_result *r)
{
    putchar('\n');
    print_perplexity(r);
    print_divergence(r);
    print_probabilities(r);
}

/* A member of a JSON object; what is no number is null, as JSON has no word for it. */
static void print_number(const char *name, int digits, double v)
{
    if (isfinite(v)) printf(", \"%s\": %.*f", name, digits, v);
    else printf(", \"%s\": null", name);
}

void perplexity_print_json(const weft_perplexity_result *r, int against)
{
    printf("{\"n_ctx\": %d, \"n_chunks\": %lld, \"n_scored\": %lld", r->n_ctx, (long long)r->n_chunks,
           (long long)r->n_scored);
    print_number("perplexity", 6, r->perplexity.value);
    print_number("perplexity_error", 6, r->perplexity.error);
    if (against) {
        print_number("perplexity_base", 6, r->base_perplexity.value);
        print_number("ln_ratio", 6, r->log_ratio.value);
        print_number("ln_ratio_error", 6, r->log_ratio.error);
        print_number("kld_mean", 8, r->kl.value);
        print_number("kld_error", 8, r->kl.error);
        print_number("kld_median", 8, r->kl_at[Q_500]);
        print_number("kld_p99", 8, r->kl_at[Q_990]);
        print_number("kld_max", 8, r->kl_at[Q_1000]);
        print_number("p_diff_mean", 8, r->p_diff.value);
        print_number("p_diff_rms", 8, r->p_rms.value);
        print_number("same_top", 6, r->same_top.value);
    }
    printf("}\n");
}

void perplexity_put_member(weft__strbuf *t, const char *name, double v)
{
    if (isfinite(v)) weft__strbuf_printf(t, ", \"%s\": %.6f", name, v);
    else weft__strbuf_printf(t, ", \"%s\": null", name);
}
