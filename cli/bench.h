/* bench.h: one measured row of weft bench, and how rows are printed. */
#ifndef WEFT_CLI_BENCH_H
#define WEFT_CLI_BENCH_H

#include <stdint.h>

#include "weft/weft.h"

enum { BENCH_REPS_MAX = 1000 };

typedef struct bench_row {
    const char *model_file; /* path, or the synthetic shape */
    weft_model_info info;
    int32_t n_prompt, n_gen, n_depth, n_parallel, n_reps, n_batch;
    const char *kv_type;
    char test_time[32]; /* ISO 8601, UTC */
    uint64_t samples_ns[BENCH_REPS_MAX];
    double avg_ns, stddev_ns, avg_ts, stddev_ts, median_ts;
    /* With --roofline: the limit that binds this row, tokens per second and its name; 0 without. */
    double limit_ts;
    const char *limit_name;
} bench_row;

enum bench_format { BENCH_MD, BENCH_JSON, BENCH_JSONL, BENCH_CSV };

/* Tokens that one repetition of the row produces or reads. */
double bench_tokens(const bench_row *row);
/* "pp512", "tg128", "pp512+tg128", with " @ d1024" and, for several sequences, " x4". out: 64 bytes. */
void bench_name(const bench_row *row, char *out);
/* Fills avg, stddev and median from samples_ns[n_reps]. */
void bench_summarize(bench_row *row);

void bench_print_begin(enum bench_format format, int roofline);
void bench_print_row(enum bench_format format, const bench_row *row, int first);
void bench_print_end(enum bench_format format);
/* The limits, before and after. */
void bench_print_peaks(const weft_peaks *before, const weft_peaks *after);

#endif
