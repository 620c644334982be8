// SPDX-License-Identifier: Apache-2.0
/* attn_coded.c: attention over coded pages in NEON; the loops are in simd/attn_coded.h. */
#include "kernels/neon/vec.h"
#include "quant/blocks.h"

#define TIER(name) name##_neon
/* 32 registers, two for a vector: 4 x 2 sums, a key's four (in 4 bits eight, beside half of the sums), a query's
 * words. */
#define TILE_QUERIES 4
#define TILE_VECTORS 2
#define SOFTMAX_QUERIES 2
#define WIDE_VALUES 0

typedef struct vi {
    int32x4_t low, high;
} vi;

/* Bytes as words of 16 bits: channel c of 8 tokens. */
typedef struct coded_key {
    int16x8_t channel[4];
} coded_key;

static inline vi vi_set(int32_t x)
{
    return (vi){vdupq_n_s32(x), vdupq_n_s32(x)};
}

static inline vf vi_to_float(vi a)
{
    return (vf){vcvtq_f32_s32(a.low), vcvtq_f32_s32(a.high)};
}

/* Four bytes of each of 8 tokens. */
static inline coded_key coded_words(uint8x16_t first, uint8x16_t second)
{
    const uint16x8_t even = vreinterpretq_u16_u8(vuzp1q_u8(first, second)); /* channels 0 and 2 of each token */
    const uint16x8_t odd = vreinterpretq_u16_u8(vuzp2q_u8(first, second)), low = vdupq_n_u16(0x00FF);
    return (coded_key){{vreinterpretq_s16_u16(vandq_u16(even, low)), vreinterpretq_s16_u16(vandq_u16(odd, low)),
                        vreinterpretq_s16_u16(vshrq_n_u16(even, 8)), vreinterpretq_s16_u16(vshrq_n_u16(odd, 8))}};
}

static inline coded_key coded_load(const uint8_t *p)
{
    return coded_words(vld1q_u8(p), vld1q_u8(p + 16));
}

/* What codes of 4 bits stand for, + 128. */
static inline void coded_load_halves(const uint8_t *p, coded_key *low, coded_key *high)
{
    const uint8x16_t four = vdupq_n_u8(0x0F), first = vld1q_u8(p), second = vld1q_u8(p + 16);
    const uint8x16_t values = veorq_u8(vreinterpretq_u8_s8(vld1q_s8(weft__block_iq4_values)), vdupq_n_u8(0x80));
    *low = coded_words(vqtbl1q_u8(values, vandq_u8(first, four)), vqtbl1q_u8(values, vandq_u8(second, four)));
    *high = coded_words(vqtbl1q_u8(values, vshrq_n_u8(first, 4)), vqtbl1q_u8(values, vshrq_n_u8(second, 4)));
}

static inline vi coded_dot(vi sum, const coded_key *k, const int32_t *q)
{
    /* As simd/attn_coded_keys.h puts them: channels 0, 2, 1, 3. */
    const int16x4_t codes = vreinterpret_s16_s32(vld1_s32(q));
    sum.low = vmlal_lane_s16(sum.low, vget_low_s16(k->channel[0]), codes, 0);
    sum.high = vmlal_high_lane_s16(sum.high, k->channel[0], codes, 0);
    sum.low = vmlal_lane_s16(sum.low, vget_low_s16(k->channel[1]), codes, 2);
    sum.high = vmlal_high_lane_s16(sum.high, k->channel[1], codes, 2);
    sum.low = vmlal_lane_s16(sum.low, vget_low_s16(k->channel[2]), codes, 1);
    sum.high = vmlal_high_lane_s16(sum.high, k->channel[2], codes, 1);
    sum.low = vmlal_lane_s16(sum.low, vget_low_s16(k->channel[3]), codes, 3);
    sum.high = vmlal_high_lane_s16(sum.high, k->channel[3], codes, 3);
    return sum;
}

/* The values of 16 codes: the lower halves of 8 bytes, then the upper ones. */
static inline void narrow_load(const uint8_t *p, vf values[2])
{
    const uint8x8_t all = vld1_u8(p);
    const int8x16_t table = vld1q_s8(weft__block_iq4_values);
    values[0] = vf_from_i8(vqtbl1_s8(table, vand_u8(all, vdup_n_u8(0x0F))));
    values[1] = vf_from_i8(vqtbl1_s8(table, vshr_n_u8(all, 4)));
}

static inline void wide_load(const uint8_t *p, vf *values)
{
    (void)p, (void)values;
}

static inline void wide_order(vf *x)
{
    (void)x;
}

#include "kernels/simd/attn_coded.h"
