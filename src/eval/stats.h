// SPDX-License-Identifier: Apache-2.0
/* stats.h: how sure a rate, a mean or a difference is. Pure. */
#ifndef WEFT_EVAL_STATS_H
#define WEFT_EVAL_STATS_H

#include <stddef.h>
#include <stdint.h>

/* Two-sided 95 % of the normal distribution. */
#define WEFT__EVAL_Z95 1.959963984540054

typedef struct weft__eval_interval {
    double low, high;
} weft__eval_interval;

/* Of k right answers in n, 0 <= k <= n: the score interval (Wilson 1927). n 0: [0, 1]. */
weft__eval_interval weft__eval_wilson(double k, double n, double z);

/* Two runs over the same questions: b that only the first has right, c that only the second has. The probability of a
 * split so uneven, or more, were the two as good: exact, two-sided (McNemar 1947; binomial with 1/2). 1 without any. */
double weft__eval_mcnemar(int64_t b, int64_t c);

/* The chance that k of n samples, c of them right, have a right one: 1 - C(n-c, k) / C(n, k), without bias (Chen et
 * al. 2021). 0 <= c <= n, 1 <= k <= n. */
double weft__eval_pass_at(int64_t n, int64_t c, int64_t k);

/* Sums for a mean and its standard error, s / sqrt(n). Zero-initialise. */
typedef struct weft__eval_sums {
    int64_t n;
    double sum, squares; /* squares: of the differences from the mean so far (Welford 1962) */
} weft__eval_sums;
void weft__eval_sums_add(weft__eval_sums *s, double v);
/* NAN of none, and of one. */
double weft__eval_sums_mean(const weft__eval_sums *s);
double weft__eval_sums_error(const weft__eval_sums *s);

/* Standard error of sum(a) / sum(w) over n pairs, by linearisation (Cochran 1977, 6.4); NAN of fewer than two. */
double weft__eval_ratio_error(const double *a, const double *w, size_t n);

/* Two-sided probability of |z| or more under the normal distribution. */
double weft__eval_normal_p(double z);

#endif
