// SPDX-License-Identifier: Apache-2.0
/* graph_batch.c: rows that are put together one by one (graph/batch.h) are the columns of a step: sequences in the
 * order in which they were added, each adapter once, and nothing of the step before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "graph/batch.h"

static int a_byte, b_byte;

static void check_row(const weft_rows *x, int32_t r, int32_t token, int32_t pos, int32_t seq, unsigned want)
{
    assert_int_equal(x->token[r], token);
    assert_int_equal(x->pos[r], pos);
    assert_int_equal(x->seq[r], seq);
    assert_int_equal(x->want[r], want);
}

/* Three sequences of which the first and the last have one adapter, and the second none. */
static void rows_of_sequences(void **state)
{
    (void)state;
    weft_error err = {0};
    weft__graph_batch b;
    weft_adapter *one = (weft_adapter *)&a_byte, *other = (weft_adapter *)&b_byte;
    const int32_t *pages[3] = {NULL};
    assert_int_equal(weft__graph_batch_init(&b, 6, 2, &err), WEFT_OK);
    assert_non_null(b.hidden);
    for (int32_t i = 0; i < 12; i++) b.hidden[i] = 1; /* the room is there: held by the sanitizer */
    for (int round = 0; round < 2; round++) {
        weft__graph_batch_clear(&b);
        assert_int_equal(weft__graph_batch_add_sequence(&b, (weft_seq_view){&pages[0], NULL, NULL}, round ? NULL : one),
                         0);
        weft__graph_batch_add_row(&b, 7, 0, 0);
        weft__graph_batch_add_row(&b, 8, 1, WEFT_WANT_LOGITS);
        assert_int_equal(weft__graph_batch_add_sequence(&b, (weft_seq_view){&pages[1], NULL, NULL}, NULL), 1);
        weft__graph_batch_add_row(&b, 9, 40, WEFT_WANT_LOGITS | WEFT_WANT_OUTPUTS);
        assert_int_equal(weft__graph_batch_add_sequence(&b, (weft_seq_view){&pages[2], NULL, NULL}, round ? NULL : one),
                         2);
        weft__graph_batch_add_row(&b, 3, 5, WEFT_WANT_OUTPUTS);
        const weft_rows *x = &b.rows;
        assert_int_equal(x->size, sizeof *x);
        assert_int_equal(x->n_rows, 4);
        assert_int_equal(x->n_wanted, 2);
        assert_int_equal(x->n_seqs, 3);
        check_row(x, 0, 7, 0, 0, 0);
        check_row(x, 1, 8, 1, 0, WEFT_WANT_LOGITS);
        check_row(x, 2, 9, 40, 1, WEFT_WANT_LOGITS | WEFT_WANT_OUTPUTS);
        check_row(x, 3, 3, 5, 2, WEFT_WANT_OUTPUTS);
        for (int32_t s = 0; s < 3; s++) assert_ptr_equal(x->seqs[s].pages, &pages[s]);
        assert_null(x->embd);
        if (round) { /* no adapter is left of the step before */
            assert_int_equal(x->n_adapters, 0);
            assert_null(x->adapter);
            continue;
        }
        const int32_t adapter[] = {0, 0, WEFT_NONE, 0};
        assert_int_equal(x->n_adapters, 1);
        assert_ptr_equal(x->adapters[0], one);
        assert_memory_equal(x->adapter, adapter, sizeof adapter);
        weft__graph_batch_add_sequence(&b, (weft_seq_view){&pages[0], NULL, NULL}, other);
        weft__graph_batch_add_row(&b, 1, 0, 0);
        assert_int_equal(x->n_adapters, 2);
        assert_int_equal(x->adapter[4], 1);
        assert_ptr_equal(x->adapters[1], other);
    }
    weft__graph_batch_free(&b);
    weft__graph_batch_free(&b);
}

/* Each sequence has its pool, and a step in which none was told has one. */
static void pools_of_sequences(void **state)
{
    (void)state;
    weft_error err = {0};
    weft__graph_batch b;
    const int32_t pool[] = {4, 0, 2};
    assert_int_equal(weft__graph_batch_init(&b, 3, 0, &err), WEFT_OK);
    for (int32_t s = 0; s < 3; s++) {
        weft__graph_batch_add_sequence(&b, (weft_seq_view){0}, NULL);
        weft__graph_batch_set_pool(&b, pool[s], 5);
        weft__graph_batch_add_row(&b, 1, 0, 0);
    }
    assert_int_equal(b.rows.n_pools, 5);
    assert_memory_equal(b.rows.pool, pool, sizeof pool);
    weft__graph_batch_clear(&b);
    assert_null(b.rows.pool);
    weft__graph_batch_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_of_sequences), cmocka_unit_test(pools_of_sequences)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
