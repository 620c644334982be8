// SPDX-License-Identifier: Apache-2.0
/* immintrin.h: AVX-512 (F, BW, DQ, VL, VNNI, BF16) and AMX on a processor with AVX2, for tests: what the kernels of
 * those tiers use.
 *
 * Found before the compiler's header of this name where WEFT_EMULATE is set (make emulated), so that the same sources
 * are compiled without those instructions. Every function comes to what the instruction does, rounding included, but
 * for flags and signals, NaN in emu_reduce_max_ps and infinite exponents in emu_scalef_ps, none of which kernels have
 * there. A constant or comparison that no kernel uses stops the program. Time says nothing here. */
#include_next <immintrin.h>

#ifndef WEFT_TESTS_EMULATED_IMMINTRIN_H
#define WEFT_TESTS_EMULATED_IMMINTRIN_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SIMD_REGISTER "+m" /* simd/unroll.h: none holds 64 bytes */

#define EMU static inline __attribute__((always_inline, unused))

typedef union emu {
    __m512 f;
    __m512i i;
    __m512d d;
    __m256 f2[2];
    __m256i i2[2];
    __m256d d2[2];
    __m128i i4[4];
    float ps[16];
    double pd[8];
    int64_t q[8];
    int32_t w[16];
    uint32_t uw[16];
    uint16_t h[32];
    int8_t b[64];
} emu;

#define EMU_IS(e) ((emu){.i = (e)})
#define EMU_FS(e) ((emu){.f = (e)})
#define EMU_DS(e) ((emu){.d = (e)})

/* ---- what AVX2 does by halves; m: f, i or d ---- */

#define EMU_1(T, m, name, half)                                                                                        \
    EMU T emu_##name(T a)                                                                                              \
    {                                                                                                                  \
        const emu x = {.m = a};                                                                                        \
        return ((emu){.m##2 = {half(x.m##2 [0]), half(x.m##2 [1])}}).m;                                                \
    }
#define EMU_2(T, m, name, half)                                                                                        \
    EMU T emu_##name(T a, T b)                                                                                         \
    {                                                                                                                  \
        const emu x = {.m = a}, y = {.m = b};                                                                          \
        return ((emu){.m##2 = {half(x.m##2 [0], y.m##2 [0]), half(x.m##2 [1], y.m##2 [1])}}).m;                        \
    }
#define EMU_3(T, m, name, half)                                                                                        \
    EMU T emu_##name(T a, T b, T c)                                                                                    \
    {                                                                                                                  \
        const emu x = {.m = a}, y = {.m = b}, z = {.m = c};                                                            \
        return ((emu){.m##2 = {half(x.m##2 [0], y.m##2 [0], z.m##2 [0]), half(x.m##2 [1], y.m##2 [1], z.m##2 [1])}})   \
            .m;                                                                                                        \
    }

EMU_2(__m512, f, add_ps, _mm256_add_ps)
EMU_2(__m512, f, sub_ps, _mm256_sub_ps)
EMU_2(__m512, f, mul_ps, _mm256_mul_ps)
EMU_2(__m512, f, div_ps, _mm256_div_ps)
EMU_2(__m512, f, max_ps, _mm256_max_ps)
EMU_2(__m512, f, min_ps, _mm256_min_ps)
EMU_2(__m512, f, and_ps, _mm256_and_ps)
EMU_2(__m512, f, or_ps, _mm256_or_ps)
EMU_2(__m512, f, unpacklo_ps, _mm256_unpacklo_ps)
EMU_2(__m512, f, unpackhi_ps, _mm256_unpackhi_ps)
EMU_3(__m512, f, fmadd_ps, _mm256_fmadd_ps)
EMU_3(__m512, f, fnmadd_ps, _mm256_fnmadd_ps)
EMU_3(__m512, f, fmaddsub_ps, _mm256_fmaddsub_ps)
EMU_1(__m512, f, moveldup_ps, _mm256_moveldup_ps)
EMU_1(__m512, f, movehdup_ps, _mm256_movehdup_ps)
EMU_2(__m512d, d, add_pd, _mm256_add_pd)
EMU_2(__m512d, d, mul_pd, _mm256_mul_pd)
EMU_2(__m512d, d, unpacklo_pd, _mm256_unpacklo_pd)
EMU_2(__m512d, d, unpackhi_pd, _mm256_unpackhi_pd)
EMU_3(__m512d, d, fmadd_pd, _mm256_fmadd_pd)
EMU_1(__m512i, i, abs_epi8, _mm256_abs_epi8)
EMU_2(__m512i, i, add_epi16, _mm256_add_epi16)
EMU_2(__m512i, i, add_epi32, _mm256_add_epi32)
EMU_2(__m512i, i, sub_epi8, _mm256_sub_epi8)
EMU_2(__m512i, i, sub_epi16, _mm256_sub_epi16)
EMU_2(__m512i, i, sub_epi32, _mm256_sub_epi32)
EMU_2(__m512i, i, max_epi32, _mm256_max_epi32)
EMU_2(__m512i, i, and_si512, _mm256_and_si256)
EMU_2(__m512i, i, andnot_si512, _mm256_andnot_si256)
EMU_2(__m512i, i, or_si512, _mm256_or_si256)
EMU_2(__m512i, i, xor_si512, _mm256_xor_si256)
EMU_2(__m512i, i, madd_epi16, _mm256_madd_epi16)
EMU_2(__m512i, i, maddubs_epi16, _mm256_maddubs_epi16)
EMU_2(__m512i, i, mullo_epi16, _mm256_mullo_epi16)
EMU_2(__m512i, i, packs_epi16, _mm256_packs_epi16)
EMU_2(__m512i, i, packs_epi32, _mm256_packs_epi32)
EMU_2(__m512i, i, shuffle_epi8, _mm256_shuffle_epi8)
EMU_2(__m512i, i, unpacklo_epi32, _mm256_unpacklo_epi32)
EMU_2(__m512i, i, unpackhi_epi32, _mm256_unpackhi_epi32)
EMU_2(__m512i, i, unpacklo_epi64, _mm256_unpacklo_epi64)
EMU_2(__m512i, i, unpackhi_epi64, _mm256_unpackhi_epi64)

EMU __m512i emu_slli_epi32(__m512i a, unsigned n)
{
    return ((emu){.i2 = {_mm256_slli_epi32(EMU_IS(a).i2[0], (int)n), _mm256_slli_epi32(EMU_IS(a).i2[1], (int)n)}}).i;
}
EMU __m512i emu_srli_epi32(__m512i a, unsigned n)
{
    return ((emu){.i2 = {_mm256_srli_epi32(EMU_IS(a).i2[0], (int)n), _mm256_srli_epi32(EMU_IS(a).i2[1], (int)n)}}).i;
}
/* imm: 0, to the nearest integer without signals */
EMU __m512 emu_roundscale_ps(__m512 a, int imm)
{
    enum { NEAREST = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC };
    if (imm != NEAREST) abort();
    return ((emu){.f2 = {_mm256_round_ps(EMU_FS(a).f2[0], NEAREST), _mm256_round_ps(EMU_FS(a).f2[1], NEAREST)}}).f;
}

/* ---- constants, loads, stores ---- */

EMU __m512 emu_set1_ps(float x)
{
    return ((emu){.f2 = {_mm256_set1_ps(x), _mm256_set1_ps(x)}}).f;
}
EMU __m512d emu_set1_pd(double x)
{
    return ((emu){.d2 = {_mm256_set1_pd(x), _mm256_set1_pd(x)}}).d;
}
EMU __m512i emu_set1_epi8(char x)
{
    return ((emu){.i2 = {_mm256_set1_epi8(x), _mm256_set1_epi8(x)}}).i;
}
EMU __m512i emu_set1_epi16(short x)
{
    return ((emu){.i2 = {_mm256_set1_epi16(x), _mm256_set1_epi16(x)}}).i;
}
EMU __m512i emu_set1_epi32(int x)
{
    return ((emu){.i2 = {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}}).i;
}
EMU __m512i emu_broadcast_i32x4(__m128i x)
{
    return ((emu){.i4 = {x, x, x, x}}).i;
}
EMU __m512i emu_load(const void *p)
{
    __m512i a;
    memcpy(&a, p, sizeof a);
    return a;
}
/* An instruction stops the program, too. */
EMU __m512i emu_load_aligned(const void *p)
{
    if ((uintptr_t)p % 64) abort();
    return emu_load(p);
}
EMU void emu_store(void *p, __m512i a)
{
    memcpy(p, &a, sizeof a);
}
/* Lanes of `size` bytes, those of the mask alone: nothing else is touched. */
EMU __m512i emu_load_lanes(const void *p, uint32_t mask, int size)
{
    emu x = {.w = {0}};
    for (int l = 0; mask; l++, mask >>= 1)
        if (mask & 1) memcpy(x.b + l * size, (const char *)p + l * size, (size_t)size);
    return x.i;
}
EMU void emu_store_lanes(void *p, uint32_t mask, int size, __m512i a)
{
    const emu x = {.i = a};
    for (int l = 0; mask; l++, mask >>= 1)
        if (mask & 1) memcpy((char *)p + l * size, x.b + l * size, (size_t)size);
}

/* ---- between types ---- */

EMU __m512 emu_cvtepi32_ps(__m512i a)
{
    return ((emu){.f2 = {_mm256_cvtepi32_ps(EMU_IS(a).i2[0]), _mm256_cvtepi32_ps(EMU_IS(a).i2[1])}}).f;
}
EMU __m512i emu_cvtps_epi32(__m512 a)
{
    return ((emu){.i2 = {_mm256_cvtps_epi32(EMU_FS(a).f2[0]), _mm256_cvtps_epi32(EMU_FS(a).f2[1])}}).i;
}
EMU __m512i emu_cvtepi8_epi32(__m128i a)
{
    return ((emu){.i2 = {_mm256_cvtepi8_epi32(a), _mm256_cvtepi8_epi32(_mm_srli_si128(a, 8))}}).i;
}
EMU __m512i emu_cvtepu8_epi32(__m128i a)
{
    return ((emu){.i2 = {_mm256_cvtepu8_epi32(a), _mm256_cvtepu8_epi32(_mm_srli_si128(a, 8))}}).i;
}
EMU __m512i emu_cvtepu16_epi32(__m256i a)
{
    return ((emu){.i2 = {_mm256_cvtepu16_epi32(_mm256_castsi256_si128(a)),
                         _mm256_cvtepu16_epi32(_mm256_extracti128_si256(a, 1))}})
        .i;
}
EMU __m512 emu_cvtph_ps(__m256i a)
{
    return ((emu){.f2 = {_mm256_cvtph_ps(_mm256_castsi256_si128(a)), _mm256_cvtph_ps(_mm256_extracti128_si256(a, 1))}})
        .f;
}
EMU __m256i emu_cvtps_ph(__m512 a, int imm)
{
    enum { NEAREST = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC };
    if (imm != NEAREST) abort();
    return _mm256_set_m128i(_mm256_cvtps_ph(EMU_FS(a).f2[1], NEAREST), _mm256_cvtps_ph(EMU_FS(a).f2[0], NEAREST));
}
EMU __m512d emu_cvtps_pd(__m256 a)
{
    return ((emu){.d2 = {_mm256_cvtps_pd(_mm256_castps256_ps128(a)), _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1))}}).d;
}
EMU __m256 emu_cvtpd_ps(__m512d a)
{
    return _mm256_set_m128(_mm256_cvtpd_ps(EMU_DS(a).d2[1]), _mm256_cvtpd_ps(EMU_DS(a).d2[0]));
}
EMU __m256i emu_cvtpd_epi32(__m512d a)
{
    return _mm256_set_m128i(_mm256_cvtpd_epi32(EMU_DS(a).d2[1]), _mm256_cvtpd_epi32(EMU_DS(a).d2[0]));
}
/* The lowest byte of each, eight of them. */
EMU __m128i emu_low_bytes(__m256i a)
{
    const emu x = {.i2 = {a}};
    emu y = {.w = {0}};
    for (int l = 0; l < 8; l++) y.b[l] = (int8_t)x.w[l];
    return y.i4[0];
}
/* To bf16, ties to even; subnormal numbers count as zero. */
EMU __m256i emu_cvtneps_pbh(__m512 a)
{
    const emu x = {.f = a};
    emu y = {.w = {0}};
    for (int l = 0; l < 16; l++) {
        const uint32_t u = x.uw[l], exponent = u & 0x7F800000;
        const int is_nan = exponent == 0x7F800000 && (u & 0x007FFFFF);
        y.h[l] = (uint16_t)(is_nan      ? u >> 16 | 0x40
                            : !exponent ? u >> 16 & 0x8000
                                        : (u + 0x7FFF + (u >> 16 & 1)) >> 16);
    }
    return y.i2[0];
}
EMU __m256 emu_half(__m512 a, int i)
{
    return EMU_FS(a).f2[i];
}
EMU __m512 emu_with_half(__m512 a, __m256 b, int i)
{
    emu x = {.f = a};
    x.f2[i] = b;
    return x.f;
}

/* ---- lanes ---- */

EMU __m512i emu_permutexvar(__m512i index, __m512i a)
{
    const emu at = {.i = index}, x = {.i = a};
    emu y;
    for (int l = 0; l < 16; l++) y.w[l] = x.w[at.w[l] & 15];
    return y.i;
}
EMU __m512i emu_permutex2var(__m512i a, __m512i index, __m512i b)
{
    const emu at = {.i = index}, x[2] = {{.i = a}, {.i = b}};
    emu y;
    for (int l = 0; l < 16; l++) y.w[l] = x[at.w[l] >> 4 & 1].w[at.w[l] & 15];
    return y.i;
}
/* Within each four. */
EMU __m512 emu_permute_ps(__m512 a, int imm)
{
    const emu x = {.f = a};
    emu y;
    for (int l = 0; l < 16; l++) y.ps[l] = x.ps[l / 4 * 4 + (imm >> 2 * (l % 4) & 3)];
    return y.f;
}
EMU __m512i emu_shuffle_quarters(__m512i a, __m512i b, int imm)
{
    const emu x = {.i = a}, y = {.i = b};
    return ((emu){.i4 = {x.i4[imm & 3], x.i4[imm >> 2 & 3], y.i4[imm >> 4 & 3], y.i4[imm >> 6 & 3]}}).i;
}
/* Bit k of imm: the result where the bits of a, b and c are those of k. */
EMU __m512i emu_ternarylogic(__m512i a, __m512i b, __m512i c, int imm)
{
    __m512i r = {0};
    for (int k = 0; k < 8; k++)
        if (imm >> k & 1) r |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
    return r;
}
/* Pairs of lanes half of all apart are joined until one is left. */
EMU float emu_reduce_add_ps(__m512 a)
{
    emu x = {.f = a};
    for (int n = 8; n; n /= 2)
        for (int l = 0; l < n; l++) x.ps[l] = x.ps[l] + x.ps[l + n];
    return x.ps[0];
}
EMU double emu_reduce_add_pd(__m512d a)
{
    emu x = {.d = a};
    for (int n = 4; n; n /= 2)
        for (int l = 0; l < n; l++) x.pd[l] = x.pd[l] + x.pd[l + n];
    return x.pd[0];
}
EMU float emu_reduce_max_ps(__m512 a)
{
    emu x = {.f = a};
    for (int n = 8; n; n /= 2)
        for (int l = 0; l < n; l++) x.ps[l] = x.ps[l + n] > x.ps[l] ? x.ps[l + n] : x.ps[l];
    return x.ps[0];
}

/* ---- masks ---- */

EMU uint32_t emu_cmp_ps_mask(__m512 a, __m512 b, int op)
{
    const emu x = {.f = a}, y = {.f = b};
    uint32_t mask = 0;
    for (int l = 0; l < 16; l++) {
        const float p = x.ps[l], q = y.ps[l];
        int is = 0;
        switch (op) {
        case _CMP_EQ_OQ: is = p == q; break;
        case _CMP_LT_OQ: is = p < q; break;
        case _CMP_LE_OQ: is = p <= q; break;
        case _CMP_NEQ_UQ: is = !(p == q); break;
        case _CMP_NGE_UQ: is = !(p >= q); break;
        case _CMP_NLE_UQ: is = !(p <= q); break;
        default: abort();
        }
        mask |= (uint32_t)is << l;
    }
    return mask;
}
EMU uint32_t emu_cmpge_epu16_mask(__m512i a, __m512i b)
{
    const emu x = {.i = a}, y = {.i = b};
    uint32_t mask = 0;
    for (int l = 0; l < 32; l++) mask |= (uint32_t)(x.h[l] >= y.h[l]) << l;
    return mask;
}
EMU uint32_t emu_cmpge_epu32_mask(__m512i a, __m512i b)
{
    const emu x = EMU_IS(a), y = EMU_IS(b);
    uint32_t mask = 0;
    for (int l = 0; l < 16; l++) mask |= (uint32_t)(x.uw[l] >= y.uw[l]) << l;
    return mask;
}
EMU uint32_t emu_test_epi32_mask(__m512i a, __m512i b)
{
    const emu x = EMU_IS(a), y = EMU_IS(b);
    uint32_t mask = 0;
    for (int l = 0; l < 16; l++) mask |= (uint32_t)((x.uw[l] & y.uw[l]) != 0) << l;
    return mask;
}
EMU uint64_t emu_movepi8_mask(__m512i a)
{
    return (uint32_t)_mm256_movemask_epi8(EMU_IS(a).i2[0]) | (uint64_t)(uint32_t)_mm256_movemask_epi8(EMU_IS(a).i2[1])
                                                                 << 32;
}
/* Lanes of `size` bytes: of b where the mask has a bit, else of a. */
EMU __m512i emu_blend(uint64_t mask, int size, __m512i a, __m512i b)
{
    const emu x = {.i = a}, y = {.i = b};
    emu z;
    for (int l = 0; l < 64; l++) z.b[l] = mask >> l / size & 1 ? y.b[l] : x.b[l];
    return z.i;
}

/* ---- dot products ---- */

/* The bytes in even or odd places, as words. */
EMU __m256i emu_signed(__m256i a, int is_odd)
{
    return _mm256_srai_epi16(is_odd ? a : _mm256_slli_epi16(a, 8), 8);
}
EMU __m256i emu_unsigned(__m256i a, int is_odd)
{
    return _mm256_srli_epi16(is_odd ? a : _mm256_slli_epi16(a, 8), 8);
}
/* acc + four products of bytes of a, unsigned or signed, and signed bytes of b. */
EMU __m256i emu_dpbusd_half(__m256i acc, __m256i a, __m256i b)
{
    for (int odd = 0; odd < 2; odd++)
        acc = _mm256_add_epi32(acc, _mm256_madd_epi16(emu_unsigned(a, odd), emu_signed(b, odd)));
    return acc;
}
EMU __m256i emu_dpbssd_half(__m256i acc, __m256i a, __m256i b)
{
    for (int odd = 0; odd < 2; odd++)
        acc = _mm256_add_epi32(acc, _mm256_madd_epi16(emu_signed(a, odd), emu_signed(b, odd)));
    return acc;
}
EMU_3(__m512i, i, dpbusd_epi32, emu_dpbusd_half)
EMU_3(__m512i, i, dpbssd_epi32, emu_dpbssd_half)

/* The float of these bits; subnormal numbers count as zero. */
EMU float emu_normal(uint32_t word)
{
    float x;
    if (!(word & 0x7F800000)) word &= 0x80000000;
    memcpy(&x, &word, 4);
    return x;
}
EMU float emu_fma_normal(uint32_t a, uint32_t b, float c)
{
    emu x = {.ps = {c}};
    x.ps[0] = fmaf(emu_normal(a), emu_normal(b), emu_normal(x.uw[0]));
    return emu_normal(x.uw[0]);
}
EMU __m512 emu_dpbf16_ps(__m512 acc, __m512i a, __m512i b)
{
    const emu x = {.i = a}, y = {.i = b};
    emu z = {.f = acc};
    for (int l = 0; l < 16; l++) {
        z.ps[l] = emu_fma_normal(x.uw[l] & 0xFFFF0000, y.uw[l] & 0xFFFF0000, z.ps[l]);
        z.ps[l] = emu_fma_normal(x.uw[l] << 16, y.uw[l] << 16, z.ps[l]);
    }
    return z.f;
}

/* a * 2^floor(n), rounded once. */
EMU __m512 emu_scalef_ps(__m512 a, __m512 n)
{
    const emu x = {.f = a}, y = {.f = n};
    emu z;
    for (int l = 0; l < 16; l++) {
        const float whole = floorf(y.ps[l]);
        const int e = whole > 1000 ? 1000 : whole < -1000 ? -1000 : (int)whole;
        const uint64_t bits = (uint64_t)(e + 1023) << 52;
        double power;
        memcpy(&power, &bits, 8);
        z.ps[l] = whole != whole ? whole : (float)((double)x.ps[l] * power);
    }
    return z.f;
}

/* ---- tiles (Intel's manual, volume 2) ---- */

/* Those of a thread, as far as one file is concerned, which sets them up and uses them. */
static _Thread_local struct emu_tiles {
    int rows[8], row_bytes[8];
    uint8_t at[8][16][64];
} emu_tiles __attribute__((unused));

EMU void emu_tile_release(void)
{
    memset(&emu_tiles, 0, sizeof emu_tiles);
}
/* c: what LDTILECFG reads, 64 bytes. */
EMU void emu_tile_config(const void *c)
{
    const uint8_t *from = c;
    emu_tile_release();
    for (int t = 0; t < 8; t++) {
        emu_tiles.rows[t] = from[48 + t];
        emu_tiles.row_bytes[t] = from[16 + 2 * t] | from[17 + 2 * t] << 8;
        if (from[0] != 1 || emu_tiles.rows[t] > 16 || emu_tiles.row_bytes[t] > 64) abort();
    }
}
/* Tiles that are not set up stop the program here, as instructions do. */
EMU void emu_tile_zero(int t)
{
    if (!emu_tiles.rows[t]) abort();
    memset(emu_tiles.at[t], 0, sizeof emu_tiles.at[t]);
}
EMU void emu_tile_load(int t, const void *p, int64_t apart)
{
    emu_tile_zero(t);
    for (int r = 0; r < emu_tiles.rows[t]; r++)
        memcpy(emu_tiles.at[t][r], (const char *)p + r * apart, (size_t)emu_tiles.row_bytes[t]);
}
EMU void emu_tile_store(int t, void *p, int64_t apart)
{
    if (!emu_tiles.rows[t]) abort();
    for (int r = 0; r < emu_tiles.rows[t]; r++)
        memcpy((char *)p + r * apart, emu_tiles.at[t][r], (size_t)emu_tiles.row_bytes[t]);
}
/* An instruction stops the program, too, where the shapes do not fit. */
EMU void emu_tile_check(int to, int a, int b)
{
    const struct emu_tiles *e = &emu_tiles;
    if (!e->rows[to] || !e->rows[b] || e->rows[to] != e->rows[a] || e->row_bytes[to] != e->row_bytes[b] ||
        e->row_bytes[a] != 4 * e->rows[b])
        abort();
}
/* to[m][n] += products of four signed bytes of a[m][k] and four of b[k][n], signed or not. */
EMU void emu_tile_dot(int to, int a, int b, int is_signed)
{
    emu_tile_check(to, a, b);
    for (int m = 0; m < emu_tiles.rows[to]; m++) {
        __m512i sum = emu_load(emu_tiles.at[to][m]);
        for (int k = 0; k < emu_tiles.rows[b]; k++) {
            int32_t word;
            memcpy(&word, emu_tiles.at[a][m] + 4 * k, 4);
            const __m512i x = emu_load(emu_tiles.at[b][k]), y = emu_set1_epi32(word);
            sum = is_signed ? emu_dpbssd_epi32(sum, x, y) : emu_dpbusd_epi32(sum, x, y);
        }
        emu_store(emu_tiles.at[to][m], sum);
    }
}
/* to[m][n] += the sum of even products, and that of odd ones, of a[m] and of b[..][n]; subnormal numbers are zero. */
EMU void emu_tile_dot_bf16(int to, int a, int b)
{
    enum { AS_TILES_DO = 0x9FC0 };
    const unsigned before = _mm_getcsr();
    emu_tile_check(to, a, b);
    _mm_setcsr(AS_TILES_DO);
    for (int m = 0; m < emu_tiles.rows[to]; m++) {
        __m512 even = {0}, odd = {0};
        for (int k = 0; k < emu_tiles.rows[b]; k++) {
            int32_t word;
            memcpy(&word, emu_tiles.at[a][m] + 4 * k, 4);
            const __m512i x = emu_load(emu_tiles.at[b][k]), y = emu_set1_epi32(word),
                          high = emu_set1_epi32((int)0xFFFF0000);
            even = emu_fmadd_ps((__m512)emu_slli_epi32(x, 16), (__m512)emu_slli_epi32(y, 16), even);
            odd = emu_fmadd_ps((__m512)(x & high), (__m512)(y & high), odd);
        }
        const __m512 sum = emu_add_ps((__m512)emu_load(emu_tiles.at[to][m]), emu_add_ps(even, odd));
        emu_store(emu_tiles.at[to][m], (__m512i)sum);
    }
    _mm_setcsr(before);
}

#undef _mm512_setr_ps
#undef _mm512_setr_epi32
#include "immintrin_names.h"

#endif
