// SPDX-License-Identifier: Apache-2.0
/* code_put.h: kv_rotate, kv_code_k and kv_code_v of the tier that includes it (kernels.h). */
#include "kernels/simd/code.h"

enum { BLOCK = 16 }; /* slots of a block of keys */

void TIER(weft__kv_rotate)(const float *x, int head_dim, float *y)
{
    turn(x, head_dim, y);
}

void TIER(weft__kv_code_k)(const float *k, int head_dim, int slot, int page_tokens, uint32_t format, void *part)
{
    float turned[WEFT_KV_CODED_MAX];
    int8_t codes[WEFT_KV_CODED_MAX] = {0};
    const int dim4 = (head_dim + 3) / 4 * 4;
    uint8_t *at = (uint8_t *)part + (int64_t)(slot / BLOCK) * BLOCK * dim4 + slot % BLOCK * 4;
    (void)format;
    turn(k, head_dim, turned);
    const float scale = coded_row(turned, head_dim, codes);
    for (int d = 0; d < dim4; d += 4, at += 4 * BLOCK) {
        uint32_t four;
        memcpy(&four, codes + d, sizeof four);
        four ^= 0x80808080u; /* + 128 */
        memcpy(at, &four, sizeof four);
    }
    memcpy((uint8_t *)part + (int64_t)page_tokens * dim4 + (int64_t)slot * 4, &scale, sizeof scale);
}

void TIER(weft__kv_code_v)(const float *v, int head_dim, int slot, int page_tokens, uint32_t format, void *part)
{
    float turned[WEFT_KV_CODED_MAX];
    (void)format;
    turn(v, head_dim, turned);
    const float scale = coded_row(turned, head_dim, (int8_t *)part + (int64_t)slot * head_dim);
    memcpy((uint8_t *)part + (int64_t)page_tokens * head_dim + (int64_t)slot * 4, &scale, sizeof scale);
}
