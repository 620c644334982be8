// SPDX-License-Identifier: Apache-2.0
/* quant_encode.c: the encoders on made-up rows: errors against a plain encoder that is computed here, importance, exact
 * cases, extremes, refusals. */
#include "unit/fixture.h"

#include <float.h>
#include <math.h>
#include "quant/blocks.h"
#include "quant/encode.h"
#include "quant/fit_parts.h"
#include "quant/half.h"

/* What a plain encoder of the format does: sub-blocks of `sub`, whole levels lo..hi from the largest magnitude or, with
 * minima, from the range; scales (and minima) are f16 or, where scale_max is not 0, whole numbers up to scale_max times
 * an f16. `bound`: relative RMS error that our encoding of normal rows may have. */
static const struct format {
    uint32_t dtype;
    int sub, lo, hi, minima, scale_max;
    double bound;
} FORMATS[] = {
    {WEFT_Q4_0, 32, -8, 7, 0, 0, 0.083},    {WEFT_Q4_1, 32, 0, 15, 1, 0, 0.070},
    {WEFT_Q5_0, 32, -16, 15, 0, 0, 0.042},  {WEFT_Q5_1, 32, 0, 31, 1, 0, 0.034},
    {WEFT_Q8_0, 32, -127, 127, 0, 0, .005}, {WEFT_Q2_K, 16, 0, 3, 1, 15, 0.265},
    {WEFT_Q3_K, 16, -4, 3, 0, 31, 0.15},    {WEFT_Q4_K, 32, 0, 15, 1, 63, 0.072},
    {WEFT_Q5_K, 32, 0, 31, 1, 63, 0.035},   {WEFT_Q6_K, 16, -32, 31, 0, 127, 0.017},
    {WEFT_IQ4_NL, 32, -8, 7, 0, 0, 0.075},  {WEFT_IQ4_XS, 32, -8, 7, 0, 31, 0.076},
};
enum { N_FORMATS = sizeof FORMATS / sizeof *FORMATS, K = 512, ROWS = 8, N = K * ROWS };

static float rounded_half(float x)
{
    return weft__f16_to_f32(weft__f16_from_f32(x));
}

/* `common`: the largest of all in the super-block. */
static float rounded_scale(const struct format *f, float x, float common)
{
    if (!f->scale_max) return rounded_half(x);
    float unit = rounded_half(common / (float)f->scale_max);
    return unit > 0 ? unit * fminf(rintf(x / unit), (float)f->scale_max) : 0;
}

static void own_scale(const struct format *f, const float *x, float *d, float *m)
{
    float lo = f->minima ? fminf(x[0], f->scale_max ? 0 : x[0]) : 0, hi = x[0], biggest = 0;
    for (int i = 0; i < f->sub; i++) {
        if (f->minima) lo = fminf(lo, x[i]);
        hi = fmaxf(hi, x[i]);
        biggest = fmaxf(biggest, fabsf(x[i]));
    }
    *d = f->minima ? (hi - lo) / (float)f->hi : biggest / (float)f->hi;
    *m = lo;
}

/* Writes the n values, whole super-blocks, as the plain encoder would leave them. */
static void plainly(const struct format *f, const float *x, float *y, int n)
{
    int whole = f->scale_max ? 256 : f->sub;
    for (int b = 0; b < n; b += whole) {
        float d_max = 0, m_max = 0, d, m;
        for (int i = b; i < b + whole; i += f->sub) {
            own_scale(f, x + i, &d, &m);
            d_max = fmaxf(d_max, d);
            m_max = fmaxf(m_max, fabsf(m));
        }
        for (int i = b; i < b + whole; i++) {
            own_scale(f, x + i - i % f->sub, &d, &m);
            d = rounded_scale(f, d, d_max);
            m = copysignf(rounded_scale(f, fabsf(m), m_max), m);
            float q = d > 0 ? rintf((x[i] - m) / d) : 0;
            y[i] = d * fminf(fmaxf(q, (float)f->lo), (float)f->hi) + m;
        }
    }
}

static void encode_rows(uint32_t dtype, const float *x, uint8_t *bytes, int n_rows, int n, const float *importance)
{
    weft_error err;
    if (weft__quant_encode_rows(dtype, x, bytes, n_rows, n, importance, &err)) fail_msg("%s", err.message);
}

/* Encodes and decodes; the weighted sum of squared errors. */
static double encoding_error(uint32_t dtype, const float *x, const float *importance, const float *weights)
{
    static uint8_t bytes[N * 4];
    static float y[N];
    double sum = 0;
    encode_rows(dtype, x, bytes, ROWS, K, importance);
    weft__quant_decode_row(dtype, bytes, y, N);
    for (int i = 0; i < N; i++) sum += (weights ? weights[i % K] : 1) * ((double)y[i] - x[i]) * ((double)y[i] - x[i]);
    return sum;
}

enum { NORMAL, UNIFORM, POSITIVE, HEAVY, VERY_HEAVY, SPARSE, SMALL, LARGE, N_KINDS };
static const char *const KINDS[] = {"normal", "uniform", "positive", "heavy-tailed", "very heavy-tailed",
                                    "sparse", "small",   "large"};

static void fill(float *x, int kind)
{
    weft__rng rng;
    weft__rng_seed(&rng, 10 + (uint64_t)kind);
    for (int i = 0; i < N; i++) {
        double z = weft__rng_normal(&rng), u = weft__rng_double(&rng);
        switch (kind) {
        case UNIFORM: x[i] = (float)(2 * u - 1); break;
        case POSITIVE: x[i] = (float)(0.2 + u); break;
        case HEAVY: x[i] = (float)(z / sqrt(-log(1 - u))); break; /* Student's t, 2 degrees of freedom */
        case VERY_HEAVY: x[i] = (float)(z * exp(3 * u)); break;
        case SPARSE: x[i] = u < 0.9 ? 0 : (float)z; break;
        case SMALL: x[i] = (float)(1e-4 * z); break;
        case LARGE: x[i] = (float)(1e4 * z); break;
        default: x[i] = (float)z;
        }
    }
}

static void better_than_a_plain_encoder(void **state)
{
    (void)state;
    static float x[N], y[N];
    for (int kind = 0; kind < N_KINDS; kind++) {
        fill(x, kind);
        double energy = 0;
        for (int i = 0; i < N; i++) energy += (double)x[i] * x[i];
        for (int f = 0; f < N_FORMATS; f++) {
            double ours = encoding_error(FORMATS[f].dtype, x, NULL, NULL), plain = 0;
            plainly(&FORMATS[f], x, y, N);
            for (int i = 0; i < N; i++) plain += ((double)y[i] - x[i]) * ((double)y[i] - x[i]);
            const char *name = weft_dtype_describe(FORMATS[f].dtype).name;
            if (!(ours <= plain))
                fail_msg("%s, %s rows: error %g, plainly %g", name, KINDS[kind], sqrt(ours / energy),
                         sqrt(plain / energy));
            if (kind == NORMAL && !(sqrt(ours / energy) <= FORMATS[f].bound))
                fail_msg("%s: error %g", name, sqrt(ours / energy));
        }
    }
}

static void importance_moves_the_error(void **state)
{
    (void)state;
    static float x[N], importance[K], zeros[K], scaled[K];
    static uint8_t a[N * 4], b[N * 4];
    weft__rng rng;
    weft__rng_seed(&rng, 77);
    fill(x, NORMAL);
    for (int i = 0; i < K; i++) {
        importance[i] = i % 7 ? (float)exp(weft__rng_normal(&rng)) : 0;
        scaled[i] = ldexpf(importance[i], 40);
    }
    for (int f = 0; f < N_FORMATS; f++) {
        uint32_t dtype = FORMATS[f].dtype;
        double with = encoding_error(dtype, x, importance, importance),
               without = encoding_error(dtype, x, NULL, importance);
        if (!(with < without)) fail_msg("%s: %g with, %g without", weft_dtype_describe(dtype).name, with, without);
        /* The columns that count for nothing are still near their values. */
        assert_true(encoding_error(dtype, x, importance, NULL) < 2.5 * encoding_error(dtype, x, NULL, NULL));
        encode_rows(dtype, x, a, ROWS, K, NULL);
        encode_rows(dtype, x, b, ROWS, K, zeros);
        assert_memory_equal(a, b, ROWS * weft__quant_row_bytes(dtype, K));
        encode_rows(dtype, x, a, ROWS, K, importance);
        encode_rows(dtype, x, b, ROWS, K, scaled);
        assert_memory_equal(a, b, ROWS * weft__quant_row_bytes(dtype, K));
    }
}

/* One call for all rows, or one each, to odd addresses: the same bytes, and none beside them. */
static void rows_are_independent(void **state)
{
    (void)state;
    static float x[N];
    static uint8_t a[N * 4 + 2], b[N * 4 + 2];
    fill(x, HEAVY);
    for (int f = 0; f < N_FORMATS; f++) {
        size_t row = weft__quant_row_bytes(FORMATS[f].dtype, K);
        memset(a, 0xa5, sizeof a);
        encode_rows(FORMATS[f].dtype, x, a + 1, ROWS, K, NULL);
        assert_true(a[0] == 0xa5 && a[1 + ROWS * row] == 0xa5);
        for (size_t r = 0; r < ROWS; r++) encode_rows(FORMATS[f].dtype, x + r * K, b + r * row, 1, K, NULL);
        assert_memory_equal(a + 1, b, ROWS * row);
    }
}

/* Rows that every format can hold exactly, or that lie beyond what it can hold. */
static void exact_and_extreme_rows(void **state)
{
    (void)state;
    static float x[N], y[N];
    static uint8_t bytes[N * 4];
    static const float MAGNITUDES[] = {0,     1e-45f, 1e-39f, 1e-30f, 0x1p-26f, 3e-8f,
                                       1e-7f, 1e-5f,  1e5f,   1e9f,   1e30f,    FLT_MAX};
    weft__rng rng;
    weft__rng_seed(&rng, 5);
    for (int f = 0; f < N_FORMATS; f++) {
        const char *name = weft_dtype_describe(FORMATS[f].dtype).name;
        for (size_t k = 0; k < sizeof MAGNITUDES / sizeof *MAGNITUDES; k++) {
            for (int i = 0; i < N; i++) x[i] = MAGNITUDES[k] * (float)(2 * weft__rng_double(&rng) - 1);
            x[3] = MAGNITUDES[k], x[300] = -MAGNITUDES[k];
            encode_rows(FORMATS[f].dtype, x, bytes, ROWS, K, NULL);
            weft__quant_decode_row(FORMATS[f].dtype, bytes, y, N);
            double error = 0, energy = 0;
            for (int i = 0; i < N; i++) {
                if (!isfinite(y[i]) || (MAGNITUDES[k] == 0 && y[i] != 0))
                    fail_msg("%s: %g became %g", name, (double)x[i], (double)y[i]);
                error += ((double)y[i] - x[i]) * ((double)y[i] - x[i]);
                energy += (double)x[i] * x[i];
            }
            /* Never worse than all zeros; at 1e-5 and 1e5, within the range of every format, much better. */
            if (!(error <= energy)) fail_msg("%s at %g: error %g of %g", name, (double)MAGNITUDES[k], error, energy);
            if (MAGNITUDES[k] == 1e5f && !(error <= 0.1 * energy))
                fail_msg("%s at 1e5: error %g of %g", name, error, energy);
        }
        if (FORMATS[f].scale_max || FORMATS[f].dtype == WEFT_IQ4_NL) continue;
        for (int i = 0; i < N; i++) x[i] = 0.25f * (float)((int)weft__rng_below(&rng, 3) - 1);
        assert_true(encoding_error(FORMATS[f].dtype, x, NULL, NULL) == 0);
    }
}

static void floats_are_nearest_and_finite(void **state)
{
    (void)state;
    const float x[4] = {1.0009766f, -7e4f, FLT_MAX, 1e-45f};
    uint16_t h[4];
    float same[4];
    encode_rows(WEFT_F16, x, (uint8_t *)h, 1, 4, NULL);
    assert_true(h[0] == 0x3c01 && h[1] == 0xfbff && h[2] == 0x7bff && h[3] == 0);
    encode_rows(WEFT_BF16, x, (uint8_t *)h, 2, 2, NULL);
    assert_true(h[0] == 0x3f80 && h[1] == 0xc789 && h[2] == 0x7f7f && h[3] == 0);
    encode_rows(WEFT_F32, x, (uint8_t *)same, 1, 4, NULL);
    assert_memory_equal(same, x, sizeof x);
}

static void refuse(uint32_t dtype, const float *x, int64_t n_rows, int64_t n, const float *importance, weft_status want,
                   const char *part)
{
    static uint8_t bytes[N * 4];
    weft_error err = {0};
    assert_int_equal(weft__quant_encode_rows(dtype, x, bytes, n_rows, n, importance, &err), want);
    assert_int_equal(weft__quant_encode_rows(dtype, x, bytes, n_rows, n, importance, NULL), want);
    if (!strstr(err.message, part)) fail_msg("\"%s\" lacks \"%s\"", err.message, part);
}

static void bad_input_is_refused(void **state)
{
    (void)state;
    static float x[N], importance[K];
    fill(x, NORMAL);
    for (int f = 0; f < N_FORMATS; f++) {
        float was = x[3 * K + 17];
        x[3 * K + 17] = NAN;
        refuse(FORMATS[f].dtype, x, ROWS, K, NULL, WEFT_ARGUMENT, "row 3, column 17: NaN");
        x[3 * K + 17] = -INFINITY;
        refuse(FORMATS[f].dtype, x, ROWS, K, NULL, WEFT_ARGUMENT, "row 3, column 17: infinity");
        x[3 * K + 17] = was;
        importance[9] = -1;
        refuse(FORMATS[f].dtype, x, ROWS, K, importance, WEFT_ARGUMENT, "column 9");
        importance[9] = NAN;
        refuse(FORMATS[f].dtype, x, ROWS, K, importance, WEFT_ARGUMENT, "column 9");
        importance[9] = 0;
        refuse(FORMATS[f].dtype, x, 1, 48, NULL, WEFT_ARGUMENT, "blocks of");
        refuse(FORMATS[f].dtype, x, -1, K, NULL, WEFT_ARGUMENT, "-1 rows");
        refuse(FORMATS[f].dtype, x, 1, -256, NULL, WEFT_ARGUMENT, "-256 elements");
        assert_int_equal(weft__quant_encode_rows(FORMATS[f].dtype, x, NULL, 0, K, NULL, NULL), WEFT_OK);
    }
    refuse(WEFT_I32, x, 1, K, NULL, WEFT_UNSUPPORTED, "I32");
    refuse(77, x, 1, K, NULL, WEFT_UNSUPPORTED, "77");
}

/* Every value becomes the nearest multiple of its block's scale, and the error of that is what is claimed. */
static void the_nearest_code_without_a_search(void **state)
{
    (void)state;
    static float x[N], y[N];
    static weft__block_q8_0 blocks[N / 32];
    for (int kind = 0; kind < N_KINDS; kind++) {
        double error = 0, energy = 0;
        fill(x, kind);
        weft__quant_nearest_q8_0(x, blocks, N);
        weft__quant_decode_row(WEFT_Q8_0, blocks, y, N);
        for (int i = 0; i < N; i++) {
            double d = weft__f16_to_f32(blocks[i / 32].d), e = fabs((double)y[i] - x[i]);
            if (!(e <= 0.5001 * d))
                fail_msg("%s: %g became %g with a scale of %g", KINDS[kind], (double)x[i], (double)y[i], d);
            error += e * e;
            energy += (double)x[i] * x[i];
        }
        if (kind == NORMAL && !(error <= 2.9e-5 * energy)) fail_msg("normal rows: error %g", error / energy);
    }
}

static void the_nearest_code_at_the_ends(void **state)
{
    (void)state;
    float x[32] = {0}, y[32];
    weft__block_q8_0 b;
    weft__quant_nearest_q8_0(x, &b, 32);
    assert_int_equal(b.d, 0);
    for (float most = 1e-12f; most < 8e6f; most *= 3) { /* scales below f16's normal range, too */
        for (int i = 0; i < 32; i++) x[i] = most * (float)(i - 16) / 16;
        weft__quant_nearest_q8_0(x, &b, 32);
        weft__quant_decode_row(WEFT_Q8_0, &b, y, 32);
        double d = weft__f16_to_f32(b.d);
        for (int i = 0; i < 32; i++)
            if (!(fabs((double)y[i] - x[i]) <= 0.5001 * d) || !(d <= 1.001 * most / 127 + 0x1p-24))
                fail_msg("%g became %g", (double)x[i], (double)y[i]);
    }
    for (int i = 0; i < 32; i++) x[i] = i % 2 ? FLT_MAX : -FLT_MAX;
    weft__quant_nearest_q8_0(x, &b, 32);
    weft__quant_decode_row(WEFT_Q8_0, &b, y, 32);
    for (int i = 0; i < 32; i++) assert_true(y[i] == (i % 2 ? 65504.f * 127 : -65504.f * 127));
}

enum { REACH_COLUMNS = 256, REACH_ROW = 7 };

/* How many of the n values, among zeros, are told to be beyond the format; back: what the first one becomes. */
static weft__quant_beyond beyond(uint32_t dtype, const float *values, int n, float *back)
{
    static float x[REACH_COLUMNS], y[REACH_COLUMNS];
    static uint8_t to[REACH_COLUMNS * 4];
    weft__quant_beyond b = {0};
    memset(x, 0, sizeof x);
    for (int i = 0; i < n; i++) x[5 + 40 * i] = values[i];
    assert_int_equal(weft__quant_encode_row(dtype, x, to, REACH_ROW, REACH_COLUMNS, NULL, &b, NULL), WEFT_OK);
    weft__quant_decode_row(dtype, to, y, REACH_COLUMNS);
    if (back) *back = y[5];
    return b;
}

/* Each format says of the values that it cannot reach how many there are, and where the first one stands; of those that
 * it reaches, none. */
static void what_is_out_of_reach_is_counted(void **state)
{
    (void)state;
    for (int f = -1; f < N_FORMATS; f++) {
        const uint32_t dtype = f < 0 ? WEFT_F16 : FORMATS[f].dtype;
        float reach[2]; /* above 0, below */
        for (int s = 0; s < 2; s++) {
            const float huge = s ? -3e9f : 3e9f;
            assert_int_equal(beyond(dtype, &huge, 1, &reach[s]).n, 1);
            assert_true(isfinite(reach[s]) && (reach[s] > 0) == (huge > 0));
        }
        if (f < 0 || !FORMATS[f].minima) /* scales may be negative: what one side reaches, the other does */
            for (int s = 0; s < 2; s++) reach[s] = fmaxf(fabsf(reach[0]), fabsf(reach[1])) * (s ? -1.f : 1.f);
        for (int s = 0; s < 2; s++) {
            const float outside[] = {reach[s] * 1.02f, reach[s] * 1.02f, reach[s] * 0.5f};
            const weft__quant_beyond b = beyond(dtype, outside, 3, NULL);
            if (beyond(dtype, &reach[s], 1, NULL).n)
                fail_msg("%s reaches %g, and counts it", weft_dtype_describe(dtype).name, (double)reach[s]);
            if (b.n != 2 || b.row != REACH_ROW || b.column != 5 || b.value != outside[0])
                fail_msg("%s counts %lld of 2", weft_dtype_describe(dtype).name, (long long)b.n);
        }
    }
    const float most[] = {3.4e38f, 3.38e38f};
    assert_int_equal(beyond(WEFT_BF16, most, 2, NULL).n, 1);
    assert_int_equal(beyond(WEFT_F32, most, 2, NULL).n, 0);
    weft__quant_beyond sum = {0}, a = {2, 3, 4, 1e9f}, b = {5, 6, 7, 2e9f};
    weft__quant_beyond_add(&sum, &(weft__quant_beyond){0});
    weft__quant_beyond_add(&sum, &a);
    weft__quant_beyond_add(&sum, &b);
    assert_true(sum.n == 7 && sum.row == 3 && sum.column == 4 && sum.value == 1e9f);
    float x[32] = {[3] = NAN};
    uint8_t to[34];
    weft_error err = {0};
    assert_int_equal(weft__quant_encode_row(WEFT_Q8_0, x, to, REACH_ROW, 32, NULL, NULL, &err), WEFT_ARGUMENT);
    assert_non_null(strstr(err.message, "row 7, column 3: NaN"));
}

/* However many candidates are judged side by side, each is judged as it is alone: so files do not depend on the
 * processor that wrote them. */
static void all_widths_give_the_same_bits(void **state)
{
    (void)state;
    enum { MOST = 9, LONG = 32 };
    const weft__fit_levels levels[] = {{.lo = -8, .hi = 7}, {.lo = 0, .hi = 31}, {.table = weft__block_iq4_values}};
    float x[LONG], w[LONG], d[MOST], m[MOST];
    weft__rng rng;
    weft__rng_seed(&rng, 5);
    for (int round = 0; round < 300; round++) {
        const int n = round % (MOST + 1);
        for (int i = 0; i < LONG; i++) x[i] = (float)weft__rng_normal(&rng), w[i] = (float)weft__rng_double(&rng);
        for (int i = 0; i < MOST; i++) m[i] = (float)weft__rng_normal(&rng);
        for (int i = 0; i < MOST; i++) d[i] = i == 4 ? 0 : 0.2f * (float)weft__rng_normal(&rng);
        const weft__fit_span span = weft__fit_span_of(x, w, round % 2 ? LONG : LONG / 2);
        for (int f = 0; f < weft__fit_n_widths; f++) {
            weft__fit out[MOST + 1];
            memset(out, 0x5a, sizeof out);
            if (!(weft__tier_mask() >> weft__fit_widths[f].tier & 1)) continue;
            weft__fit_widths[f].each(&levels[round % 3], &span, n, d, m, out);
            for (int i = 0; i < n; i++) {
                const weft__fit alone = weft__fit_at(&levels[round % 3], &span, d[i], m[i]);
                assert_memory_equal(&out[i], &alone, sizeof alone);
            }
            for (size_t i = 0; i < sizeof *out; i++) assert_int_equal(((unsigned char *)&out[n])[i], 0x5a);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(better_than_a_plain_encoder),
        cmocka_unit_test(importance_moves_the_error),
        cmocka_unit_test(rows_are_independent),
        cmocka_unit_test(exact_and_extreme_rows),
        cmocka_unit_test(floats_are_nearest_and_finite),
        cmocka_unit_test(bad_input_is_refused),
        cmocka_unit_test(what_is_out_of_reach_is_counted),
        cmocka_unit_test(the_nearest_code_without_a_search),
        cmocka_unit_test(the_nearest_code_at_the_ends),
        cmocka_unit_test(all_widths_give_the_same_bits),
    };
    return cmocka_run_group_tests_name("quant_encode", tests, NULL, NULL);
}
