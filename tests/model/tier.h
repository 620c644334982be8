// SPDX-License-Identifier: Apache-2.0
/* tier.h: the tier that WEFT_CPU names, for programs that CTest runs once per tier. */
#ifndef WEFT_TESTS_TIER_H
#define WEFT_TESTS_TIER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "kernels/kernels.h"
#include "weft/error.h"

/* 0, with the reason printed, where this build or this processor has no such tier. */
static inline int tier_is_here(void)
{
    const char *mask = getenv("WEFT_CPU");
    uint32_t tiers;
    weft_error err = {0};
    if (mask && weft__tier_mask_for(mask, &tiers, &err)) {
        printf("SKIP: %s\n", err.message);
        return 0;
    }
    for (int t = 0; mask && t < WEFT__TIER_COUNT; t++)
        if (!strcmp(mask, weft__tier_name((weft__tier)t)) && !(weft__tier_mask() >> t & 1)) {
            printf("SKIP: this processor has no %s\n", mask);
            return 0;
        }
    return 1;
}

/* 1 where products with weights are readable C, which rounds no activation: bounds are tight there. Other kernels may
 * be faster ones. */
static inline int tier_is_exact(void)
{
    return weft__matmul_find(WEFT_Q8_0, weft__tier_mask())->tier == WEFT__TIER_REF;
}

/* 1 where arithmetic takes long, so that what repeats a claim for more models or tokens is shortened: readable C,
 * sanitizers (which do not look for bits), emulation. */
static inline int tier_is_slow(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(WEFT_EMULATED)
    return 1;
#else
    return tier_is_exact();
#endif
}

#endif
