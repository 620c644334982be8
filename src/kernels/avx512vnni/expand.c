/* expand.c: adding B h to outputs by VPDPBUSD: h is rounded to 8 bits with one scale (layout: simd/expand_layout.h). Sums are exact in
 * int32 (1024 ranks of 255 * 127), then one fused multiply-add; so the number of rows does not change a bit. Reentrant. */
#include "kernels/avx512vnni/matmul_vec.h"

#include "kernels/list.h"
#include "kernels/simd/expand_layout.h"
#include "kernels/simd/next.h"
#include "kernels/simd/unroll.h"

enum {
    TOGETHER = 4, /* rows that share a register of codes */
    AHEAD = 8192, /* bytes that are asked for early; half of it costs half a per cent of a step with 16 adapters */
    HEAD = 8,     /* of a prepared h: f32 scale, int32 that sums start from */
    REG = 4 * WEFT__EXPAND_ROWS
};

/* Ranks in a register of codes. */
MM_INLINE int reg_ranks(uint32_t f)
{
    return f == WEFT_Q8_0 ? 4 : 8;
}

MM_INLINE size_t panel_bytes(uint32_t f, int64_t rank)
{
    return EX_SCALES + (size_t)ex_groups(rank, reg_ranks(f)) * REG;
}

static void pack(uint32_t f, const float *b, int64_t ldb, float factor, int n_rows, int64_t rank, uint8_t *panel)
{
    int8_t codes[WEFT__EXPAND_RANK_MAX];
    ex_put_scales(f, b, ldb, factor, n_rows, rank, panel);
    memset(panel + EX_SCALES, f == WEFT_Q8_0 ? 0x80 : 0x88, panel_bytes(f, rank) - EX_SCALES);
    for (int r = 0; r < n_rows; r++, b += ldb) {
        ex_codes(f, b, factor, rank, ex_scale(panel, r), codes);
        for (int64_t i = 0; i < rank; i++) {
            uint8_t *to = panel + EX_SCALES + i / reg_ranks(f) * REG + 4 * r + i % 4;
            if (f == WEFT_Q8_0) *to = (uint8_t)(codes[i] + 128);
            else *to = (uint8_t)(i % 8 < 4 ? (*to & 0xF0) | (codes[i] + 8) : (*to & 0x0F) | (codes[i] + 8) << 4);
        }
    }
}

static size_t h_bytes(int64_t rank)
{
    return HEAD + (size_t)ex_groups(rank, 8) * 8;
}

/* Magnitudes are compared as integers, so that a NaN or an infinity wins; the scale shows it in the result. */
static void h_put(uint32_t f, const float *h, int64_t rank, uint8_t *to)
{
    uint32_t most = 0;
    __m256i sum = _mm256_setzero_si256();
    for (int64_t i = 0; i < rank; i++) {
        uint32_t bits = weft__f32_bits(h[i]) & 0x7FFFFFFF;
        most = bits > most ? bits : most;
    }
    float amax = weft__f32_from_bits(most), scale = most < 0x7F800000 ? amax / 127 : NAN;
    double inverse = amax > 0 && most < 0x7F800000 ? 127.0 / amax : 0;
    memset(to + HEAD, 0, h_bytes(rank) - HEAD);
    for (int64_t i = 0; i < rank && inverse > 0; i += 8) {
        __m256 x = _mm256_maskz_loadu_ps((__mmask8)(rank - i < 8 ? (1 << (rank - i)) - 1 : 255), h + i);
        __m256i c = _mm512_cvtpd_epi32(_mm512_mul_pd(_mm512_cvtps_pd(x), _mm512_set1_pd(inverse)));
        _mm_storel_epi64((__m128i *)(to + HEAD + i), _mm256_cvtepi32_epi8(c));
        sum = _mm256_add_epi32(sum, c);
    }
    __m128i half = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
    half = _mm_hadd_epi32(half, half);
    int32_t bias = (f == WEFT_Q8_0 ? -128 : -8) * _mm_cvtsi128_si32(_mm_hadd_epi32(half, half));
    memcpy(to, &scale, sizeof scale);
    memcpy(to + 4, &bias, sizeof bias);
}

/* One panel times n_rows rows, all 16 outputs or n. */
MM_INLINE void one_panel(uint32_t f, int n_rows, const uint8_t *panel, int64_t n_regs, const void *const *h, float *const *y,
                         int64_t at, int n)
{
    vi low[TOGETHER], high[TOGETHER];
    UNROLL for (int t = 0; t < n_rows; t++)
    {
        low[t] = vi_word((const uint8_t *)h[t] + 4);
        high[t] = _mm512_setzero_si512();
    }
    for (int64_t i = 0; i < n_regs; i++) {
        vi w = vi_load(panel + EX_SCALES + i * REG);
        UNROLL for (int t = 0; t < n_rows; t++)
        {
            const uint8_t *codes = (const uint8_t *)h[t] + HEAD + i * reg_ranks(f);
            if (f == WEFT_Q8_0) {
                low[t] = mm_dot_word(low[t], w, codes);
            } else {
                low[t] = mm_dot_word(low[t], vi_and(w, vi_bytes(0x0F)), codes);
                high[t] = mm_dot_word(high[t], vi_and(w, vi_bytes(0xF0)), codes + 4); /* sixteen times the codes */
            }
        }
    }
    vf scale = vf_load_eighths(panel, 0);
    UNROLL for (int t = 0; t < n_rows; t++)
    {
        if (f != WEFT_Q8_0) low[t] = vi_add32(low[t], _mm512_srai_epi32(high[t], 4)); /* exact */
        vf s = vf_mul(scale, vf_word(h[t])), x = vf_from_int(low[t]);
        if (n == WEFT__EXPAND_ROWS) {
            vf_store(y[t] + at, vf_fma(x, s, vf_load(y[t] + at)));
        } else {
            vf_store_part(y[t] + at, vf_fma(x, s, vf_load_part(y[t] + at, n)), n);
        }
    }
}

MM_INLINE void rows(uint32_t f, int n_rows, int64_t n_regs, const uint8_t *panel, int64_t n_out, const void *const *h,
                    float *const *y, const void *next)
{
    const size_t bytes = EX_SCALES + (size_t)n_regs * REG;
    const simd_next ahead = simd_next_of(panel, (size_t)ex_groups(n_out, WEFT__EXPAND_ROWS) * bytes, bytes, AHEAD, next);
    int64_t at = 0;
    for (; at + WEFT__EXPAND_ROWS <= n_out; at += WEFT__EXPAND_ROWS, panel += bytes) {
        const uintptr_t ask = simd_ask(&ahead, (uintptr_t)panel);
        for (size_t l = 0; l < bytes; l += 64) _mm_prefetch((const char *)(ask + l), _MM_HINT_T0);
        one_panel(f, n_rows, panel, n_regs, h, y, at, WEFT__EXPAND_ROWS);
    }
    if (at < n_out) one_panel(f, n_rows, panel, n_regs, h, y, at, (int)(n_out - at));
}

/* For usual ranks, 8, 16 and (4 bits) 32, the number of registers is a constant, and loops over it are unrolled. */
MM_INLINE void some_rows(uint32_t f, int n_rows, int64_t rank, const uint8_t *panel, int64_t n_out, const void *const *h,
                         float *const *y, const void *next)
{
    const int64_t n_regs = ex_groups(rank, reg_ranks(f));
    switch (n_regs) {
    case 1: rows(f, n_rows, 1, panel, n_out, h, y, next); break; /* 4 bits */
    case 2: rows(f, n_rows, 2, panel, n_out, h, y, next); break;
    case 4: rows(f, n_rows, 4, panel, n_out, h, y, next); break;
    default: rows(f, n_rows, n_regs, panel, n_out, h, y, next); break;
    }
}

MM_INLINE void run(uint32_t f, const void *panels, int64_t n_out, int64_t rank, const void *const *h, int m, float *const *y,
                   const void *next)
{
    for (; m > 0; m -= TOGETHER, h += TOGETHER, y += TOGETHER) {
        const void *then = m <= TOGETHER ? next : panels; /* else they are read once more */
        switch (m) {
        case 1: some_rows(f, 1, rank, panels, n_out, h, y, then); break;
        case 2: some_rows(f, 2, rank, panels, n_out, h, y, then); break;
        case 3: some_rows(f, 3, rank, panels, n_out, h, y, then); break;
        default: some_rows(f, 4, rank, panels, n_out, h, y, then); break;
        }
    }
}

#define EXPAND(format, id)                                                                                                       \
    static size_t id##_bytes(int64_t rank)                                                                                       \
    {                                                                                                                            \
        return panel_bytes(WEFT_##format, rank);                                                                                 \
    }                                                                                                                            \
    static void id##_pack(const float *b, int64_t ldb, float factor, int n_rows, int64_t rank, void *panel)                      \
    {                                                                                                                            \
        pack(WEFT_##format, b, ldb, factor, n_rows, rank, panel);                                                                \
    }                                                                                                                            \
    static void id##_put(const float *h, int64_t rank, void *to)                                                                 \
    {                                                                                                                            \
        h_put(WEFT_##format, h, rank, to);                                                                                       \
    }                                                                                                                            \
    static void id##_run(const void *panels, int64_t n_out, int64_t rank, const void *const *h, int m, float *const *y,          \
                         const void *next)                                                                                       \
    {                                                                                                                            \
        run(WEFT_##format, panels, n_out, rank, h, m, y, next);                                                                  \
    }                                                                                                                            \
    const weft__expand weft__expand_##id##_avx512vnni = {                                                                        \
        "expand_" #id "_avx512vnni", WEFT_##format, WEFT__TIER_AVX512VNNI, id##_bytes, id##_pack, h_bytes, id##_put, id##_run};

EXPAND(Q8_0, q8_0)
EXPAND(Q4_0, q4_0)
