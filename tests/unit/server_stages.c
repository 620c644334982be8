// SPDX-License-Identifier: Apache-2.0
/* The stages of a request add up to its time, by a clock of the test's own: those told as it goes, those that the
 * engine tells of one answer or of several at once, its last words that wait to be told, and what is in no stage. */
#include "server/stages.h"

#include "fixture.h"
#include "weft/engine.h"

static uint64_t now_ns;
uint64_t __wrap_weft__clock_ns(void);
uint64_t __wrap_weft__clock_ns(void)
{
    return now_ns;
}

static uint64_t sum(const weft__server_stages *s)
{
    uint64_t all = 0;
    for (int i = 0; i < WEFT__SERVER_STAGES; i++) all += s->ns[i];
    return all;
}

/* Came at 1,000,000 ns; read 5 us, of which 3 were the template's and 1 the tokenizer's; waited 2 us for a grammar that
 * took 7; submitted after 1 more. */
static void submit(weft__server_stages *s)
{
    now_ns = 1000000;
    weft__server_stages_begin(s, now_ns);
    now_ns += 5000;
    weft__server_stage_move(s, WEFT__SERVER_TEMPLATE, 3000);
    weft__server_stage_move(s, WEFT__SERVER_TOKENIZER, 1000);
    weft__server_stage(s, WEFT__SERVER_QUEUE);
    now_ns += 2000;
    weft__server_stage(s, WEFT__SERVER_GRAMMAR);
    now_ns += 7000;
    weft__server_stage(s, WEFT__SERVER_QUEUE);
    now_ns += 1000;
    weft__server_stage(s, WEFT__SERVER_QUEUE);
}

static void test_one_answer(void **state)
{
    (void)state;
    weft__server_stages s;
    submit(&s);
    const weft_event e = {
        .queue_ms = 0.001, .wait_ms = 0.01, .model_ms = 0.1, .mask_ms = 0.02, .sample_ms = 0.005, .event_ms = 0.004};
    now_ns += 140000; /* all of which the engine tells */
    const uint64_t ended_ns = now_ns;
    now_ns += 2000; /* its last words wait to be told */
    weft__server_stage_engine(&s, &e);
    weft__server_stages_leave_engine(&s, ended_ns);
    assert_int_equal(s.ended_ns, ended_ns);
    now_ns += 4000;
    weft__server_stages_end(&s, 0.161);
    static const uint64_t want[WEFT__SERVER_STAGES] = {
        [WEFT__SERVER_READING] = 1000,  [WEFT__SERVER_TEMPLATE] = 3000, [WEFT__SERVER_TOKENIZER] = 1000,
        [WEFT__SERVER_GRAMMAR] = 27000, [WEFT__SERVER_QUEUE] = 4000,    [WEFT__SERVER_SCHEDULER] = 10000,
        [WEFT__SERVER_MODEL] = 100000,  [WEFT__SERVER_SAMPLING] = 5000, [WEFT__SERVER_WRITING] = 10000};
    for (int i = 0; i < WEFT__SERVER_STAGES; i++) assert_int_equal(s.ns[i], want[i]);
    assert_int_equal(sum(&s), 161000);
}

/* What the engine does not tell of one answer is in no stage, so that a sum shows it; four at once share the time. */
static void test_engine(void **state)
{
    (void)state;
    for (int n = 1; n <= 4; n += 3) {
        weft__server_stages s;
        const weft_event e = {.model_ms = 0.06, .wait_ms = 0.02};
        submit(&s);
        now_ns += 100000;
        for (int i = 0; i < n; i++) weft__server_stage_engine(&s, &e);
        weft__server_stages_leave_engine(&s, now_ns);
        weft__server_stages_end(&s, 0.115);
        assert_int_equal(sum(&s), n == 1 ? 95000 : 115000);
        assert_int_equal(s.ns[WEFT__SERVER_MODEL], n == 1 ? 60000 : 75000);
    }
}

/* A client that left before the engine had ended, and a move of more than there is. */
static void test_ends(void **state)
{
    (void)state;
    weft__server_stages s;
    submit(&s);
    weft__server_stages_leave_engine(&s, now_ns);
    const uint64_t before = sum(&s);
    weft__server_stages_end(&s, 0.001);
    assert_int_equal(sum(&s), before);
    now_ns = 50;
    weft__server_stages_begin(&s, now_ns);
    now_ns += 10;
    weft__server_stage_move(&s, WEFT__SERVER_TOKENIZER, 1000);
    assert_int_equal(s.ns[WEFT__SERVER_TOKENIZER], 10);
    assert_int_equal(sum(&s), 10);
}

static void test_json(void **state)
{
    (void)state;
    weft__server_stages s;
    weft__strbuf out = {0};
    submit(&s);
    weft__server_stages_write(&s, &out);
    assert_string_equal(out.data, "\"stages\":{\"reading\":0.001000,\"template\":0.003000,\"tokenizer\":0.001000,"
                                  "\"grammar\":0.007000,\"queue\":0.003000,\"scheduler\":0.000000,\"model\":0.000000,"
                                  "\"sampling\":0.000000,\"writing\":0.000000}");
    weft__strbuf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_answer),
        cmocka_unit_test(test_engine),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
