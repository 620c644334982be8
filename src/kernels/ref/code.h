// SPDX-License-Identifier: Apache-2.0
/* code.h: a page's part in a coded format, as readable files of this folder see it: where bytes stand, and what they
 * say (kernels.h: kv_code_k has the layout). Reentrant. */
#ifndef WEFT_KERNELS_REF_CODE_H
#define WEFT_KERNELS_REF_CODE_H

#include <stdint.h>

#include "kernels/kernels.h"

enum { CODE_SLOTS = 16 /* of a block of keys */, CODE_BLOCK = WEFT__ATTN_Q4_BLOCK };

/* Bytes of one token's elements in a part; keys or values. */
static inline int64_t code_token_bytes(uint32_t format, int values, int dim)
{
    switch (format) {
    case WEFT_KV_Q4: return values ? (dim + 15) / 16 * 8 : (dim + 7) / 8 * 4;
    case WEFT_KV_Q8: return values ? dim : (dim + 3) / 4 * 4;
    default: return format == WEFT_KV_F8 ? dim : 2 * dim;
    }
}

/* Where element d of slot `slot` begins. */
static inline int64_t code_at(uint32_t format, int values, int dim, int slot, int d)
{
    const int64_t bytes = code_token_bytes(format, values, dim);
    const int size = format == WEFT_BF16 ? 2 : 1, is_q4 = format == WEFT_KV_Q4;
    if (values) return slot * bytes + (is_q4 ? d / 16 * 8 + d % 8 : size * d);
    const int in = weft_kv_is_rotated(format) ? 4 : size; /* bytes that a slot has side by side */
    const int64_t first = slot / CODE_SLOTS * CODE_SLOTS * bytes + slot % CODE_SLOTS * in;
    if (is_q4) return first + d / 8 * 4 * CODE_SLOTS + d % 4;
    return first + size * d / in * in * CODE_SLOTS + size * d % in;
}

/* Of WEFT_KV_Q4: by how much element d is shifted in its byte. */
static inline int code_shift(int values, int d)
{
    return values ? d / 8 % 2 * 4 : d / 4 % 2 * 4;
}

/* Where the scale of a slot, and in it of element d, stands. */
static inline int64_t code_scale_at(uint32_t format, int values, int dim, int page_tokens, int slot, int d)
{
    const int64_t codes = page_tokens * code_token_bytes(format, values, dim);
    return format == WEFT_KV_Q4 ? codes + ((int64_t)(d / CODE_BLOCK) * page_tokens + slot) * 2 : codes + slot * 4;
}

/* The codes of n rotated elements as whole numbers of at most `most`; returns the scale (kernels.h). */
float weft__code_row_ref(const float *turned, int n, int most, int16_t *codes);

#endif
