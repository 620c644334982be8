// SPDX-License-Identifier: Apache-2.0
/* vec.h: vectors of 8 floats in AArch64 Advanced SIMD, two registers each, for the templates in simd/ that this tier
 * has (words: simd/vecmath.h). Sums over lanes are taken in the order of AVX2, whose vectors are as long. */
#ifndef WEFT_KERNELS_NEON_VEC_H
#define WEFT_KERNELS_NEON_VEC_H

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

#define VF_N 8

/* Lanes 0-3, lanes 4-7. */
typedef struct vf {
    float32x4_t low, high;
} vf;

/* All bits of a lane set, or none. */
typedef struct vm {
    uint32x4_t low, high;
} vm;

static inline vm vm_first(int n)
{
    static const int32_t lanes[VF_N] = {0, 1, 2, 3, 4, 5, 6, 7};
    const int32x4_t all = vdupq_n_s32(n);
    return (vm){vcltq_s32(vld1q_s32(lanes), all), vcltq_s32(vld1q_s32(lanes + 4), all)};
}

static inline vf vf_load(const float *p)
{
    return (vf){vld1q_f32(p), vld1q_f32(p + 4)};
}

static inline void vf_store(float *p, vf a)
{
    vst1q_f32(p, a.low);
    vst1q_f32(p + 4, a.high);
}

static inline vf vf_load_part(const float *p, int n)
{
    float part[VF_N] = {0};
    memcpy(part, p, (size_t)n * sizeof *p);
    return vf_load(part);
}

static inline void vf_store_part(float *p, vf a, int n)
{
    float part[VF_N];
    vf_store(part, a);
    memcpy(p, part, (size_t)n * sizeof *p);
}

static inline vf vf_load_f16(const uint16_t *p)
{
    const float16x8_t half = vreinterpretq_f16_u16(vld1q_u16(p));
    return (vf){vcvt_f32_f16(vget_low_f16(half)), vcvt_high_f32_f16(half)};
}

static inline vf vf_load_f16_part(const uint16_t *p, int n)
{
    uint16_t part[VF_N] = {0};
    memcpy(part, p, (size_t)n * sizeof *p);
    return vf_load_f16(part);
}

static inline void vf_store_f16_part(uint16_t *p, vf a, int n)
{
    uint16_t part[VF_N];
    vst1q_u16(part, vreinterpretq_u16_f16(vcvt_high_f16_f32(vcvt_f16_f32(a.low), a.high)));
    memcpy(p, part, (size_t)n * sizeof *p);
}

static inline vf vf_load_bf16(const uint16_t *p)
{
    const uint16x8_t words = vld1q_u16(p);
    return (vf){vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(words), 16)),
                vreinterpretq_f32_u32(vshll_high_n_u16(words, 16))};
}

static inline vf vf_load_bf16_part(const uint16_t *p, int n)
{
    uint16_t part[VF_N] = {0};
    memcpy(part, p, (size_t)n * sizeof *p);
    return vf_load_bf16(part);
}

/* E4M3, 256 times too small: by way of F16, whose exponent has another zero. A NaN is a number here. */
static inline vf vf_load_f8(const uint8_t *p)
{
    const int16x8_t words = vshll_n_s8(vreinterpret_s8_u8(vld1_u8(p)), 7);
    const float16x8_t half = vreinterpretq_f16_s16(vandq_s16(words, vdupq_n_s16((int16_t)0xBF80)));
    return (vf){vcvt_f32_f16(vget_low_f16(half)), vcvt_high_f32_f16(half)};
}

static inline vf vf_load_f8_part(const uint8_t *p, int n)
{
    uint8_t part[VF_N] = {0};
    memcpy(part, p, (size_t)n);
    return vf_load_f8(part);
}

static inline vf vf_from_i8(int8x8_t bytes)
{
    const int16x8_t words = vmovl_s8(bytes);
    return (vf){vcvtq_f32_s32(vmovl_s16(vget_low_s16(words))), vcvtq_f32_s32(vmovl_high_s16(words))};
}

static inline vf vf_load_i8(const int8_t *p)
{
    return vf_from_i8(vld1_s8(p));
}

static inline vf vf_load_i8_part(const int8_t *p, int n)
{
    int8_t part[VF_N] = {0};
    memcpy(part, p, (size_t)n);
    return vf_load_i8(part);
}

/* To the nearest whole numbers, ties to even; within [-32768, 32767]. */
static inline int16x8_t vf_to_i16(vf a)
{
    return vqmovn_high_s32(vqmovn_s32(vcvtnq_s32_f32(a.low)), vcvtnq_s32_f32(a.high));
}

static inline void vf_store_i16(int16_t *p, vf a)
{
    vst1q_s16(p, vf_to_i16(a));
}

/* The same, within [-128, 127]. */
static inline void vf_store_i8(int8_t *p, vf a)
{
    vst1_s8(p, vqmovn_s16(vf_to_i16(a)));
}

static inline vf vf_set(float x)
{
    return (vf){vdupq_n_f32(x), vdupq_n_f32(x)};
}

static inline vf vf_zero(void)
{
    return vf_set(0);
}

static inline vf vf_add(vf a, vf b)
{
    return (vf){vaddq_f32(a.low, b.low), vaddq_f32(a.high, b.high)};
}

static inline vf vf_sub(vf a, vf b)
{
    return (vf){vsubq_f32(a.low, b.low), vsubq_f32(a.high, b.high)};
}

static inline vf vf_mul(vf a, vf b)
{
    return (vf){vmulq_f32(a.low, b.low), vmulq_f32(a.high, b.high)};
}

static inline vf vf_div(vf a, vf b)
{
    return (vf){vdivq_f32(a.low, b.low), vdivq_f32(a.high, b.high)};
}

static inline vf vf_fma(vf a, vf b, vf c)
{
    return (vf){vfmaq_f32(c.low, a.low, b.low), vfmaq_f32(c.high, a.high, b.high)};
}

static inline vf vf_fnma(vf a, vf b, vf c)
{
    return (vf){vfmsq_f32(c.low, a.low, b.low), vfmsq_f32(c.high, a.high, b.high)};
}

static inline vm vf_less(vf a, vf b)
{
    return (vm){vcltq_f32(a.low, b.low), vcltq_f32(a.high, b.high)};
}

static inline vf vf_select(vm m, vf a, vf b)
{
    return (vf){vbslq_f32(m.low, a.low, b.low), vbslq_f32(m.high, a.high, b.high)};
}

/* Not the instructions of these names, which take a NaN wherever it stands. */
static inline vf vf_max(vf a, vf b)
{
    return vf_select(vf_less(b, a), a, b);
}

static inline vf vf_min(vf a, vf b)
{
    return vf_select(vf_less(a, b), a, b);
}

static inline vf vf_abs(vf a)
{
    return (vf){vabsq_f32(a.low), vabsq_f32(a.high)};
}

static inline vf vf_copysign(vf a, vf sign)
{
    const uint32x4_t bit = vdupq_n_u32(0x80000000u);
    return vf_select((vm){bit, bit}, sign, a);
}

static inline vf vf_round(vf a)
{
    return (vf){vrndnq_f32(a.low), vrndnq_f32(a.high)};
}

static inline float32x4_t vf_ldexp4(float32x4_t a, float32x4_t n)
{
    const int32x4_t whole = vcvtnq_s32_f32(n), half = vshrq_n_s32(whole, 1), rest = vsubq_s32(whole, half);
    const int32x4_t bias = vdupq_n_s32(127);
    const float32x4_t x = vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(half, bias), 23));
    const float32x4_t y = vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(rest, bias), 23));
    return vmulq_f32(vmulq_f32(a, x), y);
}

/* In two steps, because 2^n itself may be out of range where a * 2^n is not; -252 <= n <= 254. */
static inline vf vf_ldexp(vf a, vf n)
{
    return (vf){vf_ldexp4(a.low, n.low), vf_ldexp4(a.high, n.high)};
}

/* Lanes from..to-1; 0 <= from <= to <= VF_N. */
static inline vm vm_range(int from, int to)
{
    const vm before = vm_first(from), within = vm_first(to);
    return (vm){vbicq_u32(within.low, before.low), vbicq_u32(within.high, before.high)};
}

static inline float vf_sum(vf a)
{
    const float32x4_t four = vaddq_f32(a.low, a.high);
    return vaddv_f32(vadd_f32(vget_low_f32(four), vget_high_f32(four)));
}

static inline float vf_most(vf a)
{
    const vf swapped = {a.high, a.low};
    const float32x4_t four = vf_max(a, swapped).low;
    return vmaxvq_f32(four);
}

static inline vf vf_swap_pairs(vf a)
{
    return (vf){vrev64q_f32(a.low), vrev64q_f32(a.high)};
}

/* Lanes and those 2, 4 away. */
static inline vf vf_swap_fours(vf a)
{
    return (vf){vextq_f32(a.low, a.low, 2), vextq_f32(a.high, a.high, 2)};
}

static inline vf vf_swap_eights(vf a)
{
    return (vf){a.high, a.low};
}

#endif
