// SPDX-License-Identifier: Apache-2.0
/* check.h: what the files of the kernel checker share. One program, one thread.
 *
 * A check runs one line of kernels.def against ref on many cases and keeps the worst error. Cases are drawn from a
 * generator that is seeded the same for every line, so a failure repeats. */
#ifndef WEFT_TESTS_KERNELS_CHECK_H
#define WEFT_TESTS_KERNELS_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "claims.h"
#include "base/random.h"
#include "kernels/kernels.h"

/* Every how manieth of a run of sizes is tried: kernels are functions of one thread, and what a tier computes does not
 * depend on the thread sanitizer. */
#define EVERY_SIZE CLAIMS_REPEATED(1, CLAIMS_SWEPT(4, 1), 5)
/* The same of outputs and rows, which are many for each other size, and begin elsewhere for each. */
#define EVERY_ROW CLAIMS_REPEATED(CLAIMS_SWEPT(3, 1), CLAIMS_SWEPT(5, 3), 5)

typedef struct check {
    const weft__kernel_entry *entry;
    const weft__kernels *k;   /* ref, overwritten by the tier under test */
    const weft__kernels *ref; /* ref alone */
    weft__rng rng;
    double worst; /* largest error seen */
    int cases;
    char fault[200]; /* first fault, empty while there is none */
} check;

void check_matmul(check *c);
void check_expand(check *c);
void check_norm_rms(check *c);
void check_add(check *c);
void check_scale(check *c);
void check_glu(check *c);
void check_softcap(check *c);
void check_rope(check *c);
void check_argmax(check *c);
void check_decode_row(check *c);
void check_kv_put(check *c);
void check_attn_split(check *c);
void check_kv_rotate(check *c);
void check_kv_code(check *c);
void check_attn_coded(check *c);
/* Attention over coded pages against double arithmetic over what their bytes decode to; a part of the former. */
void check_attn_decoded(check *c);
void check_attn_combine(check *c);
void check_gemm(check *c);
void check_norm_back(check *c);
void check_glu_back(check *c);
void check_exp_sum(check *c);

/* Notes a fault, in words; later ones are dropped. */
void check_fail(check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Notes an error; above the line's bound it is a fault, described by `what`. NaN counts as infinite. */
void check_error(check *c, double error, const char *what);

/* Values for one row. */
typedef enum pattern {
    P_NORMAL,   /* standard normal */
    P_OUTLIERS, /* normal with a few of 50 */
    P_TINY,     /* around 1e-30 */
    P_HUGE,     /* around 1e15 */
    P_DENORMAL, /* below 1e-38 */
    P_ZERO,
    P_WHOLE,  /* whole numbers of at most 127, and 127 in every 32: 8 bits hold them exactly */
    P_FINITE, /* how many patterns there are that hold finite numbers only */
    P_NAN = P_FINITE,
    P_INFINITE,
    P_COUNT
} pattern;
void check_values(check *c, pattern p, float *x, int64_t n);
/* The same of values that are only about normal (within 3.5), without the logarithms and cosines in which sanitized
 * products of all sizes spent a third of their time. */
void check_many_values(check *c, pattern p, float *x, int64_t n);
/* A score is rounded in proportion to what it sums up, at most the length of query times key, and a weight errs by as
 * much as its score: how many times a bound for scores up to 100 holds. Both are squares of lengths. */
double check_score_size(double q_square, double k_square, int head_dim);
const char *check_pattern_name(pattern p);

/* Memory with guard bytes on both sides. `shift` moves the start off its 64-byte alignment. */
typedef struct guarded {
    uint8_t *block;
    uint8_t *p; /* n_bytes usable bytes */
    size_t n_bytes, offset;
} guarded;
guarded guarded_new(size_t n_bytes, size_t shift);
/* Frees; a changed guard byte is a fault. */
void guarded_free(check *c, guarded *g, const char *what);

/* Largest difference of n elements, each relative to |b| or to `floor`, whichever is larger. Both NaN, or equal
 * infinities: 0. */
double check_difference(const float *a, const float *b, int64_t n, double floor);
/* Sum (a-b)^2 / sum b^2; squares below 1e-60 do not count. */
double check_nmse(const float *a, const float *b, int64_t n);
int check_same_bits(const float *a, const float *b, int64_t n);
/* The same, but which NaN it is does not matter (kernels.h): of two, an instruction keeps the one that its form names
 * first. */
int check_same_answer(const float *a, const float *b, int64_t n);

#endif
