// SPDX-License-Identifier: Apache-2.0
/* attn_coded_values.h: weighted values of every format, for attn_coded.h. A value's scale goes into its weight; values
 * are added in the order of positions, for each query by itself. */
#ifndef WEFT_KERNELS_SIMD_ATTN_CODED_VALUES_H
#define WEFT_KERNELS_SIMD_ATTN_CODED_VALUES_H

#include "kernels/simd/attn_parts.h"
#include "quant/half.h"

/* ---- one scale for a token, or none ---- */

/* p[i][t] *= scale[t], of n queries and n_tokens tokens. */
static void scale_weights(const float *scale, int n_tokens, int n, float *p)
{
    for (int t = 0; t < n_tokens; t += VF_N) {
        const vf of_values = vf_get(scale + t, n_tokens - t);
        for (int i = 0; i < n; i++)
            vf_put(p + i * SCORES + t, vf_mul(vf_get(p + i * SCORES + t, n_tokens - t), of_values), n_tokens - t);
    }
}

static void values_f32(int n, const weft__attn *a, float *p, const struct run *r, float *acc, int64_t acc_stride)
{
    values_queries(n, FORM_F32, a, p, r, acc, acc_stride);
}

static void values_f16(int n, const weft__attn *a, float *p, const struct run *r, float *acc, int64_t acc_stride)
{
    values_queries(n, FORM_F16, a, p, r, acc, acc_stride);
}

static void values_bf16(int n, const weft__attn *a, float *p, const struct run *r, float *acc, int64_t acc_stride)
{
    values_queries(n, FORM_BF16, a, p, r, acc, acc_stride);
}

static void values_f8(int n, const weft__attn *a, float *p, const struct run *r, float *acc, int64_t acc_stride)
{
    float unit[SPLIT];
    const int n_tokens = r->to - r->from;
    for (int t = 0; t < n_tokens; t++) unit[t] = f8_unit(r->at[(int64_t)(r->slot + t) * a->head_dim_v]);
    scale_weights(unit, n_tokens, n, p);
    values_queries(n, FORM_F8, a, p, r, acc, acc_stride);
}

static void values_q8(int n, const weft__attn *a, float *p, const struct run *r, float *acc, int64_t acc_stride)
{
    const float *scale = (const float *)(r->at + (int64_t)a->page_tokens * a->head_dim_v) + r->slot;
    scale_weights(scale, r->to - r->from, n, p);
    values_queries(n, FORM_I8, a, p, r, acc, acc_stride);
}

/* ---- q4: a scale for each block of elements ---- */

enum { SOME = 64, SOME_APART = SOME + 16 }; /* tokens whose weights are scaled at once */

/* Values of a block, for nq queries: 32 elements where `wide`, else 16, of which `left` are there; w: the tokens'
 * weights, SOME_APART apart; v->ahead 0: nothing is fetched. nq and wide are constants. */
INLINE void tile_values_q4(int nq, int wide, int left, const float *w, const struct values *v, float *acc,
                           int64_t acc_stride)
{
    enum { MOST_VECTORS = 32 / VF_N };
    const int nv = (wide ? 32 : 16) / VF_N;
    vf sum[TILE_QUERIES][MOST_VECTORS];
    UNROLL
    for (int i = 0; i < nq; i++) {
        UNROLL
        for (int j = 0; j < nv; j++)
            sum[i][j] = left > j * VF_N ? vf_get(acc + i * acc_stride + j * VF_N, left - j * VF_N) : vf_zero();
        if (wide) wide_order(sum[i]);
    }
    const uint8_t *row = v->at;
    for (int t = 0; t < v->n; t++, row += v->stride) {
        vf value[MOST_VECTORS];
        if (wide) wide_load(row, value);
        else narrow_load(row, value);
        if (v->ahead) FETCH(row + v->ahead);
        UNROLL
        for (int i = 0; i < nq; i++) {
            const vf weight = vf_set(w[i * SOME_APART + t]);
            UNROLL
            for (int j = 0; j < nv; j++) sum[i][j] = vf_fma(weight, value[j], sum[i][j]);
        }
    }
    UNROLL
    for (int i = 0; i < nq; i++) {
        if (wide) wide_order(sum[i]);
        UNROLL
        for (int j = 0; j < nv; j++)
            if (left > j * VF_N) vf_put(acc + i * acc_stride + j * VF_N, sum[i][j], left - j * VF_N);
    }
}

/* Values of n_tokens <= SOME tokens from slot `slot` on. */
INLINE void some_values_q4(int nq, const weft__attn *a, const float *p, const struct run *r, int slot, int n_tokens,
                           float *acc, int64_t acc_stride)
{
    const int dim = a->head_dim_v;
    const int64_t bytes = (dim + 15) / 16 * 8;
    const uint8_t *row = r->at + slot * bytes;
    const uint16_t *scale = (const uint16_t *)(r->at + a->page_tokens * bytes) + slot;
    float w[TILE_QUERIES * SOME_APART];
    for (int e = 0; e < dim; scale += a->page_tokens) {
        const int end = e + WEFT__ATTN_Q4_BLOCK < dim ? e + WEFT__ATTN_Q4_BLOCK : dim;
        for (int t = 0; t < n_tokens; t += VF_N) {
            const int left = n_tokens - t;
            const vf of_values = left < VF_N ? vf_load_bf16_part(scale + t, left) : vf_load_bf16(scale + t);
            UNROLL
            for (int i = 0; i < nq; i++)
                vf_store(w + i * SOME_APART + t, vf_mul(vf_get(p + i * SCORES + t, left), of_values));
        }
        FETCH(scale + r->ahead / 2);
        for (int width; e < end; e += width, acc += width, row += width / 2) {
            const struct values v = {row, bytes, e % 128 == 0 ? r->ahead : 0 /* once for a line */, n_tokens};
            width = WIDE_VALUES && end - e == 32 ? 32 : 16;
            if (width == 32) tile_values_q4(nq, 1, 32, w, &v, acc, acc_stride);
            else tile_values_q4(nq, 0, end - e < 16 ? end - e : 16, w, &v, acc, acc_stride);
        }
    }
}

INLINE void run_values_q4(int nq, const weft__attn *a, const float *p, const struct run *r, float *acc,
                          int64_t acc_stride)
{
    const int n_tokens = r->to - r->from;
    for (int t = 0; t < n_tokens; t += SOME)
        some_values_q4(nq, a, p + t, r, r->slot + t, n_tokens - t < SOME ? n_tokens - t : SOME, acc, acc_stride);
}

static void values_q4(int n, const weft__attn *a, float *p, const struct run *r, float *acc, int64_t acc_stride)
{
#define RUN(nq) run_values_q4(nq, a, p, r, acc, acc_stride)
#define ON() (p += TILE_QUERIES * SCORES, acc += TILE_QUERIES * acc_stride)
    FOR_QUERIES(n, RUN, ON);
#undef ON
#undef RUN
}

/* Adds the values of a run for n queries; p: their weights, which may be changed, SCORES apart. */
static void values(uint32_t format, int n, const weft__attn *a, float *p, const struct run *r, float *acc,
                   int64_t acc_stride)
{
    switch (format) {
    case WEFT_F32: values_f32(n, a, p, r, acc, acc_stride); break;
    case WEFT_F16: values_f16(n, a, p, r, acc, acc_stride); break;
    case WEFT_BF16: values_bf16(n, a, p, r, acc, acc_stride); break;
    case WEFT_KV_F8: values_f8(n, a, p, r, acc, acc_stride); break;
    case WEFT_KV_Q8: values_q8(n, a, p, r, acc, acc_stride); break;
    default: values_q4(n, a, p, r, acc, acc_stride);
    }
}

#endif
