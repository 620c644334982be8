// SPDX-License-Identifier: Apache-2.0
/* train_verify.c: who judges answers: each rule over texts that are and are not what it wants, a program that answers,
 * and programs that say nonsense, too much, or nothing. */
#include <math.h>

#include "unit/fixture.h"

#include "train/verify.h"

static weft_status judged(weft__train_verifier *v, const char *answer, const char *reference, double *reward,
                          weft_error *err)
{
    return weft__train_verify(v, "Who?", 4, answer, strlen(answer), reference, strlen(reference), reward, err);
}

static void rules(void **state)
{
    static const struct {
        const char *rule, *answer, *reference;
        double reward;
    } cases[] = {{"exact", " the owl\n", "the owl", 1},
                 {"exact", "the owl.", "the owl", 0},
                 {"exact", "", "", 1},
                 {"exact", "", "a", 0},
                 {"contains", "It was the owl.", "the owl", 1},
                 {"contains", "It was the fox.", "the owl", 0},
                 {"contains", "It was", "", 0},
                 {"contains", "", "a", 0},
                 {"number", "So it is 1,200.", "1200", 1},
                 {"number", "3 and 4 make 7", "= 7", 1},
                 {"number", "-7", "7", 0},
                 {"number", "It is -7.50!", "-7.5", 1},
                 {"number", "none", "7", 0},
                 {"number", "none", "none", 0},
                 {"number", "1.2.3", "1.2", 1},
                 {"json", "{\"a\": 1, \"b\": [2]}", "{\"b\":[2],\"a\":1}", 1},
                 {"json", "{\"a\": 2}", "{\"a\": 1}", 0},
                 {"json", "[1, 2]", "any list", 1},
                 {"json", "[1, 2", "any list", 0},
                 {"json", "", "[]", 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft__train_verifier *v;
        double reward = NAN;
        assert_int_equal(weft__train_verifier_open(cases[i].rule, NULL, &v, NULL), WEFT_OK);
        assert_int_equal(judged(v, cases[i].answer, cases[i].reference, &reward, NULL), WEFT_OK);
        if (reward != cases[i].reward)
            fail_msg("%s: \"%s\" for \"%s\" is %g", cases[i].rule, cases[i].answer, cases[i].reference, reward);
        weft__train_verifier_close(&v);
    }
}

static void programs(void **state)
{
    static const struct {
        const char *command, *words; /* words: of the failure */
        double reward;
        weft_status status;
    } cases[] = {
        {"while read -r line; do echo 0.25; done", NULL, 0.25, WEFT_OK},
        {"while read -r line; do echo '{\"reward\": -3, \"why\": \"x\"}'; done", NULL, -3, WEFT_OK},
        {"while read -r line; do case $line in *'\"answer\": \"an \\\"owl\\\"\"'*) echo 1;; *) echo 0;; esac; done",
         NULL, 1, WEFT_OK},
        {"while read -r line; do echo good; done", "said \"good\"", 0, WEFT_FORMAT},
        {"while read -r line; do echo NaN; done", "said \"NaN\"", 0, WEFT_FORMAT},
        {"while read -r line; do echo '{\"reward\": null}'; done", "must be a number", 0, WEFT_FORMAT},
        {"while read -r line; do echo 1e999; done", "", 0, WEFT_FORMAT},
        {"exit 1", "the verifier ended", 0, WEFT_IO},
        {"read -r line", "the verifier ended", 0, WEFT_IO},
        {"head -c 9000 /dev/zero | tr '\\0' x; cat > /dev/null", "longer than", 0, WEFT_FORMAT},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft__train_verifier *v;
        weft_error err = {0};
        double reward = NAN;
        assert_int_equal(weft__train_verifier_open(NULL, cases[i].command, &v, NULL), WEFT_OK);
        weft_status st = WEFT_OK;
        for (int k = 0; k < 3 && !st; k++) st = judged(v, "an \"owl\"", "the owl", &reward, &err);
        if (st != cases[i].status || (!st && reward != cases[i].reward) || (st && !strstr(err.message, cases[i].words)))
            fail_msg("%s: status %d, reward %g, %s", cases[i].command, (int)st, reward, err.message);
        weft__train_verifier_close(&v);
    }
}

/* One that does not end when its input does is killed. */
static void deaf_program(void **state)
{
    weft__train_verifier *v;
    (void)state;
    assert_int_equal(weft__train_verifier_open(NULL, "exec sleep 1000", &v, NULL), WEFT_OK);
    weft__train_verifier_close(&v);
    assert_null(v);
}

static void refused(void **state)
{
    weft__train_verifier *v;
    weft_error err = {0};
    (void)state;
    assert_int_equal(weft__train_verifier_open("best", NULL, &v, &err), WEFT_ARGUMENT);
    assert_non_null(strstr(err.message, "no rule 'best'"));
    assert_int_equal(weft__train_verifier_open(NULL, NULL, &v, &err), WEFT_ARGUMENT);
    assert_int_equal(weft__train_verifier_open("exact", "true", &v, &err), WEFT_ARGUMENT);
    assert_null(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rules), cmocka_unit_test(programs),
                                       cmocka_unit_test(deaf_program), cmocka_unit_test(refused)};
    return cmocka_run_group_tests_name("train_verify", tests, NULL, NULL);
}
