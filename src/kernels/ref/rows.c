// SPDX-License-Identifier: Apache-2.0
/* rows.c: the operations on rows, readable (kernels.h). The oracle of every other tier: sums and transcendental
 * functions are taken in double and rounded once. Reentrant; no state. */
#include "kernels/list.h"

#include <math.h>

#include "quant/quant.h"
#include "weft/graph.h"

void weft__norm_rms_ref(const float *x, const float *w, float eps, int64_t n, float *y)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)x[i] * x[i];
    double inverse = 1 / sqrt(sum / (double)n + eps);
    for (int64_t i = 0; i < n; i++) y[i] = (float)(x[i] * inverse * (w ? w[i] : 1.0f));
}

void weft__add_ref(const float *a, const float *b, int64_t n, float *y)
{
    for (int64_t i = 0; i < n; i++) y[i] = a[i] + b[i];
}

void weft__scale_ref(const float *x, float factor, int64_t n, float *y)
{
    for (int64_t i = 0; i < n; i++) y[i] = x[i] * factor;
}

/* x * sigmoid(x) (Elfwing et al. 2017). */
static double silu(double x)
{
    return x / (1 + exp(-x));
}

/* x * Phi(x) with Phi approximated by 1/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) (Hendrycks and Gimpel 2016); since
 * 1/2 (1 + tanh(u)) = sigmoid(2u), written without the cancellation of 1 + tanh for negative x. */
static double gelu_tanh(double x)
{
    double u = 0.79788456080286535588 * (x + 0.044715 * x * x * x);
    return x / (1 + exp(-2 * u));
}

/* x * Phi(x), Phi the normal distribution function. */
static double gelu_erf(double x)
{
    return 0.5 * x * erfc(-x * 0.70710678118654752440);
}

void weft__glu_ref(int act, const float *gate, const float *up, int64_t n, float *y)
{
    for (int64_t i = 0; i < n; i++) {
        double g = gate[i];
        if (act == WEFT_ACT_SILU) g = silu(g);
        if (act == WEFT_ACT_GELU_TANH) g = gelu_tanh(g);
        if (act == WEFT_ACT_GELU_ERF) g = gelu_erf(g);
        y[i] = (float)g * up[i];
    }
}

void weft__softcap_ref(const float *x, float cap, int64_t n, float *y)
{
    for (int64_t i = 0; i < n; i++) y[i] = (float)(cap * tanh((double)x[i] / cap));
}

static void rotate(float *a, float *b, const float *cs)
{
    double x = *a, y = *b, c = cs[0], s = cs[1];
    *a = (float)(x * c - y * s);
    *b = (float)(x * s + y * c);
}

void weft__rope_ref(float *x, int n_heads, int head_dim, int n_rot, int style, const float *cs)
{
    for (int h = 0; h < n_heads; h++, x += head_dim) {
        for (int i = 0; i < n_rot / 2; i++) {
            if (style == WEFT_ROPE_ADJACENT) {
                rotate(&x[2 * i], &x[2 * i + 1], cs + 2 * i);
            } else {
                rotate(&x[i], &x[i + n_rot / 2], cs + 2 * i);
            }
        }
    }
}

int64_t weft__argmax_ref(const float *x, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++) {
        if (x[i] > x[best] || (isnan(x[best]) && !isnan(x[i]))) best = i;
    }
    return best;
}

void weft__decode_row_ref(uint32_t dtype, const void *row, int64_t n, float *dst)
{
    weft__quant_decode_row(dtype, row, dst, n);
}
