// SPDX-License-Identifier: Apache-2.0
/* base_pool.c: the thread team: every thread runs every job once, barriers order memory, starting and stopping leaves
 * nothing, a thread that keeps the others waiting is left out until it no longer does, and callers of one pool take
 * turns, but where it has no threads. */
#include "unit/fixture.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/pool.h"

/* Linked in place of pthread_create: refuses thread number `create_limit` (from 0); -1 refuses none. */
static int create_limit = -1;
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
    if (create_limit >= 0 && create_limit-- == 0) return EAGAIN;
    return __real_pthread_create(thread, attr, start, arg);
}

#define MAX 16

/* Sanitizers and emulation make a fork and join some fifty times slower. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(WEFT_EMULATED)
enum { MANY_JOBS = 20000, MANY_TEAMS = 300 };
#else
enum { MANY_JOBS = 1000000, MANY_TEAMS = 3000 };
#endif

/* Plain integers on purpose: the pool must order them, and ThreadSanitizer sees where it does not. */
typedef struct board {
    weft__pool *pool;
    long counts[MAX][16]; /* [thread][padding] */
    long rounds;
} board;

static void count_once(void *arg, int thread, int n_threads)
{
    board *b = arg;
    assert_true(thread >= 0 && thread < n_threads);
    b->counts[thread][0]++;
}

static void fork_and_join(int n_threads, long jobs)
{
    board b = {0};
    weft_error err = {0};
    assert_int_equal(weft__pool_create(n_threads, &b.pool, &err), WEFT_OK);
    assert_int_equal(weft__pool_size(b.pool), n_threads);
    for (long i = 0; i < jobs; i++) weft__pool_run(b.pool, count_once, &b);
    for (int t = 0; t < n_threads; t++) assert_int_equal(b.counts[t][0], jobs);
    weft__pool_destroy(&b.pool);
    assert_null(b.pool);
}

static void every_thread_runs_every_job(void **state)
{
    (void)state;
    fork_and_join(1, 100000);
    fork_and_join(2, MANY_JOBS);
    fork_and_join(3, 3000); /* more threads than a small machine has CPUs */
    fork_and_join(MAX, 500);
}

/* Each thread adds its neighbour's number, so a barrier that lets one through early gives a wrong sum. */
static void pass_along(void *arg, int thread, int n_threads)
{
    board *b = arg;
    for (long i = 0; i < b->rounds; i++) {
        long next = b->counts[(thread + 1) % n_threads][0];
        weft__pool_barrier(b->pool, thread);
        b->counts[thread][0] = next + 1;
        weft__pool_barrier(b->pool, thread);
    }
}

static void barriers_order_memory(void **state)
{
    (void)state;
    static const int sizes[] = {1, 2, 3, MAX};
    static const long rounds[] = {50000, 20000, 1500, 200};
    for (int i = 0; i < 4; i++) {
        board b = {.rounds = rounds[i]};
        assert_int_equal(weft__pool_create(sizes[i], &b.pool, NULL), WEFT_OK);
        weft__pool_run(b.pool, pass_along, &b);
        weft__pool_run(b.pool, pass_along, &b);
        for (int t = 0; t < sizes[i]; t++) assert_int_equal(b.counts[t][0], 2 * rounds[i]);
        weft__pool_destroy(&b.pool);
    }
}

static void teams_start_and_stop(void **state)
{
    (void)state;
    size_t before = weft__alloc_live();
    for (int i = 0; i < MANY_TEAMS; i++) {
        board b = {0};
        assert_int_equal(weft__pool_create(1 + i % 5, &b.pool, NULL), WEFT_OK);
        if (i % 3) weft__pool_run(b.pool, count_once, &b);
        weft__pool_destroy(&b.pool);
    }
    weft__pool *none = NULL;
    weft__pool_destroy(&none);
    assert_int_equal(weft__alloc_live(), before);
}

static void sleepers_wake(void **state)
{
    (void)state;
    board b = {0};
    assert_int_equal(weft__pool_create(4, &b.pool, NULL), WEFT_OK);
    for (int i = 0; i < 50; i++) {
        usleep(2000); /* long enough for every worker to have gone to sleep */
        weft__pool_run(b.pool, count_once, &b);
    }
    for (int t = 0; t < 4; t++) assert_int_equal(b.counts[t][0], 50);
    weft__pool_destroy(&b.pool);
}

static void late_threads_are_waited_for(void *arg, int thread, int n_threads)
{
    board *b = arg;
    if (thread == n_threads - 1) usleep(5000);
    weft__pool_barrier(b->pool, thread);
    if (thread == 0) usleep(5000);
    b->counts[thread][0]++;
}

static void waiting_threads_sleep_and_wake(void **state)
{
    (void)state;
    board b = {0};
    assert_int_equal(weft__pool_create(4, &b.pool, NULL), WEFT_OK);
    for (int i = 0; i < 10; i++) weft__pool_run(b.pool, late_threads_are_waited_for, &b);
    for (int t = 0; t < 4; t++) assert_int_equal(b.counts[t][0], 10);
    weft__pool_destroy(&b.pool);
}

/* A millisecond of work; the last thread takes longer while `rounds` is not 0, as if another process had its core. */
static void lag(void *arg, int thread, int n_threads)
{
    board *b = arg;
    uint64_t end = weft__clock_ns() + 1000000;
    while (weft__clock_ns() < end) continue;
    if (b->rounds && thread > 0 && thread == n_threads - 1) usleep(8000);
    b->counts[thread][0]++;
    b->counts[thread][1] = n_threads;
}

/* Runs jobs until the team has n threads, for at most `seconds`. */
static void run_until(board *b, int n, int seconds)
{
    uint64_t limit = weft__clock_ns() + (uint64_t)seconds * 1000000000u;
    while (weft__pool_team(b->pool) != n && weft__clock_ns() < limit) {
        int team = weft__pool_team(b->pool);
        long resting = b->counts[team][0];
        weft__pool_run_team(b->pool, team, 1, lag, b);
        assert_int_equal(b->counts[0][1], team);
        assert_int_equal(b->counts[team][0], resting); /* who was left out did not run */
    }
}

static void laggards_are_left_out(void **state)
{
    (void)state;
    board b = {.rounds = 1};
    assert_int_equal(weft__pool_create(2, &b.pool, NULL), WEFT_OK);
    assert_int_equal(weft__pool_team(b.pool), 2);
    run_until(&b, 1, 60);
    assert_int_equal(weft__pool_team(b.pool), 1);
    long before = b.counts[1][0];
    weft__pool_run(b.pool, count_once, &b); /* this one always means everybody */
    assert_int_equal(b.counts[1][0], before + 1);
    b.rounds = 0;
    run_until(&b, 2, 60); /* a chance again */
    assert_int_equal(weft__pool_team(b.pool), 2);
    weft__pool_destroy(&b.pool);

    b = (board){.rounds = 1};
    setenv("WEFT_TEAM", "fixed", 1);
    assert_int_equal(weft__pool_create(2, &b.pool, NULL), WEFT_OK);
    unsetenv("WEFT_TEAM");
    for (int i = 0; i < 20; i++) weft__pool_run_team(b.pool, weft__pool_team(b.pool), 1, lag, &b);
    assert_int_equal(weft__pool_team(b.pool), 2);
    weft__pool_destroy(&b.pool);
}

static void one_is_late(void *arg, int thread, int n_threads)
{
    (void)n_threads;
    if (thread == *(int *)arg) usleep(300000);
}

/* They end together, whatever the machine takes from one of them meanwhile. */
static void all_take_as_long(void *arg, int thread, int n_threads)
{
    atomic_int *n_done = arg;
    (void)thread;
    usleep(200000);
    atomic_fetch_add(n_done, 1);
    while (atomic_load(n_done) < n_threads) usleep(500);
}

/* As packing weights is, before the first step: that step has all threads, and so has the next. */
static void what_other_jobs_wait_for_does_not_count(void **state)
{
    (void)state;
    weft__pool *pool = NULL;
    assert_int_equal(weft__pool_create(2, &pool, NULL), WEFT_OK);
    for (int late = 0; late < 2; late++) {
        weft__pool_run(pool, one_is_late, &late);
        atomic_int n_done = 0;
        weft__pool_run_team(pool, 2, 1, all_take_as_long, &n_done);
        assert_int_equal(weft__pool_team(pool), 2);
    }
    weft__pool_destroy(&pool);
}

static void bad_sizes_are_refused(void **state)
{
    (void)state;
    weft_error err;
    weft__pool *pool = NULL;
    assert_int_equal(weft__pool_create(-1, &pool, &err), WEFT_ARGUMENT);
    assert_int_equal(weft__pool_create(1 << 20, &pool, &err), WEFT_ARGUMENT);
    assert_null(pool);
    assert_int_equal(weft__pool_create(0, &pool, &err), WEFT_OK);
    assert_true(weft__pool_size(pool) >= 1);
    weft__pool_destroy(&pool);
}

static void refused_threads_are_an_error(void **state)
{
    (void)state;
    size_t before = weft__alloc_live();
    for (int refused = 0; refused < 3; refused++) {
        weft_error err = {0};
        weft__pool *pool = NULL;
        create_limit = refused;
        assert_int_equal(weft__pool_create(4, &pool, &err), WEFT_LIMIT);
        assert_non_null(strstr(err.message, "WEFT_THREADS"));
        assert_null(pool);
        assert_int_equal(weft__alloc_live(), before);
    }
    create_limit = -1;
}

static int create_pool(void *arg)
{
    (void)arg;
    weft__pool *pool = NULL;
    weft_status status = weft__pool_create(3, &pool, NULL);
    if (status != WEFT_OK && status != WEFT_NO_MEMORY) fail_msg("status %d", (int)status);
    weft__pool_destroy(&pool);
    return status == WEFT_OK;
}

static void refused_memory_is_an_error(void **state)
{
    (void)state;
    assert_int_equal(fail_each(create_pool, NULL), 4);
}

enum { CALLERS = 3, TURNS = MANY_JOBS / 1000 };

static void *call_often(void *arg)
{
    board *b = arg;
    for (int i = 0; i < TURNS; i++) {
        if (i % 2) weft__pool_run(b->pool, count_once, b);
        else weft__pool_run_team(b->pool, weft__pool_team(b->pool), 1, count_once, b);
    }
    return NULL;
}

/* The counts are plain: two jobs at once would lose some, and ThreadSanitizer sees what the pool does not order. */
static void callers_take_turns(void **state)
{
    (void)state;
    board b = {0};
    pthread_t callers[CALLERS];
    setenv("WEFT_TEAM", "fixed", 1);
    assert_int_equal(weft__pool_create(2, &b.pool, NULL), WEFT_OK);
    unsetenv("WEFT_TEAM");
    for (int i = 0; i < CALLERS; i++) assert_int_equal(pthread_create(&callers[i], NULL, call_often, &b), 0);
    for (int i = 0; i < CALLERS; i++) pthread_join(callers[i], NULL);
    for (int t = 0; t < 2; t++) assert_int_equal(b.counts[t][0], CALLERS * TURNS);
    weft__pool_destroy(&b.pool);
}

/* Each waits in its job until the other is in one, too. */
typedef struct pair {
    weft__pool *pool;
    pthread_barrier_t both;
} pair;

static void meet(void *arg, int thread, int n_threads)
{
    pair *p = arg;
    assert_int_equal(thread, 0);
    assert_int_equal(n_threads, 1);
    pthread_barrier_wait(&p->both);
}

static void *call_pair(void *arg)
{
    pair *p = arg;
    weft__pool_run(p->pool, meet, p);
    weft__pool_run_team(p->pool, weft__pool_team(p->pool), 1, meet, p);
    return NULL;
}

static void a_pool_of_one_thread_has_no_turns(void **state)
{
    (void)state;
    pair p;
    pthread_t other;
    assert_int_equal(weft__pool_create(1, &p.pool, NULL), WEFT_OK);
    pthread_barrier_init(&p.both, NULL, 2);
    assert_int_equal(pthread_create(&other, NULL, call_pair, &p), 0);
    call_pair(&p);
    pthread_join(other, NULL);
    pthread_barrier_destroy(&p.both);
    weft__pool_destroy(&p.pool);
}

/* Those that share have one pool for each number of threads; it ends with the last of them. */
static void a_shared_pool_is_one(void **state)
{
    (void)state;
    size_t live = weft__alloc_live();
    board b = {0};
    weft__pool *other, *larger, *own;
    assert_int_equal(weft__pool_share(2, &b.pool, NULL), WEFT_OK);
    assert_int_equal(weft__pool_share(2, &other, NULL), WEFT_OK);
    assert_int_equal(weft__pool_share(3, &larger, NULL), WEFT_OK);
    assert_int_equal(weft__pool_create(2, &own, NULL), WEFT_OK);
    assert_ptr_equal(b.pool, other);
    assert_ptr_not_equal(b.pool, larger);
    assert_ptr_not_equal(b.pool, own);
    weft__pool_destroy(&own);
    weft__pool_destroy(&other);
    assert_null(other);
    weft__pool_run(b.pool, count_once, &b);
    assert_int_equal(b.counts[1][0], 1);
    weft__pool_destroy(&larger);
    weft__pool_destroy(&b.pool);
    assert_int_equal(weft__pool_share(2, &b.pool, NULL), WEFT_OK);
    weft__pool_destroy(&b.pool);
    assert_int_equal(weft__alloc_live(), live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_thread_runs_every_job),
        cmocka_unit_test(barriers_order_memory),
        cmocka_unit_test(teams_start_and_stop),
        cmocka_unit_test(sleepers_wake),
        cmocka_unit_test(waiting_threads_sleep_and_wake),
        cmocka_unit_test(laggards_are_left_out),
        cmocka_unit_test(bad_sizes_are_refused),
        cmocka_unit_test(refused_threads_are_an_error),
        cmocka_unit_test(refused_memory_is_an_error),
        cmocka_unit_test(what_other_jobs_wait_for_does_not_count),
        cmocka_unit_test(callers_take_turns),
        cmocka_unit_test(a_shared_pool_is_one),
        cmocka_unit_test(a_pool_of_one_thread_has_no_turns),
    };
    return cmocka_run_group_tests_name("base_pool", tests, NULL, NULL);
}
