// SPDX-License-Identifier: Apache-2.0
/* finite.c: see finite.h. */
#include "quant/finite.h"

#include <string.h>

enum { BLOCK = 1024 };

/* A number's exponent is all ones when it is none; any bit of its fraction, and it is NaN. */
static int any_16(const uint8_t *src, uint64_t n, uint16_t exponent)
{
    uint16_t x;
    int found = 0;
    for (uint64_t i = 0; i < n; i++) {
        memcpy(&x, src + i * sizeof x, sizeof x);
        found |= (x & exponent) == exponent;
    }
    return found;
}

static int any_32(const uint8_t *src, uint64_t n, uint32_t exponent)
{
    uint32_t x;
    int found = 0;
    for (uint64_t i = 0; i < n; i++) {
        memcpy(&x, src + i * sizeof x, sizeof x);
        found |= (x & exponent) == exponent;
    }
    return found;
}

static weft_status none(uint32_t bits, uint32_t fraction, uint64_t at, uint64_t k, int is_vector, weft_error *err)
{
    const char *what = bits & fraction ? "NaN" : "infinity";
    const unsigned long long row = at / k, column = at % k;
    if (is_vector)
        return weft_fail(err, WEFT_ARGUMENT, "column %llu is %s; repair or re-export the weights", column, what);
    return weft_fail(err, WEFT_ARGUMENT, "row %llu, column %llu: %s is no weight; repair or re-export the weights", row,
                     column, what);
}

weft_status weft__quant_check_finite(uint32_t dtype, const void *src, uint64_t first, uint64_t n, uint64_t k,
                                     int is_vector, weft_error *err)
{
    const uint32_t exponent = dtype == WEFT_F32    ? 0x7f800000
                              : dtype == WEFT_BF16 ? 0x7f80
                              : dtype == WEFT_F16  ? 0x7c00
                                                   : 0;
    const uint32_t fraction = dtype == WEFT_F32 ? 0x7fffff : dtype == WEFT_BF16 ? 0x7f : 0x3ff;
    const size_t bytes = dtype == WEFT_F32 ? 4 : 2;
    for (uint64_t i = 0, m; exponent && i < n; i += m) {
        const uint8_t *at = (const uint8_t *)src + i * bytes;
        m = n - i < BLOCK ? n - i : BLOCK;
        if (!(bytes == 4 ? any_32(at, m, exponent) : any_16(at, m, (uint16_t)exponent))) continue;
        for (uint64_t j = 0; j < m; j++) {
            uint32_t bits = 0;
            memcpy(&bits, at + j * bytes, bytes); /* files and machine are little-endian */
            if ((bits & exponent) == exponent) return none(bits, fraction, first + i + j, k, is_vector, err);
        }
    }
    return WEFT_OK;
}
