// SPDX-License-Identifier: Apache-2.0
/* attn.c: attention over pages, readable (kernels.h): the oracle of the other tiers. Both parts of a page are
 * [slot][head_dim]. Sums are taken in double, so the result is exact to the rounding of the inputs. Reentrant; no
 * state. */
#include "kernels/list.h"

#include <math.h>
#include <string.h>

#include "kernels/ref/softmax.h"
#include "quant/half.h"

static void attn_put(const float *x, int head_dim, int slot, uint32_t dtype, void *part)
{
    int64_t at = (int64_t)slot * head_dim;
    if (dtype == WEFT_F16) {
        for (int d = 0; d < head_dim; d++) ((uint16_t *)part)[at + d] = weft__f16_from_f32(x[d]);
    } else {
        memcpy((float *)part + at, x, (size_t)head_dim * sizeof *x);
    }
}

void weft__kv_put_k_ref(const float *k, int head_dim, int slot, int page_tokens, uint32_t dtype, void *part)
{
    (void)page_tokens;
    attn_put(k, head_dim, slot, dtype, part);
}

void weft__kv_put_v_ref(const float *v, int head_dim, int slot, int page_tokens, uint32_t dtype, void *part)
{
    (void)page_tokens;
    attn_put(v, head_dim, slot, dtype, part);
}

enum { PIECE = 64 }; /* elements of a position that are read at a time */

/* Elements [d, d + n) of position t in the parts at `offset`; n <= PIECE. */
static void elements(const weft__attn *a, uint32_t dtype, uint64_t offset, int head_dim, int t, int d, int n,
                     float out[PIECE])
{
    const uint8_t *part = a->data + (uint64_t)a->pages[t / a->page_tokens] * a->page_bytes + offset;
    const int64_t at = (int64_t)(t % a->page_tokens) * head_dim + d;
    if (dtype == WEFT_F16) {
        for (int i = 0; i < n; i++) out[i] = weft__f16_to_f32(((const uint16_t *)part)[at + i]);
    } else {
        memcpy(out, (const float *)part + at, (size_t)n * sizeof *out);
    }
}

static float score(const weft__attn *a, uint32_t dtype, const float *q, int t)
{
    const int dim = a->head_dim_k;
    float k[PIECE];
    double s = 0;
    for (int d = 0; d < dim; d += PIECE) {
        const int n = dim - d < PIECE ? dim - d : PIECE;
        elements(a, dtype, a->k_offset, dim, t, d, n, k);
        for (int i = 0; i < n; i++) s += (double)q[d + i] * k[i];
    }
    return ref_score(a, s);
}

/* Positions [from, to) of one query: softmax(scores) . values, not yet divided by the sum. */
static void one_query(const weft__attn *a, uint32_t dtype, const float *q, int from, int to, float *s, float *state)
{
    const int dim = a->head_dim_v;
    float v[PIECE];
    for (int t = from; t < to; t++) s[t - from] = score(a, dtype, q, t);
    ref_softmax(s, to - from, state);
    for (int e = 0; e < dim; e += PIECE) {
        const int n = dim - e < PIECE ? dim - e : PIECE;
        double acc[PIECE] = {0};
        for (int t = from; t < to; t++) {
            elements(a, dtype, a->v_offset, dim, t, e, n, v);
            for (int i = 0; i < n; i++) acc[i] += (double)s[t - from] * v[i];
        }
        for (int i = 0; i < n; i++) state[2 + e + i] = (float)acc[i];
    }
}

void weft__attn_split_ref(const weft__attn *a, uint32_t dtype, int split, float *scratch, float *state)
{
    const int base = split * WEFT__ATTN_SPLIT_TOKENS, limit = base + WEFT__ATTN_SPLIT_TOKENS;
    for (int i = 0; i < a->n_q; i++, state += 2 + a->head_dim_v) {
        int from = a->begin[i] > base ? a->begin[i] : base, to = a->end[i] < limit ? a->end[i] : limit;
        memset(state, 0, (size_t)(2 + a->head_dim_v) * sizeof *state);
        state[0] = -INFINITY;
        if (from < to) one_query(a, dtype, weft__attn_query(a, i), from, to, scratch, state);
    }
}

/* Split i weighs exp(m_i - max m); a split whose sum is 0 saw nothing. */
void weft__attn_combine_ref(const float *state, int64_t stride, int n_splits, int head_dim_v, float *out)
{
    double max = -INFINITY, sum = 0;
    for (int i = 0; i < n_splits; i++) {
        if (state[i * stride + 1] != 0 && state[i * stride] > max) max = state[i * stride];
    }
    for (int i = 0; i < n_splits; i++) {
        if (state[i * stride + 1] != 0) sum += exp(state[i * stride] - max) * state[i * stride + 1];
    }
    for (int e = 0; e < head_dim_v; e++) {
        double acc = 0;
        for (int i = 0; i < n_splits; i++) {
            if (state[i * stride + 1] != 0) acc += exp(state[i * stride] - max) * state[i * stride + 2 + e];
        }
        out[e] = sum == 0 ? 0 : (float)(acc / sum);
    }
}
