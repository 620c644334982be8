// SPDX-License-Identifier: Apache-2.0
/* dtype.c: element types by id and by name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
    uint32_t format;
} kv_formats[] = {{"f16", WEFT_F16},  {"f32", WEFT_F32},  {"bf16", WEFT_BF16},
                  {"f8", WEFT_KV_F8}, {"q8", WEFT_KV_Q8}, {"q4", WEFT_KV_Q4}};

enum { N_KV_FORMATS = sizeof kv_formats / sizeof *kv_formats, KV_EDGES = 2 };

/* Of the first n characters; -1: none. */
static int kv_format_of(const char *text, size_t n)
{
    for (int i = 0; i < N_KV_FORMATS; i++)
        if (strlen(kv_formats[i].name) == n && !strncasecmp(text, kv_formats[i].name, n))
            return (int)kv_formats[i].format;
    return -1;
}

static const char *kv_format_name(uint32_t format)
{
    for (int i = 0; i < N_KV_FORMATS; i++)
        if (kv_formats[i].format == format) return kv_formats[i].name;
    return NULL;
}

/* "N" or "N/M". */
static int kv_edges_of(const char *text, int edges[2])
{
    char *end;
    for (int i = 0; i < 2; i++) {
        if (*text < '0' || *text > '9') return 0;
        const long n = strtol(text, &end, 10);
        if (n > 255) return 0;
        edges[i] = (int)n;
        if (i == 0 && !*end) edges[1] = edges[0];
        if (!*end || i == 1) break;
        if (*end != '/') return 0;
        text = end + 1;
    }
    return !*end;
}

weft_status weft_kv_type_parse(const char *text, uint32_t *out, weft_error *err)
{
    int k = -1, v = -1, edges[2] = {-1, -1}, good = 1;
    for (const char *at = text, *next; good && at; at = next) {
        const size_t n = strcspn(at, ",");
        next = at[n] ? at + n + 1 : NULL;
        if (!strncasecmp(at, "edges=", 6)) {
            good = !next && edges[0] < 0 && kv_edges_of(at + 6, edges);
        } else if (!strncasecmp(at, "k=", 2)) {
            good = k < 0 && (k = kv_format_of(at + 2, n - 2)) >= 0;
        } else if (!strncasecmp(at, "v=", 2)) {
            good = v < 0 && (v = kv_format_of(at + 2, n - 2)) >= 0;
        } else {
            good = k < 0 && v < 0 && (k = v = kv_format_of(at, n)) >= 0;
        }
    }
    if (!good || k < 0 || v < 0)
        return weft_fail(err, WEFT_ARGUMENT,
                         "keys and values as '%s'; f16, f32, bf16, f8, q8 and q4 are possible, and two of them as "
                         "k=q8,v=q4, with layers in f16 at both ends as q4,edges=2",
                         text);
    if (edges[0] < 0) edges[0] = edges[1] = k == WEFT_KV_Q4 || v == WEFT_KV_Q4 ? KV_EDGES : 0;
    if (k == WEFT_F16 && v == WEFT_F16) edges[0] = edges[1] = 0;
    *out = WEFT_KV_TYPE(k, v, edges[0], edges[1]);
    return WEFT_OK;
}

const char *weft_kv_type_name(uint32_t type, char out[WEFT_KV_NAME_MAX])
{
    const uint32_t of_values = type >> 8 & 255;
    const char *k = kv_format_name(type & 255), *v = of_values ? kv_format_name(of_values - 1) : k;
    const int first = (int)(type >> 16 & 255), last = (int)(type >> 24);
    if (!k || !v) {
        snprintf(out, WEFT_KV_NAME_MAX, "%u", type);
        return out;
    }
    const int has_q4 = (type & 255) == WEFT_KV_Q4 || of_values == WEFT_KV_Q4 + 1, usual = has_q4 ? KV_EDGES : 0;
    int n = k == v ? snprintf(out, WEFT_KV_NAME_MAX, "%s", k) : snprintf(out, WEFT_KV_NAME_MAX, "k=%s,v=%s", k, v);
    if (first == last && first != usual) snprintf(out + n, WEFT_KV_NAME_MAX - (size_t)n, ",edges=%d", first);
    if (first != last) snprintf(out + n, WEFT_KV_NAME_MAX - (size_t)n, ",edges=%d/%d", first, last);
    return out;
}

uint64_t weft__quant_row_bytes(uint32_t dtype, int64_t n)
{
    weft_dtype_info info = weft_dtype_describe(dtype);
    uint64_t bytes;
    if (!info.name || n < 0 || n % info.block_elems) return 0;
    return __builtin_mul_overflow((uint64_t)n / info.block_elems, info.block_bytes, &bytes) ? 0 : bytes;
}
