// SPDX-License-Identifier: Apache-2.0
/* learn.c: the backward operations on rows, readable (kernels.h): products and transcendental functions in double,
 * rounded once. Reentrant; no state. */
#include "kernels/list.h"

#include <math.h>

#include "weft/graph.h"

/* y_i = x_i w_i s with s = (mean(x²) + eps)^-1/2, so ds/dx_j = -s³ x_j / n. */
void weft__norm_back_ref(const float *x, const float *w, const float *dy, double inverse, int64_t n, float *dx)
{
    double dot = 0;
    for (int64_t i = 0; i < n; i++) dot += (double)dy[i] * (w ? w[i] : 1.0f) * x[i];
    double by_x = inverse * inverse * inverse * dot / (double)n;
    for (int64_t i = 0; i < n; i++) dx[i] = (float)(inverse * dy[i] * (w ? w[i] : 1.0f) - by_x * x[i]);
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* Activation and its slope at x. */
static double activation(int act, double x, double *slope)
{
    if (act == WEFT_ACT_SILU || act == WEFT_ACT_GELU_TANH) {
        double c = act == WEFT_ACT_SILU ? 0 : 1.59576912160573071176, z = x * x;
        double u = c == 0 ? x : c * (x + 0.044715 * x * z), by = c == 0 ? 1 : c * (1 + 0.134145 * z), s = sigmoid(u),
               tail = s * (1 - s);
        *slope = tail == 0 ? s : s + x * tail * by;
        return x * s;
    }
    if (act == WEFT_ACT_GELU_ERF) {
        double cdf = 0.5 * erfc(-x * 0.70710678118654752440), density = 0.39894228040143267794 * exp(-0.5 * x * x);
        *slope = density == 0 ? cdf : cdf + x * density;
        return x * cdf;
    }
    *slope = 1;
    return x;
}

void weft__glu_back_ref(int act, const float *gate, const float *up, const float *dy, int64_t n, float *dgate,
                        float *dup)
{
    for (int64_t i = 0; i < n; i++) {
        double slope, y = activation(act, gate[i], &slope), g = dy[i];
        dgate[i] = (float)(g * up[i] * slope);
        dup[i] = (float)(g * y);
    }
}

double weft__exp_sum_ref(const float *x, float shift, int64_t n, float *y)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        y[i] = x[i] - shift < -WEFT__SOFTMAX_FAR ? 0 : (float)exp((double)(x[i] - shift));
        sum += y[i];
    }
    return sum;
}
