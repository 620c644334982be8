/* matmul_act.h: preparing 8-bit activations for VPDPBUSD and AMX, a step of 64 inputs at a time, in the tiles of mm_tile_first. */
#ifndef WEFT_KERNELS_AVX512VNNI_MATMUL_ACT_H
#define WEFT_KERNELS_AVX512VNNI_MATMUL_ACT_H

#include "kernels/avx512vnni/matmul_vec.h"
#include "kernels/simd/matmul_act.h"

/* The largest magnitudes of v[0], v[1] and of v[2], v[3], compared as integers (mm_amax), in words 0 and 1. */
MM_INLINE __m128i mm_largest(const __m512i v[4])
{
    const __m512i magnitude = _mm512_set1_epi32(0x7FFFFFFF);
    __m256i h[2];
    for (int i = 0; i < 2; i++) {
        __m512i m = _mm512_max_epi32(_mm512_and_si512(v[2 * i], magnitude), _mm512_and_si512(v[2 * i + 1], magnitude));
        h[i] = _mm256_max_epi32(_mm512_castsi512_si256(m), _mm512_extracti32x8_epi32(m, 1));
    }
    __m256i a = _mm256_max_epi32(_mm256_unpacklo_epi32(h[0], h[1]), _mm256_unpackhi_epi32(h[0], h[1])); /* words in turn */
    __m128i b = _mm_max_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    return _mm_max_epi32(b, _mm_shuffle_epi32(b, 0x4E));
}

/* 64 inputs into row t of a step with n_rows rows. Returns 0 where mm_act8_half has to do it: all of a half are tiny, not zero. */
MM_INLINE int mm_put_step(const float *x, int t, int n_rows, uint8_t *step)
{
    const __m512i ones = _mm512_set1_epi8(1), in_order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512i v[4];
    for (int i = 0; i < 4; i++) v[i] = _mm512_loadu_si512(x + 16 * i);
    const __m128i bits = mm_largest(v);
    const __m128 amax = _mm_castsi128_ps(bits);
    if (_mm_movemask_ps(_mm_and_ps(_mm_cmplt_ps(amax, _mm_set1_ps(0x1p-100f)), _mm_cmpgt_ps(amax, _mm_setzero_ps()))) & 3)
        return 0;
    const __m128 scale = _mm_div_ps(amax, _mm_set1_ps(127.0f));
    const __m128 none = _mm_cmpeq_ps(amax, _mm_setzero_ps()),
                 inverse = _mm_andnot_ps(none, _mm_div_ps(_mm_set1_ps(127.0f), amax));
    const __m512 by[2] = {_mm512_broadcastss_ps(inverse), _mm512_broadcastss_ps(_mm_movehdup_ps(inverse))};
    for (int i = 0; i < 4; i++) v[i] = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_castsi512_ps(v[i]), by[i / 2]));
    __m512i q = _mm512_packs_epi16(_mm512_packs_epi32(v[0], v[1]), _mm512_packs_epi32(v[2], v[3]));
    q = _mm512_permutexvar_epi32(in_order, q); /* packing works within quarters */
    _mm512_storeu_si512(step + 64 * t, q);
    /* Sums of 16 codes in words 0..3, of 32 in words 0 and 1. */
    __m512i s = _mm512_dpbusd_epi32(_mm512_setzero_si512(), ones, q);
    s = _mm512_add_epi32(s, _mm512_shuffle_epi32(s, 0x4E));
    s = _mm512_add_epi32(s, _mm512_shuffle_epi32(s, 0xB1));
    const __m128i by_16 = _mm512_castsi512_si128(
        _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12), s));
    const __m128i by_32 = _mm_hadd_epi32(by_16, by_16), zero = _mm_setzero_si128();
    _mm_storel_epi64((__m128i *)(step + mm_scale_at(n_rows) + 8 * t), _mm_castps_si128(scale));
    _mm_storel_epi64((__m128i *)(step + mm_bias32_at(n_rows) + 8 * t), _mm_sub_epi32(zero, _mm_slli_epi32(by_32, 7)));
    _mm_storel_epi64((__m128i *)(step + mm_sum32_at(n_rows) + 8 * t),
                     _mm_castps_si128(_mm_mul_ps(scale, _mm_cvtepi32_ps(by_32))));
    _mm_storel_epi64((__m128i *)(step + mm_bias8_at(n_rows) + 8 * t), _mm_sub_epi32(zero, _mm_slli_epi32(by_32, 3)));
    _mm_storeu_si128((__m128i *)(step + mm_bias16_at(n_rows) + 16 * t), _mm_sub_epi32(zero, _mm_slli_epi32(by_16, 7)));
    _mm_storeu_ps((float *)(step + mm_sum16_at(n_rows) + 16 * t),
                  _mm_mul_ps(_mm_unpacklo_ps(scale, scale), _mm_cvtepi32_ps(by_16)));
    return 1;
}

/* weft__act.put */
static inline void mm_put_steps(const float *x, int64_t k, int64_t row, int64_t m, void *act)
{
    const int64_t first = mm_tile_first(row, m), steps = mm_act_steps(k);
    const int n_rows = mm_tile_rows(first, m), t = (int)(row - first);
    uint8_t *step = (uint8_t *)act + (size_t)first * (size_t)steps * MM_ROW_STEP;
    for (int64_t i = 0; i < steps; i++, step += (size_t)n_rows * MM_ROW_STEP) {
        const int64_t left = k - i * MM_STEP;
        if (left < MM_STEP || !mm_put_step(x + i * MM_STEP, t, n_rows, step))
            mm_act8_step(1, x + i * MM_STEP, left, t, n_rows, step);
    }
}

#endif
