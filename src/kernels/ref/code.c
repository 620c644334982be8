// SPDX-License-Identifier: Apache-2.0
/* code.c: keys and values in coded formats, readable (kernels.h): the oracle of the other tiers, whose bits are the
 * same. Reentrant; no state. */
#include "kernels/ref/code.h"

#include <math.h>
#include <string.h>

#include "kernels/list.h"
#include "quant/blocks.h"
#include "quant/half.h"

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

static int all_finite(const float *x, int n)
{
    for (int i = 0; i < n; i++)
        if (!isfinite(x[i])) return 0;
    return 1;
}

static float largest_of(const float *x, int n)
{
    float most = 0;
    for (int i = 0; i < n; i++) most = fmaxf(most, fabsf(x[i]));
    return most;
}

float weft__code_row_ref(const float *turned, int n, int most, int16_t *codes)
{
    const float largest = largest_of(turned, n);
    memset(codes, 0, (size_t)n * sizeof *codes);
    if (!all_finite(turned, n)) return NAN;
    if (largest < WEFT__ATTN_CODED_LEAST) return 0;
    const float factor = (float)most / largest;
    for (int i = 0; i < n; i++) codes[i] = (int16_t)nearbyintf(turned[i] * factor);
    return largest / (float)most;
}

/* ---- q8 ---- */

static void put_q8(const float *turned, int dim, int slot, int page_tokens, int values, uint8_t *part)
{
    int16_t codes[WEFT_KV_CODED_MAX + 3] = {0};
    const float scale = weft__code_row_ref(turned, dim, 127, codes);
    for (int d = 0; d < code_token_bytes(WEFT_KV_Q8, values, dim); d++)
        part[code_at(WEFT_KV_Q8, values, dim, slot, d)] = (uint8_t)(values ? codes[d] : codes[d] + 128);
    memcpy(part + code_scale_at(WEFT_KV_Q8, values, dim, page_tokens, slot, 0), &scale, sizeof scale);
}

/* ---- q4 ---- */

/* Which of the sixteen values is the nearest. */
static int nearest(float x)
{
    int code = 0;
    while (code < 15 && x > ((float)weft__block_iq4_values[code] + (float)weft__block_iq4_values[code + 1]) / 2) code++;
    return code;
}

/* The sum of 32, in halves. */
static float sum_of(float *x)
{
    for (int half = CODE_BLOCK / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) x[i] += x[i + half];
    return x[0];
}

/* What a block of n <= 32 is multiplied by where its largest magnitude is put at `place` of the values: the best factor
 * for the codes that it then gets, in units of `largest`. *gain: how much of the block they hold with it. */
static float scale_at(const float *x, int n, float largest, float place, float *gain)
{
    float products[CODE_BLOCK] = {0}, squares[CODE_BLOCK] = {0};
    for (int i = 0; i < n; i++) {
        const float y = x[i] * (place / largest), value = weft__block_iq4_values[nearest(y)];
        products[i] = y * value;
        squares[i] = value * value;
    }
    const float product = sum_of(products) * (1 / place), square = sum_of(squares), scale = product / square;
    *gain = product * scale;
    return scale;
}

/* The codes of a block; returns its scale. */
static uint16_t code_block(const float *x, int n, uint8_t *codes)
{
    static const float places[] = {WEFT__ATTN_Q4_PLACES};
    const float largest = largest_of(x, n);
    float best = 0, scale = 0;
    if (largest < WEFT__ATTN_CODED_LEAST) return 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        float gain, s = scale_at(x, n, largest, places[i], &gain);
        if (gain > best) {
            best = gain;
            scale = s;
        }
    }
    const uint16_t bits = weft__bf16_from_f32(scale * largest);
    for (int i = 0; i < n; i++) codes[i] = (uint8_t)nearest(x[i] * (1 / weft__bf16_to_f32(bits)));
    return bits;
}

static void put_q4(const float *turned, int dim, int slot, int page_tokens, int values, uint8_t *part)
{
    enum { NO_NUMBER = 0x7fc0 };
    uint8_t codes[WEFT_KV_CODED_MAX + CODE_BLOCK] = {0};
    const int finite = all_finite(turned, dim), n_codes = (int)code_token_bytes(WEFT_KV_Q4, values, dim) * 2;
    for (int d = 0; d < dim; d += CODE_BLOCK) {
        uint16_t scale = NO_NUMBER;
        if (finite) scale = code_block(turned + d, dim - d < CODE_BLOCK ? dim - d : CODE_BLOCK, codes + d);
        memcpy(part + code_scale_at(WEFT_KV_Q4, values, dim, page_tokens, slot, d), &scale, sizeof scale);
    }
    for (int d = 0; d < n_codes; d++) {
        uint8_t *at = part + code_at(WEFT_KV_Q4, values, dim, slot, d);
        *at = (uint8_t)((*at & 0xF0 >> code_shift(values, d)) | codes[d] << code_shift(values, d));
    }
}

/* ---- floats ---- */

static void put_floats(const float *x, int dim, int slot, int values, uint32_t format, uint8_t *part)
{
    const int finite = all_finite(x, dim);
    for (int d = 0; d < dim; d++) {
        uint8_t *at = part + code_at(format, values, dim, slot, d);
        if (format == WEFT_KV_F8) {
            *at = finite ? weft__f8_from_f32(x[d]) : WEFT__ATTN_F8_NAN;
        } else {
            const uint16_t bits = weft__bf16_from_f32(x[d]);
            memcpy(at, &bits, sizeof bits);
        }
    }
}

static void put(const float *x, int dim, int slot, int page_tokens, int values, uint32_t format, uint8_t *part)
{
    float turned[WEFT_KV_CODED_MAX];
    if (weft_kv_is_rotated(format)) {
        weft__kv_rotate_ref(x, dim, turned);
        x = turned;
    }
    switch (format) {
    case WEFT_KV_Q8: put_q8(x, dim, slot, page_tokens, values, part); break;
    case WEFT_KV_Q4: put_q4(x, dim, slot, page_tokens, values, part); break;
    default: put_floats(x, dim, slot, values, format, part);
    }
}

void weft__kv_code_k_ref(const float *k, int head_dim, int slot, int page_tokens, uint32_t format, void *part)
{
    put(k, head_dim, slot, page_tokens, 0, format, part);
}

void weft__kv_code_v_ref(const float *v, int head_dim, int slot, int page_tokens, uint32_t format, void *part)
{
    put(v, head_dim, slot, page_tokens, 1, format, part);
}
