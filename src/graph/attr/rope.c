// SPDX-License-Identifier: Apache-2.0
/* rope.c: frequencies of rotary position embedding (rope.h). */
#include "graph/attr/rope.h"

#include <math.h>
#include <stddef.h>

#define PI 3.14159265358979323846

/* The pair that turns `rotations` times over the original context (Peng et al. 2023, section 3.2). */
static double pair_of(const weft_attr_rope *a, double rotations)
{
    return a->n_rot * log(a->n_ctx_orig / (rotations * 2 * PI)) / (2 * log(a->base));
}

/* Radians per position of every pair: base^(-2i/n_rot) / factor_i, scaled; with YaRN the scaled and the original
 * frequency are mixed by a ramp between the pairs that turn beta_fast and beta_slow times. */
void weft__graph_rope_frequencies(const weft_attr_rope *a, const float *factors, double *freq)
{
    double low = 0, high = 0;
    if (a->ext_factor != 0) {
        low = fmax(0, floor(pair_of(a, a->beta_fast)));
        high = fmin(a->n_rot - 1, ceil(pair_of(a, a->beta_slow)));
    }
    for (int i = 0; i < a->n_rot / 2; i++) {
        double original = pow(a->base, -2.0 * i / a->n_rot) / (factors ? factors[i] : 1.0),
               scaled = a->freq_scale * original;
        double ramp = 1 - fmin(1, fmax(0, (i - low) / fmax(0.001, high - low))), mix = ramp * a->ext_factor;
        freq[i] = a->ext_factor != 0 ? scaled * (1 - mix) + original * mix : scaled;
    }
}
