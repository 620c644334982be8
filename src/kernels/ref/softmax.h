// SPDX-License-Identifier: Apache-2.0
/* softmax.h: what readable attention does with scores, whatever pages hold; for files of this folder. Reentrant. */
#ifndef WEFT_KERNELS_REF_SOFTMAX_H
#define WEFT_KERNELS_REF_SOFTMAX_H

#include <math.h>

#include "kernels/kernels.h"

/* Of q . k: times scale, then cap * tanh(score / cap) (Gemma 2, 2024). */
static inline float ref_score(const weft__attn *a, double product)
{
    const double x = product * a->scale;
    return (float)(a->softcap != 0 ? a->softcap * tanh(x / a->softcap) : x);
}

/* Makes weights exp(s - max) of n scores, not yet divided by their sum; state[0] is max, state[1] the sum. */
static inline void ref_softmax(float *s, int n, float *state)
{
    float max = -INFINITY;
    double sum = 0;
    for (int t = 0; t < n; t++)
        if (s[t] > max) max = s[t];
    for (int t = 0; t < n; t++) {
        double x = (double)s[t] - max, p = x < -WEFT__SOFTMAX_FAR ? 0 : exp(x);
        s[t] = (float)p;
        sum += p;
    }
    state[0] = max;
    state[1] = (float)sum;
}

#endif
