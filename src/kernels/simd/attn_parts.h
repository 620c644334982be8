// SPDX-License-Identifier: Apache-2.0
/* attn_parts.h: what attention over pages of floats (attn.h) and over coded pages (attn_coded.h) share: runs of
 * positions, the softmax, and the weighted values. For the vectors of the file that includes it.
 *
 * Values are [slot][head_dim], so that outputs vectorise over their elements. Invariant: attn.h's. */
#ifndef WEFT_KERNELS_SIMD_ATTN_PARTS_H
#define WEFT_KERNELS_SIMD_ATTN_PARTS_H

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

/* RUN(nq) for a number of queries: as many at a time as a tile has, with ON() behind each, then the rest. nq is a
 * constant each time, so that sums become registers. */
#if TILE_QUERIES > 4
#define QUERIES_4_TO_7(RUN)                                                                                            \
    case 7: RUN(7); break;                                                                                             \
    case 6: RUN(6); break;                                                                                             \
    case 5: RUN(5); break;                                                                                             \
    case 4:                                                                                                            \
        RUN(4);                                                                                                        \
        break;
#else
#define QUERIES_4_TO_7(RUN)
#endif
#define FOR_QUERIES(n, RUN, ON)                                                                                        \
    do {                                                                                                               \
        int left_ = (n);                                                                                               \
        for (; left_ >= TILE_QUERIES; left_ -= TILE_QUERIES) {                                                         \
            RUN(TILE_QUERIES);                                                                                         \
            ON();                                                                                                      \
        }                                                                                                              \
        switch (left_) {                                                                                               \
            QUERIES_4_TO_7(RUN)                                                                                        \
        case 3: RUN(3); break;                                                                                         \
        case 2: RUN(2); break;                                                                                         \
        case 1: RUN(1); break;                                                                                         \
        }                                                                                                              \
    } while (0)

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
static inline struct run run_at(const weft__attn *a, uint64_t offset, int base, int from, int to, const uint8_t *next)
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

/* ---- softmax ---- */

/* s[t] = cap * tanh(s[t] * scale / cap) for vectors from `first` on that touch positions before `to`. */
static inline void cap_scores(const weft__attn *a, int first, int to, float *s)
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
static inline void softmax(const weft__attn *a, int base, const int *from, const int *to, int n, float *s, float *state,
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

/* ---- weighted values ---- */

/* The values of a run: n tokens, `stride` bytes apart; `ahead` as in struct run. */
struct values {
    const uint8_t *at; /* the first token's row */
    int64_t stride, ahead;
    int n;
};

/* Whole numbers of 8 bits, E4M3: the scale of each token is in its weight. I4: pairs of whole numbers of 4 bits, which
 * have loops of their own (attn_coded_values.h). */
enum { FORM_F32, FORM_F16, FORM_BF16, FORM_F8, FORM_I8, FORM_I4 };

INLINE int form_bytes(int form)
{
    return form == FORM_F32 ? 4 : form == FORM_F16 || form == FORM_BF16 ? 2 : 1;
}

/* By how much elements of a row of E4M3 are more than form_load says, by the row's first byte. */
static inline float f8_unit(uint8_t first)
{
    return first == WEFT__ATTN_F8_NAN ? NAN : 256;
}

/* A vector of values, or its first `part`, when it is not 0. */
INLINE vf form_load(int form, const uint8_t *at, int part)
{
    switch (form) {
    case FORM_F8: return part ? vf_load_f8_part(at, part) : vf_load_f8(at);
    case FORM_BF16: return part ? vf_load_bf16_part((const uint16_t *)at, part) : vf_load_bf16((const uint16_t *)at);
    case FORM_I8: return part ? vf_load_i8_part((const int8_t *)at, part) : vf_load_i8((const int8_t *)at);
    case FORM_F16: return part ? vf_load_f16_part((const uint16_t *)at, part) : vf_load_f16((const uint16_t *)at);
    default: return part ? vf_load_part((const float *)at, part) : vf_load((const float *)at);
    }
}

/* acc[i][j] += sum over v's tokens of p[i][t] * v[t][e + j], for nq queries and nv vectors of elements (with `part` !=
 * 0: one vector, `part` elements). nq, nv, form are constants. */
INLINE void values_tile(int nq, int nv, int form, int part, const float *p, const struct values *v, int e, float *acc,
                        int64_t acc_stride)
{
    vf sum[TILE_QUERIES][4];
    const int size = form_bytes(form);
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
            value[j] = form_load(form, at, part);
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

/* All elements of the run's values. As many vectors at a time as the sums leave room for, so that a weight is taken
 * for more of them. */
INLINE void values_run(int nq, int form, const weft__attn *a, const float *p, const struct run *r, float *acc,
                       int64_t acc_stride)
{
    const int step = nq * 4 <= TILE_QUERIES * TILE_VECTORS ? 4 : TILE_VECTORS, size = form_bytes(form);
    const int dim = a->head_dim_v;
    const int64_t stride = (int64_t)dim * size;
    const struct values v = {r->at + r->slot * stride, stride, r->ahead, r->to - r->from};
    int e = 0;
    for (; e + step * VF_N <= dim; e += step * VF_N) {
        values_tile(nq, step, form, 0, p, &v, e, acc, acc_stride);
    }
    for (; e + VF_N <= dim; e += VF_N) values_tile(nq, 1, form, 0, p, &v, e, acc, acc_stride);
    if (e < dim) values_tile(nq, 1, form, dim - e, p, &v, e, acc, acc_stride);
}

INLINE void values_queries(int n, int form, const weft__attn *a, const float *p, const struct run *r, float *acc,
                           int64_t acc_stride)
{
#define RUN(nq) values_run(nq, form, a, p, r, acc, acc_stride)
#define ON() (p += TILE_QUERIES * SCORES, acc += TILE_QUERIES * acc_stride)
    FOR_QUERIES(n, RUN, ON);
#undef ON
#undef RUN
}

/* ---- a split ---- */

/* Positions of a split that query i sees, in absolute numbers. */
static inline void range(const weft__attn *a, int i, int base, int *from, int *to)
{
    *from = a->begin[i] > base ? a->begin[i] : base;
    *to = a->end[i] < base + SPLIT ? a->end[i] : base + SPLIT;
}

/* Bytes [from, to) of what is read next: those before were fetched with this context's last page. Keys and values at
 * once would keep loads waiting, so keys are asked for behind the scores and values at the end. INLINE, as GCC takes a
 * function that only fetches for one that does nothing, and leaves the call out. */
INLINE void fetch_rest(const uint8_t *next, int64_t from, int64_t to)
{
    for (int64_t i = from; next && from > 0 && i < to; i += 64) FETCH(next + i);
}

/* Whole blocks of slots. */
static inline int blocks_of(int slots)
{
    return (slots + BLOCK - 1) / BLOCK * BLOCK;
}

#endif
