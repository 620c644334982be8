// SPDX-License-Identifier: Apache-2.0
/* train_mix.c: how much records count, and which stand beside which: weights, and neighbours that are mixed in; and
 * that what 0.1.0 knew has the checksums that it had, so that its checkpoints go on. */
#include <math.h>
#include <stdio.h>

#include "base/hash.h"
#include "train/job.h"
#include "unit/train_world.h"

/* "weight" of a record: that of each of its rows; none of 0 is there; and other weights are other data. */
static void records_have_weights(void **state)
{
    (void)state;
    static const char records[] = "{\"prompt\": \"a\", \"completion\": \"b\", \"weight\": 0.25}\n"
                                  "{\"prompt\": \"a\", \"completion\": \"c\", \"weight\": 0}\n"
                                  "{\"text\": \"the fox\", \"weight\": -2}\n"
                                  "{\"prompt\": \"a\", \"completion\": \"d\", \"weight\": null}\n";
    static const float weights[] = {0.25f, -2, 1, 1};
    world w, same;
    weft__dataset_totals c;
    open_world(&w, template, plain);
    add(&w, WEFT__DATASET_JSONL, records);
    add(&w, WEFT__DATASET_TEXT, "the owl");
    weft__dataset_counts(w.d, &c);
    assert_int_equal(c.n_segments, 4);
    assert_int_equal(c.n_dropped, 1);
    weft__train_batch b = next(&w);
    assert_non_null(b.weight);
    for (int32_t i = 0; i < b.n_rows; i++) assert_true(b.weight[i] == weights[b.segment[i]]);
    open_world(&same, template, plain);
    add(&same, WEFT__DATASET_JSONL, "{\"text\": \"the fox\"}\n");
    assert_null(next(&same).weight);
    const uint64_t hash = weft__dataset_hash(same.d);
    close_world(&same);
    open_world(&same, template, plain);
    add(&same, WEFT__DATASET_JSONL, "{\"text\": \"the fox\", \"weight\": 2}\n");
    assert_true(weft__dataset_hash(same.d) != hash);
    close_world(&same);
    close_world(&w);
}

static void empty_answers_are_counted(void **state)
{
    static const char records[] =
        "{\"prompt\": \"a\", \"completion\": \"\"}\n"
        "{\"messages\": [" SAYS("user", "a") ", " SAYS("assistant", "") ", " SAYS("user", "b") ", " SAYS(
            "assistant",
            "c") "]}\n"
                 "{\"prompt\": \"a\", \"completion\": \" \"}\n"
                 "{\"messages\": [" SAYS(
                     "user", "") ", {\"role\": \"assistant\", \"content\": \"\", \"weight\": 0}, " SAYS("assistant",
                                                                                                        "c") "]}\n";
    world w;
    weft__dataset_totals c;
    (void)state;
    open_world(&w, template, plain);
    add(&w, WEFT__DATASET_JSONL, records);
    weft__dataset_counts(w.d, &c);
    assert_int_equal(c.n_empty, 2);
    close_world(&w);
}

/* The question that text number `i` of a batch asks. */
static int asks(const world *w, const weft__train_batch *b, int32_t i)
{
    weft__strbuf text = {0};
    int32_t ids[200], n = 0;
    for (int32_t r = 0; r < b->n_rows; r++)
        if (b->segment[r] == i) ids[n++] = b->token[r];
    assert_int_equal(weft__tok_decode(w->tok, ids, (size_t)n, WEFT__TOK_DECODE_SPECIAL, &text, NULL), WEFT_OK);
    const char *at = strstr(text.data, "user\n");
    assert_non_null(at);
    const int c = at[5];
    weft__strbuf_free(&text);
    return c;
}

/* Each epoch has the data once, and beside them neighbours by their ratio: all of them before any stands there twice
 * more often than another. From any position it goes on as it went. */
static void neighbors_stand_beside_the_data_in_turns(void **state)
{
    static const double ratios[] = {0.5, 1, 1.5, 7};
    static const int beside[] = {1, 2, 3, 14}; /* two texts of data */
    (void)state;
    for (size_t k = 0; k < sizeof ratios / sizeof *ratios; k++) {
        weft__dataset_options o = {.n_ctx = 32, .max_rows = 1024, .seed = 5};
        world w;
        weft__dataset_totals c;
        int seen[128] = {0}, most = 0, least = 1000;
        open_world(&w, template, o);
        add(&w, WEFT__DATASET_JSONL,
            "{\"prompt\": \"A\", \"completion\": \"x\"}\n{\"prompt\": \"B\", \"completion\": \"x\"}\n");
        assert_int_equal(weft__dataset_begin_neighbors(w.d, 0, &w.err), WEFT_ARGUMENT);
        assert_int_equal(weft__dataset_begin_neighbors(w.d, NAN, &w.err), WEFT_ARGUMENT);
        assert_int_equal(weft__dataset_begin_neighbors(w.d, ratios[k], &w.err), WEFT_OK);
        for (int i = 0; i < 5; i++) {
            char line[80];
            snprintf(line, sizeof line, "{\"prompt\": \"%c\", \"completion\": \"y\"}\n", 'p' + i);
            add(&w, WEFT__DATASET_JSONL, line);
        }
        weft__dataset_counts(w.d, &c);
        assert_int_equal(c.n_epoch_segments, 2 + beside[k]);
        assert_int_equal(c.n_segments, 7);
        for (int epoch = 0; epoch < 10; epoch++) {
            const weft__dataset_cursor at = weft__dataset_position(w.d);
            assert_int_equal(at.epoch, epoch);
            weft__train_batch b = next(&w);
            const int32_t n = b.segment[b.n_rows - 1] + 1;
            int order[20];
            assert_int_equal(n, 2 + beside[k]);
            for (int32_t i = 0; i < n; i++) seen[order[i] = asks(&w, &b, i)]++;
            assert_int_equal(seen['A'], epoch + 1);
            assert_int_equal(seen['B'], epoch + 1);
            assert_int_equal(weft__dataset_seek(w.d, (weft__dataset_cursor){epoch + 7, 0}, &w.err), WEFT_OK);
            next(&w);
            assert_int_equal(weft__dataset_seek(w.d, at, &w.err), WEFT_OK);
            b = next(&w);
            for (int32_t i = 0; i < n; i++) assert_int_equal(order[i], asks(&w, &b, i));
            most = 0, least = 1000;
            for (int i = 'p'; i < 'u'; i++) {
                most = seen[i] > most ? seen[i] : most;
                least = seen[i] < least ? seen[i] : least;
            }
            assert_in_range(most - least, 0, 1);
        }
        close_world(&w);
    }
}

static void what_a_release_knew_keeps_its_checksums(void **state)
{
    (void)state;
    world w;
    open_world(&w, template, plain);
    add(&w, WEFT__DATASET_JSONL, "{\"text\": \"the fox\"}\n");
    assert_true(weft__dataset_hash(w.d) == 0x8b1f8a1230057316u); /* by what 0.1.0 adds up */
    close_world(&w);
    weft_train_params p;
    weft_train_params_default(&p);
    const weft__train_job j = {.p = &p, .n_steps = 7};
    const double numbers[] = {p.accumulate, 7,           p.n_warmup,   p.schedule, p.optimizer,    p.lr,
                              p.lr_floor,   p.beta1,     p.beta2,      p.momentum, p.weight_decay, p.clip_norm,
                              p.dpo_beta,   p.lora_rank, p.lora_alpha, p.lora_rs};
    const uint64_t plan = weft__hash(numbers, sizeof numbers);
    assert_true(weft__train_job_plan(&j) == plan);
    p.loss = WEFT_TRAIN_DPO; /* which its data tell */
    assert_true(weft__train_job_plan(&j) == plan);
    p.smoothing = 0.1f;
    assert_true(weft__train_job_plan(&j) != plan);
    p.smoothing = 0;
    p.loss = WEFT_TRAIN_UNLIKELIHOOD;
    assert_true(weft__train_job_plan(&j) != plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_have_weights),
        cmocka_unit_test(neighbors_stand_beside_the_data_in_turns),
        cmocka_unit_test(empty_answers_are_counted),
        cmocka_unit_test(what_a_release_knew_keeps_its_checksums),
    };
    return cmocka_run_group_tests_name("train_mix", tests, NULL, NULL);
}
