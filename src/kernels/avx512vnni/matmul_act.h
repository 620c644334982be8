// SPDX-License-Identifier: Apache-2.0
/* matmul_act.h: preparing 8-bit activations for VPDPBUSD and AMX, in the tiles of mm_tile_first. Eight steps of 64
 * inputs are prepared side by side, of eight rows or of one: a scale is then a lane, and the long way from inputs to
 * sums is gone once for all of them (step by step it took three times as long). */
#ifndef WEFT_KERNELS_AVX512VNNI_MATMUL_ACT_H
#define WEFT_KERNELS_AVX512VNNI_MATMUL_ACT_H

#include "kernels/avx512vnni/matmul_vec.h"
#include "kernels/simd/matmul_act.h"
#include "kernels/simd/unroll.h"

/* The largest magnitudes of the halves of 8 x 64 inputs, compared as integers (mm_amax), as a table of [8][2]. */
MM_INLINE __m512i mm_largest(const float *const x[8])
{
    const __m512i magnitude = _mm512_set1_epi32(0x7FFFFFFF);
    __m512i one[8], two[4], four[2];
    UNROLL for (int i = 0; i < 8; i++)
    {
        __m512i half[2];
        UNROLL for (int h = 0; h < 2; h++)
        {
            const float *from = x[i] + 32 * h;
            half[h] = _mm512_max_epi32(_mm512_and_si512(_mm512_loadu_si512(from), magnitude),
                                       _mm512_and_si512(_mm512_loadu_si512(from + 16), magnitude));
        }
        one[i] = _mm512_max_epi32(_mm512_unpacklo_epi32(half[0], half[1]), _mm512_unpackhi_epi32(half[0], half[1]));
    }
    UNROLL for (int i = 0; i < 4; i++)
    {
        const __m512i a = one[2 * i],
                      b = one[2 * i + 1]; /* words: both halves in turn; then of both, in each quarter */
        two[i] = _mm512_max_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
    }
    UNROLL for (int i = 0; i < 2; i++)
    {
        const __m512i a = two[2 * i], b = two[2 * i + 1];
        four[i] = _mm512_max_epi32(_mm512_shuffle_i32x4(a, b, 0x44), _mm512_shuffle_i32x4(a, b, 0xEE));
    }
    return _mm512_max_epi32(_mm512_shuffle_i32x4(four[0], four[1], 0x88), _mm512_shuffle_i32x4(four[0], four[1], 0xDD));
}

/* Sums of 16 codes as a table of [8][4] in two registers, from sums of 4 codes. */
MM_INLINE void mm_sums_of_16(const __m512i by_4[8], __m512i by_16[2])
{
    const __m512i in_turn = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    UNROLL for (int i = 0; i < 2; i++)
    {
        __m512i two[2];
        UNROLL for (int j = 0; j < 2; j++)
        {
            const __m512i a = by_4[4 * i + 2 * j], b = by_4[4 * i + 2 * j + 1];
            two[j] = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
        }
        const __m512i quarters =
            _mm512_add_epi32(_mm512_unpacklo_epi64(two[0], two[1]), _mm512_unpackhi_epi64(two[0], two[1]));
        by_16[i] = _mm512_permutexvar_epi32(in_turn, quarters);
    }
}

/* -2^shift * a */
MM_INLINE __m512i mm_bias_of_sums(__m512i a, unsigned shift)
{
    return _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_slli_epi32(a, shift));
}

/* mm_powers of 16 scales; powers: their first and their second words. */
MM_INLINE __m512 mm_powers_16(__m512 scale, __m512i powers[2])
{
    const __m512i one = _mm512_set1_epi32(0x3F800000), exponent = _mm512_set1_epi32(0x7F800000),
                  fraction = _mm512_set1_epi32(0x007FFFFF);
    const __m512 below = _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(scale), exponent)),
                 rest = _mm512_max_ps(_mm512_sub_ps(scale, below), _mm512_mul_ps(below, _mm512_set1_ps(0x1p-10f))),
                 twice = _mm512_add_ps(below, below);
    const __m512i up = _mm512_and_si512(_mm512_add_epi32(_mm512_castps_si512(rest), fraction), exponent),
                  down = _mm512_and_si512(_mm512_castps_si512(_mm512_sub_ps(twice, scale)), exponent);
    const __m512 sum = _mm512_add_ps(below, _mm512_castsi512_ps(up)),
                 difference = _mm512_sub_ps(twice, _mm512_castsi512_ps(down));
    const __mmask16 adds = _mm512_cmp_ps_mask(sum, difference, _CMP_LE_OQ);
    const __m512i minus_down = _mm512_xor_si512(down, _mm512_set1_epi32(INT32_MIN));
    powers[0] = _mm512_sub_epi32(_mm512_castps_si512(_mm512_mask_blend_ps(adds, twice, below)), one);
    powers[1] = _mm512_sub_epi32(_mm512_mask_blend_epi32(adds, minus_down, up), one);
    return _mm512_mask_blend_ps(adds, difference, sum);
}

/* The scales of 8 x 64 inputs, of each half, as tables of [8][2]. */
typedef struct mm_scaled {
    __m512 scale;
    __m512i powers[2]; /* mm_powers: first and second words */
    float inverse[16]; /* what inputs are taken times */
    int is_tiny;       /* all of a half are, not zero: mm_act8_half has to do it */
} mm_scaled;

static inline void mm_scale_eight(const float *const x[8], mm_scaled *o)
{
    const __m512 amax = _mm512_castsi512_ps(mm_largest(x));
    const __mmask16 some = _mm512_cmp_ps_mask(amax, _mm512_setzero_ps(), _CMP_NEQ_UQ);
    o->is_tiny = _mm512_mask_cmp_ps_mask(some, amax, _mm512_set1_ps(0x1p-100f), _CMP_LT_OQ) != 0;
    /* The scale of zeros is zero; where one is not finite, neither is the scale, and codes are whatever they are
     * (mm_act8_half). */
    const __mmask16 usual = some & _mm512_cmp_ps_mask(amax, _mm512_set1_ps(INFINITY), _CMP_LT_OQ);
    const __m512 least = _mm512_div_ps(amax, _mm512_set1_ps(127.0f));
    o->scale = _mm512_mask_blend_ps(usual, least, mm_powers_16(least, o->powers));
    const __m512 other = _mm512_maskz_div_ps(some, _mm512_set1_ps(127.0f), amax);
    _mm512_storeu_ps(o->inverse, _mm512_mask_div_ps(other, usual, _mm512_set1_ps(1.0f), o->scale));
    for (int i = 0; i < 2; i++) o->powers[i] = _mm512_maskz_mov_epi32(usual, o->powers[i]);
}

/* Puts them as rows t..t+7 of a step of n_rows rows. */
static inline void mm_put_eight(const float *const x[8], const mm_scaled *s, int t, int n_rows, uint8_t *step)
{
    const __m512i ones = _mm512_set1_epi8(1),
                  in_order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15),
                  even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30),
                  odd = _mm512_add_epi32(even, _mm512_set1_epi32(1)),
                  twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    __m512i by_4[8], by_16[2];
    UNROLL for (int i = 0; i < 8; i++)
    {
        __m512i v[4];
        UNROLL for (int j = 0; j < 4; j++)
        {
            v[j] = _mm512_cvtps_epi32(
                _mm512_mul_ps(_mm512_loadu_ps(x[i] + 16 * j), _mm512_set1_ps(s->inverse[2 * i + j / 2])));
        }
        __m512i q = _mm512_packs_epi16(_mm512_packs_epi32(v[0], v[1]), _mm512_packs_epi32(v[2], v[3]));
        q = _mm512_permutexvar_epi32(in_order, q); /* packing works within quarters */
        _mm512_storeu_si512(step + 64 * (t + i), q);
        by_4[i] = _mm512_dpbusd_epi32(_mm512_setzero_si512(), ones, q);
    }
    mm_sums_of_16(by_4, by_16);
    const __m512i by_32 = _mm512_add_epi32(_mm512_permutex2var_epi32(by_16[0], even, by_16[1]),
                                           _mm512_permutex2var_epi32(by_16[0], odd, by_16[1]));
    _mm512_storeu_ps(step + mm_scale_at(n_rows) + 8 * t, s->scale);
    _mm512_storeu_si512(step + mm_bias32_at(n_rows) + 8 * t, mm_bias_of_sums(by_32, 7));
    _mm512_storeu_ps(step + mm_sum32_at(n_rows) + 8 * t, _mm512_mul_ps(s->scale, _mm512_cvtepi32_ps(by_32)));
    _mm512_storeu_si512(step + mm_bias8_at(n_rows) + 8 * t, mm_bias_of_sums(by_32, 3));
    UNROLL for (int i = 0; i < 2; i++)
    {
        const __m512 each = _mm512_permutexvar_ps(_mm512_add_epi32(twice, _mm512_set1_epi32(8 * i)), s->scale);
        _mm512_storeu_si512(step + mm_bias16_at(n_rows) + 16 * t + 64 * i, mm_bias_of_sums(by_16[i], 7));
        _mm512_storeu_ps(step + mm_sum16_at(n_rows) + 16 * t + 64 * i,
                         _mm512_mul_ps(each, _mm512_cvtepi32_ps(by_16[i])));
        const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
        _mm512_storeu_si512(
            step + mm_powers_at(n_rows) + 16 * t + 64 * i,
            _mm512_permutex2var_epi32(s->powers[0], _mm512_add_epi32(low, _mm512_set1_epi32(8 * i)), s->powers[1]));
    }
}

/* Scales are made of so many times 8 x 64 inputs before their codes are: from inputs to scales the way is long, and
 * several go it together. */
enum { MM_SCALES = 4 };

/* `left` inputs, whole steps, of rows t..t+7 of the steps of n_rows rows. */
static inline void mm_put_rows(const float *x, int64_t ldx, int64_t left, int t, int n_rows, uint8_t *step)
{
    mm_scaled s[MM_SCALES];
    const float *from[MM_SCALES][8];
    while (left > 0) {
        const int n = left < MM_SCALES * MM_STEP ? (int)(left / MM_STEP) : MM_SCALES;
        for (int j = 0; j < n; j++) {
            for (int i = 0; i < 8; i++) from[j][i] = x + i * ldx + j * MM_STEP;
            mm_scale_eight(from[j], &s[j]);
        }
        for (int j = 0; j < n; j++, step += (size_t)n_rows * MM_ROW_STEP) {
            if (s[j].is_tiny)
                for (int i = 0; i < 8; i++) mm_act8_step(from[j][i], MM_STEP, t + i, n_rows, step);
            else mm_put_eight(from[j], &s[j], t, n_rows, step);
        }
        x += n * MM_STEP;
        left -= n * MM_STEP;
    }
}

/* `left` inputs of a row into row t of the steps of n_rows rows. */
static inline void mm_put_row(const float *x, int64_t left, int t, int n_rows, uint8_t *step)
{
    const size_t step_bytes = (size_t)n_rows * MM_ROW_STEP;
    _Alignas(64) uint8_t some[8 * MM_ROW_STEP];
    mm_scaled s[MM_SCALES];
    const float *from[MM_SCALES][8];
    while (left >= 2 * MM_STEP) { /* for one it is too much */
        const int whole = left < 8 * MM_SCALES * MM_STEP ? (int)(left / MM_STEP) : 8 * MM_SCALES;
        for (int j = 0; 8 * j < whole; j++) {
            for (int i = 0; i < 8; i++) from[j][i] = x + (8 * j + i < whole ? 8 * j + i : whole - 1) * MM_STEP;
            mm_scale_eight(from[j], &s[j]);
        }
        for (int j = 0; 8 * j < whole; j++) {
            if (!s[j].is_tiny) mm_put_eight(from[j], &s[j], 0, 8, some);
            for (int i = 0; i < 8 && 8 * j + i < whole; i++, step += step_bytes) {
                if (s[j].is_tiny) mm_act8_step(from[j][i], MM_STEP, t, n_rows, step);
                else mm_act8_take_step(some, 8, i, step, n_rows, t);
            }
        }
        x += whole * MM_STEP;
        left -= whole * MM_STEP;
    }
    for (; left > 0; left -= MM_STEP, x += MM_STEP, step += step_bytes) mm_act8_step(x, left, t, n_rows, step);
}

/* weft__act.put */
static inline void mm_put_steps(const float *x, int64_t ldx, const weft__act_part *part, void *act)
{
    const int64_t left = part->to - part->from;
    for (int64_t i = 0; i < part->n;) {
        const int64_t row = part->row + i, first = mm_tile_first(row, part->m);
        const int n_rows = mm_tile_rows(first, part->m), t = (int)(row - first);
        uint8_t *step = mm_act8_at(part, first, act);
        if (t % 8 == 0 && n_rows - t >= 8 && part->n - i >= 8 && left % MM_STEP == 0) {
            mm_put_rows(x + i * ldx, ldx, left, t, n_rows, step);
            i += 8;
        } else {
            mm_put_row(x + i * ldx, left, t, n_rows, step);
            i++;
        }
    }
}

#endif
