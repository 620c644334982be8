// SPDX-License-Identifier: Apache-2.0
/* bench_kernels.h: what the files of the benchmark of kernels share. */
#ifndef WEFT_TESTS_KERNELS_BENCH_KERNELS_H
#define WEFT_TESTS_KERNELS_BENCH_KERNELS_H

#include "base/pool.h"
#include "base/taken.h"
#include "kernels/kernels.h"

enum { RUNS = 9 };

/* What others took of the time of the row that is measured, and how many rows there were. */
typedef struct rows_taken {
    weft__taken_mark begun;
    weft__taken row;
    weft__taken_again again;
    int n_rows, n_marked;
} rows_taken;

typedef struct bench {
    weft__pool *pool;
    int n_threads;
    weft__peak_kernels peak;
    const weft__kernel_entry *entry;
    rows_taken taken;
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
/* Before a row is measured, or measured again. */
void bench_row_begins(bench *b, int again);
/* Behind it, of so many threads: 1 where others took so much that it is worth measuring it again. */
int bench_row_disturbed(bench *b, int n_threads);
/* One line of the table, of the row that was measured last: `what` names the case. */
void bench_print_line(bench *b, const char *what, const struct result *r);
/* Every case of the op of b->entry that works on rows alone. */
void bench_rows(bench *b);

#endif
