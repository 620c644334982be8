// SPDX-License-Identifier: Apache-2.0
/* dtype.c: element types by id and by name. */
#include <strings.h>

#include "quant/quant.h"

weft_dtype_info weft_dtype_describe(uint32_t dtype)
{
    switch (dtype) {
#define DESCRIBE(name, value, block, bytes, text)                                                                      \
    case value: return (weft_dtype_info){text, block, bytes};
        WEFT_DTYPE_LIST(DESCRIBE)
#undef DESCRIBE
    default: return (weft_dtype_info){NULL, 0, 0};
    }
}

int weft_dtype_from_name(const char *text)
{
#define COMPARE(name, value, block, bytes, spelled)                                                                    \
    if (!strcasecmp(text, spelled)) return value;
    WEFT_DTYPE_LIST(COMPARE)
#undef COMPARE
    return -1;
}

uint64_t weft__quant_row_bytes(uint32_t dtype, int64_t n)
{
    weft_dtype_info info = weft_dtype_describe(dtype);
    uint64_t bytes;
    if (!info.name || n < 0 || n % info.block_elems) return 0;
    return __builtin_mul_overflow((uint64_t)n / info.block_elems, info.block_bytes, &bytes) ? 0 : bytes;
}
