// SPDX-License-Identifier: Apache-2.0
/* code.c: keys and values as whole numbers, and attention over them, readable (kernels.h): the oracle of the other
 * tiers. Parts and codes are theirs, bit for bit; sums of floats are taken in double. Reentrant; no state. */
#include "kernels/list.h"

#include <math.h>
#include <string.h>

#include "kernels/ref/softmax.h"

enum { BLOCK = 16 }; /* slots of a block of keys */

void weft__kv_rotate_ref(const float *x, int head_dim, float *y)
{
    const int block = head_dim & -head_dim; /* the largest power of two that divides it */
    const float factor = 1.0f / sqrtf((float)block);
    memmove(y, x, (size_t)head_dim * sizeof *y);
    for (int h = 1; h < block; h *= 2) {
        for (int i = 0; i < head_dim; i++) {
            if (i & h) continue;
            const float a = y[i], b = y[i + h];
            y[i] = a + b;
            y[i + h] = a - b;
        }
    }
    for (int i = 0; i < head_dim; i++) y[i] *= factor;
}

/* The codes of a row, rotated; returns the scale. */
static float code_row(const float *x, int n, int8_t *codes)
{
    float turned[WEFT_KV_CODED_MAX], most = 0;
    weft__kv_rotate_ref(x, n, turned);
    memset(codes, 0, (size_t)n);
    for (int i = 0; i < n; i++) {
        if (!isfinite(turned[i])) return NAN;
        if (fabsf(turned[i]) > most) most = fabsf(turned[i]);
    }
    if (most < WEFT__ATTN_CODED_LEAST) return 0;
    const float factor = 127 / most;
    for (int i = 0; i < n; i++) codes[i] = (int8_t)nearbyintf(turned[i] * factor);
    return most / 127;
}

static int groups_of(int head_dim)
{
    return (head_dim + 3) / 4;
}

void weft__kv_code_k_ref(const float *k, int head_dim, int slot, int page_tokens, uint32_t format, void *part)
{
    int8_t codes[WEFT_KV_CODED_MAX] = {0};
    uint8_t(*bytes)[BLOCK][4] = part; /* [blocks * groups] */
    float *scales = (float *)((uint8_t *)part + (int64_t)page_tokens * groups_of(head_dim) * 4);
    (void)format;
    scales[slot] = code_row(k, head_dim, codes);
    for (int d = 0; d < groups_of(head_dim) * 4; d++)
        bytes[slot / BLOCK * groups_of(head_dim) + d / 4][slot % BLOCK][d % 4] = (uint8_t)(codes[d] + 128);
}

void weft__kv_code_v_ref(const float *v, int head_dim, int slot, int page_tokens, uint32_t format, void *part)
{
    float *scales = (float *)((uint8_t *)part + (int64_t)page_tokens * head_dim);
    (void)format;
    scales[slot] = code_row(v, head_dim, (int8_t *)part + (int64_t)slot * head_dim);
}

/* ---- attention ---- */

static const uint8_t *part_of(const weft__attn *a, int t, uint64_t offset)
{
    return a->data + (uint64_t)a->pages[t / a->page_tokens] * a->page_bytes + offset;
}

static double key_product(const weft__attn *a, const int8_t *q, int t)
{
    const int groups = groups_of(a->head_dim_k), slot = t % a->page_tokens;
    const uint8_t *part = part_of(a, t, a->k_offset);
    const float *scales = (const float *)(part + (int64_t)a->page_tokens * groups * 4);
    const uint8_t(*bytes)[BLOCK][4] = (const void *)part;
    int64_t sum = 0;
    for (int d = 0; d < a->head_dim_k; d++)
        sum += (int64_t)q[d] * (bytes[slot / BLOCK * groups + d / 4][slot % BLOCK][d % 4] - 128);
    return (double)sum * scales[slot];
}

static double value_of(const weft__attn *a, int t, int e)
{
    const uint8_t *part = part_of(a, t, a->v_offset);
    const int slot = t % a->page_tokens;
    const float *scales = (const float *)(part + (int64_t)a->page_tokens * a->head_dim_v);
    return (double)((const int8_t *)part)[(int64_t)slot * a->head_dim_v + e] * scales[slot];
}

/* Positions [from, to) of one query, as in attn.c. */
static void one_query(const weft__attn *a, const float *query, int from, int to, float *s, float *state)
{
    int8_t q[WEFT_KV_CODED_MAX];
    const double scale = code_row(query, a->head_dim_k, q);
    for (int t = from; t < to; t++) s[t - from] = ref_score(a, key_product(a, q, t) * scale);
    ref_softmax(s, to - from, state);
    for (int e = 0; e < a->head_dim_v; e++) {
        double acc = 0;
        for (int t = from; t < to; t++) acc += (double)s[t - from] * value_of(a, t, e);
        state[2 + e] = (float)acc;
    }
}

void weft__attn_coded_ref(const weft__attn *a, uint32_t format_k, uint32_t format_v, int split, float *scratch,
                          float *state)
{
    const int base = split * WEFT__ATTN_SPLIT_TOKENS, limit = base + WEFT__ATTN_SPLIT_TOKENS;
    (void)format_k, (void)format_v;
    for (int i = 0; i < a->n_q; i++, state += 2 + a->head_dim_v) {
        int from = a->begin[i] > base ? a->begin[i] : base, to = a->end[i] < limit ? a->end[i] : limit;
        memset(state, 0, (size_t)(2 + a->head_dim_v) * sizeof *state);
        state[0] = -INFINITY;
        if (from < to) one_query(a, weft__attn_query(a, i), from, to, scratch, state);
    }
}
