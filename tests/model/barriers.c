// SPDX-License-Identifier: Apache-2.0
/* barriers.c: the claim of docs/howto/measure.md about a Llama's step: how often its threads wait for each other, which
 * is what a step of few rows costs beside reading. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "claims.h"

#include "base/pool.h"
#include "weft/weft.h"

enum { LAYERS = 2, VOCAB = 512, CTX = 2048, DEEP = 1024 }; /* the first two are those of the shape "tiny" */

/* Linked in place of the pool's: how often thread 0 arrives within a job. The end of a job is the pool's own. */
static int n_waits;
void __real_weft__pool_barrier(weft__pool *pool, int thread);
void __wrap_weft__pool_barrier(weft__pool *pool, int thread);
void __wrap_weft__pool_barrier(weft__pool *pool, int thread)
{
    if (thread == 0) n_waits++;
    __real_weft__pool_barrier(pool, thread);
}

/* Barriers of the step that reads n tokens behind those that there are. */
static int waits(weft_session *session, int n)
{
    static int32_t tokens[CTX];
    static float logits[VOCAB];
    weft_error err = {0};
    for (int i = 0; i < n; i++) tokens[i] = (i * 31 + 7) % VOCAB;
    n_waits = 0;
    if (weft_session_eval(session, tokens, n, 0, logits, &err)) fail_msg("%s", err.message);
    return n_waits;
}

static void open_model(int threads, weft_model **model, weft_session **session)
{
    weft_model_params mp;
    weft_session_params sp;
    weft_error err = {0};
    weft_model_params_default(&mp);
    mp.n_threads = threads;
    weft_session_params_default(&sp);
    sp.n_ctx = CTX;
    setenv("WEFT_TEAM", "fixed", 1); /* nobody is left out, whatever the machine does meanwhile */
    if (weft_model_synthetic("tiny", WEFT_Q4_0, &mp, model, &err) || weft_session_new(*model, &sp, session, &err))
        fail_msg("%s", err.message);
    unsetenv("WEFT_TEAM");
}

static void close_model(weft_model **model, weft_session **session)
{
    weft_session_free(session);
    weft_model_close(model);
}

/* Six in a layer, one behind the embedding and one in front of the head; with more rows than a tile one more in front
 * of each product that a norm stands before. */
static void a_layer_has_six_or_eight(void **state)
{
    (void)state;
    weft_model *model = NULL;
    weft_session *session = NULL;
    open_model(2, &model, &session);
    assert_int_equal(waits(session, 1), 6 * LAYERS + 2);
    assert_int_equal(waits(session, 40), 8 * LAYERS + 2);
    assert_int_equal(waits(session, 1), 6 * LAYERS + 2);
    close_model(&model, &session);
}

/* Three threads share two heads of a long context by its splits, and one barrier more combines these. */
static void a_long_context_has_one_more(void **state)
{
    (void)state;
    weft_model *model = NULL;
    weft_session *session = NULL;
    if (CLAIMS_REPEATED(0, 0, 1)) return; /* to read so many tokens takes a minute there */
    open_model(3, &model, &session);
    assert_int_equal(waits(session, 1), 6 * LAYERS + 2);
    waits(session, DEEP);
    assert_int_equal(waits(session, 1), 7 * LAYERS + 2);
    close_model(&model, &session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_layer_has_six_or_eight),
                                       cmocka_unit_test(a_long_context_has_one_more)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
