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
#include <math.h>
#include <string.h>

#include "kernels/list.h"
#include "kernels/simd/next.h"
#include "kernels/simd/unroll.h"
#include "kernels/simd/vecmath.h"

/* Rows of scores lie a little more than a split apart, so that those of a group do not share sets of the first-level
 * cache. */
enum { SPLIT = WEFT__ATTN_SPLIT_TOKENS, SCORES = WEFT__ATTN_SCORES, BLOCK = 16, GROUP = WEFT__ATTN_GROUP };

#define INLINE static inline __attribute__((always_inline))

/* Into the second level: what waits for memory on its way to the first takes places that loads want, and a page is half
 * of that level. */
#define FETCH(at) __builtin_prefetch(at, 0, 2)

/* A run of positions within one page. */
struct run {
    int from, to;      /* positions */
    int slot;          /* of `from` in the page */
    int shift;         /* from a slot of the page to a position in the split */
    const uint8_t *at; /* the page's part of this head; NULL where the page is dropped */
    int64_t ahead;     /* bytes from this page's part to the one that is read next, to fetch it */
};

/* The run that begins at position `from` and ends at `to` or where the page does; base: the split's first position;
 * next: what is read behind `to`, or NULL. */
static struct run run_at(const weft__attn *a, uint64_t offset, int base, int from, int to, const uint8_t *next)
{
    int page = from / a->page_tokens, begin = page * a->page_tokens, end = begin + a->page_tokens;
    struct run r = {from, to < end ? to : end, from - begin, begin - base, NULL, 0};
    if (a->pages[page] < 0) return r;
    r.at = a->data + (uint64_t)a->pages[page] * a->page_bytes + offset;
    if (end < to && a->pages[page + 1] >= 0) {
        r.ahead = ((int64_t)a->pages[page + 1] - a->pages[page]) * (int64_t)a->page_bytes;
    } else if (end >= to && next) {
        r.ahead = (int64_t)((uintptr_t)next - (uintptr_t)r.at);
    }
    return r;
}

/* ---- pass 1: scores ---- */

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
    for (; n >= TILE_QUERIES; n -= TILE_QUERIES) {
        scores_run(TILE_QUERIES, f16, a, q, r, s);
        q += TILE_QUERIES * BLOCK;
        s += TILE_QUERIES * SCORES;
    }
    switch (n) {
#if TILE_QUERIES > 4
    case 7: scores_run(7, f16, a, q, r, s); break;
    case 6: scores_run(6, f16, a, q, r, s); break;
    case 5: scores_run(5, f16, a, q, r, s); break;
    case 4: scores_run(4, f16, a, q, r, s); break;
#endif
    case 3: scores_run(3, f16, a, q, r, s); break;
    case 2: scores_run(2, f16, a, q, r, s); break;
    case 1: scores_run(1, f16, a, q, r, s); break;
    }
}

static void scores_f16(int n, const weft__attn *a, const float *q, const struct run *r, float *s)
{
    scores_queries(n, 1, a, q, r, s);
}

static void scores_f32(int n, const weft__attn *a, const float *q, const struct run *r, float *s)
{
    scores_queries(n, 0, a, q, r, s);
}

/* ---- pass 2: softmax ---- */

/* s[t] = cap * tanh(s[t] * scale / cap) for vectors from `first` on that touch positions before `to`. */
static void cap_scores(const weft__attn *a, int first, int to, float *s)
{
    const vf cap = vf_set(a->softcap);
    for (int t = first; t < to; t += VF_N)
        vf_store(s + t, vf_mul(cap, vf_tanh(vf_div(vf_mul(vf_load(s + t), vf_set(a->scale)), cap))));
}

/* Turns the raw scores of positions [from, to) of nq queries, SCORES apart (s[0] is the split's first position, from
 * and to count from there), into exp(score - maximum), 0 in the lanes beside them; writes maximum and sum to state,
 * `stride` apart. Without a cap, what is scaled is how far a raw score is below the largest. nq, a constant: queries
 * side by side hide the latency of the sums. */
INLINE void softmax_tile(int nq, const weft__attn *a, int from, int to, float *s, float *state, int64_t stride)
{
    const int first = from / VF_N * VF_N;
    const float scale = a->softcap != 0 ? 1.0f : a->scale;
    vf most[SOFTMAX_QUERIES], total[SOFTMAX_QUERIES];
    UNROLL
    for (int i = 0; i < nq; i++) most[i] = vf_set(-INFINITY), total[i] = vf_zero();
    for (int t = first; t < to; t += VF_N) {
        const int part = t < from || to - t < VF_N;
        UNROLL
        for (int i = 0; i < nq; i++) {
            vf x = vf_load(s + i * SCORES + t);
            if (part) {
                int low = from > t ? from - t : 0, high = to - t < VF_N ? to - t : VF_N;
                x = vf_select(vm_range(low, high), x, vf_set(-INFINITY));
                vf_store(s + i * SCORES + t, x);
            }
            most[i] = vf_max(x, most[i]);
        }
    }
    UNROLL
    for (int i = 0; i < nq; i++) {
        const float largest = vf_most(most[i]);
        state[i * stride] = largest * scale;
        most[i] = vf_set(largest);
    }
    for (int t = first; t < to; t += VF_N) {
        UNROLL
        for (int i = 0; i < nq; i++) {
            vf p = vf_weight(vf_mul(vf_sub(vf_load(s + i * SCORES + t), most[i]), vf_set(scale)));
            vf_store(s + i * SCORES + t, p);
            total[i] = vf_add(total[i], p);
        }
    }
    UNROLL
    for (int i = 0; i < nq; i++) state[i * stride + 1] = vf_sum(total[i]);
}

/* The same for n queries, each with a range of its own, in absolute positions. */
static void softmax(const weft__attn *a, int base, const int *from, const int *to, int n, float *s, float *state,
                    int64_t stride)
{
    for (int i = 0; i < n;) {
        int alike = 1, first = (from[i] - base) / VF_N * VF_N;
        while (i + alike < n && from[i + alike] == from[i] && to[i + alike] == to[i]) alike++;
        for (int k = i; a->softcap != 0 && k < i + alike; k++) cap_scores(a, first, to[i] - base, s + k * SCORES);
        for (; alike >= SOFTMAX_QUERIES; alike -= SOFTMAX_QUERIES, i += SOFTMAX_QUERIES)
            softmax_tile(SOFTMAX_QUERIES, a, from[i] - base, to[i] - base, s + i * SCORES, state + i * stride, stride);
        for (; alike > 0; alike--, i++)
            softmax_tile(1, a, from[i] - base, to[i] - base, s + i * SCORES, state + i * stride, stride);
    }
}

/* ---- pass 3: weighted values ---- */

/* The values of a run: n tokens, `stride` bytes apart; `ahead` as in struct run. */
struct values {
    const uint8_t *at; /* the first token's row */
    int64_t stride, ahead;
    int n;
};

/* acc[i][j] += sum over v's tokens of p[i][t] * v[t][e + j], for nq queries and nv vectors of elements (with `part` !=
 * 0: one vector, `part` elements). nq, nv, f16 are constants. */
INLINE void values_tile(int nq, int nv, int f16, int part, const float *p, const struct values *v, int e, float *acc,
                        int64_t acc_stride)
{
    vf sum[TILE_QUERIES][4];
    const int size = f16 ? 2 : 4;
    const uint8_t *row = v->at + e * size;
    acc += e;
    UNROLL
    for (int i = 0; i < nq; i++) {
        UNROLL
        for (int j = 0; j < nv; j++) {
            const float *from = acc + i * acc_stride + j * VF_N;
            sum[i][j] = part ? vf_load_part(from, part) : vf_load(from);
        }
    }
    for (int t = 0; t < v->n; t++, row += v->stride) {
        vf value[4];
        UNROLL
        for (int j = 0; j < nv; j++) {
            const uint8_t *at = row + j * VF_N * size;
            if (part) {
                value[j] = f16 ? vf_load_f16_part((const uint16_t *)at, part) : vf_load_part((const float *)at, part);
            } else {
                value[j] = f16 ? vf_load_f16((const uint16_t *)at) : vf_load((const float *)at);
            }
            if (j * VF_N * size % 64 == 0) FETCH(at + v->ahead);
        }
        UNROLL
        for (int i = 0; i < nq; i++) {
            vf weight = vf_set(p[i * SCORES + t]);
            UNROLL
            for (int j = 0; j < nv; j++) sum[i][j] = vf_fma(weight, value[j], sum[i][j]);
        }
    }
    UNROLL
    for (int i = 0; i < nq; i++) {
        UNROLL
        for (int j = 0; j < nv; j++) {
            float *to = acc + i * acc_stride + j * VF_N;
            if (part) {
                vf_store_part(to, sum[i][j], part);
            } else {
                vf_store(to, sum[i][j]);
            }
        }
    }
}

/* All elements of the run's values. */
INLINE void values_run(int nq, int f16, const weft__attn *a, const float *p, const struct run *r, float *acc,
                       int64_t acc_stride)
{
    const int step = nq <= 2 ? 4 : TILE_VECTORS, size = f16 ? 2 : 4, dim = a->head_dim_v;
    const int64_t stride = (int64_t)dim * size;
    const struct values v = {r->at + r->slot * stride, stride, r->ahead, r->to - r->from};
    int e = 0;
    for (; e + step * VF_N <= dim; e += step * VF_N) {
        values_tile(nq, step, f16, 0, p, &v, e, acc, acc_stride);
    }
    for (; e + VF_N <= dim; e += VF_N) values_tile(nq, 1, f16, 0, p, &v, e, acc, acc_stride);
    if (e < dim) values_tile(nq, 1, f16, dim - e, p, &v, e, acc, acc_stride);
}

INLINE void values_queries(int n, int f16, const weft__attn *a, const float *p, const struct run *r, float *acc,
                           int64_t acc_stride)
{
    for (; n >= TILE_QUERIES; n -= TILE_QUERIES) {
        values_run(TILE_QUERIES, f16, a, p, r, acc, acc_stride);
        p += TILE_QUERIES * SCORES;
        acc += TILE_QUERIES * acc_stride;
    }
    switch (n) {
#if TILE_QUERIES > 4
    case 7: values_run(7, f16, a, p, r, acc, acc_stride); break;
    case 6: values_run(6, f16, a, p, r, acc, acc_stride); break;
    case 5: values_run(5, f16, a, p, r, acc, acc_stride); break;
    case 4: values_run(4, f16, a, p, r, acc, acc_stride); break;
#endif
    case 3: values_run(3, f16, a, p, r, acc, acc_stride); break;
    case 2: values_run(2, f16, a, p, r, acc, acc_stride); break;
    case 1: values_run(1, f16, a, p, r, acc, acc_stride); break;
    }
}

static void values_f16(int n, const weft__attn *a, const float *p, const struct run *r, float *acc, int64_t acc_stride)
{
    values_queries(n, 1, a, p, r, acc, acc_stride);
}

static void values_f32(int n, const weft__attn *a, const float *p, const struct run *r, float *acc, int64_t acc_stride)
{
    values_queries(n, 0, a, p, r, acc, acc_stride);
}

/* ---- a split ---- */

/* Positions of a split that query i sees, in absolute numbers. */
static void range(const weft__attn *a, int i, int base, int *from, int *to)
{
    *from = a->begin[i] > base ? a->begin[i] : base;
    *to = a->end[i] < base + SPLIT ? a->end[i] : base + SPLIT;
}

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

/* Bytes [from, to) of what is read next: those before were fetched with this context's last page. Keys and values at
 * once would keep loads waiting, so keys are asked for behind the scores and values at the end. INLINE, as GCC takes a
 * function that only fetches for one that does nothing, and leaves the call out. */
INLINE void fetch_rest(const uint8_t *next, int64_t from, int64_t to)
{
    for (int64_t i = from; next && from > 0 && i < to; i += 64) FETCH(next + i);
}

/* Whole blocks of slots. */
static int blocks_of(int slots)
{
    return (slots + BLOCK - 1) / BLOCK * BLOCK;
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
