// SPDX-License-Identifier: Apache-2.0
/* vecmath.h: functions on vectors of floats, for any tier that offers the words below (its vec.h is included first).
 *
 * vf: VF_N floats; vm: a mask of as many lanes. vf_load, vf_store: any alignment; ..._part(p, n): the first n lanes
 * only, others read as 0 and nothing else is touched. vf_fma(a, b, c) = a * b + c, vf_fnma = c - a * b, both rounded
 * once. vf_max, vf_min of (a, b): b when either is NaN. vf_round: to nearest even. vf_ldexp(a, n) = a * 2^n.
 * vf_select(m, a, b): a where m is set. vf_sum, vf_most: over the lanes, in a fixed order. Everything is `static
 * inline`: see CMakeLists.txt for why.
 *
 * Special values: NaN in gives NaN out; infinities give what the exact function gives. Errors are relative to the
 * result; results below 1e-37 may be flushed to zero. */
#ifndef WEFT_KERNELS_SIMD_VECMATH_H
#define WEFT_KERNELS_SIMD_VECMATH_H

#include "kernels/kernels.h"
#include "kernels/simd/poly.h"

/* At most VF_N elements at p, `left` of which are there. */
static inline vf vf_get(const float *p, int64_t left)
{
    return left >= VF_N ? vf_load(p) : vf_load_part(p, (int)left);
}

static inline void vf_put(float *p, vf a, int64_t left)
{
    if (left >= VF_N) {
        vf_store(p, a);
    } else {
        vf_store_part(p, a, (int)left);
    }
}

static inline vf vf_poly(vf x, const float *c, int n)
{
    vf y = vf_set(c[n - 1]);
    for (int i = n - 2; i >= 0; i--) y = vf_fma(y, x, vf_set(c[i]));
    return y;
}

/* e^x for x in [-104, 89], error below 2e-7. x = n ln 2 + r with |r| <= ln(2)/2; ln 2 in two parts, so that r is exact
 * to the last bit. */
static inline vf vf_exp_within(vf x)
{
    static const float c[POLY_EXP_N] = {POLY_EXP};
    vf n = vf_round(vf_mul(x, vf_set(1.44269504f)));
    vf r = vf_fnma(n, vf_set(-2.12194440e-4f), vf_fnma(n, vf_set(0.693359375f), x));
    vf y = vf_fma(vf_mul(r, r), vf_poly(r, c, POLY_EXP_N), r);
    return vf_ldexp(vf_add(y, vf_set(1.0f)), n);
}

/* e^x. Beyond these bounds it is 0 and infinity anyway. */
static inline vf vf_exp(vf x)
{
    return vf_exp_within(vf_max(vf_set(-104.0f), vf_min(vf_set(89.0f), x)));
}

/* What an x <= 0 weighs in a softmax whose largest is 0: e^x, or 0 below -WEFT__SOFTMAX_FAR. */
static inline vf vf_weight(vf x)
{
    const vf least = vf_set(-WEFT__SOFTMAX_FAR);
    return vf_select(vf_less(x, least), vf_zero(), vf_exp_within(vf_max(least, x)));
}

/* tanh, error below 5e-7: an odd polynomial near 0, where 1 - 2 / (e^2y + 1) would cancel. */
static inline vf vf_tanh(vf x)
{
    static const float c[POLY_TANH_N] = {POLY_TANH};
    vf y = vf_abs(x), z = vf_mul(x, x);
    vf small = vf_fma(vf_mul(x, z), vf_poly(z, c, POLY_TANH_N), x);
    vf large = vf_sub(vf_set(1.0f), vf_div(vf_set(2.0f), vf_add(vf_exp(vf_add(y, y)), vf_set(1.0f))));
    return vf_select(vf_less(y, vf_set(0.625f)), small, vf_copysign(large, x));
}

/* x * sigmoid(y). */
static inline vf vf_gated(vf x, vf y)
{
    return vf_div(x, vf_add(vf_set(1.0f), vf_exp(vf_sub(vf_zero(), y))));
}

static inline vf vf_silu(vf x)
{
    return vf_gated(x, x);
}

/* x * sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3)); the error grows with the exponent, to 1e-5 where the result nears
 * 1e-37. */
static inline vf vf_gelu_tanh(vf x)
{
    vf u = vf_fma(vf_mul(x, x), vf_set(0.0713548163f), vf_set(1.5957691216f));
    return vf_gated(x, vf_mul(x, u));
}

/* x/2 * erfc(-x / sqrt(2)). With z = |x| / sqrt(2): erfc(z) = e^(-z^2) t p(t), t = 1 / (1 + z/2); the rounding error of
 * z^2 is carried into the exponential. */
static inline vf vf_gelu_erf(vf x)
{
    static const float c[POLY_ERFC_N] = {POLY_ERFC};
    vf a = vf_min(vf_set(30.0f), vf_abs(x)); /* beyond, the tail is 0 */
    vf square = vf_mul(a, a), rest = vf_fma(a, a, vf_sub(vf_zero(), square));
    vf e = vf_exp(vf_mul(square, vf_set(-0.5f)));
    e = vf_fnma(vf_mul(rest, vf_set(0.5f)), e, e);
    vf t = vf_div(vf_set(1.0f), vf_fma(a, vf_set(0.353553391f), vf_set(1.0f)));
    vf tail = vf_mul(e, vf_mul(t, vf_poly(t, c, POLY_ERFC_N)));
    vf full = vf_select(vf_less(x, vf_zero()), tail, vf_sub(vf_set(2.0f), tail));
    return vf_mul(vf_mul(x, vf_set(0.5f)), full);
}

#endif
