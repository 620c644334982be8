// SPDX-License-Identifier: Apache-2.0
/* quant_decode.c: every format's decoder against the format's definition, written here element by element from byte
 * offsets; sizes and names; random bytes at odd addresses; random rows. */
#include "unit/fixture.h"

#include <math.h>

#include "quant/quant.h"

static const uint32_t TYPES[] = {WEFT_F32,  WEFT_F16,  WEFT_BF16, WEFT_Q4_0,   WEFT_Q4_1,
                                 WEFT_Q5_0, WEFT_Q5_1, WEFT_Q8_0, WEFT_Q2_K,   WEFT_Q3_K,
                                 WEFT_Q4_K, WEFT_Q5_K, WEFT_Q6_K, WEFT_IQ4_NL, WEFT_IQ4_XS};
enum { N_TYPES = sizeof TYPES / sizeof *TYPES };

static int u16(const uint8_t *p)
{
    return p[0] | p[1] << 8;
}

static double half(const uint8_t *p)
{
    int h = u16(p), exponent = h >> 10 & 31, fraction = h & 1023;
    double v = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    return h & 0x8000 ? -v : v;
}

/* Bits first .. first + n - 1 of the little-endian bit string at p. */
static int bits(const uint8_t *p, int first, int n)
{
    int v = 0;
    for (int i = 0; i < n; i++) v |= (p[(first + i) / 8] >> (first + i) % 8 & 1) << i;
    return v;
}

static int iq4(int index)
{
    static const int levels[] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
    return levels[index];
}

/* Blocks of 32: byte j holds elements j (low) and j + 16 (high). */
static int nibble32(const uint8_t *qs, int e)
{
    return bits(qs, 8 * (e % 16) + 4 * (e / 16), 4);
}

/* Super-blocks: 32 bytes hold elements 64c .. 64c + 31 (low) and the next 32 (high). */
static int nibble64(const uint8_t *qs, int e)
{
    return bits(qs + 32 * (e / 64), 8 * (e % 32) + 4 * (e / 32 % 2), 4);
}

/* Super-blocks: 32 bytes hold 128 elements, two bits of each, 32 to a bit pair. */
static int pair128(const uint8_t *qs, int e)
{
    return bits(qs + 32 * (e / 128), 8 * (e % 32) + 2 * (e / 32 % 4), 2);
}

/* The 12 bytes of Q4_K and Q5_K: six-bit scales 0..3, then minima 0..3, in bytes 0..7; the low nibbles of scales 4..7
 * and of minima 4..7 share bytes 8..11; their upper bits are on top of bytes 0..3 and 4..7. */
static void k_scale(const uint8_t *s, int j, int *scale, int *min)
{
    *scale = j < 4 ? bits(s, 8 * j, 6) : bits(s, 8 * (j + 4), 4) + 16 * bits(s, 8 * (j - 4) + 6, 2);
    *min = j < 4 ? bits(s, 8 * (j + 4), 6) : bits(s, 8 * (j + 4) + 4, 4) + 16 * bits(s, 8 * j + 6, 2);
}

static double q3_k(const uint8_t *b, int e)
{
    int j = e / 16,
        scale = bits(b + 96, 8 * (j % 8) + 4 * (j / 8), 4) + 16 * bits(b + 104, 8 * (j % 4) + 2 * (j / 4), 2);
    int q = pair128(b + 32, e) + 4 * bits(b, 8 * (e % 32) + e / 32, 1);
    return half(b + 108) * (scale - 32) * (q - 4);
}

static double q6_k(const uint8_t *b, int e)
{
    int low = bits(b + 64 * (e / 128), 8 * (e % 64) + 4 * (e / 64 % 2), 4);
    return half(b + 208) * (int8_t)b[192 + e / 16] * (low + 16 * pair128(b + 128, e) - 32);
}

static double iq4_xs(const uint8_t *b, int e)
{
    int j = e / 32, scale = bits(b + 4, 4 * j, 4) + 16 * bits(b + 2, 2 * j, 2);
    return half(b) * (scale - 32) * iq4(nibble32(b + 8 + 16 * j, e % 32));
}

/* Element e of block b. */
static double defined(uint32_t dtype, const uint8_t *b, int e)
{
    int scale, min;
    switch (dtype) {
    case WEFT_Q4_0: return half(b) * (nibble32(b + 2, e) - 8);
    case WEFT_Q4_1: return half(b) * nibble32(b + 4, e) + half(b + 2);
    case WEFT_Q5_0: return half(b) * (nibble32(b + 6, e) + 16 * bits(b + 2, e, 1) - 16);
    case WEFT_Q5_1: return half(b) * (nibble32(b + 8, e) + 16 * bits(b + 4, e, 1)) + half(b + 2);
    case WEFT_Q8_0: return half(b) * (int8_t)b[2 + e];
    case WEFT_Q2_K:
        return half(b + 80) * bits(b, 8 * (e / 16), 4) * pair128(b + 16, e) -
               half(b + 82) * bits(b, 8 * (e / 16) + 4, 4);
    case WEFT_Q3_K: return q3_k(b, e);
    case WEFT_Q4_K:
        k_scale(b + 4, e / 32, &scale, &min);
        return half(b) * scale * nibble64(b + 16, e) - half(b + 2) * min;
    case WEFT_Q5_K:
        k_scale(b + 4, e / 32, &scale, &min);
        return half(b) * scale * (nibble64(b + 48, e) + 16 * bits(b + 16, 8 * (e % 32) + e / 32, 1)) -
               half(b + 2) * min;
    case WEFT_Q6_K: return q6_k(b, e);
    case WEFT_IQ4_NL: return half(b) * iq4(nibble32(b + 2, e));
    case WEFT_IQ4_XS: return iq4_xs(b, e);
    case WEFT_F16: return half(b);
    default: return 0;
    }
}

/* Where the f16 numbers of a block lie; -1: none. */
static void half_places(uint32_t dtype, int place[2])
{
    place[0] = 0, place[1] = -1;
    if (dtype == WEFT_Q2_K) place[0] = 80, place[1] = 82;
    if (dtype == WEFT_Q3_K) place[0] = 108;
    if (dtype == WEFT_Q6_K) place[0] = 208;
    if (dtype == WEFT_Q4_1 || dtype == WEFT_Q5_1 || dtype == WEFT_Q4_K || dtype == WEFT_Q5_K) place[1] = 2;
}

static void decoders_follow_the_definitions(void **state)
{
    (void)state;
    weft__rng rng;
    weft__rng_seed(&rng, 1);
    for (int t = 0; t < N_TYPES; t++) {
        if (TYPES[t] == WEFT_F32 || TYPES[t] == WEFT_BF16) continue;
        weft_dtype_info info = weft_dtype_describe(TYPES[t]);
        for (int round = 0; round < 50; round++) {
            uint8_t block[256];
            float got[256];
            int place[2];
            for (uint32_t i = 0; i < info.block_bytes; i++) block[i] = (uint8_t)weft__rng_u64(&rng);
            half_places(TYPES[t], place);
            for (int i = 0; i < 2 && place[i] >= 0; i++) block[place[i] + 1] &= 0xbf; /* below 2, and so finite */
            assert_true(weft__quant_decode_row(TYPES[t], block, got, info.block_elems));
            for (int e = 0; e < (int)info.block_elems; e++) {
                double want = defined(TYPES[t], block, e);
                /* Three float roundings of terms that are below 2 * 127 * 127 each. */
                double scale = fmax(fabs(want), place[1] >= 0 ? fabs(half(block + place[1])) * 64 : 0);
                if (!(fabs(got[e] - want) <= 4 * 0x1p-24 * scale + 1e-30))
                    fail_msg("%s[%d] is %g, not %g", info.name, e, (double)got[e], want);
            }
        }
    }
}

/* A few values by hand. 0x3c00 is 1 and 0xc000 is -2 as f16. */
static void blocks_by_hand(void **state)
{
    (void)state;
    float x[256];
    const float floats[2] = {1.5f, -3e-39f};
    const uint8_t q4_0[18] = {0x00, 0x3c, 0x1f}, q8_0[34] = {0x00, 0xc0, 0x80, 0x7f},
                  bf16[4] = {0x80, 0x3f, 0x00, 0xc0};
    uint8_t q6_k[210] = {[0] = 0xf1, [128] = 0x03, [192] = 0xfe, [208] = 0x00, [209] = 0x3c},
            q4_k[144] = {0x00, 0x3c, 0x00, 0xc0, 0xc1, [8] = 0x02, [12] = 0x03, [16] = 0x5a};
    weft__quant_decode_row(WEFT_F32, floats, x, 2);
    assert_true(x[0] == 1.5f && x[1] == -3e-39f);
    weft__quant_decode_row(WEFT_BF16, bf16, x, 2);
    assert_true(x[0] == 1 && x[1] == -2);
    weft__quant_decode_row(WEFT_Q4_0, q4_0, x, 32);
    assert_true(x[0] == 7 && x[16] == -7 && x[1] == -8 && x[31] == -8);
    weft__quant_decode_row(WEFT_Q8_0, q8_0, x, 32);
    assert_true(x[0] == 256 && x[1] == -254 && x[2] == 0);
    weft__quant_decode_row(WEFT_Q6_K, q6_k, x, 256);
    assert_true(x[0] == -2.f * (1 + 48 - 32) && x[1] == 64 && x[64] == 0 /* scale 0 */);
    weft__quant_decode_row(WEFT_Q4_K, q4_k, x, 256);
    /* scale 0 is 1, minimum 0 is 2 and dmin -2; scale 4 is 3 + 16 * 3. */
    assert_true(x[0] == 10 + 4 && x[1] == 4 && x[32] == 0 && x[128] == 0);
    q4_k[16 + 64] = 0x02;
    weft__quant_decode_row(WEFT_Q4_K, q4_k, x, 256);
    assert_true(x[128] == 51 * 2);
}

/* Any bytes, at any address: exactly n floats are written and exactly the row is read (sanitizers watch the heap
 * blocks). */
static void any_bytes_decode(void **state)
{
    (void)state;
    weft__rng rng;
    weft__rng_seed(&rng, 2);
    for (int t = 0; t < N_TYPES; t++) {
        int64_t n = 3 * (int64_t)weft_dtype_describe(TYPES[t]).block_elems;
        size_t bytes = weft__quant_row_bytes(TYPES[t], n);
        for (int offset = 0; offset < 4; offset++) {
            uint8_t *src = weft__alloc(bytes + (size_t)offset);
            float *dst = weft__alloc_array((size_t)n, sizeof *dst);
            assert_true(src && dst);
            for (size_t i = 0; i < bytes; i++) src[(size_t)offset + i] = (uint8_t)weft__rng_u64(&rng);
            weft__quant_decoder(TYPES[t])(src + offset, dst, n);
            weft__free(src);
            weft__free(dst);
        }
    }
}

static void sizes_and_names(void **state)
{
    (void)state;
    assert_int_equal(weft_dtype_from_name("q4_k"), WEFT_Q4_K);
    assert_int_equal(weft_dtype_from_name("IQ4_xs"), WEFT_IQ4_XS);
    assert_int_equal(weft_dtype_from_name("bf16"), WEFT_BF16);
    assert_int_equal(weft_dtype_from_name("Q4"), -1);
    assert_int_equal(weft_dtype_from_name(""), -1);
    assert_null(weft_dtype_describe(4).name);
    assert_null(weft_dtype_describe(UINT32_MAX).name);
    assert_int_equal(weft_dtype_describe(WEFT_Q6_K).block_bytes, 210);
    assert_true(weft__quant_row_bytes(WEFT_Q4_0, 64) == 36);
    assert_true(weft__quant_row_bytes(WEFT_Q4_0, 65) == 0);
    assert_true(weft__quant_row_bytes(WEFT_Q4_0, -32) == 0);
    assert_true(weft__quant_row_bytes(99, 32) == 0);
    assert_true(weft__quant_row_bytes(WEFT_F64, INT64_MAX) == 0);
    float x = 7;
    assert_false(weft__quant_decode_row(WEFT_I32, "abcd", &x, 1));
    assert_true(x == 7);
}

static void random_rows_have_the_spread_of_weights(void **state)
{
    (void)state;
    enum { N = 1 << 16 };
    static uint8_t row[N * 4], again[N * 4];
    static float x[N];
    for (int t = 0; t < N_TYPES; t++) {
        weft__rng rng;
        double sum = 0, squares = 0;
        weft__rng_seed(&rng, 3);
        weft__quant_random_row(TYPES[t], &rng, row, N);
        weft__rng_seed(&rng, 3);
        weft__quant_random_row(TYPES[t], &rng, again, N);
        assert_memory_equal(row, again, weft__quant_row_bytes(TYPES[t], N));
        weft__quant_decode_row(TYPES[t], row, x, N);
        for (int i = 0; i < N; i++) {
            assert_true(isfinite(x[i]));
            sum += x[i];
            squares += (double)x[i] * x[i];
        }
        double mean = sum / N, spread = sqrt(squares / N - mean * mean);
        if (!(fabs(mean) < 0.004 && spread > 0.015 && spread < 0.027))
            fail_msg("%s: mean %g, spread %g", weft_dtype_describe(TYPES[t]).name, mean, spread);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decoders_follow_the_definitions),
        cmocka_unit_test(blocks_by_hand),
        cmocka_unit_test(any_bytes_decode),
        cmocka_unit_test(sizes_and_names),
        cmocka_unit_test(random_rows_have_the_spread_of_weights),
    };
    return cmocka_run_group_tests_name("quant_decode", tests, NULL, NULL);
}
