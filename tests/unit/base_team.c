// SPDX-License-Identifier: Apache-2.0
/* base_team.c: when threads are left out of the team and let in again, on machines that are simulated. */
#include "unit/fixture.h"

#include "base/team.h"

#define MS 1000000ull

/* Runs jobs for wall_ms. A job is 12 ms of work for one thread; `taken` cores are taken by others, who leave them alone
 * when a thread fewer runs. A team that meets them waits as long again for the last thread. Returns the time spent with
 * n threads. */
static uint64_t simulate(weft__team *t, uint64_t wall_ms, int taken, int n, int *changes)
{
    uint64_t at_n = 0;
    for (uint64_t now = 0; now < wall_ms * MS;) {
        int before = t->n, met = t->n > t->size - taken;
        uint64_t work = 12 * MS / (uint64_t)t->n, wall = met ? 2 * work : work;
        if (t->n == n) at_n += wall;
        now += wall;
        weft__team_job(t, 1, wall, met ? work : work / 50);
        *changes += t->n != before;
    }
    return at_n;
}

static void quiet_teams_stay_whole(void **state)
{
    (void)state;
    for (int size = 1; size <= 64; size *= 2) {
        weft__team t;
        int changes = 0;
        weft__team_init(&t, size);
        assert_int_equal(t.n, size);
        assert_true(weft__team_calm(&t));
        simulate(&t, 5000, 0, size, &changes);
        assert_int_equal(changes, 0);
        assert_true(weft__team_calm(&t));
    }
}

static void taken_cores_are_left(void **state)
{
    (void)state;
    static const struct {
        int size, taken;
    } cases[] = {{2, 1}, {4, 1}, {16, 1}, {16, 5}, {64, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft__team t;
        int changes = 0, size = cases[i].size, want = size - cases[i].taken;
        weft__team_init(&t, size);
        simulate(&t, 35 * (uint64_t)cases[i].taken + 10, cases[i].taken, size, &changes);
        assert_int_equal(t.n, want); /* one thread in each window */
        assert_false(weft__team_calm(&t));
        uint64_t there = simulate(&t, 20000, cases[i].taken, want, &changes);
        if (there < 19200 * MS)
            fail_msg("%d threads, %d taken: only %d ms with %d", size, cases[i].taken, (int)(there / MS), want);
        changes = 0;
        simulate(&t, 5000 + 200 * (uint64_t)cases[i].taken, 0, size, &changes);
        assert_int_equal(t.n, size); /* and they come back */
        assert_true(weft__team_calm(&t));
    }
}

/* A thread whose work is only small keeps nobody waiting; waiting that costs less than the thread brings is borne. */
static void some_waiting_is_borne(void **state)
{
    (void)state;
    static const struct {
        int size;
        unsigned lost; /* percent */
        int n;
    } cases[] = {{2, 40, 2}, {2, 50, 1}, {4, 15, 4}, {4, 30, 3}, {16, 7, 16}, {16, 12, 15}, {64, 7, 64}, {64, 12, 63}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft__team t;
        weft__team_init(&t, cases[i].size);
        for (int job = 0; job < 3; job++) weft__team_job(&t, 1, 10 * MS, cases[i].lost * MS / 10);
        assert_int_equal(t.n, cases[i].n);
    }
}

/* The waiting may mislead; the time that jobs took does not. Nor is it compared where it cannot be. */
static void trials_are_measured(void **state)
{
    (void)state;
    weft__team t;
    weft__team_init(&t, 2);
    weft__team_job(&t, 1, 40 * MS, 30 * MS);
    assert_int_equal(t.n, 1);
    for (int i = 0; i < 3; i++) weft__team_job(&t, 1, 40 * MS, 0);
    assert_int_equal(t.n, 2);
    assert_int_equal(t.trial, 1);
    weft__team_job(&t, 1, 35 * MS, 30 * MS); /* shorter than 40 */
    assert_int_equal(t.n, 2);
    assert_int_equal(t.trial, 0);
    weft__team_job(&t, 1, 35 * MS, 30 * MS); /* known by now */
    assert_int_equal(t.n, 2);

    for (int kind = 1; kind <= 2; kind++) {
        weft__team_init(&t, 2);
        weft__team_job(&t, 1, 40 * MS, 30 * MS);
        for (int i = 0; i < 3; i++) weft__team_job(&t, 1, 40 * MS, 0);
        assert_int_equal(t.n, 2);
        weft__team_job(&t, kind, 39 * MS, 38 * MS);
        assert_int_equal(t.n, kind == 1 ? 2 : 1); /* another kind of job: only the waiting tells */
    }
}

static void jobs_of_no_time_do_no_harm(void **state)
{
    (void)state;
    weft__team t;
    weft__team_init(&t, 3);
    for (int i = 0; i < 1000; i++) weft__team_job(&t, i, 0, 5);
    for (int i = 0; i < 1000; i++) weft__team_job(&t, i % 2, 1, UINT64_MAX);
    assert_int_equal(t.n, 3); /* a window has not passed */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quiet_teams_stay_whole),     cmocka_unit_test(taken_cores_are_left),
        cmocka_unit_test(some_waiting_is_borne),      cmocka_unit_test(trials_are_measured),
        cmocka_unit_test(jobs_of_no_time_do_no_harm),
    };
    return cmocka_run_group_tests_name("base_team", tests, NULL, NULL);
}
