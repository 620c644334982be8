// SPDX-License-Identifier: Apache-2.0
/* matmul_act.h: preparing activations for the products with quantized weights: the 8-bit form of matmul_layout.h. Needs
 * AVX2. MM_DOT32 says what a bias is (matmul_sums.h), and whether a scale is made of powers of two (mm_powers). */
#ifndef WEFT_KERNELS_SIMD_MATMUL_ACT_H
#define WEFT_KERNELS_SIMD_MATMUL_ACT_H

#include <immintrin.h>
#include <math.h> /* INFINITY */
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/simd/matmul_layout.h"
#include "quant/half.h"

static inline size_t mm_act8_bytes(int64_t k, int64_t m)
{
    return (size_t)mm_act_steps(k) * (size_t)m * MM_ROW_STEP;
}

/* The largest magnitude of 32 floats. Magnitudes are compared as integers, so that a NaN or an infinity wins. */
static inline float mm_amax(const float *x)
{
    const __m256i magnitude = _mm256_set1_epi32(0x7FFFFFFF);
    __m256i a = _mm256_setzero_si256();
    for (int i = 0; i < 4; i++) {
        a = _mm256_max_epi32(a, _mm256_and_si256(magnitude, _mm256_castps_si256(_mm256_loadu_ps(x + 8 * i))));
    }
    __m128i b = _mm_max_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    b = _mm_max_epi32(b, _mm_shuffle_epi32(b, 0x4E));
    b = _mm_max_epi32(b, _mm_shuffle_epi32(b, 0xB1));
    return _mm_cvtss_f32(_mm_castsi128_ps(b));
}

/* 32 codes of x * inverse, rounded to nearest even; dst 32 bytes. Returns in each half of 128 bits, of its 16 codes,
 * four equal pairs of int16: the sum of those at 4 * g and 4 * g + 1, and of those at 4 * g + 2 and 4 * g + 3. */
static inline __m256i mm_code_32(const float *x, float inverse, uint8_t *dst)
{
    __m256i v[4];
    for (int i = 0; i < 4; i++)
        v[i] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8 * i), _mm256_set1_ps(inverse)));
    __m256i q = _mm256_packs_epi16(_mm256_packs_epi32(v[0], v[1]), _mm256_packs_epi32(v[2], v[3]));
    q = _mm256_permutevar8x32_epi32(q, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)); /* packing works within halves */
    _mm256_storeu_si256((__m256i *)dst, q);
    __m256i sum = _mm256_maddubs_epi16(_mm256_set1_epi8(1), q);
    sum = _mm256_add_epi16(sum, _mm256_shuffle_epi32(sum, 0x4E));
    return _mm256_add_epi16(sum, _mm256_shuffle_epi32(sum, 0xB1));
}

/* Bias words from the sum of pairs (a, b): factor32 * (a + b) as int32, or factor16 * a and factor16 * b as int16. */
MM_INLINE uint32_t mm_bias(int a, int b, int factor32, int factor16)
{
    if (MM_DOT32) return (uint32_t)(factor32 * (a + b));
    return (uint32_t)(uint16_t)(factor16 * a) | (uint32_t)(uint16_t)(factor16 * b) << 16;
}

static inline void mm_word(uint8_t *p, int i, uint32_t w)
{
    memcpy(p + 4 * i, &w, 4);
}

static inline void mm_float(uint8_t *p, int i, float x)
{
    memcpy(p + 4 * i, &x, 4);
}

/* The smallest 2^a + 2^b (b >= a - 10) or 2^a - 2^b that is not below `scale`. powers: two words, each of which added
 * to the bits of a float x makes x * 2^a or x * +-2^b of it. So x * scale is a sum of two floats that no multiplier has
 * to make, with the bits of the product, as both round once. In return, scales are 6 % larger on average than they
 * would have to be, and the noise that the rounding of activations makes grows by an eighth. */
static inline float mm_powers(float scale, uint32_t powers[2])
{
    const uint32_t one = 0x3F800000, exponent = 0x7F800000, fraction = 0x007FFFFF;
    const float below = weft__f32_from_bits(weft__f32_bits(scale) & exponent), least = below * 0x1p-10f;
    const float rest = scale - below > least ? scale - below : least;
    const float up = weft__f32_from_bits((weft__f32_bits(rest) + fraction) & exponent);
    const float down = weft__f32_from_bits(weft__f32_bits(2 * below - scale) & exponent);
    const int adds = below + up <= 2 * below - down;
    powers[0] = weft__f32_bits(adds ? below : 2 * below) - one;
    powers[1] = weft__f32_bits(adds ? up : -down) - one;
    return adds ? below + up : 2 * below - down;
}

/* 32 inputs into half h of row t of a step with n_rows rows. Where all are so small that 127 / amax is not finite, they
 * are taken times 2^100 first: that is exact, and the scale is of the true size. */
MM_INLINE void mm_act8_half(const float *x, int h, int t, int n_rows, uint8_t *step)
{
    float amax = mm_amax(x), up[32], unit = 1;
    if (amax > 0 && amax < 0x1p-100f) {
        for (int i = 0; i < 32; i++) up[i] = x[i] * 0x1p100f;
        x = up;
        amax *= 0x1p100f;
        unit = 0x1p-100f;
    }
    float scale = amax / 127.0f, inverse = amax != 0 ? 127.0f / amax : 0;
    uint32_t powers[2] = {0, 0};
    if (MM_DOT32 && amax > 0 && amax < INFINITY) {
        scale = mm_powers(scale, powers);
        inverse = 1.0f / scale;
    }
    scale *= unit;
    if (MM_DOT32 && scale == 0)
        inverse = 0, powers[0] = powers[1] = 0; /* zeros, or what is hardly more: then the codes are zeros, too */
    __m256i pairs = mm_code_32(x, inverse, step + 64 * t + 32 * h);
    uint32_t w0 = (uint32_t)_mm256_extract_epi32(pairs, 0), w1 = (uint32_t)_mm256_extract_epi32(pairs, 4);
    int a0 = (int16_t)w0, b0 = (int16_t)(w0 >> 16), a1 = (int16_t)w1, b1 = (int16_t)(w1 >> 16);
    mm_float(step + mm_scale_at(n_rows), 2 * t + h, scale);
    mm_float(step + mm_sum32_at(n_rows), 2 * t + h, scale * (float)(a0 + b0 + a1 + b1));
    mm_float(step + mm_sum16_at(n_rows), 4 * t + 2 * h, scale * (float)(a0 + b0));
    mm_float(step + mm_sum16_at(n_rows), 4 * t + 2 * h + 1, scale * (float)(a1 + b1));
    mm_word(step + mm_bias32_at(n_rows), 2 * t + h, mm_bias(a0 + a1, b0 + b1, -128, -16));
    mm_word(step + mm_bias8_at(n_rows), 2 * t + h, mm_bias(a0 + a1, b0 + b1, -8, -8));
    mm_word(step + mm_bias16_at(n_rows), 4 * t + 2 * h, mm_bias(a0, b0, -128, -32));
    mm_word(step + mm_bias16_at(n_rows), 4 * t + 2 * h + 1, mm_bias(a1, b1, -128, -32));
    for (int i = 0; MM_DOT32 && i < 2; i++) mm_word(step + mm_powers_at(n_rows), 4 * t + 2 * h + i, powers[i]);
}

/* Row t of a step with n_rows rows: `left` inputs at x, zeros behind them. */
MM_INLINE void mm_act8_step(const float *x, int64_t left, int t, int n_rows, uint8_t *step)
{
    for (int h = 0; h < 2; h++, x += 32, left -= 32) {
        if (left >= 32) {
            mm_act8_half(x, h, t, n_rows, step);
        } else {
            float rest[32] = {0};
            if (left > 0) memcpy(rest, x, (size_t)left * sizeof *x);
            mm_act8_half(rest, h, t, n_rows, step);
        }
    }
}

/* Row t of a step with n rows to row u of one with to_n. */
MM_INLINE void mm_act8_take_step(const uint8_t *s, int n, int t, uint8_t *d, int to_n, int u)
{
    memcpy(d + 64 * u, s + 64 * t, 64);
    memcpy(d + mm_scale_at(to_n) + 8 * u, s + mm_scale_at(n) + 8 * t, 8);
    memcpy(d + mm_bias32_at(to_n) + 8 * u, s + mm_bias32_at(n) + 8 * t, 8);
    memcpy(d + mm_sum32_at(to_n) + 8 * u, s + mm_sum32_at(n) + 8 * t, 8);
    memcpy(d + mm_bias8_at(to_n) + 8 * u, s + mm_bias8_at(n) + 8 * t, 8);
    memcpy(d + mm_bias16_at(to_n) + 16 * u, s + mm_bias16_at(n) + 16 * t, 16);
    memcpy(d + mm_sum16_at(to_n) + 16 * u, s + mm_sum16_at(n) + 16 * t, 16);
    if (MM_DOT32) memcpy(d + mm_powers_at(to_n) + 16 * u, s + mm_powers_at(n) + 16 * t, 16);
}

/* weft__act.take of the 8-bit form. */
static inline void mm_act8_take(const void *act, int64_t k, int64_t row, int64_t m, void *to, int64_t to_row,
                                int64_t to_m)
{
    const int64_t first = mm_tile_first(row, m), to_first = mm_tile_first(to_row, to_m), steps = mm_act_steps(k);
    const int n = mm_tile_rows(first, m), t = (int)(row - first), to_n = mm_tile_rows(to_first, to_m),
              u = (int)(to_row - to_first);
    const uint8_t *s = (const uint8_t *)act + (size_t)first * (size_t)steps * MM_ROW_STEP;
    uint8_t *d = (uint8_t *)to + (size_t)to_first * (size_t)steps * MM_ROW_STEP;
    for (int64_t i = 0; i < steps; i++, s += (size_t)n * MM_ROW_STEP, d += (size_t)to_n * MM_ROW_STEP)
        mm_act8_take_step(s, n, t, d, to_n, u);
}

/* Where in prepared rows the step of input `from` lies, of the tile that begins at row `first`. */
static inline uint8_t *mm_act8_at(const weft__act_part *part, int64_t first, void *act)
{
    const int64_t step = first * mm_act_steps(part->k) + part->from / MM_STEP * mm_tile_rows(first, part->m);
    return (uint8_t *)act + (size_t)step * MM_ROW_STEP;
}

/* weft__act.put of the 8-bit form. */
MM_INLINE void mm_act8_put(const float *x, int64_t ldx, const weft__act_part *part, void *act)
{
    const int64_t n = part->to - part->from;
    for (int64_t row = part->row; row < part->row + part->n; row++, x += ldx) {
        const int64_t first = mm_tile_first(row, part->m);
        const int n_rows = mm_tile_rows(first, part->m), t = (int)(row - first);
        uint8_t *step = mm_act8_at(part, first, act);
        for (int64_t i = 0; i < n; i += MM_STEP, step += (size_t)n_rows * MM_ROW_STEP)
            mm_act8_step(x + i, n - i, t, n_rows, step);
    }
}

#endif
