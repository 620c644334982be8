// SPDX-License-Identifier: Apache-2.0
/* iq4_encode.c: encoders of the formats whose four bits index sixteen uneven values: IQ4_NL, IQ4_XS. */
#include <string.h>

#include "quant/encoders.h"
#include "quant/small.h"

static const weft__fit_levels IQ4 = {
    .lo = -127, .hi = 113, .table = weft__block_iq4_values, .t_first = 80.f, .t_last = 145.f, .n_t = 10};

/* 32 codes to 16 bytes: the first half of them in the low nibbles. */
static void pack_nibbles(const int8_t *q, uint8_t *qs)
{
    for (int j = 0; j < 16; j++) qs[j] = (uint8_t)(q[j] | q[j + 16] << 4);
}

void weft__encode_iq4_nl(const float *x, const float *w, void *dst, int64_t n)
{
    weft__block_iq4_nl *b = dst;
    weft__quant_small_fit f;
    for (int64_t i = 0; i < n; i += WEFT__QUANT_QK, b++) {
        weft__quant_small_encode(&IQ4, 0, x + i, w + i, &f);
        b->d = f.d;
        pack_nibbles(f.q, b->qs);
    }
}

void weft__encode_iq4_xs(const float *x, const float *w, void *dst, int64_t n)
{
    const weft__quant_super form = {.levels = IQ4, .sub = 32, .scale_lo = -32, .scale_hi = 31};
    weft__block_iq4_xs *b = dst;
    weft__quant_super_fit f;
    for (int64_t i = 0; i < n; i += WEFT__QUANT_QK_K, b++) {
        weft__quant_super_encode(&form, x + i, w + i, &f);
        memset(b, 0, sizeof *b);
        b->d = f.d;
        for (int j = 0; j < 8; j++) {
            int scale = f.scale[j] + 32;
            b->scales_l[j / 2] |= (uint8_t)((scale & 15) << 4 * (j % 2));
            b->scales_h |= (uint16_t)(scale >> 4 << 2 * j);
            pack_nibbles(f.q + 32 * j, b->qs + 16 * j);
        }
    }
}
