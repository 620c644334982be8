// SPDX-License-Identifier: Apache-2.0
/* attn.h: attention over pages, for the vectors of the file that includes it (contracts: kernels.h).
 *
 * Order inside a page's part of one head: keys are transposed in blocks of 16 tokens, element (d, slot) at
 * slot/16 * 16 * head_dim + d * 16 + slot % 16, so that scores vectorise over tokens without sums across lanes; values
 * are [slot][head_dim], so that outputs vectorise over their elements. page_tokens is a multiple of 16.
 *
 * A split goes in three passes over a group of at most GROUP queries: scores, softmax, weighted values. Invariant: what
 * is done to one query depends on its own range and on nothing else: a score is one chain of fused multiply-adds over
 * d; maximum and sum run over whole vectors from the one that holds the query's first position; a value is added for
 * visible positions only, in rising order. So groups share loads and never results, and no slot outside a query's range
 * can reach it, whatever its bits. */
#include "kernels/simd/attn_parts.h"

/* ---- scores ---- */

/* The queries of a group as scores_tile reads them: 16 elements of each, then the next 16 (behind the last: zeros). So
 * every element is at a constant distance from one pointer. Those that come next are fetched meanwhile. */
static void gather_queries(const weft__attn *a, int first, int n, float *q)
{
    for (int i = 0; i < n; i++) {
        const float *row = weft__attn_query(a, first + i);
        for (int d = 0; d < a->head_dim_k; d += VF_N)
            vf_store(q + d / BLOCK * GROUP * BLOCK + i * BLOCK + d % BLOCK, vf_get(row + d, a->head_dim_k - d));
        const int next = first + n + i;
        for (int d = 0; next < a->n_q && d < a->head_dim_k; d += BLOCK)
            __builtin_prefetch(weft__attn_query(a, next) + d);
    }
}

/* s[i][t] = q_i . k_t for nq queries and nv vectors of tokens, from vector `first` of a page; q as gather_queries left
 * them, from query i on. nq, nv, f16 are constants. */
INLINE void scores_tile(int nq, int nv, int f16, const weft__attn *a, const float *q, const struct run *r, int first,
                        float *s)
{
    vf sum[TILE_QUERIES][4];
    const uint8_t *k[4];
    const int size = f16 ? 2 : 4, dim = a->head_dim_k;
    UNROLL
    for (int v = 0; v < nv; v++) {
        int slot = (first + v) * VF_N;
        k[v] = r->at + ((int64_t)(slot / BLOCK) * BLOCK * dim + slot % BLOCK) * size;
        UNROLL
        for (int i = 0; i < nq; i++) sum[i][v] = vf_zero();
    }
    for (int d = 0; d < dim; d += BLOCK, q += GROUP * BLOCK) {
        UNROLL
        for (int v = 0; v < nv; v += BLOCK / VF_N) {
            UNROLL
            for (int i = 0; i < BLOCK * BLOCK * size; i += 64) FETCH(k[v] + r->ahead + i);
        }
        for (int j = 0; j < (dim - d < BLOCK ? dim - d : BLOCK); j++) {
            vf key[4];
            UNROLL
            for (int v = 0; v < nv; v++) {
                key[v] = f16 ? vf_load_f16((const uint16_t *)k[v]) : vf_load((const float *)k[v]);
                k[v] += BLOCK * size;
            }
            UNROLL
            for (int i = 0; i < nq; i++) {
                vf qd = vf_set(q[i * BLOCK + j]);
                UNROLL
                for (int v = 0; v < nv; v++) sum[i][v] = vf_fma(qd, key[v], sum[i][v]);
            }
        }
    }
    UNROLL
    for (int i = 0; i < nq; i++) {
        UNROLL
        for (int v = 0; v < nv; v++) vf_store(s + i * SCORES + r->shift + (first + v) * VF_N, sum[i][v]);
    }
}

/* All vectors that touch the run, for nq queries. Few queries take more vectors at a time, to have enough sums in
 * flight. */
INLINE void scores_run(int nq, int f16, const weft__attn *a, const float *q, const struct run *r, float *s)
{
    const int step = nq <= 2 ? 4 : TILE_VECTORS;
    int v = r->slot / VF_N, end = (r->slot + r->to - r->from + VF_N - 1) / VF_N;
    for (; v + step <= end; v += step) scores_tile(nq, step, f16, a, q, r, v, s);
    for (; v < end; v++) scores_tile(nq, 1, f16, a, q, r, v, s);
}

/* The same for any number of queries. */
INLINE void scores_queries(int n, int f16, const weft__attn *a, const float *q, const struct run *r, float *s)
{
#define RUN(nq) scores_run(nq, f16, a, q, r, s)
#define ON() (q += TILE_QUERIES * BLOCK, s += TILE_QUERIES * SCORES)
    FOR_QUERIES(n, RUN, ON);
#undef ON
#undef RUN
}

static void scores_f16(int n, const weft__attn *a, const float *q, const struct run *r, float *s)
{
    scores_queries(n, 1, a, q, r, s);
}

static void scores_f32(int n, const weft__attn *a, const float *q, const struct run *r, float *s)
{
    scores_queries(n, 0, a, q, r, s);
}

/* ---- weighted values ---- */

static void values_f16(int n, const weft__attn *a, const float *p, const struct run *r, float *acc, int64_t acc_stride)
{
    values_queries(n, FORM_F16, a, p, r, acc, acc_stride);
}

static void values_f32(int n, const weft__attn *a, const float *p, const struct run *r, float *acc, int64_t acc_stride)
{
    values_queries(n, FORM_F32, a, p, r, acc, acc_stride);
}

/* ---- a split ---- */

/* Adds the values of positions [from, to) for queries i .. i + n - 1 of a group, all of which see them. */
static void add_values(const weft__attn *a, int f16, int base, int from, int to, int i, int n, const float *s,
                       float *state)
{
    const int64_t stride = 2 + a->head_dim_v;
    while (from < to) {
        struct run r = run_at(a, a->v_offset, base, from, to, a->next_v);
        const float *p = s + (int64_t)i * SCORES + (r.from - base);
        if (r.at) (f16 ? values_f16 : values_f32)(n, a, p, &r, state + i * stride + 2, stride);
        from = r.to;
    }
}

/* Queries first .. first + n - 1 of the call; none is blind in this split, and ranges do not decrease. scratch: scores
 * [GROUP][SCORES], then the queries. */
static void group(const weft__attn *a, int f16, int base, int first, int n, float *scratch, float *state)
{
    const int64_t stride = 2 + a->head_dim_v;
    float *s = scratch, *q = scratch + GROUP * SCORES;
    int from[GROUP], to[GROUP];
    for (int i = 0; i < n; i++) {
        range(a, first + i, base, &from[i], &to[i]);
    }
    gather_queries(a, first, n, q);
    for (int t = from[0]; t < to[n - 1];) {
        struct run r = run_at(a, a->k_offset, base, t, to[n - 1], a->next_k);
        if (r.at) (f16 ? scores_f16 : scores_f32)(n, a, q, &r, s);
        t = r.to;
    }
    const int is_last = first + n == a->n_q, end_slot = to[n - 1] % a->page_tokens;
    const int64_t k = (f16 ? 2 : 4) * a->head_dim_k, v = (f16 ? 2 : 4) * a->head_dim_v; /* bytes of a slot */
    if (is_last) fetch_rest(a->next_k, k * blocks_of(end_slot), k * blocks_of(a->next_slots));
    softmax(a, base, from, to, n, s, state, stride);
    /* What all of the group see is added together; what comes before and after it, query by query. */
    int all_from = from[n - 1], all_to = to[0];
    if (all_from >= all_to) all_from = all_to = to[n - 1];
    for (int i = 0; i < n; i++) add_values(a, f16, base, from[i], to[i] < all_from ? to[i] : all_from, i, 1, s, state);
    add_values(a, f16, base, all_from, all_to, 0, n, s, state);
    for (int i = 0; i < n; i++) add_values(a, f16, base, all_to, to[i], i, 1, s, state);
    if (is_last) fetch_rest(a->next_v, v * end_slot, v * a->next_slots);
}

void TIER(weft__attn_split)(const weft__attn *a, uint32_t dtype, int split, float *scratch, float *state)
{
    const int64_t stride = 2 + a->head_dim_v;
    const int base = split * SPLIT;
    for (int i = 0; i < a->n_q; i++) {
        memset(state + i * stride, 0, (size_t)stride * sizeof *state);
        state[i * stride] = -INFINITY;
    }
    for (int i = 0; i < a->n_q;) {
        int n = 0, from, to;
        while (n < GROUP && i + n < a->n_q && (range(a, i + n, base, &from, &to), from < to)) n++;
        if (n) group(a, dtype == WEFT_F16, base, i, n, scratch, state + i * stride);
        i += n ? n : 1;
    }
}

/* out = x * factor, a head's values. */
static void scale_values(const float *x, float factor, int dim, float *out)
{
    for (int e = 0; e < dim; e += VF_N) vf_put(out + e, vf_mul(vf_get(x + e, dim - e), vf_set(factor)), dim - e);
}

void TIER(weft__attn_combine)(const float *state, int64_t stride, int n_splits, int head_dim_v, float *out)
{
    float max = -INFINITY, sum = 0;
    if (n_splits == 1 && state[1] != 0) { /* what follows comes to this */
        scale_values(state + 2, 1 / state[1], head_dim_v, out);
        return;
    }
    for (int i = 0; i < n_splits; i++) {
        if (state[i * stride + 1] != 0 && state[i * stride] > max) max = state[i * stride];
    }
    memset(out, 0, (size_t)head_dim_v * sizeof *out);
    for (int i = 0; i < n_splits; i++, state += stride) {
        if (state[1] == 0) continue; /* saw nothing */
        vf weight = vf_exp(vf_set(state[0] - max));
        float w[VF_N];
        vf_store(w, weight);
        sum += w[0] * state[1];
        for (int e = 0; e < head_dim_v; e += VF_N) {
            vf x = vf_get(state + 2 + e, head_dim_v - e);
            vf_put(out + e, vf_fma(weight, x, vf_get(out + e, head_dim_v - e)), head_dim_v - e);
        }
    }
    if (sum != 0) scale_values(out, 1 / sum, head_dim_v, out);
}

/* ---- storing ---- */

void TIER(weft__kv_put_k)(const float *k, int head_dim, int slot, int page_tokens, uint32_t dtype, void *part)
{
    (void)page_tokens;
    int64_t at = (int64_t)(slot / BLOCK) * BLOCK * head_dim + slot % BLOCK;
    const int64_t size = dtype == WEFT_F16 ? 2 : 4, block = BLOCK * head_dim * size;
    /* Every element or two have a line of their own, which other contexts have pushed out since the last token: they
     * come side by side. */
    for (int64_t i = 0; i < block; i += 64) simd_own((uint8_t *)part + slot / BLOCK * block + i);
    for (int d = 0; d < head_dim; d += VF_N) {
        int n = head_dim - d < VF_N ? head_dim - d : VF_N;
        if (dtype == WEFT_F16) {
            uint16_t half[VF_N];
            vf_store_f16_part(half, vf_get(k + d, n), n);
            for (int j = 0; j < n; j++) ((uint16_t *)part)[at + (d + j) * BLOCK] = half[j];
        } else {
            for (int j = 0; j < n; j++) ((float *)part)[at + (d + j) * BLOCK] = k[d + j];
        }
    }
}

void TIER(weft__kv_put_v)(const float *v, int head_dim, int slot, int page_tokens, uint32_t dtype, void *part)
{
    (void)page_tokens;
    int64_t at = (int64_t)slot * head_dim;
    if (dtype != WEFT_F16) {
        memcpy((float *)part + at, v, (size_t)head_dim * sizeof *v);
        return;
    }
    for (int d = 0; d < head_dim; d += VF_N) {
        int n = head_dim - d < VF_N ? head_dim - d : VF_N;
        vf_store_f16_part((uint16_t *)part + at + d, vf_get(v + d, n), n);
    }
}
