// SPDX-License-Identifier: Apache-2.0
/* rows.h: the operations on rows, for the vectors of the file that includes it (contracts: kernels.h). TIER(name) makes
 * the function's name. Every row is computed alone, so results do not depend on what else is computed. */
#include <math.h>

#include "kernels/list.h"
#include "kernels/simd/vecmath.h"
#include "weft/graph.h"

/* The sum is in double: exact enough that neither order nor scale of x matters. Products are in double only where the
 * factor is no good float. */
void TIER(weft__norm_rms)(const float *x, const float *w, float eps, int64_t n, float *y)
{
    vd2 sum = vd2_zero(), more = vd2_zero();
    int64_t at = 0;
    for (; at + 2 * VF_N <= n; at += 2 * VF_N) {
        sum = vd2_add_squares(sum, vf_load(x + at));
        more = vd2_add_squares(more, vf_load(x + at + VF_N));
    }
    for (; at < n; at += VF_N) sum = vd2_add_squares(sum, vf_get(x + at, n - at));
    double inverse = 1 / sqrt((vd2_sum(sum) + vd2_sum(more)) / (double)n + eps);
    if (w && inverse > 1e-30 && inverse < 1e30) {
        const vf factor = vf_set((float)inverse);
        for (int64_t i = 0; i < n; i += VF_N)
            vf_put(y + i, vf_mul(vf_mul(vf_get(x + i, n - i), factor), vf_get(w + i, n - i)), n - i);
        return;
    }
    for (int64_t i = 0; i < n; i += VF_N) {
        vf weight = w ? vf_get(w + i, n - i) : vf_set(1.0f);
        vf_put(y + i, vf_mul_double(vf_get(x + i, n - i), inverse, weight), n - i);
    }
}

void TIER(weft__add)(const float *a, const float *b, int64_t n, float *y)
{
    for (int64_t i = 0; i < n; i += VF_N) vf_put(y + i, vf_add(vf_get(a + i, n - i), vf_get(b + i, n - i)), n - i);
}

void TIER(weft__scale)(const float *x, float factor, int64_t n, float *y)
{
    vf f = vf_set(factor);
    for (int64_t i = 0; i < n; i += VF_N) vf_put(y + i, vf_mul(vf_get(x + i, n - i), f), n - i);
}

/* One loop for all activations; `act` is a constant where this is called. */
static inline __attribute__((always_inline)) void glu_with(int act, const float *gate, const float *up, int64_t n,
                                                           float *y)
{
    for (int64_t i = 0; i < n; i += VF_N) {
        vf g = vf_get(gate + i, n - i);
        if (act == WEFT_ACT_SILU) g = vf_silu(g);
        if (act == WEFT_ACT_GELU_TANH) g = vf_gelu_tanh(g);
        if (act == WEFT_ACT_GELU_ERF) g = vf_gelu_erf(g);
        vf_put(y + i, vf_mul(g, vf_get(up + i, n - i)), n - i);
    }
}

void TIER(weft__glu)(int act, const float *gate, const float *up, int64_t n, float *y)
{
    switch (act) {
    case WEFT_ACT_SILU: glu_with(WEFT_ACT_SILU, gate, up, n, y); break;
    case WEFT_ACT_GELU_TANH: glu_with(WEFT_ACT_GELU_TANH, gate, up, n, y); break;
    case WEFT_ACT_GELU_ERF: glu_with(WEFT_ACT_GELU_ERF, gate, up, n, y); break;
    default: glu_with(WEFT_ACT_NONE, gate, up, n, y);
    }
}

void TIER(weft__softcap)(const float *x, float cap, int64_t n, float *y)
{
    vf c = vf_set(cap);
    for (int64_t i = 0; i < n; i += VF_N) {
        vf_put(y + i, vf_mul(c, vf_tanh(vf_div(vf_get(x + i, n - i), c))), n - i);
    }
}

/* Pairs (2i, 2i+1): cos and sin lie as x does. n_rot is even, so a part never cuts a pair. */
static void rope_adjacent(float *x, int n_heads, int head_dim, int n_rot, const float *cs)
{
    for (int i = 0; i < n_rot; i += VF_N) {
        vf both = vf_get(cs + i, n_rot - i), c = vf_even_twice(both), s = vf_odd_twice(both);
        float *p = x + i;
        for (int h = 0; h < n_heads; h++, p += head_dim) {
            vf a = vf_get(p, n_rot - i);
            vf_put(p, vf_fmaddsub(a, c, vf_mul(vf_swap_pairs(a), s)), n_rot - i);
        }
    }
}

/* Pairs (i, i + n_rot/2). */
static void rope_halves(float *x, int n_heads, int head_dim, int n_rot, const float *cs)
{
    int half = n_rot / 2;
    for (int i = 0; i < half; i += VF_N) {
        const float *at = cs + 2 * i;
        int left = half - i;
        vf c, s;
        vf_split_pairs(vf_get(at, 2 * left), left > VF_N / 2 ? vf_get(at + VF_N, 2 * left - VF_N) : vf_zero(), &c, &s);
        float *p = x + i;
        for (int h = 0; h < n_heads; h++, p += head_dim) {
            vf a = vf_get(p, left), b = vf_get(p + half, left);
            vf_put(p, vf_fnma(b, s, vf_mul(a, c)), left);
            vf_put(p + half, vf_fma(a, s, vf_mul(b, c)), left);
        }
    }
}

void TIER(weft__rope)(float *x, int n_heads, int head_dim, int n_rot, int style, const float *cs)
{
    if (style == WEFT_ROPE_ADJACENT) {
        rope_adjacent(x, n_heads, head_dim, n_rot & ~1, cs);
    } else {
        rope_halves(x, n_heads, head_dim, n_rot & ~1, cs);
    }
}

/* The largest element first, then where it is: two fast passes instead of one slow one. */
int64_t TIER(weft__argmax)(const float *x, int64_t n)
{
    vf most = vf_set(-INFINITY);
    int64_t whole = n / VF_N * VF_N;
    for (int64_t i = 0; i < whole; i += VF_N) most = vf_max(vf_load(x + i), most); /* NaN leaves `most` */
    float m = vf_most(most);
    for (int64_t i = whole; i < n; i++) m = x[i] > m ? x[i] : m;
    for (int64_t i = 0; i < whole; i += VF_N) {
        uint32_t hits = vm_bits(vf_equal(vf_load(x + i), vf_set(m)));
        if (hits) return i + __builtin_ctz(hits);
    }
    for (int64_t i = whole; i < n; i++) {
        if (x[i] == m) return i;
    }
    return 0; /* nothing but NaN */
}
