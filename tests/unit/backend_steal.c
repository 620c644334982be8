// SPDX-License-Identifier: Apache-2.0
/* backend_steal.c: blocks of a product's shares: they cover each share once, none is larger or smaller than its bounds
 * allow, and however many threads take them, each is taken once. */
#include <pthread.h>
#include <string.h>

#include "backend/cpu/program.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { THREADS = 4, COLUMNS = 2, OUTPUTS = 20000 };

/* Shares of odd sizes, an empty one among them; the columns differ. */
static const int64_t split[(THREADS + 1) * COLUMNS] = {0, 0, 4096, 16, 4096, 144, 4112, 9000, OUTPUTS, OUTPUTS};
static const weft__cpu_shares shares = {split, COLUMNS};
static const weft__cpu_block_size sizes[] = {{128, 512}, {128, 128}, {512, 512}, {128, 4096}};

static void blocks_cover_each_share_once(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int owner = 0; owner < THREADS; owner++) {
            int n = weft__cpu_n_blocks(shares, owner, sizes[s]), b = 0;
            for (int i = 0; i < COLUMNS; i++) {
                const weft__cpu_outputs share = weft__cpu_share_of(shares, owner, i);
                for (int64_t at = share.first; at < share.last; b++) {
                    weft__cpu_outputs o;
                    assert_true(weft__cpu_block_of(shares, owner, b, sizes[s], &o));
                    assert_int_equal(o.i, i);
                    assert_int_equal(o.first, at);
                    assert_true(o.last > o.first && o.last <= share.last && o.last - o.first <= sizes[s].max);
                    assert_true(o.last - o.first >= sizes[s].min || o.last == share.last);
                    at = o.last;
                }
            }
            assert_int_equal(b, n);
        }
}

static weft__cpu_claim claims[THREADS];
static _Atomic(uint8_t) taken[COLUMNS][OUTPUTS];

static void *take_all(void *arg)
{
    const int thread = (int)(intptr_t)arg;
    weft__cpu_outputs o;
    for (int k = 0; k < THREADS; k++) {
        const int owner = (thread + k) % THREADS;
        while (weft__cpu_take_block(shares, owner, &claims[owner], sizes[0], &o))
            for (int64_t j = o.first; j < o.last; j++) atomic_fetch_add(&taken[o.i][j], 1);
    }
    return NULL;
}

static void each_block_is_taken_once(void **state)
{
    (void)state;
    for (int round = 0; round < 50; round++) {
        pthread_t threads[THREADS];
        memset(claims, 0, sizeof claims);
        memset(taken, 0, sizeof taken);
        for (int t = 0; t < THREADS; t++)
            assert_int_equal(pthread_create(&threads[t], NULL, take_all, (void *)(intptr_t)t), 0);
        for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
        for (int i = 0; i < COLUMNS; i++)
            for (int64_t j = 0; j < OUTPUTS; j++) assert_int_equal(taken[i][j], 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(blocks_cover_each_share_once),
                                       cmocka_unit_test(each_block_is_taken_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
