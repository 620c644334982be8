// SPDX-License-Identifier: Apache-2.0
/* sched_heap.c: the scheduler's heap against a list that is searched: whatever is pushed, removed or gets another key,
 * the top is the least, every item knows its place, and no key from before a change decides anything. */
#include "unit/fixture.h"

#include "base/random.h"
#include "claims.h"
#include "sched/heap.h"

enum { MOST = 100, N_CHANGES = CLAIMS_REPEATED(200000, 100000, 20000) };

struct list {
    int key[MOST], in[MOST];
};

static int key_before(const void *arg, int32_t a, int32_t b)
{
    const struct list *l = arg;
    return l->key[a] != l->key[b] ? l->key[a] < l->key[b] : a < b;
}

static void check(const weft__sched_heap *h, const struct list *l)
{
    int32_t least = -1, n = 0;
    for (int32_t i = 0; i < MOST; i++) {
        if (!l->in[i]) {
            assert_int_equal(h->at[i], -1);
            continue;
        }
        n++;
        assert_in_range(h->at[i], 0, h->n - 1);
        assert_int_equal(h->items[h->at[i]], i);
        if (least < 0 || key_before(l, i, least)) least = i;
    }
    assert_int_equal(h->n, n);
    if (n > 0) assert_int_equal(h->items[0], least);
}

static void the_top_is_the_least(void **state)
{
    (void)state;
    static struct list l;
    int32_t items[MOST], at[MOST];
    weft__sched_heap h = {items, at, 0, key_before, &l};
    weft__rng rng;
    weft__rng_seed(&rng, 1);
    for (int32_t i = 0; i < MOST; i++) at[i] = -1;
    for (int k = 0; k < N_CHANGES; k++) {
        int32_t i = (int32_t)weft__rng_below(&rng, MOST);
        int filling = k / 1000 % 2; /* it grows full and falls empty in turn */
        if (l.in[i] && weft__rng_below(&rng, 3) == 0) {
            l.key[i] = (int)weft__rng_below(&rng, 50); /* with ties */
            weft__sched_heap_moved(&h, i);
        } else if (l.in[i] ? weft__rng_below(&rng, filling ? 4 : 1) == 0
                           : weft__rng_below(&rng, filling ? 1 : 4) != 0) {
            l.in[i] = 0; /* also when it is not there: nothing happens */
            weft__sched_heap_remove(&h, i);
        } else if (!l.in[i]) {
            l.in[i] = 1;
            l.key[i] = (int)weft__rng_below(&rng, 50);
            weft__sched_heap_push(&h, i);
        }
        check(&h, &l);
    }
    while (h.n > 0) { /* and they leave in order */
        int32_t top = h.items[0];
        l.in[top] = 0;
        weft__sched_heap_remove(&h, top);
        check(&h, &l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_top_is_the_least)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
