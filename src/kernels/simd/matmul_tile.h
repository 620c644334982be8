// SPDX-License-Identifier: Apache-2.0
/* matmul_tile.h: one panel of weights times one tile of activations, and how what is read next is asked for meanwhile
 * (words: matmul_quant.h, which includes this). */
#ifndef WEFT_KERNELS_SIMD_MATMUL_TILE_H
#define WEFT_KERNELS_SIMD_MATMUL_TILE_H

#include "kernels/product.h"
#include "kernels/simd/matmul_sums.h"
#include "kernels/simd/tuned.h"

/* Up to so many rows reading takes nearly all of the time: codes are whole nibbles or bytes there, and a register of
 * them is multiplied twice at most. */
MM_INLINE int mm_is_memory_bound(const weft__kernel_tune *tune, int64_t n_rows)
{
    return n_rows <= tune->bound_rows;
}

/* How the lines of a step are prefetched, WEFT__PREFETCH_. Where multiplying is the limit, to prefetch one by one pays
 * only for VPDPBUSD. */
MM_INLINE int mm_prefetch_of(const weft__kernel_tune *tune, int64_t n_rows)
{
    if (mm_is_memory_bound(tune, n_rows)) return tune->bound_prefetch;
    return MM_DOT32 ? WEFT__PREFETCH_APART : WEFT__PREFETCH_ALL;
}

/* Lines are prefetched into the second level this far ahead, bytes: into the first helps nowhere. */
MM_INLINE int mm_prefetch_distance(const weft__kernel_tune *tune, int64_t n_rows)
{
    return mm_is_memory_bound(tune, n_rows) ? tune->bound_distance : tune->distance;
}

/* Of n_bytes of panels for m rows. next: what is read behind them; NULL: what lies there is asked for. */
static inline simd_next mm_next_of(int f, const uint8_t *panels, size_t n_bytes, int64_t m, const uint8_t *next)
{
    const size_t ahead = (size_t)(m <= MM_TUNED(f, bound_rows) ? MM_TUNED(f, bound_distance) : MM_TUNED(f, distance));
    if (next) return simd_next_of(panels, n_bytes, (size_t)mm_span_bytes(f), ahead, next);
    return (simd_next){.distance = ahead, .end = UINTPTR_MAX};
}

/* Are codes nibbles or bytes as they lie? */
MM_INLINE int mm_is_plain(int f)
{
    return f == WEFT_Q4_0 || f == WEFT_Q4_1 || f == WEFT_Q8_0 || f == WEFT_Q4_K;
}

/* Half h of a step, rows t0..t0+n-1 of a tile of n_rows. Codes of two strips are many for the registers: they are kept
 * where they are wanted twice and take long to make. */
MM_INLINE void mm_half(int f, int h, int n_rows, int t0, int n, mm_step step, mm_acc *acc)
{
    const int kept = MM_STRIPS == 1 || (n > 4 && !mm_is_plain(f));
    mm_codes codes[8];
    if (kept) {
        UNROLL for (int g = 0; g < 8; g++)
        {
            UNROLL for (int j = 0; j < MM_STRIPS; j++) codes[g][j] = mm_code(f, step.c + j * MM_VEC, h, g);
        }
        step.made = codes;
    }
    mm_half_rows(f, h, 1, n_rows, t0, n < 4 ? n : 4, &step, acc);
    step.asks = (mm_asks){NULL, 0};
    if (n > 4) mm_half_rows(f, h, 1, n_rows, t0 + 4, n - 4, &step, acc + 4);
}

/* The next step of activations, into the first level: where a panel is larger than that, they have left it when the
 * next panel wants them. Where lines are prefetched one by one it is slower. */
MM_INLINE void mm_fetch_step(const uint8_t *a, int n_rows)
{
    UNROLL for (int i = 0; i < n_rows * MM_ROW_STEP; i += 64) _mm_prefetch((const char *)a + i, _MM_HINT_T0);
}

/* The lines of a span's head, and as many from `ask` on that would be left out: of a later head, where what is asked
 * for lies whole spans ahead (mm_next_of), or else of codes. Later scales and minimums are read behind codes: where
 * that is the first time, the processor's own prefetching, which goes by the order of what is read, falls behind. */
MM_INLINE void mm_fetch_head(int f, const uint8_t *w, uintptr_t ask)
{
    const int bytes = mm_head_row(f) * MM_PANEL;
    UNROLL for (int i = 64; i < bytes; i += 128) _mm_prefetch((const char *)ask + i, _MM_HINT_T1);
    UNROLL for (int i = 64; i < bytes; i += 64) _mm_prefetch((const char *)w + i, _MM_HINT_T0);
}

/* The lines at `out` are soon written: the tile is multiplied while they come. */
MM_INLINE void mm_fetch_outputs(const float *out, int64_t ldo, int n_rows, int n_out)
{
    for (int t = 0; t < n_rows; t++, out += ldo)
        for (int i = 0; i < n_out; i += 16) simd_own(out + i);
}

MM_INLINE void mm_zero(mm_acc *acc, int n)
{
    UNROLL for (int t = 0; t < n; t++)
    {
        UNROLL for (int j = 0; j < MM_STRIPS; j++) acc[t][j] = vf_zero();
    }
}

/* One panel times rows t0..t0+n-1, all or one, of a tile of n_rows: p, of which n_out is MM_PANEL at most. next: how a
 * panel that comes from memory is asked for, and with it the activations that it pushes out, if they are all of the
 * tile's; NULL where it does not. tune: how, a constant. */
MM_INLINE void mm_tile_tuned(int f, int n_rows, int t0, int n, const weft__kernel_tune *tune, const weft__product *p,
                             const simd_next *next)
{
    const int steps = mm_steps(f), step_bytes = mm_step_regs(f) * MM_REG, span_bytes = mm_span_bytes(f),
              lines = (span_bytes / steps + 63) / 64, prefetch = mm_prefetch_of(tune, n),
              spread = prefetch == WEFT__PREFETCH_APART;
    const uint8_t *w = p->panels, *const first = p->act, *a = first;
    const int64_t n_spans = mm_spans(f, p->k), ldo = p->ldo;
    const int n_out = (int)p->n_out;
    float *const out = p->out;
    mm_acc acc[MM_TILE], part[MM_TILE];
    if (n == MM_TILE) mm_fetch_outputs(out, ldo, n, 1);
    mm_zero(acc, n);
    for (int64_t i = 0; i < n_spans; i++, w += span_bytes) {
        mm_head hd[MM_STRIPS];
        UNROLL for (int j = 0; j < MM_STRIPS; j++) mm_load_head(f, w, j, &hd[j]);
        mm_zero(part, n);
        const uint8_t *c = w + mm_head_row(f) * MM_PANEL;
        /* Where nothing is asked for ahead (weft__matmul.prefetches), the distance is a constant. */
        const uintptr_t ask = !next      ? 0
                              : MM_DOT32 ? simd_ask(next, (uintptr_t)w)
                                         : (uintptr_t)w + (uintptr_t)mm_prefetch_distance(tune, n);
        if (next && prefetch == WEFT__PREFETCH_SECOND && steps > 1) mm_fetch_head(f, w, ask);
        for (int64_t s = 0; s < steps; s++, c += step_bytes, a += n_rows * MM_ROW_STEP) {
            const char *const at = (const char *)ask + s * lines * 64;
            mm_half_scales sc[2];
            const mm_step step = {.c = c, .sc = sc, .a = a, .asks = {next && spread ? at : NULL, lines}};
            if (next && prefetch == WEFT__PREFETCH_SECOND && n == n_rows)
                mm_fetch_step(i + 1 < n_spans || s + 1 < steps ? a + n * MM_ROW_STEP : first, n);
            if (next && !spread)
                UNROLL for (int l = 0; l < lines; l += prefetch == WEFT__PREFETCH_SECOND ? 2 : 1)
                    _mm_prefetch(at + 64 * l, _MM_HINT_T1);
            UNROLL for (int h = 0; h < 2; h++)
            {
                mm_load_half_scales(f, w, hd, s, h, sc[h]);
                if (!mm_takes_both(f, n)) mm_half(f, h, n_rows, t0, n, step, mm_small_scales(f) ? part : acc);
            }
            if (mm_takes_both(f, n)) mm_half_rows(f, 0, 2, n_rows, t0, n, &step, acc);
        }
        if (mm_small_scales(f)) {
            UNROLL for (int t = 0; t < n; t++)
            {
                UNROLL for (int j = 0; j < MM_STRIPS; j++) acc[t][j] = vf_fma(part[t][j], hd[j].d[0], acc[t][j]);
            }
        }
        if (mm_min_with_span(f)) mm_span_mins(f, n_rows, t0, n, w, hd, a - steps * n_rows * MM_ROW_STEP, acc);
    }
    UNROLL for (int t = 0; t < n; t++)
    {
        UNROLL for (int j = 0; j < MM_STRIPS; j++)
        {
            float *to = out + t * ldo + j * MM_R;
            const int left = n_out - j * MM_R;
            if (left >= MM_R) vf_store(to, acc[t][j]);
            else if (j == 0 || left > 0) vf_store_part(to, acc[t][j], left); /* n_out is 1 at least */
        }
    }
}

MM_INLINE void mm_tile(int f, int n_rows, int t0, int n, const weft__product *p, const simd_next *next)
{
    const weft__kernel_tune *const zen4 = MM_TUNE_OF(WEFT__UARCH_ZEN4, f), *const generic =
                                                                               MM_TUNE_OF(WEFT__UARCH_GENERIC, f);
    /* A piece of code for each way; distances are constants where they are not read from `next`. */
    const int differs = mm_prefetch_of(zen4, n) != mm_prefetch_of(generic, n) ||
                        (!MM_DOT32 && mm_prefetch_distance(zen4, n) != mm_prefetch_distance(generic, n));
    if (differs && weft__kernel_uarch == WEFT__UARCH_ZEN4) mm_tile_tuned(f, n_rows, t0, n, zen4, p, next);
    else mm_tile_tuned(f, n_rows, t0, n, generic, p, next);
}

#endif
