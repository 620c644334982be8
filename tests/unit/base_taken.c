// SPDX-License-Identifier: Apache-2.0
/* base_taken.c: what others took of the time, out of counters laid out in a temporary directory; when a round is
 * measured again. */
#include "unit/fixture.h"
#include "unit/machine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cgroup.h"
#include "base/taken.h"

/* The counters of a text as /proc/stat, for the CPUs of a mask. */
static weft__taken_mark read_stat(const char *text, uint64_t cpus)
{
    weft__taken_mark m = {0};
    put_file("/proc/stat", text);
    weft__taken_read_stat(machine, &cpus, 1, &m);
    return m;
}

static int near(double a, double b)
{
    return fabs(a - b) < 1e-9;
}

static void counters_of_the_cpus_that_are_ours(void **state)
{
    (void)state;
    const double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
    const char *text = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 3 100 10 6 7 8 0 0\ncpu1 1 2 3 200 20 6 7 30 0 0\n"
                       "cpu13 1 2 3 400 40 6 7 70 0 0\nintr 5 cpu2 3\ncpu3 1 1 1 1 1 1 1 1\n";
    weft__taken_mark m = read_stat(text, 1 | 1u << 13);
    assert_int_equal(m.n_cpus, 2);
    assert_true(near(m.idle_s, 550 * tick) && near(m.stolen_s, 78 * tick));
    m = read_stat(text, 2 | 1u << 3); /* the fourth is not among the first lines */
    assert_int_equal(m.n_cpus, 1);
    assert_true(near(m.idle_s, 220 * tick) && near(m.stolen_s, 30 * tick));
}

static void what_cannot_be_read_is_unknown(void **state)
{
    (void)state;
    static const char *const nothing[] = {"",
                                          "\n",
                                          "cpu 1 2 3 4 5 6 7 8\n",
                                          "cpux 1 2 3 4 5 6 7 8\n",
                                          "intr 1\ncpu0 1 2 3 4 5 6 7 8\n",
                                          "cpu64 1 2 3 4 5 6 7 8\n",
                                          "cpu99999999999999999999 1 2 3 4 5 6 7 8\n"};
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++) {
        weft__taken_mark m = read_stat(nothing[i], ~(uint64_t)0);
        assert_int_equal(m.n_cpus, 0);
        assert_true(isnan(m.idle_s) && isnan(m.stolen_s));
    }
    weft__taken_mark m = read_stat("cpu0 1 2 3\n", 1); /* too short a line is no 0 */
    assert_true(m.n_cpus == 1 && isnan(m.idle_s) && isnan(m.stolen_s));
    m = read_stat("cpu0 1 2 3 4 5 6 7\n", 1);
    assert_true(!isnan(m.idle_s) && isnan(m.stolen_s));
    m = read_stat("cpu0 1 2 3 4 5 6 7 x\n", 1);
    assert_true(!isnan(m.idle_s) && isnan(m.stolen_s));
    uint64_t all = ~(uint64_t)0;
    weft__taken_read_stat("/nowhere", &all, 1, &m);
    assert_true(m.n_cpus == 0 && isnan(m.stolen_s));
    assert_true(isnan(weft__cgroup_throttled("/nowhere")));
    char text[WEFT__TAKEN_ROOM];
    weft__taken_mark from = {0}, to = {.wall_ns = 1000000000};
    from.throttled_s = to.throttled_s = from.stolen_s = to.stolen_s = from.idle_s = to.idle_s = NAN;
    weft__taken t = weft__taken_between(&from, &to, 2);
    assert_string_equal(weft__taken_text(&t, weft__taken_above(&t), text), "unknown");
    assert_string_equal(weft__taken_json(&t, text), "\"stolen\": null, \"others\": null, \"throttled\": null");
    assert_false(weft__taken_above(&t));
    t = weft__taken_between(&from, &from, 2); /* and of no time nothing is known */
    assert_string_equal(weft__taken_text(&t, weft__taken_above(&t), text), "unknown");
}

/* Two seconds of two CPUs that both threads want. */
static weft__taken two_seconds(double idle_s, double stolen_s, double throttled_s, double own_s, int n_threads)
{
    const weft__taken_mark from = {5000000000, 1000000000, 2, 2, 50, 7, 3};
    const weft__taken_mark to = {7000000000,     1000000000 + (uint64_t)(own_s * 1e9), 2, 2, 50 + idle_s, 7 + stolen_s,
                                 3 + throttled_s};
    return weft__taken_between(&from, &to, n_threads);
}

static void shares_of_the_time_that_was_wanted(void **state)
{
    (void)state;
    char text[WEFT__TAKEN_ROOM];
    weft__taken t = two_seconds(0, 1.8, 0, 2.2, 2); /* the host took 45 % */
    assert_true(near(t.time_s, 4) && near(t.stolen_s, 1.8) && near(t.others_s, 0) && near(t.throttled_s, 0));
    assert_string_equal(weft__taken_text(&t, weft__taken_above(&t), text), "45.0 % stolen *");
    assert_string_equal(weft__taken_json(&t, text),
                        "\"stolen\": 0.450000, \"others\": 0.000000, \"throttled\": 0.000000");
    assert_true(weft__taken_above(&t));
    t = two_seconds(0.1, 0.02, 0, 2.88, 2); /* a process had half of one core */
    assert_true(near(t.others_s, 1));
    assert_string_equal(weft__taken_text(&t, weft__taken_above(&t), text), "25.5 % others *");
    t = two_seconds(1, 0, 1, 3, 2); /* the quota left a quarter idle */
    assert_true(near(t.throttled_s, 1) && near(t.others_s, 0));
    assert_string_equal(weft__taken_text(&t, weft__taken_above(&t), text), "25.0 % throttled *");
    t = two_seconds(0.1, 0.02, 0, 3.86, 2);
    assert_string_equal(weft__taken_text(&t, weft__taken_above(&t), text), "1.0 %");
    assert_false(weft__taken_above(&t));
    t = two_seconds(0.2, 0.03, 0, 1.9, 1); /* of one thread's two seconds: the others fit on the core it leaves free */
    assert_true(near(t.time_s, 2) && near(t.others_s, 0) && near(t.stolen_s, 0.03));
    t = two_seconds(0.2, 0, 0, 1.2, 1); /* and where they do not */
    assert_true(near(t.others_s, 0.6));
    t = two_seconds(0, 0, 0, 4, 8); /* more threads than CPUs cannot have more time */
    assert_true(near(t.time_s, 4));
}

static void counters_that_go_backwards_stand_still(void **state)
{
    (void)state;
    weft__taken t = two_seconds(-1, -1, -1, 4, 2);
    assert_true(near(t.stolen_s, 0) && near(t.others_s, 0) && near(t.throttled_s, 0));
    t = two_seconds(0, 0, 99, 4, 2); /* began before, was booked now */
    assert_true(near(t.throttled_s, 4));
    t = two_seconds(0, 0, 0, 9, 2); /* the process's own time has finer ticks */
    assert_true(near(t.others_s, 0));
    const weft__taken_mark from = {.wall_ns = 5, .n_cpus = 4, .idle_s = 50},
                           to = {.wall_ns = 2000000005, .n_cpus = 2, .idle_s = 20};
    t = weft__taken_between(&from, &to, 2); /* the mask changed: these are other CPUs' counters */
    assert_true(isnan(t.stolen_s) && isnan(t.others_s));
}

static void two_ticks_are_no_evidence(void **state)
{
    (void)state;
    const double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
    weft__taken t = {10 * tick, 2 * tick, 0, 0};
    assert_false(weft__taken_above(&t));
    t.stolen_s = 3 * tick;
    assert_true(weft__taken_above(&t));
    weft__taken sum = {0}; /* but many such rounds together are */
    t.stolen_s = 2 * tick;
    weft__taken_add(&sum, &t);
    assert_false(weft__taken_above(&sum));
    weft__taken_add(&sum, &t);
    assert_true(weft__taken_above(&sum));
    t.others_s = NAN; /* what is known counts */
    weft__taken_add(&sum, &t);
    assert_true(isnan(sum.others_s) && weft__taken_above(&sum));
}

static void rounds_are_measured_again_while_that_helps(void **state)
{
    (void)state;
    const weft__taken quiet = {4, 0.1, 0, 0}, taken = {4, 1.8, 0, 0}, unknown = {4, NAN, NAN, NAN};
    weft__taken_again a = {.left = 5};
    assert_false(weft__taken_again_wanted(&a, &quiet));
    assert_false(weft__taken_again_wanted(&a, &unknown));
    for (int i = 0; i < 3; i++) assert_true(weft__taken_again_wanted(&a, &taken));
    assert_false(weft__taken_again_wanted(&a, &quiet)); /* the minute is over */
    assert_true(weft__taken_again_wanted(&a, &taken));
    assert_false(weft__taken_again_wanted(&a, &quiet));
    assert_true(weft__taken_again_wanted(&a, &taken));
    assert_false(weft__taken_again_wanted(&a, &taken)); /* none is left */
    a = (weft__taken_again){.left = 100};
    int n = 0;
    while (weft__taken_again_wanted(&a, &taken)) n++;
    assert_int_equal(n, 3); /* it does not help */
    assert_false(weft__taken_again_wanted(&a, &taken));
}

static void throttled_time_of_all_groups(void **state)
{
    (void)state;
    put_file("/proc/self/cgroup", "0::/user/job\n");
    assert_true(isnan(weft__cgroup_throttled(machine)));
    put_file("/sys/fs/cgroup/cpu.stat", "usage_usec 12\nuser_usec 5\n"); /* the root of v2 has no quota */
    assert_true(near(weft__cgroup_throttled(machine), 0));
    put_file("/sys/fs/cgroup/user/job/cpu.stat", "usage_usec 12\nnr_throttled 3\nthrottled_usec 1500000\n");
    assert_true(near(weft__cgroup_throttled(machine), 1.5));
    put_file("/sys/fs/cgroup/user/cpu.stat", "throttled_usec\nthrottled_usec x\nthrottled_usec 250000\n");
    assert_true(near(weft__cgroup_throttled(machine), 1.75));
    put_file("/proc/self/cgroup", "9:cpuset:/c\n2:cpu,cpuacct:/a/b\n");
    put_file("/sys/fs/cgroup/cpu/a/b/cpu.stat", "nr_periods 4\nnr_throttled 3\nthrottled_time 2000000000\n");
    assert_true(near(weft__cgroup_throttled(machine), 2));
}

/* This machine: a moment can be read, the parts make sense, and where the system tells what was stolen, it is known. */
static void this_machine_can_be_asked(void **state)
{
    (void)state;
    weft__taken_mark a, b;
    weft__taken_now(&a);
    for (volatile int i = 0; i < 10000000; i++) continue;
    weft__taken_now(&b);
    weft__taken t = weft__taken_between(&a, &b, 1);
    assert_true(b.own_ns > a.own_ns && b.wall_ns > a.wall_ns && a.n_cores >= 1);
    assert_true(t.time_s > 0 && (isnan(t.stolen_s) || t.stolen_s >= 0) && (isnan(t.others_s) || t.others_s >= 0));
    FILE *f = fopen("/proc/stat", "r");
    if (f) {
        fclose(f);
        assert_false(isnan(t.stolen_s));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_of_the_cpus_that_are_ours),
        cmocka_unit_test(what_cannot_be_read_is_unknown),
        cmocka_unit_test(shares_of_the_time_that_was_wanted),
        cmocka_unit_test(counters_that_go_backwards_stand_still),
        cmocka_unit_test(two_ticks_are_no_evidence),
        cmocka_unit_test(rounds_are_measured_again_while_that_helps),
        cmocka_unit_test(throttled_time_of_all_groups),
        cmocka_unit_test(this_machine_can_be_asked),
    };
    return cmocka_run_group_tests(tests, make_machine, remove_machine);
}
