/* matmul_quant.h: products of quantized weights and 8-bit activations, for any vector tier (layouts: matmul_layout.h).
 *
 * The including file has included its tier's matmul_vec.h, which gives registers (vi, of MM_R rows of four bytes; vf, of MM_R
 * floats) and says by MM_DOT32 how bytes are multiplied. Every function here is inlined with constant format, half and number of
 * rows, so what reads as a decision is none at run time; of one row alone, only its place in its tile is known then. One tile is one
 * panel of weights by 1 to 8 rows of activations.
 *
 * Integer part. The sum of 32 products (16 where scales are by 16) is exact, in one of three ways:
 *  - MM_DOT32: VPDPBUSD of unsigned codes, int32 throughout. Codes are taken times 2^mm_shift so that the offset of most formats
 *    becomes 128 and one bias serves all; the factor 2^-shift goes into the scale, exactly.
 *  - else, codes of up to six bits: VPMADDUBSW, whose int16 sums of two products are added as int16, then widened once. It
 *    saturates only beyond 32767 and the largest is 63 * 127 * 2 = 16002. The additions wrap, so only the end matters:
 *      with a bias the end is the sum of (code - offset) * activation: 4 bits, 16 products <= 8 * 127 * 16 = 16256;
 *      5 bits, 16 products <= 16 * 127 * 16 = 32512; 6 bits, 8 products <= 32 * 127 * 8 = 32512 (and so for Q3_K, codes times 8);
 *      without (formats with a minimum): 4 bits, 16 products <= 15 * 127 * 16 = 30480; 5 bits, 8 products <= 31 * 127 * 8 = 31496;
 *      2 bits, 8 products <= 3 * 127 * 8 = 3048.
 *  - else, codes of eight bits: the sign of the weight goes to the activation, VPMADDUBSW of |w| <= 128 gives at most
 *    128 * 127 * 2 = 32512, widened each time.
 *  These bounds hold for every code that a file can hold and activation codes in [-127, 127]. A row that holds NaN or infinity may
 *  have other codes and wrong sums: its scale is NaN or infinite, and so is the result.
 * Float part. Per 32 inputs, in order of k: acc = fma(sum, scale_w * scale_a, acc), or with scales by 16
 *  acc = fma(fma(sum1, scale1, sum0 * scale0), scale_a, acc); a minimum is one more fma with the sum of the activations: in formats
 *  of 32 elements behind the products, in those of 256 behind the span, so that a minimum is loaded once for all rows of a tile.
 *  Where scales by 16 are small integers times d (mm_small_scales), those integers belong to the exact part: 32 products come to
 *  x = scale0 * sum0 + scale1 * sum1, below 2^24, part = fma(x, scale_a, part), and behind the span acc = fma(part, d, acc).
 *  The sequence depends on nothing but the format, so every number of rows gives the same bits. */
#ifndef WEFT_KERNELS_SIMD_MATMUL_QUANT_H
#define WEFT_KERNELS_SIMD_MATMUL_QUANT_H

#include "kernels/kernels.h"
#include "kernels/simd/matmul_layout.h"
#include "kernels/simd/next.h"
#include "kernels/simd/unroll.h"
#include "quant/blocks.h"

#if MM_DOT32
/* Its units and its own prefetching differ from those of other processors with VPDPBUSD, and some products are taken otherwise there. */
MM_INLINE int mm_is_zen4(void)
{
    return __builtin_cpu_is("amdfam19h");
}
#endif

/* Are two panels multiplied at once? (AVX-512 without VPDPBUSD could, as AVX2 does: nobody has measured it.) */
#ifndef MM_TWO
#define MM_TWO MM_DOT32
#endif

#ifndef MM_CHUNK_BYTES
#define MM_CHUNK_BYTES WEFT__ACT_CHUNK_BYTES
#endif

enum {
    MM_CHUNK_ROWS = 256, /* rows at most that share the fetching of a panel */
    MM_BLOCK_STEPS = 32  /* steps of a block: 2048 inputs */
};

/* Are scales of 16 inputs integers so small that a code times its scale is one of eight bits? Q2_K: 3 * 15; Q3_K: -124 to 128. */
MM_INLINE int mm_small_scales(int f)
{
    return MM_DOT32 && (f == WEFT_Q2_K || f == WEFT_Q3_K);
}

/* ---- codes ------------------------------------------------------------------------------------------------------------------- */

/* Codes of eight bits that are signed here. */
MM_INLINE int mm_is_signed(int f)
{
    return !MM_DOT32 && (f == WEFT_Q8_0 || f == WEFT_IQ4_NL || f == WEFT_IQ4_XS);
}

/* Codes of half h come times 2^shift. */
MM_INLINE int mm_shift(int f, int h)
{
    switch (f) {
    case WEFT_Q4_0:
    case WEFT_Q4_1:
    case WEFT_Q4_K: return MM_DOT32 && h ? 4 : 0;
    case WEFT_Q5_0:
    case WEFT_Q5_1:
    case WEFT_Q5_K: return MM_DOT32 ? 3 : 0;
    case WEFT_Q6_K: return MM_DOT32 ? 2 : 0;
    case WEFT_Q3_K: return MM_DOT32 ? 5 : 3;
    default: return 0;
    }
}

/* x with bit `from` moved to bit `to`; bits of neighbouring bytes come in. */
MM_INLINE vi mm_move(vi x, int from, int to)
{
    return to > from ? vi_left(x, to - from) : to < from ? vi_right(x, from - to) : x;
}

MM_INLINE vi mm_field(vi x, int from, int bits, int to)
{
    return vi_and(mm_move(x, from, to), vi_bytes(((1 << bits) - 1) << to));
}

MM_INLINE vi mm_or_field(vi a, vi x, int from, int bits, int to)
{
    return vi_or_and(a, mm_move(x, from, to), vi_bytes(((1 << bits) - 1) << to));
}

/* Codes of group g of half h; c points at the step. */
MM_INLINE vi mm_code(int f, const uint8_t *c, int h, int g)
{
    const int to = mm_shift(f, h);
    switch (f) {
    case WEFT_Q8_0: {
        vi w = vi_load(c + (8 * h + g) * MM_REG);
        return MM_DOT32 ? w : vi_xor(w, vi_bytes(0x80));
    }
    case WEFT_Q2_K: return mm_field(vi_load(c + (2 * h + g / 4) * MM_REG), 2 * (g % 4), 2, to);
    case WEFT_Q3_K: {
        vi w = mm_field(vi_load(c + (2 + 2 * h + g / 4) * MM_REG), 2 * (g % 4), 2, to);
        return mm_or_field(w, vi_load(c + h * MM_REG), g, 1, to + 2);
    }
    default: break;
    }
    const vi nibbles = vi_load(c + (mm_plane_regs(f) + g) * MM_REG);
    switch (f) {
    case WEFT_IQ4_NL:
    case WEFT_IQ4_XS: {
        vi table = vi_table(weft__iq4_values);
        if (MM_DOT32) table = vi_xor(table, vi_bytes(0x80));
        return vi_lookup(table, mm_field(nibbles, 4 * h, 4, 0));
    }
    case WEFT_Q5_0:
    case WEFT_Q5_1:
    case WEFT_Q5_K: return mm_or_field(mm_field(nibbles, 4 * h, 4, to + 1), vi_load(c + h * MM_REG), g, 1, to);
    case WEFT_Q6_K:
        return mm_or_field(mm_field(nibbles, 4 * h, 4, to + 2), vi_load(c + (2 * h + g / 4) * MM_REG), 2 * (g % 4), 2, to);
    default:
        /* One mask for both halves, as registers are scarce where two panels are multiplied. */
        return to == 4 ? vi_and_not(vi_bytes(0x0F), nibbles) : mm_field(nibbles, 4 * h, 4, to);
    }
}

/* ---- scales ------------------------------------------------------------------------------------------------------------------ */

typedef struct mm_head {
    vf d[2]; /* 256-element formats: d * 2^-shift for each half; mm_small_scales: d */
    vf m;    /* -dmin */
} mm_head;

typedef struct mm_scales {
    vf d[2]; /* of 32 inputs, or of each 16; mm_small_scales: their integers * 2^-shift */
    vf m[2];
} mm_scales;

/* Exact. Not a multiplication, where the multipliers are the limit. */
MM_INLINE vf mm_unshift(int f, int h, vf d)
{
    const int shift = mm_shift(f, h);
    return shift ? vf_ldexp(d, vf_set((float)-shift)) : d;
}

MM_INLINE void mm_load_head(int f, const uint8_t *head, mm_head *o)
{
    if (!mm_is_256(f)) return;
    vf d = vf_load_f16((const uint16_t *)head);
    o->d[0] = mm_small_scales(f) ? d : mm_unshift(f, 0, d);
    o->d[1] = mm_small_scales(f) ? d : mm_unshift(f, 1, d);
    if (mm_has_min(f)) o->m = vf_mul(vf_load_f16((const uint16_t *)(head + 2 * MM_R)), vf_set(-1.0f));
}

/* The scales of quarter i of half h of step s, a byte for each row, in formats with scales by 16. */
MM_INLINE const uint8_t *mm_scales_by_16(int f, const uint8_t *head, int64_t s, int h, int i)
{
    return head + ((mm_has_min(f) ? 4 : 2) + 2 * (2 * s + h) + i) * MM_R;
}

/* Scales and minimums of half h of step s. */
MM_INLINE void mm_load_scales(int f, const uint8_t *head, const mm_head *hd, int64_t s, int h, mm_scales *o)
{
    if (!mm_is_256(f)) {
        o->d[0] = mm_unshift(f, h, vf_load_f16((const uint16_t *)(head + 2 * MM_R * h)));
        if (mm_has_min(f)) o->m[0] = vf_load_f16((const uint16_t *)(head + 2 * MM_R * (2 + h)));
        return;
    }
    const uint8_t *sc = head + (mm_has_min(f) ? 4 : 2) * MM_R;
    const int64_t j = 2 * s + h;
    for (int i = 0; mm_by_16(f) && i < 2; i++) {
        const uint8_t *by_16 = mm_scales_by_16(f, head, s, h, i);
        const vf scale = f == WEFT_Q2_K ? vf_load_u4_low(by_16) : vf_load_s8(by_16);
        o->d[i] = mm_small_scales(f) ? mm_unshift(f, h, scale) : vf_mul(scale, hd->d[h]);
        if (f == WEFT_Q2_K) o->m[i] = vf_mul(vf_load_u4_high(by_16), hd->m);
    }
    if (f == WEFT_IQ4_XS) o->d[0] = vf_mul(vf_load_s8(sc + j * MM_R), hd->d[h]);
    if (f == WEFT_Q4_K || f == WEFT_Q5_K) {
        o->d[0] = vf_mul(vf_load_u8(sc + j * MM_R), hd->d[h]);
        o->m[0] = vf_mul(vf_load_u8(sc + (8 + j) * MM_R), hd->m);
    }
}

/* ---- sums of products -------------------------------------------------------------------------------------------------------- */

/* How many sums the 32 products are split into. */
MM_INLINE int mm_parts(int f)
{
    return mm_by_16(f) || (!MM_DOT32 && (f == WEFT_Q5_1 || f == WEFT_Q5_K)) ? 2 : 1;
}

/* Are minimums added with the products of their inputs, or behind the span? */
MM_INLINE int mm_min_with_products(int f)
{
    return mm_has_min(f) && !mm_is_256(f);
}

MM_INLINE int mm_min_with_span(int f)
{
    return mm_has_min(f) && mm_is_256(f);
}

/* The word at which a sum starts, or NULL where it starts at zero; part p of half h of row t of T. */
MM_INLINE const uint8_t *mm_bias_of(int f, const uint8_t *a, int h, int n_rows, int t, int p)
{
    switch (f) {
    case WEFT_Q4_0: return a + (MM_DOT32 && h ? mm_bias32_at(n_rows) : mm_bias8_at(n_rows)) + 4 * (2 * t + h);
    case WEFT_Q5_0: return a + mm_bias32_at(n_rows) + 4 * (2 * t + h);
    case WEFT_Q8_0:
    case WEFT_IQ4_NL:
    case WEFT_IQ4_XS: return MM_DOT32 ? a + mm_bias32_at(n_rows) + 4 * (2 * t + h) : NULL;
    case WEFT_Q3_K:
    case WEFT_Q6_K: return a + mm_bias16_at(n_rows) + 4 * (4 * t + 2 * h + p);
    default: return NULL;
    }
}

/* Minimums of half a step. */
MM_INLINE int mm_mins(int f)
{
    return mm_by_16(f) ? 2 : 1;
}

/* The word that minimum i of half h is taken times: row t of n_rows. */
MM_INLINE const uint8_t *mm_sum_of(int f, const uint8_t *a, int h, int n_rows, int t, int i)
{
    return mm_by_16(f) ? a + mm_sum16_at(n_rows) + 4 * (4 * t + 2 * h + i) : a + mm_sum32_at(n_rows) + 4 * (2 * t + h);
}

#if !MM_DOT32
/* acc + products of the four codes per row in w and in x. `fresh`: acc is zero. */
MM_INLINE vi mm_dot_reg(int f, vi acc, int fresh, vi w, vi x)
{
    if (mm_is_signed(f)) {
        const vi pairs = mm_sum_pairs(mm_mul_pairs_signed(w, x));
        return vi_keep(fresh ? pairs : vi_add32(acc, pairs));
    }
    const vi pairs = mm_mul_pairs(w, x);
    return vi_keep(fresh ? pairs : mm_add16(acc, pairs));
}
#endif

/* The same with the word at a. */
MM_INLINE vi mm_dot(int f, vi acc, int fresh, vi w, const uint8_t *a)
{
#if MM_DOT32
    (void)f, (void)fresh;
    return mm_dot_word(acc, w, a);
#else
    return mm_dot_reg(f, acc, fresh, w, vi_word(a));
#endif
}

/* int32 sums from what mm_dot left. */
MM_INLINE vi mm_dot_end(int f, vi acc)
{
    return MM_DOT32 || mm_is_signed(f) ? acc : mm_sum_pairs(acc);
}

/* Lines that are asked for, by a step or at once, from `at` on; NULL: none. */
typedef struct mm_asks {
    const char *at;
    int lines;
} mm_asks;

/* The i-th sixteenth of them. Asked for at once, they fill the places where a core keeps what it waits for, and what is multiplied next waits
 * behind them. (Of a step's time on a Zen 5, memory at 50 and at 80 GB/s: Q4_0, 2 rows 98 and 96 %, 4 rows 93 and 97, 6 rows 89; 4 rows of
 * Q8_0 93 and 88; Q6_K, 1 row 90 and 89.) */
MM_INLINE void mm_ask(mm_asks asks, int i)
{
    const int first = (i * asks.lines + 15) / 16;
    if (!asks.at) return;
    simd_fence();
    UNROLL for (int l = first; l < first + 2; l++) /* a step has at most 17 */
    {
        if (16 * l < (i + 1) * asks.lines) _mm_prefetch(asks.at + 64 * l, _MM_HINT_T1);
    }
}

/* Are both halves of a step taken side by side? A register of nibbles is loaded once then, and there are twice as many sums to hide latency; at
 * most four rows have registers for that. (Of a step's time on a Zen 5, memory at 46 and 77 GB/s: Q4_K, 1 row 96 and 98 %, 4 rows 98; Q4_0,
 * 1 row 99 and 99, 2 rows 98, 4 rows 99 and 98. Of Q8_0, whose halves lie apart, 104 to 127.) */
MM_INLINE int mm_takes_both(int f, int n)
{
    return MM_DOT32 && mm_parts(f) == 1 && mm_step_regs(f) < 16 && n <= 4;
}

/* Rows t0..t0+n-1 of a tile of n_rows: adds 32 products of half h of a step to their acc (mm_small_scales: the span's part), or those of its
 * `halves` halves from h on, each with scales of its own. w: the codes of one half; NULL: they are made of the step at c as they are wanted.
 * Four rows side by side hide the latency of the multipliers. */
MM_INLINE void mm_half_rows(int f, int h, int halves, int n_rows, int t0, int n, const uint8_t *c, const vi *w,
                            const mm_scales *sc, mm_asks asks, const uint8_t *a, vf *acc)
{
    const int parts = mm_parts(f);
    vi sum[4][2]; /* of parts, or of halves */
    UNROLL for (int i = 0; i < halves; i++)
    {
        UNROLL for (int t = 0; t < n; t++)
        {
            UNROLL for (int p = 0; p < parts; p++)
            {
                const uint8_t *bias = mm_bias_of(f, a, h + i, n_rows, t0 + t, p);
                sum[t][i + p] = bias ? vi_word(bias) : (vi){0};
            }
        }
    }
    UNROLL for (int g = 0; g < 8; g++)
    {
        UNROLL for (int i = 0; i < halves; i++)
        {
            const int p = parts == 2 ? g / 4 : 0, fresh = g == (p ? 4 : 0) && !mm_bias_of(f, a, h + i, n_rows, 0, 0);
            mm_ask(asks, halves * (8 * h + g) + i);
            const vi code = w ? w[g] : mm_code(f, c, h + i, g);
            UNROLL for (int t = 0; t < n; t++)
            {
                sum[t][i + p] = mm_dot(f, sum[t][i + p], fresh, code, a + 64 * (t0 + t) + 32 * (h + i) + 4 * g);
            }
        }
    }
    UNROLL for (int i = 0; i < halves; i++, sc++)
    {
        UNROLL for (int t = 0; t < n; t++)
        {
            const int r = t0 + t;
            vf scale = vf_word(a + mm_scale_at(n_rows) + 4 * (2 * r + h + i));
            vi first = mm_dot_end(f, sum[t][i]);
            if (mm_by_16(f)) {
                vf x = vf_mul(vf_from_int(first), sc->d[0]);
                x = vf_fma(vf_from_int(mm_dot_end(f, sum[t][1])), sc->d[1], x);
                acc[t] = vf_fma(x, scale, acc[t]);
            } else {
                if (parts == 2) first = vi_add32(first, mm_dot_end(f, sum[t][1]));
                acc[t] = vf_fma(vf_from_int(first), vf_mul(sc->d[0], scale), acc[t]);
            }
            if (mm_min_with_products(f)) {
                acc[t] = vf_fma(sc->m[0], vf_word(mm_sum_of(f, a, h + i, n_rows, r, 0)), acc[t]);
            }
        }
    }
}

/* Rows t0..t0+n-1 of a tile of n_rows, half h of a step: adds its minimum i to acc. */
MM_INLINE void mm_add_min(int f, int h, int i, int n_rows, int t0, int n, vf m, const uint8_t *a, vf *acc)
{
    UNROLL for (int t = 0; t < n; t++) acc[t] = vf_fma(m, vf_word(mm_sum_of(f, a, h, n_rows, t0 + t, i)), acc[t]);
}

/* Those of a span whose first step is at a. */
MM_INLINE void mm_span_mins(int f, int n_rows, int t0, int n, const uint8_t *head, const mm_head *hd, const uint8_t *a, vf *acc)
{
    for (int s = 0; s < mm_steps(f); s++, a += n_rows * MM_ROW_STEP) {
        UNROLL for (int h = 0; h < 2; h++)
        {
            mm_scales sc;
            mm_load_scales(f, head, hd, s, h, &sc);
            UNROLL for (int i = 0; i < mm_mins(f); i++) mm_add_min(f, h, i, n_rows, t0, n, sc.m[i], a, acc);
        }
    }
}

/* ---- tiles ------------------------------------------------------------------------------------------------------------------- */

/* Lines are fetched into the second level this far ahead, bytes. Measured: where every second line is asked for, those that come too early
 * meet others that the processor fetches by itself, the more so where activations come from the second level, too (Q4_K with 5,632 inputs:
 * 4096 costs a third); where multiplying takes a part of the time, its own prefetching gives up and all must be fetched, from far (512 costs
 * 20 % to half). Fetching weights into the first level helps nowhere. In AVX2 one row of Q4_0 gains 3 % by twice that (Zen 3), others and
 * more rows neither gain nor lose. */
enum { MM_NEAR = 3072, MM_LIGHT = 5632, MM_FAR = 8192, MM_FARTHER = 16384 };

/* Is so little to be done with each line that reading takes nearly all of the time? So it is where codes are whole nibbles or bytes, and
 * a register of them is multiplied twice at most. (Of the others, one row of Q5_0 and Q6_K is asked for best from far, as many rows are:
 * 80 % of a pure read for 45 and 63; Q2_K and Q3_K are the same either way.) */
MM_INLINE int mm_is_light(int f, int64_t n_rows)
{
    return MM_R == 16 && mm_step_regs(f) % 8 == 0 && 8 * n_rows <= mm_step_regs(f);
}

/* How the lines of a step are asked for. */
enum {
    MM_ASK_ALL, /* at once */
    MM_ASK_SECOND, /* every second one: where the processor's own prefetching keeps up, ours only has to lead it over the ends of pages */
    MM_ASK_APART /* one by one, between products (mm_ask) */
};

/* In AVX2 to ask one by one gains nothing: there multiplying is the limit, and every instruction counts. `led`: mm_is_led. */
MM_INLINE int mm_asking(int f, int n_rows, int led)
{
    if (led && mm_is_light(f, n_rows)) return MM_ASK_SECOND;
    return MM_DOT32 ? MM_ASK_APART : MM_ASK_ALL;
}

/* Does this processor's own prefetching keep up with light rows? A Zen 4's does, and to ask for every line takes places that its
 * requests want (66 GB/s, every line and every second one, of a pure read: Q4_0 56 and 92 %, Q4_K 63 and 93 %, Q4_1 74 and 95, IQ4_XS 83
 * and 92). A Zen 5 at 50 and at 81 GB/s reaches of what can be read with every second line, MM_NEAR ahead, and with every one, MM_LIGHT
 * ahead and one by one: Q4_0 96 and 98 %, 83 and 89 %; Q4_K 92 and 94 %, 78 and 85 %; Q8_0 97 % at 50 GB/s either way. A Granite Rapids at
 * 30 GB/s: Q8_0 85 and 93 %. */
MM_INLINE int mm_is_led(void)
{
#if MM_DOT32
    return mm_is_zen4();
#else
    return 1;
#endif
}

MM_INLINE int mm_ahead(int f, int64_t n_rows)
{
    if (!mm_is_light(f, n_rows)) return MM_R == 8 && n_rows == 1 ? MM_FARTHER : MM_FAR;
    return mm_asking(f, (int)n_rows, mm_is_led()) == MM_ASK_SECOND ? MM_NEAR : MM_LIGHT;
}

/* Of n_bytes of panels for m rows. next: what is read behind them; NULL: what lies there is asked for. */
static inline simd_next mm_next_of(int f, const uint8_t *panels, size_t n_bytes, int64_t m, const uint8_t *next)
{
    if (next) return simd_next_of(panels, n_bytes, (size_t)mm_span_bytes(f, MM_R), (size_t)mm_ahead(f, m), next);
    return (simd_next){.distance = (size_t)mm_ahead(f, m), .end = UINTPTR_MAX};
}

MM_INLINE void mm_half(int f, int h, int n_rows, int t0, int n, const uint8_t *c, const mm_scales *sc, mm_asks asks,
                       const uint8_t *a, vf *acc)
{
    const mm_asks none = {NULL, 0};
    vi w[8];
    UNROLL for (int g = 0; g < 8; g++) w[g] = mm_code(f, c, h, g);
    mm_half_rows(f, h, 1, n_rows, t0, n < 4 ? n : 4, c, w, sc, asks, a, acc);
    if (n > 4) mm_half_rows(f, h, 1, n_rows, t0 + 4, n - 4, c, w, sc, none, a, acc + 4);
}

/* The next step of activations, into the first level: where a panel is larger than that, they have left it when the next panel
 * wants them. (Zen 4 at 66 GB/s, of a pure read: Q4_K with 5,632 inputs 65 and 75 %, Q8_0 85 and 92 %; two steps ahead gain half. A Zen 5, where
 * lines are asked for one by one, is slower with it: Q4_K, one row, 101 % at 81 GB/s.) */
MM_INLINE void mm_fetch_step(const uint8_t *a, int n_rows)
{
    UNROLL for (int i = 0; i < n_rows * MM_ROW_STEP; i += 64) _mm_prefetch((const char *)a + i, _MM_HINT_T0);
}

/* The lines at `out` are soon written: the tile is multiplied while they come. Measured: waiting for them cost a tenth of a prompt's
 * time. */
MM_INLINE void mm_fetch_outputs(const float *out, int64_t ldo, int n_rows, int n_out)
{
    for (int t = 0; t < n_rows; t++, out += ldo)
        for (int i = 0; i < n_out; i += 16) simd_own(out + i);
}

/* One panel times rows t0..t0+n-1 of a tile of n_rows: all of them, or one; writes n_out <= MM_R outputs of each. next: how a panel that
 * comes from memory is asked for, and with it the activations that it pushes out, if they are all of the tile's; NULL where it does not.
 * asking: how, MM_ASK_. */
MM_INLINE void mm_tile_asking(int f, int n_rows, int t0, int n, int asking, const uint8_t *w, int64_t n_spans, const uint8_t *a,
                              const simd_next *next, int n_out, float *out, int64_t ldo)
{
    const int steps = mm_steps(f), step_bytes = mm_step_regs(f) * MM_REG, span_bytes = mm_span_bytes(f, MM_R),
              lines = (span_bytes / steps + 63) / 64, spread = asking == MM_ASK_APART;
    const uint8_t *const first = a;
    vf acc[MM_TILE], part[MM_TILE];
    if (n == MM_TILE) mm_fetch_outputs(out, ldo, n, 1);
    UNROLL for (int t = 0; t < n; t++) acc[t] = vf_zero();
    for (int64_t i = 0; i < n_spans; i++, w += span_bytes) {
        mm_head hd;
        mm_load_head(f, w, &hd);
        UNROLL for (int t = 0; t < n; t++) part[t] = vf_zero();
        const uint8_t *c = w + mm_head_row(f) * MM_R;
        /* Where nothing is asked for ahead (run_ahead), the distance is a constant. */
        const uintptr_t ask = !next ? 0 : MM_DOT32 ? simd_ask(next, (uintptr_t)w) : (uintptr_t)w + (uintptr_t)mm_ahead(f, n);
        for (int64_t s = 0; s < steps; s++, c += step_bytes, a += n_rows * MM_ROW_STEP) {
            const char *const at = (const char *)ask + s * lines * 64;
            const mm_asks asks = {next && spread ? at : NULL, lines};
            if (next && asking == MM_ASK_SECOND && n == n_rows)
                mm_fetch_step(i + 1 < n_spans || s + 1 < steps ? a + n * MM_ROW_STEP : first, n);
            if (next && !spread)
                UNROLL for (int l = 0; l < lines; l += asking == MM_ASK_SECOND ? 2 : 1) _mm_prefetch(at + 64 * l, _MM_HINT_T1);
            mm_scales sc[2];
            UNROLL for (int h = 0; h < 2; h++)
            {
                mm_load_scales(f, w, &hd, s, h, &sc[h]);
                if (!mm_takes_both(f, n)) mm_half(f, h, n_rows, t0, n, c, &sc[h], asks, a, mm_small_scales(f) ? part : acc);
            }
            if (mm_takes_both(f, n)) mm_half_rows(f, 0, 2, n_rows, t0, n, c, NULL, sc, asks, a, acc);
        }
        if (mm_small_scales(f)) {
            UNROLL for (int t = 0; t < n; t++) acc[t] = vf_fma(part[t], hd.d[0], acc[t]);
        }
        if (mm_min_with_span(f)) mm_span_mins(f, n_rows, t0, n, w, &hd, a - steps * n_rows * MM_ROW_STEP, acc);
    }
    UNROLL for (int t = 0; t < n; t++)
    {
        if (n_out >= MM_R) {
            vf_store(out + t * ldo, acc[t]);
        } else {
            vf_store_part(out + t * ldo, acc[t], n_out);
        }
    }
}

MM_INLINE void mm_tile(int f, int n_rows, int t0, int n, const uint8_t *w, int64_t n_spans, const uint8_t *a,
                       const simd_next *next, int n_out, float *out, int64_t ldo)
{
    if (mm_asking(f, n, 0) != mm_asking(f, n, 1) && mm_is_led()) {
        mm_tile_asking(f, n_rows, t0, n, mm_asking(f, n, 1), w, n_spans, a, next, n_out, out, ldo);
    } else {
        mm_tile_asking(f, n_rows, t0, n, mm_asking(f, n, 0), w, n_spans, a, next, n_out, out, ldo);
    }
}

/* ---- two panels at once -------------------------------------------------------------------------------------------------------- */

/* Products are taken MM_BLOCK_STEPS steps at a time, so that the activations of many rows stay in the second-level cache while the
 * panels pass by, however many inputs there are. A block of a matrix, for functions that take pairs of panels: */
typedef struct mm_block {
    const uint8_t *w;     /* of the first panel */
    const uint8_t *after; /* what comes behind the last pair, to fetch it */
    size_t stride;        /* between panels */
    int64_t n_spans;
    const uint8_t *act; /* of row 0; tiles are row_bytes * MM_TILE apart */
    int64_t row_bytes;
    int more;           /* sums go on from what is in out */
    weft__ahead *ahead; /* or NULL */
} mm_block;

static inline void mm_next_range(weft__ahead *ahead)
{
    if (ahead->n == 0) {
        ahead->lines = 0;
        return;
    }
    ahead->at = (uintptr_t)ahead->range->at & ~(uintptr_t)63;
    ahead->end = (uintptr_t)ahead->range->at + ahead->range->n;
    ahead->range++;
    ahead->n--;
}

/* A step's lines. (More of them after every few steps cost more.) */
MM_INLINE void mm_fetch_ahead(weft__ahead *ahead)
{
    const uintptr_t end = ahead->at + 64 * (uintptr_t)ahead->lines;
    for (; ahead->at < end; ahead->at += 64) _mm_prefetch((const char *)ahead->at, _MM_HINT_T1);
    if (end >= ahead->end) mm_next_range(ahead);
}

/* Spreads what is left to be asked for over n_steps, each with lines of one range; where there are hardly more steps than ranges, all of
 * it comes at once. */
static inline void mm_spread(weft__ahead *ahead, int64_t n_steps)
{
    const int64_t even = n_steps - ahead->n - 1; /* the last lines of a range are fewer */
    size_t lines = ahead->end > ahead->at ? (ahead->end - ahead->at + 63) / 64 : 0;
    if (n_steps <= 0) return;
    for (int i = 0; i < ahead->n; i++) lines += (ahead->range[i].n + 63) / 64 + 1; /* it may begin within a line */
    ahead->lines = (int)(even > 0 ? (lines + (size_t)even - 1) / (size_t)even : lines);
    if (ahead->at >= ahead->end) mm_next_range(ahead);
    while (even <= 0 && ahead->lines > 0) mm_fetch_ahead(ahead);
}
#if MM_TWO
#include "kernels/simd/matmul_two.h"
#endif
#if MM_DOT32
#include "kernels/simd/matmul_pair.h"
#include "kernels/simd/matmul_few.h"
#include "kernels/simd/matmul_wide.h"

/* Are panels taken apart for so many rows? */
MM_INLINE int mm_is_wide(int f, int64_t n_rows)
{
    return n_rows >= WIDE_ENOUGH && wide_better(f);
}

/* How often a tile's steps are gone over, while as often more is asked for. */
MM_INLINE int mm_passes(int f, int64_t n_rows)
{
    return mm_is_wide(f, n_rows) ? MM_TILE / PAIR_ROWS : pair_is_deep(f, n_rows >= WIDE_ENOUGH) ? 2 : 1;
}

/* Several full tiles times whole pairs of panels; no outputs where panel by panel is faster: what is prepared of a format with
 * minimums or scales by 16 must serve enough rows (16 rows of Q4_K and Q5_K lost a tenth). Each way is a function of its own: where they
 * share one, the compiler stores sums that it has registers for. */
#define MM_PAIRS_FN(f, name)                                                                                                     \
    MM_PAIRS_BY(name##_narrow, pair_run(f, end - c >= WIDE_ENOUGH, b, n_out, c, end, out, ldo))                                  \
    MM_PAIRS_BY(name##_wide, wide_run(f, b, n_out, c, end, out, ldo))                                                            \
    static int64_t name##_pairs(const mm_block *b, int64_t n_out, int64_t c, int64_t end, float *out, int64_t ldo)               \
    {                                                                                                                            \
        if (mm_is_wide(f, end - c)) return name##_wide(b, n_out, c, end, out, ldo);                                              \
        if (end - c < WIDE_ENOUGH && (mm_has_min(f) || mm_by_16(f))) return 0;                                                   \
        return name##_narrow(b, n_out, c, end, out, ldo);                                                                        \
    }
#define MM_PAIRS_BY(name, call)                                                                                                  \
    static __attribute__((noinline)) int64_t name(const mm_block *b, int64_t n_out, int64_t c, int64_t end, float *out,          \
                                                  int64_t ldo)                                                                   \
    {                                                                                                                            \
        return call;                                                                                                             \
    }
#define MM_PAIRS(f, name) name##_pairs
#define MM_FEW_FN(f, name, n_rows)                                                                                               \
    static void name##_few_##n_rows(const uint8_t *w, size_t stride, int64_t n_spans, const uint8_t *a, const uint8_t *then,     \
                                    float *out, int64_t ldo)                                                                     \
    {                                                                                                                            \
        if (few_has(f)) few_tile(f, n_rows, w, stride, n_spans, a, then, out, ldo);                                              \
    }
#define MM_FEWS_FN(f, name)                                                                                                      \
    MM_FEW_FN(f, name, 1)                                                                                                        \
    MM_FEW_FN(f, name, 2)                                                                                                        \
    MM_FEW_FN(f, name, 3)                                                                                                        \
    MM_FEW_FN(f, name, 4)                                                                                                        \
    MM_FEW_FN(f, name, 5)                                                                                                        \
    MM_FEW_FN(f, name, 6)                                                                                                        \
    MM_FEW_FN(f, name, 7)                                                                                                        \
    MM_FEW_FN(f, name, 8)                                                                                                        \
    static const mm_few_fn name##_few[MM_TILE] = {name##_few_1, name##_few_2, name##_few_3, name##_few_4,                        \
                                                  name##_few_5, name##_few_6, name##_few_7, name##_few_8};
#define MM_FEWS(f, name) (few_has(f) && !mm_is_zen4() ? name##_few : NULL)
#else
#define MM_FEWS_FN(f, name)
#define MM_FEWS(f, name) NULL
enum { FEW_ENOUGH, FEW_REST };
MM_INLINE int mm_passes(int f, int64_t n_rows)
{
    (void)f, (void)n_rows;
    return 1;
}
#if MM_TWO
#include "kernels/simd/matmul_wide.h"

#define MM_PAIRS_FN(f, name)                                                                                                     \
    static int64_t name##_pairs(const mm_block *b, int64_t n_out, int64_t c, int64_t end, float *out, int64_t ldo)               \
    {                                                                                                                            \
        return wide_run(f, b, n_out, c, end, out, ldo);                                                                          \
    }
#define MM_PAIRS(f, name) (wide_better(f) ? name##_pairs : NULL)
#else
#define MM_PAIRS_FN(f, name)
#define MM_PAIRS(f, name) NULL
#endif
#endif

typedef int64_t (*mm_pairs_fn)(const mm_block *b, int64_t n_out, int64_t c, int64_t end, float *out, int64_t ldo);
typedef void (*mm_few_fn)(const uint8_t *w, size_t stride, int64_t n_spans, const uint8_t *a, const uint8_t *then, float *out,
                          int64_t ldo);
typedef void (*mm_tile_fn)(const uint8_t *w, int64_t n_spans, const uint8_t *a, const simd_next *next, int n_out, float *out,
                           int64_t ldo);

/* Rows whose activations stay in the second-level cache while panels pass by. */
MM_INLINE int64_t mm_chunk_rows(int64_t bytes_per_row)
{
    int64_t rows = MM_CHUNK_BYTES / bytes_per_row / MM_TILE * MM_TILE;
    return rows < MM_TILE ? MM_TILE : rows > MM_CHUNK_ROWS ? MM_CHUNK_ROWS : rows;
}

/* All blocks of a matrix with rows [c, end), full tiles, by `some`, which takes so many panels together. Returns how many outputs were
 * computed. */
static inline int64_t mm_run_blocks(int f, mm_pairs_fn some, int together, const uint8_t *panels, size_t stride, int64_t n_out,
                                    int64_t n_spans, const uint8_t *act, int64_t c, int64_t end, float *out, int64_t ldo,
                                    weft__ahead *ahead)
{
    const int64_t at_once = MM_BLOCK_STEPS / mm_steps(f), span_bytes = mm_span_bytes(f, MM_R);
    const int64_t taken = together == 1 ? (n_out + MM_R - 1) / MM_R : n_out / (together * MM_R) * together; /* panels */
    const uint8_t *end_of_panels = panels + (size_t)taken * stride;
    int64_t done = 0;
    if (ahead) mm_spread(ahead, taken / together * ((end - c) / MM_TILE) * n_spans * mm_steps(f) * mm_passes(f, end - c));
    for (int64_t s = 0; s < n_spans; s += at_once) {
        const int last = s + at_once >= n_spans;
        const mm_block b = {.w = panels + s * span_bytes,
                            .after = last ? end_of_panels : panels + (s + at_once) * span_bytes,
                            .stride = stride,
                            .n_spans = last ? n_spans - s : at_once,
                            .act = act + s * mm_steps(f) * MM_TILE * MM_ROW_STEP,
                            .row_bytes = n_spans * mm_steps(f) * MM_ROW_STEP,
                            .more = s > 0,
                            .ahead = ahead};
        done = some(&b, n_out, c, end, out, ldo);
    }
    return done;
}

/* weft__matmul.run: chunk of rows, then block, then pair of panels, then tile; what pairs leave over, and everything where there is
 * no such function, chunk by panel by tile, or by two panels. tiles[n - 1] and few[n - 1], or NULL, serve n rows; pairs, full tiles where a
 * chunk has two, which share the fetching of a pair. */
static inline void mm_run(int f, const mm_tile_fn *tiles, const mm_few_fn *few, mm_pairs_fn pairs, const void *panels,
                          size_t stride, int64_t n_out, int64_t k, const void *act, int64_t m, float *out, int64_t ldo,
                          weft__ahead *ahead)
{
    enum { ENOUGH = 2 * MM_TILE };
    const int64_t n_steps = mm_act_steps(k), row_bytes = n_steps * MM_ROW_STEP, n_spans = mm_spans(f, k);
    const int64_t chunk = mm_chunk_rows(pairs && n_steps > MM_BLOCK_STEPS ? MM_BLOCK_STEPS * MM_ROW_STEP : row_bytes);
    const size_t n_bytes = (size_t)((n_out + MM_R - 1) / MM_R) * stride;
    const uint8_t *asked = ahead && ahead->n && m < ENOUGH ? ahead->range->at : NULL;
    const simd_next next = mm_next_of(f, panels, n_bytes, m, asked);
    if (ahead) ahead->at = ahead->end = 0, ahead->lines = 0;
    for (int64_t c = 0; c < m; c += chunk) {
        const int64_t end = m - c < chunk ? m : c + chunk, full = c + (end - c) / MM_TILE * MM_TILE;
        int64_t paired = 0; /* outputs whose full tiles are done */
        if (pairs && end - c >= ENOUGH)
            paired = mm_run_blocks(f, pairs, 2, panels, stride, n_out, n_spans, act, c, full, out, ldo, ahead);
        const uint8_t *w = panels;
        for (int64_t n = 0, outs; n < n_out; n += outs, w += (outs + MM_R - 1) / MM_R * (int64_t)stride) {
            const int64_t first = n < paired ? full : c;
            const int two = few && n + 2 * MM_R <= n_out && end - first >= (first > c ? FEW_REST : FEW_ENOUGH);
            outs = two ? 2 * MM_R : n_out - n < MM_R ? n_out - n : MM_R;
            for (int l = 0; two && asked && n + outs == n_out && l < MM_NEAR; l += 64)
                _mm_prefetch((const char *)asked + l, _MM_HINT_T1);
            for (int64_t i = first; i < end; i += MM_TILE) {
                const uint8_t *a = (const uint8_t *)act + i * row_bytes;
                const int rows = mm_tile_rows(i, m), comes = i == first;
                if (two) few[rows - 1](w, stride, n_spans, a, comes ? w + 2 * stride : NULL, out + i * ldo + n, ldo);
                else tiles[rows - 1](w, n_spans, a, comes ? &next : NULL, (int)outs, out + i * ldo + n, ldo);
            }
        }
    }
}

/* Row t of a tile of n_rows. */
typedef void (*mm_row_fn)(int n_rows, int t, const uint8_t *w, int64_t n_spans, const uint8_t *a, const simd_next *next,
                          int n_out, float *out);

/* weft__matmul.run_row */
static inline void mm_run_row(int f, mm_row_fn one, const void *panels, size_t stride, int64_t n_out, int64_t k, const void *act,
                              int64_t row, int64_t m, float *out, const uint8_t *then)
{
    const int64_t row_bytes = mm_act_steps(k) * MM_ROW_STEP, n_spans = mm_spans(f, k), first = mm_tile_first(row, m);
    const simd_next next = mm_next_of(f, panels, (size_t)((n_out + MM_R - 1) / MM_R) * stride, 1, then);
    const uint8_t *w = panels;
    for (int64_t n = 0; n < n_out; n += MM_R, w += stride)
        one(mm_tile_rows(first, m), (int)(row - first), w, n_spans, (const uint8_t *)act + first * row_bytes, &next,
            n_out - n < MM_R ? (int)(n_out - n) : MM_R, out + n);
}

/* ---- kernels: what a tier's file expands for each format ------------------------------------------------------------------------ */

#define MM_TILE_FN(f, name, n_rows)                                                                                              \
    static void name##_##n_rows(const uint8_t *w, int64_t n_spans, const uint8_t *a, const simd_next *next, int n_out,           \
                                float *out, int64_t ldo)                                                                         \
    {                                                                                                                            \
        mm_tile(f, n_rows, 0, n_rows, w, n_spans, a, next, n_out, out, ldo);                                                     \
    }

/* Defines weft__matmul_ID_TIER. pack_fn(rows, row_bytes, n_rows, k, panel) makes panels of MM_R rows. */
#define MM_KERNEL(format, id, tier_name, TIER, pack_fn, act_form)                                                                \
    MM_TILE_FN(WEFT_##format, id, 1)                                                                                             \
    MM_TILE_FN(WEFT_##format, id, 2)                                                                                             \
    MM_TILE_FN(WEFT_##format, id, 3)                                                                                             \
    MM_TILE_FN(WEFT_##format, id, 4)                                                                                             \
    MM_TILE_FN(WEFT_##format, id, 5)                                                                                             \
    MM_TILE_FN(WEFT_##format, id, 6)                                                                                             \
    MM_TILE_FN(WEFT_##format, id, 7)                                                                                             \
    MM_TILE_FN(WEFT_##format, id, 8)                                                                                             \
    MM_PAIRS_FN(WEFT_##format, id)                                                                                               \
    MM_FEWS_FN(WEFT_##format, id)                                                                                                \
    static void id##_one(int n_rows, int t, const uint8_t *w, int64_t n_spans, const uint8_t *a, const simd_next *next,          \
                         int n_out, float *out)                                                                                  \
    {                                                                                                                            \
        mm_tile(WEFT_##format, n_rows, t, 1, w, n_spans, a, next, n_out, out, 0);                                                \
    }                                                                                                                            \
    static void id##_run_row(const void *panels, size_t stride, int64_t n_out, int64_t k, const void *act, int64_t row,          \
                             int64_t m, float *out, const uint8_t *next)                                                         \
    {                                                                                                                            \
        mm_run_row(WEFT_##format, id##_one, panels, stride, n_out, k, act, row, m, out, next);                                   \
    }                                                                                                                            \
    static void id##_run_ahead(const void *panels, size_t stride, int64_t n_out, int64_t k, const void *act, int64_t m,          \
                               float *out, int64_t ldo, weft__ahead *ahead)                                                      \
    {                                                                                                                            \
        static const mm_tile_fn tiles[MM_TILE] = {id##_1, id##_2, id##_3, id##_4, id##_5, id##_6, id##_7, id##_8};               \
        mm_run(WEFT_##format, tiles, MM_FEWS(WEFT_##format, id), MM_PAIRS(WEFT_##format, id), panels, stride, n_out, k, act, m,  \
               out, ldo, ahead);                                                                                                 \
    }                                                                                                                            \
    static void id##_run(const void *panels, size_t stride, int64_t n_out, int64_t k, const void *act, int64_t m, float *out,    \
                         int64_t ldo)                                                                                            \
    {                                                                                                                            \
        id##_run_ahead(panels, stride, n_out, k, act, m, out, ldo, NULL);                                                        \
    }                                                                                                                            \
    static size_t id##_panel_bytes(int64_t k)                                                                                    \
    {                                                                                                                            \
        return mm_panel_bytes(WEFT_##format, MM_R, k);                                                                           \
    }                                                                                                                            \
    const weft__matmul weft__matmul_##id##_##tier_name = {                                                                       \
        .name = "matmul_" #id "_" #tier_name,                                                                                    \
        .dtype = WEFT_##format,                                                                                                  \
        .tier = WEFT__TIER_##TIER,                                                                                               \
        .panel_rows = MM_R,                                                                                                      \
        .act = &act_form,                                                                                                        \
        .panel_bytes = id##_panel_bytes,                                                                                         \
        .pack = pack_fn,                                                                                                         \
        .run = id##_run,                                                                                                         \
        .run_ahead = MM_DOT32 ? id##_run_ahead : NULL,                                                                           \
        .run_row = id##_run_row,                                                                                                 \
    };

#endif
