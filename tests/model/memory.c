// SPDX-License-Identifier: Apache-2.0
/* memory.c: claims: wherever an allocation fails between opening a model and its last token, there is an error, no
 * crash and no leak; a step allocates nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "claims.h"
#include "model/shared.h"
#include "model/sweep.h"
#include "weft/weft.h"

/* Opens, tokenizes, generates three tokens and renders them. path NULL: a synthetic model. */
static weft_status load_and_generate(const void *arg, weft_error *err)
{
    const char *path = arg;
    weft_model_params mp;
    weft_session_params sp;
    weft_sampler_params params;
    weft_model *model = NULL;
    weft_session *session = NULL;
    weft_sampler *sampler = NULL;
    weft_detok *detok = NULL;
    int32_t ids[64] = {1, 2, 3}, token;
    float logits[512];
    const char *text;
    size_t n = 3, length;
    weft_status st;
    weft_model_params_default(&mp);
    mp.n_threads = 2;
    mp.max_rows = 16;
    weft_session_params_default(&sp);
    sp.n_ctx = 64;
    weft_sampler_params_default(&params);
    params.seed_given = 1;
    st = path ? weft_model_open(path, &mp, &model, err) : weft_model_synthetic("tiny", WEFT_Q8_0, &mp, &model, err);
    if (st) goto done;
    if (path && ((st = weft_tokenize(weft_model_tokenizer(model), "Once upon a time", 16, WEFT_TOKENIZE_BOS, ids, 64,
                                     &n, err)) ||
                 (st = weft_detok_new(weft_model_tokenizer(model), 0, &detok, err))))
        goto done;
    if ((st = weft_session_new(model, &sp, &session, err)) || (st = weft_sampler_new(512, &params, &sampler, err)) ||
        (st = weft_session_eval(session, ids, (int32_t)n, 0, logits, err)))
        goto done;
    for (int i = 0; i < 3; i++) {
        if ((st = weft_sampler_pick(sampler, logits, &token, err)) || (st = weft_sampler_accept(sampler, token, err)) ||
            (st = weft_session_eval(session, &token, 1, 0, logits, err)))
            goto done;
        if (detok && (st = weft_detok_push(detok, token, &text, &length, err))) goto done;
    }
    if (detok) st = weft_detok_finish(detok, &text, &length, err);
done:
    weft_detok_free(&detok);
    weft_sampler_free(&sampler);
    weft_session_free(&session);
    weft_model_close(&model);
    return st;
}

static void synthetic_model(void **state)
{
    (void)state;
    sweep(load_and_generate, NULL);
}

static void model_file(void **state)
{
    (void)state;
    const char *path = shared_path("models/%s.gguf", "stories260K");
    if (!path) skip_material("stories260K");
    char copy[512];
    snprintf(copy, sizeof copy, "%s", path);
    sweep(load_and_generate, copy);
}

static int count(void *arg, size_t n_bytes)
{
    (void)n_bytes;
    atomic_fetch_add((atomic_int *)arg, 1);
    return 1;
}

/* Over the ends of pages, alone and in a group, with the sampler: everything was allocated before. */
static void a_step_allocates_nothing(void **state)
{
    (void)state;
    enum { N = 3, PROMPT = 100, STEPS = 70 };
    weft_model_params mp;
    weft_session_params sp;
    weft_sampler_params params;
    weft_model *model = NULL;
    weft_session *s[N];
    weft_sampler *sampler = NULL;
    int32_t prompt[PROMPT], token[N] = {1, 2, 3};
    static float logits[N][512];
    atomic_int n = 0;
    weft_model_params_default(&mp);
    mp.n_threads = 2;
    weft_session_params_default(&sp);
    sp.n_ctx = PROMPT + 2 * STEPS;
    weft_sampler_params_default(&params);
    for (int i = 0; i < PROMPT; i++) prompt[i] = i;
    assert_int_equal(weft_model_synthetic("tiny", WEFT_Q4_0, &mp, &model, NULL), WEFT_OK);
    assert_int_equal(weft_session_new_group(model, &sp, N, s, NULL), WEFT_OK);
    assert_int_equal(weft_sampler_new(512, &params, &sampler, NULL), WEFT_OK);
    weft__alloc_set_gate(count, &n);
    for (int i = 0; i < N; i++)
        assert_int_equal(weft_session_eval(s[i], prompt, PROMPT - i, 0, logits[i], NULL), WEFT_OK);
    for (int k = 0; k < STEPS; k++) {
        for (int i = 0; i < N; i++) {
            assert_int_equal(weft_sampler_pick(sampler, logits[i], &token[i], NULL), WEFT_OK);
            assert_int_equal(weft_sampler_accept(sampler, token[i], NULL), WEFT_OK);
        }
        assert_int_equal(weft_session_eval(s[0], &token[0], 1, 0, logits[0], NULL), WEFT_OK);
        assert_int_equal(weft_session_eval_group(s, token, N, logits[0], NULL), WEFT_OK);
    }
    weft__alloc_set_gate(NULL, NULL);
    assert_int_equal(atomic_load(&n), 0);
    weft_sampler_free(&sampler);
    for (int i = 0; i < N; i++) weft_session_free(&s[i]);
    weft_model_close(&model);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(synthetic_model), cmocka_unit_test(a_step_allocates_nothing)},
                            material[] = {cmocka_unit_test(model_file)};
    if (claims_material(argc, argv)) return claims_status(cmocka_run_group_tests(material, NULL, NULL));
    return claims_status(cmocka_run_group_tests(tests, NULL, NULL));
}
