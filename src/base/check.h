// SPDX-License-Identifier: Apache-2.0
/* check.h: arithmetic on numbers that came from outside. Each returns 1 and stores the result, or 0 when it would
 * overflow. */
#ifndef WEFT_BASE_CHECK_H
#define WEFT_BASE_CHECK_H

#include <stdint.h>

static inline int weft__checked_add(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

static inline int weft__checked_mul(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

/* Rounds up to a multiple of align, a power of two. */
static inline int weft__checked_align(uint64_t a, uint64_t align, uint64_t *out)
{
    uint64_t sum;
    if (!weft__checked_add(a, align - 1, &sum)) return 0;
    *out = sum & ~(align - 1);
    return 1;
}

#endif
