// SPDX-License-Identifier: Apache-2.0
/* bench_kernels.h: what the files of the benchmark of kernels share. */
#ifndef WEFT_TESTS_KERNELS_BENCH_KERNELS_H
#define WEFT_TESTS_KERNELS_BENCH_KERNELS_H

#include "base/pool.h"
#include "kernels/kernels.h"

enum { RUNS = 9 };

typedef struct bench {
    weft__pool *pool;
    int n_threads;
    weft__peak_kernels peak;
    const weft__kernel_entry *entry;
} bench;

/* What was measured of one case. bytes, ops and shares of 0 are not shown. */
struct result {
    double seconds, bytes, ops;
    double read_share, peak_share;
};

/* p, or the end of the program where it is NULL. */
void *bench_need(void *p);
/* Of n numbers, which it sorts. */
double bench_median(double *x, int n);
/* One line of the table: `what` names the case. */
void bench_print_line(const bench *b, const char *what, const struct result *r);
/* Every case of the op of b->entry that works on rows alone. */
void bench_rows(bench *b);

#endif
