// SPDX-License-Identifier: Apache-2.0
/* learn.h: the backward operations on rows, for the vectors of the file that includes it (contracts: kernels.h).
 * TIER(name) makes the function's name. */
#include <math.h>

#include "kernels/list.h"
#include "kernels/simd/vecmath.h"
#include "weft/graph.h"

void TIER(weft__norm_back)(const float *x, const float *w, const float *dy, double inverse, int64_t n, float *dx)
{
    double dot = 0;
    for (int64_t i = 0; i < n; i += VF_N) {
        vf g = vf_get(dy + i, n - i);
        if (w) g = vf_mul(g, vf_get(w + i, n - i));
        dot += (double)vf_sum(vf_mul(g, vf_get(x + i, n - i)));
    }
    vf by_g = vf_set((float)inverse), by_x = vf_set((float)(inverse * inverse * inverse * dot / (double)n));
    for (int64_t i = 0; i < n; i += VF_N) {
        vf g = vf_get(dy + i, n - i);
        if (w) g = vf_mul(g, vf_get(w + i, n - i));
        vf_put(dx + i, vf_fnma(by_x, vf_get(x + i, n - i), vf_mul(by_g, g)), n - i);
    }
}

/* sigmoid(y). */
static inline vf vf_sigmoid(vf y)
{
    return vf_gated(vf_set(1.0f), y);
}

/* s + x s (1 - s). */
static inline vf silu_slope(vf x)
{
    vf s = vf_sigmoid(x);
    return vf_fma(vf_mul(x, s), vf_sub(vf_set(1.0f), s), s);
}

/* With u = 2 sqrt(2/pi) (x + 0.044715 x^3) and s = sigmoid(u): s + x s (1 - s) u'. Beyond 20 the tail is 0, and u' may
 * overflow. */
static inline vf gelu_tanh_slope(vf x)
{
    x = vf_max(vf_set(-20.0f), vf_min(vf_set(20.0f), x));
    vf z = vf_mul(x, x), u = vf_mul(x, vf_fma(z, vf_set(0.0713548163f), vf_set(1.5957691216f)));
    vf s = vf_sigmoid(u), slope = vf_fma(z, vf_set(0.2140644488f), vf_set(1.5957691216f));
    return vf_fma(vf_mul(vf_mul(x, s), vf_sub(vf_set(1.0f), s)), slope, s);
}

/* Phi(x) + x phi(x). Phi(x) is gelu_erf(x) / x away from 0, and 1/2 + x phi(0) beside it. */
static inline vf gelu_erf_slope(vf x)
{
    x = vf_max(vf_set(-20.0f), vf_min(vf_set(20.0f), x));
    vf density = vf_mul(vf_exp(vf_mul(vf_mul(x, x), vf_set(-0.5f))), vf_set(0.3989422804f));
    vf near = vf_fma(x, vf_set(0.3989422804f), vf_set(0.5f));
    vf cdf = vf_select(vf_less(vf_abs(x), vf_set(1e-4f)), near, vf_div(vf_gelu_erf(x), x));
    return vf_fma(x, density, cdf);
}

/* One loop for all activations; `act` is a constant where this is called. */
static inline __attribute__((always_inline)) void glu_back_with(int act, const float *gate, const float *up,
                                                                const float *dy, int64_t n, float *dgate, float *dup)
{
    for (int64_t i = 0; i < n; i += VF_N) {
        vf x = vf_get(gate + i, n - i), u = vf_get(up + i, n - i), g = vf_get(dy + i, n - i), y = x,
           slope = vf_set(1.0f);
        if (act == WEFT_ACT_SILU) y = vf_silu(x), slope = silu_slope(x);
        if (act == WEFT_ACT_GELU_TANH) y = vf_gelu_tanh(x), slope = gelu_tanh_slope(x);
        if (act == WEFT_ACT_GELU_ERF) y = vf_gelu_erf(x), slope = gelu_erf_slope(x);
        vf_put(dgate + i, vf_mul(vf_mul(g, u), slope), n - i);
        vf_put(dup + i, vf_mul(g, y), n - i);
    }
}

void TIER(weft__glu_back)(int act, const float *gate, const float *up, const float *dy, int64_t n, float *dgate,
                          float *dup)
{
    switch (act) {
    case WEFT_ACT_SILU: glu_back_with(WEFT_ACT_SILU, gate, up, dy, n, dgate, dup); break;
    case WEFT_ACT_GELU_TANH: glu_back_with(WEFT_ACT_GELU_TANH, gate, up, dy, n, dgate, dup); break;
    case WEFT_ACT_GELU_ERF: glu_back_with(WEFT_ACT_GELU_ERF, gate, up, dy, n, dgate, dup); break;
    default: glu_back_with(WEFT_ACT_NONE, gate, up, dy, n, dgate, dup);
    }
}

double TIER(weft__exp_sum)(const float *x, float shift, int64_t n, float *y)
{
    double sum = 0;
    vf part = vf_zero();
    for (int64_t i = 0; i < n; i += VF_N) {
        int64_t left = n - i;
        vf e = vf_weight(vf_sub(vf_get(x + i, left), vf_set(shift)));
        vf_put(y + i, e, left);
        part = vf_add(part, left >= VF_N ? e : vf_get(y + i, left));
        if ((i / VF_N & 63) == 63) sum += (double)vf_sum(part), part = vf_zero();
    }
    return sum + (double)vf_sum(part);
}
