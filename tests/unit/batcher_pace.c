// SPDX-License-Identifier: Apache-2.0
/* batcher_pace.c: prompts get as many rows beside requests that decode as keep a step to the time that was asked for,
 * whatever a step costs, and no answer depends on it. */
#include "unit/fixture.h"
#include "unit/serve_hall.h"

#include "base/random.h"
#include "batcher/batcher.h"

static weft_engine *paced(int32_t steady_ms, int32_t chunk)
{
    static weft_engine e;
    memset(&e, 0, sizeof e);
    e.params.steady_ms = steady_ms;
    e.params.chunk = chunk;
    e.params.step_rows = 512;
    weft__batcher_pace_begin(&e);
    return &e;
}

/* Steps of a + b rows milliseconds, with what disturbs them; returns the time of the last ones. */
static double play(weft_engine *e, double a, double b, double noise, int n)
{
    weft__rng rng;
    double last = 0;
    weft__rng_seed(&rng, 4);
    for (int i = 0; i < n; i++) {
        const int32_t rows = (int32_t)e->pace.rows;
        const double ms = (a + b * rows) * (1 + noise * weft__rng_double(&rng));
        weft__batcher_pace_saw(e, rows + 4, rows, (uint64_t)(ms * 1e6));
        last = a + b * rows;
        assert_true(e->pace.rows >= e->pace.least && e->pace.rows <= e->pace.most);
    }
    return last;
}

/* It comes to rest at that time, from above and from below, and follows when steps become slower or faster; where they
 * take longer without any prompt, prompts are read all the same. */
static void steps_take_the_time_that_was_asked_for(void **state)
{
    (void)state;
    weft_engine *e = paced(50, 512);
    assert_float_equal(play(e, 20, 0.5, 0, 60), 50, 2);
    assert_float_equal(play(e, 20, 0.1, 0, 60), 50, 2);
    assert_float_equal(play(e, 40, 0.9, 0, 60), 50, 2);
    assert_in_range((uint64_t)play(e, 20, 0.5, 0.1, 60), 42, 51);
    play(e, 200, 1, 0, 60);
    assert_int_equal((int32_t)e->pace.rows, 8);
    play(e, 1, 0.001, 0, 60);
    assert_int_equal((int32_t)e->pace.rows, 512);
    e = paced(50, 64); /* --chunk bounds it */
    play(e, 1, 0.001, 0, 60);
    assert_int_equal((int32_t)e->pace.rows, 64);
}

/* What says nothing changes nothing: steps without prompts, those that were not full, and without a time to keep. */
static void what_says_nothing_changes_nothing(void **state)
{
    (void)state;
    weft_engine *e = paced(50, 512);
    weft__batcher_pace_saw(e, 4, 0, 500000000);
    assert_int_equal((int32_t)e->pace.rows, 128);
    weft__batcher_pace_saw(e, 14, 10, 1000000); /* not full, and short */
    assert_int_equal((int32_t)e->pace.rows, 128);
    weft__batcher_pace_saw(e, 512, 512, 512000000); /* nobody decodes: a millisecond a row */
    assert_int_equal((int32_t)e->pace.rows, 50);
    weft__batcher_pace_saw(e, 14, 10, 100000000); /* not full, and too long even so */
    assert_true(e->pace.rows < 10);
    e = paced(0, 96);
    assert_int_equal((int32_t)e->pace.rows, 96);
    weft__batcher_pace_saw(e, 100, 96, 1);
    weft__batcher_pace_saw(e, 100, 96, 1000000000);
    assert_int_equal((int32_t)e->pace.rows, 96);
}

/* An engine that keeps to its time answers as one that does not; and tells how many rows there are. */
static void same_answers(void **state)
{
    enum { N = 12 };
    static ask all[N];
    static answer first[N], again[N];
    weft_error err = {0};
    (void)state;
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    weft_engine *e = open_engine(model, &p);
    for (int i = 0; i < N; i++) {
        simple(&all[i], i % 2 ? 300 : 10, i % 2 ? 8 : 60);
        all[i].p.sampler.seed = (uint64_t)i;
        all[i].p.ignore_end = all[i].p.no_cache = 1;
    }
    run_together(e, all, first, N);
    assert_int_equal(stats_of(e).chunk, 128);
    close_engine(&e);
    for (int ms = 1; ms <= 1000; ms *= 1000) {
        p.chunk = WEFT_CHUNK_AUTO;
        p.steady_ms = ms;
        e = open_engine(model, &p);
        run_together(e, all, again, N);
        compare("paced", all, first, again, N);
        print_message("%d ms: %d rows\n", ms, stats_of(e).chunk);
        assert_in_range((uint64_t)stats_of(e).chunk, 8, 512);
        close_engine(&e);
    }
    p.steady_ms = -1;
    assert_int_equal(weft_engine_new(model, &p, &e, &err), WEFT_ARGUMENT);
    assert_non_null(strstr(err.message, "steady_ms"));
    p.steady_ms = 0;
    p.chunk = -2;
    assert_int_equal(weft_engine_new(model, &p, &e, &err), WEFT_ARGUMENT);
    assert_non_null(strstr(err.message, "chunk"));
    weft_model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_take_the_time_that_was_asked_for),
        cmocka_unit_test(what_says_nothing_changes_nothing),
        cmocka_unit_test(same_answers),
    };
    return claims_status(cmocka_run_group_tests(tests, NULL, NULL));
}
