// SPDX-License-Identifier: Apache-2.0
/* train_mix.c: how much records count, and which stand beside which: weights, and neighbours that are mixed in. */
#include <stdio.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_have_weights),
    };
    return cmocka_run_group_tests_name("train_mix", tests, NULL, NULL);
}
