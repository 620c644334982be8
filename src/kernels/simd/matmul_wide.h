/* matmul_wide.h: products with weights that are costly to take apart, where many rows share them, for tiers with VPDPBUSD (words:
 * matmul_quant.h, which includes this).
 *
 * Two neighbouring panels are taken apart once, WIDE_STEPS steps at a time, into codes of eight bits and float scales that stay in
 * the first-level cache while all rows of the chunk pass by. What has been summed of a row waits in memory meanwhile.
 *
 * Invariant: codes, scales and the sequence of operations on each output are those of mm_tile, so the bits are too. */
#ifndef WEFT_KERNELS_SIMD_MATMUL_WIDE_H
#define WEFT_KERNELS_SIMD_MATMUL_WIDE_H

enum {
    WIDE_STEPS = 8,              /* a multiple of every mm_steps */
    WIDE_ENOUGH = 3 * MM_TILE,   /* rows that repay it: with fewer, what is fetched comes in too large lumps */
    WIDE_CODES = 8 * 2 * MM_REG, /* bytes of the codes of half a step: registers [8 groups][2 panels] */
    WIDE_HALF = WIDE_CODES + PAIR_SCALES * sizeof(float) /* and behind them its scales */
};

/* Is this quicker than pair_run, where rows are enough? Of prompts, shares of VPDPBUSD's peak: Q5_1 62 and 59 %, Q5_K 63 and 60, IQ4_XS
 * 69 and 67; but Q4_0 66 and 70. Scales by 16 have no other way: Q3_K 65, Q6_K 62, panel by panel 54. */
MM_INLINE int wide_better(int f)
{
    return mm_by_16(f) || f == WEFT_Q5_1 || f == WEFT_Q5_K || f == WEFT_IQ4_XS;
}

/* Takes n spans of panel i of a pair apart. */
MM_INLINE void wide_unpack(int f, const uint8_t *w, int n_spans, int i, uint8_t *to)
{
    for (; n_spans > 0; n_spans--, w += mm_span_bytes(f, MM_R)) {
        const uint8_t *c = w + mm_head_row(f) * MM_R;
        mm_head head;
        mm_load_head(f, w, &head);
        for (int s = 0; s < mm_steps(f); s++, c += mm_step_regs(f) * MM_REG) {
            UNROLL for (int h = 0; h < 2; h++, to += WIDE_HALF)
            {
                mm_scales sc;
                mm_load_scales(f, w, &head, s, h, &sc);
                UNROLL for (int g = 0; g < 8; g++) vi_store(to + (2 * g + i) * MM_REG, mm_code(f, c, h, g));
                pair_put_scales(f, &sc, i, (float *)(to + WIDE_CODES));
            }
        }
    }
}

/* The sums of n groups' products from group g on: rows t0.. of a full tile, half h of a step. */
MM_INLINE void wide_sum(int f, int h, int g, int n, int t0, const uint8_t *w, const uint8_t *a, vi sum[2][PAIR_ROWS])
{
    UNROLL for (int t = 0; t < PAIR_ROWS; t++)
    {
        const uint8_t *bias = mm_bias_of(f, a, h, MM_TILE, t0 + t, g / 4);
        sum[0][t] = sum[1][t] = bias ? vi_word(bias) : (vi){0};
    }
    UNROLL for (const int end = g + n; g < end; g++)
    {
        const vi w0 = vi_load(w + 2 * g * MM_REG), w1 = vi_load(w + (2 * g + 1) * MM_REG);
        UNROLL for (int t = 0; t < PAIR_ROWS; t++)
        {
            const vi word = vi_keep(vi_word(a + 64 * (t0 + t) + 32 * h + 4 * g));
            sum[0][t] = mm_dot_reg(sum[0][t], w0, word);
            sum[1][t] = mm_dot_reg(sum[1][t], w1, word);
        }
    }
}

/* Half h of a step: adds 32 products to acc. */
MM_INLINE void wide_half(int f, int h, int t0, const uint8_t *w, const uint8_t *a, vf acc[2][PAIR_ROWS])
{
    const float *scales = (const float *)(w + WIDE_CODES);
    vi sum[2][PAIR_ROWS];
    if (mm_parts(f) == 1) {
        wide_sum(f, h, 0, 8, t0, w, a, sum);
        UNROLL for (int t = 0; t < PAIR_ROWS; t++)
        {
            UNROLL for (int i = 0; i < 2; i++)
            {
                const vf d = vf_load(scales + i * MM_R);
                acc[i][t] = pair_add(f, 0, h, t0 + t, sum[i][t], d, scales + (2 + i) * MM_R, a, acc[i][t]);
            }
        }
        return;
    }
    vf x[2][PAIR_ROWS];
    UNROLL for (int q = 0; q < 2; q++)
    {
        wide_sum(f, h, 4 * q, 4, t0, w, a, sum);
        UNROLL for (int i = 0; i < 2; i++)
        {
            const vf d = vf_load(scales + (2 * q + i) * MM_R);
            UNROLL for (int t = 0; t < PAIR_ROWS; t++)
            {
                const vf y = vf_from_int(sum[i][t]);
                x[i][t] = q ? vf_fma(y, d, x[i][t]) : vf_mul(y, d);
            }
        }
    }
    UNROLL for (int t = 0; t < PAIR_ROWS; t++)
    {
        const vf scale = vf_word(a + mm_scale_at(MM_TILE) + 4 * (2 * (t0 + t) + h));
        UNROLL for (int i = 0; i < 2; i++) acc[i][t] = vf_fma(x[i][t], scale, acc[i][t]);
    }
}

/* A full tile times n steps of a pair: from the sums at `from`, ld_from apart (NULL: from zero), to `to`, ld apart. */
MM_INLINE void wide_tile(int f, const uint8_t *w, int n_steps, const uint8_t *a, const float *from, int64_t ld_from, float *to,
                         int64_t ld)
{
    for (int t0 = 0; t0 < MM_TILE; t0 += PAIR_ROWS) {
        const uint8_t *c = w, *b = a;
        vf acc[2][PAIR_ROWS];
        UNROLL for (int t = 0; t < PAIR_ROWS; t++)
        {
            UNROLL for (int i = 0; i < 2; i++) acc[i][t] = from ? vf_load(from + (t0 + t) * ld_from + i * MM_R) : vf_zero();
        }
        for (int i = 0; i < n_steps; i += mm_steps(f)) {
            const uint8_t *const first = b;
            for (int s = 0; s < mm_steps(f); s++, b += MM_TILE * MM_ROW_STEP) {
                UNROLL for (int h = 0; h < 2; h++, c += WIDE_HALF) wide_half(f, h, t0, c, b, acc);
            }
            if (mm_min_with_span(f))
                pair_mins(f, t0, PAIR_ROWS, (const float *)(c - 2 * mm_steps(f) * WIDE_HALF + WIDE_CODES),
                          WIDE_HALF / (int)sizeof(float), first, acc[0], acc[1]);
        }
        UNROLL for (int t = 0; t < PAIR_ROWS; t++)
        {
            UNROLL for (int i = 0; i < 2; i++) vf_store(to + (t0 + t) * ld + i * MM_R, acc[i][t]);
        }
    }
}

/* As pair_run, for MM_CHUNK_ROWS rows at most. Meanwhile the pair that comes next is fetched, and in good time the lines that will be
 * written. */
MM_INLINE int64_t wide_run(int f, const mm_block *b, int64_t n_out, int64_t c, int64_t end, float *out, int64_t ldo)
{
    _Alignas(64) uint8_t codes[2 * WIDE_STEPS * WIDE_HALF];
    _Alignas(64) float sums[MM_CHUNK_ROWS * PAIR_OUTS];
    const int64_t at_once = WIDE_STEPS / mm_steps(f), n_parts = (b->n_spans + at_once - 1) / at_once;
    const int64_t n_tiles = n_parts * ((end - c) / MM_TILE), n_lines = b->n_spans * mm_span_bytes(f, MM_R) / 64;
    const int64_t lines = (n_lines + n_tiles - 1) / n_tiles;
    const uint8_t *w = b->w;
    int64_t n = 0;
    for (; n + PAIR_OUTS <= n_out; n += PAIR_OUTS, w += 2 * b->stride) {
        const char *next = (const char *)(n + 2 * PAIR_OUTS <= n_out ? w + 2 * b->stride : b->after);
        for (int64_t p = 0; p < n_parts; p++) {
            const int64_t first = p * at_once, spans = b->n_spans - first < at_once ? b->n_spans - first : at_once;
            const int last = p == n_parts - 1;
            for (int i = 0; i < 2; i++)
                wide_unpack(f, w + (size_t)i * b->stride + first * mm_span_bytes(f, MM_R), (int)spans, i, codes);
            const uint8_t *a = b->act + c * b->row_bytes + first * mm_steps(f) * MM_TILE * MM_ROW_STEP;
            float *sum = sums;
            for (int64_t i = c; i < end; i += MM_TILE, a += MM_TILE * b->row_bytes, sum += MM_TILE * PAIR_OUTS) {
                float *o = out + i * ldo + n;
                for (int64_t l = 0; l < lines; l++, next += 64) {
                    _mm_prefetch(next, _MM_HINT_T1);
                    _mm_prefetch(next + b->stride, _MM_HINT_T1);
                }
                if (p == n_parts - 2 || n_parts == 1) mm_fetch_outputs(o, ldo, MM_TILE, PAIR_OUTS);
                const float *from = p ? sum : b->more ? o : NULL;
                wide_tile(f, codes, (int)spans * mm_steps(f), a, from, p ? PAIR_OUTS : ldo, last ? o : sum,
                          last ? ldo : PAIR_OUTS);
            }
        }
    }
    return n;
}

#endif
