// SPDX-License-Identifier: Apache-2.0
/* base_counters.c: What threads count is summed by event, a part of the time makes an estimate, and what cannot be
 * counted has a reason, on a system that is laid out here. */
#include "unit/fixture.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/counters.h"

enum { FD = 1000, N_OWN = WEFT__COUNTERS - WEFT__COUNTERS_HARDWARE };

/* The processor and the system of one thread. */
static _Thread_local struct machine {
    uint64_t n[WEFT__COUNTERS_HARDWARE], own[N_OWN];
    uint64_t enabled_ns[WEFT__COUNTER_GROUPS], running_ns[WEFT__COUNTER_GROUPS];
    int refused[WEFT__COUNTERS_HARDWARE]; /* errno */
    int unreadable;                       /* the group that cannot be read, + 1 */
    int n_opened, of[64], leader[64];
} here;
static atomic_int n_open;

static int counter_of(const struct perf_event_attr *a)
{
    const uint64_t l1d = PERF_COUNT_HW_CACHE_L1D, miss = PERF_COUNT_HW_CACHE_RESULT_MISS << 16;
    if (a->type == PERF_TYPE_HW_CACHE)
        return a->config == (l1d | miss) ? WEFT__COUNTER_L1D_MISSES : WEFT__COUNTER_DTLB_MISSES;
    switch (a->config) {
    case PERF_COUNT_HW_CPU_CYCLES: return WEFT__COUNTER_CYCLES;
    case PERF_COUNT_HW_INSTRUCTIONS: return WEFT__COUNTER_INSTRUCTIONS;
    case PERF_COUNT_HW_CACHE_MISSES: return WEFT__COUNTER_LLC_MISSES;
    default: return WEFT__COUNTER_BRANCH_MISSES;
    }
}

static int open_here(const struct perf_event_attr *a, int group_fd)
{
    const int counter = counter_of(a);
    assert_true(a->exclude_kernel && a->exclude_hv);
    assert_true(a->read_format ==
                (PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING));
    if (here.refused[counter]) {
        errno = here.refused[counter];
        return -1;
    }
    const int i = here.n_opened++;
    assert_true(i < 64);
    here.of[i] = counter;
    here.leader[i] = group_fd < 0 ? FD + i : group_fd;
    atomic_fetch_add(&n_open, 1);
    return FD + i;
}

static ssize_t read_here(int fd, void *out, size_t size)
{
    const int group = weft__counter_group(here.of[fd - FD]);
    uint64_t data[3 + WEFT__COUNTERS_HARDWARE] = {0, here.enabled_ns[group], here.running_ns[group]};
    assert_true(here.leader[fd - FD] == fd); /* leaders are read */
    for (int i = 0; i < here.n_opened; i++)
        if (here.leader[i] == fd) data[3 + data[0]++] = here.n[here.of[i]];
    const size_t n = (3 + data[0]) * sizeof *data;
    if (here.unreadable == group + 1) return 0;
    assert_true(n <= size);
    memcpy(out, data, n);
    return (ssize_t)n;
}

static int close_here(int fd)
{
    assert_true(fd >= FD);
    atomic_fetch_sub(&n_open, 1);
    return 0;
}

static void own_here(uint64_t out[N_OWN])
{
    memcpy(out, here.own, sizeof here.own);
}

static const weft__counter_system laid_out = {open_here, read_here, close_here, own_here};

/* Counter i of this thread goes on by `by` times i + 1, all the time. */
static void work(uint64_t by)
{
    for (int i = 0; i < WEFT__COUNTERS_HARDWARE; i++) here.n[i] += by * (uint64_t)(i + 1);
    for (int i = 0; i < N_OWN; i++) here.own[i] += by * (uint64_t)(WEFT__COUNTERS_HARDWARE + i + 1);
    for (int g = 0; g < WEFT__COUNTER_GROUPS; g++) here.enabled_ns[g] += by, here.running_ns[g] += by;
}

static weft__counters *begin(const weft__counter_system *system, int n_events)
{
    weft__counters *c = NULL;
    weft_error err = {0};
    if (weft__counters_new(system, n_events, &c, &err)) fail_msg("%s", err.message);
    here = (struct machine){.n_opened = 0};
    return c;
}

static void end(weft__counters *c)
{
    weft__counters_free(&c);
    assert_null(c);
    assert_int_equal(atomic_load(&n_open), 0);
}

typedef struct worker {
    weft__counters *c;
    int thread, refused;
    uint64_t before, of[2], waiting;
} worker;

static void *walk(void *arg)
{
    const worker *w = arg;
    here = (struct machine){.n_opened = 0};
    here.refused[WEFT__COUNTER_L1D_MISSES] = w->refused;
    work(w->before);
    weft__counters_mark(w->c, w->thread, -1);
    for (int event = 0; event < 2; event++) {
        work(w->of[event]);
        weft__counters_mark(w->c, w->thread, event);
        work(w->waiting);
        weft__counters_mark(w->c, w->thread, -1);
    }
    work(7000);
    weft__counters_mark(w->c, w->thread, 2); /* there are two */
    return NULL;
}

static void together(worker *w, int n)
{
    pthread_t threads[4];
    for (int i = 0; i < n; i++) assert_int_equal(pthread_create(&threads[i], NULL, walk, &w[i]), 0);
    for (int i = 0; i < n; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
}

static void threads_are_summed_by_event(void **state)
{
    (void)state;
    weft__counters *c = begin(&laid_out, 2);
    worker w[] = {{c, 0, 0, 1000, {1, 20}, 300}, {c, 1, 0, 5, {4, 50}, 600}, {c, 2, 0, 0, {0, 100}, 900}};
    weft__counts of;
    for (int again = 0; again < 2; again++) { /* also with other threads of the same numbers */
        together(w, 3);
        for (int event = 0; event < 2; event++) {
            const uint64_t sum = event ? 170 : 5;
            weft__counters_take(c, event, &of);
            for (int i = 0; i < WEFT__COUNTERS; i++) assert_int_equal(of.n[i], sum * (uint64_t)(i + 1));
            for (int g = 0; g < WEFT__COUNTER_GROUPS; g++)
                assert_true(of.enabled_ns[g] == sum && of.running_ns[g] == sum);
        }
    }
    weft__counters_take(c, 1, &of);
    for (int i = 0; i < WEFT__COUNTERS; i++) assert_int_equal(of.n[i], 0); /* it was taken */
    for (int i = 0; i < WEFT__COUNTERS; i++) assert_null(weft__counters_absent(c, i));
    assert_int_equal(atomic_load(&n_open), 3 * WEFT__COUNTERS_HARDWARE);
    end(c);
}

static void what_cannot_be_counted_has_a_reason(void **state)
{
    (void)state;
    static const struct {
        int error;
        const char *said;
    } reasons[] = {
        {ENOENT, "virtual machine"}, {EACCES, "perf_event_paranoid"}, {EPERM, "seccomp"},     {ENOSYS, "is not there"},
        {EMFILE, "ulimit -n"},       {EINVAL, "beside the others"},   {EBUSY, "another pro"}, {E2BIG, "refuses"},
    };
    for (size_t r = 0; r < sizeof reasons / sizeof *reasons; r++) {
        weft__counters *c = begin(&laid_out, 1);
        weft__counts of;
        assert_null(weft__counters_absent(c, WEFT__COUNTER_CYCLES)); /* nobody has asked yet */
        here.refused[WEFT__COUNTER_CYCLES] = here.refused[WEFT__COUNTER_L1D_MISSES] =
            reasons[r].error; /* a leader, and a member */
        weft__counters_mark(c, 0, -1);
        work(3);
        weft__counters_mark(c, 0, 0);
        weft__counters_take(c, 0, &of);
        for (int i = 0; i < WEFT__COUNTERS; i++) {
            const int gone = i == WEFT__COUNTER_CYCLES || i == WEFT__COUNTER_L1D_MISSES;
            const char *said = weft__counters_absent(c, i);
            assert_int_equal(of.n[i], gone ? 0 : 3 * (i + 1)); /* the others of their groups count */
            assert_true(gone ? said && strstr(said, reasons[r].said) : !said);
        }
        end(c);
    }
}

static void all_of_them_may_be_absent(void **state)
{
    (void)state;
    weft__counters *c = begin(&laid_out, 1);
    weft__counts of;
    for (int i = 0; i < WEFT__COUNTERS_HARDWARE; i++) here.refused[i] = ENOENT;
    weft__counters_mark(c, 0, -1);
    work(2);
    weft__counters_mark(c, 0, 0);
    weft__counters_take(c, 0, &of);
    for (int i = 0; i < WEFT__COUNTERS; i++) {
        assert_int_equal(of.n[i], i < WEFT__COUNTERS_HARDWARE ? 0 : 2 * (i + 1));
        assert_int_equal(weft__counters_absent(c, i) != NULL, i < WEFT__COUNTERS_HARDWARE);
    }
    end(c);
}

/* A sum to which one thread adds nothing would be too small. */
static void one_thread_without_is_enough(void **state)
{
    (void)state;
    weft__counters *c = begin(&laid_out, 2);
    worker w[] = {{c, 0, 0, 0, {1, 1}, 1}, {c, 1, EMFILE, 0, {1, 1}, 1}};
    together(w, 2);
    assert_non_null(weft__counters_absent(c, WEFT__COUNTER_L1D_MISSES));
    assert_null(weft__counters_absent(c, WEFT__COUNTER_DTLB_MISSES));
    end(c);
}

static void a_group_that_cannot_be_read_is_absent(void **state)
{
    (void)state;
    weft__counters *c = begin(&laid_out, 1);
    weft__counts of;
    weft__counters_mark(c, 0, -1);
    here.unreadable = 2;
    work(5);
    weft__counters_mark(c, 0, 0);
    weft__counters_take(c, 0, &of);
    assert_int_equal(of.n[WEFT__COUNTER_CYCLES], 5);
    assert_int_equal(of.n[WEFT__COUNTER_LLC_MISSES], 0);
    assert_null(weft__counters_absent(c, WEFT__COUNTER_CYCLES));
    assert_non_null(strstr(weft__counters_absent(c, WEFT__COUNTER_LLC_MISSES), "read"));
    end(c);
}

static void counters_that_take_turns_are_scaled(void **state)
{
    (void)state;
    weft__counters *c = begin(&laid_out, 1);
    weft__counts of;
    weft__counters_mark(c, 0, -1);
    here.n[WEFT__COUNTER_CYCLES] += 300; /* in a quarter of the time */
    here.enabled_ns[0] += 4000;
    here.running_ns[0] += 1000;
    here.enabled_ns[1] += 4000; /* never */
    weft__counters_mark(c, 0, 0);
    weft__counters_take(c, 0, &of);
    assert_true(weft__counters_scaled((double)of.n[WEFT__COUNTER_CYCLES], (double)of.enabled_ns[0],
                                      (double)of.running_ns[0]) == 1200);
    assert_true(isnan(weft__counters_scaled((double)of.n[WEFT__COUNTER_LLC_MISSES], (double)of.enabled_ns[1],
                                            (double)of.running_ns[1])));
    assert_true(weft__counters_scaled(5, 0, 0) == 5); /* one that always counts */
    assert_true(weft__counters_scaled(5, 7, 7) == 5);
    end(c);
}

static void this_system(void **state)
{
    (void)state;
    weft__counters *c = begin(NULL, 1);
    weft__counts of;
    struct timespec from, now;
    weft__counters_mark(c, 0, -1);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while (now.tv_sec == from.tv_sec && now.tv_nsec - from.tv_nsec < 1000000);
    weft__counters_mark(c, 0, 0);
    weft__counters_take(c, 0, &of);
    assert_true(of.n[WEFT__COUNTER_TASK_NS] >= 1000000 || now.tv_sec != from.tv_sec);
    for (int i = 0; i < WEFT__COUNTERS_HARDWARE; i++) {
        const char *why = weft__counters_absent(c, i);
        if (why) assert_int_equal(of.n[i], 0);
        print_message("%s: %s\n", weft__counter_name(i), why ? why : "counted");
    }
    end(c);
}

static void names(void **state)
{
    (void)state;
    for (int i = 0; i < WEFT__COUNTERS; i++)
        for (int k = 0; k < i; k++) assert_string_not_equal(weft__counter_name(i), weft__counter_name(k));
    assert_null(weft__counter_name(WEFT__COUNTERS));
    assert_null(weft__counter_name(-1));
}

static int make_and_mark(void *arg)
{
    weft__counters *c;
    weft_error err = {0};
    (void)arg;
    here = (struct machine){.n_opened = 0};
    if (weft__counters_new(&laid_out, 3, &c, &err)) return 0;
    weft__counters_mark(c, 0, 0);
    weft__counters_mark(c, 0, 1);
    const int ok =
        !weft__counters_absent(c, WEFT__COUNTER_TASK_NS); /* without memory nothing is counted, and that is said */
    weft__counters_free(&c);
    return ok;
}

static void no_memory(void **state)
{
    (void)state;
    assert_true(fail_each(make_and_mark, NULL) >= 2);
    assert_int_equal(atomic_load(&n_open), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_are_summed_by_event),
        cmocka_unit_test(what_cannot_be_counted_has_a_reason),
        cmocka_unit_test(all_of_them_may_be_absent),
        cmocka_unit_test(one_thread_without_is_enough),
        cmocka_unit_test(a_group_that_cannot_be_read_is_absent),
        cmocka_unit_test(counters_that_take_turns_are_scaled),
        cmocka_unit_test(this_system),
        cmocka_unit_test(names),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
