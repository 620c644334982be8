// SPDX-License-Identifier: Apache-2.0
/* same.c: claims about models made in memory on the tier that WEFT_CPU names: the same bits for every cut of a text and
 * for every batch. CTest runs it once per tier. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "model/cuts.h"
#include "model/tier.h"

static weft_model *synthetic(const void *type, int threads)
{
    weft_model *model = NULL;
    weft_model_params params;
    weft_error err = {0};
    weft_model_params_default(&params);
    params.n_threads = threads;
    if (weft_model_synthetic("tiny", *(const uint32_t *)type, &params, &model, &err)) fail_msg("%s", err.message);
    return model;
}

static void a_long_text(void **state)
{
    (void)state;
    static const uint32_t types[] = {WEFT_F16,  WEFT_Q4_0, WEFT_Q6_K, WEFT_BF16, WEFT_IQ4_XS,
                                     WEFT_F32,  WEFT_Q4_1, WEFT_Q5_0, WEFT_Q5_1, WEFT_Q8_0,
                                     WEFT_Q2_K, WEFT_Q3_K, WEFT_Q4_K, WEFT_Q5_K, WEFT_IQ4_NL};
    for (size_t i = 0; i < (tier_is_slow() ? CLAIMS_REPEATED(2, 2, 1) : sizeof types / sizeof *types); i++)
        same_bits_of_a_long_text(weft_dtype_describe(types[i]).name, synthetic, &types[i], i ? (int)i : EVERY_KIND);
}

/* Sessions stepped together give each row's bits of a session stepped alone. */
static void a_batch_changes_nothing(void **state)
{
    (void)state;
    enum { N = 5, STEPS = 12, VOCAB = 512 };
    weft_session_params sp;
    weft_model *model;
    weft_session *together[N], *alone = NULL;
    static float batch[STEPS][N][VOCAB], single[VOCAB];
    int32_t tokens[N];
    weft_session_params_default(&sp);
    sp.n_ctx = 64;
    model = synthetic(&(uint32_t){WEFT_Q4_0}, 0);
    assert_int_equal(weft_session_new_group(model, &sp, N, together, NULL), WEFT_OK);
    for (int i = 0; i < N; i++) /* different lengths */
        for (int k = 0; k < 3 * i; k++) {
            int32_t t = 100 * i + k;
            assert_int_equal(weft_session_eval(together[i], &t, 1, 0, NULL, NULL), WEFT_OK);
        }
    for (int s = 0; s < STEPS; s++) {
        for (int i = 0; i < N; i++) tokens[i] = (37 * s + 11 * i) % VOCAB;
        assert_int_equal(weft_session_eval_group(together, tokens, N, batch[s][0], NULL), WEFT_OK);
    }
    for (int i = 0; i < N; i++) {
        assert_int_equal(weft_session_new(model, &sp, &alone, NULL), WEFT_OK);
        for (int k = 0; k < 3 * i; k++) {
            int32_t t = 100 * i + k;
            assert_int_equal(weft_session_eval(alone, &t, 1, 0, NULL, NULL), WEFT_OK);
        }
        for (int s = 0; s < STEPS; s++) {
            int32_t t = (37 * s + 11 * i) % VOCAB;
            assert_int_equal(weft_session_eval(alone, &t, 1, 0, single, NULL), WEFT_OK);
            assert_memory_equal(single, batch[s][i], sizeof single);
        }
        weft_session_free(&alone);
    }
    for (int i = 0; i < N; i++) weft_session_free(&together[i]);
    weft_model_close(&model);
}

static void a_group_has_each_session_once(void **state)
{
    (void)state;
    weft_session_params sp;
    weft_session *s[2], *other = NULL;
    weft_error err = {0};
    int32_t tokens[2] = {1, 2};
    weft_session_params_default(&sp);
    sp.n_ctx = 64;
    weft_model *model = synthetic(&(uint32_t){WEFT_F16}, 1);
    assert_int_equal(weft_session_new_group(model, &sp, 2, s, NULL), WEFT_OK);
    assert_int_equal(weft_session_new(model, &sp, &other, NULL), WEFT_OK);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(weft_session_eval_group((weft_session *[]){s[0], s[0]}, tokens, 2, NULL, &err), WEFT_ARGUMENT);
        assert_string_equal(err.message, "session 1 is there twice");
        assert_int_equal(weft_session_eval_group((weft_session *[]){s[0], other}, tokens, 2, NULL, &err),
                         WEFT_ARGUMENT);
        assert_int_equal(weft_session_eval_group((weft_session *[]){s[1], s[0]}, tokens, 2, NULL, &err), WEFT_OK);
        assert_int_equal(weft_session_n_tokens(s[0]), round + 1);
        assert_int_equal(weft_session_n_tokens(other), 0);
    }
    weft_session_free(&other);
    weft_session_free(&s[0]);
    weft_session_free(&s[1]);
    weft_model_close(&model);
}

int main(void)
{
    if (!tier_is_here()) return 77;
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_long_text), cmocka_unit_test(a_batch_changes_nothing),
                                       cmocka_unit_test(a_group_has_each_session_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
