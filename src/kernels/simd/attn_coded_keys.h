// SPDX-License-Identifier: Apache-2.0
/* attn_coded_keys.h: scores over keys of every format, for attn_coded.h.
 *
 * Invariant: attn.h's. A query's codes depend on that query alone; over rotated keys a score is the exact sum of whole
 * numbers (of each block, the blocks in rising order), times the keys' scales, times the query's; over floats it is one
 * chain of fused multiply-adds over the elements. */
#ifndef WEFT_KERNELS_SIMD_ATTN_CODED_KEYS_H
#define WEFT_KERNELS_SIMD_ATTN_CODED_KEYS_H

#include "kernels/simd/attn_parts.h"
#include "kernels/simd/code.h"
#include "quant/half.h"

enum {
    BLOCK4 = WEFT__ATTN_Q4_BLOCK,
    WORDS = 2,                  /* of a query, of four channels */
    GROUP_WORDS = GROUP * WORDS /* of four channels, for all queries of a group */
};

/* The queries of a group as tiles read them. */
struct queries {
    /* Over rotated keys: of every four channels the words of all queries, then the next; zeros up to eight. */
    int32_t *words;
    /* Over floats: 16 elements of each, then the next 16, zeros behind the last. */
    float *floats;
    int32_t
        less[WEFT_KV_CODED_MAX / BLOCK4 + 1]
            [GROUP]; /* of each block -128 times the sum of the codes, as bytes of keys are 128 more than they say */
    float scale[GROUP];
};

static void code_queries(const weft__attn *a, int block, int first, int n, struct queries *q)
{
    float turned[WEFT_KV_CODED_MAX];
    int16_t codes[WEFT_KV_CODED_MAX + 16] = {0}; /* behind the last: zeros */
    const int dim = a->head_dim_k;
    for (int i = 0; i < n; i++) {
        turn(weft__attn_query(a, first + i), dim, turned);
        q->scale[i] = coded_row_wide(turned, dim, WEFT__ATTN_QUERY_MOST, codes);
        for (int b = 0; b * block < dim; b++) {
            int32_t sum = 0;
            for (int d = b * block; d < dim && d < (b + 1) * block; d++) sum += codes[d];
            q->less[b][i] = -128 * sum;
        }
        for (int d = 0; d < (dim + 7) / 8 * 8; d += 4) {
            const int16_t *c = codes + d; /* bytes at even places meet words[0], at odd ones words[1] */
            int32_t *words = q->words + d / 4 * GROUP_WORDS + i * WORDS;
            words[0] = (int32_t)((uint32_t)(uint16_t)c[0] | (uint32_t)(uint16_t)c[2] << 16);
            words[1] = (int32_t)((uint32_t)(uint16_t)c[1] | (uint32_t)(uint16_t)c[3] << 16);
        }
    }
}

static void gather_floats(const weft__attn *a, int first, int n, float *q)
{
    for (int i = 0; i < n; i++) {
        const float *row = weft__attn_query(a, first + i);
        for (int d = 0; d < a->head_dim_k; d += VF_N)
            vf_store(q + d / BLOCK * GROUP * BLOCK + i * BLOCK + d % BLOCK, vf_get(row + d, a->head_dim_k - d));
    }
}

/* Queries first .. first + n - 1; those that come next are fetched meanwhile. */
static void take_queries(const weft__attn *a, uint32_t format, int first, int n, struct queries *q)
{
    if (weft_kv_is_rotated(format)) code_queries(a, format == WEFT_KV_Q4 ? BLOCK4 : WEFT_KV_CODED_MAX, first, n, q);
    else gather_floats(a, first, n, q->floats);
    for (int i = first + n; i < first + 2 * n && i < a->n_q; i++)
        for (int d = 0; d < a->head_dim_k; d += BLOCK) __builtin_prefetch(weft__attn_query(a, i) + d);
}

/* ---- tiles: s[i][t] = q_i . k_t for nq queries and nv vectors of tokens, from vector `first` of a page; from query
 * `at` of q on. nq, nv and form are constants. ---- */

INLINE void tile_q8(int nq, int nv, const weft__attn *a, const struct queries *q, int at, const struct run *r,
                    int first, float *s)
{
    vi sum[TILE_QUERIES][4];
    const uint8_t *k[4];
    const int dim4 = (a->head_dim_k + 3) / 4 * 4;
    const int32_t *words = q->words + at * WORDS;
    UNROLL
    for (int v = 0; v < nv; v++) {
        int slot = (first + v) * VF_N;
        k[v] = r->at + (int64_t)(slot / BLOCK) * BLOCK * dim4 + slot % BLOCK * 4;
        UNROLL
        for (int i = 0; i < nq; i++) sum[i][v] = vi_set(q->less[0][at + i]);
    }
    for (int d = 0; d < dim4; d += 4, words += GROUP_WORDS) {
        UNROLL
        for (int v = 0; v < nv; v++) {
            const coded_key key = coded_load(k[v]);
            if (v % (BLOCK / VF_N) == 0) FETCH(k[v] + r->ahead);
            k[v] += 4 * BLOCK;
            UNROLL
            for (int i = 0; i < nq; i++) sum[i][v] = coded_dot(sum[i][v], &key, words + i * WORDS);
        }
    }
    const float *scale = (const float *)(r->at + (int64_t)a->page_tokens * dim4) + first * VF_N;
    UNROLL
    for (int v = 0; v < nv; v++) {
        const vf of_keys = vf_load(scale + v * VF_N);
        UNROLL
        for (int i = 0; i < nq; i++)
            vf_store(s + i * SCORES + r->shift + (first + v) * VF_N,
                     vf_mul(vf_mul(vi_to_float(sum[i][v]), of_keys), vf_set(q->scale[at + i])));
    }
}

INLINE void tile_q4(int nq, int nv, const weft__attn *a, const struct queries *q, int at, const struct run *r,
                    int first, float *s)
{
    vf sum[TILE_QUERIES][4];
    const uint8_t *k[4];
    const int dim = a->head_dim_k, bytes = (dim + 7) / 8 * 4;
    const int32_t *words = q->words + at * WORDS;
    const uint16_t *scale = (const uint16_t *)(r->at + (int64_t)a->page_tokens * bytes) + first * VF_N;
    UNROLL
    for (int v = 0; v < nv; v++) {
        int slot = (first + v) * VF_N;
        k[v] = r->at + (int64_t)(slot / BLOCK) * BLOCK * bytes + slot % BLOCK * 4;
        UNROLL
        for (int i = 0; i < nq; i++) sum[i][v] = vf_zero();
    }
    for (int d = 0; d < dim; scale += a->page_tokens) {
        const int end = d + BLOCK4 < dim ? d + BLOCK4 : dim;
        vi whole[TILE_QUERIES][4];
        UNROLL
        for (int v = 0; v < nv; v++) {
            UNROLL
            for (int i = 0; i < nq; i++) whole[i][v] = vi_set(q->less[d / BLOCK4][at + i]);
        }
        for (; d < end; d += 8, words += 2 * GROUP_WORDS) {
            UNROLL
            for (int v = 0; v < nv; v++) {
                coded_key low, high;
                coded_load_halves(k[v], &low, &high);
                if (v % (BLOCK / VF_N) == 0) FETCH(k[v] + r->ahead);
                k[v] += 4 * BLOCK;
                UNROLL
                for (int i = 0; i < nq; i++) {
                    whole[i][v] = coded_dot(whole[i][v], &low, words + i * WORDS);
                    whole[i][v] = coded_dot(whole[i][v], &high, words + GROUP_WORDS + i * WORDS);
                }
            }
        }
        UNROLL
        for (int v = 0; v < nv; v++) {
            const vf of_keys = vf_load_bf16(scale + v * VF_N);
            UNROLL
            for (int i = 0; i < nq; i++) sum[i][v] = vf_fma(vi_to_float(whole[i][v]), of_keys, sum[i][v]);
        }
    }
    UNROLL
    for (int v = 0; v < nv; v++) {
        UNROLL
        for (int i = 0; i < nq; i++)
            vf_store(s + i * SCORES + r->shift + (first + v) * VF_N, vf_mul(sum[i][v], vf_set(q->scale[at + i])));
    }
}

INLINE void tile_floats(int nq, int nv, int form, const weft__attn *a, const struct queries *q, int at,
                        const struct run *r, int first, float *s)
{
    vf sum[TILE_QUERIES][4];
    const uint8_t *k[4], *block[4];
    const int size = form_bytes(form), dim = a->head_dim_k;
    const float *x = q->floats + at * BLOCK;
    UNROLL
    for (int v = 0; v < nv; v++) {
        int slot = (first + v) * VF_N;
        block[v] = k[v] = r->at + ((int64_t)(slot / BLOCK) * BLOCK * dim + slot % BLOCK) * size;
        UNROLL
        for (int i = 0; i < nq; i++) sum[i][v] = vf_zero();
    }
    for (int d = 0; d < dim; d++) {
        vf key[4];
        UNROLL
        for (int v = 0; v < nv; v++) {
            key[v] = form_load(form, k[v], 0);
            if (v % (BLOCK / VF_N) == 0 && d * BLOCK * size % 64 == 0) FETCH(k[v] + r->ahead);
            k[v] += BLOCK * size;
        }
        UNROLL
        for (int i = 0; i < nq; i++) {
            const vf qd = vf_set(x[d / BLOCK * GROUP * BLOCK + i * BLOCK + d % BLOCK]);
            UNROLL
            for (int v = 0; v < nv; v++) sum[i][v] = vf_fma(qd, key[v], sum[i][v]);
        }
    }
    UNROLL
    for (int v = 0; v < nv; v++) {
        float unit[VF_N];
        for (int j = 0; j < VF_N; j++) unit[j] = form == FORM_F8 ? f8_unit(block[v][j]) : 1;
        UNROLL
        for (int i = 0; i < nq; i++)
            vf_store(s + i * SCORES + r->shift + (first + v) * VF_N, vf_mul(sum[i][v], vf_load(unit)));
    }
}

INLINE void tile(int nq, int nv, int form, const weft__attn *a, const struct queries *q, int at, const struct run *r,
                 int first, float *s)
{
    switch (form) {
    case FORM_I8: tile_q8(nq, nv, a, q, at, r, first, s); break;
    case FORM_I4: tile_q4(nq, nv, a, q, at, r, first, s); break;
    default: tile_floats(nq, nv, form, a, q, at, r, first, s);
    }
}

/* ---- a run ---- */

/* The scales of the page that comes next, for slots of vectors [v, end). */
INLINE void fetch_scales(int form, const weft__attn *a, const struct run *r, int v, int end)
{
    const int dim = a->head_dim_k, size = form == FORM_I4 ? 2 : 4;
    const int64_t codes = (int64_t)a->page_tokens * (form == FORM_I4 ? (dim + 7) / 8 * 4 : (dim + 3) / 4 * 4);
    const uint8_t *at = r->at + codes + r->ahead;
    if (form != FORM_I4 && form != FORM_I8) return;
    for (int d = 0; d < (form == FORM_I4 ? dim : 1); d += BLOCK4, at += size * a->page_tokens)
        for (int i = v * VF_N * size / 64; i * 64 < end * VF_N * size; i++) FETCH(at + i * 64);
}

/* All vectors that touch the run. Few queries take more vectors at a time, to have enough sums in flight; q4 has two
 * sums for each. */
INLINE void scores_run(int nq, int form, const weft__attn *a, const struct queries *q, int at, const struct run *r,
                       float *s)
{
    const int few = nq <= 2 ? 4 : TILE_VECTORS;
    const int step = form != FORM_I4 ? few : 2 * nq <= TILE_QUERIES ? few / 2 * (nq <= TILE_QUERIES / 4 ? 2 : 1) : 1;
    int v = r->slot / VF_N, end = (r->slot + r->to - r->from + VF_N - 1) / VF_N;
    fetch_scales(form, a, r, v, end);
    for (; v + step <= end; v += step) tile(nq, step, form, a, q, at, r, v, s);
    for (; v < end; v++) tile(nq, 1, form, a, q, at, r, v, s);
}

INLINE void scores_form(int form, int n, const weft__attn *a, const struct queries *q, const struct run *r, float *s)
{
    int at = 0;
#define RUN(nq) scores_run(nq, form, a, q, at, r, s)
#define ON() (at += TILE_QUERIES, s += TILE_QUERIES * SCORES)
    FOR_QUERIES(n, RUN, ON);
#undef ON
#undef RUN
}

#define SCORES_OF(name, form)                                                                                          \
    static void scores_##name(int n, const weft__attn *a, const struct queries *q, const struct run *r, float *s)      \
    {                                                                                                                  \
        scores_form(form, n, a, q, r, s);                                                                              \
    }
SCORES_OF(f32, FORM_F32)
SCORES_OF(f16, FORM_F16)
SCORES_OF(bf16, FORM_BF16)
SCORES_OF(f8, FORM_F8)
SCORES_OF(q8, FORM_I8)
SCORES_OF(q4, FORM_I4)

/* The raw scores of a run, for n queries. */
static void scores(uint32_t format, int n, const weft__attn *a, const struct queries *q, const struct run *r, float *s)
{
    switch (format) {
    case WEFT_F32: scores_f32(n, a, q, r, s); break;
    case WEFT_F16: scores_f16(n, a, q, r, s); break;
    case WEFT_BF16: scores_bf16(n, a, q, r, s); break;
    case WEFT_KV_F8: scores_f8(n, a, q, r, s); break;
    case WEFT_KV_Q8: scores_q8(n, a, q, r, s); break;
    default: scores_q4(n, a, q, r, s);
    }
}

#endif
