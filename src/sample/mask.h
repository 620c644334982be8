// SPDX-License-Identifier: Apache-2.0
/* mask.h: logits of tokens that a constraint forbids. Nothing here allocates. */
#ifndef WEFT_SAMPLE_MASK_H
#define WEFT_SAMPLE_MASK_H

#include <stdint.h>

/* Sets logits[t] to -infinity for each t in [0, n) whose bit (t % 64 of bits[t / 64]) is 0, and for t in [n_bits,
 * n). */
void weft__sample_mask_apply(const uint64_t *bits, int32_t n_bits, float *logits, int32_t n);

#endif
