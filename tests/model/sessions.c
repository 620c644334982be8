// SPDX-License-Identifier: Apache-2.0
/* sessions.c: sessions of one model on threads of their own get the logits that they get alone, on a model of one
 * thread and of several, and while a profile is recorded, which then has every step once. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "claims.h"
#include "weft/weft.h"

enum { SESSIONS = 3, VOCAB = 512, PROMPT = 20, STEPS = CLAIMS_REPEATED(24, 24, 8) };

typedef struct talk {
    weft_session *session;
    int32_t first;
    weft_status status;
    float logits[STEPS + 1][VOCAB];
} talk;

/* A prompt that begins with `first`, then the likeliest token of each step. */
static void *say(void *arg)
{
    talk *t = arg;
    int32_t tokens[PROMPT];
    for (int i = 0; i < PROMPT; i++) tokens[i] = (t->first * 31 + i * 7) % VOCAB;
    t->status = weft_session_eval(t->session, tokens, PROMPT, 0, t->logits[0], NULL);
    for (int i = 0; i < STEPS && !t->status; i++) {
        int32_t best = 0;
        for (int32_t v = 1; v < VOCAB; v++)
            if (t->logits[i][v] > t->logits[i][best]) best = v;
        t->status = weft_session_eval(t->session, &best, 1, 0, t->logits[i + 1], NULL);
    }
    return NULL;
}

/* All of them, one after the other or at once, each in a session of its own. */
static void say_all(weft_model *model, talk *all, int at_once)
{
    pthread_t threads[SESSIONS];
    weft_session_params params;
    weft_session_params_default(&params);
    params.n_ctx = PROMPT + STEPS;
    for (int i = 0; i < SESSIONS; i++) {
        all[i].first = i + 1;
        assert_int_equal(weft_session_new(model, &params, &all[i].session, NULL), WEFT_OK);
    }
    for (int i = 0; i < SESSIONS; i++) {
        if (!at_once) say(&all[i]);
        else assert_int_equal(pthread_create(&threads[i], NULL, say, &all[i]), 0);
    }
    for (int i = 0; i < SESSIONS; i++) {
        if (at_once) pthread_join(threads[i], NULL);
        assert_int_equal(all[i].status, WEFT_OK);
        weft_session_free(&all[i].session);
    }
}

static void check_same(const talk *a, const talk *b)
{
    for (int i = 0; i < SESSIONS; i++) assert_memory_equal(a[i].logits, b[i].logits, sizeof a[i].logits);
}

static void sessions_do_not_see_each_other(void **state)
{
    (void)state;
    static talk alone[SESSIONS], both[SESSIONS];
    for (int n_threads = 1; n_threads <= 2; n_threads++) {
        weft_model_params params;
        weft_model *model;
        weft_model_params_default(&params);
        params.n_threads = n_threads;
        assert_int_equal(weft_model_synthetic("tiny", WEFT_Q4_0, &params, &model, NULL), WEFT_OK);
        say_all(model, alone, 0);
        say_all(model, both, 1);
        check_same(alone, both);
        for (int again = 0; again < 2; again++) {
            memset(both, 0, sizeof both);
            assert_int_equal(weft_model_profile_start(model, NULL), WEFT_OK);
            say_all(model, both, 1);
            weft_model_profile_stop(model);
            check_same(alone, both);
            assert_int_equal(weft_model_profile_n_steps(model), SESSIONS * (STEPS + 1));
        }
        for (int i = 0; i < SESSIONS * (STEPS + 1); i++) { /* recorded steps follow each other */
            weft_profile_step step = {.size = sizeof step}, before = {.size = sizeof before};
            assert_int_equal(weft_model_profile_step(model, i, &step, NULL), WEFT_OK);
            if (i) assert_int_equal(weft_model_profile_step(model, i - 1, &before, NULL), WEFT_OK);
            assert_true(step.begin_ns >= before.end_ns && step.n_ops > 0);
        }
        weft_model_close(&model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sessions_do_not_see_each_other)};
    return cmocka_run_group_tests_name("sessions", tests, NULL, NULL);
}
