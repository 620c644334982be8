/* matmul.h: products of quantized weights and 8-bit activations by AMX: 16 rows times 16 outputs times the 32 inputs that share a scale
 * in one instruction (layouts and words: simd/matmul_layout.h, simd/matmul_quant.h). Formats with a scale for every 16 are left to
 * VPDPBUSD: a tile of 16 inputs takes as long as one of 32.
 *
 * A panel is taken apart once, AMX_STEPS steps at a time, into codes of eight bits, which are tiles of weights as they lie, and float
 * scales; both stay in the first-level cache while all rows of the chunk pass by. Tiles of activations are read where they lie. What
 * a tile of products comes to goes through memory, as tile registers know no floats: while the sums of one step are scaled and
 * added, those of the next are made.
 *
 * Invariant: sums of integers are exact, and the floats are those of mm_tile in the same order; so every number of rows gives the
 * same bits, and rows that are in no tile of 16 (mm_whole) are left to the kernel of VPDPBUSD, whose panels these are. */
#ifndef WEFT_KERNELS_AMX_MATMUL_H
#define WEFT_KERNELS_AMX_MATMUL_H

#define MM_TILE_ROWS 16
#include "kernels/avx512vnni/matmul_vec.h" /* first: the layout depends on it */

#include "kernels/amx/tile.h"
#include "kernels/avx512/matmul_pack.h"
#include "kernels/list.h"
#include "kernels/simd/matmul_quant.h"

extern const weft__act weft__act_q8_amx;

enum {
    AMX_STEPS = 8,                                        /* a multiple of every mm_steps */
    AMX_INPUTS = 32,                                      /* in a tile: those that share a scale */
    AMX_CODES = 8 * MM_REG,                               /* bytes of the codes of half a step */
    AMX_HALF = AMX_CODES + 2 * MM_R * (int)sizeof(float), /* and behind them d, m */
    AMX_SUMS = MM_TILE * MM_R,                            /* of a tile of products */
    AMX_WEIGHTS_APART = MM_REG,
    AMX_ROWS_APART = MM_STEP /* bytes from line to line of a tile */
};

/* ---- tile registers: 0 and 1 sums, 4 and 5 activations, 6 and 7 weights --------------------------------------------------------- */

static inline void amx_begin(void)
{
    amx_config c = {.palette = 1};
    for (int i = 0; i < 2; i++) {
        amx_shape(&c, i, MM_TILE, MM_R * 4);
        amx_shape(&c, 4 + i, MM_TILE, AMX_INPUTS);
        amx_shape(&c, 6 + i, AMX_INPUTS / 4, MM_REG);
    }
    amx_load_config(&c);
}

/* The sums of a step's halves, a tile of each, at w and a, to `to`. */
MM_INLINE void amx_sums(int f, const uint8_t *w, const uint8_t *a, int32_t *to)
{
    amx_fence();
    _tile_loadd(6, w, AMX_WEIGHTS_APART);
    _tile_loadd(4, a, AMX_ROWS_APART);
    _tile_zero(0);
    if (mm_has_min(f)) _tile_dpbsud(0, 4, 6);
    else _tile_dpbssd(0, 4, 6);
    _tile_loadd(7, w + AMX_HALF, AMX_WEIGHTS_APART);
    _tile_loadd(5, a + AMX_INPUTS, AMX_ROWS_APART);
    _tile_zero(1);
    if (mm_has_min(f)) _tile_dpbsud(1, 5, 7);
    else _tile_dpbssd(1, 5, 7);
    _tile_stored(0, to, MM_R * 4);
    _tile_stored(1, to + AMX_SUMS, MM_R * 4);
}

/* ---- weights ------------------------------------------------------------------------------------------------------------------- */

/* Codes as the tiles want them: with their offset taken off, where there is one, which saves the bias. */
MM_INLINE vi amx_code(int f, const uint8_t *c, int h, int g)
{
    const vi w = mm_code(f, c, h, g);
    if (mm_has_min(f)) return w;
    return f == WEFT_Q4_0 && h == 0 ? _mm512_sub_epi8(w, vi_bytes(8)) : vi_xor(w, vi_bytes(0x80));
}

/* Takes n spans of a panel apart. */
MM_INLINE void amx_unpack(int f, const uint8_t *w, int64_t n_spans, uint8_t *to)
{
    for (; n_spans > 0; n_spans--, w += mm_span_bytes(f, MM_R)) {
        const uint8_t *c = w + mm_head_row(f) * MM_R;
        mm_head head;
        mm_load_head(f, w, &head);
        for (int s = 0; s < mm_steps(f); s++, c += mm_step_regs(f) * MM_REG) {
            UNROLL for (int h = 0; h < 2; h++, to += AMX_HALF)
            {
                mm_scales sc;
                mm_load_scales(f, w, &head, s, h, &sc);
                UNROLL for (int g = 0; g < 8; g++) vi_store(to + g * MM_REG, amx_code(f, c, h, g));
                float *scale = (float *)(to + AMX_CODES);
                vf_store(scale, sc.d[0]);
                if (mm_has_min(f)) vf_store(scale + MM_R, sc.m[0]);
            }
        }
    }
}

/* ---- rows ---------------------------------------------------------------------------------------------------------------------- */

/* Adds half h of a step to acc. */
MM_INLINE void amx_add(int f, int h, const int32_t *sums, const float *scale, const uint8_t *a, vf acc[MM_TILE])
{
    UNROLL for (int r = 0; r < MM_TILE; r++)
    {
        const vf x = vf_from_int(vi_load(sums + r * MM_R)), by = vf_word(a + mm_scale_at(MM_TILE) + 4 * (2 * r + h));
        acc[r] = vf_fma(x, vf_mul(vf_load(scale), by), acc[r]);
        if (mm_min_with_products(f)) acc[r] = vf_fma(vf_load(scale + MM_R), vf_word(mm_sum_of(f, a, h, MM_TILE, r, 0)), acc[r]);
    }
}

MM_INLINE void amx_step_add(int f, const int32_t *sums, const uint8_t *w, const uint8_t *a, vf acc[MM_TILE])
{
    UNROLL for (int h = 0; h < 2; h++, w += AMX_HALF, sums += AMX_SUMS)
        amx_add(f, h, sums, (const float *)(w + AMX_CODES), a, acc);
}

/* Adds the minimums of a span, whose codes and rows begin at w and a. */
MM_INLINE void amx_span_mins(int f, const uint8_t *w, const uint8_t *a, vf acc[MM_TILE])
{
    for (int s = 0; s < mm_steps(f); s++, a += MM_TILE * MM_ROW_STEP) {
        UNROLL for (int h = 0; h < 2; h++, w += AMX_HALF)
            mm_add_min(f, h, 0, MM_TILE, 0, MM_TILE, vf_load((const float *)(w + AMX_CODES) + MM_R), a, acc);
    }
}

/* A tile of rows times n steps of a panel: from the sums at `from`, ld_from apart (NULL: from zero), to `to`, ld apart; the first n_out
 * of them are there. Meanwhile `lines` lines per step from `next` on are fetched. */
MM_INLINE void amx_tile(int f, const uint8_t *w, int n_steps, const uint8_t *a, const char *next, int lines, int n_out,
                        const float *from, int64_t ld_from, float *to, int64_t ld)
{
    enum { SLOT = 2 * AMX_SUMS };
    _Alignas(64) int32_t sums[2 * SLOT];
    vf acc[MM_TILE];
    UNROLL for (int r = 0; r < MM_TILE; r++) acc[r] = from ? vf_load_part(from + r * ld_from, n_out) : vf_zero();
    amx_sums(f, w, a, sums);
    for (int s = 1; s <= n_steps; s++, w += 2 * AMX_HALF, a += MM_TILE * MM_ROW_STEP) {
        for (int l = 0; l < lines; l++, next += 64) _mm_prefetch(next, _MM_HINT_T1);
        if (s < n_steps) amx_sums(f, w + 2 * AMX_HALF, a + MM_TILE * MM_ROW_STEP, sums + s % 2 * SLOT);
        amx_step_add(f, sums + (s - 1) % 2 * SLOT, w, a, acc);
        if (mm_min_with_span(f) && s % mm_steps(f) == 0) {
            const int back = mm_steps(f) - 1;
            amx_span_mins(f, w - 2 * back * AMX_HALF, a - back * MM_TILE * MM_ROW_STEP, acc);
        }
    }
    UNROLL for (int r = 0; r < MM_TILE; r++) vf_store_part(to + r * ld, acc[r], n_out);
}

/* All panels of a block times rows [c, end), which are whole tiles and MM_CHUNK_ROWS at most. Returns n_out. */
MM_INLINE int64_t amx_block(int f, const mm_block *b, int64_t n_out, int64_t c, int64_t end, float *out, int64_t ldo)
{
    _Alignas(64) uint8_t codes[2 * AMX_STEPS * AMX_HALF];
    _Alignas(64) float sums[MM_CHUNK_ROWS * MM_R];
    const int64_t at_once = AMX_STEPS / mm_steps(f), n_tiles = (end - c) / MM_TILE, n_steps = b->n_spans * mm_steps(f);
    const int64_t n_lines = b->n_spans * mm_span_bytes(f, MM_R) / 64;
    const int lines = (int)((n_lines + n_tiles * n_steps - 1) / (n_tiles * n_steps));
    const uint8_t *w = b->w;
    for (int64_t n = 0; n < n_out; n += MM_R, w += b->stride) {
        const char *next = (const char *)(n + MM_R < n_out ? w + b->stride : b->after);
        const int outs = n_out - n < MM_R ? (int)(n_out - n) : MM_R;
        for (int64_t first = 0; first < b->n_spans; first += at_once) {
            const int64_t spans = b->n_spans - first < at_once ? b->n_spans - first : at_once;
            const int steps = (int)spans * mm_steps(f), last = first + spans == b->n_spans;
            amx_unpack(f, w + first * mm_span_bytes(f, MM_R), spans, codes);
            const uint8_t *a = b->act + c * b->row_bytes + first * mm_steps(f) * MM_TILE * MM_ROW_STEP;
            float *sum = sums;
            for (int64_t i = c; i < end; i += MM_TILE, a += MM_TILE * b->row_bytes, sum += MM_TILE * MM_R) {
                float *o = out + i * ldo + n;
                const float *from = first ? sum : b->more ? o : NULL;
                amx_tile(f, codes, steps, a, next, lines, outs, from, first ? MM_R : ldo, last ? o : sum, last ? ldo : MM_R);
                next += (int64_t)lines * steps * 64;
            }
        }
    }
    return n_out;
}

/* weft__matmul.run; few: the kernel of VPDPBUSD. */
static inline void amx_run(int f, mm_pairs_fn block, const weft__matmul *few, const void *panels, size_t stride, int64_t n_out,
                           int64_t k, const void *act, int64_t m, float *out, int64_t ldo)
{
    const int64_t n_steps = mm_act_steps(k), row_bytes = n_steps * MM_ROW_STEP, whole = mm_whole(m);
    const int64_t chunk = mm_chunk_rows(n_steps > MM_BLOCK_STEPS ? MM_BLOCK_STEPS * MM_ROW_STEP : row_bytes);
    if (whole) {
        amx_begin();
        for (int64_t c = 0; c < whole; c += chunk)
            mm_run_blocks(f, block, 1, panels, stride, n_out, mm_spans(f, k), act, c, whole - c < chunk ? whole : c + chunk, out,
                          ldo, NULL);
        _tile_release(); /* a thread without tiles is switched sooner */
    }
    if (m > whole) {
        few->run(panels, stride, n_out, k, (const uint8_t *)act + whole * row_bytes, m - whole, out + whole * ldo, ldo);
    }
}

/* Defines weft__matmul_ID_amx. */
#define KERNEL(format, id)                                                                                                       \
    static int64_t id##_block(const mm_block *b, int64_t n_out, int64_t c, int64_t end, float *out, int64_t ldo)                 \
    {                                                                                                                            \
        return amx_block(WEFT_##format, b, n_out, c, end, out, ldo);                                                             \
    }                                                                                                                            \
    static void id##_run(const void *panels, size_t stride, int64_t n_out, int64_t k, const void *act, int64_t m, float *out,    \
                         int64_t ldo)                                                                                            \
    {                                                                                                                            \
        amx_run(WEFT_##format, id##_block, &weft__matmul_##id##_avx512vnni, panels, stride, n_out, k, act, m, out, ldo);         \
    }                                                                                                                            \
    static size_t id##_panel_bytes(int64_t k)                                                                                    \
    {                                                                                                                            \
        return mm_panel_bytes(WEFT_##format, MM_R, k);                                                                           \
    }                                                                                                                            \
    const weft__matmul weft__matmul_##id##_amx = {                                                                               \
        .name = "matmul_" #id "_amx",                                                                                            \
        .dtype = WEFT_##format,                                                                                                  \
        .tier = WEFT__TIER_AMX,                                                                                                  \
        .panel_rows = MM_R,                                                                                                      \
        .act = &weft__act_q8_amx,                                                                                                \
        .panels = "matmul_" #id "_avx512vnni",                                                                                   \
        .panel_bytes = id##_panel_bytes,                                                                                         \
        .pack = weft__matmul_pack16_##id,                                                                                        \
        .run = id##_run,                                                                                                         \
    };

#endif
