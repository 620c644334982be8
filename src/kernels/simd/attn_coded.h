// SPDX-License-Identifier: Apache-2.0
/* attn_coded.h: attention over pages of whole numbers (WEFT_KV_Q8), for the vectors of the file that includes it. The
 * order inside a part, the rotation and the codes are the same in every tier (kernels.h); only sums of floats are
 * taken as each tier does.
 *
 * Words of the tier besides those of vec.h: vi, a vector of whole numbers; CODED_WORDS, words that a query has for a
 * group of four channels, and coded_query, which makes them; coded_key and coded_load: the keys' codes of a group for
 * VF_N tokens; coded_dot: adds their products with a query's words.
 *
 * Invariant: attn.h's. A query's codes depend on that query alone; a score is a sum of whole numbers, exact whatever
 * its order, times the key's scale, times the query's. */
#include "kernels/simd/attn_parts.h"
#include "kernels/simd/code.h"

enum { GROUP_WORDS = GROUP * CODED_WORDS }; /* of four channels, for all queries of a group */

/* ---- scores ---- */

/* The queries of a group as scores_tile reads them: of every four channels the words of all queries, then the next. */
struct coded {
    int32_t *words;      /* [dim4 / 4][GROUP][CODED_WORDS] */
    int32_t less[GROUP]; /* -128 times the sum of the codes, as the keys' bytes are 128 more than theirs */
    float scale[GROUP];
};

static inline void code_queries(const weft__attn *a, int first, int n, struct coded *q)
{
    float turned[WEFT_KV_CODED_MAX];
    int8_t codes[WEFT_KV_CODED_MAX] = {0}; /* behind the last: zeros */
    for (int i = 0; i < n; i++) {
        int32_t sum = 0;
        turn(weft__attn_query(a, first + i), a->head_dim_k, turned);
        q->scale[i] = coded_row(turned, a->head_dim_k, codes);
        for (int d = 0; d < a->head_dim_k; d++) sum += codes[d];
        q->less[i] = -128 * sum;
        for (int d = 0; d < a->head_dim_k; d += 4)
            coded_query(codes + d, q->words + d / 4 * GROUP_WORDS + i * CODED_WORDS);
        const int next = first + n + i;
        for (int d = 0; next < a->n_q && d < a->head_dim_k; d += BLOCK)
            __builtin_prefetch(weft__attn_query(a, next) + d);
    }
}

/* s[i][t] = q_i . k_t for nq queries and nv vectors of tokens, from vector `first` of a page; from query `at` of q on.
 * nq and nv are constants. */
INLINE void scores_tile(int nq, int nv, const weft__attn *a, const struct coded *q, int at, const struct run *r,
                        int first, float *s)
{
    vi sum[TILE_QUERIES][4];
    const uint8_t *k[4];
    const int dim4 = (a->head_dim_k + 3) / 4 * 4;
    const int32_t *words = q->words + at * CODED_WORDS;
    UNROLL
    for (int v = 0; v < nv; v++) {
        int slot = (first + v) * VF_N;
        k[v] = r->at + (int64_t)(slot / BLOCK) * BLOCK * dim4 + slot % BLOCK * 4;
        UNROLL
        for (int i = 0; i < nq; i++) sum[i][v] = vi_set(q->less[at + i]);
    }
    for (int d = 0; d < dim4; d += 4, words += GROUP_WORDS) {
        UNROLL
        for (int v = 0; v < nv; v++) {
            const coded_key key = coded_load(k[v]);
            if (v % (BLOCK / VF_N) == 0) FETCH(k[v] + r->ahead);
            k[v] += 4 * BLOCK;
            UNROLL
            for (int i = 0; i < nq; i++) sum[i][v] = coded_dot(sum[i][v], &key, words + i * CODED_WORDS);
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

/* All vectors that touch the run. */
INLINE void scores_run(int nq, const weft__attn *a, const struct coded *q, int at, const struct run *r, float *s)
{
    const int step = nq <= 2 ? 4 : TILE_VECTORS;
    int v = r->slot / VF_N, end = (r->slot + r->to - r->from + VF_N - 1) / VF_N;
    const uint8_t *scales = r->at + (int64_t)a->page_tokens * ((a->head_dim_k + 3) / 4 * 4) + r->ahead;
    for (int i = v * VF_N * 4 / 64; i * 64 < end * VF_N * 4; i++) FETCH(scales + i * 64);
    for (; v + step <= end; v += step) scores_tile(nq, step, a, q, at, r, v, s);
    for (; v < end; v++) scores_tile(nq, 1, a, q, at, r, v, s);
}

static void scores(int n, const weft__attn *a, const struct coded *q, const struct run *r, float *s)
{
    int at = 0;
    for (; n - at >= TILE_QUERIES; at += TILE_QUERIES, s += TILE_QUERIES * SCORES)
        scores_run(TILE_QUERIES, a, q, at, r, s);
    switch (n - at) {
#if TILE_QUERIES > 4
    case 7: scores_run(7, a, q, at, r, s); break;
    case 6: scores_run(6, a, q, at, r, s); break;
    case 5: scores_run(5, a, q, at, r, s); break;
    case 4: scores_run(4, a, q, at, r, s); break;
#endif
    case 3: scores_run(3, a, q, at, r, s); break;
    case 2: scores_run(2, a, q, at, r, s); break;
    case 1: scores_run(1, a, q, at, r, s); break;
    }
}

/* ---- a split ---- */

/* p[i][t] *= the scale of the run's token t. */
static inline void scale_weights(const weft__attn *a, const struct run *r, int n, float *p)
{
    const float *scale = (const float *)(r->at + (int64_t)a->page_tokens * a->head_dim_v) + r->slot;
    const int n_tokens = r->to - r->from;
    for (int t = 0; t < n_tokens; t += VF_N) {
        const vf of_values = vf_get(scale + t, n_tokens - t);
        for (int i = 0; i < n; i++)
            vf_put(p + i * SCORES + t, vf_mul(vf_get(p + i * SCORES + t, n_tokens - t), of_values), n_tokens - t);
    }
}

static void values_i8(int n, const weft__attn *a, const float *p, const struct run *r, float *acc, int64_t acc_stride)
{
    values_queries(n, FORM_I8, a, p, r, acc, acc_stride);
}

/* Adds the values of positions [from, to) for queries i .. i + n - 1 of a group, all of which see them. A weight is
 * taken once, so it may be changed. */
static void add_values(const weft__attn *a, int base, int from, int to, int i, int n, float *s, float *state)
{
    const int64_t stride = 2 + a->head_dim_v;
    while (from < to) {
        struct run r = run_at(a, a->v_offset, base, from, to, a->next_v);
        float *p = s + (int64_t)i * SCORES + (r.from - base);
        if (r.at) {
            scale_weights(a, &r, n, p);
            values_i8(n, a, p, &r, state + i * stride + 2, stride);
        }
        from = r.to;
    }
}

/* Queries first .. first + n - 1 of the call; none is blind in this split, and ranges do not decrease. scratch: scores
 * [GROUP][SCORES], then the queries' words. */
static void group(const weft__attn *a, int base, int first, int n, float *scratch, float *state)
{
    const int64_t stride = 2 + a->head_dim_v;
    float *s = scratch;
    struct coded q = {.words = (int32_t *)(scratch + GROUP * SCORES)};
    int from[GROUP], to[GROUP];
    for (int i = 0; i < n; i++) range(a, first + i, base, &from[i], &to[i]);
    code_queries(a, first, n, &q);
    for (int t = from[0]; t < to[n - 1];) {
        struct run r = run_at(a, a->k_offset, base, t, to[n - 1], a->next_k);
        if (r.at) scores(n, a, &q, &r, s);
        t = r.to;
    }
    const int is_last = first + n == a->n_q, end_slot = to[n - 1] % a->page_tokens;
    const int64_t k = (a->head_dim_k + 3) / 4 * 4, v = a->head_dim_v; /* bytes of a slot */
    if (is_last) fetch_rest(a->next_k, k * blocks_of(end_slot), k * blocks_of(a->next_slots));
    softmax(a, base, from, to, n, s, state, stride);
    int all_from = from[n - 1], all_to = to[0];
    if (all_from >= all_to) all_from = all_to = to[n - 1];
    for (int i = 0; i < n; i++) add_values(a, base, from[i], to[i] < all_from ? to[i] : all_from, i, 1, s, state);
    add_values(a, base, all_from, all_to, 0, n, s, state);
    for (int i = 0; i < n; i++) add_values(a, base, all_to, to[i], i, 1, s, state);
    if (is_last) fetch_rest(a->next_v, v * end_slot, v * a->next_slots);
}

void TIER(weft__attn_coded)(const weft__attn *a, uint32_t format_k, uint32_t format_v, int split, float *scratch,
                            float *state)
{
    const int64_t stride = 2 + a->head_dim_v;
    const int base = split * SPLIT;
    (void)format_k, (void)format_v;
    for (int i = 0; i < a->n_q; i++) {
        memset(state + i * stride, 0, (size_t)stride * sizeof *state);
        state[i * stride] = -INFINITY;
    }
    for (int i = 0; i < a->n_q;) {
        int n = 0, from, to;
        while (n < GROUP && i + n < a->n_q && (range(a, i + n, base, &from, &to), from < to)) n++;
        if (n) group(a, base, i, n, scratch, state + i * stride);
        i += n ? n : 1;
    }
}
