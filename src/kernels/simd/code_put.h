// SPDX-License-Identifier: Apache-2.0
/* code_put.h: kv_rotate, kv_code_k and kv_code_v of the tier that includes it (kernels.h). */
#include "kernels/simd/code_q4.h"

enum { BLOCK = 16 }; /* slots of a block of keys */

void TIER(weft__kv_rotate)(const float *x, int head_dim, float *y)
{
    turn(x, head_dim, y);
}

/* ---- q8 ---- */

static void put_k_q8(const float *turned, int dim, int slot, int page_tokens, uint8_t *part)
{
    int8_t codes[WEFT_KV_CODED_MAX] = {0};
    const int dim4 = (dim + 3) / 4 * 4;
    uint8_t *at = part + (int64_t)(slot / BLOCK) * BLOCK * dim4 + slot % BLOCK * 4;
    const float scale = coded_row(turned, dim, 127, codes);
    for (int d = 0; d < dim4; d += 4, at += 4 * BLOCK) {
        uint32_t four;
        memcpy(&four, codes + d, sizeof four);
        four ^= 0x80808080u; /* + 128 */
        memcpy(at, &four, sizeof four);
    }
    memcpy(part + (int64_t)page_tokens * dim4 + (int64_t)slot * 4, &scale, sizeof scale);
}

static void put_v_q8(const float *turned, int dim, int slot, int page_tokens, uint8_t *part)
{
    const float scale = coded_row(turned, dim, 127, (int8_t *)part + (int64_t)slot * dim);
    memcpy(part + (int64_t)page_tokens * dim + (int64_t)slot * 4, &scale, sizeof scale);
}

/* ---- q4 ---- */

/* The codes of a row, a byte each, zeros behind; scales: [blocks], page_tokens apart. */
static void codes_q4(const float *turned, int dim, int page_tokens, uint8_t *codes, uint8_t *scales)
{
    enum { NO_NUMBER = 0x7fc0 };
    int finite;
    (void)row_most(turned, dim, &finite);
    for (int d = 0; d < dim; d += Q4_BLOCK, scales += 2 * (int64_t)page_tokens) {
        uint16_t scale = NO_NUMBER;
        if (finite) scale = q4_block(turned + d, dim - d < Q4_BLOCK ? dim - d : Q4_BLOCK, codes + d);
        else memset(codes + d, 0, Q4_BLOCK);
        memcpy(scales, &scale, sizeof scale);
    }
}

static void put_k_q4(const float *turned, int dim, int slot, int page_tokens, uint8_t *part)
{
    uint8_t codes[WEFT_KV_CODED_MAX];
    const int bytes = (dim + 7) / 8 * 4;
    uint8_t *at = part + (int64_t)(slot / BLOCK) * BLOCK * bytes + slot % BLOCK * 4;
    codes_q4(turned, dim, page_tokens, codes, part + (int64_t)page_tokens * bytes + (int64_t)slot * 2);
    for (int d = 0; d < dim; d += 8, at += 4 * BLOCK) {
        uint32_t low, high;
        memcpy(&low, codes + d, sizeof low);
        memcpy(&high, codes + d + 4, sizeof high);
        low |= high << 4;
        memcpy(at, &low, sizeof low);
    }
}

static void put_v_q4(const float *turned, int dim, int slot, int page_tokens, uint8_t *part)
{
    uint8_t codes[WEFT_KV_CODED_MAX];
    const int bytes = (dim + 15) / 16 * 8;
    uint8_t *at = part + (int64_t)slot * bytes;
    codes_q4(turned, dim, page_tokens, codes, part + (int64_t)page_tokens * bytes + (int64_t)slot * 2);
    for (int d = 0; d < dim; d += 16, at += 8) {
        uint64_t low, high;
        memcpy(&low, codes + d, sizeof low);
        memcpy(&high, codes + d + 8, sizeof high);
        low |= high << 4;
        memcpy(at, &low, sizeof low);
    }
}

/* ---- floats ---- */

static void put_bf16(const float *x, int dim, int64_t apart, uint8_t *at)
{
    for (int d = 0; d < dim; d++, at += apart) {
        const uint16_t bits = weft__bf16_from_f32(x[d]);
        memcpy(at, &bits, sizeof bits);
    }
}

static void put_f8(const float *x, int dim, int64_t apart, uint8_t *at)
{
    int finite;
    uint8_t codes[WEFT_KV_CODED_MAX];
    (void)row_most(x, dim, &finite);
    for (int d = 0; d < dim; d++) codes[d] = weft__f8_from_f32(x[d]);
    for (int d = 0; d < dim; d++, at += apart) *at = finite ? codes[d] : WEFT__ATTN_F8_NAN;
}

/* ---- any ---- */

/* The row as the format has it: rotated, or as it is. */
static const float *turned_if(uint32_t format, const float *x, int n, float *turned)
{
    if (!weft_kv_is_rotated(format)) return x;
    turn(x, n, turned);
    return turned;
}

void TIER(weft__kv_code_k)(const float *k, int head_dim, int slot, int page_tokens, uint32_t format, void *part)
{
    float turned[WEFT_KV_CODED_MAX];
    const int64_t block = (int64_t)(slot / BLOCK) * BLOCK * head_dim;
    k = turned_if(format, k, head_dim, turned);
    switch (format) {
    case WEFT_KV_Q8: put_k_q8(k, head_dim, slot, page_tokens, part); break;
    case WEFT_KV_Q4: put_k_q4(k, head_dim, slot, page_tokens, part); break;
    case WEFT_KV_F8: put_f8(k, head_dim, BLOCK, (uint8_t *)part + block + slot % BLOCK); break;
    default: put_bf16(k, head_dim, 2 * BLOCK, (uint8_t *)part + 2 * (block + slot % BLOCK));
    }
}

void TIER(weft__kv_code_v)(const float *v, int head_dim, int slot, int page_tokens, uint32_t format, void *part)
{
    float turned[WEFT_KV_CODED_MAX];
    const int64_t row = (int64_t)slot * head_dim;
    v = turned_if(format, v, head_dim, turned);
    switch (format) {
    case WEFT_KV_Q8: put_v_q8(v, head_dim, slot, page_tokens, part); break;
    case WEFT_KV_Q4: put_v_q4(v, head_dim, slot, page_tokens, part); break;
    case WEFT_KV_F8: put_f8(v, head_dim, 1, (uint8_t *)part + row); break;
    default: put_bf16(v, head_dim, 2, (uint8_t *)part + 2 * row);
    }
}
