// SPDX-License-Identifier: Apache-2.0
/* bench.h: what the files of weft bench share: its options, the sessions that a measurement runs on, one measured row,
 * and how rows are printed. One thread. */
#ifndef WEFT_CLI_BENCH_H
#define WEFT_CLI_BENCH_H

#include <stdint.h>

#include "base/json.h"
#include "base/taken.h"
#include "options.h"
#include "rope.h"
#include "weft/weft.h"

enum {
    BENCH_REPS_MAX = 1000,
    BENCH_PEAKS = 5, /* figures of weft_peaks */
    BENCH_FILL = 512,
    BENCH_BATCH = 512 /* rows of a step while a prompt is read: the engine's own default */
};

enum bench_format { BENCH_MD, BENCH_JSON, BENCH_JSONL, BENCH_CSV };

typedef struct bench_options {
    struct int_list n_prompt, n_gen, n_depth, parallel, threads;
    int32_t reps, again; /* again: repetitions more, where others took too much of the time; -1: as many as reps */
    int roofline, no_warmup, batched, profile, counters, json, fill;
    const char *format_name, *synthetic, *type, *kv_type, *trace, *write;
    enum bench_format format;
    rope_options rope;
    const char *spec_text; /* --spec: parts of predictions that are right, 0..1; NULL: not given */
    double spec[LIST_MAX]; /* [n_spec] */
    int n_spec;
    const char *text, *draft;    /* --text: of which prompts are; --draft: a model that guesses; NULL: not given */
    int prompt_given, gen_given; /* sizes that were not are such as fit into the model's context */
} bench_options;

#define BENCH_DEPTH_OPTIONS(o)                                                                                         \
    {"n-depth", 'd', OPT_INT_LIST, &(o)->n_depth, "N,..", "tokens already in the context (0)", 0, 1 << 20, NULL},      \
    {                                                                                                                  \
        "fill", 0, OPT_FLAG, &(o)->fill, NULL, "of a depth 512 tokens are read, the others copied", 0, 0, NULL         \
    }

/* Of --spec and what goes with it; DRAFT_OPTION is draft.h's. */
#define BENCH_SPEC_OPTIONS(o)                                                                                          \
    {"spec", 0, OPT_TEXT, &(o)->spec_text, "R,..", "guesses of which the part R is right, beside none", 0, 0, NULL},   \
        {"text", 0, OPT_TEXT, &(o)->text, "FILE", "the same with what is guessed of this text, at temperature 0",      \
         0,      0, NULL},                                                                                             \
        DRAFT_OPTION(&(o)->draft)

/* ---- sessions to measure with: bench_case.c ---- */

typedef struct bench_case {
    weft_model *model;
    int32_t n, n_vocab; /* sessions */
    weft_session *sessions[LIST_MAX];
    int fill; /* bench_case_depth reads BENCH_FILL tokens at most; beyond them are copies of their keys and values */
    int32_t *tokens; /* [n_ctx] */
    float *logits;   /* [n][n_vocab] */
    int32_t next[LIST_MAX];
} bench_case;

/* n sessions of n_ctx tokens in one group. Close also after a failure. */
weft_status bench_case_open(bench_case *c, weft_model *model, const bench_options *o, int32_t n, int32_t n_ctx,
                            weft_error *err);
void bench_case_close(bench_case *c);
/* Every session to exactly `depth` tokens. */
weft_status bench_case_depth(bench_case *c, int32_t depth, weft_error *err);
/* Every session reads n tokens, one after the other. */
weft_status bench_case_prompt(bench_case *c, int32_t n, weft_error *err);
/* n steps, in each of which every session gets one token. */
weft_status bench_case_generate(bench_case *c, int32_t n, weft_error *err);

/* ---- what others took meanwhile: bench_taken.c ---- */

/* Of a row: of its repetitions together, and in how many of them it was too much to judge by; how many more were
 * measured and left out. */
typedef struct bench_taken {
    weft__taken all;
    int32_t n_above, n_left_out;
    int32_t n_threads;
    weft__taken_mark begun; /* of the repetition that runs */
    weft__taken_again more;
} bench_taken;

/* Before the first repetition. */
void bench_taken_start(bench_taken *t, const bench_options *o, int32_t n_threads);
/* Before and behind each. The second says what was taken since (one: may be NULL), and whether it is to be measured
 * again; if not, it counts. */
void bench_taken_begin(bench_taken *t);
int bench_taken_again(bench_taken *t, weft__taken *one);
/* In how many of the n repetitions that count it was too much. Where each alone is too short to say, they are asked as
 * a whole. Rows are marked that have any. */
int32_t bench_taken_disturbed(const bench_taken *t, int32_t n_reps);
/* "12.5 % stolen *", for a table; members of a JSON object, with ", " behind; the rest of a line of CSV, and of its
 * head. */
const char *bench_taken_cell(const bench_taken *t, int32_t n_reps, char out[WEFT__TAKEN_ROOM]);
void bench_taken_json(weft__strbuf *out, const bench_taken *t, int32_t n_reps);
void bench_taken_csv(const bench_taken *t, int32_t n_reps);
#define BENCH_TAKEN_CSV ",stolen,others,throttled,disturbed,left_out"

/* Rows printed so far, and how many of them were marked. */
typedef struct bench_tally {
    int n_rows, n_marked;
} bench_tally;

/* ---- a row of the grid ---- */

typedef struct bench_row {
    const char *model_file; /* path, or the synthetic shape */
    weft_model_info info;
    int32_t n_prompt, n_gen, n_depth, n_parallel, n_reps, n_batch;
    int filled; /* beyond BENCH_FILL tokens, the depth is copies */
    const char *kv_type;
    char test_time[32]; /* ISO 8601, UTC */
    uint64_t samples_ns[BENCH_REPS_MAX];
    double samples_taken[BENCH_REPS_MAX]; /* shares of their time, and of that of their limits; NAN: unknown */
    bench_taken taken;
    weft_peaks peaks[BENCH_REPS_MAX]; /* with --roofline: of each */
    double avg_ns, stddev_ns, avg_ts, stddev_ts, median_ts;
    /* With --roofline: tokens per second that memory and multipliers allow, from the medians of peaks, the lower of the
     * two and its name; what each sample's own peaks allow; the median of the samples' shares of that; bytes that a
     * token reads at least. 0 without. */
    double read_bytes, limit_read_ts, limit_compute_ts, limit_ts, samples_limit_ts[BENCH_REPS_MAX], share;
    const char *limit_name;
    double int8_gops, l2_int8_gops; /* medians of peaks: on registers, and of a product in the second-level cache */
} bench_row;

/* Tokens that one repetition of the row produces or reads. */
double bench_tokens(const bench_row *row);
/* "pp512", "tg128", "pp512+tg128", with " @ d1024" and, for several sequences, " x4". out: 64 bytes. */
void bench_name(const bench_row *row, char *out);
/* The middle one of n values, or the mean of the two in the middle; sorts them. */
double bench_median(double *values, int n);
/* Fills avg, stddev and median from samples_ns[n_reps]. */
void bench_summarize(bench_row *row);
/* Figure i of BENCH_PEAKS. */
double *bench_peak(weft_peaks *peaks, int i);
/* Fills the limits and the share from samples_ns and peaks: every step reads all matrices and the keys and values
 * attended to once, and multiplies every row with every matrix (the head only for rows whose logits are wanted).
 * Attention's own multiplications are not counted. */
weft_status bench_find_share(bench_row *row, const weft_model *model, weft_error *err); /* bench_limit.c */

void bench_print_begin(enum bench_format format, int roofline);
void bench_print_row(enum bench_format format, const bench_row *row, int first);
void bench_print_end(enum bench_format format);
/* The limits, and what was taken while they were measured: first and last. */
void bench_print_peaks(const weft_peaks *before, const weft_peaks *after, const weft__taken *of_before,
                       const weft__taken *of_after);

/* ---- Chrome's trace event format: bench_trace.c ---- */

typedef struct bench_trace bench_trace;
weft_status bench_trace_open(const char *path, bench_trace **out, weft_error *err);
/* All recorded steps of the model, as process number `pid` with that name. */
weft_status bench_trace_add(bench_trace *trace, weft_model *model, int pid, const char *name, weft_error *err);
/* Ends the file; the first write that failed is reported here. NULL and a pointer to NULL are fine. */
weft_status bench_trace_close(bench_trace **trace, weft_error *err);

/* ---- what the threads counted (--counters): bench_counters.c ---- */

enum { BENCH_COUNTERS = 16 };

/* Sums over ops: counts, and the time in which they were counted, of that in which they were to be. */
typedef struct bench_counts {
    double n[BENCH_COUNTERS], enabled_ns[BENCH_COUNTERS], running_ns[BENCH_COUNTERS];
} bench_counts;

/* Which counters there are, and why some are absent. Zero before the first bench_counters_add. */
typedef struct bench_counters {
    int n;
    const char *name[BENCH_COUNTERS], *absent[BENCH_COUNTERS];
    int missed[BENCH_COUNTERS]; /* it is there, but never had its turn in some op */
} bench_counters;

/* Adds those of an op of the model's profile. */
weft_status bench_counters_add(bench_counters *c, bench_counts *to, const weft_model *model, int32_t op,
                               weft_error *err);
void bench_counts_sum(bench_counts *to, const bench_counts *from);
/* Sees which counters have nothing to say of the sum of an op. */
void bench_counters_look(bench_counters *c, const bench_counts *counts);
/* The table: its head, a line per op (counts per step), and below it why some are absent or were missed. */
void bench_counters_head(const bench_counters *c);
void bench_counters_line(const bench_counters *c, const char *what, const char *type, const bench_counts *counts,
                         double n_steps);
void bench_counters_foot(const bench_counters *c);
/* , "counters": {"cycles": 12, "llc_misses": null}; and , "counters_absent": {"llc_misses": "why"}. */
void bench_counters_json(weft__strbuf *out, const bench_counters *c, const bench_counts *counts);
void bench_counters_absent_json(weft__strbuf *out, const bench_counters *c);

/* ---- --batched, --spec and --profile ---- */

/* The whole grid. */
void bench_batched_begin(enum bench_format format);
weft_status bench_batched(const bench_options *o, weft_model *model, bench_tally *tally,
                          weft_error *err); /* bench_batched.c */
/* The same with --spec: bench_spec.c. */
void bench_spec_begin(enum bench_format format);
weft_status bench_spec(const bench_options *o, weft_model *model, bench_tally *tally, weft_error *err);
/* Is it asked for, by --spec, --text or --draft? */
int bench_spec_asked(const bench_options *o);
/* Fills spec from spec_text; 0: it is none. */
int bench_spec_parse(bench_options *o);
/* One row: its sizes, model_file and info are set. trace: may be NULL. */
weft_status bench_profile(const bench_options *o, weft_model *model, const bench_row *row, bench_trace *trace,
                          bench_tally *tally, weft_error *err); /* bench_profile.c */

#endif
