// SPDX-License-Identifier: Apache-2.0
/* http_turns.c: who waits for what all need takes turns with the others, however much he has put there before them. */
#include "unit/fixture.h"

#include "http/turns.h"

static int a, b, c;

struct thing {
    int number;
    weft__http_turn turn;
};

static int next(weft__http_turns *q)
{
    weft__http_turn *t = weft__http_turns_take(q);
    return t ? WEFT__HTTP_TURN_OF(struct thing, turn, t)->number : -1;
}

static void one_of_each(void **state)
{
    (void)state;
    weft__http_turns q = {0};
    struct thing all[8];
    const void *const who[8] = {&a, &a, &a, &a, &b, &b, &c, NULL};
    for (int i = 0; i < 8; i++) {
        all[i].number = i;
        weft__http_turns_put(&q, &all[i].turn, who[i]);
    }
    const int order[] = {0, 4, 6, 7, 1, 5, 2, 3, -1};
    for (int i = 0; i < 9; i++) assert_int_equal(next(&q), order[i]);
    assert_int_equal(q.n, 0);
}

/* Who comes later gets nothing for the time when he was not there, and waits for nobody's second. */
static void who_comes_later(void **state)
{
    (void)state;
    weft__http_turns q = {0};
    struct thing all[7];
    for (int i = 0; i < 7; i++) all[i].number = i;
    for (int i = 0; i < 5; i++) weft__http_turns_put(&q, &all[i].turn, &a);
    assert_int_equal(next(&q), 0);
    assert_int_equal(next(&q), 1);
    weft__http_turns_put(&q, &all[5].turn, &b);
    weft__http_turns_put(&q, &all[6].turn, &b);
    const int order[] = {5, 2, 6, 3, 4, -1};
    for (int i = 0; i < 6; i++) assert_int_equal(next(&q), order[i]);
}

static void one_may_leave(void **state)
{
    (void)state;
    weft__http_turns q = {0};
    struct thing all[3];
    for (int i = 0; i < 3; i++) {
        all[i].number = i;
        weft__http_turns_put(&q, &all[i].turn, &a);
    }
    weft__http_turns_remove(&q, &all[1].turn);
    assert_int_equal(q.n, 2);
    assert_int_equal(next(&q), 0);
    assert_int_equal(next(&q), 2);
    assert_int_equal(next(&q), -1);
}

static int is_not(const void *arg, const void *who)
{
    return who != arg;
}

/* Who may not yet is passed over, keeps his place, and holds up nobody. */
static void one_is_passed_over(void **state)
{
    (void)state;
    weft__http_turns q = {0};
    struct thing all[6];
    const void *const who[6] = {&a, &a, &b, &b, &b, &c};
    const int order[] = {2, 3, 4, -1};
    for (int i = 0; i < 6; i++) all[i].number = i;
    for (int i = 0; i < 5; i++) weft__http_turns_put(&q, &all[i].turn, who[i]);
    for (int i = 0; i < 4; i++) {
        weft__http_turn *t = weft__http_turns_take_if(&q, is_not, &a);
        assert_int_equal(t ? WEFT__HTTP_TURN_OF(struct thing, turn, t)->number : -1, order[i]);
    }
    assert_int_equal(q.n, 2);
    weft__http_turns_put(&q, &all[5].turn, who[5]);
    assert_int_equal(next(&q), 0);
    assert_int_equal(next(&q), 1);
    assert_int_equal(next(&q), 5);
    assert_int_equal(q.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_of_each),
        cmocka_unit_test(who_comes_later),
        cmocka_unit_test(one_may_leave),
        cmocka_unit_test(one_is_passed_over),
    };
    return cmocka_run_group_tests_name("http_turns", tests, NULL, NULL);
}
