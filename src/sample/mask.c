// SPDX-License-Identifier: Apache-2.0
/* mask.c: logits of tokens that a constraint forbids (mask.h). */
#include "sample/mask.h"

#include <math.h>
#include <stddef.h>

static void fill(float *logits, int32_t n)
{
    for (int32_t t = 0; t < n; t++) logits[t] = -INFINITY;
}

/* By words: most of a mask's have all bits or none. */
void weft__sample_mask_apply(const uint64_t *bits, int32_t n_bits, float *logits, int32_t n)
{
    int32_t known = n < n_bits ? n : n_bits, whole = known / 64;
    for (int32_t w = 0; w < whole; w++) {
        if (bits[w] == 0) fill(logits + 64 * (ptrdiff_t)w, 64);
        else
            for (uint64_t off = ~bits[w]; off; off &= off - 1)
                logits[64 * (ptrdiff_t)w + __builtin_ctzll(off)] = -INFINITY;
    }
    for (int32_t t = 64 * whole; t < known; t++)
        if (!(bits[t >> 6] >> (t & 63) & 1)) logits[t] = -INFINITY;
    fill(logits + known, n - known);
}
