// SPDX-License-Identifier: Apache-2.0
/* quant_half.c: 16-bit floats against their definition: all values, and every place where rounding turns. */
#include "unit/fixture.h"

#include <math.h>

#include "quant/half.h"

/* A half of sign s, exponent e and fraction f is (-1)^s * 2^(e - 15) * (1 + f / 1024), and 2^-14 * f / 1024 where e is
 * 0. */
static double half_value(int h)
{
    int exponent = h >> 10 & 31, fraction = h & 1023;
    double magnitude = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    if (exponent == 31) magnitude = fraction ? (double)NAN : (double)INFINITY;
    return h & 0x8000 ? -magnitude : magnitude;
}

static void every_half(void **state)
{
    (void)state;
    for (int h = 0; h < 65536; h++) {
        double want = half_value(h);
        float got = weft__f16_to_f32((uint16_t)h);
        if (isnan(want)) {
            assert_true(isnan(got));
            assert_true(isnan(half_value(weft__f16_from_f32(got))));
            continue;
        }
        assert_true(got == (float)want && (signbit(got) != 0) == (h >= 0x8000));
        assert_int_equal(weft__f16_from_f32(got), h);
    }
}

/* Halfway between neighbours goes to the even one; a hair beside it, to the nearer. */
static void halves_round_to_even(void **state)
{
    (void)state;
    for (int sign = 0; sign <= 0x8000; sign += 0x8000) {
        for (int h = 0; h < 0x7bff; h++) {
            float a = (float)half_value(sign | h), b = (float)half_value(sign | (h + 1)), middle = (a + b) / 2;
            assert_int_equal(weft__f16_from_f32(middle), sign | (h & 1 ? h + 1 : h));
            assert_int_equal(weft__f16_from_f32(nextafterf(middle, a)), sign | h);
            assert_int_equal(weft__f16_from_f32(nextafterf(middle, b)), sign | (h + 1));
        }
        float s = sign ? -1.f : 1.f;
        assert_int_equal(weft__f16_from_f32(s * nextafterf(65520.f, 0.f)), sign | 0x7bff);
        assert_int_equal(weft__f16_from_f32(s * 65520.f), sign | 0x7c00);
        assert_int_equal(weft__f16_from_f32(s * 3e38f), sign | 0x7c00);
        assert_int_equal(weft__f16_from_f32(s * INFINITY), sign | 0x7c00);
        assert_int_equal(weft__f16_from_f32(s * 1e-45f), sign);
    }
}

static void every_bf16(void **state)
{
    (void)state;
    for (int h = 0; h < 65536; h++) {
        float got = weft__bf16_to_f32((uint16_t)h);
        int exponent = h >> 7 & 255, fraction = h & 127;
        if (exponent == 255 && fraction) {
            assert_true(isnan(got) && isnan(weft__bf16_to_f32(weft__bf16_from_f32(got))));
            continue;
        }
        double want = exponent == 255 ? (double)INFINITY
                      : exponent      ? ldexp(128 + fraction, exponent - 134)
                                      : ldexp(fraction, -133);
        assert_true(got == (float)(h & 0x8000 ? -want : want));
        assert_int_equal(weft__bf16_from_f32(got), h);
        if ((h & 0x7fff) >= 0x7f7f) continue;
        float middle = weft__f32_from_bits((uint32_t)h << 16 | 0x8000);
        assert_int_equal(weft__bf16_from_f32(middle), h & 1 ? h + 1 : h);
        assert_int_equal(weft__bf16_from_f32(nextafterf(middle, 0)), h);
        assert_int_equal(weft__bf16_from_f32(weft__f32_from_bits(weft__f32_bits(middle) + 1)), h + 1);
    }
    /* A NaN whose payload lies only in the bits that are cut off stays a NaN. */
    assert_true(isnan(weft__bf16_to_f32(weft__bf16_from_f32(weft__f32_from_bits(0x7f800001)))));
    assert_true(isnan(weft__f16_to_f32(weft__f16_from_f32(weft__f32_from_bits(0xff800001)))));
    assert_int_equal(weft__bf16_from_f32(3.4028235e38f), 0x7f80);
}

/* Each code is what its bits say, comes back, and takes what is nearest; half-way goes to the even one. */
static void every_f8(void **state)
{
    (void)state;
    for (int c = 0; c < 256; c++) {
        const int code = c & 0x7f, exponent = code >> 3, fraction = code & 7;
        const float got = weft__f8_to_f32((uint8_t)c), sign = c & 0x80 ? -1.0f : 1.0f;
        if (code == 0x7f) {
            assert_true(isnan(got));
            continue;
        }
        const double want = exponent ? ldexp(8 + fraction, exponent - 10) : ldexp(fraction, -9);
        assert_true(got == sign * (float)want && (signbit(got) != 0) == (c >= 0x80));
        assert_int_equal(weft__f8_from_f32(got), c);
        if (code == 0x7e) continue;
        const float middle = sign * (float)((want + fabs((double)weft__f8_to_f32((uint8_t)(c + 1)))) / 2);
        assert_int_equal(weft__f8_from_f32(middle), c & 1 ? c + 1 : c);
        assert_int_equal(weft__f8_from_f32(nextafterf(middle, 0)), c);
        assert_int_equal(weft__f8_from_f32(nextafterf(middle, sign * INFINITY)), c + 1);
    }
    assert_int_equal(weft__f8_from_f32(448.1f), 0x7e);
    assert_int_equal(weft__f8_from_f32(-1e30f), 0xfe);
    assert_int_equal(weft__f8_from_f32(INFINITY), 0x7e);
    assert_int_equal(weft__f8_from_f32(NAN) & 0x7f, 0x7f);
    assert_int_equal(weft__f8_from_f32(1e-40f), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_half),
        cmocka_unit_test(halves_round_to_even),
        cmocka_unit_test(every_bf16),
        cmocka_unit_test(every_f8),
    };
    return cmocka_run_group_tests_name("quant_half", tests, NULL, NULL);
}
