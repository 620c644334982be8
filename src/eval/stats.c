// SPDX-License-Identifier: Apache-2.0
/* stats.c: intervals and paired tests (stats.h). */
#include "eval/stats.h"

#include <math.h>

weft__eval_interval weft__eval_wilson(double k, double n, double z)
{
    if (!(n > 0)) return (weft__eval_interval){0, 1};
    const double zz = z * z, middle = (k + zz / 2) / (n + zz);
    const double half = z / (n + zz) * sqrt(k * (n - k) / n + zz / 4);
    return (weft__eval_interval){k > 0 ? fmax(0, middle - half) : 0, k < n ? fmin(1, middle + half) : 1};
}

static double log_factorial(double n)
{
    int sign;
    return lgamma_r(n + 1, &sign);
}

double weft__eval_mcnemar(int64_t b, int64_t c)
{
    const double n = (double)b + (double)c, whole = log_factorial(n) - n * log(2);
    const int64_t least = b < c ? b : c;
    double p = 0;
    for (int64_t i = 0; i <= least; i++) p += exp(whole - log_factorial((double)i) - log_factorial(n - (double)i));
    return b == c ? 1 : fmin(1, 2 * p);
}

double weft__eval_pass_at(int64_t n, int64_t c, int64_t k)
{
    double none = 1;
    if (n - c < k) return 1;
    for (int64_t i = n - c + 1; i <= n; i++) none *= 1 - (double)k / (double)i;
    return 1 - none;
}

void weft__eval_sums_add(weft__eval_sums *s, double v)
{
    const double before = s->n ? s->sum / (double)s->n : 0;
    s->n++;
    s->sum += v;
    if (s->n > 1) s->squares += (v - before) * (v - s->sum / (double)s->n);
}

double weft__eval_sums_mean(const weft__eval_sums *s)
{
    return s->n ? s->sum / (double)s->n : NAN;
}

double weft__eval_sums_error(const weft__eval_sums *s)
{
    return s->n > 1 ? sqrt(fmax(0, s->squares) / (double)(s->n - 1) / (double)s->n) : NAN;
}

double weft__eval_ratio_error(const double *a, const double *w, size_t n)
{
    double sum_a = 0, sum_w = 0, squares = 0;
    for (size_t i = 0; i < n; i++) sum_a += a[i], sum_w += w[i];
    if (n < 2 || !(sum_w > 0)) return NAN;
    for (size_t i = 0; i < n; i++) {
        const double rest = a[i] - sum_a / sum_w * w[i];
        squares += rest * rest;
    }
    return sqrt(squares * (double)n / (double)(n - 1)) / sum_w;
}

double weft__eval_normal_p(double z)
{
    return erfc(fabs(z) / sqrt(2));
}
