// SPDX-License-Identifier: Apache-2.0
/* matmul.c: the matrix product for every format, readable (kernels.h): weights are used where they lie, decoded a piece
 * at a time, and multiplied in float. Invariant: element i of a row goes into partial sum i % LANES, in rising i, and
 * the partial sums are added in one order, so a result does not depend on the number of rows. Reentrant; no state. */
#include "kernels/list.h"

#include <string.h>

#include "quant/quant.h"

enum {
    LANES =
        16, /* partial sums of one output: few enough for the registers of any machine, and short chains of roundings */
    PIECE = 2048, /* elements decoded at a time; a multiple of every format's block and of LANES */
    ROWS = 32     /* rows that share what was decoded */
};

static size_t act_bytes(int64_t k, int64_t m)
{
    return (size_t)k * (size_t)m * sizeof(float);
}

static void act_put(const float *x, int64_t ldx, const weft__act_part *part, void *act)
{
    float *to = (float *)act + part->row * part->k + part->from;
    for (int64_t i = 0; i < part->n; i++)
        memcpy(to + i * part->k, x + i * ldx, (size_t)(part->to - part->from) * sizeof *x);
}

static void act_take(const void *act, int64_t k, int64_t row, int64_t m, void *to, int64_t to_row, int64_t to_m)
{
    (void)m, (void)to_m;
    memcpy((float *)to + to_row * k, (const float *)act + row * k, (size_t)k * sizeof(float));
}

static const weft__act act_f32 = {"f32", 1, act_bytes, act_put, act_take};

typedef float quad __attribute__((vector_size(16))); /* what every machine multiplies at once */

static quad at(const float *x)
{
    quad v;
    memcpy(&v, x, sizeof v);
    return v;
}

static void dot(const float *w, const float *x, int64_t n, float sum[LANES])
{
    quad s0 = at(sum), s1 = at(sum + 4), s2 = at(sum + 8), s3 = at(sum + 12);
    const int64_t whole = n - n % LANES;
    for (int64_t i = 0; i < whole; i += LANES) {
        s0 += at(w + i) * at(x + i);
        s1 += at(w + i + 4) * at(x + i + 4);
        s2 += at(w + i + 8) * at(x + i + 8);
        s3 += at(w + i + 12) * at(x + i + 12);
    }
    memcpy(sum, &s0, sizeof s0);
    memcpy(sum + 4, &s1, sizeof s1);
    memcpy(sum + 8, &s2, sizeof s2);
    memcpy(sum + 12, &s3, sizeof s3);
    for (int j = 0; whole + j < n; j++) sum[j] += w[whole + j] * x[whole + j];
}

static float total(const float *sum)
{
    double s = 0;
    for (int j = 0; j < LANES; j++) s += sum[j];
    return (float)s;
}

/* One weight row times n_rows <= ROWS rows of x; out: one float per row, ldo apart. */
static void row_product(uint32_t dtype, const uint8_t *row, int64_t k, const float *x, int64_t n_rows, float *out,
                        int64_t ldo)
{
    const weft_dtype_info info = weft_dtype_describe(dtype);
    const weft__quant_decode_fn decode = weft__quant_decoder(dtype);
    float w[PIECE], sum[ROWS][LANES];
    memset(sum, 0, (size_t)n_rows * sizeof sum[0]);
    for (int64_t at = 0; at < k; at += PIECE) {
        int64_t n = k - at < PIECE ? k - at : PIECE;
        decode(row + at / info.block_elems * info.block_bytes, w, n);
        for (int64_t i = 0; i < n_rows; i++) dot(w, x + i * k + at, n, sum[i]);
    }
    for (int64_t i = 0; i < n_rows; i++) out[i * ldo] = total(sum[i]);
}

static void matmul(uint32_t dtype, const weft__product *p)
{
    const int64_t k = p->k, ldo = p->ldo;
    for (int64_t i = 0; i < p->m; i += ROWS) {
        const int64_t n_rows = p->m - i < ROWS ? p->m - i : ROWS;
        const float *x = (const float *)p->act + i * k;
        for (int64_t j = 0; j < p->n_out; j++) {
            const uint8_t *row = (const uint8_t *)p->panels + (size_t)j * p->stride;
            row_product(dtype, row, k, x, n_rows, p->out + i * ldo + j, ldo);
        }
    }
}

#define MATMUL(type, symbol)                                                                                           \
    static void run_##type(const weft__product *p, weft__kernel_prefetch *ahead)                                       \
    {                                                                                                                  \
        (void)ahead;                                                                                                   \
        matmul(WEFT_##type, p);                                                                                        \
    }                                                                                                                  \
    const weft__matmul symbol = {                                                                                      \
        &(#symbol)[sizeof "weft__" - 1], WEFT_##type, WEFT__TIER_REF, 1, &act_f32, NULL, NULL, NULL, run_##type};

MATMUL(F32, weft__matmul_f32_ref)
MATMUL(F16, weft__matmul_f16_ref)
MATMUL(BF16, weft__matmul_bf16_ref)
MATMUL(Q4_0, weft__matmul_q4_0_ref)
MATMUL(Q4_1, weft__matmul_q4_1_ref)
MATMUL(Q5_0, weft__matmul_q5_0_ref)
MATMUL(Q5_1, weft__matmul_q5_1_ref)
MATMUL(Q8_0, weft__matmul_q8_0_ref)
MATMUL(Q2_K, weft__matmul_q2_k_ref)
MATMUL(Q3_K, weft__matmul_q3_k_ref)
MATMUL(Q4_K, weft__matmul_q4_k_ref)
MATMUL(Q5_K, weft__matmul_q5_k_ref)
MATMUL(Q6_K, weft__matmul_q6_k_ref)
MATMUL(IQ4_NL, weft__matmul_iq4_nl_ref)
MATMUL(IQ4_XS, weft__matmul_iq4_xs_ref)
