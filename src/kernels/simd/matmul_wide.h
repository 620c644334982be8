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
    WIDE_ENOUGH = 3 * MM_TILE,   /* rows that repay it (measured while what comes next was still fetched in lumps) */
    WIDE_CODES = 8 * 2 * MM_REG, /* bytes of the codes of half a step: registers [8 groups][2 panels] */
    WIDE_HALF = WIDE_CODES + PAIR_SCALES * sizeof(float) /* and behind them its scales */
};

/* A pair taken apart. Codes with small scales are products of both: of Q2_K as they are, of Q3_K in [0, 252], 128 minus the product. */
typedef struct wide_pair {
    _Alignas(64) uint8_t halves[2 * WIDE_STEPS][WIDE_HALF];
    _Alignas(64) float d[WIDE_STEPS][2 * MM_R]; /* mm_small_scales: of each span */
} wide_pair;

/* Is this quicker than pair_run, where rows are enough? Of prompts, shares of VPDPBUSD's peak: Q5_1 62 and 59 %, Q5_K 63 and 60, IQ4_XS
 * 69 and 67; but Q4_0 66 and 70 (Zen 4). Of a product, where multipliers are two: Q5_0 75 and 67, IQ4_NL 74 and 72, Q4_0 74 and 78
 * (Zen 5). Scales by 16 have no other way: Q3_K 77 %, panel by panel 52 (Zen 5). */
MM_INLINE int wide_better(int f)
{
    return mm_by_16(f) || f == WEFT_Q5_1 || f == WEFT_Q5_K || f == WEFT_IQ4_XS ||
           ((f == WEFT_Q5_0 || f == WEFT_IQ4_NL) && !pair_is_zen4());
}

/* The integers of 16 scales, twice in the word of each row. */
MM_INLINE vi wide_scale(int f, const uint8_t *by_16)
{
    return f == WEFT_Q2_K ? vi_twice_u4_low(by_16) : vi_twice_s8(by_16);
}

/* Codes of eight bits of group g of half h, the integers of whose scales are given (mm_small_scales). */
MM_INLINE vi wide_code(int f, const uint8_t *c, int h, int g, vi scale)
{
    const vi w = mm_code(f, c, h, g);
    if (!mm_small_scales(f)) return w;
    if (f == WEFT_Q2_K) return vi_mul_bytes(w, scale);
    const vi code = vi_and(vi_right(w, mm_shift(f, h)), vi_bytes(7));
    return vi_xor(vi_mul_bytes(vi_sub8(vi_bytes(4), code), scale), vi_bytes(0x80));
}

/* Takes n spans of panel i of a pair apart. */
MM_INLINE void wide_unpack(int f, const uint8_t *w, int n_spans, int i, wide_pair *to)
{
    uint8_t *half = to->halves[0];
    for (int span = 0; span < n_spans; span++, w += mm_span_bytes(f, MM_R)) {
        const uint8_t *c = w + mm_head_row(f) * MM_R;
        mm_head head;
        mm_load_head(f, w, &head);
        if (mm_small_scales(f)) vf_store(to->d[span] + i * MM_R, head.d[0]);
        for (int s = 0; s < mm_steps(f); s++, c += mm_step_regs(f) * MM_REG) {
            UNROLL for (int h = 0; h < 2; h++, half += WIDE_HALF)
            {
                mm_scales sc;
                mm_load_scales(f, w, &head, s, h, &sc);
                UNROLL for (int q = 0; q < 2; q++)
                {
                    vi scale = {0};
                    if (mm_small_scales(f)) scale = wide_scale(f, mm_scales_by_16(f, w, s, h, q));
                    UNROLL for (int g = 4 * q; g < 4 * q + 4; g++)
                        vi_store(half + (2 * g + i) * MM_REG, wide_code(f, c, h, g, scale));
                }
                pair_put_scales(f, &sc, i, (float *)(half + WIDE_CODES));
            }
        }
    }
}

/* How many sums the 32 products of a half are wanted in. */
MM_INLINE int wide_parts(int f)
{
    return mm_small_scales(f) ? 1 : mm_parts(f);
}

/* Where the sum of a row's products starts. */
MM_INLINE const uint8_t *wide_bias(int f, const uint8_t *a, int h, int t, int q)
{
    if (!mm_small_scales(f)) return mm_bias_of(f, a, h, MM_TILE, t, q);
    return f == WEFT_Q3_K ? a + mm_bias32_at(MM_TILE) + 4 * (2 * t + h) : NULL;
}

/* The sums of the products of both quarters: rows t0.. of a full tile, half h of a step. Where they have one scale, the bias is in the
 * first, and they are wanted together: apart, twice as many products are on their way. */
MM_INLINE void wide_sums(int f, int h, int t0, const uint8_t *w, const uint8_t *a, vi sum[2][2][PAIR_ROWS])
{
    UNROLL for (int q = 0; q < 2; q++)
    {
        UNROLL for (int t = 0; t < PAIR_ROWS; t++)
        {
            const uint8_t *bias = q && wide_parts(f) == 1 ? NULL : wide_bias(f, a, h, t0 + t, q);
            sum[q][0][t] = sum[q][1][t] = bias ? vi_word(bias) : (vi){0};
        }
    }
    UNROLL for (int i = 0; i < 8; i++)
    {
        const int q = i % 2, g = 4 * q + i / 2;
        const vi w0 = vi_load(w + 2 * g * MM_REG), w1 = vi_load(w + (2 * g + 1) * MM_REG);
        UNROLL for (int t = 0; t < PAIR_ROWS; t++)
        {
            const vi word = vi_keep(vi_word(a + 64 * (t0 + t) + 32 * h + 4 * g));
            sum[q][0][t] = mm_dot_reg(sum[q][0][t], w0, word);
            sum[q][1][t] = mm_dot_reg(sum[q][1][t], w1, word);
        }
    }
}

/* Half h of a step: adds 32 products to acc (mm_small_scales: the span's part). */
MM_INLINE void wide_half(int f, int h, int t0, const uint8_t *w, const uint8_t *a, vf acc[2][PAIR_ROWS])
{
    const float *scales = (const float *)(w + WIDE_CODES);
    vi sum[2][2][PAIR_ROWS]; /* of a quarter, a panel, a row */
    wide_sums(f, h, t0, w, a, sum);
    UNROLL for (int t = 0; t < PAIR_ROWS; t++)
    {
        const vf scale = vf_word(a + mm_scale_at(MM_TILE) + 4 * (2 * (t0 + t) + h));
        UNROLL for (int i = 0; i < 2; i++)
        {
            if (wide_parts(f) == 2) {
                vf x = vf_mul(vf_from_int(sum[0][i][t]), vf_load(scales + i * MM_R));
                x = vf_fma(vf_from_int(sum[1][i][t]), vf_load(scales + (2 + i) * MM_R), x);
                acc[i][t] = vf_fma(x, scale, acc[i][t]);
                continue;
            }
            const vi all = vi_add32(sum[0][i][t], sum[1][i][t]);
            if (mm_small_scales(f)) {
                const vf x = vf_from_int(all);
                acc[i][t] = f == WEFT_Q3_K ? vf_fnma(x, scale, acc[i][t]) : vf_fma(x, scale, acc[i][t]);
            } else {
                acc[i][t] = pair_add(f, 0, h, t0 + t, all, vf_load(scales + i * MM_R), scales + (2 + i) * MM_R, a, acc[i][t]);
            }
        }
    }
}

/* What is fetched meanwhile: `lines` lines of both panels of the pair that comes next for each step and pass, not all of a tile's at once,
 * as loads wait where all places for lines on their way are taken; and what else is asked for. */
typedef struct wide_next {
    const char *at, *stop; /* of the first panel */
    size_t stride;
    int lines;
    weft__ahead *ahead; /* or NULL */
} wide_next;

MM_INLINE void wide_ask(wide_next *next)
{
    for (int l = 0; l < next->lines && next->at < next->stop; l++, next->at += 64) {
        _mm_prefetch(next->at, _MM_HINT_T1);
        _mm_prefetch(next->at + next->stride, _MM_HINT_T1);
    }
    if (next->ahead) mm_fetch_ahead(next->ahead);
}

/* A full tile times n steps of a pair: from the sums at `from`, ld_from apart (NULL: from zero), to `to`, ld apart. */
MM_INLINE void wide_tile(int f, const wide_pair *w, int n_steps, const uint8_t *a, wide_next *next, const float *from,
                         int64_t ld_from, float *to, int64_t ld)
{
    for (int t0 = 0; t0 < MM_TILE; t0 += PAIR_ROWS) {
        const uint8_t *c = w->halves[0], *b = a;
        vf acc[2][PAIR_ROWS];
        UNROLL for (int t = 0; t < PAIR_ROWS; t++)
        {
            UNROLL for (int i = 0; i < 2; i++) acc[i][t] = from ? vf_load(from + (t0 + t) * ld_from + i * MM_R) : vf_zero();
        }
        for (int i = 0; i < n_steps; i += mm_steps(f)) {
            const uint8_t *const first = b;
            vf part[2][PAIR_ROWS] = {{{0}}};
            for (int s = 0; s < mm_steps(f); s++, b += MM_TILE * MM_ROW_STEP) {
                wide_ask(next);
                UNROLL for (int h = 0; h < 2; h++, c += WIDE_HALF) wide_half(f, h, t0, c, b, mm_small_scales(f) ? part : acc);
            }
            if (mm_small_scales(f)) {
                UNROLL for (int p = 0; p < 2; p++)
                {
                    const vf d = vf_load(w->d[i / mm_steps(f)] + p * MM_R);
                    UNROLL for (int t = 0; t < PAIR_ROWS; t++) acc[p][t] = vf_fma(part[p][t], d, acc[p][t]);
                }
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
    wide_pair pair;
    _Alignas(64) float sums[MM_CHUNK_ROWS * PAIR_OUTS];
    const int64_t at_once = WIDE_STEPS / mm_steps(f), n_parts = (b->n_spans + at_once - 1) / at_once;
    const int64_t n_asks = b->n_spans * mm_steps(f) * ((end - c) / PAIR_ROWS);
    const int64_t n_lines = b->n_spans * mm_span_bytes(f, MM_R) / 64;
    const uint8_t *w = b->w;
    wide_next next = {.stride = b->stride, .lines = (int)((n_lines + n_asks - 1) / n_asks), .ahead = b->ahead};
    int64_t n = 0;
    for (; n + PAIR_OUTS <= n_out; n += PAIR_OUTS, w += 2 * b->stride) {
        next.at = (const char *)(n + 2 * PAIR_OUTS <= n_out ? w + 2 * b->stride : b->after);
        next.stop = next.at + n_lines * 64;
        for (int64_t p = 0; p < n_parts; p++) {
            const int64_t first = p * at_once, spans = b->n_spans - first < at_once ? b->n_spans - first : at_once;
            const int last = p == n_parts - 1;
            for (int i = 0; i < 2; i++)
                wide_unpack(f, w + (size_t)i * b->stride + first * mm_span_bytes(f, MM_R), (int)spans, i, &pair);
            const uint8_t *a = b->act + c * b->row_bytes + first * mm_steps(f) * MM_TILE * MM_ROW_STEP;
            float *sum = sums;
            for (int64_t i = c; i < end; i += MM_TILE, a += MM_TILE * b->row_bytes, sum += MM_TILE * PAIR_OUTS) {
                float *o = out + i * ldo + n;
                if (p == n_parts - 2 || n_parts == 1) mm_fetch_outputs(o, ldo, MM_TILE, PAIR_OUTS);
                if (p == 0 && b->more) mm_fetch_outputs(pair_then(n_out, n, c, end, i, out, ldo), ldo, MM_TILE, PAIR_OUTS);
                const float *from = p ? sum : b->more ? o : NULL;
                wide_tile(f, &pair, (int)spans * mm_steps(f), a, &next, from, p ? PAIR_OUTS : ldo, last ? o : sum,
                          last ? ldo : PAIR_OUTS);
            }
        }
    }
    return n;
}

#endif
