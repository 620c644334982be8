// SPDX-License-Identifier: Apache-2.0
/* coded_pairs.h: a query's words for tiers that multiply words of 16 bits in pairs (attn_coded.h). */
#ifndef WEFT_KERNELS_SIMD_CODED_PAIRS_H
#define WEFT_KERNELS_SIMD_CODED_PAIRS_H

#include <stdint.h>

static inline void coded_query(const int8_t *codes, int32_t *words)
{
    words[0] = (int32_t)((uint32_t)(uint16_t)codes[0] | (uint32_t)(uint16_t)codes[2] << 16);
    words[1] = (int32_t)((uint32_t)(uint16_t)codes[1] | (uint32_t)(uint16_t)codes[3] << 16);
}

#endif
