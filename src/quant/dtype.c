// SPDX-License-Identifier: Apache-2.0
/* dtype.c: element types by id and by name. */
#include <stdio.h>
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

/* ---- types of keys and values ---- */

static const struct {
    const char *name;
    uint32_t type;
} kv_types[] = {{"f16", WEFT_F16}, {"f32", WEFT_F32}, {"q8", WEFT_KV_Q8}};

weft_status weft_kv_type_parse(const char *text, uint32_t *out, weft_error *err)
{
    for (size_t i = 0; i < sizeof kv_types / sizeof *kv_types; i++) {
        if (strcasecmp(text, kv_types[i].name)) continue;
        *out = kv_types[i].type;
        return WEFT_OK;
    }
    return weft_fail(err, WEFT_ARGUMENT, "keys and values as '%s'; f16, f32 and q8 are possible", text);
}

const char *weft_kv_type_name(uint32_t type, char out[WEFT_KV_NAME_MAX])
{
    for (size_t i = 0; i < sizeof kv_types / sizeof *kv_types; i++) {
        if (type != kv_types[i].type) continue;
        snprintf(out, WEFT_KV_NAME_MAX, "%s", kv_types[i].name);
        return out;
    }
    snprintf(out, WEFT_KV_NAME_MAX, "%u", type);
    return out;
}

uint64_t weft__quant_row_bytes(uint32_t dtype, int64_t n)
{
    weft_dtype_info info = weft_dtype_describe(dtype);
    uint64_t bytes;
    if (!info.name || n < 0 || n % info.block_elems) return 0;
    return __builtin_mul_overflow((uint64_t)n / info.block_elems, info.block_bytes, &bytes) ? 0 : bytes;
}
