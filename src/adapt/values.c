// SPDX-License-Identifier: Apache-2.0
/* values.c: are an adapter's values, finite as they are, numbers that a step can compute with? Looked at before it is
 * served; commands that only read and write adapters take what is finite. Reentrant. */
#include <math.h>

#include "adapt/adapt.h"
#include "base/background.h"

enum { AT_ONCE = 16384 /* values, before work in the background may rest */ };

/* What 4 bits with a scale in float16 hold, the narrowest type that adapters are kept in: so an adapter is refused for
 * all types or for none. */
static const float MOST_OF_A = 65504.f * 8;
/* Of a weight's change, by each rank. Weights of models are some 1: this is far beyond what is of use, and far enough
 * below 2^64, from where on the norms' squares are no numbers of float32, for sums of thousands of products. */
static const float MOST_CHANGE = 0x1p32f;

static float largest(const float *x, int64_t n)
{
    float max = 0;
    for (int64_t i = 0; i < n;) {
        const int64_t end = n - i < AT_ONCE ? n : i + AT_ONCE;
        weft__background_did((uint64_t)(end - i) * sizeof *x);
        for (; i < end; i++) max = fabsf(x[i]) > max ? fabsf(x[i]) : max;
    }
    return max;
}

static weft_status check_pair(const weft__adapt_pair *p, float weight, weft_error *err)
{
    static const char remedy[] = "get it again, or train it again with a lower learning rate";
    const float a = largest(p->a, p->n_experts * p->rank * p->k), b = largest(p->b, p->n_experts * p->n * p->rank),
                m = p->magnitude ? largest(p->magnitude, weft__adapt_n_magnitudes(p)) : 0;
    const double change = (double)a * (double)b * fabs((double)p->scale);
    if (a > MOST_OF_A)
        return weft_fail(err, WEFT_FORMAT, "%s: half A holds %g, beyond the %g that adapters may have; %s", p->name,
                         (double)a, (double)MOST_OF_A, remedy);
    if (change > (double)MOST_CHANGE || m > MOST_CHANGE)
        return weft_fail(err, WEFT_FORMAT,
                         "%s: A up to %g, B up to %g, a scale of %g, magnitudes up to %g: together beyond the %g that "
                         "can be computed with; %s",
                         p->name, (double)a, (double)b, (double)p->scale, (double)m, (double)MOST_CHANGE, remedy);
    if (change * fabs((double)weight) > (double)MOST_CHANGE)
        return weft_fail(
            err, WEFT_ARGUMENT,
            "%s: at a scale of %g, its changes are beyond the %g that can be computed with; give a smaller scale",
            p->name, (double)weight, (double)MOST_CHANGE);
    return WEFT_OK;
}

weft_status weft__adapt_check_values(const weft__adapt *a, float weight, weft_error *err)
{
    weft_status st = WEFT_OK;
    for (int32_t i = 0; i < a->n_pairs && !st; i++) st = check_pair(&a->pairs[i], weight, err);
    return st;
}
