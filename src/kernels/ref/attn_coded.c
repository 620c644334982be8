// SPDX-License-Identifier: Apache-2.0
/* attn_coded.c: attention over pages whose keys or values are coded, or of different formats, readable (kernels.h).
 * Sums of floats are taken in double. Reentrant; no state. */
#include <math.h>
#include <string.h>

#include "kernels/list.h"
#include "kernels/ref/code.h"
#include "kernels/ref/softmax.h"
#include "quant/blocks.h"
#include "quant/half.h"

static const uint8_t *part_of(const weft__attn *a, int t, uint64_t offset)
{
    return a->data + (uint64_t)a->pages[t / a->page_tokens] * a->page_bytes + offset;
}

/* An element of a format of floats; F16 and F32 stand as attn.c puts them. */
static float float_at(uint32_t format, int values, int dim, int slot, int d, const uint8_t *part)
{
    const int64_t plain = (int64_t)slot * dim + d;
    uint16_t bits;
    switch (format) {
    case WEFT_F32: return ((const float *)part)[plain];
    case WEFT_F16: return weft__f16_to_f32(((const uint16_t *)part)[plain]);
    case WEFT_BF16: memcpy(&bits, part + code_at(format, values, dim, slot, d), 2); return weft__bf16_to_f32(bits);
    default: return weft__f8_to_f32(part[code_at(format, values, dim, slot, d)]);
    }
}

/* The whole number that an element's code stands for. */
static int whole_at(uint32_t format, int values, int dim, int slot, int d, const uint8_t *part)
{
    const uint8_t byte = part[code_at(format, values, dim, slot, d)];
    if (format == WEFT_KV_Q4) return weft__block_iq4_values[byte >> code_shift(values, d) & 15];
    return values ? (int8_t)byte : byte - 128;
}

static float scale_of(uint32_t format, int values, int dim, int page_tokens, int slot, int d, const uint8_t *part)
{
    const uint8_t *at = part + code_scale_at(format, values, dim, page_tokens, slot, d);
    float scale;
    uint16_t bits;
    memcpy(&scale, at, format == WEFT_KV_Q8 ? sizeof scale : 0);
    memcpy(&bits, at, sizeof bits);
    return format == WEFT_KV_Q8 ? scale : weft__bf16_to_f32(bits);
}

/* A query as its keys' format wants it: as it is, or rotated and coded. */
typedef struct query {
    const float *x;
    int16_t codes[WEFT_KV_CODED_MAX];
    double scale;
} query;

static double key_product(const weft__attn *a, uint32_t format, const query *q, int t)
{
    const uint8_t *part = part_of(a, t, a->k_offset);
    const int dim = a->head_dim_k, slot = t % a->page_tokens, block = format == WEFT_KV_Q4 ? CODE_BLOCK : dim;
    double sum = 0;
    if (!weft_kv_is_rotated(format)) {
        for (int d = 0; d < dim; d++) sum += (double)q->x[d] * float_at(format, 0, dim, slot, d, part);
        return sum;
    }
    for (int from = 0; from < dim; from += block) {
        int64_t whole = 0;
        for (int d = from; d < dim && d < from + block; d++)
            whole += (int64_t)q->codes[d] * whole_at(format, 0, dim, slot, d, part);
        sum += (double)whole * scale_of(format, 0, dim, a->page_tokens, slot, from, part);
    }
    return sum * q->scale;
}

enum { PIECE = 64 }; /* values of a position that are added at a time */

/* acc[i] += weight * value e + i of position t, n <= PIECE of them. */
static void add_values(const weft__attn *a, uint32_t format, int t, int e, int n, double weight, double acc[PIECE])
{
    const uint8_t *part = part_of(a, t, a->v_offset);
    const int dim = a->head_dim_v, slot = t % a->page_tokens;
    if (!weft_kv_is_rotated(format)) {
        for (int i = 0; i < n; i++) acc[i] += weight * float_at(format, 1, dim, slot, e + i, part);
        return;
    }
    const int block = format == WEFT_KV_Q4 ? CODE_BLOCK : PIECE; /* elements that share a scale */
    for (int from = 0; from < n; from += block) {
        const double scale = scale_of(format, 1, dim, a->page_tokens, slot, e + from, part);
        for (int i = from; i < n && i < from + block; i++)
            acc[i] += weight * ((double)whole_at(format, 1, dim, slot, e + i, part) * scale);
    }
}

/* Positions [from, to) of one query, as in attn.c. */
static void one_query(const weft__attn *a, const uint32_t formats[2], const float *x, int from, int to, float *s,
                      float *state)
{
    query q = {.x = x};
    if (weft_kv_is_rotated(formats[0])) {
        float turned[WEFT_KV_CODED_MAX];
        weft__kv_rotate_ref(x, a->head_dim_k, turned);
        q.scale = weft__code_row_ref(turned, a->head_dim_k, WEFT__ATTN_QUERY_MOST, q.codes);
    }
    for (int t = from; t < to; t++) s[t - from] = ref_score(a, key_product(a, formats[0], &q, t));
    ref_softmax(s, to - from, state);
    for (int e = 0; e < a->head_dim_v; e += PIECE) {
        const int n = a->head_dim_v - e < PIECE ? a->head_dim_v - e : PIECE;
        double acc[PIECE] = {0};
        for (int t = from; t < to; t++) add_values(a, formats[1], t, e, n, (double)s[t - from], acc);
        for (int i = 0; i < n; i++) state[2 + e + i] = (float)acc[i];
    }
}

void weft__attn_coded_ref(const weft__attn *a, uint32_t format_k, uint32_t format_v, int split, float *scratch,
                          float *state)
{
    const int base = split * WEFT__ATTN_SPLIT_TOKENS, limit = base + WEFT__ATTN_SPLIT_TOKENS;
    const uint32_t formats[2] = {format_k, format_v};
    for (int i = 0; i < a->n_q; i++, state += 2 + a->head_dim_v) {
        int from = a->begin[i] > base ? a->begin[i] : base, to = a->end[i] < limit ? a->end[i] : limit;
        memset(state, 0, (size_t)(2 + a->head_dim_v) * sizeof *state);
        state[0] = -INFINITY;
        if (from < to) one_query(a, formats, weft__attn_query(a, i), from, to, scratch, state);
    }
}
