// SPDX-License-Identifier: Apache-2.0
/* median.h: of what was measured. */
#ifndef WEFT_BENCH_MEDIAN_H
#define WEFT_BENCH_MEDIAN_H

#include <stdlib.h>

static inline int median_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Of n > 0 numbers; sorts x. */
static inline double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, median_compare);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

#endif
