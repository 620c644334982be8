// SPDX-License-Identifier: Apache-2.0
/* tiers.c: the tiers of AVX-512 and AMX where their instructions are emulated (immintrin.h here): the linker puts these
 * functions in the place of those of base/cpu.h, which still say what there is besides. What a Zen 4 takes otherwise is
 * WEFT_TUNE=zen4 here, too. Reentrant. */
#include <stdlib.h>
#include <strings.h>

#include "base/cpu.h"

weft_status __real_weft__tier_mask_for(const char *mask, uint32_t *out, weft_error *err);
weft_status __wrap_weft__tier_mask_for(const char *mask, uint32_t *out, weft_error *err);
uint32_t __wrap_weft__tier_mask(void);

weft_status __wrap_weft__tier_mask_for(const char *mask, uint32_t *out, weft_error *err)
{
    static const weft__tier emulated[] = {WEFT__TIER_AVX512, WEFT__TIER_AVX512VNNI, WEFT__TIER_AVX512BF16,
                                          WEFT__TIER_AMX, WEFT__TIER_AMXBF16};
    weft_status st = __real_weft__tier_mask_for(mask, out, err);
    int highest = WEFT__TIER_COUNT;
    for (int t = 0; !st && mask && *mask && t < WEFT__TIER_COUNT; t++)
        if (!strcasecmp(mask, weft__tier_name((weft__tier)t))) highest = t;
    for (size_t i = 0; !st && i < sizeof emulated / sizeof *emulated; i++)
        if ((int)emulated[i] <= highest) *out |= 1u << emulated[i];
    return st;
}

uint32_t __wrap_weft__tier_mask(void)
{
    uint32_t tiers;
    weft_error err;
    return __wrap_weft__tier_mask_for(getenv("WEFT_CPU"), &tiers, &err) ? 1u << WEFT__TIER_REF : tiers;
}
