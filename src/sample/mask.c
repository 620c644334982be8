// SPDX-License-Identifier: Apache-2.0
/* mask.c: logits of tokens that a constraint forbids (mask.h). */
#include "sample/mask.h"

#include <math.h>

void weft__sample_mask_apply(const uint64_t *bits, int32_t n_bits, float *logits, int32_t n)
{
    int32_t known = n < n_bits ? n : n_bits;
    for (int32_t t = 0; t < known; t++)
        if (!(bits[t >> 6] >> (t & 63) & 1)) logits[t] = -INFINITY;
    for (int32_t t = known; t < n; t++) logits[t] = -INFINITY;
}
