// SPDX-License-Identifier: Apache-2.0
/* eval_stats.c: intervals and tests have SciPy's values, random numbers are CPython's, and Python's literals are read
 * as ast.literal_eval reads them. */
#include <math.h>

#include "unit/fixture.h"

#include "eval/literal.h"
#include "eval/python_random.h"
#include "eval/stats.h"

static void near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-12 * fmax(1, fabs(b)))) fail_msg("%.17g is not %.17g", a, b);
}

static void wilson_intervals_are_scipys(void **state)
{
    (void)state;
    static const double cases[][4] = {{0, 10, 0, 0.27753279986288926},
                                      {10, 10, 0.7224672001371109, 1},
                                      {3, 10, 0.10779126740630102, 0.6032218525388546},
                                      {819, 1319, 0.5944271657933958, 0.6467204017196354}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const weft__eval_interval v = weft__eval_wilson(cases[i][0], cases[i][1], WEFT__EVAL_Z95);
        near(v.low, cases[i][2]);
        near(v.high, cases[i][3]);
    }
    near(weft__eval_wilson(0, 0, WEFT__EVAL_Z95).high, 1);
}

static void mcnemar_is_the_binomial_test(void **state)
{
    (void)state;
    near(weft__eval_mcnemar(3, 10), 0.09228515625);
    near(weft__eval_mcnemar(10, 3), 0.09228515625);
    near(weft__eval_mcnemar(0, 6), 0.03125);
    near(weft__eval_mcnemar(40, 60), 0.05688793364098089);
    near(weft__eval_mcnemar(450, 550), 0.0017305360849763027);
    near(weft__eval_mcnemar(0, 0), 1);
    near(weft__eval_mcnemar(7, 7), 1);
}

static void pass_at_k_has_no_bias(void **state)
{
    (void)state;
    near(weft__eval_pass_at(10, 3, 1), 0.3);
    near(weft__eval_pass_at(10, 3, 5), 1 - 21.0 / 252);
    near(weft__eval_pass_at(200, 7, 100), 0.9929911172418123);
    near(weft__eval_pass_at(5, 5, 2), 1);
    near(weft__eval_pass_at(5, 0, 2), 0);
}

static void errors_are_of_the_sample(void **state)
{
    (void)state;
    weft__eval_sums s = {0};
    for (int i = 1; i <= 4; i++) weft__eval_sums_add(&s, i);
    near(weft__eval_sums_mean(&s), 2.5);
    near(weft__eval_sums_error(&s), sqrt(5.0 / 3) / 2);
    /* of a ratio whose weights are all 1 it is the mean's; of one that is the same everywhere, 0 */
    near(weft__eval_ratio_error((double[]){1, 2, 3, 4}, (double[]){1, 1, 1, 1}, 4), sqrt(5.0 / 3) / 2);
    near(weft__eval_ratio_error((double[]){2, 4, 6}, (double[]){1, 2, 3}, 3), 0);
    near(weft__eval_normal_p(-1.959963984540054), 0.05);
}

static void expect_sample(uint64_t seed, size_t n, size_t k, const size_t *want)
{
    weft__eval_random r;
    size_t got[64];
    weft__eval_random_seed(&r, seed);
    assert_int_equal(weft__eval_random_sample(&r, n, k, got, NULL), WEFT_OK);
    for (size_t i = 0; i < k; i++) assert_int_equal(got[i], want[i]);
}

static void random_numbers_are_pythons(void **state)
{
    (void)state;
    weft__eval_random r;
    weft__eval_random_seed(&r, 1234);
    assert_int_equal(weft__eval_random_u32(&r), 4150886329u);
    assert_int_equal(weft__eval_random_u32(&r), 3342196574u);
    assert_int_equal(weft__eval_random_u32(&r), 1892932127u);
    weft__eval_random_seed(&r, ((uint64_t)1 << 40) + 5);
    assert_int_equal(weft__eval_random_u32(&r), 2166296868u);
    expect_sample(1234, 10, 4, (size_t[]){7, 1, 0, 9}); /* of a list that is copied */
    weft__eval_random_seed(&r, 1234);
    size_t got[16];
    /* one after the other, as for documents: from a copied list, from a long one, from one of fifty */
    assert_int_equal(weft__eval_random_sample(&r, 10, 4, got, NULL), WEFT_OK);
    assert_int_equal(weft__eval_random_sample(&r, 100, 3, got, NULL), WEFT_OK);
    assert_true(got[0] == 74 && got[1] == 4 && got[2] == 85);
    assert_int_equal(weft__eval_random_sample(&r, 50, 10, got, NULL), WEFT_OK);
    static const size_t want[] = {44, 5, 6, 22, 15, 1, 49, 43, 46, 39};
    for (size_t i = 0; i < 10; i++) assert_int_equal(got[i], want[i]);
}

static void literals_are_pythons(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"['a', \"b's\", 'c\\'d']", "[\"a\",\"b's\",\"c'd\"]"},
        {"('x',)", "[\"x\"]"},
        {" [1, -2.5, True, None, [False]] ", "[1,-2.5,true,null,[false]]"},
        {"'\\n\\x41\\u00e9\\U0001F600'", "\"\\nA\xC3\xA9\xF0\x9F\x98\x80\""},
        {"[]", "[]"},
        {"'a\\q'", "\"a\\\\q\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft__json *v = NULL;
        weft__strbuf t = {0};
        weft_error err = {0};
        if (weft__eval_literal(cases[i][0], strlen(cases[i][0]), &v, &err))
            fail_msg("%s: %s", cases[i][0], err.message);
        weft__json_write(&t, v, WEFT__JSON_COMPACT);
        assert_string_equal(t.data, cases[i][1]);
        weft__strbuf_free(&t);
        weft__json_free(&v);
    }
    static const char *const bad[] = {"",    "[",      "['a'",     "'a",    "[1 2]",     "a",
                                      "1 2", "'\\x4'", "{'a': 1}", "1e999", "'\\ud800'", "__import__('os')"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        weft__json *v = NULL;
        if (!weft__eval_literal(bad[i], strlen(bad[i]), &v, NULL) || v) fail_msg("%s: taken", bad[i]);
    }
    char deep[201];
    memset(deep, '[', 100);
    memset(deep + 100, ']', 100);
    weft__json *v = NULL;
    assert_int_equal(weft__eval_literal(deep, 200, &v, NULL), WEFT_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wilson_intervals_are_scipys), cmocka_unit_test(mcnemar_is_the_binomial_test),
        cmocka_unit_test(pass_at_k_has_no_bias),       cmocka_unit_test(errors_are_of_the_sample),
        cmocka_unit_test(random_numbers_are_pythons),  cmocka_unit_test(literals_are_pythons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
