// SPDX-License-Identifier: Apache-2.0
/* batcher_limits.c: an engine keeps to a limit of its pages that changes while it runs, answers the same under it, and
 * takes what was measured before it was there. */
#include "unit/fixture.h"
#include "unit/serve_hall.h"

/* The pages of half of the prompts are never in use together. */
enum { N = 6, PROMPT = 150 };

static void ask_all(weft_engine *e, answer *a)
{
    ask q[N];
    for (int i = 0; i < N; i++) {
        simple(&q[i], PROMPT + i, 20);
        for (int32_t k = 0; k < PROMPT; k++) q[i].tokens[k] = (q[i].tokens[k] + 7 * i) % 500;
        q[i].p.ignore_end = 1;
    }
    run_together(e, q, a, N);
}

static void it_takes_what_was_measured(void **state)
{
    (void)state;
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    weft_engine_bytes need = {.size = sizeof need};
    answer a[N];
    assert_int_equal(weft_engine_count_bytes(model, &p, &need, NULL), WEFT_OK);
    assert_true(need.pages_least > 0 && need.pages_least <= need.pages);
    weft_engine *e = open_engine(model, &p);
    weft_engine_stats s = stats_of(e);
    assert_int_equal(s.memory.weights.bytes, need.weights);
    assert_int_equal(s.kv_limit_bytes, need.pages);
    ask_all(e, a);
    s = stats_of(e);
    assert_true(s.memory.scratch.peak <= need.scratch_most);
    assert_true(s.memory.pages.peak <= need.pages);
    close_engine(&e);
    p.n_slots = -1;
    assert_int_equal(weft_engine_count_bytes(model, &p, &need, NULL), WEFT_ARGUMENT);
    weft_model_close(&model);
}

static void answers_are_the_same_within_a_limit(void **state)
{
    (void)state;
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    weft_engine_bytes need = {.size = sizeof need};
    answer a[N], b[N];
    weft_engine *e = open_engine(model, &p);
    ask_all(e, a);
    close_engine(&e);
    assert_int_equal(weft_engine_count_bytes(model, &p, &need, NULL), WEFT_OK);
    p.kv_bytes = 1; /* as many as one request needs */
    e = open_engine(model, &p);
    assert_int_equal(stats_of(e).kv_limit_bytes, need.pages_least);
    ask_all(e, b);
    for (int i = 0; i < N; i++) assert_memory_equal(a[i].token, b[i].token, 20 * sizeof *a[i].token);
    weft_engine_stats s = stats_of(e);
    assert_true(s.memory.pages.peak <= need.pages_least);
    close_engine(&e);
    weft_model_close(&model);
}

/* Its pages are among those that are limited. */
static void a_draft_model_keeps_to_it(void **state)
{
    (void)state;
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    weft_engine_bytes need = {.size = sizeof need}, alone = {.size = sizeof alone};
    answer a[N], b[N];
    assert_int_equal(weft_engine_count_bytes(model, &p, &alone, NULL), WEFT_OK);
    weft_engine *e = open_engine(model, &p);
    ask_all(e, a);
    close_engine(&e);
    p.draft = model;
    p.spec = WEFT_SPEC_DRAFT;
    assert_int_equal(weft_engine_count_bytes(model, &p, &need, NULL), WEFT_OK);
    assert_true(need.pages_least > alone.pages_least && need.pages > alone.pages);
    e = open_engine(model, &p);
    assert_int_equal(stats_of(e).kv_limit_bytes, need.pages);
    ask_all(e, b);
    weft_engine_limit_pages(e, need.pages_least);
    while (stats_of(e).kv_limit_bytes > need.pages_least) usleep(1000);
    assert_true(stats_of(e).memory.pages.bytes <= need.pages_least);
    close_engine(&e);
    p.kv_bytes = 1;
    e = open_engine(model, &p);
    assert_int_equal(stats_of(e).kv_limit_bytes, need.pages_least);
    ask_all(e, b);
    for (int i = 0; i < N; i++) assert_memory_equal(a[i].token, b[i].token, 20 * sizeof *a[i].token);
    assert_true(stats_of(e).memory.pages.peak <= need.pages_least);
    close_engine(&e);
    weft_model_close(&model);
}

/* Cached prefixes go when the limit falls, and with them the bytes that are counted. */
static void a_limit_that_falls_evicts_what_is_idle(void **state)
{
    (void)state;
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    weft_engine_bytes need = {.size = sizeof need};
    answer a[N], b[N];
    assert_int_equal(weft_engine_count_bytes(model, &p, &need, NULL), WEFT_OK);
    weft_engine *e = open_engine(model, &p);
    ask_all(e, a);
    assert_true(stats_of(e).memory.pages.bytes > need.pages_least);
    weft_engine_limit_pages(e, need.pages_least);
    while (stats_of(e).kv_limit_bytes > need.pages_least) usleep(1000);
    assert_true(stats_of(e).memory.pages.bytes <= need.pages_least);
    ask_all(e, b);
    for (int i = 0; i < N; i++) assert_memory_equal(a[i].token, b[i].token, 20 * sizeof *a[i].token);
    weft_engine_limit_pages(e, UINT64_MAX);
    while (stats_of(e).kv_limit_bytes < need.pages) usleep(1000);
    close_engine(&e);
    weft_model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_takes_what_was_measured),
        cmocka_unit_test(answers_are_the_same_within_a_limit),
        cmocka_unit_test(a_draft_model_keeps_to_it),
        cmocka_unit_test(a_limit_that_falls_evicts_what_is_idle),
    };
    return cmocka_run_group_tests_name("batcher_limits", tests, NULL, NULL);
}
