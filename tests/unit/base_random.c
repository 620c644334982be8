// SPDX-License-Identifier: Apache-2.0
/* base_random.c: known answers and rough statistics of the generator. */
#include "unit/fixture.h"

#include <math.h>

#include "base/random.h"

/* xoshiro256** from the state 1, 2, 3, 4: the first outputs follow by hand from the definition, out = rotl(s1 * 5, 7) *
 * 9. */
static void generator_matches_its_definition(void **state)
{
    (void)state;
    weft__rng rng = {{1, 2, 3, 4}};
    static const uint64_t want[] = {11520u, 0u, 1509978240u, 1215971899390074240u};
    for (int i = 0; i < 4; i++) assert_true(weft__rng_u64(&rng) == want[i]);
}

/* SplitMix64 from 0 begins with these numbers in every implementation. */
static void seeding_matches_splitmix(void **state)
{
    (void)state;
    weft__rng rng;
    weft__rng_seed(&rng, 0);
    static const uint64_t want[] = {0xE220A8397B1DCDAFu, 0x6E789E6AA1B965F4u, 0x06C45D188009454Fu, 0xF88BB8A8724C81ECu};
    for (int i = 0; i < 4; i++) assert_true(rng.s[i] == want[i]);
    weft__rng other;
    weft__rng_seed(&other, 1);
    assert_true(weft__rng_u64(&rng) != weft__rng_u64(&other));
}

static void numbers_stay_in_range(void **state)
{
    (void)state;
    weft__rng rng;
    weft__rng_seed(&rng, 42);
    double sum = 0, squares = 0, normal_sum = 0, normal_squares = 0;
    size_t counts[7] = {0};
    enum { N = 70000 };
    for (int i = 0; i < N; i++) {
        double u = weft__rng_double(&rng), z = weft__rng_normal(&rng);
        assert_true(u >= 0 && u < 1);
        assert_true(isfinite(z));
        sum += u;
        squares += u * u;
        normal_sum += z;
        normal_squares += z * z;
        counts[weft__rng_below(&rng, 7)]++;
        assert_true(weft__rng_below(&rng, 1) == 0);
        assert_true(weft__rng_below(&rng, UINT64_MAX) < UINT64_MAX);
    }
    /* five standard deviations of each mean */
    assert_true(fabs(sum / N - 0.5) < 5 * 0.2887 / sqrt(N));
    assert_true(fabs(squares / N - 1.0 / 3) < 5 * 0.2981 / sqrt(N));
    assert_true(fabs(normal_sum / N) < 5 / sqrt(N));
    assert_true(fabs(normal_squares / N - 1) < 5 * 1.4142 / sqrt(N));
    for (int i = 0; i < 7; i++) assert_true(fabs((double)counts[i] - N / 7.0) < 5 * sqrt(N / 7.0));
}

static void entropy_differs(void **state)
{
    (void)state;
    assert_true(weft__rng_entropy() != weft__rng_entropy());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(generator_matches_its_definition),
        cmocka_unit_test(seeding_matches_splitmix),
        cmocka_unit_test(numbers_stay_in_range),
        cmocka_unit_test(entropy_differs),
    };
    return cmocka_run_group_tests_name("base_random", tests, NULL, NULL);
}
