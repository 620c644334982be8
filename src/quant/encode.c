// SPDX-License-Identifier: Apache-2.0
/* encode.c: checks rows, prepares their weights and hands them to the encoder of their type.
 * A row is encoded in pieces of whole blocks, so that the weights of a piece fit on the stack. */
#include "quant/encode.h"

#include <math.h>
#include <string.h>

#include "quant/encoders.h"
#include "quant/half.h"

enum { PIECE = 1024 }; /* a multiple of every block */

static weft__encode_fn encoder(uint32_t dtype)
{
    switch (dtype) {
    case WEFT_Q4_0: return weft__encode_q4_0;
    case WEFT_Q4_1: return weft__encode_q4_1;
    case WEFT_Q5_0: return weft__encode_q5_0;
    case WEFT_Q5_1: return weft__encode_q5_1;
    case WEFT_Q8_0: return weft__encode_q8_0;
    case WEFT_Q2_K: return weft__encode_q2_k;
    case WEFT_Q3_K: return weft__encode_q3_k;
    case WEFT_Q4_K: return weft__encode_q4_k;
    case WEFT_Q5_K: return weft__encode_q5_k;
    case WEFT_Q6_K: return weft__encode_q6_k;
    case WEFT_IQ4_NL: return weft__encode_iq4_nl;
    case WEFT_IQ4_XS: return weft__encode_iq4_xs;
    default: return NULL;
    }
}

static int is_float(uint32_t dtype)
{
    return dtype == WEFT_F32 || dtype == WEFT_F16 || dtype == WEFT_BF16;
}

/* The nearest number of the format; the largest finite one for what would round to infinity. */
static void encode_floats(uint32_t dtype, const float *x, uint8_t *dst, int64_t n)
{
    if (dtype == WEFT_F32) {
        memcpy(dst, x, (size_t)n * sizeof *x);
        return;
    }
    const uint16_t infinity = dtype == WEFT_F16 ? 0x7c00 : 0x7f80;
    for (int64_t i = 0; i < n; i++) {
        uint16_t h = dtype == WEFT_F16 ? weft__f16_from_f32(x[i]) : weft__bf16_from_f32(x[i]);
        if ((h & 0x7fff) == infinity) h--;
        memcpy(dst + 2 * i, &h, sizeof h);
    }
}

/* What is as large or larger becomes something else. Of blocks: the largest scale, an F16 number, times the largest
 * code, and minimum; where minima are subtracted, or scales are not negative, numbers below 0 reach less far. */
static float range_end(uint32_t dtype, int negative)
{
    switch (dtype) {
    case WEFT_F16: return 65520.f; /* what is below rounds to 65504 */
    case WEFT_BF16: return 0x1.ffp127f;
    case WEFT_Q4_0: return 65536.f * 8;
    case WEFT_Q5_0: return 65536.f * 16;
    case WEFT_Q4_1: return 65536.f * (negative ? 1 : 16);
    case WEFT_Q5_1: return 65536.f * (negative ? 1 : 32);
    case WEFT_Q8_0:
    case WEFT_IQ4_NL: return 65536.f * 127;
    case WEFT_Q2_K: return 65536.f * (negative ? 15 : 15 * 3);
    case WEFT_Q3_K: return 65536.f * 32 * 4;
    case WEFT_Q4_K: return 65536.f * (negative ? 63 : 63 * 15);
    case WEFT_Q5_K: return 65536.f * (negative ? 63 : 63 * 31);
    case WEFT_Q6_K: return 65536.f * 128 * 32;
    case WEFT_IQ4_XS: return 65536.f * 32 * 127;
    default: return INFINITY;
    }
}

void weft__quant_beyond_add(weft__quant_beyond *sum, const weft__quant_beyond *later)
{
    const int64_t n = sum->n + later->n;
    if (!sum->n) *sum = *later;
    sum->n = n;
}

static weft_status check_row(uint32_t dtype, const float *x, int64_t row, int64_t n, weft__quant_beyond *beyond,
                             weft_error *err)
{
    const float end = range_end(dtype, 0), below = -range_end(dtype, 1);
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(x[i]))
            return weft_fail(err, WEFT_ARGUMENT,
                             "row %lld, column %lld: %s cannot be quantized; repair or re-export the weights",
                             (long long)row, (long long)i, isnan(x[i]) ? "NaN" : "infinity");
        if (beyond && (x[i] >= end || x[i] <= below))
            weft__quant_beyond_add(beyond, &(weft__quant_beyond){1, row, i, x[i]});
    }
    return WEFT_OK;
}

/* The mean of the importances, or 0 when they are all 0 or absent. */
static weft_status importance_mean(const float *importance, int64_t n, double *mean, weft_error *err)
{
    double sum = 0;
    *mean = 0;
    if (!importance) return WEFT_OK;
    for (int64_t i = 0; i < n; i++) {
        if (!(importance[i] >= 0 && isfinite(importance[i])))
            return weft_fail(err, WEFT_ARGUMENT, "importance of column %lld is %g; it must be finite and not negative",
                             (long long)i, (double)importance[i]);
        sum += importance[i];
    }
    if (n > 0) *mean = sum / (double)n;
    return WEFT_OK;
}

static void encode_row(weft__encode_fn encode, weft_dtype_info info, const float *x, const float *importance,
                       double mean, uint8_t *dst, int64_t n)
{
    float w[PIECE];
    for (int64_t at = 0; at < n; at += PIECE) {
        int64_t m = n - at < PIECE ? n - at : PIECE;
        for (int64_t i = 0; i < m; i++) w[i] = mean > 0 ? (float)(importance[at + i] / mean) + 1e-6f : 1.f;
        encode(x + at, w, dst + at / info.block_elems * info.block_bytes, m);
    }
}

/* Rows [first, first + n_rows) of a matrix. */
static weft_status encode_rows(uint32_t dtype, const float *src, void *dst, int64_t first, int64_t n_rows,
                               int64_t n_per_row, const float *importance, weft__quant_beyond *beyond, weft_error *err)
{
    weft_dtype_info info = weft_dtype_describe(dtype);
    weft__encode_fn encode = encoder(dtype);
    uint64_t row_bytes = weft__quant_row_bytes(dtype, n_per_row);
    double mean;
    weft_status st;
    if (!encode && !is_float(dtype))
        return weft_fail(err, WEFT_UNSUPPORTED, "type %s (%u) has no encoder", info.name ? info.name : "unknown",
                         (unsigned)dtype);
    if (n_rows < 0 || n_per_row < 0 || (n_per_row > 0 && row_bytes == 0))
        return weft_fail(err, WEFT_ARGUMENT,
                         "%lld rows of %lld elements: %s is stored in blocks of %u; give whole blocks",
                         (long long)n_rows, (long long)n_per_row, info.name, info.block_elems);
    if ((st = importance_mean(importance, n_per_row, &mean, err))) return st;
    for (int64_t r = 0; r < n_rows; r++) {
        const float *x = src + r * n_per_row;
        uint8_t *to = (uint8_t *)dst + (uint64_t)r * row_bytes;
        if ((st = check_row(dtype, x, first + r, n_per_row, beyond, err))) return st;
        if (encode) encode_row(encode, info, x, importance, mean, to, n_per_row);
        else encode_floats(dtype, x, to, n_per_row);
    }
    return WEFT_OK;
}

weft_status weft__quant_encode_rows(uint32_t dtype, const float *src, void *dst, int64_t n_rows, int64_t n_per_row,
                                    const float *importance, weft_error *err)
{
    return encode_rows(dtype, src, dst, 0, n_rows, n_per_row, importance, NULL, err);
}

weft_status weft__quant_encode_row(uint32_t dtype, const float *src, void *dst, int64_t row, int64_t n,
                                   const float *importance, weft__quant_beyond *beyond, weft_error *err)
{
    return encode_rows(dtype, src, dst, row, 1, n, importance, beyond, err);
}
