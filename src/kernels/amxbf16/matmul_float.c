// SPDX-License-Identifier: Apache-2.0
/* matmul_float.c: products with BF16 weights by TDPBF16PS: 16 rows, 16 outputs and 32 inputs at a time. Activations are
 * rounded to bf16, sums of products are f32, and subnormal numbers count as zero. Panels and activations lie as
 * VDPBF16PS wants them (simd/matmul_float.h), in tiles of 16 rows and whole steps of 32 inputs: they are tiles as they
 * are.
 *
 * What one row comes to depends on no other row of its tile, so every number of rows gives the same bits. One row and
 * two, whose limit is memory, go without tiles, in vectors that do what the instruction is defined to do (which NaN
 * comes of several is not defined). Reentrant. */
#define MM_FLOAT_TILE 16
#include "kernels/amx/tile.h"
#include "kernels/avx512bf16/matmul_vec.h"
#include "kernels/list.h"
#include "kernels/simd/matmul_float.h"

enum {
    STEP = MM_UNITS * MM_REG, /* bytes of a step of a panel: a tile */
    FEW = 2,                  /* rows that go without tiles */
    FEW_PANELS = 4            /* side by side, to hide the latency of the additions */
};

static const weft__act act_form = {"bf16_tiles_of_16", MM_FLOAT_TILE, mm_float_act_bytes, mm_float_act_put,
                                   mm_float_act_take};

static size_t panel_bytes(int64_t k)
{
    return (size_t)mm_unit_steps(k) * STEP;
}

static void pack(const uint8_t *rows, size_t row_bytes, int n_rows, int64_t k, void *panel)
{
    const size_t filled = mm_float_panel_bytes(WEFT_BF16, k);
    mm_float_pack(WEFT_BF16, rows, row_bytes, n_rows, k, panel);
    memset((uint8_t *)panel + filled, 0, panel_bytes(k) - filled);
}

/* ---- one row or two ---- */

/* TDPBF16PS for n_rows rows (Intel's manual, volume 2): in each step of 32 inputs the products of even inputs are one
 * chain of fused multiply-adds, those of odd ones another; both are added, and this to what there was. Numbers below
 * the normal ones are zero: see few_rows. Constants: n_panels, n_rows. */
MM_INLINE void few_panels(int n_panels, int n_rows, const weft__product *product)
{
    const uint8_t *w = product->panels, *a = product->act;
    const size_t stride = product->stride;
    const int64_t n_steps = mm_unit_steps(product->k), ldo = product->ldo;
    int64_t n_out = product->n_out;
    float *out = product->out;
    const vi high = _mm512_set1_epi32((int)0xFFFF0000);
    vf acc[FEW_PANELS][FEW];
    UNROLL for (int p = 0; p < n_panels; p++)
    {
        UNROLL for (int t = 0; t < n_rows; t++) acc[p][t] = vf_zero();
    }
    for (int64_t s = 0; s < n_steps; s++, w += STEP, a += n_rows * MM_UNITS * 4) {
        vf even[FEW_PANELS][FEW], odd[FEW_PANELS][FEW];
        UNROLL for (int p = 0; p < n_panels; p++)
        {
            UNROLL for (int t = 0; t < n_rows; t++) even[p][t] = odd[p][t] = vf_zero();
        }
        for (int u = 0; u < MM_UNITS; u++) {
            vf a_even[FEW], a_odd[FEW];
            UNROLL for (int t = 0; t < n_rows; t++)
            {
                const vi pair = vi_word(a + (t * MM_UNITS + u) * 4);
                a_even[t] = _mm512_castsi512_ps(_mm512_slli_epi32(pair, 16));
                a_odd[t] = _mm512_castsi512_ps(vi_and(pair, high));
            }
            UNROLL for (int p = 0; p < n_panels; p++)
            {
                const uint8_t *at = w + (size_t)p * stride + u * MM_REG;
                const vi pair = vi_load(at);
                const vf w_even = _mm512_castsi512_ps(_mm512_slli_epi32(pair, 16)),
                         w_odd = _mm512_castsi512_ps(vi_and(pair, high));
                _mm_prefetch((const char *)at + STEP, _MM_HINT_T1);
                UNROLL for (int t = 0; t < n_rows; t++)
                {
                    even[p][t] = vf_fma(w_even, a_even[t], even[p][t]);
                    odd[p][t] = vf_fma(w_odd, a_odd[t], odd[p][t]);
                }
            }
        }
        UNROLL for (int p = 0; p < n_panels; p++)
        {
            UNROLL for (int t = 0; t < n_rows; t++) acc[p][t] = vf_add(acc[p][t], vf_add(even[p][t], odd[p][t]));
        }
    }
    UNROLL for (int p = 0; p < n_panels; p++, out += MM_R, n_out -= MM_R)
    {
        UNROLL for (int t = 0; t < n_rows; t++)
            vf_store_part(out + t * ldo, acc[p][t], n_out < MM_R ? (int)n_out : MM_R);
    }
}

MM_INLINE void few_rows(int n_rows, const weft__product *p)
{
    enum {
        AS_TILES_DO = 0x9FC0
    }; /* to nearest, no traps, denormals are zero in and out: the instruction takes no other wish */
    const unsigned before = _mm_getcsr();
    weft__product part = *p;
    _mm_setcsr(AS_TILES_DO);
    for (int64_t left = p->n_out, outs; left > 0; left -= outs) {
        const int n_panels = left >= FEW_PANELS * MM_R ? FEW_PANELS : 1;
        outs = n_panels * MM_R;
        part.n_out = left < outs ? left : outs;
        if (n_panels == 1) few_panels(1, n_rows, &part);
        else few_panels(FEW_PANELS, n_rows, &part);
        part.panels = (const uint8_t *)part.panels + (size_t)n_panels * p->stride;
        part.out += outs;
    }
    _mm_setcsr(before);
}

/* ---- tiles ---- */

/* Tiles 0 to 3: sums of the first and second tile of rows with the first panel, then with the second; 4 and 5:
 * activations; 6 and 7: weights. */
static void configure(const int n_rows[2])
{
    amx_config c = {.palette = 1};
    for (int p = 0; p < 2; p++) {
        for (int t = 0; t < 2 && n_rows[t]; t++) amx_shape(&c, 2 * p + t, n_rows[t], MM_REG);
        if (n_rows[p]) amx_shape(&c, 4 + p, n_rows[p], MM_UNITS * 4);
        amx_shape(&c, 6 + p, MM_UNITS, MM_REG);
    }
    amx_load_config(&c);
}

/* The sums of a tile, at `from`, to where n_out outputs are. */
static void copy_part(const float *from, int n_rows, int n_out, float *out, int64_t ldo)
{
    for (int r = 0; r < n_rows; r++) vf_store_part(out + r * ldo, vf_load(from + r * MM_R), n_out);
}

/* Tile `tile`, a constant, to n_out outputs of n_rows rows. */
#define STORE(tile, n_rows, n_out, out, ldo)                                                                           \
    do {                                                                                                               \
        _Alignas(64) float sums[MM_FLOAT_TILE * MM_R];                                                                 \
        if ((n_out) >= MM_R) {                                                                                         \
            _tile_stored(tile, out, (ldo)*4);                                                                          \
        } else {                                                                                                       \
            _tile_stored(tile, sums, MM_R * 4);                                                                        \
            copy_part(sums, n_rows, (int)(n_out), out, ldo);                                                           \
        }                                                                                                              \
    } while (0)

/* Rows in tiles: n[t] rows at a[t], of tile 1 perhaps none. */
typedef struct row_tiles {
    const uint8_t *a[2];
    int n[2];
} row_tiles;

/* One or two panels times one or two tiles of rows (constants). `fetch`: the panels come from memory. */
MM_INLINE void tiles(int n_panels, int n_tiles, const weft__product *p, const row_tiles *rows, int fetch)
{
    const uint8_t *w = p->panels, *const a[2] = {rows->a[0], rows->a[1]};
    const int n_rows[2] = {rows->n[0], rows->n[1]};
    const size_t stride = p->stride;
    const int64_t n_steps = mm_unit_steps(p->k), n_out = p->n_out, ldo = p->ldo;
    float *const out = p->out;
    const weft__kernel_tune *const tune =
        &WEFT__KERNEL_TUNE(WEFT__UARCH_GENERIC, WEFT__TIER_AMXBF16, WEFT__KERNEL_BF16);
    const int distance = n_tiles == 1 && n_rows[0] <= tune->bound_rows ? tune->bound_distance : tune->distance;
    amx_fence();
    _tile_zero(0);
    if (n_tiles > 1) _tile_zero(1);
    if (n_panels > 1) _tile_zero(2);
    if (n_panels > 1 && n_tiles > 1) _tile_zero(3);
    for (int64_t s = 0; s < n_steps; s++, w += STEP) {
        for (int i = 0; fetch && i < STEP; i += 64) {
            _mm_prefetch((const char *)w + distance + i, _MM_HINT_T1);
            if (n_panels > 1) _mm_prefetch((const char *)w + stride + distance + i, _MM_HINT_T1);
        }
        _tile_loadd(6, w, MM_REG);
        _tile_loadd(4, a[0] + s * n_rows[0] * MM_UNITS * 4, MM_UNITS * 4);
        _tile_dpbf16ps(0, 4, 6);
        if (n_panels > 1) {
            _tile_loadd(7, w + stride, MM_REG);
            _tile_dpbf16ps(2, 4, 7);
        }
        if (n_tiles == 1) continue;
        _tile_loadd(5, a[1] + s * n_rows[1] * MM_UNITS * 4, MM_UNITS * 4);
        _tile_dpbf16ps(1, 5, 6);
        if (n_panels > 1) _tile_dpbf16ps(3, 5, 7);
    }
    float *second = out + n_rows[0] * ldo;
    STORE(0, n_rows[0], n_out, out, ldo);
    if (n_tiles > 1) STORE(1, n_rows[1], n_out, second, ldo);
    if (n_panels == 1) return;
    STORE(2, n_rows[0], n_out - MM_R, out + MM_R, ldo);
    if (n_tiles > 1) STORE(3, n_rows[1], n_out - MM_R, second + MM_R, ldo);
}

/* All panels times pairs of whole tiles, or one pair of which a tile is not whole, or not there. */
static void rows_run(const weft__product *p)
{
    enum { PAIR = 2 * MM_FLOAT_TILE };
    const int64_t row_bytes = mm_unit_steps(p->k) * MM_UNITS * 4;
    const int pair = p->m < PAIR ? (int)p->m : PAIR, first = pair < MM_FLOAT_TILE ? pair : MM_FLOAT_TILE;
    row_tiles r = {.n = {first, pair - first}};
    weft__product part = *p;
    configure(r.n);
    for (int64_t n = 0; n < p->n_out; n += 2 * MM_R) {
        part.n_out = p->n_out - n < 2 * MM_R ? p->n_out - n : 2 * MM_R;
        for (int64_t i = 0; i < p->m; i += PAIR) {
            r.a[0] = (const uint8_t *)p->act + i * row_bytes;
            r.a[1] = r.a[0] + r.n[0] * row_bytes;
            part.out = p->out + i * p->ldo + n;
            if (part.n_out > MM_R && r.n[1]) tiles(2, 2, &part, &r, i == 0);
            else if (part.n_out > MM_R) tiles(2, 1, &part, &r, i == 0);
            else if (r.n[1]) tiles(1, 2, &part, &r, i == 0);
            else tiles(1, 1, &part, &r, i == 0);
        }
        part.panels = (const uint8_t *)part.panels + 2 * p->stride;
    }
}

static void matmul_float_run(const weft__product *p, weft__kernel_prefetch *ahead)
{
    enum { PAIR = 2 * MM_FLOAT_TILE };
    const int64_t row_bytes = mm_unit_steps(p->k) * MM_UNITS * 4, whole = p->m / PAIR * PAIR;
    (void)ahead;
    if (p->m == 1) {
        few_rows(1, p);
        return;
    }
    if (p->m == 2) {
        few_rows(2, p);
        return;
    }
    int64_t chunk = (512 << 10) / row_bytes / PAIR * PAIR; /* activations that stay in the second level */
    if (chunk < PAIR) chunk = PAIR;
    for (int64_t c = 0; c < whole; c += chunk) {
        const weft__product part = weft__product_rows(p, row_bytes, c, whole - c < chunk ? whole - c : chunk);
        rows_run(&part);
    }
    if (p->m > whole) {
        const weft__product rest = weft__product_rows(p, row_bytes, whole, p->m - whole);
        rows_run(&rest);
    }
    _tile_release(); /* a thread without tiles is switched sooner */
}

const weft__matmul weft__matmul_bf16_amxbf16 = {
    .name = "matmul_bf16_amxbf16",
    .dtype = WEFT_BF16,
    .tier = WEFT__TIER_AMXBF16,
    .panel_rows = MM_R,
    .act = &act_form,
    .panel_bytes = panel_bytes,
    .pack = pack,
    .run = matmul_float_run,
};
