// SPDX-License-Identifier: Apache-2.0
/* decode.c: decoders by type. */
#include "quant/families.h"

weft__quant_decode_fn weft__quant_decoder(uint32_t dtype)
{
    switch (dtype) {
    case WEFT_F32: return weft__decode_f32;
    case WEFT_F16: return weft__decode_f16;
    case WEFT_BF16: return weft__decode_bf16;
    case WEFT_Q4_0: return weft__decode_q4_0;
    case WEFT_Q4_1: return weft__decode_q4_1;
    case WEFT_Q5_0: return weft__decode_q5_0;
    case WEFT_Q5_1: return weft__decode_q5_1;
    case WEFT_Q8_0: return weft__decode_q8_0;
    case WEFT_Q2_K: return weft__decode_q2_k;
    case WEFT_Q3_K: return weft__decode_q3_k;
    case WEFT_Q4_K: return weft__decode_q4_k;
    case WEFT_Q5_K: return weft__decode_q5_k;
    case WEFT_Q6_K: return weft__decode_q6_k;
    case WEFT_IQ4_NL: return weft__decode_iq4_nl;
    case WEFT_IQ4_XS: return weft__decode_iq4_xs;
    default: return NULL;
    }
}

int weft__quant_decode_row(uint32_t dtype, const void *src, float *dst, int64_t n)
{
    weft__quant_decode_fn decode = weft__quant_decoder(dtype);
    if (!decode) return 0;
    decode(src, dst, n);
    return 1;
}
